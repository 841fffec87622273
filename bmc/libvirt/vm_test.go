package libvirt_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/bmc/bmctest"
	"slipway.dev/slipway/inventory"
)

// daemon is a libvirtd of the test's own.
type daemon struct {
	dir string
	n   int // domains made
}

// startDaemon starts one in namespaces that end with the test.
func startDaemon(t *testing.T) *daemon {
	t.Helper()
	if os.Getenv("SLIPWAY_VM") != "1" {
		t.Skip("needs root, libvirtd and QEMU; run with SLIPWAY_VM=1")
	}
	// The path of a socket has room for 107 characters, which t.TempDir may be too long for.
	dir, err := os.MkdirTemp("", "slv")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	script, err := filepath.Abs("testdata/daemon.sh")
	if err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", script, dir)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID, Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // ends the first process of the namespace, and all others with it
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = out.Close()
		if text, err := os.ReadFile(filepath.Join(dir, "log")); err == nil && t.Failed() {
			t.Logf("libvirtd:\n%s", text[max(0, len(text)-2000):])
		}
	})
	d := &daemon{dir: dir}
	eventually(t, "libvirtd answers", func() bool { _, err := d.tryVirsh("list"); return err == nil })
	return d
}

func (d *daemon) address() string { return "unix://" + d.dir + "/libvirt-sock" }

func (d *daemon) tryVirsh(args ...string) (string, error) {
	out, err := exec.Command("virsh", append([]string{"-q", "-c", "qemu+unix:///system?socket=" + d.dir + "/libvirt-sock"}, args...)...).CombinedOutput()
	return string(out), err
}

func (d *daemon) virsh(t *testing.T, args ...string) string {
	t.Helper()
	out, err := d.tryVirsh(args...)
	if err != nil {
		t.Fatalf("virsh %v: %v\n%s", args, err, out)
	}
	return out
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("still not so after 30s: %s", what)
		}
	}
}

// machine is how a test's domain differs from the others.
type machine struct {
	os    string // in os
	disk  string // in the disk
	nic   string // in the NIC
	isOn  bool
	extra string // metadata
	// device is one more. A screen takes the firmware's words away from the serial console.
	device string
}

// secret is a device whose definition holds a password, which must survive a change of the boot order.
const secret = "<graphics type='vnc' port='-1' autoport='yes' passwd='s3cr3t'/>"

