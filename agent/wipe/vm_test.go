package wipe

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"slipway.dev/slipway/agent/disk"
	"slipway.dev/slipway/agent/efi"
	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/inventory"
)

// inVM names the disks that a test in a throw-away virtual machine may wipe.
func inVM(t *testing.T, variable string) []string {
	t.Helper()
	names := strings.Fields(os.Getenv(variable))
	if len(names) == 0 {
		t.Skipf("needs a virtual machine with disks to wipe: boot one with QEMU's nvme, name its disks in %s, and run this test there", variable)
	}
	return names
}

func real(t *testing.T, names []string) []inventory.Disk {
	t.Helper()
	var disks []inventory.Disk
	for _, n := range names {
		d, err := disk.Tree{}.Open(n, disk.Read)
		if err != nil {
			t.Fatal(err)
		}
		serial, _ := os.ReadFile("/sys/block/" + n + "/device/serial")
		disks = append(disks, inventory.Disk{Name: n, SizeBytes: d.Bytes, Serial: strings.TrimSpace(string(serial))})
		d.Close()
	}
	return disks
}

func wipeReal(t *testing.T, disks []inventory.Disk, task wire.WipeTask) []inventory.WipeCertificate {
	t.Helper()
	w := New(Config{Disks: func(context.Context) ([]inventory.Disk, error) { return disks, nil }, EFI: efi.Vars{Dir: "/none"}})
	report, err := w.Handler(t.Context(), wire.Task{Wipe: &task}, func(string, wire.Progress) {})
	if err != nil {
		t.Fatalf("%v: %+v", err, report.Certificates)
	}
	return report.Certificates
}

// TestNVMeDisksEraseThemselves wants two namespaces of one controller, the second of which is kept.
func TestNVMeDisksEraseThemselves(t *testing.T) {
	disks := real(t, inVM(t, "SLIPWAY_NVME"))
	kept, err := disk.Tree{}.Open(disks[1].Name, disk.Write)
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	if _, err := kept.WriteAt([]byte("to be kept"), 8192); err != nil {
		t.Fatal(err)
	}
	first, err := disk.Tree{}.Open(disks[0].Name, disk.Write)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.WriteAt([]byte("to be erased"), 4<<20); err != nil {
		t.Fatal(err)
	}
	first.Close()
	keep := []inventory.DiskHint{{Name: disks[1].Name}}
	certs := wipeReal(t, disks, wire.WipeTask{Mode: inventory.CleanSecure, Keep: keep, MustEmpty: true})
	t.Logf("%+v", certs)
	if certs[0].Method != methodFormat || certs[0].VerifiedN != sampleN || !certs[1].IsKept {
		t.Errorf("%+v", certs)
	}
	b := make([]byte, 12)
	if _, err := kept.ReadAt(b[:10], 8192); err != nil || string(b[:10]) != "to be kept" {
		t.Errorf("%q, %v", b, err)
	}
	again, err := disk.Tree{}.Open(disks[0].Name, disk.Read)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if _, err := again.ReadAt(b, 4<<20); err != nil || !disk.IsZero(b) {
		t.Errorf("%q, %v", b, err)
	}
}

// TestArraysAndVolumesAreStopped wants two disks, on which it builds an array with a volume on top.
func TestArraysAndVolumesAreStopped(t *testing.T) {
	disks := real(t, inVM(t, "SLIPWAY_RAID"))
	run := func(name string, args ...string) {
		t.Helper()
		if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
	}
	run("mdadm", "--create", "/dev/md0", "--run", "--level=1", "--raid-devices=2", "--metadata=1.0", "/dev/"+disks[0].Name, "/dev/"+disks[1].Name)
	run("dmsetup", "create", "--noudevsync", "vol", "--table", "0 "+strconv.Itoa(16<<20/512)+" linear /dev/md0 0")
	half := wipeReal(t, disks, wire.WipeTask{Mode: inventory.CleanQuick, Keep: []inventory.DiskHint{{Name: disks[1].Name}}})
	if want := "md0 is built on " + disks[0].Name + " and on " + disks[1].Name + ", which is to be kept"; half[0].Error != want {
		t.Errorf("%+v", half)
	}
	certs := wipeReal(t, disks, wire.WipeTask{Mode: inventory.CleanQuick, MustEmpty: true})
	t.Logf("%+v", certs)
	if _, err := os.Stat("/sys/block/dm-0"); err == nil {
		t.Error("the volume is still there")
	}
	for _, d := range disks {
		dev, err := disk.Tree{}.Open(d.Name, disk.Write)
		if err != nil {
			t.Fatal(err)
		}
		if c := disk.Contents(dev, dev.Bytes); len(c) > 0 {
			t.Errorf("%s: %+v", d.Name, c)
		}
		dev.Close()
	}
}
