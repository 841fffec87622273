package vm

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const sector = 512

// marker is what a disk's own loader says on the serial port.
const marker = "SLIPWAY TEST DISK"

// biosDisk is a disk whose boot sector writes the marker to the first serial port and stops.
//
//	     cli
//	     xor ax, ax
//	     mov ds, ax
//	     mov si, 0x7c00+text
//	next: lodsb
//	     test al, al
//	     jz  stop
//	     mov ah, al
//	     mov dx, 0x3fd       ; line status
//	wait: in al, dx
//	     test al, 0x20       ; may take a byte
//	     jz  wait
//	     mov al, ah
//	     mov dx, 0x3f8
//	     out dx, al
//	     jmp next
//	stop: hlt
//	     jmp stop
func biosDisk() []byte {
	const text = 0x40
	code := []byte{
		0xfa, 0x31, 0xc0, 0x8e, 0xd8, 0xbe, text, 0x7c,
		0xac, 0x84, 0xc0, 0x74, 0x12, 0x88, 0xc4, 0xba, 0xfd, 0x03,
		0xec, 0xa8, 0x20, 0x74, 0xfb, 0x88, 0xe0, 0xba, 0xf8, 0x03,
		0xee, 0xeb, 0xe9, 0xf4, 0xeb, 0xfd,
	}
	disk := make([]byte, 1<<20)
	copy(disk, code)
	copy(disk[text:], "\r\n"+marker+"\r\n\x00")
	disk[510], disk[511] = 0x55, 0xaa
	return disk
}

// The place of the EFI system partition on uefiDisk, in sectors.
const (
	espStart   = 2048
	espSectors = 65536 // 32 MiB: enough clusters for FAT16
)

// uefiDisk is a disk with an EFI system partition, which holds Debian's GRUB and a configuration that says the marker.
func uefiDisk(grub []byte) ([]byte, error) {
	return efiDisk(dir{"BOOT": dir{"BOOTX64.EFI": grub}, "DEBIAN": dir{"GRUB.CFG": markerConfig()}})
}

// markerConfig has a disk's GRUB say the marker.
func markerConfig() []byte { return fmt.Appendf(nil, "echo\necho '%s'\nsleep 300\n", marker) }

// efiDisk is a disk with an EFI system partition, whose folder EFI holds that.
func efiDisk(efi dir) ([]byte, error) {
	esp, err := fat16(espStart, espSectors, dir{"EFI": efi})
	if err != nil {
		return nil, err
	}
	disk := make([]byte, (espStart+espSectors)*sector)
	entry := disk[446:] // first row of the partition table
	entry[4] = 0xef     // EFI system partition (UEFI 5.2.2)
	binary.LittleEndian.PutUint32(entry[8:], espStart)
	binary.LittleEndian.PutUint32(entry[12:], espSectors)
	disk[510], disk[511] = 0x55, 0xaa
	copy(disk[espStart*sector:], esp)
	return disk, nil
}

// dir is a folder to be written to a FAT file system; values are []byte or dir, names are in capitals and 8.3.
type dir map[string]any

// The layout of the FAT16 file systems we write (Microsoft FAT specification 1.03).
const (
	fatCluster = 4 * sector
	fatRootN   = 512 // entries of the root folder
	fatIsDir   = 0x10
	fatIsFile  = 0x20
	fatEnd     = 0xffff
)

// fat is a FAT16 file system being written.
type fat struct {
	table []uint16
	data  []byte // from cluster 2 on
}

// fat16 writes a FAT16 file system of that many sectors, for a partition that begins at sector start.
func fat16(start, sectors uint32, root dir) ([]byte, error) {
	tableSectors := (sectors/4+2)*2/sector + 1
	f := &fat{table: []uint16{0xfff8, fatEnd}}
	top, err := f.entries(root, 0, true)
	if err != nil {
		return nil, err
	}
	boot := make([]byte, sector)
	copy(boot, "\xeb\x3c\x90SLIPWAY ")
	binary.LittleEndian.PutUint16(boot[11:], sector)
	boot[13] = fatCluster / sector
	binary.LittleEndian.PutUint16(boot[14:], 1) // reserved sectors: this one
	boot[16] = 2                                // copies of the table
	binary.LittleEndian.PutUint16(boot[17:], fatRootN)
	boot[21] = 0xf8
	binary.LittleEndian.PutUint16(boot[22:], uint16(tableSectors))
	binary.LittleEndian.PutUint16(boot[24:], 63)
	binary.LittleEndian.PutUint16(boot[26:], 255)
	binary.LittleEndian.PutUint32(boot[28:], start)
	binary.LittleEndian.PutUint32(boot[32:], sectors)
	boot[36], boot[38] = 0x80, 0x29
	copy(boot[43:], "SLIPWAY    FAT16   ")
	boot[510], boot[511] = 0x55, 0xaa

	table := make([]byte, tableSectors*sector)
	for i, next := range f.table {
		binary.LittleEndian.PutUint16(table[2*i:], next)
	}
	out := bytes.Join([][]byte{boot, table, table, append(top, make([]byte, fatRootN*32-len(top))...), f.data}, nil)
	if len(out) > int(sectors)*sector {
		return nil, fmt.Errorf("%d bytes do not fit into %d sectors", len(out), sectors)
	}
	return append(out, make([]byte, int(sectors)*sector-len(out))...), nil
}

