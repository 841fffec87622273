package delivery

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"path"
	"slices"
	"strings"
)

// archived is a file of an archive; its path is absolute.
type archived struct {
	path string
	data []byte
}

// archive packs files into a cpio archive as the kernel unpacks initrds ("newc", Documentation/driver-api/early-userspace/
// buffer-format.rst), with the folders above them. Everything belongs to root and is readable by nobody else. It is
// compressed, because UEFI loaders hand initrds over back to back: the kernel takes a plain archive only on a multiple of
// four bytes, and a compressed one anywhere.
func archive(files []archived) []byte {
	var b bytes.Buffer
	inode := 0
	entry := func(name string, mode uint32, data []byte) {
		inode++
		fmt.Fprintf(&b, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%s\x00",
			inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name)+1, 0, name)
		pad(&b)
		b.Write(data)
		pad(&b)
	}
	var folders []string
	for _, f := range files {
		for dir := path.Dir(f.path); dir != "/" && dir != "."; dir = path.Dir(dir) {
			folders = append(folders, dir)
		}
	}
	// The kernel makes no folders by itself, and fails on a file whose folder has not come yet.
	slices.Sort(folders) // a folder comes before what is in it
	for _, dir := range slices.Compact(folders) {
		entry(strings.TrimPrefix(dir, "/"), 0o040755, nil)
	}
	for _, f := range files {
		entry(strings.TrimPrefix(f.path, "/"), 0o100600, f.data)
	}
	// The kernel takes everything up to this name as one archive (buffer-format.rst).
	entry("TRAILER!!!", 0, nil)
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write(b.Bytes()) // a buffer takes everything
	_ = z.Close()
	return out.Bytes()
}

func pad(b *bytes.Buffer) {
	for b.Len()%4 != 0 {
		b.WriteByte(0)
	}
}
