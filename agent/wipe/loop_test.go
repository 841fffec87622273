package wipe

import (
	"os"
	"strings"
	"testing"

	"slipway.dev/slipway/agent/disk"
	"slipway.dev/slipway/agent/disk/disktest"
	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/inventory"
)

func TestRealDisksAreWiped(t *testing.T) {
	for _, c := range []struct {
		mode   inventory.CleanMode
		sector string
		method string
	}{
		{inventory.CleanQuick, "512", "signatures"},
		{inventory.CleanFull, "512", "discard"},
		{inventory.CleanFull, "4096", "discard"},
		{inventory.CleanSecure, "512", "overwrite"}, // a loop device has no erase of its own
	} {
		t.Run(string(c.mode)+" "+c.sector, func(t *testing.T) {
			disktest.NeedRoot(t)
			r := newRack(t)
			r.add("sda", 64*mib)
			file, kept := r.tree.DevPath("sda"), disktest.File(t, 64*mib)
			disktest.Run(t, "mkfs.ext4", "-q", "-F", kept)
			before, err := os.ReadFile(kept)
			if err != nil {
				t.Fatal(err)
			}
			d, k := disktest.Loop(t, file, c.sector), disktest.Loop(t, kept, "512")
			r.cfg.Tree, r.disks = disk.Tree{}, []inventory.Disk{d, k}
			certs, err := r.wipe(wire.WipeTask{Mode: c.mode, Keep: []inventory.DiskHint{{Serial: k.Serial}}, MustEmpty: true})
			if err != nil || certs[0].Method != c.method || certs[0].VerifiedN == 0 || !certs[1].IsKept {
				t.Fatalf("%v, %+v", err, certs)
			}
			disktest.Run(t, "sync")
			got, err := os.ReadFile(file)
			if err != nil || !disk.IsZero(got) {
				t.Errorf("not all is zero, %v", err)
			}
			if after, _ := os.ReadFile(kept); string(after) != string(before) {
				t.Error("the kept disk was changed")
			}
		})
	}
}

func TestAMountedDiskIsNotWiped(t *testing.T) {
	disktest.NeedRoot(t)
	r := newRack(t)
	file := disktest.File(t, 64*mib)
	disktest.Run(t, "mkfs.ext4", "-q", "-F", file)
	d := disktest.Loop(t, file, "512")
	dir := t.TempDir()
	disktest.Run(t, "mount", "/dev/"+d.Name, dir)
	defer disktest.Run(t, "umount", dir)
	r.cfg.Tree, r.disks = disk.Tree{}, []inventory.Disk{d}
	if certs, err := r.wipe(wire.WipeTask{Mode: inventory.CleanFull}); err != nil || !strings.Contains(certs[0].Error, "is in use") {
		t.Errorf("%v, %+v", err, certs)
	}
}
