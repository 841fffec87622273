package inspect

import (
	"bytes"
	"encoding/binary"
	"io"
)

// signatures are magic numbers within the first headBytes, in the order of the search: what holds others
// comes first.
var signatures = []struct {
	at    int
	magic string
	kind  string
}{
	{0, "LUKS\xba\xbe", "LUKS"},
	{0x218, "LVM2 001", "LVM member"},
	{0x18, "LVM2 001", "LVM member"},
	{0x418, "LVM2 001", "LVM member"},
	{0x618, "LVM2 001", "LVM member"},
	{0, "\xfc\x4e\x2b\xa9", "RAID member"},
	{0x1000, "\xfc\x4e\x2b\xa9", "RAID member"},
	{0x10040, "_BHRfS_M", "btrfs"},
	{0, "XFSB", "xfs"},
	{0x52, "FAT32   ", "vfat"},
	{0x36, "FAT16   ", "vfat"},
	{0x36, "FAT12   ", "vfat"},
	{3, "NTFS    ", "ntfs"},
	{3, "EXFAT   ", "exfat"},
	{0xff6, "SWAPSPACE2", "swap"},
	{0xff6, "SWAP-SPACE", "swap"},
	{0x8001, "CD001", "iso9660"},
	{0, "hsqs", "squashfs"},
	{0x400, "\xe2\xe1\xf5\xe0", "erofs"},
	{0x400, "\x10\x20\xf5\xf2", "f2fs"},
	{0, "bluestore block device", "Ceph BlueStore"},
	{0x10034, "ReIsEr2Fs", "reiserfs"},
	{0x1018, "\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81", "bcachefs"},
	{0x20000, "\x0c\xb1\xba\x00\x00\x00\x00\x00", "ZFS member"},
	{0x21000, "\x0c\xb1\xba\x00\x00\x00\x00\x00", "ZFS member"},
	{0, "conectix", "VHD image"},
	{0, "QFI\xfb", "qcow2 image"},
}

// signature names what begins with head; "" when it is nothing known.
func signature(head []byte) string {
	for _, s := range signatures {
		if s.at+len(s.magic) <= len(head) && string(head[s.at:s.at+len(s.magic)]) == s.magic {
			return s.kind
		}
	}
	if len(head) >= 0x470 && binary.LittleEndian.Uint16(head[0x438:]) == 0xef53 {
		return ext(head)
	}
	return ""
}

// ext tells ext2, ext3 and ext4 by their features: a journal, and what ext3 does not know.
func ext(head []byte) string {
	compatible, incompatible := binary.LittleEndian.Uint32(head[0x45c:]), binary.LittleEndian.Uint32(head[0x460:])
	switch {
	case incompatible&0x8 != 0:
		return "ext journal"
	case incompatible&^0x16 != 0: // more than filetype, recover and meta_bg
		return "ext4"
	case compatible&0x4 != 0:
		return "ext3"
	}
	return "ext2"
}

// endSignature finds RAID members that keep their superblock at the end of the disk: MD 0.90 and 1.0, and firmware RAID
// (DDF, Intel).
func endSignature(r io.ReaderAt, size int64) string {
	const tail = 128 << 10
	if size < 2*tail {
		return ""
	}
	at := size - tail
	b := readAt(r, at, tail, size)
	md := []byte("\xfc\x4e\x2b\xa9")
	for _, offset := range []int64{size&^0xffff - 64<<10, (size - 8<<10) &^ 0xfff} {
		if i := offset - at; i >= 0 && i+4 <= int64(len(b)) && bytes.Equal(b[i:i+4], md) {
			return "RAID member"
		}
	}
	if int64(len(b)) == tail {
		if bytes.HasPrefix(b[tail-1024:], []byte("Intel Raid ISM Cfg Sig. ")) {
			return "firmware RAID member (Intel)"
		}
		if string(b[tail-512:tail-508]) == "\xde\x11\xde\x11" {
			return "firmware RAID member (DDF)"
		}
	}
	return ""
}
