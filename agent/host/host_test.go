package host

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
	"golang.org/x/sys/unix"

	"slipway.dev/slipway/inventory"
)

// What depmod wrote, in small.
const (
	depText = `kernel/drivers/net/virtio_net.ko: kernel/drivers/net/net_failover.ko kernel/net/core/failover.ko
kernel/drivers/net/net_failover.ko: kernel/net/core/failover.ko
kernel/net/core/failover.ko:
kernel/drivers/net/ethernet/intel/i40e/i40e.ko.xz:
kernel/drivers/net/ethernet/intel/ixgbe/ixgbe.ko.zst: kernel/drivers/net/mdio.ko
kernel/drivers/net/mdio.ko:
kernel/drivers/gpu/drm/ast/ast.ko:
kernel/fs/fat/vfat.ko: kernel/fs/fat/fat.ko
kernel/fs/fat/fat.ko:
kernel/fs/nls/nls_ascii.ko:
kernel/fs/ext4/ext4.ko:
kernel/loop/a.ko:
kernel/loop/b.ko:
`
	aliasText = `# Aliases extracted from modules themselves.
alias virtio:d00000001v* virtio_net
alias pci:v00008086d00001572sv*sd*bc*sc*i* i40e
alias pci:v00008086d000015[AB][0-9]sv*sd*bc*sc*i* ixgbe
alias pci:v00001A03d00002000sv*sd*bc03sc*i* ast
alias fs-vfat vfat
alias of:N*T*Cexample,nic i40e
`
	softText = `softdep vfat pre: nls_ascii nls-absent
softdep a pre: b
softdep b pre: a
`
)

// kernel makes a folder of modules; insert notes what is loaded.
func kernel(t *testing.T) (m *Modules, loaded *[]string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"modules.dep": depText, "modules.alias": aliasText, "modules.softdep": softText, "modules.builtin": "kernel/fs/ext2/ext2.ko\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	m, err := OpenModules(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	loaded = &[]string{}
	m.insert = func(file string) error {
		name := moduleName(file)
		*loaded = append(*loaded, name)
		switch name {
		case "failover":
			return unix.EEXIST // was loaded before us
		case "mdio":
			return unix.ENOEXEC
		}
		return nil
	}
	return m, loaded
}

func TestModulesAreLoadedAfterWhatTheyNeed(t *testing.T) {
	for _, c := range []struct{ name, module, want, err string }{
		{"by name", "virtio-net", "[failover net_failover virtio_net]", ""},
		{"by alias", "virtio:d00000001v00001AF4", "[failover net_failover virtio_net]", ""},
		{"a file system, and what it softly needs", "fs-vfat", "[nls_ascii fat vfat]", ""},
		{"a built-in one", "ext2", "[]", ""},
		{"a broken one", "ixgbe", "[mdio]", "load module mdio: exec format error"},
		{"one that is not there", "zfs", "[]", "the image has no kernel module zfs"},
		{"two that softly need each other", "a", "[b a]", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, loaded := kernel(t)
			err := m.Load(c.module)
			if got := fmt.Sprint(*loaded); got != c.want {
				t.Errorf("loaded %s, want %s", got, c.want)
			}
			if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("%v, want %q", err, c.err)
			}
			again := m.Load(c.module)
			if fmt.Sprint(again) != fmt.Sprint(err) || fmt.Sprint(*loaded) != c.want {
				t.Errorf("a second time: %v, loaded %v", again, *loaded)
			}
		})
	}
}

