package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"slipway.dev/slipway/inventory"
)

const (
	marker = "made-by-slipway-lab" // a file that says: this folder may be removed
	// notePath names the folder of the latest rack, for a clean-up without a name.
	notePath = "/run/slipway-lab.dir"
	// emulatorLogs is where libvirt keeps a log per domain.
	emulatorLogs = "/var/log/libvirt/qemu"
)

// makeDir makes the folder of the rack. It refuses a folder that has files and no marker, because Close removes the
// whole folder.
func makeDir(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the lab's folder: %w", err)
	}
	if len(entries) > 0 {
		if _, err := os.Stat(filepath.Join(dir, marker)); err != nil {
			return inventory.Errorf(inventory.Invalid, "folder %s is not empty and was not made by a lab", dir).
				WithHint("choose a new one with --dir; the lab removes its folder when it ends")
		}
	}
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return fmt.Errorf("make the lab's folder: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, marker), []byte("slipway lab down removes this folder\n"), 0o644); err != nil {
		return fmt.Errorf("mark the lab's folder: %w", err)
	}
	return os.WriteFile(notePath, []byte(dir), 0o644)
}

// removeDir removes the folder of a rack if it has the marker.
func removeDir(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, marker)); err != nil {
		return nil
	}
	return os.RemoveAll(dir)
}

// removeTraces removes what a rack left outside its folder: the logs of its domains, and its note.
func removeTraces() {
	logs, _ := filepath.Glob(filepath.Join(emulatorLogs, prefix+"*.log*"))
	for _, path := range append(logs, notePath) {
		_ = os.Remove(path) // one that is gone already is fine
	}
}

// sweep removes whatever racks left on this machine: domains, server, libvirtd, bridge, namespace and folder. It
// returns what it found. It goes on after an error, and a second call is harmless. The caller holds the lock, so no
// live rack loses anything.
func sweep(dir, bridge string) (removed []string, err error) {
	var errs []error
	note := func(what string, did bool, err error) {
		if did {
			removed = append(removed, what)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("remove %s: %w", what, err))
		}
	}
	if d, found, err := findDaemon(); found {
		doms, err := d.domains()
		errs = append(errs, err)
		for _, dom := range doms {
			note("machine "+dom.Name, true, d.remove(dom))
		}
		d.close()
	} else if err != nil {
		errs = append(errs, err)
	}
	dirs := []string{dir}
	if b, err := os.ReadFile(notePath); err == nil && string(b) != dir {
		dirs = append(dirs, string(b))
	}
	for _, dir := range dirs {
		var ending sync.WaitGroup // all at once: PostgreSQL ends when its clients have ended
		pids := leftProcesses(dir)
		ended := make([]error, len(pids))
		for i, pid := range pids {
			ending.Go(func() { ended[i] = stopProcess(pid) })
		}
		ending.Wait()
		for i, pid := range pids {
			note(fmt.Sprintf("process %d", pid), true, ended[i])
		}
	}
	for _, own := range ownNetspaces() {
		did, err := own.remove()
		note("network namespace "+own.name(), did, err)
	}
	for _, n := range bridgePlaces() {
		did, err := n.removeBridge(bridge)
		note("bridge "+bridge, did, err)
	}
	for _, dir := range dirs {
		_, err := os.Stat(filepath.Join(dir, marker))
		note("folder "+dir, err == nil, removeDir(dir))
	}
	removeTraces()
	return removed, errors.Join(errs...)
}

// bridgePlaces returns the namespaces that may have the bridge of a rack: that of libvirtd and that of this process.
func bridgePlaces() []netspace {
	places := []netspace{{path: "/proc/self/ns/net"}}
	if d, found, _ := findDaemon(); found {
		places = append(places, d.net)
		d.close()
	}
	return places
}

// leftProcesses returns the processes of a rack in dir that still run. Their ids are in files there. The command line
// of each must name the folder too: the kernel may have given the id to another process.
func leftProcesses(dir string) (pids []int) {
	found, _ := filepath.Glob(filepath.Join(dir, "*.pid"))
	for _, f := range found {
		b, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
		if err != nil || pid <= 1 || pid == os.Getpid() || !isAlive(pid) {
			continue
		}
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if strings.Contains(string(line), dir) {
			pids = append(pids, pid)
		}
	}
	return pids
}
