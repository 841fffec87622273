package seed

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/agent/disk"
	"slipway.dev/slipway/agent/disk/disktest"
	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/inventory"
)

const mib = 1 << 20

// office serves documents, each once, and is not ready at first.
type office struct {
	*httptest.Server
	requests atomic.Int64
}

func newOffice(t *testing.T) *office {
	t.Helper()
	o := &office{}
	o.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if o.requests.Add(1) == 1 {
			w.Header().Set("Retry-After", "3")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("content of " + r.URL.Path))
	}))
	t.Cleanup(o.Close)
	return o
}

func (o *office) docs(names ...string) map[string]string {
	m := map[string]string{}
	for _, n := range names {
		m[n] = o.URL + "/" + n
	}
	return m
}

// system is one partition of an image.
type system struct {
	make  []string          // mkfs and its arguments
	parts string            // for sgdisk
	files map[string]string // on it
}

// newDisk makes a loop device with partitions, with room left at its end.
func newDisk(t *testing.T, size int64, systems ...system) (inventory.Disk, string) {
	t.Helper()
	disktest.NeedRoot(t)
	file := disktest.File(t, size)
	args := []string{"-a", "2048"}
	for i, s := range systems {
		n := string(rune('1' + i))
		args = append(args, strings.Split(strings.ReplaceAll(s.parts, "#", n), " ")...)
	}
	disktest.Run(t, "sgdisk", append(args, file)...)
	d := disktest.Loop(t, file, "512")
	tree := disk.Tree{}
	dev, err := tree.Open(d.Name, disk.Read)
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	table, err := disk.ReadTable(dev, dev.Bytes, dev.Sector)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range systems {
		device, err := tree.PartitionDevice(t.Context(), d.Name, table.Partitions[i], dev.Sector)
		if err != nil {
			t.Fatal(err)
		}
		disktest.Run(t, s.make[0], append(s.make[1:], device)...)
		if len(s.files) == 0 {
			continue
		}
		look(t, device, func(dir string) {
			for name, content := range s.files {
				path := filepath.Join(dir, name)
				if target, isLink := strings.CutPrefix(content, "-> "); isLink {
					_ = os.MkdirAll(filepath.Dir(path), 0o755)
					if err := os.Symlink(target, path); err != nil {
						t.Fatal(err)
					}
					continue
				}
				_ = os.MkdirAll(filepath.Dir(path), 0o755)
				if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
	return d, file
}

// look mounts a device for a moment.
func look(t *testing.T, device string, do func(dir string)) {
	t.Helper()
	dir := t.TempDir()
	disktest.Run(t, "mount", device, dir)
	defer disktest.Run(t, "umount", dir)
	do(dir)
}

func (o *office) config(t *testing.T) Config {
	return Config{MountDir: t.TempDir(), Wait: func(_ context.Context, d time.Duration) error {
		if d != 3*time.Second {
			t.Errorf("waited for %s, and the server asked for 3 s", d)
		}
		return nil
	}}
}

var (
	rootFS = system{make: []string{"mkfs.ext4", "-q", "-F", "-L", "cloudimg-rootfs"}, parts: "-n#:0:+64M -t#:8304", files: map[string]string{"etc/os-release": "ID=debian\n", "etc/fstab": "LABEL=cloudimg-rootfs / ext4 defaults 0 1\n"}}
	dataFS = system{make: []string{"mkfs.ext4", "-q", "-F", "-L", "data"}, parts: "-n#:0:+80M"}
)

func TestASeedGoesIntoTheRootFileSystem(t *testing.T) {
	for name, fs := range map[string]system{
		"ext4":  rootFS,
		"xfs":   {make: []string{"mkfs.xfs", "-q", "-f", "-L", "root"}, parts: "-n#:0:+320M", files: rootFS.files},
		"btrfs": {make: []string{"mkfs.btrfs", "-q", "-f", "-L", "ROOT"}, parts: "-n#:0:+128M", files: rootFS.files},
	} {
		t.Run(name, func(t *testing.T) {
			d, _ := newDisk(t, 512*mib, dataFS, fs)
			o := newOffice(t)
			where, err := Place(t.Context(), o.config(t), d.Name, wire.Seed{Kind: wire.SeedNoCloud, Documents: o.docs("user-data", "network-config")})
			if err != nil || !strings.Contains(where, "/var/lib/cloud/seed/nocloud of the root file system ("+d.Name+"p2, "+name+")") {
				t.Fatalf("%q, %v", where, err)
			}
			look(t, "/dev/"+d.Name+"p2", func(dir string) {
				got := map[string]string{}
				for _, doc := range []string{"user-data", "meta-data", "network-config"} {
					path := filepath.Join(dir, noCloudDir, doc)
					b, err := os.ReadFile(path)
					if err != nil {
						t.Error(err)
						continue
					}
					if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
						t.Errorf("%s may be read by others: %s", doc, info.Mode())
					}
					got[doc] = string(b)
				}
				want := map[string]string{"user-data": "content of /user-data", "meta-data": "", "network-config": "content of /network-config"}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Error(diff)
				}
			})
			if n := o.requests.Load(); n != 3 {
				t.Errorf("%d requests for two documents, the first refused once", n)
			}
		})
	}
}

func TestASeedGetsAPartitionWhenTheRootIsOfNoUse(t *testing.T) {
	for name, fs := range map[string]system{
		"var is another file system": {make: rootFS.make, parts: rootFS.parts, files: map[string]string{"etc/fstab": "/dev/sda1 / ext4\n/dev/sda2 /var ext4 defaults\n"}},
		"it is of OSTree":            {make: rootFS.make, parts: rootFS.parts, files: map[string]string{"etc/os-release": "x", "ostree/repo/config": "x"}},
		"it is in a volume group":    {make: []string{"true"}, parts: "-n#:0:+64M -t#:8e00"},
	} {
		t.Run(name, func(t *testing.T) {
			d, file := newDisk(t, 256*mib, fs)
			o := newOffice(t)
			for range 2 { // the second time the partition is there
				where, err := Place(t.Context(), o.config(t), d.Name, wire.Seed{Kind: wire.SeedNoCloud, Documents: o.docs("user-data", "meta-data")})
				if err != nil || !strings.Contains(where, "CIDATA") {
					t.Fatalf("%q, %v", where, err)
				}
			}
			if out := disktest.Run(t, "sgdisk", "-v", "-p", file); !strings.Contains(out, "No problems found") || strings.Count(out, "CIDATA") != 1 {
				t.Error(out)
			}
			device := "/dev/" + d.Name + "p2"
			if out := disktest.Run(t, "blkid", "-p", "-o", "export", device); !strings.Contains(out, "LABEL=CIDATA") || !strings.Contains(out, "TYPE=vfat") {
				t.Error(out)
			}
			if out := disktest.Run(t, "mtype", "-i", device, "::user-data"); !strings.HasSuffix(out, "content of /user-data") {
				t.Errorf("%q", out)
			}
			disktest.Run(t, "fsck.vfat", "-n", device)
		})
	}
}

func TestASeedPartitionOfTheImageIsUsed(t *testing.T) {
	d, _ := newDisk(t, 256*mib, rootFS, system{make: []string{"mkfs.ext4", "-q", "-F", "-L", "cidata"}, parts: "-n#:0:+16M"})
	o := newOffice(t)
	where, err := Place(t.Context(), o.config(t), d.Name, wire.Seed{Kind: wire.SeedNoCloud, Documents: o.docs("user-data", "meta-data")})
	if err != nil || where != "the file system labelled cidata" {
		t.Fatalf("%q, %v", where, err)
	}
	look(t, "/dev/"+d.Name+"p2", func(dir string) {
		if b, err := os.ReadFile(filepath.Join(dir, "user-data")); err != nil || string(b) != "content of /user-data" {
			t.Errorf("%q, %v", b, err)
		}
	})
}

func TestIgnitionFindsItsConfig(t *testing.T) {
	cases := map[string]struct {
		label string
		seed  wire.Seed
		want  string
		first bool
	}{
		"Fedora CoreOS":  {"boot", wire.Seed{}, "ignition/config.ign", true},
		"Flatcar":        {"OEM", wire.Seed{}, "config.ign", false},
		"another system": {"combustion", wire.Seed{Label: "combustion", Folder: "ignition-of-it"}, "ignition-of-it/config.ign", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d, _ := newDisk(t, 256*mib, rootFS, system{make: []string{"mkfs.ext4", "-q", "-F", "-L", c.label}, parts: "-n#:0:+16M"})
			o := newOffice(t)
			c.seed.Kind, c.seed.Documents = wire.SeedIgnition, o.docs("config.ign")
			where, err := Place(t.Context(), o.config(t), d.Name, c.seed)
			if err != nil || !strings.Contains(where, "labelled "+c.label) {
				t.Fatalf("%q, %v", where, err)
			}
			look(t, "/dev/"+d.Name+"p2", func(dir string) {
				if b, err := os.ReadFile(filepath.Join(dir, c.want)); err != nil || string(b) != "content of /config.ign" {
					t.Errorf("%q, %v", b, err)
				}
				if _, err := os.Stat(filepath.Join(dir, "ignition.firstboot")); (err == nil) != c.first {
					t.Errorf("the mark of the first boot: %v", err)
				}
			})
		})
	}
	d, _ := newDisk(t, 256*mib, rootFS)
	o := newOffice(t)
	_, err := Place(t.Context(), o.config(t), d.Name, wire.Seed{Kind: wire.SeedIgnition, Documents: o.docs("config.ign")})
	var e *inventory.Error
	if !errors.As(err, &e) || e.Kind != inventory.Invalid || !strings.Contains(e.Msg, "labelled OEM or boot") {
		t.Errorf("%v", err)
	}
}

func TestLinksOfTheImageLeadNowhere(t *testing.T) {
	outside := t.TempDir()
	d, _ := newDisk(t, 256*mib, system{make: rootFS.make, parts: rootFS.parts, files: map[string]string{"etc/os-release": "x", "var/lib/cloud": "-> " + outside, "opt/file": "-> " + outside + "/victim"}})
	o := newOffice(t)
	if where, err := Place(t.Context(), o.config(t), d.Name, wire.Seed{Kind: wire.SeedFiles, Folder: "var/lib/cloud", Documents: o.docs("user-data")}); err == nil {
		t.Errorf("written to %s", where)
	}
	if where, err := Place(t.Context(), o.config(t), d.Name, wire.Seed{Kind: wire.SeedFiles, Folder: "/opt", Documents: o.docs("file")}); err != nil || !strings.Contains(where, "/opt of the root file system") {
		t.Errorf("%s, %v", where, err)
	}
	if files, _ := os.ReadDir(outside); len(files) > 0 {
		t.Errorf("a link was followed: %v", files)
	}
}

func TestKernelArgumentsAreAdded(t *testing.T) {
	boot := system{make: []string{"mkfs.ext2", "-q", "-F", "-L", "boot"}, parts: "-n#:0:+16M", files: map[string]string{
		"grub/grub.cfg":            "menuentry 'x' {\n\tlinux   /vmlinuz root=UUID=1 ro quiet\n\tinitrd /initrd\n}\n",
		"loader/entries/1.conf":    "title x\nlinux /vmlinuz\noptions root=UUID=1 ro\n",
		"loader/entries/link.conf": "-> /etc/passwd",
	}}
	root := rootFS
	root.files = map[string]string{"etc/os-release": "x", "etc/default/grub": "GRUB_TIMEOUT=5\nGRUB_CMDLINE_LINUX=\"a=b\"\n"}
	d, _ := newDisk(t, 256*mib, root, boot)
	c := Config{MountDir: t.TempDir()}
	for range 2 { // added once only
		if _, err := KernelArgs(t.Context(), c, d.Name, []string{"console=ttyS0", "nosmt"}); err != nil && !strings.Contains(err.Error(), "no boot loader") {
			t.Fatal(err)
		}
	}
	look(t, "/dev/"+d.Name+"p2", func(dir string) {
		for file, want := range map[string]string{
			"grub/grub.cfg":         "menuentry 'x' {\n\tlinux   /vmlinuz root=UUID=1 ro quiet console=ttyS0 nosmt\n\tinitrd /initrd\n}\n",
			"loader/entries/1.conf": "title x\nlinux /vmlinuz\noptions root=UUID=1 ro console=ttyS0 nosmt\n",
		} {
			if b, err := os.ReadFile(filepath.Join(dir, file)); err != nil || string(b) != want {
				t.Errorf("%s: %q, %v", file, b, err)
			}
		}
	})
	look(t, "/dev/"+d.Name+"p1", func(dir string) {
		if b, _ := os.ReadFile(filepath.Join(dir, "etc/default/grub")); string(b) != "GRUB_TIMEOUT=5\nGRUB_CMDLINE_LINUX=\"a=b console=ttyS0 nosmt\"\n" {
			t.Errorf("%q", b)
		}
	})
	if _, err := KernelArgs(t.Context(), c, d.Name, []string{"a\nb"}); err == nil {
		t.Error("an argument with a line end was taken")
	}
}

func TestTheKernelIsReadFromTheSystem(t *testing.T) {
	root := rootFS
	root.files = map[string]string{"etc/os-release": "x", "vmlinuz": "-> boot/vmlinuz-6.1", "boot/vmlinuz-6.1": "in root"}
	d, _ := newDisk(t, 256*mib, root, system{make: []string{"mkfs.ext2", "-q", "-F"}, parts: "-n#:0:+16M", files: map[string]string{"initrd.img": "in boot"}})
	c := Config{MountDir: t.TempDir()}
	for path, want := range map[string]string{"/vmlinuz": "in root", "/boot/initrd.img": "in boot"} {
		var b strings.Builder
		if err := ReadRoot(t.Context(), c, d.Name, path, &b); err != nil || b.String() != want {
			t.Errorf("%s: %q, %v", path, b.String(), err)
		}
	}
	if err := ReadRoot(t.Context(), c, d.Name, "/none", &strings.Builder{}); err == nil {
		t.Error("a file that is not there was read")
	}
}

// TestADocumentComesFromTheNextInstance holds for a machine whose instance is gone when its disk is written.
func TestADocumentComesFromTheNextInstance(t *testing.T) {
	o := newOffice(t)
	c := Config{Wait: func(context.Context, time.Duration) error { return nil }}
	gone := map[string]string{"user-data": "http://127.0.0.1:1/user-data"}
	docs, err := c.fetch(t.Context(), gone, map[string][]string{"user-data": {o.URL + "/user-data"}})
	if err != nil || string(docs["user-data"]) != "content of /user-data" {
		t.Errorf("%q, %v", docs["user-data"], err)
	}
	if _, err := c.fetch(t.Context(), gone, nil); err == nil {
		t.Error("it came from nowhere")
	}
}

func TestASeedThatMakesNoSenseIsRefused(t *testing.T) {
	o := newOffice(t)
	for name, s := range map[string]wire.Seed{
		"no documents":             {Kind: wire.SeedNoCloud},
		"a name that leads upward": {Kind: wire.SeedFiles, Documents: o.docs("../etc/passwd")},
		"an absolute name":         {Kind: wire.SeedFiles, Documents: map[string]string{"/etc/passwd": o.URL}},
		"a kind of the future":     {Kind: "cloudbase", Documents: o.docs("a")},
	} {
		var e *inventory.Error
		if _, err := Place(t.Context(), o.config(t), "sda", s); !errors.As(err, &e) || e.Kind != inventory.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if where, err := Place(t.Context(), o.config(t), "sda", wire.Seed{}); where != "" || err != nil {
		t.Errorf("%q, %v", where, err)
	}
}
