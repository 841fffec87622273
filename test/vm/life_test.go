package vm

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/bmc/ipmi/ipmitest"
	"slipway.dev/slipway/bmc/redfish/redfishtest"
	"slipway.dev/slipway/images/agentimage"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/lab"
	"slipway.dev/slipway/test/vm/osimage"
	"slipway.dev/slipway/web/client"
	"slipway.dev/slipway/web/wire"
)

// living is a host and the whole life of a server on it: discovered, accepted, inspected, installed for a machine, and
// wiped when the machine goes.
type living struct {
	name     string
	firmware inventory.Firmware
	power    inventory.BMCDriver // "" is a person
	kind     osimage.Kind
	again    bool // a data disk has to stay as it is; make test-long reinstalls it, too
	isLong   bool // only make test-long has the time for it
}

func livings() []living {
	return []living{
		{"life-bios", inventory.BIOS, inventory.Libvirt, osimage.DiskIgnition, true, false},
		{"life-uefi", inventory.UEFI, inventory.Redfish, osimage.DiskCloudInit, false, false},
		{"life-ipmi", inventory.BIOS, inventory.IPMI, osimage.DiskCloudInit, true, true},
		{"life-hand", inventory.BIOS, "", osimage.DiskCloudInit, false, true},
	}
}

// profile is what the hosts of a kind are installed with.
func (l living) profile() string { return "disk-" + string(l.kind) }

const (
	// rootBytes leaves an image room to grow in; dataBytes is small, because it is compared.
	rootBytes = 3 << 30
	bmcUser   = "admin"
	bmcPass   = "s3cret-bmc"
)

// TestTheWholeLifeOfAServer installs and wipes machines by every way to power them, with cloud-init and with Ignition.
// It has a rack of its own, in which accepted hosts are inspected. make test runs two of them, which have both firmwares and both
// systems between them; make test-long runs the other two, and reinstalls machines with both systems.
func TestTheWholeLifeOfAServer(t *testing.T) {
	needVM(t)
	cases := livings()
	disks := map[osimage.Kind]osimage.Disk{}
	for _, kind := range []osimage.Kind{osimage.DiskCloudInit, osimage.DiskIgnition} {
		d, err := osimage.BuildDisk(t.Context(), osImages, kind)
		if err != nil {
			t.Fatal(err)
		}
		disks[kind] = d
	}
	cfg := lab.Config{Out: os.Stderr, Executable: os.Getenv("SLIPWAY_BIN")}
	if cfg.Executable == "" {
		cfg.Executable, _ = filepath.Abs("../../bin/slipway") // make test-vm has built it
	}
	empty := writeDisk(t, t.TempDir(), "empty.raw", nil)
	if err := os.Truncate(empty, rootBytes); err != nil {
		t.Fatal(err)
	}
	cfg.Specs = lab.Specs(len(cases))
	for i, c := range cases {
		s := &cfg.Specs[i]
		s.Name, s.Firmware, s.MemoryMiB, s.Disk, s.NoPXEv6 = c.name, c.firmware, 1024, empty, c.firmware == inventory.UEFI
	}
	l, err := lab.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(explain(err))
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	importAgent(t, l, filepath.Join(filepath.Dir(cfg.Executable), "slipway-agent"))
	for kind, d := range disks {
		importDisk(t, l, kind, d)
	}
	t.Run("group", func(t *testing.T) { // ends when all machines have
		for i, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				if c.isLong {
					needLong(t)
				}
				t.Parallel()
				c.live(t, l, l.Rack.Machines()[i])
			})
		}
	})
}

