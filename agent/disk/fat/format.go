// Package fat owns small FAT file systems: it makes one that holds some files, and lists what is in one. It never
// changes a file system that is there.
//
// The facts are those of Microsoft's "FAT: General Overview of On-Disk Format", version 1.03.
package fat

import (
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf16"

	"slipway.dev/slipway/inventory"
)

const (
	maxFAT12    = 4084 // clusters; with more it is FAT16
	rootEntries = 512
	entryBytes  = 32
	attrVolume  = 0x08
	attrArchive = 0x20
	attrLong    = 0x0f
	attrFolder  = 0x10
	// fatDate is 2026-01-01: files without a date confuse some readers, and the agent's clock may be wrong.
	fatDate = (2026-1980)<<9 | 1<<5 | 1
)

// geometry is where the parts of a file system are, in sectors.
type geometry struct {
	sector, cluster int // bytes, sectors
	fat, root, data int
	fatSectors      int
	clusters        int
}

// layout chooses clusters so that the file system is FAT12: up to 4084 of them.
func layout(size int64, sector int) (geometry, error) {
	g := geometry{sector: sector, cluster: 1, fat: 1}
	total := int(size / int64(sector))
	rootSectors := rootEntries * entryBytes / sector
	for ; g.cluster <= 128; g.cluster *= 2 {
		// 12 bits a cluster, rounded up for a table that surely fits.
		g.fatSectors = (total/g.cluster*3/2 + 3 + sector - 1) / sector
		g.root = g.fat + 2*g.fatSectors
		g.data = g.root + rootSectors
		g.clusters = (total - g.data) / g.cluster
		if g.clusters >= 1 && g.clusters <= maxFAT12 {
			return g, nil
		}
	}
	return g, inventory.Errorf(inventory.Invalid, "a FAT12 file system cannot have %d bytes", size)
}

// Format makes a file system of that size with that label and files in its root folder.
func Format(w io.WriterAt, size int64, sector int, label string, files map[string][]byte) error {
	g, err := layout(size, sector)
	if err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(files))
	table := []byte{0xf8, 0xff, 0xff}
	root := appendEntry(nil, shortLabel(label), attrVolume, 0, 0)
	next := 2
	var data []byte
	clusterBytes := g.cluster * sector
	for i, name := range names {
		content := files[name]
		n := (len(content) + clusterBytes - 1) / clusterBytes
		if next+n > g.clusters+2 {
			return inventory.Errorf(inventory.Invalid, "the files are larger than a file system of %d bytes", size)
		}
		first := 0
		if n > 0 {
			first = next
		}
		root = appendFile(root, name, i, first, len(content))
		for c := range n {
			link := next + c + 1
			if c == n-1 {
				link = 0xfff
			}
			table = setEntry(table, next+c, link)
		}
		next += n
		data = append(data, content...)
		data = append(data, make([]byte, n*clusterBytes-len(content))...)
	}
	if len(root) > rootEntries*entryBytes {
		return inventory.Errorf(inventory.Invalid, "%d files are too many", len(files))
	}
	image := make([]byte, g.data*sector, g.data*sector+len(data))
	copy(image, bootSector(g, int(size/int64(sector)), label))
	copy(image[g.fat*sector:], table)
	copy(image[(g.fat+g.fatSectors)*sector:], table)
	copy(image[g.root*sector:], root)
	image = append(image, data...)
	_, err = w.WriteAt(image, 0)
	return err
}

func bootSector(g geometry, total int, label string) []byte {
	b := make([]byte, g.sector)
	copy(b, "\xeb\x3c\x90SLIPWAY ")
	le := binary.LittleEndian
	le.PutUint16(b[11:], uint16(g.sector))
	b[13] = byte(g.cluster)
	le.PutUint16(b[14:], 1) // reserved sectors: this one
	b[16] = 2               // tables
	le.PutUint16(b[17:], rootEntries)
	if total < 0x10000 {
		le.PutUint16(b[19:], uint16(total))
	} else {
		le.PutUint32(b[32:], uint32(total))
	}
	b[21] = 0xf8 // a fixed disk
	le.PutUint16(b[22:], uint16(g.fatSectors))
	le.PutUint16(b[24:], 32) // sectors a track and heads, for BIOS geometry that nobody uses
	le.PutUint16(b[26:], 64)
	b[36], b[38] = 0x80, 0x29
	copy(b[39:43], "SLPW")
	label11 := shortLabel(label)
	copy(b[43:54], label11[:])
	copy(b[54:62], "FAT12   ")
	b[510], b[511] = 0x55, 0xaa
	return b
}

func shortLabel(label string) (b [11]byte) {
	copy(b[:], fmt.Sprintf("%-11.11s", strings.ToUpper(label)))
	return b
}

// setEntry sets a 12-bit entry: two of them share three bytes.
func setEntry(table []byte, n, value int) []byte {
	at := n * 3 / 2
	for len(table) < at+2 {
		table = append(table, 0)
	}
	if n%2 == 0 {
		table[at] = byte(value)
		table[at+1] = table[at+1]&0xf0 | byte(value>>8)
	} else {
		table[at] = table[at]&0x0f | byte(value<<4)
		table[at+1] = byte(value >> 4)
	}
	return table
}

func appendEntry(b []byte, short [11]byte, attr byte, first, size int) []byte {
	e := make([]byte, entryBytes)
	copy(e, short[:])
	e[11] = attr
	binary.LittleEndian.PutUint16(e[16:], fatDate)
	binary.LittleEndian.PutUint16(e[18:], fatDate)
	binary.LittleEndian.PutUint16(e[24:], fatDate)
	binary.LittleEndian.PutUint16(e[26:], uint16(first))
	binary.LittleEndian.PutUint32(e[28:], uint32(size))
	return append(b, e...)
}

// appendFile adds the entries of a long name, the last part first, and then the short one, which is made up of a number.
func appendFile(b []byte, name string, i, first, size int) []byte {
	var short [11]byte
	copy(short[:], fmt.Sprintf("SLIP~%-3d   ", i+1))
	var sum byte
	for _, c := range short {
		sum = sum>>1 | sum<<7
		sum += c
	}
	units := append(utf16.Encode([]rune(name)), 0)
	parts := (len(units) + 12) / 13
	if len(units)%13 == 1 { // the name fills its parts: then it has no zero at its end
		units, parts = units[:len(units)-1], parts-1
	}
	for len(units) < parts*13 {
		units = append(units, 0xffff)
	}
	for p := parts; p >= 1; p-- {
		e := make([]byte, entryBytes)
		e[0] = byte(p)
		if p == parts {
			e[0] |= 0x40
		}
		e[11], e[13] = attrLong, sum
		for j, u := range units[(p-1)*13 : p*13] {
			binary.LittleEndian.PutUint16(e[longPlaces[j]:], u)
		}
		b = append(b, e...)
	}
	return appendEntry(b, short, attrArchive, first, size)
}

// longPlaces are where the thirteen characters of a part of a long name are.
var longPlaces = [13]int{1, 3, 5, 7, 9, 14, 16, 18, 20, 22, 24, 28, 30}
