package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	libvirt "github.com/digitalocean/go-libvirt"
	"github.com/digitalocean/go-libvirt/socket/dialers"
	"golang.org/x/sys/unix"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sleep"
)

// sockets returns the sockets of libvirt daemons for qemu:///system: the monolithic daemon, and the one for QEMU
// alone.
func sockets() []string { return []string{"/run/libvirt/libvirt-sock", "/run/libvirt/virtqemud-sock"} }

// ownConf is qemu.conf for a libvirtd that the lab starts itself, where no service manager runs one. There are no
// control groups then, and the network namespace isolates the machines.
const ownConf = `security_driver = "none"
namespaces = []
cgroup_controllers = []
stdio_handler = "file"
user = "root"
group = "root"
`

const (
	qemuConf = "/etc/libvirt/qemu.conf"
	// definitions is where libvirtd keeps its domains.
	definitions = "/etc/libvirt/qemu"
)

// daemon is the libvirtd that runs the rack.
type daemon struct {
	conn *libvirt.Libvirt
	net  netspace
	cmd  *exec.Cmd // nil when it is not ours
	// socket is where it listens.
	socket string
}

// findDaemon connects to a running libvirtd; ok is false when there is none. A daemon that listens but does not
// answer is an error, since a second one would fight it.
func findDaemon() (d daemon, ok bool, err error) {
	for _, path := range sockets() {
		pid, err := listener(path)
		if err != nil {
			continue
		}
		conn, err := connect(path)
		if err != nil {
			return daemon{}, false, inventory.Errorf(inventory.Unavailable, "libvirtd at %s does not answer: %w", path, err).
				WithHint("look at its log with: journalctl -u libvirtd")
		}
		d = daemon{conn: conn, net: netspace{path: "/proc/self/ns/net"}, socket: path}
		if of := (netspace{path: fmt.Sprintf("/proc/%d/ns/net", pid)}); pid > 0 {
			if _, err := of.inode(); err == nil {
				d.net = of
			}
		}
		return d, true, nil
	}
	return daemon{}, false, nil
}

func connect(path string) (*libvirt.Libvirt, error) {
	l := libvirt.NewWithDialer(dialers.NewLocal(dialers.WithSocket(path), dialers.WithLocalTimeout(5*time.Second)))
	if err := l.ConnectToURI(libvirt.QEMUSystem); err != nil {
		return nil, err
	}
	return l, nil
}

// startDaemon starts a libvirtd inside n, and waits until it answers. It mounts its own qemu.conf, and a folder for
// domains, over those of the system. The mounts are in a mount namespace of the process: when it dies, the kernel
// removes them, and /etc was never changed.
func startDaemon(ctx context.Context, n netspace, dir string) (daemon, error) {
	conf, domains, logPath := filepath.Join(dir, "qemu.conf"), filepath.Join(dir, "domains"), filepath.Join(dir, "libvirtd.log")
	if err := os.MkdirAll(domains, 0o755); err != nil {
		return daemon{}, fmt.Errorf("make folder for libvirt's domains: %w", err)
	}
	if err := os.WriteFile(conf, []byte(ownConf), 0o644); err != nil {
		return daemon{}, fmt.Errorf("write %s: %w", conf, err)
	}
	out, err := os.Create(logPath)
	if err != nil {
		return daemon{}, fmt.Errorf("make libvirtd's log: %w", err)
	}
	defer out.Close()
	cmd := exec.Command("libvirtd", "--pid-file", filepath.Join(dir, "libvirtd.pid"))
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true} // Ctrl-C reaches the lab, which stops it when the machines are gone
	err = onOwnThread(func() error {
		if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
			return fmt.Errorf("make a mount namespace: %w", err)
		}
		if err := unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("keep mounts private: %w", err)
		}
		if err := unix.Mount(conf, qemuConf, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("lay our qemu.conf over %s: %w", qemuConf, err)
		}
		if err := unix.Mount(domains, definitions, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("lay a folder of ours over %s: %w", definitions, err)
		}
		if err := n.enter(); err != nil {
			return err
		}
		return cmd.Start()
	})
	if err != nil {
		return daemon{}, fmt.Errorf("start libvirtd: %w", err)
	}
	d := daemon{net: n, cmd: cmd, socket: sockets()[0]}
	if d.conn, err = awaitDaemon(ctx, cmd.Process.Pid); err != nil {
		d.close()
		return daemon{}, inventory.Errorf(inventory.Unavailable, "our libvirtd does not answer: %w\n%s", err, tailFile(logPath, 10))
	}
	return d, nil
}

// awaitDaemon connects to the libvirtd with that process id as soon as it listens, for up to 30 s.
func awaitDaemon(ctx context.Context, pid int) (*libvirt.Libvirt, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		if got, err := listener(sockets()[0]); err == nil && got == pid {
			return connect(sockets()[0])
		}
		if _, err := os.Stat(fmt.Sprintf("/proc/%d/exe", pid)); errors.Is(err, fs.ErrNotExist) {
			return nil, errors.New("it ended at once")
		}
		if sleep.For(ctx, 100*time.Millisecond) != nil {
			return nil, ctx.Err()
		}
	}
}

// close ends the connection, and stops the daemon if the lab started it.
func (d *daemon) close() {
	if d.conn != nil {
		_ = d.conn.Disconnect()
	}
	if d.cmd != nil {
		_ = stopProcess(d.cmd.Process.Pid)
		_ = d.cmd.Wait()
	}
}

// domains returns the domains of the lab, by the prefix of their names.
func (d *daemon) domains() ([]libvirt.Domain, error) {
	all, _, err := d.conn.ConnectListAllDomains(1, 0)
	if err != nil {
		return nil, fmt.Errorf("list libvirt domains: %w", err)
	}
	var ours []libvirt.Domain
	for _, dom := range all {
		if strings.HasPrefix(dom.Name, prefix) {
			ours = append(ours, dom)
		}
	}
	return ours, nil
}

// stop switches a domain off at once. It is no error when the domain is off or gone.
func (d *daemon) stop(dom libvirt.Domain) error {
	err := d.conn.DomainDestroyFlags(dom, libvirt.DomainDestroyDefault)
	if err != nil && !libvirt.IsNotFound(err) && !isNotRunning(err) {
		return fmt.Errorf("stop libvirt domain %s: %w", dom.Name, err)
	}
	return nil
}

// remove stops a domain and deletes it from libvirt, with its firmware variables.
func (d *daemon) remove(dom libvirt.Domain) error {
	if err := d.stop(dom); err != nil {
		return err
	}
	err := d.conn.DomainUndefineFlags(dom, libvirt.DomainUndefineNvram|libvirt.DomainUndefineManagedSave|libvirt.DomainUndefineSnapshotsMetadata)
	if err != nil && !libvirt.IsNotFound(err) {
		return fmt.Errorf("remove libvirt domain %s: %w", dom.Name, err)
	}
	return nil
}

func isNotRunning(err error) bool {
	var e libvirt.Error
	return errors.As(err, &e) && e.Code == uint32(libvirt.ErrOperationInvalid)
}