// importAgent makes the agent's image from the installed kernel package, and imports it.
func importAgent(t *testing.T, l *lab.Lab, program string) {
	t.Helper()
	var out bytes.Buffer
	made, err := agentimage.Build(t.Context(), agentimage.Options{Agent: program, Out: t.TempDir()}, &out)
	if err != nil {
		t.Fatalf("%s\n%s", explain(err), out.String())
	}
	if size := made.KernelBytes + made.InitrdBytes; size > 60e6 {
		t.Errorf("the agent's image has %d MB; 60 are allowed", size/1e6)
	}
	bring(t, l, client.ImportRequest{
		Name: inventory.AgentImage(inventory.X8664), OS: inventory.AgentOS, Release: "1",
		Files: []client.ImportFile{
			{Role: inventory.RoleKernel, Name: "kernel", Source: made.KernelPath}, {Role: inventory.RoleInitrd, Name: "initrd", Source: made.InitrdPath},
		},
	})
}

// importDisk imports a disk image with its profile.
func importDisk(t *testing.T, l *lab.Lab, kind osimage.Kind, d osimage.Disk) {
	t.Helper()
	config := inventory.ImageConfig{Format: "cloud-init", Version: "22.4.2"}
	if kind == osimage.DiskIgnition {
		config = inventory.ImageConfig{Format: "ignition", Version: "3.3.0"}
	}
	name := "disk-" + string(kind)
	bring(t, l, client.ImportRequest{
		Name: name, OS: "custom", Release: "12", Arch: inventory.X8664, Configs: []inventory.ImageConfig{config},
		Files: []client.ImportFile{{Role: inventory.RoleDisk, Name: "disk.raw.zst", Source: absolute(t, d.Packed)}},
	})
	p := inventory.Profile{Name: name, Image: name, Config: `
users:
- name: ops
  shell: /bin/bash
files:
- path: /etc/slipway-life
  mode: "0644"
  text: |
    it lives
commands:
- {name: say, phase: post-bootstrap, shell: 'echo "LIFE $(hostname) $(cat /etc/slipway-life)" >/dev/ttyS0'}
`}
	if _, err := l.API.Profiles.Put(t.Context(), name, p); err != nil {
		t.Fatal(explain(err))
	}
}

// bring imports an image and waits for it.
func bring(t *testing.T, l *lab.Lab, r client.ImportRequest) {
	t.Helper()
	job, err := l.API.Import(t.Context(), r)
	if err != nil {
		t.Fatal(explain(err))
	}
	for job, err = range l.API.WatchJob(t.Context(), job.ID) {
		if err != nil {
			t.Fatal(explain(err))
		}
	}
	if job.State != "done" {
		t.Fatalf("import of %s: %s\n%s", r.Name, job.Error, job.Hint)
	}
}

// live is the whole life.
func (l living) live(t *testing.T, r *lab.Lab, v *lab.Machine) {
	var data *dataDisk
	if l.again {
		data = attachData(t, v)
	}
	m := start(t, r, l.name)
	m.until("it is discovered", 2*time.Minute, func(ctx context.Context) bool {
		_, err := m.api.Hosts.Get(ctx, string(m.MAC))
		return err == nil
	})
	host := "host-" + strings.TrimPrefix(l.name, "life-")
	if _, err := m.api.Hosts.Patch(t.Context(), string(m.MAC), wire.HostPatch{Name: &host}); err != nil {
		t.Fatal(explain(err))
	}
	l.connect(t, r, v, host)
	if _, err := m.api.Hosts.Accept(t.Context(), host); err != nil {
		t.Fatal(explain(err))
	}
	l.inspected(t, m, host)
	l.installed(t, m, v, host, "web-"+l.name, l.create)
	if l.again && os.Getenv("SLIPWAY_LONG") != "" {
		l.reinstalled(t, m, v, host)
		data.compare(t)
	}
	l.deleted(t, m, v, host)
	if l.again {
		data.compare(t)
	}
}

// connect says how the host is powered.
func (l living) connect(t *testing.T, r *lab.Lab, v *lab.Machine, host string) {
	t.Helper()
	b := client.SetBMC{Driver: l.power, Username: bmcUser, Password: bmcPass}
	switch l.power {
	case "":
		return
	case inventory.Libvirt:
		b.Address, b.System, b.Username, b.Password = r.Rack.Controller(), v.Domain(), "", ""
	case inventory.Redfish:
		b.Address, b.InsecureSkipVerify = redfishOf(t, r, v), true
	case inventory.IPMI:
		b.Address = ipmiOf(t, v)
	}
	if _, err := r.API.Hosts.SetBMC(t.Context(), host, b); err != nil {
		t.Fatal(explain(err))
	}
}

