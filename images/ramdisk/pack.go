package ramdisk

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"slipway.dev/slipway/inventory"
)

// Compression is how a RAM disk is packed.
type Compression string

// The compressions that Debian's kernels unpack. Zstd is what an empty Compression means: it is the smallest of these,
// and unpacked faster than gzip.
const (
	Zstd  Compression = "zstd"
	Gzip  Compression = "gzip"
	Plain Compression = "none"
)

// writePacked writes a tree, and returns its size before and after. The length is a multiple of four: whatever is put
// behind it begins where the kernel takes a plain archive.
func writePacked(ctx context.Context, w io.Writer, t tree, c Compression) (plain, packed int64, err error) {
	out := &archiver{w: w}
	var in io.WriteCloser
	switch c {
	case Zstd, "":
		// One goroutine: the bytes do not depend on how many processors there are.
		in, err = zstd.NewWriter(putter{out}, zstd.WithEncoderLevel(zstd.SpeedBetterCompression), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(8<<20))
	case Gzip:
		in, err = gzip.NewWriterLevel(putter{out}, 6)
	case Plain:
		in = nopCloser{putter{out}}
	default:
		err = inventory.Errorf(inventory.Invalid, "there is no compression %q", string(c)).WithHint("zstd, gzip or none")
	}
	if err != nil {
		return 0, 0, err
	}
	a := &archiver{w: in}
	for _, f := range t.sorted() {
		if err := ctx.Err(); err != nil {
			return 0, 0, err
		}
		if err := a.write(f); err != nil {
			return 0, 0, err
		}
	}
	if err := errors.Join(a.end(), in.Close()); err != nil {
		return 0, 0, err
	}
	err = out.put(make([]byte, pad(int(out.n))))
	return a.n, out.n, err
}

// Pack packs files as they are: the folders above them have to be in the RAM disk that the kernel unpacks before.
func Pack(files []File, c Compression) ([]byte, error) {
	t := tree{}
	for _, f := range files {
		t[f.Name] = f
	}
	var out bytes.Buffer
	_, _, err := writePacked(context.Background(), &out, t, c)
	return out.Bytes(), err
}

// putter counts what is written.
type putter struct{ a *archiver }

func (p putter) Write(b []byte) (int, error) { return len(b), p.a.put(b) }

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// ReadArchives reads a RAM disk: plain archives one behind the other, of which the last may be packed with zstd, gzip or
// xz. what names it in errors.
func ReadArchives(r io.Reader, what string) ([]File, error) {
	in := bufio.NewReaderSize(r, 1<<16)
	var all []File
	isPacked := false
	for {
		// What follows a whole archive is not read by the kernel either, if it makes no sense.
		if more, err := skipZeros(in); err != nil && len(all) == 0 {
			return nil, damaged(what, err)
		} else if !more {
			return all, nil
		}
		if inner, ok, err := unpacker(in); err != nil {
			return nil, damaged(what, err)
		} else if ok && !isPacked {
			in, isPacked = bufio.NewReaderSize(inner, 1<<16), true
			continue
		}
		files, err := readArchive(in, what)
		if errors.Is(err, errNoArchive) {
			e := inventory.Errorf(inventory.Invalid, "%s is no RAM disk", what)
			return nil, e.WithHint("a RAM disk is a cpio archive of the newc form, plain or packed with zstd, gzip or xz; for a single file write FILE=/PATH")
		}
		if err != nil {
			return nil, err
		}
		if all = append(all, files...); len(all) > maxEntries {
			return nil, inventory.Errorf(inventory.Invalid, "%s has more than %d files", what, maxEntries)
		}
	}
}

// skipZeros skips what lies between archives, and reports whether anything follows.
func skipZeros(r *bufio.Reader) (more bool, err error) {
	for {
		b, err := r.ReadByte()
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if b != 0 {
			return true, r.UnreadByte()
		}
	}
}

// unpacker returns a reader of what is packed at the beginning of r; ok is false when nothing is.
func unpacker(r *bufio.Reader) (inner io.Reader, ok bool, err error) {
	head, _ := r.Peek(6)
	switch {
	case bytes.HasPrefix(head, []byte("\x28\xb5\x2f\xfd")):
		inner, err = zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(1<<30), zstd.WithDecoderMaxWindow(128<<20))
	case bytes.HasPrefix(head, []byte("\x1f\x8b")):
		var g *gzip.Reader
		if g, err = gzip.NewReader(r); err == nil {
			g.Multistream(false)
		}
		inner = g
	case bytes.HasPrefix(head, []byte("\xfd7zXZ\x00")):
		inner, err = xz.ReaderConfig{DictCap: 1 << 26}.NewReader(r)
	default:
		return nil, false, nil
	}
	return inner, true, err
}

// unpackFile returns the content of a file that may be packed, by its name, as modules and firmware are.
func unpackFile(name string, b []byte, limit int64) ([]byte, error) {
	if !strings.HasSuffix(name, ".xz") && !strings.HasSuffix(name, ".zst") && !strings.HasSuffix(name, ".gz") {
		return b, nil
	}
	inner, ok, err := unpacker(bufio.NewReader(bytes.NewReader(b)))
	if err != nil || !ok {
		return nil, damaged(name, err)
	}
	var out bytes.Buffer
	n, err := io.Copy(&out, io.LimitReader(inner, limit+1))
	if err != nil {
		return nil, damaged(name, err)
	}
	if n > limit {
		return nil, tooLarge(name, limit)
	}
	return out.Bytes(), nil
}
