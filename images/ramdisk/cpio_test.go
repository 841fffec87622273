package ramdisk

import (
	"bytes"
	"compress/gzip"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// archiveOf writes one plain archive.
func archiveOf(t testing.TB, files ...File) []byte {
	t.Helper()
	var b bytes.Buffer
	a := &archiver{w: &b}
	for _, f := range files {
		if err := a.write(f); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.end(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gzipOf(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(b)
	_ = w.Close()
	return out.Bytes()
}

var someFiles = []File{
	{Name: "etc", Mode: modeDir | 0o755},
	{Name: "etc/a", Mode: modeFile | 0o600, Data: []byte("12345")},
	{Name: "etc/b", Mode: modeLink | 0o777, Data: []byte("a")},
	{Name: "null", Mode: modeChar | 0o666, Major: 1, Minor: 3},
}

func TestArchivesAreReadAsTheyWereWritten(t *testing.T) {
	plain, other := archiveOf(t, someFiles...), archiveOf(t, File{Name: "x", Mode: modeFile | 0o644, Data: []byte("X")})
	withOther := append(slices.Clone(someFiles), File{Name: "x", Mode: modeFile | 0o644, Data: []byte("X")})
	for _, c := range []struct {
		name string
		in   []byte
		want []File
	}{
		{"plain", plain, someFiles},
		{"packed with zstd", zstdOf(t, plain), someFiles},
		{"packed with gzip", gzipOf(plain), someFiles},
		{"packed with xz", xzOf(t, plain), someFiles},
		{"zeros behind it", append(zstdOf(t, plain), 0, 0, 0), someFiles},
		{"microcode in front, plain", slices.Concat(plain, make([]byte, 512), other), withOther},
		{"microcode in front, packed", slices.Concat(plain, make([]byte, 512), gzipOf(other)), withOther},
		{"nothing but zeros", make([]byte, 512), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ReadArchives(bytes.NewReader(c.in), "it")
			if err != nil {
				t.Fatal(err)
			}
			for i := range got {
				if len(got[i].Data) == 0 {
					got[i].Data = nil
				}
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

func TestDamagedRAMDisksAreRefused(t *testing.T) {
	plain := archiveOf(t, someFiles...)
	badName := bytes.Replace(plain, []byte("etc/a\x00"), []byte("../..\x00"), 1)
	huge := bytes.Replace(plain, []byte("00000005"), []byte("7fffffff"), 1)
	pipe := archiveOf(t, File{Name: "p", Mode: 0o010644})
	for _, c := range []struct {
		name, want string
		in         []byte
	}{
		{"cut off", "it is damaged or cut off", plain[:200]},
		{"cut off while packed", "it is damaged or cut off", zstdOf(t, plain)[:30]},
		{"without its end", "it is damaged or cut off", plain[:len(plain)-124]},
		{"a header that is no number", "it is damaged or cut off", append([]byte("070701zz"), plain[8:]...)},
		{"a size that is not there", "it is damaged or cut off", huge},
		{"a name that leads out", "leads out of its folder", badName},
		{"a pipe", "is a pipe or a socket", pipe},
		{"something else", "it is no RAM disk", []byte("hello, world")},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ReadArchives(bytes.NewReader(c.in), "it")
			checkError(t, err, c.want)
		})
	}
}

func TestHardLinksShareTheirContent(t *testing.T) {
	files := []File{{Name: "a", Mode: modeFile | 0o644}, {Name: "b", Mode: modeFile | 0o644, Data: []byte("both")}}
	b := archiveOf(t, files...)
	b = bytes.ReplaceAll(b, []byte("0000000100000000"), []byte("0000000200000000")) // two links each
	b = bytes.Replace(b, []byte("07070100000002"), []byte("07070100000001"), 1)     // of one inode
	got, err := ReadArchives(bytes.NewReader(b), "it")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range got {
		if string(f.Data) != "both" {
			t.Errorf("%s holds %q", f.Name, f.Data)
		}
	}
}

// TestCpioReadsWhatIsWritten asks another program.
func TestCpioReadsWhatIsWritten(t *testing.T) {
	if _, err := exec.LookPath("cpio"); err != nil {
		t.Skip("there is no cpio to ask; it is in Debian's package cpio")
	}
	cmd := exec.Command("cpio", "-it", "--quiet")
	cmd.Stdin = bytes.NewReader(archiveOf(t, someFiles...))
	out, err := cmd.CombinedOutput()
	if want := "etc\netc/a\netc/b\nnull\n"; err != nil || string(out) != want {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestTheNewestKernelWithModulesIsFound(t *testing.T) {
	root := t.TempDir()
	_, _, err := Installed(root)
	checkError(t, err, "there is no kernel in")
	writeFiles(t, root, map[string][]byte{"boot/vmlinuz-6.1.0-99-amd64": nil})
	_, _, err = Installed(root)
	checkError(t, err, "has no folder of modules")
	for _, c := range []struct{ add, want string }{
		{"6.1.0-9-cloud-amd64", "6.1.0-9-cloud-amd64"},
		{"6.1.0-9-amd64", "6.1.0-9-amd64"},
		{"6.1.0-56-amd64", "6.1.0-56-amd64"},
		{"6.1.0-57-cloud-amd64", "6.1.0-56-amd64"},
		{"6.1.0-9.2-amd64", "6.1.0-56-amd64"},
		{"6.12.3-amd64", "6.12.3-amd64"},
	} {
		writeFiles(t, root, map[string][]byte{"boot/vmlinuz-" + c.add: nil, "lib/modules/" + c.add + "/modules.order": nil})
		kernel, modules, err := Installed(root)
		if err != nil || VersionOf(kernel) != c.want || filepath.Base(modules) != c.want {
			t.Errorf("with %s: %s, %s, %v", c.add, kernel, modules, err)
		}
	}
}

func TestAKernelThatDoesNotFitIsRefused(t *testing.T) {
	for _, c := range []struct {
		name, want string
		change     func(files map[string][]byte)
	}{
		{"no kernel", "is no Linux kernel", func(f map[string][]byte) { f["boot/vmlinuz-"+testVersion] = []byte("ELF") }},
		{"of another version than its modules", "the modules are for kernel 6.1.0-9-amd64, the kernel is 6.6.6", func(f map[string][]byte) { f["boot/vmlinuz-"+testVersion] = bzImage("6.6.6") }},
		{"with a version that is a path", "does not say which version", func(f map[string][]byte) { f["boot/vmlinuz-"+testVersion] = bzImage("../../etc") }},
		{"without its folder of modules", "is no folder of modules", func(f map[string][]byte) {
			for name := range f {
				if strings.Contains(name, "/kernel/") {
					delete(f, name)
				}
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := kernelFiles()
			c.change(files)
			root := t.TempDir()
			writeFiles(t, root, files)
			_, err := FromFiles(filepath.Join(root, "boot/vmlinuz-"+testVersion), filepath.Join(root, "lib/modules", testVersion))
			checkError(t, err, c.want)
		})
	}
	_, err := FromFiles("/nowhere/vmlinuz-6.1", "/nowhere")
	checkError(t, err, "the kernel is not there")
}

func FuzzArchives(f *testing.F) {
	plain := archiveOf(f, someFiles...)
	f.Add(plain)
	f.Add(gzipOf(plain))
	f.Add([]byte("\x28\xb5\x2f\xfd"))
	f.Add([]byte("\xfd7zXZ\x00\x00\x04"))
	f.Fuzz(func(t *testing.T, b []byte) {
		files, err := ReadArchives(bytes.NewReader(b), "it")
		if err != nil {
			return
		}
		for _, file := range files {
			if name, err := cleanName(file.Name); err != nil || name != file.Name || name == "" {
				t.Fatalf("name %q", file.Name)
			}
		}
		again, err := ReadArchives(bytes.NewReader(archiveOf(t, files...)), "it")
		if err != nil || len(again) != len(files) {
			t.Fatalf("what was read cannot be written and read again: %d of %d, %v", len(again), len(files), err)
		}
	})
}

func FuzzModule(f *testing.F) {
	f.Add(ko("depends=a,b", "alias=pci:v*", "softdep=pre: x post: y", "firmware=f.bin"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := parseModule("kernel/x.ko", b, "x86_64")
		if err != nil {
			return
		}
		for _, text := range slices.Concat(m.aliases, m.depends, m.before, m.after) {
			if strings.ContainsAny(text, "\n\r") {
				t.Fatalf("%q would make two lines", text)
			}
		}
	})
}