// inspected waits until the agent has told what the host is made of.
func (l living) inspected(t *testing.T, m machine, host string) {
	t.Helper()
	began := time.Now()
	m.until("it is inspected", 6*time.Minute, func(ctx context.Context) bool {
		h, err := m.api.Hosts.Get(ctx, host)
		return err == nil && h.State == inventory.Available
	})
	i, err := m.api.Hosts.Hardware(t.Context(), host, 0)
	if err != nil {
		t.Fatal(explain(err))
	}
	hw := i.Hardware
	isUEFI := l.firmware == inventory.UEFI
	hasRoot := slices.ContainsFunc(hw.Disks, func(d inventory.Disk) bool { return d.SizeBytes == rootBytes })
	if !hasRoot || hw.System.Serial != m.Serial || hw.CPU.Threads == 0 || len(hw.Ports) != 1 || hw.Ports[0].MAC != m.MAC ||
		(hw.Firmware.Kind == inventory.UEFI) != isUEFI || isUEFI && len(hw.Firmware.BootOrder) == 0 {
		t.Errorf("what the agent found: %+v", hw)
	}
	t.Logf("%s: inspected %.0f s after it was accepted", l.name, time.Since(began).Seconds())
}

func (l living) create(ctx context.Context, m machine, host, name string) error {
	want := inventory.Machine{Name: name, Profile: l.profile(), Placement: inventory.Placement{Host: host}}
	if l.again {
		want.KeepDisks = []inventory.DiskHint{{Serial: dataSerial}}
	}
	_, err := m.api.Machines.Create(ctx, want)
	return err
}

// installed asks for an installation, and waits until the system that was written runs with its configuration.
func (l living) installed(t *testing.T, m machine, v *lab.Machine, host, name string, ask func(context.Context, machine, string, string) error) {
	t.Helper()
	before, _ := m.Console()
	began := time.Now()
	if err := ask(t.Context(), m, host, name); err != nil {
		t.Fatal(explain(err))
	}
	reason := ""
	m.until("it runs", 20*time.Minute, func(ctx context.Context) bool {
		l.lendAHand(t, m, v, host)
		w, err := m.api.Machines.Get(ctx, name)
		if err == nil && w.Phase == inventory.MachineFailed {
			t.Fatalf("%s has failed: %s (%s)", name, w.Reason, w.Hint)
		}
		if err == nil && w.Reason != reason {
			reason = w.Reason
			t.Logf("%s %4.0f s: %s: %s", l.name, time.Since(began).Seconds(), w.Phase, reason)
		}
		return err == nil && w.Phase == inventory.MachineRunning
	})
	h, err := m.api.Hosts.Get(t.Context(), host)
	if err != nil || h.State != inventory.Active || h.Machine != name || !h.IsDirty {
		t.Errorf("host %+v, %v", h, err)
	}
	want := "LIFE " + name + " it lives"
	m.until("its console says "+want, time.Minute, func(context.Context) bool {
		console, _ := m.Console()
		return len(console) >= len(before) && bytes.Contains(console[len(before):], []byte(want))
	})
	t.Logf("%s: running %.0f s after it was asked for", l.name, time.Since(began).Seconds())
}

// lendAHand is the person of a host without controller: switches it on or restarts it when the host's issue asks for that.
func (l living) lendAHand(t *testing.T, m machine, v *lab.Machine, host string) {
	if l.power != "" {
		return
	}
	issues, err := m.api.Issues.List(t.Context(), client.Query{Host: host})
	if err != nil || !slices.ContainsFunc(issues.Items, func(i inventory.Issue) bool { return i.Type == inventory.IssueManual }) {
		return
	}
	t.Logf("%s: a person restarts it", l.name)
	if err := errors.Join(v.Stop(), v.Start()); err != nil {
		t.Fatal(err)
	}
	m.until("the task is done", 5*time.Minute, func(ctx context.Context) bool {
		issues, err := m.api.Issues.List(ctx, client.Query{Host: host})
		return err == nil && !slices.ContainsFunc(issues.Items, func(i inventory.Issue) bool { return i.Type == inventory.IssueManual })
	})
}

