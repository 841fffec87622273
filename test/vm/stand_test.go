package vm

import (
	"bytes"
	"context"
	"debug/pe"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
	"slipway.dev/slipway/web/wire"
)

// stand is a server with one machine on its wire, in a network namespace of its own, for firmware that libvirt's rack
// has not.
type stand struct {
	t       *testing.T
	dir, ns string
	port    string // the machine's end of the wire, a tap
	serve   *exec.Cmd
	api     *client.Client
	sockets string // folder of the machine's serial port and QEMU's monitor: their paths may have 107 bytes
}

// stands counts them: each has a network namespace of its own.
var stands atomic.Int32

const (
	standWire = "wire"
	standMAC  = inventory.MAC("52:54:00:f1:00:01")
)

// needLong skips a test that takes minutes, unless minutes are given.
func needLong(t *testing.T) {
	t.Helper()
	needVM(t)
	if os.Getenv("SLIPWAY_LONG") == "" {
		t.Skip("takes minutes; run: make test-long RUN=" + t.Name())
	}
}

// newStand starts a server on a wire without a machine. flags are added to slipway serve.
func newStand(t *testing.T, flags ...string) *stand {
	t.Helper()
	s := unplugged(t, standWire)
	s.begin(flags...)
	return s
}

// unplugged is a stand whose machine will have its card in that port; nothing else is there yet.
func unplugged(t *testing.T, port string) *stand {
	t.Helper()
	needVM(t)
	sockets, err := os.MkdirTemp("", "stand")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(sockets) })
	s := &stand{t: t, dir: t.TempDir(), sockets: sockets, ns: fmt.Sprintf("firm%d-%d", os.Getpid()%100000, stands.Add(1)), port: port}
	s.run("ip", "netns", "add", s.ns)
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", s.ns).Run() })
	s.in("ip", "link", "set", "lo", "up")
	s.in("ip", "tuntap", "add", port, "mode", "tap")
	return s
}

// begin starts the server on the wire.
func (s *stand) begin(flags ...string) {
	t := s.t
	t.Helper()
	s.in("ip", "addr", "add", "10.77.0.1/24", "dev", standWire)
	s.in("ip", "link", "set", standWire, "up")
	bin := os.Getenv("SLIPWAY_BIN")
	if bin == "" {
		bin, _ = filepath.Abs("../../bin/slipway")
	}
	log, err := os.Create(filepath.Join(s.dir, "serve.log"))
	if err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(s.dir, "data")
	args := append([]string{
		"netns", "exec", s.ns, bin, "serve", "--interface", standWire, "--data-dir", data, "--mode", "full",
		"--unknown", "wait", "--log-level", "debug", "--no-check-conflict",
	}, flags...)
	s.serve = exec.Command("ip", args...)
	s.serve.Stdout, s.serve.Stderr = log, log
	s.start(s.serve)
	t.Cleanup(s.show)
	if s.api, err = client.New(client.Config{Server: filepath.Join(data, "slipway.sock"), Agent: "stand"}); err != nil {
		t.Fatal(err)
	}
	s.until("the server answers", 2*time.Minute, func(ctx context.Context) bool {
		_, err := s.api.Hosts.List(ctx, client.Query{})
		return err == nil
	})
}

func (s *stand) run(name string, args ...string) {
	s.t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		s.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

func (s *stand) in(args ...string) {
	s.t.Helper()
	s.run("ip", append([]string{"netns", "exec", s.ns}, args...)...)
}

// start starts a program that ends with the test.
func (s *stand) start(cmd *exec.Cmd) {
	s.t.Helper()
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGKILL}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { s.stop(cmd) })
}

func (s *stand) stop(cmd *exec.Cmd) {
	if cmd.ProcessState == nil {
		_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
		_ = cmd.Wait()
	}
}

// qemu switches the machine on; console is the file that its serial port is written to.
func (s *stand) qemu(program string, args ...string) (cmd *exec.Cmd, console string) {
	s.t.Helper()
	console = filepath.Join(s.dir, "console")
	_ = os.Remove(console)
	all := append([]string{
		"netns", "exec", s.ns, program, "-nodefaults", "-no-user-config", "-display", "none",
		"-chardev", "socket,id=serial,server=on,wait=off,path=" + s.serial() + ",logfile=" + console, "-serial", "chardev:serial",
		"-monitor", "unix:" + s.monitor() + ",server=on,wait=off",
		"-netdev", "tap,id=n,ifname=" + s.port + ",script=no,downscript=no",
		"-device", "virtio-rng-pci",
	}, args...)
	cmd = exec.Command("ip", all...)
	var words bytes.Buffer
	cmd.Stdout, cmd.Stderr = &words, &words
	s.start(cmd)
	s.t.Cleanup(func() {
		if s.t.Failed() && words.Len() > 0 {
			s.t.Logf("qemu: %s", words.String())
		}
	})
	return cmd, console
}