func TestDriversAreChosenByDevice(t *testing.T) {
	const x710, vga = "pci:v00008086d00001572sv00001028sd00000000bc02sc00i00", "pci:v00001A03d00002000sv0000sd0000bc03sc00i00"
	for _, c := range []struct {
		name    string
		devices []string
		choices []Driver
		want    string
	}{
		{"network first, no graphics", []string{vga, "virtio:d00000002v00001AF4", x710, "virtio:d00000001v00001AF4"}, nil, "[i40e failover net_failover virtio_net]"},
		{"another driver by id", []string{x710}, []Driver{{"network", "none"}, {"8086:1572", "virtio_net"}}, "[failover net_failover virtio_net]"},
		{"another driver by class", []string{x710, "virtio:d00000001v00001AF4"}, []Driver{{"network", "none"}}, "[failover net_failover virtio_net]"},
		{"graphics by hand", []string{vga}, []Driver{{"1a03:2000", "ast"}}, "[ast]"},
		{"not a modalias at all", []string{"pci:v", "\x00\xff", strings.Repeat("*", 5000)}, nil, "[]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, loaded := kernel(t)
			sys := t.TempDir()
			for i, modalias := range c.devices {
				dir := filepath.Join(sys, "devices", fmt.Sprintf("dev%d", i))
				if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "modalias"), []byte(modalias+"\n"), 0o644)); err != nil {
					t.Fatal(err)
				}
			}
			d := &Devices{Modules: m, Choices: c.choices, Sys: sys}
			if n := d.Coldplug(t.Context()); n != len(c.devices) {
				t.Errorf("%d devices, want %d", n, len(c.devices))
			}
			if got := fmt.Sprint(*loaded); got != c.want {
				t.Errorf("loaded %s, want %s", got, c.want)
			}
		})
	}
}

func TestPatternsMatchAsTheKernelMeansThem(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"pci:v*d00001572*", "pci:v00008086d00001572sv", true},
		{"pci:v*d00001572", "pci:v00008086d00001572sv", false},
		{"usb:v????p*", "usb:v0BDAp8153d", true},
		{"d15[6-8][0-3]", "d1572", true},
		{"d15[6-8][0-3]", "d1592", false},
		{"d[!0-9]", "dx", true},
		{"d[!0-9]", "d1", false},
		{"[", "[", true},
		{"*", "", true},
		{"", "", true},
		{"", "x", false},
	} {
		if got := glob(c.pattern, c.text); got != c.want {
			t.Errorf("glob(%q, %q) = %v", c.pattern, c.text, got)
		}
	}
}

func FuzzGlobAgreesWithItself(f *testing.F) {
	f.Add("pci:v*d[0-3]*", "pci:v00008086d1")
	f.Fuzz(func(t *testing.T, pattern, s string) {
		got := glob(pattern, s)
		if len(pattern) > 4 && got && !glob("*"+pattern+"*", s) {
			t.Errorf("%q fits %q, but not with more room", s, pattern)
		}
		if x := newIndex([]byte(pattern), []byte("alias "+pattern+" m"), nil, []byte(s)); x == nil {
			t.Error("no index")
		}
	})
}