// reinstalled installs the machine anew on its host.
func (l living) reinstalled(t *testing.T, m machine, v *lab.Machine, host string) {
	t.Helper()
	claim := func() inventory.ClaimID {
		h, err := m.api.Hosts.Get(t.Context(), host)
		if err != nil {
			t.Fatal(err)
		}
		return h.ClaimID
	}
	before := claim()
	l.installed(t, m, v, host, "web-"+l.name, func(ctx context.Context, m machine, _, name string) error {
		_, err := m.api.Machines.Reinstall(ctx, name)
		return err
	})
	if after := claim(); after == before || after == "" {
		t.Errorf("claim %s after the reinstall, %s before", after, before)
	}
}

// dataDisk is a second disk whose content has to outlive its machine.
type dataDisk struct {
	path   string
	sha256 [32]byte
}

// dataSerial is how the data disk is told from the root disk.
const dataSerial = "DATA0001"

// attachData gives a machine that is off a second, smaller disk full of random bytes.
func attachData(t *testing.T, v *lab.Machine) *dataDisk {
	t.Helper()
	content := make([]byte, 16<<20)
	_, _ = rand.Read(content)
	d := &dataDisk{path: filepath.Join(filepath.Dir(v.DiskPath()), v.Name+"-data.raw"), sha256: sha256.Sum256(content)}
	if err := os.WriteFile(d.path, content, 0o644); err != nil {
		t.Fatal(err)
	}
	device := filepath.Join(t.TempDir(), "data.xml")
	text := fmt.Sprintf(`<disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='%s'/><target dev='vdb' bus='virtio'/><serial>%s</serial></disk>`, d.path, dataSerial)
	if err := os.WriteFile(device, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := virsh("attach-device", v.Domain(), device, "--config"); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *dataDisk) compare(t *testing.T) {
	t.Helper()
	content, err := os.ReadFile(d.path)
	if err != nil {
		t.Fatal(err)
	}
	if sha256.Sum256(content) != d.sha256 {
		t.Error("the data disk is not as it was, byte for byte")
	}
}

// deleted ends the machine and reads the disk back.
func (l living) deleted(t *testing.T, m machine, v *lab.Machine, host string) {
	t.Helper()
	began := time.Now()
	if _, _, err := m.api.Machines.Remove(t.Context(), "web-"+l.name, false); err != nil {
		t.Fatal(explain(err))
	}
	m.until("its host is available again", 15*time.Minute, func(ctx context.Context) bool {
		l.lendAHand(t, m, v, host)
		h, err := m.api.Hosts.Get(ctx, host)
		if err == nil && h.State == inventory.Failed {
			t.Fatalf("%s has failed: %s", host, h.StateReason)
		}
		return err == nil && h.State == inventory.Available
	})
	h, err := m.api.Hosts.Get(t.Context(), host)
	if err != nil || h.IsDirty || h.ClaimID != "" || h.Machine != "" {
		t.Errorf("host %+v, %v", h, err)
	}
	if _, err := m.api.Machines.Get(t.Context(), "web-"+l.name); err == nil {
		t.Error("the machine is still there")
	}
	reports, err := m.api.Hosts.Reports(t.Context(), host)
	if err != nil || !slices.ContainsFunc(reports.Items, func(r inventory.Report) bool { return r.Kind == inventory.ReportWipe }) {
		t.Errorf("no report of the wipe among %+v, %v", reports.Items, err)
	}
	for _, b := range [][2]int64{{0, 100 << 20}, {rootBytes - 100<<20, 100 << 20}} {
		if off := notZero(t, v.DiskPath(), b[0], b[1]); off >= 0 {
			t.Errorf("byte %d of the disk is not wiped", off)
		}
	}
	t.Logf("%s: wiped and available %.0f s after it was deleted", l.name, time.Since(began).Seconds())
}

// notZero returns the offset of the first byte in a piece of a file that is not zero, -1 for none.
func notZero(t *testing.T, path string, from, n int64) int64 {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.NewSectionReader(f, from, n))
	if err != nil {
		t.Fatal(err)
	}
	if i := slices.IndexFunc(b, func(c byte) bool { return c != 0 }); i >= 0 {
		return from + int64(i)
	}
	return -1
}