// define makes a domain that sits in its firmware.
func (d *daemon) define(t *testing.T, m machine) string {
	t.Helper()
	d.n++
	name := fmt.Sprintf("m%d", d.n)
	disk := filepath.Join(d.dir, name+".img")
	if err := os.WriteFile(disk, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(disk, 10<<20); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(d.dir, name+".xml")
	text := fmt.Sprintf(`<domain type='qemu'><name>%s</name>%s<memory unit='MiB'>32</memory><vcpu>1</vcpu>
<sysinfo type='smbios'><system><entry name='manufacturer'>Slipway</entry><entry name='serial'>S-%s</entry></system></sysinfo>
<os><type arch='x86_64' machine='q35'>hvm</type>%s<bios useserial='yes'/><smbios mode='sysinfo'/></os><features><acpi/></features>
<on_reboot>restart</on_reboot>
<devices><emulator>/usr/bin/qemu-system-x86_64</emulator>
<disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='%s'/><target dev='vda' bus='virtio'/>%s</disk>
<disk type='file' device='cdrom'><target dev='sda' bus='sata'/><readonly/></disk>
<interface type='user'><mac address='52:54:00:aa:00:01'/><model type='virtio'/>%s</interface>
%s
<serial type='pty'><target port='0'/></serial>
</devices></domain>`, name, m.extra, name, m.os, disk, m.disk, m.nic, m.device)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	d.virsh(t, "define", path)
	if m.isOn {
		d.virsh(t, "start", name)
	}
	t.Cleanup(func() { _, _ = d.tryVirsh("destroy", name) })
	return name
}

// description is the inactive definition with its secrets.
func (d *daemon) description(t *testing.T, name string) string {
	t.Helper()
	return d.virsh(t, "dumpxml", "--inactive", "--security-info", name)
}

func TestDomainsPassTheConformanceSuite(t *testing.T) {
	d := startDaemon(t)
	bmctest.Run(t, bmctest.Case{
		Open: func(t *testing.T, is inventory.PowerState) bmc.Driver {
			return openAt(t, d.address(), d.define(t, machine{os: "<boot dev='hd'/>", device: secret, isOn: is == inventory.PowerOn}))
		},
		Within:          20 * time.Second,
		Password:        "s3cr3t",
		IgnoresShutdown: true,
		Boots: []bmc.Boot{
			{Device: bmc.PXE}, {Device: bmc.PXE, Mode: inventory.BIOS, IsPersistent: true}, {Device: bmc.Disk}, {Device: bmc.Virtual},
		},
		RefusedBoots: []bmc.Boot{{Device: bmc.PXE, Mode: inventory.UEFI}, {Device: bmc.HTTP}, {Device: bmc.Setup}},
		UsesUpBoot:   true,
		MediaURL:     "http://192.0.2.1/install.iso?a=1",
		Missing:      func(t *testing.T) bmc.Driver { return openAt(t, d.address(), "nobody") },
		Unreachable:  func(t *testing.T) bmc.Driver { return openAt(t, "unix://"+d.dir+"/none", "m1") },
	})
}

func TestDomainsAreLeftAsFound(t *testing.T) {
	d := startDaemon(t)
	for name, m := range map[string]machine{
		"a list in os":         {os: "<boot dev='hd'/><boot dev='network'/>"},
		"no order":             {},
		"orders of devices":    {disk: "<boot order='3'/>", nic: "<boot order='7'/>"},
		"metadata of somebody": {os: "<boot dev='hd'/>", extra: "<metadata><x:y xmlns:x='urn:x'>z</x:y></metadata>"},
	} {
		t.Run(name, func(t *testing.T) {
			m.device = secret
			name := d.define(t, m)
			before := d.description(t, name)
			if !strings.Contains(before, "s3cr3t") {
				t.Fatalf("the definition holds no secret:\n%s", before)
			}
			drv := openAt(t, d.address(), name)
			b := drv.(bmc.Booter)
			for _, step := range []struct {
				what string
				do   func() error
			}{
				{"set and take back", func() error { return b.SetBoot(t.Context(), bmc.Boot{Device: bmc.PXE}) }},
				{"", func() error { return b.SetBoot(t.Context(), bmc.Boot{Device: bmc.None}) }},
				{"persistent and taken back", func() error {
					return b.SetBoot(t.Context(), bmc.Boot{Device: bmc.Virtual, IsPersistent: true})
				}},
				{"", func() error { return b.SetBoot(t.Context(), bmc.Boot{Device: bmc.None}) }},
				{"changed twice and used", func() error { return b.SetBoot(t.Context(), bmc.Boot{Device: bmc.Virtual}) }},
				{"", func() error { return b.SetBoot(t.Context(), bmc.Boot{Device: bmc.PXE}) }},
				{"", func() error { return drv.SetPower(t.Context(), bmc.On) }},
			} {
				if err := step.do(); err != nil {
					t.Fatalf("%s: %v", step.what, err)
				}
			}
			live := d.virsh(t, "dumpxml", name)
			if nic := live[strings.Index(live, "<interface"):]; !strings.Contains(nic[:strings.Index(nic, "</interface")], "<boot order='1'/>") {
				t.Errorf("the machine was not started from its NIC:\n%s", nic)
			}
			if diff := cmp.Diff(before, d.description(t, name)); diff != "" {
				t.Errorf("the definition is not as found:\n%s", diff)
			}
		})
	}
}

// TestAnOverrideIsUsedUpOnce follows overrides through starts by others, resets, and our own restarts.
func TestAnOverrideIsUsedUpOnce(t *testing.T) {
	d := startDaemon(t)
	name := d.define(t, machine{os: "<boot dev='hd'/>"})
	before := d.description(t, name)
	open := func() (bmc.Driver, bmc.Booter) { drv := openAt(t, d.address(), name); return drv, drv.(bmc.Booter) }
	check := func(what string, want bmc.Device) {
		t.Helper()
		_, b := open()
		if got, err := b.Boot(t.Context()); err != nil || got.Device != want {
			t.Fatalf("%s: the override is %q (%v); want %q", what, got.Device, err, want)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	drv, b := open()
	must(b.SetBoot(t.Context(), bmc.Boot{Device: bmc.PXE}))
	check("set, not started", bmc.PXE)
	d.virsh(t, "start", name) // by somebody else, as if we were away
	check("started by somebody else", bmc.None)
	if diff := cmp.Diff(before, d.description(t, name)); diff != "" {
		t.Errorf("the definition is not as found:\n%s", diff)
	}
	must(b.SetBoot(t.Context(), bmc.Boot{Device: bmc.Virtual}))
	check("set while it runs", bmc.Virtual)
	must(drv.SetPower(t.Context(), bmc.Reset))
	check("reset", bmc.None)
	// The machine that was started with the override has the former order for its own next restart.
	if got := d.virsh(t, "qemu-monitor-command", name, `{"execute":"qom-get","arguments":{"path":"/machine/peripheral/virtio-disk0","property":"bootindex"}}`); !strings.Contains(got, `"return":1`) {
		t.Errorf("the disk's bootindex is %s; want 1", got)
	}
	if got := d.virsh(t, "qemu-monitor-command", name, `{"execute":"qom-get","arguments":{"path":"/machine/peripheral/sata0-0-0","property":"bootindex"}}`); !strings.Contains(got, `"return":-1`) {
		t.Errorf("the CD-ROM's bootindex is %s; want -1", got)
	}
}

func TestAKilledDaemonIsUnavailableAndThenUsedAgain(t *testing.T) {
	d := startDaemon(t)
	name := d.define(t, machine{isOn: true})
	drv := openAt(t, d.address(), name)
	if _, err := drv.Power(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.kill(t)
	eventually(t, "the loss is noticed, as unavailable", func() bool {
		_, err := drv.Power(t.Context())
		if err != nil && bmc.KindOf(err) != inventory.Unavailable {
			t.Fatalf("kind %s: %v", bmc.KindOf(err), err)
		}
		return err != nil
	})
	eventually(t, "the driver has connected again, and the machine is still on", func() bool {
		is, err := drv.Power(t.Context())
		return err == nil && is == inventory.PowerOn
	})
}

// kill ends libvirtd at once: the child of the namespace's first process that is called so.
func (d *daemon) kill(t *testing.T) {
	t.Helper()
	found, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range found {
		line, err := os.ReadFile(path)
		if err == nil && bytes.HasPrefix(line, []byte("libvirtd\x00-f\x00"+d.dir+"/")) {
			var pid int
			if _, err := fmt.Sscanf(path, "/proc/%d/cmdline", &pid); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatal("our libvirtd is not there")
}

func TestTransientDomainsAreRefused(t *testing.T) {
	d := startDaemon(t)
	name := d.define(t, machine{isOn: true})
	d.virsh(t, "undefine", name)
	drv := openAt(t, d.address(), name)
	if is, err := drv.Power(t.Context()); err != nil || is != inventory.PowerOn {
		t.Errorf("%s, %v", is, err)
	}
	for _, err := range []error{drv.SetPower(t.Context(), bmc.Off), drv.(bmc.Booter).SetBoot(t.Context(), bmc.Boot{Device: bmc.PXE})} {
		if bmc.KindOf(err) != inventory.Invalid {
			t.Errorf("kind %s: %v", bmc.KindOf(err), err)
		}
	}
}

func TestInventoryMediaAndUUID(t *testing.T) {
	d := startDaemon(t)
	name := d.define(t, machine{isOn: true})
	uuid := strings.TrimSpace(d.virsh(t, "domuuid", name))
	drv := openAt(t, d.address(), uuid)
	inv, err := drv.(bmc.InventoryReader).Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h := inv.Hardware
	want := inventory.Hardware{
		CollectedAt: h.CollectedAt, Source: "bmc", MemoryBytes: 32 << 20,
		System:   inventory.System{Manufacturer: "Slipway", Serial: "S-" + name, UUID: uuid},
		Firmware: inventory.FirmwareInfo{Kind: inventory.BIOS},
		CPU:      inventory.CPU{Arch: inventory.X8664, Cores: 1, Threads: 1},
		Disks:    []inventory.Disk{{Name: "vda", Transport: "virtio", Model: name + ".img", SizeBytes: 10 << 20}},
		Ports:    []inventory.Port{{Name: "nic0", MAC: "52:54:00:aa:00:01"}},
	}
	if diff := cmp.Diff(want, h); diff != "" {
		t.Error(diff)
	}
	iso := filepath.Join(d.dir, "a.iso")
	if err := os.WriteFile(iso, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	m := drv.(bmc.MediaMounter)
	if err := m.InsertMedia(t.Context(), "file://"+iso); err != nil {
		t.Fatal(err)
	}
	if got := d.virsh(t, "domblklist", name); !strings.Contains(got, iso) {
		t.Errorf("the running machine has\n%s", got)
	}
	if err := m.EjectMedia(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := d.virsh(t, "domblklist", name); strings.Contains(got, iso) {
		t.Errorf("after eject, the running machine has\n%s", got)
	}
}

// readUntil reads a console until it has shown a text, and returns all that it has shown.
func readUntil(t *testing.T, rw io.ReadWriteCloser, text string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = rw.Close() })
	defer stop()
	var seen bytes.Buffer
	for b := make([]byte, 1); !strings.Contains(seen.String(), text); { // one by one: the rest is for the next reader
		n, err := rw.Read(b)
		seen.Write(b[:n])
		if err != nil {
			t.Fatalf("%v while waiting for %q after %q", err, text, seen.String()[max(0, seen.Len()-500):])
		}
	}
	return seen.String()
}

// TestARestartFollowsTheFormerOrder asks the firmware itself: it boots from the NIC once, and from the disk when the
// machine restarts without being switched off.
func TestARestartFollowsTheFormerOrder(t *testing.T) {
	d := startDaemon(t)
	name := d.define(t, machine{os: "<boot dev='hd'/>"})
	drv := openAt(t, d.address(), name)
	if err := drv.(bmc.Booter).SetBoot(t.Context(), bmc.Boot{Device: bmc.PXE}); err != nil {
		t.Fatal(err)
	}
	if err := drv.SetPower(t.Context(), bmc.On); err != nil {
		t.Fatal(err)
	}
	rw, err := drv.(bmc.Console).Console(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer rw.Close()
	readUntil(t, rw, "No more network devices") // iPXE has tried
	d.virsh(t, "reset", name)
	readUntil(t, rw, "SeaBIOS")
	readUntil(t, rw, "Booting from ")
	if first := readUntil(t, rw, "\n"); !strings.HasPrefix(first, "Hard Disk") {
		t.Errorf("after the restart the firmware tries %q first; want the disk", first)
	}
}

func TestTheConsoleShowsTheFirmwareAndListens(t *testing.T) {
	d := startDaemon(t)
	name := d.define(t, machine{isOn: true, os: "<boot dev='hd'/><bootmenu enable='yes' timeout='30000'/>"})
	drv := openAt(t, d.address(), name)
	// There is no reset here: SeaBIOS hangs when it is reset in its first moments.
	rw, err := drv.(bmc.Console).Console(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer rw.Close()
	readUntil(t, rw, "Press ESC for boot menu")
	if _, err := io.WriteString(rw, "\x1b"); err != nil {
		t.Fatal(err)
	}
	readUntil(t, rw, "Select boot device")
	d.virsh(t, "destroy", name)
	if _, err := drv.(bmc.Console).Console(t.Context()); err == nil || bmc.KindOf(err) == inventory.Internal {
		t.Errorf("a console of a machine that is off: %v", err)
	}
}
