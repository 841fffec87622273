// Package disktest owns disks for tests: sparse files, and loop devices made of them. It is imported by tests only, and
// never touches a device that it did not make.
package disktest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
)

// Dir makes a folder for disks, in memory where that can be had: tests write hundreds of megabytes.
func Dir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "slipway-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// File makes a sparse file of that size.
func File(t testing.TB, size int64) string {
	t.Helper()
	path := filepath.Join(Dir(t), "disk")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	return path
}

// NeedRoot skips a test that works on devices unless SLIPWAY_VM=1 says that this machine may be used for it.
func NeedRoot(t testing.TB) {
	t.Helper()
	if os.Getenv("SLIPWAY_VM") != "1" {
		t.Skip("works on loop devices, as root; run with SLIPWAY_VM=1")
	}
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		t.Skip("this kernel has no loop devices: /dev/loop-control is missing")
	}
}

// Loop makes a file of that size a disk of the machine until the test ends; sector is 512 or 4096.
func Loop(t testing.TB, file string, sector string) inventory.Disk {
	t.Helper()
	NeedRoot(t)
	out := Run(t, "losetup", "--find", "--show", "--partscan", "--sector-size", sector, file)
	device := strings.TrimSpace(out)
	t.Cleanup(func() {
		if out, err := exec.Command("losetup", "--detach", device).CombinedOutput(); err != nil {
			t.Errorf("detach %s: %v: %s", device, err, out)
		}
	})
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Base(device)
	return inventory.Disk{Name: name, Serial: "serial-of-" + name, Model: "loop", SizeBytes: info.Size(), SectorBytes: 512}
}

// Run runs a program, which must be installed, and returns what it prints.
func Run(t testing.TB, name string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		path = filepath.Join("/usr/sbin", name)
		if _, err := os.Stat(path); err != nil {
			t.Skipf("%s is not installed; tools/deps.sh installs what tests use", name)
		}
	}
	out, err := exec.Command(path, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}