// domain is a libvirt domain behind a Redfish service.
type domain struct{ name string }

func virsh(args ...string) (string, error) {
	out, err := exec.Command("virsh", append([]string{"--connect", "qemu:///system", "--quiet"}, args...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("virsh %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

// IsOn implements redfishtest.Machine.
func (d domain) IsOn() (bool, error) {
	state, err := virsh("domstate", d.name)
	return state == "running", err
}

// Do implements redfishtest.Machine.
func (d domain) Do(o redfishtest.Order) error {
	isOn, err := d.IsOn()
	if err != nil {
		return err
	}
	switch {
	case o == redfishtest.On && !isOn:
		_, err = virsh("start", d.name)
	case (o == redfishtest.Off || o == redfishtest.Shutdown) && isOn:
		_, err = virsh("destroy", d.name)
	case o == redfishtest.Reset && isOn, o == redfishtest.Cycle && isOn:
		_, err = virsh("reset", d.name)
	}
	return err
}

// SetBoot implements redfishtest.Machine: the rack's machines boot from the network first in any case.
func (d domain) SetBoot(redfishtest.Boot) error { return nil }

// Insert implements redfishtest.Machine.
func (d domain) Insert(string) error { return errors.New("the rack's machines have no virtual drive") }

// redfishOf starts a Redfish service for the machine where the server reaches it.
func redfishOf(t *testing.T, r *lab.Lab, v *lab.Machine) string {
	t.Helper()
	s := redfishtest.New(redfishtest.Options{
		Dialect: redfishtest.IDRAC, User: bmcUser, Password: bmcPass, Systems: []redfishtest.System{{Machine: domain{v.Domain()}}},
	})
	var listener net.Listener
	if err := r.Rack.Do(func() (err error) {
		listener, err = net.Listen("tcp4", "127.0.0.1:0")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: s.Handler(), ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close(); <-done })
	return "http://" + listener.Addr().String()
}

// ipmiOf starts the real ipmi_sim for the machine where the server reaches it.
func ipmiOf(t *testing.T, v *lab.Machine) string {
	t.Helper()
	script := filepath.Join(t.TempDir(), "chassis")
	text := strings.ReplaceAll(`#!/bin/sh
v() { virsh --connect qemu:///system --quiet "$@"; }
case "$1 $2" in
"get power") if [ "$(v domstate DOMAIN)" = running ]; then echo power:1; else echo power:0; fi ;;
"set power") if [ "$3" = 1 ]; then [ "$(v domstate DOMAIN)" = running ] || v start DOMAIN; else v destroy DOMAIN || :; fi ;;
"set reset") v reset DOMAIN ;;
"set shutdown") v destroy DOMAIN ;;
"get boot") echo "boot:$(cat BOOTFILE 2>/dev/null || echo none)" ;;
"set boot") echo "$3" >BOOTFILE ;;
"set identify") : ;;
*) exit 1 ;;
esac
`, "DOMAIN", v.Domain())
	text = strings.ReplaceAll(text, "BOOTFILE", filepath.Join(t.TempDir(), "boot"))
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return ipmitest.Start(t, ipmitest.Options{Addr: "127.0.0.1:9623", User: bmcUser, Password: bmcPass, Chassis: script, NetNS: "slipway-lab"}).Addr
}
