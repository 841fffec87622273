package disk

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"io"
	"strings"
	"unicode/utf16"

	"slipway.dev/slipway/inventory"
)

// GUID is a GUID as a disk holds it: its first three groups are little-endian.
type GUID [16]byte

// Types of partitions: UEFI section 5.3.3 and the Discoverable Partitions Specification.
var (
	TypeESP        = mustGUID("c12a7328-f81f-11d2-ba4b-00a0c93ec93b")
	TypeLinux      = mustGUID("0fc63daf-8483-4772-8e79-3d69d8477de4")
	TypeBasicData  = mustGUID("ebd0a0a2-b9e5-4433-87c0-68b6b72699c7")
	TypeRootX86_64 = mustGUID("4f68bce3-e8cd-4db1-96e7-fbcaf984b709")
	TypeRootARM64  = mustGUID("b921b045-1df0-41c3-af44-4c6f280d3fae")
)

// ParseGUID reads the usual text form.
func ParseGUID(s string) (GUID, bool) {
	b, err := hex.DecodeString(strings.ReplaceAll(s, "-", ""))
	if err != nil || len(b) != 16 || len(s) != 36 {
		return GUID{}, false
	}
	return swap(GUID(b)), true
}

func mustGUID(s string) GUID {
	g, ok := ParseGUID(s)
	if !ok {
		panic("disk: " + s + " is no GUID")
	}
	return g
}

func swap(g GUID) GUID {
	return GUID{g[3], g[2], g[1], g[0], g[5], g[4], g[7], g[6], g[8], g[9], g[10], g[11], g[12], g[13], g[14], g[15]}
}

