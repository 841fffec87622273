// Package nodes plays machines with Debian for a page of the documentation that has several. A node has its own network, host name,
// processes and files; what it runs are the programs of this machine. programs.go lists the commands that a page may use, and what takes the
// place of those that need a whole machine. A page with another command fails. Nothing of a node outlives the test.
package nodes

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"slipway.dev/slipway/test/kube/walkthrough"
)

// childEnv names the program that the test binary turns into.
const childEnv = "SLIPWAY_NODES_CHILD"

// children are those programs.
var children = map[string]func(args []string) error{"init": beInit, "systemctl": systemctl, "unit": superviseUnit}

// Main runs the tests, or the program that a node has started.
func Main(m *testing.M) {
	name := os.Getenv(childEnv)
	if name == "" {
		os.Exit(m.Run())
	}
	os.Unsetenv(childEnv)
	if err := children[name](os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// Node is one machine.
type Node struct {
	Name  string
	Shell *walkthrough.Shell
	dir   string
	init  *exec.Cmd
}

// own are the folders of which a node has a copy of its own: what it writes there, no other node sees.
var own = []string{"/etc", "/var/lib", "/usr/local"}

// fresh are folders that are empty on a new machine, and that somebody may have filled on this one.
var fresh = []string{"/etc/postgresql", "/var/lib/postgresql", "/var/lib/etcd", "/var/lib/slipway", "/etc/slipway"}

// Start starts a node in a network namespace. slipway is the program that is installed on it, and unit its unit file.
func Start(t *testing.T, dir, netns, name, slipway, unit string) *Node {
	t.Helper()
	n := &Node{Name: name, dir: filepath.Join(dir, name)}
	if err := n.start(netns, slipway, unit); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	t.Cleanup(func() {
		_ = n.init.Process.Kill() // the kernel ends all other processes of the node with it
		_ = n.init.Wait()
		if n.Shell != nil {
			n.Shell.Close()
		}
	})
	bin := filepath.Join(n.dir, "bin")
	if err := writePrograms(bin); err != nil {
		t.Fatal(err)
	}
	pid := fmt.Sprint(n.init.Process.Pid)
	shell, err := walkthrough.NewShell(n.dir, []string{"PATH=" + bin, "HOME=/root", "LC_ALL=C.UTF-8", "HOSTNAME=" + name},
		"/usr/bin/nsenter", "--target="+pid, "--mount", "--uts", "--pid", "--net", "/usr/bin/env", "--chdir="+n.dir)
	if err != nil {
		t.Fatal(err)
	}
	n.Shell = shell
	return n
}

func (n *Node) start(netns, slipway, unit string) error {
	if err := os.MkdirAll(n.dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(n.dir, "slipway.service"), []byte(unit), 0o644); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	n.init = exec.Command(self, n.dir, n.Name, slipway)
	n.init.Env = append(os.Environ(), childEnv+"=init")
	n.init.Stderr = os.Stderr
	n.init.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWUTS | syscall.CLONE_NEWPID,
		Setsid:     true, Pdeathsig: syscall.SIGKILL,
	}
	out, err := n.init.StdoutPipe()
	if err != nil {
		return err
	}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for Pdeathsig, the thread stays; and no other goroutine may run in the namespace
		err := inNamespace(netns, n.init.Start)
		started <- err
		if err == nil {
			select {}
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		return fmt.Errorf("it does not start: %q, %w", line, err)
	}
	return nil
}

func inNamespace(name string, do func() error) error {
	f, err := os.Open("/run/netns/" + name)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); err != nil {
		return err
	}
	return do()
}

// beInit is the first process of a node. It gives the node its files, and waits for processes that nobody else waits for.
func beInit(args []string) error {
	dir, name, slipway := args[0], args[1], args[2]
	if err := unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""); err != nil {
		return err
	}
	if err := unix.Sethostname([]byte(name)); err != nil {
		return err
	}
	for _, path := range own {
		upper, work := filepath.Join(dir, "upper", path), filepath.Join(dir, "work", path)
		for _, made := range []string{upper, work} {
			if err := os.MkdirAll(made, 0o755); err != nil {
				return err
			}
		}
		options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", path, upper, work)
		if err := unix.Mount("overlay", path, "overlay", 0, options); err != nil {
			return fmt.Errorf("mount %s: %w", path, err)
		}
	}
	if err := unix.Mount("tmpfs", "/run", "tmpfs", 0, "mode=755"); err != nil {
		return err
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return err
	}
	if err := newMachine(slipway); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(dir, "slipway.service"))
	if err != nil {
		return err
	}
	if err := os.WriteFile("/etc/systemd/system/slipway.service", text, 0o644); err != nil {
		return err
	}
	fmt.Println("ready")
	for {
		var status unix.WaitStatus
		if _, err := unix.Wait4(-1, &status, 0, nil); err != nil {
			time.Sleep(50 * time.Millisecond) // there is none at this moment
		}
	}
}

// newMachine leaves of this machine's files what a new one with Slipway has.
func newMachine(slipway string) error {
	for _, path := range fresh {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	if err := os.RemoveAll("/etc/patroni/config.yml"); err != nil {
		return err
	}
	hosts := "127.0.0.1 localhost\n192.0.2.11 node1\n192.0.2.12 node2\n192.0.2.13 node3\n"
	if err := os.WriteFile("/etc/hosts", []byte(hosts), 0o644); err != nil {
		return err
	}
	const installed = "/usr/local/bin/slipway"
	if err := os.RemoveAll(installed); err != nil {
		return err
	}
	if err := os.WriteFile(installed, nil, 0o755); err != nil {
		return err
	}
	return unix.Mount(slipway, installed, "", unix.MS_BIND, "")
}

// Logs returns the ends of the logs of all units, for a test that fails.
func (n *Node) Logs() string {
	var all strings.Builder
	for _, name := range []string{"etcd", "patroni", "slipway"} {
		out, _ := exec.Command("/usr/bin/nsenter", fmt.Sprintf("--target=%d", n.init.Process.Pid), "--mount", "/usr/bin/tail", "-n", "25", unitLog(name)).Output()
		fmt.Fprintf(&all, "== %s of %s\n%s", name, n.Name, out)
	}
	return all.String()
}

// UnitOf returns the unit file in docs/configuration.md.
func UnitOf(page string) (string, error) {
	_, rest, found := strings.Cut(page, "`/etc/systemd/system/slipway.service`:\n\n```ini\n")
	text, _, ends := strings.Cut(rest, "```")
	if !found || !ends {
		return "", errors.New("docs/configuration.md has no slipway.service")
	}
	return text, nil
}
