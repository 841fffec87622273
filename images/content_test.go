package images

import (
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"slipway.dev/slipway/inventory"
)

// qcow2Image is an empty disk of 1 MiB; alter changes its header.
func qcow2Image(alter func(b []byte)) []byte {
	b := make([]byte, 3<<16)
	copy(b, "QFI\xfb")
	binary.BigEndian.PutUint32(b[4:], 3)
	binary.BigEndian.PutUint32(b[20:], 16)
	binary.BigEndian.PutUint64(b[24:], 1<<20)
	binary.BigEndian.PutUint32(b[36:], 1)
	binary.BigEndian.PutUint64(b[40:], 1<<16)
	binary.BigEndian.PutUint64(b[48:], 2<<16)
	binary.BigEndian.PutUint32(b[56:], 1)
	binary.BigEndian.PutUint32(b[96:], 4)
	binary.BigEndian.PutUint32(b[100:], 104)
	if alter != nil {
		alter(b)
	}
	return b
}

func rawDisk() []byte {
	b := bytes.Repeat([]byte("a disk "), 20_000)
	b[510], b[511] = 0x55, 0xaa
	return b
}

func at(n int, s string) []byte {
	return append(bytes.Repeat([]byte{0}, n), s+strings.Repeat("\x00", 600)...)
}

func gzipped(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	w.Write(b)
	w.Close()
	return out.Bytes()
}

func zstded(b []byte, o ...zstd.EOption) []byte {
	w, err := zstd.NewWriter(nil, o...)
	if err != nil {
		panic(err)
	}
	return w.EncodeAll(b, nil)
}

func xzed(b []byte) []byte {
	var out bytes.Buffer
	w, _ := xz.NewWriter(&out)
	w.Write(b)
	w.Close()
	return out.Bytes()
}

// longZstd is the head of what zstd --long=31 writes.
func longZstd() []byte {
	return append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, (31 - 10) << 3, 1, 0, 0}, make([]byte, 100)...)
}

