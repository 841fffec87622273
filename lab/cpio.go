package lab

import (
	"bytes"
	"compress/gzip"
	"fmt"
)

// ramFile is one file of a RAM disk. Parent folders must exist in the RAM disk it is added to.
type ramFile struct {
	Name string // without leading slash
	Mode uint32 // permission bits
	Data []byte
}

// Bits of the mode field, and the name that ends an archive (Linux, Documentation/driver-api/early-userspace).
const (
	cpioRegular = 0o100000
	cpioEnd     = "TRAILER!!!"
)

// packRAM writes files as a gzipped cpio archive in the "newc" form, which the kernel unpacks over the RAM disk before
// it. The same files give the same bytes.
func packRAM(files []ramFile) ([]byte, error) {
	var plain bytes.Buffer
	for i, f := range files {
		writeCPIO(&plain, i+1, f.Name, cpioRegular|f.Mode, f.Data)
	}
	writeCPIO(&plain, 0, cpioEnd, 0, nil)
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(plain.Bytes()); err != nil {
		return nil, fmt.Errorf("compress RAM disk: %w", err)
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("compress RAM disk: %w", err)
	}
	return out.Bytes(), nil
}

// writeCPIO adds one entry: a magic and thirteen fields of eight hex digits, the name with a NUL, the data; name and
// data are each padded to four bytes.
func writeCPIO(b *bytes.Buffer, inode int, name string, mode uint32, data []byte) {
	const uid, gid, links, mtime, devMajor, devMinor, rdevMajor, rdevMinor, check = 0, 0, 1, 0, 0, 0, 0, 0, 0
	fmt.Fprintf(b, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x", inode, mode, uid, gid, links, mtime,
		len(data), devMajor, devMinor, rdevMajor, rdevMinor, len(name)+1, check)
	b.WriteString(name)
	b.WriteByte(0)
	pad(b)
	b.Write(data)
	pad(b)
}

func pad(b *bytes.Buffer) {
	for b.Len()%4 != 0 {
		b.WriteByte(0)
	}
}
