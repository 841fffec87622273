package wipe

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"slipway.dev/slipway/agent/disk"
	"slipway.dev/slipway/agent/disk/disktest"
	"slipway.dev/slipway/agent/efi"
	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/inventory"
)

// rack is a machine whose disks are files.
type rack struct {
	t     *testing.T
	tree  disk.Tree
	disks []inventory.Disk
	cfg   Config
	wiped []string
}

func newRack(t *testing.T) *rack {
	r := &rack{t: t, tree: disk.Tree{Sys: t.TempDir(), Dev: disktest.Dir(t)}}
	r.cfg = Config{
		Disks: func(context.Context) ([]inventory.Disk, error) { return r.disks, nil },
		Tree:  r.tree, EFI: efi.Vars{Dir: filepath.Join(t.TempDir(), "none")}, Seed: 5,
		Wiped: func(d inventory.Disk) { r.wiped = append(r.wiped, d.Name) },
	}
	return r
}

// add makes a disk full of old data with file systems in two partitions.
func (r *rack) add(name string, size int64) {
	r.t.Helper()
	if err := os.WriteFile(r.tree.DevPath(name), oldDisk(r.t, size), 0o600); err != nil {
		r.t.Fatal(err)
	}
	r.disks = append(r.disks, inventory.Disk{Name: name, Serial: "S" + name, SizeBytes: size})
	if err := os.MkdirAll(r.tree.SysPath("block", name, "queue"), 0o755); err != nil {
		r.t.Fatal(err)
	}
}

var (
	oldDisksMu sync.Mutex
	oldDisks   = map[int64][]byte{}
)

// oldDisk makes what is on a disk before; once for each size, because sgdisk waits for all disks of the machine.
func oldDisk(t *testing.T, size int64) []byte {
	t.Helper()
	oldDisksMu.Lock()
	defer oldDisksMu.Unlock()
	if b := oldDisks[size]; b != nil {
		return b
	}
	path := filepath.Join(disktest.Dir(t), "old")
	if err := os.WriteFile(path, bytes.Repeat([]byte("old data "), int(size/9)+1)[:size], 0o600); err != nil {
		t.Fatal(err)
	}
	disktest.Run(t, "sgdisk", "-o", "-n1:2048:+40M", "-n2:0:0", "-u2:11112222-3333-4444-5555-666677778888", path)
	disktest.Run(t, "mkfs.ext4", "-q", "-F", "-E", "offset=1048576,nodiscard", path, "40M")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	oldDisks[size] = b
	return b
}

