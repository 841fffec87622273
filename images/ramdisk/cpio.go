package ramdisk

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"

	"slipway.dev/slipway/inventory"
)

// File is one entry of a RAM disk.
type File struct {
	Name string // without a slash at the front
	Mode uint32 // as in stat(2), with the type
	// Data is the content, or what a symbolic link points at.
	Data         []byte
	Major, Minor uint32 // of a device
}

// Types of files in Mode.
const (
	modeType  = 0o170000
	modeFile  = 0o100000
	modeDir   = 0o040000
	modeLink  = 0o120000
	modeChar  = 0o020000
	modeBlock = 0o060000
)

// Bounds of an archive.
const (
	maxArchive = 2 << 30
	maxEntries = 200_000
	maxName    = 4095
)

const (
	cpioMagic  = "070701" // "newc" (kernel, Documentation/driver-api/early-userspace/buffer-format.rst)
	cpioHeader = 110
	cpioEnd    = "TRAILER!!!"
)

// archiver writes an archive of the "newc" form, with nothing in it that depends on when and by whom it is written.
type archiver struct {
	w   io.Writer
	n   int64
	ino uint32
}

func (a *archiver) write(f File) error {
	a.ino++
	links := 1
	if f.Mode&modeType == modeDir {
		links = 2
	}
	size := len(f.Data)
	fields := [13]uint32{a.ino, f.Mode, 0, 0, uint32(links), 0, uint32(size), 0, 0, f.Major, f.Minor, uint32(len(f.Name) + 1), 0}
	var b bytes.Buffer
	b.WriteString(cpioMagic)
	for _, v := range fields {
		fmt.Fprintf(&b, "%08x", v)
	}
	b.WriteString(f.Name)
	b.WriteByte(0)
	b.Write(make([]byte, pad(b.Len())))
	if err := a.put(b.Bytes()); err != nil {
		return err
	}
	if err := a.put(f.Data); err != nil {
		return err
	}
	return a.put(make([]byte, pad(size)))
}

func (a *archiver) end() error { return a.write(File{Name: cpioEnd}) }

func (a *archiver) put(b []byte) error {
	n, err := a.w.Write(b)
	a.n += int64(n)
	return err
}

// pad is how many bytes are missing to a multiple of four.
func pad(n int) int { return -n & 3 }

// errNoArchive is returned by readArchive for what does not begin like an archive.
var errNoArchive = errors.New("not an archive of the newc form")

// readArchive reads one archive up to its end mark. what names it in errors.
func readArchive(r *bufio.Reader, what string) ([]File, error) {
	var files []File
	var total int64
	links := map[string][]int{} // hard links that still lack their content, by device and inode
	for len(files) <= maxEntries {
		h, name, err := readHeader(r)
		if errors.Is(err, errNoArchive) && len(files) == 0 {
			return nil, err
		}
		if err != nil {
			return nil, damaged(what, err)
		}
		if name == cpioEnd {
			return files, nil
		}
		size := int64(h[6])
		if total += size; total > maxArchive {
			return nil, tooLarge(what, maxArchive)
		}
		data, err := readBounded(r, size)
		if err != nil {
			return nil, damaged(what, err)
		}
		if _, err := r.Discard(pad(int(size))); err != nil {
			return nil, damaged(what, err)
		}
		if name, err = cleanName(name); err != nil {
			return nil, err
		}
		if name == "" { // the root itself
			continue
		}
		f := File{Name: name, Mode: h[1], Data: data, Major: h[9], Minor: h[10]}
		if err := checkMode(f); err != nil {
			return nil, err
		}
		files = append(files, f)
		if h[4] > 1 && h[1]&modeType == modeFile {
			shareContent(files, links, fmt.Sprint(h[7], h[8], h[0]))
		}
	}
	return nil, inventory.Errorf(inventory.Invalid, "%s has more than %d files", what, maxEntries)
}

// shareContent gives the hard links of a file its content, which only one of them carries.
func shareContent(files []File, links map[string][]int, key string) {
	links[key] = append(links[key], len(files)-1)
	var data []byte
	for _, i := range links[key] {
		if len(files[i].Data) > 0 {
			data = files[i].Data
		}
	}
	for _, i := range links[key] {
		files[i].Data = data
	}
}

// readHeader reads the header and name of an entry: inode, mode, uid, gid, links, time, size, device (2), special device
// (2), length of the name, checksum.
func readHeader(r *bufio.Reader) (h [13]uint32, name string, err error) {
	var raw [cpioHeader]byte
	if m, err := r.Peek(6); err != nil {
		return h, "", err
	} else if string(m) != cpioMagic && string(m) != "070702" {
		return h, "", errNoArchive
	}
	if _, err := io.ReadFull(r, raw[:]); err != nil {
		return h, "", io.ErrUnexpectedEOF
	}
	for i := range h {
		v, err := strconv.ParseUint(string(raw[6+8*i:14+8*i]), 16, 32)
		if err != nil {
			return h, "", err
		}
		h[i] = uint32(v)
	}
	if h[11] == 0 || h[11] > maxName+1 {
		return h, "", fmt.Errorf("a name of %d bytes", h[11])
	}
	b := make([]byte, int(h[11])+pad(cpioHeader+int(h[11])))
	if _, err := io.ReadFull(r, b); err != nil {
		return h, "", io.ErrUnexpectedEOF
	}
	name, _, _ = strings.Cut(string(b), "\x00")
	return h, name, nil
}

// readBounded reads size bytes and takes no more memory than there is to read.
func readBounded(r io.Reader, size int64) ([]byte, error) {
	var b bytes.Buffer
	n, err := io.Copy(&b, io.LimitReader(r, size))
	if err == nil && n < size {
		err = io.ErrUnexpectedEOF
	}
	return b.Bytes(), err
}

// cleanName returns a name as archives of ours have it: below the root, with nothing that leads out of it.
func cleanName(name string) (string, error) {
	clean := strings.TrimPrefix(path.Clean("/"+name), "/")
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return "", inventory.Errorf(inventory.Invalid, "%s leads out of its folder", inventory.Clean(name, 200)).
				WithHint("no honest archive has such a name; look where it comes from")
		}
	}
	if strings.ContainsRune(clean, 0) || len(clean) > maxName {
		return "", inventory.Errorf(inventory.Invalid, "%s is no name of a file", inventory.Clean(name, 200))
	}
	return clean, nil
}

func checkMode(f File) error {
	switch f.Mode & modeType {
	case modeFile, modeDir, modeLink, modeChar, modeBlock:
		return nil
	}
	return inventory.Errorf(inventory.Invalid, "%s is a pipe or a socket, which has no place in a RAM disk", inventory.Clean(f.Name, 200))
}
