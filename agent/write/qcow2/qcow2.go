// Package qcow2 owns the layout of QEMU's disk images: where the file holds each part of the disk, and how its
// clusters are packed. It reads a file in one sequential pass, and never follows backing files, keys or snapshots.
//
// The facts are those of docs/interop/qcow2.txt of QEMU. All numbers in a file are big-endian. A file from outside is
// hostile: each number is checked before it is used as a size, an offset or a count.
//
// Start reading at ParseHeader, then ReadMap, then Map.Copy.
package qcow2

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"

	"slipway.dev/slipway/inventory"
)

// HeaderBytes is how much of the file ParseHeader needs.
const HeaderBytes = 512

// Bounds on what a file may make us remember.
const (
	maxL1      = 8 << 20  // entries' bytes: with clusters of 64 KiB this is a disk of 512 TiB
	maxExtents = 4 << 20  // runs of clusters
	maxTables  = 64 << 10 // L2 tables that are fetched
)

// Flags of version 3 that change how the file is read.
const (
	flagCorrupt  = 1 << 1
	flagExternal = 1 << 2
	flagPacking  = 1 << 3
	flagExtended = 1 << 4
	flagsKnown   = 1 | flagCorrupt | flagExternal | flagPacking | flagExtended
)

// Header holds what the first bytes of the file say.
type Header struct {
	Version     int
	ClusterBits int
	Size        int64 // of the disk
	L1Off       int64
	L1N         int
	IsZstd      bool // clusters are packed with zstd, not deflate
}

// Cluster returns the size of a cluster in bytes.
func (h Header) Cluster() int64 { return 1 << h.ClusterBits }

func invalid(format string, args ...any) error {
	return inventory.Errorf(inventory.Invalid, "the qcow2 image "+format, args...).
		WithHint("make it plain: qemu-img convert -O qcow2 OLD NEW")
}

// ParseHeader reads the header from the first HeaderBytes of a file. It refuses an image that needs another file, a
// key, or a feature that this package does not know. Every error is Invalid.
func ParseHeader(b []byte) (Header, error) {
	if len(b) < 104 || string(b[:4]) != "QFI\xfb" {
		return Header{}, inventory.Errorf(inventory.Invalid, "the image is not qcow2").WithHint("look at its format: qemu-img info FILE")
	}
	u32 := func(off int) uint32 { return binary.BigEndian.Uint32(b[off:]) }
	u64 := func(off int) uint64 { return binary.BigEndian.Uint64(b[off:]) }
	h := Header{Version: int(u32(4)), ClusterBits: int(u32(20)), Size: int64(u64(24)), L1N: int(u32(36)), L1Off: int64(u64(40))}
	switch {
	case h.Version != 2 && h.Version != 3:
		return Header{}, invalid("is of version %d; 2 and 3 are known", h.Version)
	case h.ClusterBits < 9 || h.ClusterBits > 21:
		return Header{}, invalid("has clusters of 2^%d bytes", h.ClusterBits)
	case u64(8) != 0 || u32(16) != 0:
		return Header{}, invalid("is only the difference to another file")
	case u32(32) != 0:
		return Header{}, invalid("is encrypted")
	case u32(60) != 0:
		return Header{}, invalid("has %d snapshots inside", u32(60))
	case h.Size <= 0 || h.Size > 1<<50:
		return Header{}, invalid("says that its disk has %d bytes", h.Size)
	case int64(h.L1N)*8 > maxL1 || h.L1Off <= 0 || h.L1Off%h.Cluster() != 0:
		return Header{}, invalid("has its first table of %d entries at byte %d", h.L1N, h.L1Off)
	}
	// One L2 table maps a cluster's worth of entries.
	if need := (h.Size + h.tableSpan() - 1) / h.tableSpan(); int64(h.L1N) < need {
		return Header{}, invalid("maps less than its %d bytes", h.Size)
	}
	if h.Version == 3 {
		return h, h.parseFlags(b, u64(72))
	}
	return h, nil
}

// tableSpan is how much of the disk one L2 table maps.
func (h Header) tableSpan() int64 { return h.Cluster() / 8 * h.Cluster() }

func (h *Header) parseFlags(b []byte, flags uint64) error {
	switch {
	case flags&flagCorrupt != 0:
		return invalid("is marked as corrupt")
	case flags&flagExternal != 0:
		return invalid("keeps its data in another file")
	case flags&flagExtended != 0:
		return invalid("has extended L2 entries, which are not known here")
	case flags&^flagsKnown != 0:
		return invalid("uses a feature that is not known here (bit %d)", bits.TrailingZeros64(flags&^flagsKnown))
	}
	if flags&flagPacking != 0 && binary.BigEndian.Uint32(b[100:]) > 104 {
		if b[104] > 1 {
			return invalid("is packed by method %d; deflate and zstd are known", b[104])
		}
		h.IsZstd = b[104] == 1
	}
	return nil
}

// Extent is a run of the disk that the file holds in one piece, or one packed cluster. Offsets and sizes are in
// bytes.
type Extent struct {
	File, Guest int64
	Bytes       int64 // in the file; of a packed cluster at most this many
	IsPacked    bool
}

// Hole is a run of the disk that the file does not hold: it reads as zeroes.
type Hole struct{ Off, Bytes int64 }

