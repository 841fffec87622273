package fat

import (
	"cmp"
	"encoding/binary"
	"io"
	"slices"
	"strings"
	"unicode/utf16"

	"slipway.dev/slipway/inventory"
)

// Bounds on what a file system may make us read.
const (
	maxDepth   = 5
	maxFiles   = 4096
	maxFolders = 512
	maxFolder  = 1 << 20 // bytes of entries
)

// reader reads the folders of a FAT12, FAT16 or FAT32 file system.
type reader struct {
	r                     io.ReaderAt
	sector, cluster       int64 // bytes
	fat, root, data       int64 // offsets
	rootBytes             int64
	rootCluster, clusters uint32
	bits                  int
	files                 []string
	foldersN              int
}

// List returns the files with their paths, such as EFI/debian/shimx64.efi. Damaged parts are left out.
func List(r io.ReaderAt) ([]string, error) {
	f, err := open(r)
	if err != nil {
		return nil, err
	}
	if f.bits == 32 {
		f.walk("", f.chain(f.rootCluster), 0)
	} else {
		f.walk("", f.read(f.root, f.rootBytes), 0)
	}
	return f.files, nil
}

func open(r io.ReaderAt) (*reader, error) {
	b := make([]byte, 512)
	if _, err := r.ReadAt(b, 0); err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	f := &reader{r: r, sector: int64(le.Uint16(b[11:]))}
	f.cluster = f.sector * int64(b[13])
	reserved, tables := int64(le.Uint16(b[14:])), int64(b[16])
	fatSectors, total := int64(le.Uint16(b[22:])), int64(le.Uint16(b[19:]))
	fatSectors = cmp.Or(fatSectors, int64(le.Uint32(b[36:])))
	total = cmp.Or(total, int64(le.Uint32(b[32:])))
	if !slices.Contains([]int64{512, 1024, 2048, 4096}, f.sector) || f.cluster == 0 || reserved == 0 || tables == 0 || b[510] != 0x55 || b[511] != 0xaa {
		return nil, inventory.Errorf(inventory.Invalid, "the file system is not FAT")
	}
	f.rootBytes = int64(le.Uint16(b[17:])) * entryBytes
	f.fat = reserved * f.sector
	f.root = f.fat + tables*fatSectors*f.sector
	f.data = f.root + (f.rootBytes+f.sector-1)/f.sector*f.sector
	f.clusters = uint32(max(0, total*f.sector-f.data) / f.cluster)
	switch {
	case f.clusters <= maxFAT12:
		f.bits = 12
	case f.clusters <= 65524:
		f.bits = 16
	default:
		f.bits, f.rootCluster = 32, le.Uint32(b[44:])
	}
	return f, nil
}

// read returns what is at a place, as far as it can be read.
func (f *reader) read(off, n int64) []byte {
	b := make([]byte, min(n, maxFolder))
	got, _ := f.r.ReadAt(b, off)
	return b[:max(got, 0)]
}

// next returns the cluster behind another; 0 at the end.
func (f *reader) next(c uint32) uint32 {
	at := f.fat + int64(c)*int64(f.bits)/8
	b := append(f.read(at, int64(f.bits+4)/8), 0, 0, 0, 0)
	v := binary.LittleEndian.Uint32(b)
	switch f.bits {
	case 12:
		v = v >> (4 * (c % 2)) & 0xfff
	case 16:
		v &= 0xffff
	default:
		v &= 0x0fffffff
	}
	if v < 2 || v >= f.clusters+2 {
		return 0
	}
	return v
}

// chain returns the bytes of a folder.
func (f *reader) chain(c uint32) []byte {
	var b []byte
	for c >= 2 && c < f.clusters+2 && len(b) < maxFolder {
		b = append(b, f.read(f.data+int64(c-2)*f.cluster, f.cluster)...)
		if int64(len(b))%f.cluster != 0 {
			break
		}
		c = f.next(c)
	}
	return b
}

func (f *reader) walk(folder string, entries []byte, depth int) {
	f.foldersN++
	if depth > maxDepth || f.foldersN > maxFolders {
		return
	}
	var long []uint16
	for ; len(entries) >= entryBytes && entries[0] != 0 && len(f.files) < maxFiles; entries = entries[entryBytes:] {
		e := entries[:entryBytes]
		switch {
		case e[0] == 0xe5:
			long = nil
			continue
		case e[11] == attrLong:
			var part []uint16
			for _, at := range longPlaces {
				part = append(part, binary.LittleEndian.Uint16(e[at:]))
			}
			if long = append(part, long...); len(long) > 260 {
				long = nil
			}
			continue
		}
		name := cmp.Or(longName(long), shortName(e))
		long = nil
		if e[11]&attrVolume != 0 || name == "." || name == ".." || strings.ContainsAny(name, "/\\") {
			continue
		}
		path := strings.TrimPrefix(folder+"/"+inventory.Clean(name, 255), "/")
		if e[11]&attrFolder == 0 {
			f.files = append(f.files, path)
			continue
		}
		first := uint32(binary.LittleEndian.Uint16(e[20:]))<<16 | uint32(binary.LittleEndian.Uint16(e[26:]))
		if f.bits != 32 {
			first &= 0xffff
		}
		f.walk(path, f.chain(first), depth+1)
	}
}

func longName(units []uint16) string {
	if i := slices.IndexFunc(units, func(u uint16) bool { return u == 0 || u == 0xffff }); i >= 0 {
		units = units[:i]
	}
	return string(utf16.Decode(units))
}

// shortName reads the 8.3 form; two flags say which part is in lower case.
func shortName(e []byte) string {
	base, ext := strings.TrimRight(string(e[:8]), " "), strings.TrimRight(string(e[8:11]), " ")
	if e[12]&0x08 != 0 {
		base = strings.ToLower(base)
	}
	if e[12]&0x10 != 0 {
		ext = strings.ToLower(ext)
	}
	if ext == "" {
		return base
	}
	return base + "." + ext
}
