package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// sweep removes whatever racks left on this machine: domains, server, libvirtd, bridge, namespace and folder. It
// returns what it found. It goes on after an error, and a second call is harmless. The caller holds the lock, so no
// live rack loses anything.
func sweep(cfg RackConfig) (removed []string, err error) {
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
	dirs := []string{cfg.Dir}
	if b, err := os.ReadFile(notePath); err == nil && string(b) != cfg.Dir {
		dirs = append(dirs, string(b))
	}
	for _, dir := range dirs {
		for _, pid := range leftProcesses(dir) {
			note(fmt.Sprintf("process %d", pid), true, stopProcess(pid))
		}
	}
	own := netspace{path: filepath.Join(namespaceDir, ownNamespace), isOwn: true}
	did, err := own.remove()
	note("network namespace "+ownNamespace, did, err)
	for _, n := range bridgePlaces() {
		did, err := n.removeBridge(cfg.Bridge)
		note("bridge "+cfg.Bridge, did, err)
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
