package ramdisk

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"slipway.dev/slipway/inventory"
)

func writeDeb(t *testing.T, b []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "linux.deb")
	if err := os.WriteFile(name, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

func debOf(t *testing.T, files map[string][]byte) []byte {
	t.Helper()
	return ar("debian-binary", "2.0\n", "control.tar.xz", "c", "data.tar.xz", string(xzOf(t, tarOf(t, files))))
}

func TestAKernelComesOutOfItsPackage(t *testing.T) {
	data := tarOf(t, kernelFiles())
	merged := map[string][]byte{}
	for name, b := range kernelFiles() {
		if name != "boot/vmlinuz-"+testVersion {
			name = "usr/" + name
		}
		merged[name] = b
	}
	for _, c := range []struct {
		name string
		deb  []byte
	}{
		{"packed with xz, as Debian does", debOf(t, kernelFiles())},
		{"packed with zstd, as Ubuntu does", ar("debian-binary", "2.0\n", "control.tar.zst", "odd", "data.tar.zst/", string(zstdOf(t, data)))},
		{"not packed", ar("debian-binary", "2.0\n", "data.tar", string(data))},
		{"with its modules below /usr", debOf(t, merged)},
	} {
		t.Run(c.name, func(t *testing.T) {
			k, err := FromDebs(t.Context(), t.TempDir(), writeDeb(t, c.deb))
			if err != nil {
				t.Fatal(err)
			}
			if k.Version != testVersion || k.Arch != inventory.X8664 || !bytes.Equal(k.Image, bzImage(testVersion)) {
				t.Errorf("kernel %s for %s", k.Version, k.Arch)
			}
			if got, _, _ := build(t, Recipe{Kernel: k, Agent: program()}); len(modulesOf(got)) != 11 {
				t.Errorf("modules %v", modulesOf(got))
			}
		})
	}
}

func TestAKernelAndItsModulesMayBeInTwoPackages(t *testing.T) {
	image, modules := map[string][]byte{}, map[string][]byte{}
	for name, b := range kernelFiles() {
		if name == "boot/vmlinuz-"+testVersion {
			image[name] = b
		} else {
			modules[name] = b
		}
	}
	one, two := writeDeb(t, debOf(t, image)), writeDeb(t, debOf(t, modules))
	if _, err := FromDebs(t.Context(), t.TempDir(), one, two); err != nil {
		t.Error(err)
	}
	_, err := FromDebs(t.Context(), t.TempDir(), one)
	checkError(t, err, "there are no modules of kernel "+testVersion)
	_, err = FromDebs(t.Context(), t.TempDir(), two)
	checkError(t, err, "there is no kernel in linux.deb")
}

func TestADamagedPackageIsRefused(t *testing.T) {
	whole := debOf(t, kernelFiles())
	// An honest tar cut in the middle of a file, in an archive whose sizes are right.
	cut := tarOf(t, kernelFiles())
	cut = cut[:len(cut)/2+100]
	out := tarOf(t, map[string][]byte{"../../etc/cron.d/x": []byte("x")})
	for _, c := range []struct {
		name, want string
		deb        []byte
	}{
		{"cut off", "damaged or cut off", whole[:len(whole)/2]},
		{"cut off in its head", "damaged or cut off", whole[:30]},
		{"without data", "damaged or cut off", ar("debian-binary", "2.0\n", "control.tar.xz", "c")},
		{"with data that is no xz", "damaged or cut off", ar("debian-binary", "2.0\n", "data.tar.xz", "nonsense")},
		{"with a tar that is cut off", "damaged or cut off", ar("debian-binary", "2.0\n", "data.tar", string(cut))},
		{"a web page", "is no Debian package", []byte("<html>not found</html>")},
		{"empty", "is no Debian package", nil},
		{"with a path that leads out", "leads out of its folder", ar("debian-binary", "2.0\n", "data.tar", string(out))},
		{"of something else", "there is no kernel in", debOf(t, map[string][]byte{"usr/bin/true": {1}})},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			_, err := FromDebs(t.Context(), filepath.Clean(dir), writeDeb(t, c.deb))
			checkError(t, err, c.want)
		})
	}
	_, err := FromDebs(t.Context(), t.TempDir(), "/nowhere/linux.deb")
	checkError(t, err, "package linux.deb is not there")
}

func TestALinkInAPackageLeadsNowhere(t *testing.T) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	outside := t.TempDir()
	for _, h := range []*tar.Header{
		{Name: "./lib/modules", Linkname: outside, Typeflag: tar.TypeSymlink},
		{Name: "./lib/modules/x", Size: 1, Mode: 0o644, Typeflag: tar.TypeReg},
	} {
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			if _, err := w.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := FromDebs(t.Context(), t.TempDir(), writeDeb(t, ar("debian-binary", "2.0\n", "data.tar", b.String())))
	checkError(t, err, "there is no kernel in")
	if left, _ := os.ReadDir(outside); len(left) > 0 {
		t.Errorf("written outside: %v", left)
	}
}

func FuzzDeb(f *testing.F) {
	f.Add([]byte("!<arch>\n"))
	f.Add(ar("debian-binary", "2.0\n", "data.tar", "x"))
	f.Add(ar("data.tar.xz", "\xfd7zXZ\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := newArReader(bytes.NewReader(b))
		if err != nil {
			return
		}
		total := 0
		for range 1000 {
			if _, err := a.next(); err != nil {
				break
			}
			n, err := io.Copy(io.Discard, a)
			total += int(n)
			if total > len(b) {
				t.Fatal("more came out than went in")
			}
			if err != nil {
				break
			}
		}
		dir := t.TempDir()
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		_ = (&unpacking{root: root}).unpack(t.Context(), bytes.NewReader(b), "a package")
	})
}