// String returns the usual text form in lower case.
func (g GUID) String() string {
	h := hex.EncodeToString(func() []byte { s := swap(g); return s[:] }())
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// Partition is one entry of a table.
type Partition struct {
	Number     int
	First      int64 // sector
	Sectors    int64
	Type       GUID   // of GPT
	ID         GUID   // of GPT
	Name       string // of GPT
	Attributes uint64 // of GPT
	MBRType    byte   // of MBR
}

// Table is a partition table.
type Table struct {
	IsGPT      bool
	ID         GUID   // of the disk, GPT
	Signature  uint32 // of the disk, MBR
	Sector     int
	Partitions []Partition
	// IsBackup says that only the copy at the end of the disk could be read.
	IsBackup bool

	header  []byte // GPT, as read
	entries []byte // GPT, as read
}

const (
	gptMagic     = "EFI PART"
	maxEntries   = 1024
	mbrChainN    = 64 // logical partitions that are followed
	maxEntrySize = 4096
)

// ReadTable reads the partition table of a disk of size bytes; nil when it has none. It reads a damaged GPT from its
// backup, and then sets IsBackup. The errors are those of r.
func ReadTable(r io.ReaderAt, size int64, sector int) (*Table, error) {
	if sector < 512 || size < int64(4*sector) {
		return nil, nil
	}
	// The primary header is in sector 1, its backup in the last one.
	for _, lba := range []int64{1, size/int64(sector) - 1} {
		t, err := readGPT(r, size, sector, lba)
		if err != nil {
			return nil, err
		}
		if t != nil {
			t.IsBackup = lba != 1
			return t, nil
		}
	}
	return readMBR(r, size, sector)
}

// readGPT reads a GPT whose header is at a sector: nil when there is none that is right (UEFI 5.3.2).
func readGPT(r io.ReaderAt, size int64, sector int, lba int64) (*Table, error) {
	h := make([]byte, sector)
	if _, err := r.ReadAt(h, lba*int64(sector)); err != nil {
		return nil, err
	}
	if string(h[:8]) != gptMagic {
		return nil, nil
	}
	length := binary.LittleEndian.Uint32(h[12:])
	if length < 92 || int(length) > sector {
		return nil, nil
	}
	check := bytes.Clone(h[:length])
	clear(check[16:20])
	// The checksum covers the header with its own field as zero. A copy at a wrong place has the wrong MyLBA.
	if crc32.ChecksumIEEE(check) != binary.LittleEndian.Uint32(h[16:]) || int64(binary.LittleEndian.Uint64(h[24:])) != lba {
		return nil, nil
	}
	at, n, each := int64(binary.LittleEndian.Uint64(h[72:])), binary.LittleEndian.Uint32(h[80:]), binary.LittleEndian.Uint32(h[84:])
	// The bounds come before the memory: a checksum is right for hostile numbers, too.
	if n > maxEntries || each < 128 || each > maxEntrySize || each%8 != 0 || at < 1 || at > size/int64(sector) {
		return nil, nil
	}
	entries := make([]byte, int(n*each))
	if _, err := r.ReadAt(entries, at*int64(sector)); err != nil && err != io.EOF {
		return nil, err
	}
	if crc32.ChecksumIEEE(entries) != binary.LittleEndian.Uint32(h[88:]) {
		return nil, nil
	}
	t := &Table{IsGPT: true, ID: GUID(h[56:72]), Sector: sector, header: h[:length], entries: entries}
	for i := range int(n) {
		e := entries[i*int(each):][:each]
		p := Partition{
			Number: i + 1, Type: GUID(e[0:16]), ID: GUID(e[16:32]), First: int64(binary.LittleEndian.Uint64(e[32:])),
			Attributes: binary.LittleEndian.Uint64(e[48:]), Name: partitionName(e[56:128]),
		}
		p.Sectors = int64(binary.LittleEndian.Uint64(e[40:])) - p.First + 1
		if p.Type != (GUID{}) && p.First > 0 && p.Sectors > 0 && p.First < size/int64(sector) {
			t.Partitions = append(t.Partitions, p)
		}
	}
	return t, nil
}

func partitionName(b []byte) string {
	var units []uint16
	for i := 0; i+1 < len(b); i += 2 {
		u := binary.LittleEndian.Uint16(b[i:])
		if u == 0 {
			break
		}
		units = append(units, u)
	}
	return inventory.Clean(string(utf16.Decode(units)), 128)
}

// readMBR reads an MBR with its logical partitions; nil when there is none. The first sector of a FAT file system ends
// with the same two bytes, so entries must make sense too.
func readMBR(r io.ReaderAt, size int64, sector int) (*Table, error) {
	b := make([]byte, sector)
	if _, err := r.ReadAt(b, 0); err != nil {
		return nil, err
	}
	total := size / int64(sector)
	entries, ok := mbrEntries(b, total)
	if !ok {
		return nil, nil
	}
	t := &Table{Sector: sector, Signature: binary.LittleEndian.Uint32(b[440:])}
	for i, e := range entries {
		if e.MBRType == 0 || e.Sectors == 0 {
			continue
		}
		e.Number = i + 1
		t.Partitions = append(t.Partitions, e)
		if e.MBRType == 0x05 || e.MBRType == 0x0f || e.MBRType == 0x85 {
			logical, err := readLogical(r, e.First, total, sector)
			if err != nil {
				return nil, err
			}
			t.Partitions = append(t.Partitions, logical...)
		}
	}
	if len(t.Partitions) == 0 {
		return nil, nil
	}
	return t, nil
}

// mbrEntries reads the four entries of a boot record; false when it is none.
func mbrEntries(b []byte, total int64) ([]Partition, bool) {
	if b[510] != 0x55 || b[511] != 0xaa {
		return nil, false
	}
	var all []Partition
	for i := range 4 {
		e := b[446+16*i:][:16]
		p := Partition{MBRType: e[4], First: int64(binary.LittleEndian.Uint32(e[8:])), Sectors: int64(binary.LittleEndian.Uint32(e[12:]))}
		// The status byte is 0 or 0x80. In the code of a boot sector it would be anything.
		if e[0]&0x7f != 0 || p.First > total {
			return nil, false
		}
		all = append(all, p)
	}
	return all, true
}

// readLogical follows the chain of extended boot records, whose links count from the start of the extended partition.
func readLogical(r io.ReaderAt, start, total int64, sector int) ([]Partition, error) {
	var all []Partition
	at := start
	for n := range mbrChainN {
		b := make([]byte, sector)
		if at <= 0 || at >= total {
			break
		}
		if _, err := r.ReadAt(b, at*int64(sector)); err != nil {
			return nil, err
		}
		entries, ok := mbrEntries(b, total)
		if !ok || entries[0].MBRType == 0 {
			break
		}
		p := entries[0]
		p.First += at
		p.Number = 5 + n
		all = append(all, p)
		if entries[1].MBRType == 0 {
			break
		}
		at = start + entries[1].First
	}
	return all, nil
}

// Extents returns the partitions in bytes, limited to the size of the disk.
func (t *Table) Extents(disk string, size int64) []Extent {
	var all []Extent
	if t == nil {
		return nil
	}
	for _, p := range t.Partitions {
		off, n := p.First*int64(t.Sector), p.Sectors*int64(t.Sector)
		if off < 0 || off >= size || n <= 0 {
			continue
		}
		all = append(all, Extent{Name: PartitionName(disk, p.Number), Off: off, Bytes: min(n, size-off)})
	}
	return all
}
