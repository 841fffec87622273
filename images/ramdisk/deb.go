package ramdisk

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"slipway.dev/slipway/inventory"
)

// Bounds of what is unpacked from kernel packages.
const (
	maxUnpacked = 8 << 30
	maxUnpackN  = 200_000
)

// FromDebs reads a kernel out of packages, which it unpacks into the empty folder temp; the Kernel reads its modules from
// there. One package is enough for Debian's kernels; Ubuntu's have their modules in others. It leaves the rest of a package
// where it is, and runs none of its scripts.
func FromDebs(ctx context.Context, temp string, debs ...string) (*Kernel, error) {
	root, err := os.OpenRoot(temp)
	if err != nil {
		return nil, fmt.Errorf("open folder to unpack into: %w", err)
	}
	defer root.Close()
	u := &unpacking{root: root}
	for _, deb := range debs {
		if err := u.deb(ctx, deb); err != nil {
			return nil, err
		}
	}
	kernels, err := filepath.Glob(filepath.Join(temp, "boot", "vmlinuz-*"))
	if err != nil {
		return nil, err
	}
	switch {
	case len(kernels) == 0:
		return nil, inventory.Errorf(inventory.Invalid, "there is no kernel in %s", inventory.Clean(strings.Join(bases(debs), ", "), 300)).
			WithHint("linux-image-amd64 only names the package that has it: linux-image-<version>-amd64; apt-get download fetches it")
	case len(kernels) > 1:
		return nil, inventory.Errorf(inventory.Invalid, "there are %d kernels in the packages", len(kernels)).WithHint("give packages of one version")
	}
	modules, err := modulesBelow(temp, VersionOf(kernels[0]))
	if err != nil {
		return nil, inventory.Errorf(inventory.Invalid, "there are no modules of kernel %s in the packages", VersionOf(kernels[0])).
			WithHint("give the package with its modules, too: --deb may be repeated")
	}
	return FromFiles(kernels[0], modules)
}

func bases(files []string) (names []string) {
	for _, f := range files {
		names = append(names, filepath.Base(f))
	}
	return names
}

// unpacking is a folder into which packages are unpacked.
type unpacking struct {
	root  *os.Root
	n     int
	bytes int64
}

func (u *unpacking) deb(ctx context.Context, name string) error {
	what := "package " + inventory.Clean(filepath.Base(name), 200)
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return inventory.Errorf(inventory.NotFound, "%s is not there", what)
	}
	if err != nil {
		return inventory.Errorf(inventory.Invalid, "%s cannot be read: %v", what, err)
	}
	defer f.Close()
	return u.unpack(ctx, f, what)
}

// unpack unpacks a package's kernel and modules.
func (u *unpacking) unpack(ctx context.Context, r io.Reader, what string) error {
	a, err := newArReader(r)
	if err != nil {
		e := inventory.Errorf(inventory.Invalid, "%s is no Debian package", what)
		e.Err = err
		return e.WithHint("it is a file whose name ends in .deb")
	}
	for {
		member, err := a.next()
		if errors.Is(err, io.EOF) {
			return damaged(what, errors.New("it has no data.tar"))
		}
		if err != nil {
			return damaged(what, err)
		}
		if !strings.HasPrefix(member, "data.tar") {
			continue
		}
		in := bufio.NewReaderSize(a, 1<<16)
		inner, ok, err := unpacker(in)
		if err != nil {
			return damaged(what, err)
		}
		if !ok {
			inner = in
		}
		end := &ending{r: inner}
		if err := u.tar(ctx, tar.NewReader(end), what); err != nil {
			return err
		}
		if !end.isWhole() {
			return damaged(what, io.ErrUnexpectedEOF)
		}
		return nil
	}
}

// ending watches how a tar ends. Package tar takes the end of its input for the end of the tar, even where the two blocks
// of zeros are missing that every whole one ends with.
type ending struct {
	r    io.Reader
	n    int64
	zero int64 // bytes of zero at the end of what was read
}

func (e *ending) Read(b []byte) (int, error) {
	n, err := e.r.Read(b)
	e.n += int64(n)
	zero := int64(n - len(bytes.TrimRight(b[:n], "\x00")))
	if zero == int64(n) {
		zero += e.zero
	}
	e.zero = zero
	return n, err
}

func (e *ending) isWhole() bool { return e.n%512 == 0 && e.zero >= 1024 }

func (u *unpacking) tar(ctx context.Context, t *tar.Reader, what string) error {
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return damaged(what, err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		name, err := cleanName(h.Name)
		if err != nil {
			return err
		}
		if h.Typeflag != tar.TypeReg || !isOfKernel(name) {
			continue
		}
		u.n++
		if u.bytes += h.Size; u.bytes > maxUnpacked || u.n > maxUnpackN {
			return tooLarge(what, maxUnpacked)
		}
		if err := u.file(name, t, h.Size, what); err != nil {
			return err
		}
	}
}

// isOfKernel reports whether a file of a package is a kernel or belongs to its modules.
func isOfKernel(name string) bool {
	name = strings.TrimPrefix(name, "usr/")
	return strings.HasPrefix(name, "boot/vmlinuz-") || strings.HasPrefix(name, "lib/modules/")
}

func (u *unpacking) file(name string, r io.Reader, size int64, what string) error {
	if err := u.root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return fmt.Errorf("unpack %s: %w", what, err)
	}
	f, err := u.root.Create(name)
	if err != nil {
		return fmt.Errorf("unpack %s: %w", what, err)
	}
	n, err := io.Copy(f, r)
	closed := f.Close()
	switch {
	case err != nil:
		if _, ok := errors.AsType[*fs.PathError](err); ok {
			return fmt.Errorf("unpack %s: %w", what, err)
		}
		return damaged(what, err)
	case n != size:
		return damaged(what, io.ErrUnexpectedEOF)
	case closed != nil:
		return fmt.Errorf("unpack %s: %w", what, closed)
	}
	return nil
}