func (s *stand) serial() string  { return filepath.Join(s.sockets, "serial") }
func (s *stand) monitor() string { return filepath.Join(s.sockets, "monitor") }

const keyEnter = "\r" // of a terminal

// press types keys on the machine's serial console, slowly enough for firmware.
func (s *stand) press(keys ...string) {
	s.t.Helper()
	conn, err := (&net.Dialer{}).DialContext(s.t.Context(), "unix", s.serial())
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	for _, k := range keys {
		if _, err := conn.Write([]byte(k)); err != nil {
			s.t.Fatal(err)
		}
		time.Sleep(300 * time.Millisecond)
	}
}

// order has QEMU do something, and waits until it is done.
func (s *stand) order(line string) {
	s.t.Helper()
	conn, err := (&net.Dialer{}).DialContext(s.t.Context(), "unix", s.monitor())
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	prompt := []byte("(qemu) ")
	for i, text := range []string{"", line + "\n"} {
		if _, err := conn.Write([]byte(text)); err != nil {
			s.t.Fatal(err)
		}
		var got []byte
		for one := make([]byte, 512); !bytes.HasSuffix(got, prompt); {
			n, err := conn.Read(one)
			if err != nil {
				s.t.Fatalf("monitor after %d orders: %v: %s", i, err, got)
			}
			got = append(got, one[:n]...)
		}
	}
}

// screen returns what is on the machine's screen in text mode.
func (s *stand) screen() string {
	s.t.Helper()
	path := filepath.Join(s.sockets, "screen")
	s.order(`pmemsave 0xb8000 4000 "` + path + `"`) // unquoted, the slash divides
	b, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	var text []byte
	for i := 0; i+1 < len(b); i += 2 {
		text = append(text, b[i])
	}
	return string(text)
}

// blue returns how many of a hundred pixels of the machine's screen are the blue of a memory test.
func (s *stand) blue() int {
	s.t.Helper()
	path := filepath.Join(s.sockets, "screen.ppm")
	s.order("screendump " + path)
	b, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	if parts := bytes.SplitN(b, []byte("\n"), 4); len(parts) == 4 { // P6, size, depth, pixels
		b = parts[3]
	}
	n := 0
	for i := 0; i+2 < len(b); i += 3 {
		if b[i] < 32 && b[i+1] < 32 && b[i+2] > 128 {
			n++
		}
	}
	return 100 * n / max(1, len(b)/3)
}

