package lab

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/images/ramdisk"
)

func TestARAMDiskUnpacksToItsFiles(t *testing.T) {
	cpio, err := exec.LookPath("cpio")
	if err != nil {
		t.Skip("needs cpio: apt-get install cpio")
	}
	files := []ramdisk.File{
		{Name: "slipway-init", Mode: syscall.S_IFREG | 0o755, Data: []byte("#!/bin/sh\n")},
		{Name: "empty", Mode: syscall.S_IFREG | 0o600},
		{Name: "odd-length", Mode: syscall.S_IFREG | 0o644, Data: []byte("12345")},
	}
	packed, err := ramdisk.Pack(files, ramdisk.Gzip)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	z.Multistream(false) // zeros follow
	dir := t.TempDir()
	cmd := exec.Command(cpio, "-i", "--quiet")
	cmd.Dir, cmd.Stdin = dir, z
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cpio: %v\n%s", err, out)
	}
	for _, f := range files {
		path := filepath.Join(dir, f.Name)
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, f.Data) || uint32(info.Mode().Perm()) != f.Mode&0o777 {
			t.Errorf("%s: %q with mode %o, want %q with %o", f.Name, got, info.Mode().Perm(), f.Data, f.Mode&0o777)
		}
	}
}

func TestTheSameFilesGiveTheSameRAMDisk(t *testing.T) {
	files := []ramdisk.File{{Name: "slipway-init", Mode: syscall.S_IFREG | 0o755, Data: initScript}}
	a, err := ramdisk.Pack(files, ramdisk.Gzip)
	if err != nil {
		t.Fatal(err)
	}
	b, err := ramdisk.Pack(files, ramdisk.Gzip)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a, b) {
		t.Error("they differ")
	}
}

func TestTheInitScriptIsAShellScript(t *testing.T) {
	cmd := exec.Command("sh", "-n")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = io.Copy(in, bytes.NewReader(initScript))
		in.Close()
	}()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestConsoleTextIsReadable(t *testing.T) {
	for _, c := range []struct{ name, console, want string }{
		{"colours go", "\x1b[0;1miPXE 1.0.0\x1b[0m -- ready\r\n", "iPXE 1.0.0\n -- ready"},
		{"cursor moves break lines", "\x1b[2J\x1b[01;01H\x1b[=3hBdsDxe: loading\x1b[02;01HBoot", "BdsDxe: loading\nBoot"},
		{"a line written over is there as it was last", " 1%\r 2%\r 99%\r\ndone\n\rnext", "99%\ndone\nnext"},
		{"backspaces and NUL go", "wait\b\b\x00 for\n", "wait for"},
		{"only the last lines are there", "1\n2\n\n  \n3\n4\n", "2\n3\n4"},
		{"nothing stays nothing", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, strings.TrimLeft(Readable([]byte(c.console), 3), " ")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestKVMWorksWhenAKernelComesToItsEnd(t *testing.T) {
	for _, c := range []struct {
		name, console string
		want          bool
	}{
		{"a kernel without root file system", "[    0.9] Kernel panic - not syncing: VFS: Unable to mount root fs", true},
		{"a guest that hangs at once", "", false},
		{"a guest that hangs later", "[    0.0] Linux version 6.1.0", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := sawKernelEnd([]byte(c.console)); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