// store puts content into clusters and returns the first.
func (f *fat) store(content []byte) uint16 {
	first := uint16(len(f.table))
	n := max(1, (len(content)+fatCluster-1)/fatCluster)
	for i := range n {
		next := first + uint16(i) + 1
		if i == n-1 {
			next = fatEnd
		}
		f.table = append(f.table, next)
	}
	f.data = append(f.data, content...)
	f.data = append(f.data, make([]byte, n*fatCluster-len(content))...)
	return first
}

// entries writes what is in a folder and returns the folder's own content. A folder knows its own cluster and its
// parent's, so its cluster is taken before its children's.
func (f *fat) entries(d dir, parent uint16, isRoot bool) ([]byte, error) {
	var b []byte
	own := uint16(0)
	if !isRoot {
		own = f.store(nil)
		b = append(entry(".          ", fatIsDir, own, 0), entry("..         ", fatIsDir, parent, 0)...)
	}
	for name, what := range d {
		base, ext, _ := strings.Cut(name, ".")
		if len(base) > 8 || len(ext) > 3 {
			return nil, fmt.Errorf("%s is not an 8.3 name", name)
		}
		short := fmt.Sprintf("%-8s%-3s", base, ext)
		switch v := what.(type) {
		case []byte:
			b = append(b, entry(short, fatIsFile, f.store(v), len(v))...)
		case dir:
			child := uint16(len(f.table))
			if _, err := f.entries(v, own, false); err != nil {
				return nil, err
			}
			b = append(b, entry(short, fatIsDir, child, 0)...)
		}
	}
	if !isRoot {
		if len(b) > fatCluster {
			return nil, fmt.Errorf("%d entries do not fit into a folder", len(b)/32)
		}
		copy(f.data[(int(own)-2)*fatCluster:], b)
	}
	return b, nil
}

// entry is one row of a folder.
func entry(name string, attr byte, cluster uint16, size int) []byte {
	e := make([]byte, 32)
	copy(e, name)
	e[11] = attr
	binary.LittleEndian.PutUint16(e[24:], 0x5b75) // written on 2025-11-21
	binary.LittleEndian.PutUint16(e[26:], cluster)
	binary.LittleEndian.PutUint32(e[28:], uint32(size))
	return e
}

// writeDisk puts a disk image into a file for a machine to start with.
func writeDisk(t *testing.T, dir, name string, disk []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, disk, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTheBootSectorCodeEndsBeforeItsText(t *testing.T) {
	d := biosDisk()
	if d[0x3f] != 0 || !bytes.Contains(d[0x40:510], []byte(marker)) {
		t.Error("code and text overlap")
	}
	// Each short jump, by the offset of the byte after it, must land on an instruction.
	for _, j := range []struct{ after, to int }{{0x0d, 0x1f}, {0x17, 0x12}, {0x1f, 0x08}, {0x22, 0x1f}} {
		if got := j.after + int(int8(d[j.after-1])); got != j.to {
			t.Errorf("jump before %#x leads to %#x, want %#x", j.after, got, j.to)
		}
	}
}

func TestAFileSystemHoldsItsFiles(t *testing.T) {
	loader := bytes.Repeat([]byte("0123456789abcdef"), 1000)
	disk, err := uefiDisk(loader)
	if err != nil {
		t.Fatal(err)
	}
	if len(disk) != (espStart+espSectors)*sector || !bytes.Contains(disk, loader) || !bytes.Contains(disk, []byte("GRUB    CFG")) {
		t.Error("not a disk with a loader and its configuration")
	}
}
