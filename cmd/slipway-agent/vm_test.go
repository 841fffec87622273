package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/images/ramdisk"
)

// forwardEnv makes this test program carry one connection of the machine's network to the door, for QEMU.
const forwardEnv = "SLIPWAY_TEST_FORWARD"

func TestMain(m *testing.M) {
	if to := os.Getenv(forwardEnv); to != "" {
		conn, err := net.Dial("tcp", to)
		if err != nil {
			os.Exit(1)
		}
		go func() {
			_, _ = io.Copy(conn, os.Stdin)
			_ = conn.(*net.TCPConn).CloseWrite()
		}()
		_, _ = io.Copy(os.Stdout, conn)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// door hands out tasks one after the other and keeps the reports.
type door struct {
	mu      sync.Mutex
	tasks   []wire.Task
	reports []wire.Report
}

func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch r.URL.Path {
	case "/s/1/agent/task":
		task := wire.Task{Kind: wire.Wait, AgainSeconds: 1}
		if len(d.tasks) > 0 {
			task = d.tasks[0]
		}
		_ = json.NewEncoder(w).Encode(task)
	case "/s/1/agent/report":
		var report wire.Report
		if err := json.NewDecoder(r.Body).Decode(&report); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		d.reports = append(d.reports, report)
		if report.State == wire.Done || report.State == wire.Failed {
			d.tasks = d.tasks[min(1, len(d.tasks)):]
		}
	default:
		http.NotFound(w, r)
	}
}

func (d *door) report(task string, state wire.State) *wire.Report {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, r := range d.reports {
		if r.Task == task && r.State == state {
			return &d.reports[i]
		}
	}
	return nil
}

// image makes the RAM disk of this agent and Debian's kernel.
func image(t *testing.T) (kernel, initrd string) {
	t.Helper()
	debs, err := filepath.Glob("../../build/kernel/linux-image-*.deb")
	if err != nil || len(debs) == 0 {
		t.Skip("needs Debian's kernel package in build/kernel: cd build/kernel && apt-get download linux-image-<version>-amd64")
	}
	dir := t.TempDir()
	agent := filepath.Join(dir, "init")
	cmd := exec.Command("go", "build", "-ldflags", "-s -w -X main.version=test", "-o", agent, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	program, err := os.ReadFile(agent)
	if err != nil {
		t.Fatal(err)
	}
	k, err := ramdisk.FromDebs(t.Context(), t.TempDir(), debs[0])
	if err != nil {
		t.Fatal(err)
	}
	kernel, initrd = filepath.Join(dir, "vmlinuz"), filepath.Join(dir, "initrd")
	f, err := os.Create(initrd)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	summary, err := ramdisk.Write(t.Context(), f, ramdisk.Recipe{Kernel: k, Agent: program, Compression: ramdisk.Zstd})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(kernel, k.Image, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Logf("agent %d KB, RAM disk %d KB with %d modules", len(program)/1000, summary.PackedBytes/1000, summary.ModuleN)
	return kernel, initrd
}

// TestTheAgentBootsAsInitAndDoesItsTasks is the whole way on a real kernel: PID 1, drivers, DHCP, hello, inspection,
// burn-in, a BMC account, power off.
func TestTheAgentBootsAsInitAndDoesItsTasks(t *testing.T) {
	if os.Getenv("SLIPWAY_VM") != "1" {
		t.Skip("boots an emulated machine, which takes two minutes; run it with: make test-vm")
	}
	for _, c := range []struct {
		firmware string
		args     []string
	}{
		{"bios", nil},
		{"uefi", []string{"-drive", "if=pflash,format=raw,unit=0,readonly=on,file=/usr/share/OVMF/OVMF_CODE_4M.fd"}},
	} {
		t.Run(c.firmware, func(t *testing.T) {
			if c.args != nil {
				vars := filepath.Join(t.TempDir(), "vars")
				text, err := os.ReadFile("/usr/share/OVMF/OVMF_VARS_4M.fd")
				if err != nil {
					t.Skip("needs OVMF: apt-get install ovmf")
				}
				if err := os.WriteFile(vars, text, 0o644); err != nil {
					t.Fatal(err)
				}
				c.args = append(c.args, "-drive", "if=pflash,format=raw,unit=1,file="+vars)
			}
			d := &door{tasks: []wire.Task{
				{ID: "op.1", Kind: wire.Inspect},
				{ID: "op.2", Kind: wire.BurnIn, BurnIn: &wire.BurnInTask{ForSeconds: 3}},
				{ID: "op.3", Kind: wire.BMCUser, BMCUser: &wire.BMCUserTask{Name: "slipway", Password: "secret-secret"}},
				{ID: "op.4", Kind: wire.PowerOff},
			}}
			console := machineRun(t, d, c.args)
			check(t, d, c.firmware, console)
			if t.Failed() {
				t.Log(console)
			}
		})
	}
}

// machineRun boots a machine at the door and returns its console when it is off.
func machineRun(t *testing.T, d *door, args []string) string {
	t.Helper()
	server := httptest.NewServer(d)
	defer server.Close()
	kernel, initrd := image(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	disk := filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(disk, bytes.Repeat([]byte{0}, 32<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	// restrict: the machine reaches nothing but its DHCP server and the door.
	network := "user,id=net,restrict=on,guestfwd=tcp:10.0.2.100:80-cmd:env " + forwardEnv + "=" + strings.TrimPrefix(server.URL, "http://") + " " + self
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64", append([]string{
		"-accel", "tcg,thread=multi", "-machine", "q35", "-cpu", "max", "-smp", "2", "-m", "1024", "-nodefaults", "-display", "none", "-serial", "stdio", "-no-reboot",
		"-kernel", kernel, "-initrd", initrd, "-append", "console=ttyS0 quiet slipway.session=http://10.0.2.100/s/1 BOOTIF=01-52-54-00-aa-00-01",
		"-netdev", network, "-device", "virtio-net-pci,netdev=net,mac=52:54:00:aa:00:01,romfile=",
		"-drive", "if=none,id=one,format=raw,file=" + disk, "-device", "virtio-blk-pci,drive=one,serial=DISK1",
		"-device", "ipmi-bmc-sim,id=bmc", "-device", "isa-ipmi-kcs,bmc=bmc", "-smbios", "type=1,manufacturer=Lab,serial=S1",
	}, args...)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("the machine: %v\n%s", err, out.String())
	}
	return out.String()
}

func check(t *testing.T, d *door, firmware, console string) {
	t.Helper()
	hello, inspected, burned := d.report("", wire.Hello), d.report("op.1", wire.Done), d.report("op.2", wire.Done)
	if hello == nil || inspected == nil || burned == nil || d.report("op.4", wire.Done) == nil {
		t.Fatalf("hello %v, inspection %v, burn-in %v", hello, inspected, burned)
	}
	t.Logf("first report %.1f s after the kernel's start; agent's lines:", hello.Agent.Uptime)
	for _, line := range strings.Split(console, "\n") {
		if strings.Contains(line, "Slipway's agent") || strings.Contains(line, "drivers are loaded") || strings.Contains(line, "the server answers") {
			t.Log(strings.TrimSpace(line))
		}
	}
	h := inspected.Hardware
	if string(h.Firmware.Kind) != firmware || firmware == "uefi" && len(h.Firmware.BootOrder) == 0 {
		t.Errorf("firmware %+v", h.Firmware)
	}
	if len(h.Disks) != 1 || h.Disks[0].Serial != "DISK1" || h.Disks[0].Contents != "empty" {
		t.Errorf("disks %+v", h.Disks)
	}
	if len(h.Ports) != 1 || h.Ports[0].MAC != "52:54:00:aa:00:01" || !h.Ports[0].HasLink {
		t.Errorf("ports %+v", h.Ports)
	}
	if h.BMC == nil || h.BMC.IPMI != "2.0" || h.System.Serial != "S1" || h.MemoryBytes != 1<<30 {
		t.Errorf("BMC %+v, system %+v, memory %d", h.BMC, h.System, h.MemoryBytes)
	}
	if len(burned.BurnIn.Tests) != 4 {
		t.Errorf("burn-in %+v", burned.BurnIn)
	}
	// QEMU's BMC has no network port.
	if r := d.report("op.3", wire.Failed); r == nil || !strings.Contains(r.Error, "no network port") {
		t.Errorf("BMC account: %+v", r)
	}
	if strings.Contains(console, "panic") || strings.Contains(console, "secret-secret") {
		t.Error("the console has a panic, or a password")
	}
}
