package agentimage

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/images/ramdisk"
)

// kernelPackage returns Debian's kernel package, which apt fetches once into the folder build/kernel of the checkout.
func kernelPackage(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../build/kernel")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("apt-cache", "depends", "--important", "linux-image-amd64").Output()
	name := regexp.MustCompile(`Depends: (linux-image-\S+)`).FindSubmatch(out)
	if err != nil || name == nil {
		t.Fatalf("apt does not know Debian's kernel; run: apt-get update\n%v", err)
	}
	if have, _ := filepath.Glob(filepath.Join(dir, string(name[1])+"_*.deb")); len(have) > 0 {
		return have[0]
	}
	cmd := exec.Command("apt-get", "download", "-q", string(name[1]))
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("fetch %s: %v\n%s", name[1], err, out)
	}
	have, _ := filepath.Glob(filepath.Join(dir, string(name[1])+"_*.deb"))
	if len(have) == 0 {
		t.Fatalf("apt left no %s", name[1])
	}
	return have[0]
}

// boot starts an image in an emulated machine and returns what it says until it is off, and when, after the start, it
// said "INIT".
func boot(t *testing.T, r Result) (console string, toInit time.Duration) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"one", "two"} {
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, 8<<20), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	began := time.Now()
	w := &watcher{word: []byte("INIT "), began: began}
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64", "-accel", "tcg,thread=multi", "-machine", "q35", "-cpu", "max", "-smp", "2", "-m", "1024",
		"-display", "none", "-vga", "none", "-serial", "stdio", "-no-reboot", "-nodefaults",
		"-kernel", r.KernelPath, "-initrd", r.InitrdPath, "-append", "console=ttyS0 panic=-1",
		"-device", "virtio-net-pci", "-device", "e1000e",
		"-drive", "if=none,id=one,format=raw,file="+filepath.Join(dir, "one"), "-device", "virtio-blk-pci,drive=one",
		"-drive", "if=none,id=two,format=raw,file="+filepath.Join(dir, "two"), "-device", "ide-hd,drive=two",
		"-device", "nvme,serial=n1,drive=three", "-drive", "if=none,id=three,format=raw,file="+filepath.Join(dir, "one")+",snapshot=on,file.locking=off")
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Run(); err != nil {
		t.Fatalf("the machine: %v\n%s", err, w.text.String())
	}
	return w.text.String(), w.at
}

// watcher keeps what is written and when a word first came.
type watcher struct {
	word  []byte
	began time.Time
	at    time.Duration
	text  bytes.Buffer
}

func (w *watcher) Write(b []byte) (int, error) {
	w.text.Write(b)
	if w.at == 0 && bytes.Contains(w.text.Bytes(), w.word) {
		w.at = time.Since(w.began)
	}
	return len(b), nil
}

// TestDebiansKernelBootsAndFindsItsDrivers is the whole way: a real package, a real machine. It also says what each
// compression costs.
func TestDebiansKernelBootsAndFindsItsDrivers(t *testing.T) {
	if os.Getenv("SLIPWAY_VM") == "" {
		t.Skip("boots an emulated machine, which takes a minute; run it with: make test-vm")
	}
	agent := filepath.Join(t.TempDir(), "init")
	cmd := exec.Command("go", "build", "-o", agent, "./testdata/init")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	deb := kernelPackage(t)
	for _, c := range []ramdisk.Compression{ramdisk.Zstd, ramdisk.Gzip, ramdisk.Plain} {
		t.Run(string(c), func(t *testing.T) {
			if c != ramdisk.Zstd && testing.Short() {
				t.Skip("only compares compressions; run it without -short")
			}
			var progress bytes.Buffer
			r, err := Build(t.Context(), Options{Agent: agent, Debs: []string{deb}, Compression: c, Out: t.TempDir()}, &progress)
			if err != nil {
				t.Fatal(err)
			}
			if total := r.KernelBytes + r.InitrdBytes; c != ramdisk.Plain && total > Limit {
				t.Errorf("%d MB are more than the limit", total/1e6)
			}
			console, toInit := boot(t, r)
			for _, want := range []string{"virtio_net", "e1000e", "virtio_blk", "nvme", "sd"} {
				if !regexp.MustCompile(`HAS ` + want + `\r?\n`).MatchString(console) {
					t.Errorf("no device has driver %s", want)
				}
			}
			for _, want := range []string{"ext4", "xfs", "btrfs", "vfat"} {
				if !regexp.MustCompile(`READS .*\b` + want + `\b`).MatchString(console) {
					t.Errorf("no file system %s", want)
				}
			}
			if strings.Contains(console, "FAILED") {
				t.Error("a module does not load")
			}
			if t.Failed() {
				t.Logf("%s\n%s", progress.String(), console)
			}
			t.Logf("%s: kernel %d KB, RAM disk %d KB, unpacked %d KB; from power on to init %.1f s, by the kernel's clock %s s, drivers loaded at %s s",
				c, r.KernelBytes/1000, r.InitrdBytes/1000, r.UnpackedBytes/1000, toInit.Seconds(), after(console, "INIT "), after(console, "DONE "))
		})
	}
}

// after returns the number that follows a word.
func after(text, word string) string {
	_, rest, _ := strings.Cut(text, word)
	if f := strings.Fields(rest); len(f) > 0 {
		if _, err := strconv.ParseFloat(f[0], 64); err == nil {
			return f[0]
		}
	}
	return "?"
}
