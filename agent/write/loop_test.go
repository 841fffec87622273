package write

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway.dev/slipway/agent/disk"
	"slipway.dev/slipway/agent/disk/disktest"
	"slipway.dev/slipway/agent/efi"
	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/inventory"
)

// systemImage makes a disk with an EFI system partition and a root file system, as distributions offer them.
func systemImage(t *testing.T) []byte {
	t.Helper()
	path := disktest.File(t, 96*mib)
	disktest.Run(t, "sgdisk", "-n1:2048:+8M", "-t1:ef00", "-n2:0:+64M", "-t2:8304", path)
	disktest.Run(t, "mkfs.vfat", "--offset", "2048", path, "8192")
	disktest.Run(t, "mmd", "-i", path+"@@1M", "::EFI", "::EFI/debian")
	disktest.Run(t, "mcopy", "-i", path+"@@1M", "/etc/hostname", "::EFI/debian/shimx64.efi")
	tree := t.TempDir()
	if err := os.Mkdir(filepath.Join(tree, "etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(tree, "etc/os-release"), []byte("ID=debian\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	disktest.Run(t, "mkfs.ext4", "-q", "-F", "-d", tree, "-E", "offset=9437184", path, "64M")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestASystemIsWrittenToARealDiskWithSeedAndBootEntry(t *testing.T) {
	disktest.NeedRoot(t)
	raw := systemImage(t)
	r := newRack(t)
	file := disktest.File(t, 200*mib)
	target, keep := disktest.Loop(t, file, "512"), disktest.Loop(t, disktest.File(t, 200*mib), "512")
	r.tree = disk.Tree{}
	r.disks = []inventory.Disk{target, keep}
	r.files["/user-data"] = []byte("#cloud-config\n")
	vars := efi.Vars{Dir: t.TempDir()}
	if err := os.WriteFile(filepath.Join(vars.Dir, "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w := r.writer()
	w.cfg.EFI, w.cfg.MountDir = vars, t.TempDir()
	for _, format := range []string{"raw.zst", "qcow2"} {
		t.Run(format, func(t *testing.T) {
			var says []string
			task := wire.WriteTask{
				Image: r.offer(format, pack(t, format, raw)), Keep: []inventory.DiskHint{{Serial: keep.Serial}},
				Seed: wire.Seed{Kind: wire.SeedNoCloud, Documents: map[string]string{"user-data": r.server.URL + "/user-data"}},
			}
			report, err := w.Handler(t.Context(), wire.Task{Write: &task}, func(s string, _ wire.Progress) { says = append(says, s) })
			if err != nil {
				t.Fatal(err)
			}
			if got := report.Write; got.BootEntry != "Boot0000" || !got.IsSeeded || got.Disk.Name != target.Name {
				t.Errorf("%+v", got)
			}
			if !strings.Contains(strings.Join(says, "\n"), "the configuration is in /var/lib/cloud/seed/nocloud of the root file system") {
				t.Errorf("%q", says)
			}
		})
	}
	b, err := vars.Read()
	if err != nil || len(b.Entries) != 1 || b.Entries[0].File() != `\EFI\debian\shimx64.efi` || b.Entries[0].Description != "debian (Slipway)" {
		t.Errorf("%+v, %v", b, err)
	}
	disktest.Run(t, "sync")
	if out := disktest.Run(t, "sgdisk", "-v", file); !strings.Contains(out, "No problems found") {
		t.Error(out)
	}
	out := disktest.Run(t, "debugfs", "-R", "cat /var/lib/cloud/seed/nocloud/user-data", file+"?offset=9437184")
	if !strings.Contains(out, "#cloud-config") {
		t.Error(out)
	}
}

func TestADiskInUseIsNotWritten(t *testing.T) {
	disktest.NeedRoot(t)
	r := newRack(t)
	file := disktest.File(t, 64*mib)
	disktest.Run(t, "mkfs.ext4", "-q", "-F", file)
	target := disktest.Loop(t, file, "512")
	dir := t.TempDir()
	disktest.Run(t, "mount", "/dev/"+target.Name, dir)
	defer disktest.Run(t, "umount", dir)
	r.tree, r.disks = disk.Tree{}, []inventory.Disk{target}
	if _, err := r.do(wire.WriteTask{Image: r.offer("raw", diskImage(t, 24*mib))}); err == nil || !strings.Contains(err.Error(), "is in use") {
		t.Errorf("%v", err)
	}
}

func TestAnImageForOtherSectorsIsRefused(t *testing.T) {
	disktest.NeedRoot(t)
	r := newRack(t)
	target := disktest.Loop(t, disktest.File(t, 64*mib), "4096")
	r.tree, r.disks = disk.Tree{}, []inventory.Disk{target}
	report, err := r.do(wire.WriteTask{Image: r.offer("raw", diskImage(t, 24*mib))})
	if err == nil || !strings.Contains(err.Error(), "sectors of 512 bytes, and "+target.Name+" has 4096") || !report.IsLasting {
		t.Errorf("%v", err)
	}
}

func TestADiskThatVanishesIsSaidSo(t *testing.T) {
	r := newRack(t, 40*mib)
	d, err := disk.OpenPath(r.tree.DevPath("sda"), disk.Write)
	if err != nil {
		t.Fatal(err)
	}
	s, err := newSink(context.Background(), d, false, disk.Queue{}, func() bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	d.Close() // what a driver does that has lost its disk: every write fails
	p := s.Buffer()
	p[0] = 1
	if err := s.Put(p, len(p), 8*mib); err != nil {
		t.Fatal(err)
	}
	if err := s.finish(); err == nil || !strings.Contains(err.Error(), "disk sda vanished while it was written, at byte 8388608") {
		t.Errorf("%v", err)
	}
}