func TestCompressedModules(t *testing.T) {
	want := bytes.Repeat([]byte("\x7fELF module "), 1000)
	var x, z, g bytes.Buffer
	xw, err := xz.NewWriter(&x)
	if err != nil {
		t.Fatal(err)
	}
	zw, err := zstd.NewWriter(&z)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []io.WriteCloser{xw, zw, gzip.NewWriter(&g)} {
		if _, err := w.Write(want); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for name, b := range map[string]*bytes.Buffer{"a.ko.xz": &x, "a.ko.zst": &z, "a.ko.gz": &g} {
		got, err := unpack(name, bytes.NewReader(b.Bytes()))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		if _, err := unpack(name, bytes.NewReader(b.Bytes()[:b.Len()/2])); err == nil {
			t.Errorf("%s: half of it is taken for whole", name)
		}
	}
}

func TestKernelArguments(t *testing.T) {
	for _, c := range []struct {
		name, cmdline string
		want          Arguments
	}{
		{"none", "", Arguments{}},
		{
			"what the boot script gives", "quiet console=ttyS0 slipway.session=http://10.0.0.1/boot/0123/ BOOTIF=01-52-54-00-AA-00-01\n",
			Arguments{Session: "http://10.0.0.1/boot/0123", BootMAC: "52:54:00:aa:00:01"},
		},
		{
			"other instances", "slipway.session=http://10.0.0.1/s slipway.other=http://10.0.0.2/ slipway.other= slipway.other=http://10.0.0.3",
			Arguments{Session: "http://10.0.0.1/s", Others: []string{"http://10.0.0.2", "http://10.0.0.3"}},
		},
		{"a MAC with colons, as iPXE may write it", "BOOTIF=52:54:00:aa:00:01", Arguments{BootMAC: "52:54:00:aa:00:01"}},
		{"a MAC that is none", "BOOTIF=01-00-00-00-00-00-00", Arguments{}},
		{"a shell", "slipway.debug=shell", Arguments{HasShell: true, HasDebug: true}},
		{"more words only", "slipway.debug=log", Arguments{HasDebug: true}},
		{"drivers by hand", "slipway.driver=network=ixgbe slipway.driver=8086:15AB=i40e slipway.driver=x", Arguments{Drivers: []Driver{{"network", "ixgbe"}, {"8086:15ab", "i40e"}}}},
		{"quotes keep blanks", `init="a slipway.session=http://evil/" slipway.session="http://10.0.0.1/s"`, Arguments{Session: "http://10.0.0.1/s"}},
		{"a fixed address", "ip=10.0.0.7::10.0.0.1:255.255.255.0::eth0:none", Arguments{Addresses: []string{"10.0.0.7::10.0.0.1:255.255.255.0::eth0:none"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, ParseArguments(c.cmdline)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFixedAddresses(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"all that there is", "10.0.0.7::10.0.0.1:255.255.252.0:web-1:eth0:none:10.0.0.2:10.0.0.3", "10.0.0.7/22 via 10.0.0.1 dns [10.0.0.2 10.0.0.3]"},
		{"any port", "10.0.0.7:::::", "10.0.0.7/24 via invalid IP dns []"},
		{"another port", "10.0.0.7::10.0.0.1:255.255.255.0::eth1:none", "none"},
		{"DHCP", "dhcp", "none"},
		{"DHCP on a port", ":::::eth0:dhcp", "none"},
		{"nonsense", "::::::::::::::", "none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := "none"
			if l := staticLease([]string{c.value}, "eth0"); l != nil {
				got = fmt.Sprintf("%s via %s dns %v", l.prefix, l.gateway, l.servers)
			}
			if got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

func TestConsolesAreThoseThatTheKernelWritesTo(t *testing.T) {
	const text = "tty0                 -WU (EC p  )    4:1\nttyS1                -W- (E  p  )    4:65\nnetcon0              --- (E     )\n../../etc/x -W- (E)\n"
	if diff := cmp.Diff([]string{"tty0", "ttyS1"}, consoleNames(text)); diff != "" {
		t.Error(diff)
	}
}

func TestLinesForPeople(t *testing.T) {
	var b bytes.Buffer
	log := slog.New(&LineHandler{Out: &b, Since: func() time.Duration { return 1500 * time.Millisecond }})
	log.Debug("unseen")
	log.With("port", "eth0").Warn("no address", "err", inventory.Errorf(inventory.Unavailable, "no DHCP server\x1b[2J answers"), "hint", "")
	log.Error("stop")
	want := "[    1.500] slipway: no address port=eth0 err=\"no DHCP server\\x1b[2J answers\"\n[    1.500] slipway: ERROR: stop\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}

func TestUeventsThatAddADevice(t *testing.T) {
	for _, c := range []struct{ name, event, want string }{
		{"a disk", "add@/devices/x\x00ACTION=add\x00DEVPATH=/devices/x\x00MODALIAS=scsi:t-0x00\x00SEQNUM=1\x00", "scsi:t-0x00"},
		{"a change", "change@/devices/x\x00ACTION=change\x00MODALIAS=scsi:t-0x00\x00", ""},
		{"a device without one", "add@/devices/x\x00ACTION=add\x00", ""},
	} {
		if got := addedDevice([]byte(c.event)); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestDisksAreWaitedForUntilNoMoreTurnUp(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		want  time.Duration
	}{
		{"they are there", map[string]string{"block/sda": ""}, settleFor},
		{"a controller is still starting", map[string]string{"class/nvme/nvme0/state": "connecting\n"}, settleMost},
		{"a controller works", map[string]string{"class/nvme/nvme0/state": "live\n"}, settleFor},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sys := t.TempDir()
				for name, text := range c.files {
					file := filepath.Join(sys, name)
					if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
						t.Fatal(err)
					}
				}
				began := time.Now()
				(&Devices{Sys: sys}).Settle(t.Context())
				if spent := time.Since(began); spent < c.want || spent > c.want+time.Second {
					t.Errorf("waited %s, want %s", spent, c.want)
				}
			})
		})
	}
}