func TestADiskImageIsKnownByItsContent(t *testing.T) {
	for _, c := range []struct {
		name    string
		content []byte
		format  string // "" when it is refused
		said    string // in the error or its hint
	}{
		{"jammy-server-cloudimg-amd64.img", qcow2Image(nil), "qcow2", ""}, // Ubuntu's name
		{"disk.raw", qcow2Image(nil), "qcow2", ""},
		{"disk.img", rawDisk(), "raw", ""},
		{"disk.qcow2", rawDisk(), "raw", ""},
		{"disk.img", gzipped(rawDisk()), "raw.gz", ""},
		{"disk.img", xzed(rawDisk()), "raw.xz", ""},
		{"disk", zstded(rawDisk()), "raw.zst", ""},
		{"disk.gz", rawDisk(), "raw", ""},
		{"backing.qcow2", qcow2Image(func(b []byte) { binary.BigEndian.PutUint64(b[8:], 500); binary.BigEndian.PutUint32(b[16:], 9) }), "", "difference to another file"},
		{"snapshots.img", qcow2Image(func(b []byte) { binary.BigEndian.PutUint32(b[60:], 2) }), "", "2 snapshots inside"},
		{"secret.img", qcow2Image(func(b []byte) { binary.BigEndian.PutUint32(b[32:], 1) }), "", "encrypted"},
		{"external.img", qcow2Image(func(b []byte) { binary.BigEndian.PutUint64(b[72:], 4) }), "", "another file"},
		{"cut.img", qcow2Image(nil)[:1<<16], "", ""},
		{"long.zst", longZstd(), "", "--long"},
		{"disk.vmdk", at(0, "KDMV"), "", "qemu-img convert"},
		{"disk.img", at(0, "# Disk DescriptorFile\nversion=1\n"), "", "VMDK"},
		{"disk.vhd", at(0, "conectix"), "", "VHD"},
		{"fixed.vhd", append(rawDisk(), append([]byte("conectix"), make([]byte, 504)...)...), "", "VHD"},
		{"disk.img", at(0, "vhdxfile"), "", "VHDX"},
		{"disk.vdi", at(64, "\x7f\x10\xda\xbe"), "", "VDI"},
		{"disk.bz2", at(0, "BZh91AY&SY"), "", "bunzip2"},
		{"disk.tar", at(257, "ustar"), "", "tar -xf"},
		{"disk.tar.gz", gzipped(at(257, "ustar")), "", "tar -xf"},
		{"disk.img.gz", gzipped(qcow2Image(nil)), "", "inside is a qcow2 disk"},
		{"disk.qcow2.xz", xzed(qcow2Image(nil)), "", "inside is a qcow2 disk"},
		{"disk.vmdk.zst", zstded(at(0, "KDMV")), "", "qemu-img convert"},
		{"disk.zip", at(0, "PK\x03\x04"), "", "unzip"},
		{"debian.iso", at(32769, "CD001"), "", "--iso"},
		{"disk.img", []byte("<!DOCTYPE html>\n<html><body>Log in</body></html>"), "", "web page"},
		{"disk.img", []byte("\xef\xbb\xbf \r\n<HTML>"), "", "web page"},
		{"disk.img", []byte("<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code></Error>"), "", "XML"},
		{"disk.img", []byte("version https://git-lfs.github.com/spec/v1\noid sha256:1\n"), "", "Git LFS"},
		{"empty.raw", nil, "", "is empty"},
		{"disk.img", []byte("404: Not Found\n"), "", "is a text"},
		{"disk.img", []byte("x" + strings.Repeat("ü", headBytes)), "", "is a text"},
		{"disk.img", append([]byte("disk\n"), make([]byte, 2*headBytes)...), "raw", ""},
		{"cut.gz", gzipped(noise())[:50_000], "", "ends too early"},
		{"cut.xz", xzed(noise())[:50_000], "", "ends too early"},
		{"cut.zst", zstded(noise())[:50_000], "", "ends too early"},
		{"disk.gz", append(gzipped(rawDisk())[:30], 1, 2, 3), "", ""},
	} {
		f := newFixture(t)
		path := filepath.Join(t.TempDir(), c.name)
		if err := os.WriteFile(path, c.content, 0o644); err != nil {
			t.Fatal(err)
		}
		img, err := f.Import(t.Context(), ImportRequest{Name: "x", AllowLocal: true, Files: []ImportFile{{Role: inventory.RoleDisk, Source: path}}}, nil)
		var e *inventory.Error
		switch {
		case c.format != "" && (err != nil || img.DiskFormat != c.format):
			t.Errorf("%s: stored as %q, %v; want %s", c.name, img.DiskFormat, err, c.format)
		case c.format == "" && (!errors.As(err, &e) || !strings.Contains(e.Msg+" "+e.Hint, c.said) || e.Hint == ""):
			t.Errorf("%s: stored as %q, %v; want an error with %q", c.name, img.DiskFormat, err, c.said)
		}
		if c.format == "" && len(f.store.images) > 0 {
			t.Errorf("%s: it is refused, and there", c.name)
		}
	}
}

// noise is a disk that cannot be made smaller.
func noise() []byte { return bytesOf(3, 140_000) }

func TestTheSizeOfADiskImageIsKnownBeforeAHostIsChosen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "disk")
	twoXZ := append(append(xzed(noise()), 0, 0, 0, 0), xzed(noise())...)
	for name, c := range map[string]struct {
		content    []byte
		said, want int64 // want is 0 when it is refused
	}{
		"raw":                       {noise(), 0, 140_000},
		"qcow2":                     {qcow2Image(nil), 0, 1 << 20},
		"gzip":                      {gzipped(noise()), 0, 140_000},
		"gzip twice":                {append(gzipped(noise()), gzipped(noise())...), 0, 280_000},
		"xz":                        {xzed(noise()), 0, 140_000},
		"xz twice, with padding":    {twoXZ, 0, 280_000},
		"zstd":                      {zstded(noise()), 0, 140_000},
		"zstd twice":                {append(zstded(noise()), zstded(noise())...), 0, 280_000},
		"qcow2, on a larger disk":   {qcow2Image(nil), 10 << 20, 10 << 20},
		"qcow2, on a smaller disk":  {qcow2Image(nil), 1 << 19, 0},
		"gzip, and another size":    {gzipped(noise()), 150_000, 0},
		"gzip, and the right size":  {gzipped(noise()), 140_000, 140_000},
		"xz, and something behind":  {append(xzed(noise()), "more"...), 0, 0},
		"gzip, and something after": {append(gzipped(noise()), "trailing words"...), 0, 0},
	} {
		os.WriteFile(path, c.content, 0o644)
		r := ImportRequest{Name: "x", AllowLocal: true, DiskBytes: c.said, Files: []ImportFile{{Role: inventory.RoleDisk, Source: path}}}
		img, err := newFixture(t).Import(t.Context(), r, nil)
		var e *inventory.Error
		if c.want > 0 && (err != nil || img.DiskBytes != c.want) || c.want == 0 && (!errors.As(err, &e) || e.Hint == "") {
			t.Errorf("%s: %d bytes, %v; want %d", name, img.DiskBytes, err, c.want)
		}
	}
}