// Map says where in the file each part of the disk is. Everything outside of the extents reads as zero.
type Map struct {
	Header  Header
	Extents []Extent // in the file's order
	Holes   []Hole   // in the disk's order

	tables []region
}

// region is a part of the file that was read ahead; its digest proves that the stream holds the same.
type region struct {
	off, n int64
	sum    [sha256.Size]byte
}

// ReadMap reads the tables through fetch, which returns n bytes of the file at an offset. It fetches the L1 table and
// up to 64 Ki L2 tables. Errors of fetch come back unchanged; all others are Invalid.
func ReadMap(h Header, fileSize int64, fetch func(off, n int64) ([]byte, error)) (*Map, error) {
	m := &Map{Header: h}
	l1, err := m.table(h.L1Off, int64(h.L1N)*8, fileSize, fetch)
	if err != nil {
		return nil, err
	}
	seen := map[int64]bool{}
	for at := int64(0); at < h.Size; at += h.tableSpan() {
		off := int64(binary.BigEndian.Uint64(l1[at/h.tableSpan()*8:]) & offsetMask)
		if off == 0 {
			m.hole(at, min(h.tableSpan(), h.Size-at))
			continue
		}
		// A table that is used twice would let a small file describe a huge one.
		if seen[off] || len(seen) >= maxTables || off%h.Cluster() != 0 {
			return nil, invalid("uses the table at byte %d twice, or it cannot be there", off)
		}
		seen[off] = true
		l2, err := m.table(off, h.Cluster(), fileSize, fetch)
		if err != nil {
			return nil, err
		}
		if err := m.addTable(l2, at, fileSize); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(m.Extents, func(a, b Extent) int { return cmp.Compare(a.File, b.File) })
	slices.SortFunc(m.tables, func(a, b region) int { return cmp.Compare(a.off, b.off) })
	return m, m.check()
}

func (m *Map) table(off, n, fileSize int64, fetch func(off, n int64) ([]byte, error)) ([]byte, error) {
	if off+n > fileSize {
		return nil, invalid("is cut short: a table at byte %d is missing", off)
	}
	b, err := fetch(off, n)
	if err != nil {
		return nil, err
	}
	if int64(len(b)) != n {
		return nil, fmt.Errorf("read a table of %d bytes: got %d", n, len(b))
	}
	m.tables = append(m.tables, region{off: off, n: n, sum: sha256.Sum256(b)})
	return b, nil
}

// Parts of a table entry.
const (
	offsetMask = 0x00fffffffffffe00
	isPacked   = 1 << 62
	isZero     = 1
)

func (m *Map) addTable(l2 []byte, at, fileSize int64) error {
	cluster := m.Header.Cluster()
	for i := 0; i < len(l2) && at < m.Header.Size; i, at = i+8, at+cluster {
		entry := binary.BigEndian.Uint64(l2[i:])
		if entry&isPacked != 0 {
			// A packed entry holds the offset in its low bits, and above them how many further sectors of 512 bytes
			// the data reach into.
			shift := 62 - (m.Header.ClusterBits - 8)
			off := int64(entry & (1<<shift - 1))
			sectors := int64(entry&(1<<62-1)) >> shift
			n := (sectors+1)*512 - off%512
			if off == 0 || off >= fileSize || n > 2*cluster+1024 {
				return invalid("has a packed cluster at byte %d, which it does not hold", off)
			}
			m.Extents = append(m.Extents, Extent{File: off, Guest: at, Bytes: min(n, fileSize-off), IsPacked: true})
		} else if off := int64(entry & offsetMask); off == 0 || m.Header.Version == 3 && entry&isZero != 0 {
			m.hole(at, min(cluster, m.Header.Size-at))
		} else if n := min(cluster, m.Header.Size-at); off%cluster != 0 || off+n > fileSize {
			return invalid("is cut short: the data at byte %d is missing", off)
		} else if last := len(m.Extents) - 1; last >= 0 && !m.Extents[last].IsPacked &&
			m.Extents[last].File+m.Extents[last].Bytes == off && m.Extents[last].Guest+m.Extents[last].Bytes == at {
			m.Extents[last].Bytes += n
		} else {
			m.Extents = append(m.Extents, Extent{File: off, Guest: at, Bytes: n})
		}
		if len(m.Extents) > maxExtents || len(m.Holes) > maxExtents {
			return invalid("is in more than %d pieces", maxExtents)
		}
	}
	return nil
}

func (m *Map) hole(off, n int64) {
	if last := len(m.Holes) - 1; last >= 0 && m.Holes[last].Off+m.Holes[last].Bytes == off {
		m.Holes[last].Bytes += n
		return
	}
	m.Holes = append(m.Holes, Hole{off, n})
}

// check refuses pieces that overlap, which one pass could not serve. The end of a packed cluster is rounded up, so
// that it may reach into the next piece.
func (m *Map) check() error {
	end := int64(0)
	for _, t := range m.tables {
		if t.off < end {
			return invalid("has two tables at byte %d", t.off)
		}
		end = t.off + t.n
	}
	end = 0
	for _, e := range m.Extents {
		if e.File < end {
			return invalid("uses the data at byte %d twice", e.File)
		}
		end = e.File + e.Bytes
		if e.IsPacked {
			end = e.File + 1
		}
	}
	return nil
}
