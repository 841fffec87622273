package disk

import (
	"bytes"
	"encoding/binary"
	"io"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
)

// Content is what a disk or partition holds, by its signature.
type Content struct {
	Kind  string // ext4, xfs, btrfs, vfat, iso9660, swap, lvm, md, zfs, luks, gpt, mbr
	Label string // of a file system
	Off   int64  // of the signature
}

// mark is a signature at a place; a place below zero counts from the end.
type mark struct {
	kind  string
	off   int64
	bytes string
}

var marks = []mark{
	{"btrfs", 0x10040, "_BHRfS_M"},
	{"btrfs", 64<<20 + 0x40, "_BHRfS_M"},
	{"xfs", 0, "XFSB"},
	{"luks", 0, "LUKS\xba\xbe"},
	{"luks", 0x4000, "SKUL\xba\xbe"},
	{"bitlocker", 3, "-FVE-FS-"},
	{"ntfs", 3, "NTFS    "},
	{"exfat", 3, "EXFAT   "},
	{"vfat", 54, "FAT12   "},
	{"vfat", 54, "FAT16   "},
	{"vfat", 82, "FAT32   "},
	{"iso9660", 0x8001, "CD001"},
	{"squashfs", 0, "hsqs"},
	{"erofs", 1024, "\xe2\xe1\xf5\xe0"},
	{"f2fs", 1024, "\x10\x20\xf5\xf2"},
	{"swap", 4086, "SWAPSPACE2"},
	{"bcache", 0x1018, "\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81"},
	{"md", 0, "\xfc\x4e\x2b\xa9"},
	{"md", 4096, "\xfc\x4e\x2b\xa9"}, // 1.1 and 1.2
	{"gpt", 512, gptMagic},
	{"gpt", 4096, gptMagic},
	{"gpt", -512, gptMagic},
	{"gpt", -4096, gptMagic},
	{"imsm", -1024, "Intel Raid ISM Cfg Sig. "},
	{"ddf", -512, "\xde\x11\xde\x11"},
}

// zfsMagic is that of an uberblock; a label of 256 KiB has its ring of them in its second half.
var zfsMagic = []uint64{0x00bab10c, 0x0cb1ba0000000000}

// Contents finds what is on a disk or partition of size bytes. It reads some hundred KiB and never fails: an
// unreadable place counts as empty, because it holds nothing that could be used.
func Contents(r io.ReaderAt, size int64) []Content {
	var all []Content
	add := func(kind string, off int64, label string) {
		if !slices.ContainsFunc(all, func(c Content) bool { return c.Kind == kind }) {
			all = append(all, Content{Kind: kind, Off: off, Label: inventory.Clean(label, 64)})
		}
	}
	if sb := window(r, size, 1024, 1024); binary.LittleEndian.Uint16(sb[56:]) == 0xef53 {
		add(extKind(sb), 1024+56, text(sb[120:136]))
	}
	for i := range int64(8) { // a physical volume's label is in one of the first four sectors, of 512 or 4096 bytes
		for _, unit := range []int64{512, 4096} {
			if i < 4 && string(window(r, size, i*unit, 8)) == "LABELONE" {
				add("lvm", i*unit, "")
			}
		}
	}
	for _, m := range marks {
		off := m.off
		if off < 0 {
			off += size / 512 * 512
		}
		if string(window(r, size, off, len(m.bytes))) == m.bytes {
			add(m.kind, off, labelOf(r, size, m))
		}
	}
	for _, off := range mdAtEnd(size) {
		if string(window(r, size, off, 4)) == "\xfc\x4e\x2b\xa9" {
			add("md", off, "")
		}
	}
	// ZFS has four labels of 256 KiB, two at each end, aligned to their size.
	for _, label := range []int64{0, 256 << 10, size&^(256<<10-1) - 512<<10, size&^(256<<10-1) - 256<<10} {
		ring := window(r, size, label+128<<10, 128<<10)
		for off := 0; off < len(ring); off += 1024 {
			if slices.Contains(zfsMagic, binary.LittleEndian.Uint64(ring[off:])) {
				add("zfs", label+128<<10+int64(off), "")
			}
		}
	}
	// A boot sector of these ends with the same two bytes as an MBR.
	if t, _ := readMBR(r, size, 512); t != nil && !slices.ContainsFunc(all, func(c Content) bool {
		return c.Kind == "vfat" || c.Kind == "gpt" || c.Kind == "ntfs" || c.Kind == "exfat"
	}) {
		add("mbr", 510, "")
	}
	return all
}

// mdAtEnd lists where superblocks of md 0.90 and 1.0 are.
func mdAtEnd(size int64) []int64 {
	return []int64{size&^(64<<10-1) - 64<<10, (size - 8<<10) &^ (4<<10 - 1)}
}

func extKind(sb []byte) string {
	switch compat, incompat := binary.LittleEndian.Uint32(sb[92:]), binary.LittleEndian.Uint32(sb[96:]); {
	case incompat&0x2c0 != 0: // extents, 64 bit, flexible groups
		return "ext4"
	case compat&0x4 != 0: // journal
		return "ext3"
	}
	return "ext2"
}

func labelOf(r io.ReaderAt, size int64, m mark) string {
	switch {
	case m.kind == "btrfs":
		return text(window(r, size, m.off-0x40+0x12b, 256))
	case m.kind == "xfs":
		return text(window(r, size, 108, 12))
	case m.kind == "vfat" && m.off == 82:
		return strings.TrimRight(text(window(r, size, 71, 11)), " ")
	case m.kind == "vfat":
		return strings.TrimRight(text(window(r, size, 43, 11)), " ")
	case m.kind == "iso9660":
		return strings.TrimRight(text(window(r, size, 0x8028, 32)), " ")
	}
	return ""
}

func text(b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}

// window reads a place, or zeroes where there is none.
func window(r io.ReaderAt, size, off int64, n int) []byte {
	b := make([]byte, n)
	if off < 0 || off+int64(n) > size {
		return b
	}
	if got, err := r.ReadAt(b, off); err != nil && err != io.EOF {
		clear(b[got:])
	}
	return b
}

// IsFileSystem reports whether a kind of content can be mounted.
func (c Content) IsFileSystem() bool {
	return slices.Contains([]string{"ext2", "ext3", "ext4", "xfs", "btrfs", "vfat", "iso9660"}, c.Kind)
}