func TestAnEmptyFileIsNoPartOfAnImage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "linux")
	os.WriteFile(path, nil, 0o644)
	_, err := newFixture(t).Import(t.Context(), ImportRequest{Name: "x", AllowLocal: true, Files: []ImportFile{{Role: inventory.RoleKernel, Source: path}}}, nil)
	wantError(t, err, inventory.Invalid, "is empty")
}

// TestPaddingOfXZIsNotWalkedForHours: a file may end with gigabytes of padding, which stands for nothing.
func TestPaddingOfXZIsNotWalkedForHours(t *testing.T) {
	x := xzed([]byte("disk"))
	for padding, want := range map[int64]int64{0: 4, 4096: 4, 1 << 40: 0} {
		f := &sparse{head: x, size: int64(len(x)) + padding}
		if n, err := measure(t.Context(), "raw.xz", f, f.size); n != want || err != nil {
			t.Errorf("%d bytes of padding: %d, %v; want %d", padding, n, err, want)
		}
		if f.reads > 4*maxXZSteps {
			t.Errorf("%d bytes of padding: read %d times", padding, f.reads)
		}
	}
}

// sparse is a file of which only the beginning is not zero.
type sparse struct {
	head  []byte
	size  int64
	reads int
}

func (s *sparse) ReadAt(p []byte, off int64) (int, error) {
	s.reads++
	clear(p)
	if off < int64(len(s.head)) {
		copy(p, s.head[off:])
	}
	return len(p), nil
}

func FuzzMeasure(f *testing.F) {
	for _, b := range [][]byte{qcow2Image(nil), gzipped(rawDisk()[:600]), xzed([]byte("x")), zstded([]byte("x"))} {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, format := range []string{"raw", "qcow2", "raw.gz", "raw.xz", "raw.zst"} {
			if n, err := measure(t.Context(), format, bytes.NewReader(b), int64(len(b))); n < 0 || err != nil && err.Error() == "" {
				t.Fatalf("%s: %d, %v", format, n, err)
			}
		}
	})
}

func TestAFormatThatIsAskedForMustBeThatOfTheContent(t *testing.T) {
	f := newFixture(t)
	path := filepath.Join(t.TempDir(), "disk.img")
	os.WriteFile(path, qcow2Image(nil), 0o644)
	_, err := f.Import(t.Context(), ImportRequest{Name: "x", AllowLocal: true, DiskFormat: "raw", Files: []ImportFile{{Role: inventory.RoleDisk, Source: path}}}, nil)
	wantError(t, err, inventory.Invalid, "qcow2 by its content, and not raw")
}

func TestAPageIsNoKernel(t *testing.T) {
	f := newFixture(t)
	for name, content := range map[string][]byte{"linux": []byte("<html>404</html>"), "linux.iso": at(32769, "CD001"), "linux.qcow2": qcow2Image(nil), "initrd": at(0, "070701"), "linux.deb": at(0, "!<arch>\n")} {
		path := filepath.Join(t.TempDir(), name)
		os.WriteFile(path, content, 0o644)
		if _, err := f.Import(t.Context(), ImportRequest{Name: "x", AllowLocal: true, Files: []ImportFile{{Role: inventory.RoleKernel, Source: path}}}, nil); err == nil {
			t.Errorf("%s is taken for a kernel", name)
		}
	}
}

func TestAKernelIsNoInitrd(t *testing.T) {
	dir := t.TempDir()
	os.WriteFile(filepath.Join(dir, "linux"), at(0x202, "HdrS"), 0o644)
	os.WriteFile(filepath.Join(dir, "initrd"), at(0, "070701"), 0o644)
	for _, c := range []struct {
		kernel, initrd string
		isRight        bool
	}{{"linux", "initrd", true}, {"linux", "linux", false}} {
		_, err := newFixture(t).Import(t.Context(), ImportRequest{Name: "x", AllowLocal: true, Files: []ImportFile{
			{Role: inventory.RoleKernel, Source: filepath.Join(dir, c.kernel)}, {Role: inventory.RoleInitrd, Source: filepath.Join(dir, c.initrd)},
		}}, nil)
		if c.isRight != (err == nil) {
			t.Errorf("kernel %s, initrd %s: %v", c.kernel, c.initrd, err)
		}
	}
}

