package disk

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
	"unicode/utf16"

	"slipway.dev/slipway/inventory"
)

// ReaderWriterAt is a disk, or what stands for one.
type ReaderWriterAt interface {
	io.ReaderAt
	io.WriterAt
}

// aligned is where new partitions begin and end.
const aligned = 1 << 20

// Write writes a GPT to both ends of a disk of size bytes, with usable sectors up to its end, and fits the protective
// MBR. An image is made for a smaller disk: its backup table is not where firmware searches for it (UEFI section
// 5.3.2).
//
// If power fails during it, at least one of the two tables is whole. The error is Invalid when a partition does not
// fit.
func (t *Table) Write(w ReaderWriterAt, size int64) error {
	if !t.IsGPT {
		return inventory.Errorf(inventory.Internal, "only a GPT can be written")
	}
	last := size/int64(t.Sector) - 1
	entryLBAs := (int64(len(t.entries)) + int64(t.Sector) - 1) / int64(t.Sector)
	// Behind the last usable sector come the entries of the backup and its header.
	usable := last - entryLBAs - 1
	for _, p := range t.Partitions {
		if p.First+p.Sectors-1 > usable {
			return inventory.Errorf(inventory.Invalid, "partition %d ends at sector %d, and the disk can use sectors up to %d", p.Number, p.First+p.Sectors-1, usable).
				WithHint("use a larger disk or a smaller image")
		}
	}
	entries := make([]byte, entryLBAs*int64(t.Sector))
	copy(entries, t.entries)
	// The backup first: a power cut between the two leaves a good primary.
	for _, part := range []struct {
		data []byte
		lba  int64
	}{
		{entries, last - entryLBAs},
		{t.makeHeader(last, 1, last-entryLBAs, usable), last},
		{entries, 2},
		{t.makeHeader(1, last, 2, usable), 1},
	} {
		if _, err := w.WriteAt(part.data, part.lba*int64(t.Sector)); err != nil {
			return err
		}
	}
	return protect(w, t.Sector, last)
}

func (t *Table) makeHeader(my, other, entries, usable int64) []byte {
	h := make([]byte, t.Sector)
	copy(h, t.header)
	binary.LittleEndian.PutUint64(h[24:], uint64(my))
	binary.LittleEndian.PutUint64(h[32:], uint64(other))
	binary.LittleEndian.PutUint64(h[48:], uint64(usable))
	binary.LittleEndian.PutUint64(h[72:], uint64(entries))
	binary.LittleEndian.PutUint32(h[88:], crc32.ChecksumIEEE(t.entries))
	clear(h[16:20])
	binary.LittleEndian.PutUint32(h[16:], crc32.ChecksumIEEE(h[:len(t.header)]))
	return h
}

// protect makes the protective MBR cover the disk. A hybrid MBR, with entries of its own, stays as it is.
func protect(w ReaderWriterAt, sector int, last int64) error {
	b := make([]byte, sector)
	if _, err := w.ReadAt(b, 0); err != nil {
		return err
	}
	if b[510] != 0x55 || b[511] != 0xaa {
		b[510], b[511] = 0x55, 0xaa
		clear(b[446:510])
	}
	e := b[446:462]
	// A hybrid MBR names the partitions of an old BIOS boot, and those places are still right.
	if e[4] != 0xee && e[4] != 0 || !IsZero(bytes.Clone(b[462:510])) {
		return nil
	}
	// The fields of UEFI table 5-4: start in the old form, type 0xEE, end as large as the field allows.
	copy(e[1:8], []byte{0x00, 0x02, 0x00, 0xee, 0xff, 0xff, 0xff})
	binary.LittleEndian.PutUint32(e[8:], 1)
	binary.LittleEndian.PutUint32(e[12:], uint32(min(last, 0xffffffff)))
	_, err := w.WriteAt(b, 0)
	return err
}

// Add puts a new partition at the end of a disk of size bytes into the table. Write then writes it. At the end it
// leaves the other partitions room to grow. The error is Invalid when there is no space.
func (t *Table) Add(size, bytes int64, kind, id GUID, name string) (Partition, error) {
	none := func(why string) (Partition, error) {
		return Partition{}, inventory.Errorf(inventory.Invalid, "no space for a partition of %d bytes: %s", bytes, why)
	}
	if !t.IsGPT {
		return none("the partition table is not GPT")
	}
	// SizeOfPartitionEntry is 128 times a power of two (UEFI table 5-5): it may be more than we know fields of.
	each := int(binary.LittleEndian.Uint32(t.header[84:]))
	slot := -1
	for i := 0; i < len(t.entries)/each; i++ {
		if IsZero(t.entries[i*each:][:16]) {
			slot = i
			break
		}
	}
	if slot < 0 {
		return none("all entries of the table are taken")
	}
	sector, unit := int64(t.Sector), int64(aligned)/int64(t.Sector)
	end := (size/sector - 1 - int64(len(t.entries))/sector - 2) / unit * unit // first sector behind it
	first := (end - bytes/sector) / unit * unit
	for _, p := range t.Partitions {
		if p.First+p.Sectors > first {
			return none("the image fills the disk to its end")
		}
	}
	if first < unit {
		return none("the disk is too small")
	}
	p := Partition{Number: slot + 1, First: first, Sectors: end - first, Type: kind, ID: id, Name: name}
	e := t.entries[slot*each:][:each]
	copy(e[0:], kind[:])
	copy(e[16:], id[:])
	binary.LittleEndian.PutUint64(e[32:], uint64(first))
	binary.LittleEndian.PutUint64(e[40:], uint64(end-1))
	// The entry has room for 36 units of UTF-16 (UEFI table 5-6).
	for i, u := range utf16.Encode([]rune(name)) {
		if i < 36 {
			binary.LittleEndian.PutUint16(e[56+2*i:], u)
		}
	}
	t.Partitions = append(t.Partitions, p)
	return p, nil
}