// config writes a configuration file for the server.
func config(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "slipway.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// drive is a disk of the machine, which it tries after its network card.
func drive(path string) []string {
	return []string{"-drive", "if=none,id=disk,format=raw,file=" + path, "-device", "virtio-blk-pci,drive=disk,bootindex=2"}
}

// nic is the machine's network card.
func nic() []string {
	return []string{"-device", "virtio-net-pci,netdev=n,romfile=,bootindex=1,mac=" + string(standMAC)}
}

// ovmf is a PC with UEFI and a private copy of the variables.
func (s *stand) ovmf(code, vars string) []string {
	s.t.Helper()
	text, err := os.ReadFile(vars)
	if err != nil {
		s.t.Fatalf("needs package ovmf: %v", err)
	}
	own := filepath.Join(s.dir, "vars.fd")
	if err := os.WriteFile(own, text, 0o600); err != nil {
		s.t.Fatal(err)
	}
	return append([]string{
		"-machine", "q35,smm=on,accel=tcg", "-cpu", "max", "-m", "1024", "-global", "driver=cfi.pflash01,property=secure,value=on",
		"-drive", "if=pflash,unit=0,format=raw,readonly=on,file=" + code, "-drive", "if=pflash,unit=1,format=raw,file=" + own,
		"-fw_cfg", "name=opt/org.tianocore/IPv6PXESupport,string=n",
		"-smbios", "type=1,manufacturer=QEMU,product=Stand,serial=STAND-1",
	}, nic()...)
}

// show logs what there is after a failure.
func (s *stand) show() {
	if !s.t.Failed() {
		return
	}
	if page, err := s.api.Events(context.Background(), client.EventQuery{Host: string(standMAC), Limit: 200}); err == nil {
		for _, ev := range page.Items {
			s.t.Logf("%s  %-18s %s", ev.At.Format("15:04:05.000"), ev.Kind, ev.Detail)
		}
	}
	for name, n := range map[string]int{"serve.log": 8000, "console": 4000} {
		b, _ := os.ReadFile(filepath.Join(s.dir, name))
		if polls := []byte("path=/api/v1/"); name == "serve.log" { // what the test itself asks is no news
			b = bytes.Join(slices.DeleteFunc(bytes.Split(b, []byte("\n")), func(line []byte) bool { return bytes.Contains(line, polls) }), []byte("\n"))
		}
		s.t.Logf("%s:\n%s", name, b[max(0, len(b)-n):])
	}
}

func (s *stand) until(what string, patience time.Duration, ok func(ctx context.Context) bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	for !ok(ctx) {
		select {
		case <-ctx.Done():
			s.t.Fatalf("not within %s: %s", patience, what)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// says waits for a text on the console, whatever it is painted with.
func (s *stand) says(console, text string, patience time.Duration) {
	s.t.Helper()
	s.until("the console says "+text, patience, func(context.Context) bool {
		b, _ := os.ReadFile(console)
		return bytes.Contains(escapes.ReplaceAll(b, nil), []byte(text))
	})
}

// escapes are what a terminal does not show: colours and places (ECMA-48).
var escapes = regexp.MustCompile(`\x1b\[[0-9;=?]*[A-Za-z]`)

// event waits for an event of that kind of the machine whose detail has that text.
func (s *stand) event(kind, text string, patience time.Duration) {
	s.t.Helper()
	s.until("event "+kind+" with "+text, patience, func(ctx context.Context) bool {
		page, err := s.api.Events(ctx, client.EventQuery{Host: string(standMAC), Limit: 1000})
		return err == nil && slices.ContainsFunc(page.Items, func(e inventory.Event) bool {
			return e.Kind == kind && strings.Contains(e.Detail, text)
		})
	})
}

// image imports files under a name and gives it to every host.
func (s *stand) image(name string, arch inventory.Arch, args []string, kernel string, initrds ...string) {
	s.t.Helper()
	r := client.ImportRequest{Name: name, OS: "custom", Release: "1", Arch: arch, KernelArgs: args, Files: []client.ImportFile{
		{Role: inventory.RoleKernel, Name: "linux", Source: kernel},
	}}
	for i, f := range initrds {
		r.Files = append(r.Files, client.ImportFile{Role: inventory.RoleInitrd, Name: fmt.Sprintf("initrd%d", i), Source: f})
	}
	job, err := s.api.Import(s.t.Context(), r)
	if err != nil {
		s.t.Fatal(explain(err))
	}
	for job, err = range s.api.WatchJob(s.t.Context(), job.ID) {
		if err != nil {
			s.t.Fatal(explain(err))
		}
	}
	if job.Error != "" {
		s.t.Fatalf("import of %s: %s", name, job.Error)
	}
	if _, err := s.api.Profiles.Put(s.t.Context(), name, inventory.Profile{Name: name, Image: name}); err != nil {
		s.t.Fatal(explain(err))
	}
}

// host makes the machine known, accepted, and pinned to a profile.
func (s *stand) host(profile string) {
	s.t.Helper()
	if _, err := s.api.Hosts.Create(s.t.Context(), inventory.Host{
		Name: "stand", State: inventory.Available, Profile: profile, NICs: []inventory.NIC{{MAC: standMAC}},
	}); err != nil {
		s.t.Fatal(explain(err))
	}
}

// pin gives the machine, which is known, a profile.
func (s *stand) pin(profile string) {
	s.t.Helper()
	if _, err := s.api.Hosts.Patch(s.t.Context(), string(standMAC), wire.HostPatch{Profile: &profile}); err != nil {
		s.t.Fatal(explain(err))
	}
}

// installer is the folder of Debian's installer, whose kernel is signed.
const installer = "/usr/lib/debian-installer/images/12/amd64/text/debian-installer/amd64"

// labInit packs the lab's first process, which reports up, as a RAM disk.
func (s *stand) labInit() string {
	s.t.Helper()
	script, err := os.ReadFile("../../lab/slipway-init.sh")
	if err != nil {
		s.t.Fatal(err)
	}
	return s.pack("init.cpio", "slipway-init", script)
}

// pack writes a RAM disk with one program in it.
func (s *stand) pack(file, name string, program []byte) string {
	s.t.Helper()
	folder := s.t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, name), program, 0o755); err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.Command("cpio", "-o", "-H", "newc", "--quiet")
	cmd.Dir, cmd.Stdin = folder, strings.NewReader(name+"\n")
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("cpio: %v", err)
	}
	path := filepath.Join(s.dir, file)
	if err := os.WriteFile(path, out, 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// unsigned writes a copy of a PE file without its signatures.
func (s *stand) unsigned(path string) string {
	s.t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	f, err := pe.NewFile(bytes.NewReader(b))
	if err != nil {
		s.t.Fatal(err)
	}
	table := f.OptionalHeader.(*pe.OptionalHeader64).DataDirectory[pe.IMAGE_DIRECTORY_ENTRY_SECURITY]
	at := int(binary.LittleEndian.Uint32(b[60:])) + 24 + 112 + 4*8
	out := slices.Clone(b[:table.VirtualAddress])
	binary.LittleEndian.PutUint64(out[at:], 0)
	to := filepath.Join(s.dir, "unsigned")
	if err := os.WriteFile(to, out, 0o600); err != nil {
		s.t.Fatal(err)
	}
	return to
}