func TestACheckThatIsAskedForIsMade(t *testing.T) {
	disk := rawDisk()
	sum := sha512.Sum512(disk)
	right256, right512 := strings.TrimPrefix(string(sumOf(disk)), "sha256:"), hex.EncodeToString(sum[:])
	wrong256, wrong512 := strings.Repeat("0", 64), strings.Repeat("0", 128)
	for name, c := range map[string]struct {
		list string
		said string // "" when it is imported
	}{
		"right":                      {right256 + "  my disk.img\n", ""},
		"right, a binary":            {right256 + " *my disk.img\n", ""},
		"right, BSD":                 {"SHA256 (my disk.img) = " + right256 + "\n", ""},
		"right, alone":               {right256 + "\n", ""},
		"right, from standard input": {right256 + "  -\n", ""},
		"right SHA-512":              {right512 + "  my disk.img\n", ""},
		"right SHA-512, BSD":         {"SHA512 (my disk.img) = " + right512 + "\n", ""},
		"right SHA-512, alone":       {right512 + "\n", ""},
		"right, both":                {right256 + "  my disk.img\n" + right512 + "  my disk.img\n", ""},
		"wrong":                      {wrong256 + "  my disk.img\n", "wrong checksum"},
		"wrong SHA-512":              {wrong512 + "  my disk.img\n", "wrong checksum"},
		"wrong SHA-512, alone":       {wrong512 + "\n", "wrong checksum"},
		"right SHA-256, wrong 512":   {right256 + "  my disk.img\n" + wrong512 + "  my disk.img\n", "wrong checksum"},
		"not in the list":            {right256 + "  other.img\n", "does not name "},
		"MD5":                        {strings.Repeat("a", 32) + "  my disk.img\n", "MD5"},
		"a page":                     {"<html><a href=x>SHA256SUMS</a></html>", "web page"},
		"two sums and no name":       {right256 + "\n" + wrong256 + "\n", "does not name"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			dir := t.TempDir()
			path, list := filepath.Join(dir, "my disk.img"), filepath.Join(dir, "sums list")
			os.WriteFile(path, disk, 0o644)
			os.WriteFile(list, []byte(c.list), 0o644)
			a, err := f.Take(t.Context(), bytes.NewReader(disk), "my disk.img", -1)
			if err != nil {
				t.Fatal(err)
			}
			for _, source := range []string{path, string(a.Digest)} {
				img, err := f.Import(t.Context(), ImportRequest{Name: "x", AllowLocal: true, Sums: list, Files: []ImportFile{{Role: inventory.RoleDisk, Source: source}}}, nil)
				var e *inventory.Error
				if c.said == "" && err != nil {
					t.Errorf("%s: %v", source, err)
				}
				if c.said != "" && (!errors.As(err, &e) || !strings.Contains(e.Msg, c.said) && !strings.Contains(e.Msg, "two sums") && !strings.Contains(e.Msg, "has one sum")) {
					t.Errorf("%s: imported as %v, %v; want %q", source, img.Files, err, c.said)
				}
			}
		})
	}
}

func TestAListOfNothingThatIsCheckedIsRefused(t *testing.T) {
	f := newFixture(t)
	_, err := f.Import(t.Context(), ImportRequest{Name: "x", Sums: "https://files.example/SHA256SUMS", Remote: "oci://r.example/x@sha256:" + strings.Repeat("0", 64)}, nil)
	wantError(t, err, inventory.Invalid, "says nothing of")
}

func FuzzFits(f *testing.F) {
	for _, b := range [][]byte{qcow2Image(nil), gzipped(rawDisk()[:600]), longZstd(), xzed([]byte("x")), at(257, "ustar"), []byte("<html>")} {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, role := range []inventory.Role{inventory.RoleDisk, inventory.RoleKernel} {
			format, err := fits(role, "x", bytes.NewReader(b), int64(len(b)))
			var e *inventory.Error
			if err != nil && (!errors.As(err, &e) || e.Msg == "") || err == nil && role == inventory.RoleDisk && format == "" {
				t.Fatalf("%v is no reason", err)
			}
		}
	})
}
