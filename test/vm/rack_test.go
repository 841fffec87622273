package vm

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/lab"
)

// needVM skips a test unless it was asked for.
func needVM(t *testing.T) {
	t.Helper()
	if os.Getenv("SLIPWAY_VM") == "" {
		t.Skip("boots virtual machines, which needs root and minutes; run it with: make test-vm")
	}
}

// rackDirVar tells this program, started once more by a test, to be a rack in that folder until it is killed.
const rackDirVar = "SLIPWAY_VM_RACK_DIR"

func beRack(dir string) error {
	r, err := lab.Build(context.Background(), lab.RackConfig{Dir: dir, Specs: lab.Specs(2)})
	if err != nil {
		return err
	}
	for _, m := range r.Machines() {
		if err := m.Start(); err != nil {
			return err
		}
	}
	fmt.Println("rack stands")
	select {}
}

// naming returns the processes whose command line names the text.
func naming(t *testing.T, text string) (found []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		if line, err := os.ReadFile(path); err == nil && strings.Contains(string(line), text) {
			found = append(found, string(bytes.ReplaceAll(line, []byte{0}, []byte(" "))))
		}
	}
	return found
}

func TestNothingIsLeftOfARackThatWasKilled(t *testing.T) {
	needVM(t)
	dir := filepath.Join(t.TempDir(), "rack")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), rackDirVar+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "rack stands\n" {
		_ = cmd.Wait()
		t.Fatalf("%q, %v", line, err)
	}
	if got := naming(t, dir); len(got) < 3 { // libvirtd and two machines
		t.Fatalf("running: %q", got)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	var said bytes.Buffer
	if err := lab.Down(t.Context(), dir, &said); err != nil {
		t.Fatalf("%v\n%s", err, &said)
	}
	t.Logf("down says:\n%s", &said)
	if left := naming(t, dir); len(left) > 0 {
		t.Errorf("still running: %q", left)
	}
	for _, path := range []string{dir, "/run/netns/slipway-lab"} {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s is still there", path)
		}
	}
	said.Reset()
	if err := lab.Down(t.Context(), dir, &said); err != nil || said.String() != "There is no lab on this machine.\n" {
		t.Errorf("the second time it says %q, %v", &said, err)
	}
}

func TestOnlyOneRackIsAliveAtATime(t *testing.T) {
	needVM(t)
	first, err := lab.Build(t.Context(), lab.RackConfig{Dir: filepath.Join(t.TempDir(), "a"), Specs: lab.Specs(1)})
	if err != nil {
		t.Fatal(explain(err))
	}
	defer first.Close()
	second, err := lab.Build(t.Context(), lab.RackConfig{Dir: filepath.Join(t.TempDir(), "b"), Specs: lab.Specs(1)})
	if err == nil || !strings.Contains(err.Error(), "another lab") {
		if second != nil {
			second.Close()
		}
		t.Errorf("a second rack: %v", err)
	}
}

func TestARackLeavesAFolderAloneThatItDidNotMake(t *testing.T) {
	needVM(t)
	dir := t.TempDir()
	precious := filepath.Join(dir, "precious")
	if err := os.WriteFile(precious, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err := lab.Build(t.Context(), lab.RackConfig{Dir: dir, Specs: lab.Specs(1)}); err == nil {
		r.Close()
		t.Error("it was used")
	}
	if err := lab.Down(t.Context(), dir, os.Stderr); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(precious); err != nil {
		t.Error(err)
	}
}

// TestARackUsesTheLibvirtdThatRuns stands for an admin's machine: libvirtd is there already, in a network of its own
// so that this machine's network stays out of it.
func TestARackUsesTheLibvirtdThatRuns(t *testing.T) {
	needVM(t)
	if c, err := net.Dial("unix", libvirtSocket); err == nil {
		c.Close()
		t.Skip("this machine runs a libvirtd, which every other test uses; it runs where there is none")
	}
	const ns = "slipway-vm-admin"
	conf := filepath.Join(t.TempDir(), "qemu.conf")
	text := "security_driver = \"none\"\nnamespaces = []\ncgroup_controllers = []\nstdio_handler = \"file\"\nuser = \"root\"\ngroup = \"root\"\n"
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	run(t, "ip", "netns", "add", ns)
	t.Cleanup(func() { run(t, "ip", "netns", "del", ns) })
	admin := exec.Command("nsenter", "--net=/run/netns/"+ns, "unshare", "--mount", "--propagation", "private", "sh", "-c",
		`mount --bind "$0" /etc/libvirt/qemu.conf && exec libvirtd`, conf)
	if err := admin.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = admin.Process.Signal(os.Interrupt)
		_ = admin.Wait()
	})
	for range 100 {
		if c, err := net.Dial("unix", libvirtSocket); err == nil {
			c.Close()
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	dir := filepath.Join(t.TempDir(), "rack")
	r, err := lab.Build(t.Context(), lab.RackConfig{Dir: dir, Specs: lab.Specs(1)})
	if err != nil {
		t.Fatal(explain(err))
	}
	defer r.Close()
	if err := r.Machines()[0].Start(); err != nil {
		t.Fatal(explain(err))
	}
	run(t, "ip", "-n", ns, "link", "show", r.Interface())
	if _, err := os.Stat("/run/netns/slipway-lab"); err == nil {
		t.Error("the rack made a namespace of its own")
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if exec.Command("ip", "-n", ns, "link", "show", r.Interface()).Run() == nil {
		t.Error("the bridge is still there")
	}
	if c, err := net.Dial("unix", libvirtSocket); err != nil {
		t.Errorf("the admin's libvirtd afterwards: %v", err)
	} else {
		c.Close()
	}
	if left := naming(t, dir); len(left) > 0 {
		t.Errorf("still running: %q", left)
	}
}

const libvirtSocket = "/run/libvirt/libvirt-sock"

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Errorf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}