func (r *rack) attribute(name, file, value string) {
	if err := os.WriteFile(r.tree.SysPath("block", name, file), []byte(value+"\n"), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rack) wipe(task wire.WipeTask) ([]inventory.WipeCertificate, error) {
	report, err := New(r.cfg).Handler(r.t.Context(), wire.Task{Wipe: &task}, func(string, wire.Progress) {})
	return report.Certificates, err
}

func (r *rack) content(name string) []byte {
	b, err := os.ReadFile(r.tree.DevPath(name))
	if err != nil {
		r.t.Fatal(err)
	}
	return b
}

func TestAKeptDiskIsNotEvenOpened(t *testing.T) {
	for _, mode := range inventory.CleanModes() {
		r := newRack(t)
		r.add("sda", 64*mib)
		// A disk without a device node: to open it would be an error.
		r.disks = append(r.disks, inventory.Disk{Name: "sdb", Serial: "DATA", SizeBytes: 64 * mib})
		certs, err := r.wipe(wire.WipeTask{Mode: mode, Keep: []inventory.DiskHint{{Serial: "data"}}, MustEmpty: true})
		if err != nil || len(certs) != 2 || !certs[1].IsKept || certs[1].Method != "kept" || certs[1].Error != "" || certs[1].Bytes != 0 || certs[0].IsKept {
			t.Errorf("%s: %v, %+v", mode, err, certs)
		}
	}
}

func TestNoneTouchesNothing(t *testing.T) {
	r := newRack(t)
	r.add("sda", 64*mib)
	before := r.content("sda")
	certs, err := r.wipe(wire.WipeTask{Mode: inventory.CleanNone})
	if err != nil || certs[0].Method != "none" || !bytes.Equal(before, r.content("sda")) {
		t.Errorf("%v, %+v", err, certs)
	}
}

func TestAQuickWipeLeavesNothingThatIsFound(t *testing.T) {
	r := newRack(t)
	const size = 400 * mib
	r.add("sda", size)
	f, err := os.OpenFile(r.tree.DevPath("sda"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	second := int64(41 * mib) // where the second partition begins, after sgdisk's alignment
	for off, sign := range map[int64]string{
		second + 512: "LABELONE", second + 0x10040: "_BHRfS_M", second + 64*mib + 0x40: "_BHRfS_M",
		size - 64<<10: "\xfc\x4e\x2b\xa9", 128 << 10: "\x0c\xb1\xba\x00\x00\x00\x00\x00", second + 4086: "SWAPSPACE2",
	} {
		if _, err := f.WriteAt([]byte(sign), off); err != nil {
			t.Fatal(err)
		}
	}
	certs, err := r.wipe(wire.WipeTask{Mode: inventory.CleanQuick, MustEmpty: true})
	if err != nil {
		t.Fatal(err)
	}
	c := certs[0]
	if c.Method != "signatures" || c.Error != "" || c.VerifiedN < 32 || c.Bytes < 200*mib || c.StartedAt == "" || len(r.wiped) != 0 {
		t.Errorf("%+v", c)
	}
	got := r.content("sda")
	for place, isZero := range map[string]bool{
		"the first 100 MiB": disk.IsZero(got[:100*mib]), "the last 100 MiB": disk.IsZero(got[size-100*mib:]),
		"the second superblock of btrfs": disk.IsZero(got[second+64*mib:][:4096]),
	} {
		if !isZero {
			t.Errorf("%s: not wiped", place)
		}
	}
	if !bytes.Contains(got, []byte("old data")) {
		t.Error("everything was wiped")
	}
	for _, off := range []string{"0", "1048576", "42991616"} {
		if out := disktest.Run(t, "sh", "-c", "/usr/sbin/wipefs -n -O "+off+" "+r.tree.DevPath("sda")+" 2>&1 || true"); strings.Contains(out, "0x") {
			t.Error(out)
		}
	}
}

func TestAFullWipeLeavesOnlyZeroes(t *testing.T) {
	for name, c := range map[string]struct {
		canZero string
		mode    inventory.CleanMode
		method  string
	}{
		"a disk without a command for zeroes": {"0", inventory.CleanFull, "overwrite"},
		"a disk with one":                     {"65536", inventory.CleanFull, "discard"},
		"a disk that cannot erase itself":     {"65536", inventory.CleanSecure, "overwrite"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRack(t)
			r.add("sda", 64*mib+512)
			r.attribute("sda", "queue/write_zeroes_max_bytes", c.canZero)
			certs, err := r.wipe(wire.WipeTask{Mode: c.mode, MustEmpty: true})
			if err != nil || certs[0].Method != c.method || certs[0].Bytes != 64*mib+512 || certs[0].VerifiedN != sampleN || !disk.IsZero(r.content("sda")) {
				t.Errorf("%v, %+v", err, certs)
			}
			if len(r.wiped) != 1 {
				t.Errorf("known to be zero: %v", r.wiped)
			}
		})
	}
}

func TestADiskThatDoesNotKeepItsPromiseIsOverwritten(t *testing.T) {
	r := newRack(t)
	r.add("sda", 64*mib)
	r.attribute("sda", "queue/discard_max_bytes", "4096") // says it discards to zeroes; a file does not even discard
	r.attribute("sda", "queue/discard_zeroes_data", "1")
	certs, err := r.wipe(wire.WipeTask{Mode: inventory.CleanFull})
	if err != nil || certs[0].Method != "overwrite" || certs[0].Error != "" || !disk.IsZero(r.content("sda")) {
		t.Errorf("%v, %+v", err, certs)
	}
}

func TestFaultsAreInTheCertificateInPlainWords(t *testing.T) {
	r := newRack(t)
	r.cfg.StallFor = 300 * time.Millisecond
	r.add("sda", 64*mib)
	r.add("sdb", 64*mib)
	r.attribute("sdb", "ro", "1")
	r.add("sdc", 64*mib)
	if err := os.Remove(r.tree.DevPath("sdc")); err != nil {
		t.Fatal(err)
	}
	r.add("sdd", 64*mib)
	if err := syscall.Mkfifo(r.tree.SysPath("block", "sdd", "ro"), 0o600); err != nil { // reading it never ends
		t.Fatal(err)
	}
	r.add("sde", 64*mib)
	if err := os.MkdirAll(r.tree.SysPath("block", "sde", "holders", "bcache0"), 0o755); err != nil {
		t.Fatal(err)
	}
	certs, err := r.wipe(wire.WipeTask{Mode: inventory.CleanQuick, MustEmpty: true})
	var e *inventory.Error
	if !errors.As(err, &e) || !strings.Contains(e.Msg, "4 of 5 disks are not clean: sdb, sdc, sdd, sde") {
		t.Errorf("%v", err)
	}
	for i, want := range []string{"", "disk sdb is read-only", "disk sdc is gone", "the disk has not answered for", "bcache0 is built on sde and cannot be stopped"} {
		if got := certs[i].Error; !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%s: %q", certs[i].Disk.Name, got)
		}
	}
	r.disks = r.disks[:3]
	if _, err := r.wipe(wire.WipeTask{Mode: inventory.CleanQuick}); err != nil {
		t.Errorf("a disk that is not clean is an error, although it need not be: %v", err)
	}
}

func TestBootEntriesOfAWipedDiskGo(t *testing.T) {
	r := newRack(t)
	r.cfg.EFI.Dir = t.TempDir()
	r.add("sda", 64*mib)
	id, _ := disk.ParseGUID("11112222-3333-4444-5555-666677778888")
	other, _ := disk.ParseGUID("99992222-3333-4444-5555-666677778888")
	if err := os.WriteFile(filepath.Join(r.cfg.EFI.Dir, "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, p := range []disk.GUID{id, other} {
		if _, err := r.cfg.EFI.Install(efi.Want{Partition: disk.Partition{Number: 2, First: 1, Sectors: 1, ID: p}, File: `\EFI\BOOT\BOOTX64.EFI`, Description: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.wipe(wire.WipeTask{Mode: inventory.CleanQuick, MustEmpty: true}); err != nil {
		t.Fatal(err)
	}
	b, err := r.cfg.EFI.Read()
	if err != nil || len(b.Entries) != 1 || len(b.Order) != 1 {
		t.Fatalf("%+v, %v", b, err)
	}
	if left, _ := b.Entries[0].Partition(); left != other {
		t.Errorf("%s is left", left)
	}
}

func TestAWipeEndsWhenItIsToldTo(t *testing.T) {
	r := newRack(t)
	r.add("sda", 64*mib)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	report, err := New(r.cfg).Handler(ctx, wire.Task{Wipe: &wire.WipeTask{Mode: inventory.CleanFull}}, func(string, wire.Progress) {})
	if !errors.Is(err, context.Canceled) || report.Certificates[0].Error == "" {
		t.Errorf("%v, %+v", err, report.Certificates)
	}
}
