package doctor

import (
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Read looks at this machine. Ports of other programs have names where the reader may see their files: as root.
func Read(interfaces []string, dataDir string, ports []Port) *Facts {
	f := &Facts{
		Now: time.Now(), IsRoot: os.Geteuid() == 0, Others: InterfaceNames(), Sysctl: ReadSysctl(), Disk: readDataDir(dataDir),
		Database: readDatabase(filepath.Join(dataDir, "slipway.db")), Clock: ReadClock(), Ports: ports,
	}
	for _, name := range interfaces {
		f.Interfaces = append(f.Interfaces, ReadInterface(name))
	}
	f.Sockets, f.ServerPID = readSockets(filepath.Join(dataDir, "lock"))
	return f
}

// ReadInterface reads an interface.
func ReadInterface(name string) Interface {
	out := Interface{Name: name}
	i, err := net.InterfaceByName(name)
	if out.Err = unasked(err); err != nil {
		return out
	}
	out.IsThere, out.MTU = true, i.MTU
	out.IsUp, out.HasLink = i.Flags&net.FlagUp != 0, i.Flags&net.FlagRunning != 0
	addrs, err := i.Addrs() // one that went away meanwhile has none
	out.Err = unasked(err)
	for _, a := range addrs {
		p, err := netip.ParsePrefix(a.String())
		switch {
		case err != nil:
		case p.Addr().Is6():
			out.HasLinkLocal = out.HasLinkLocal || p.Addr().IsLinkLocalUnicast()
		case !p.Addr().IsLinkLocalUnicast():
			out.Prefixes = append(out.Prefixes, p)
		}
	}
	return out
}

// unasked returns why the kernel could not be asked about an interface: what it answered is no such error.
func unasked(err error) error {
	if no, ok := errors.AsType[unix.Errno](err); ok && no != unix.ENODEV && no != unix.ENXIO {
		return no
	}
	return nil
}

// InterfaceNames returns the names of all interfaces but loopback.
func InterfaceNames() (names []string) {
	all, _ := net.Interfaces()
	for _, i := range all {
		if i.Flags&net.FlagLoopback == 0 {
			names = append(names, i.Name)
		}
	}
	return names
}

// ReadSysctl reads the settings that Doctor judges. It leaves out those that it cannot read.
func ReadSysctl() map[string]int {
	out := map[string]int{}
	for _, name := range []string{rmemMax, gcThresh1, gcThresh2, gcThresh3, ipForward} {
		text, err := os.ReadFile(sysctlPath(name))
		if err != nil {
			continue
		}
		if n, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			out[name] = n
		}
	}
	return out
}

func sysctlPath(name string) string {
	return filepath.Join("/proc/sys", filepath.FromSlash(strings.ReplaceAll(name, ".", "/")))
}

// ReadDisk reads the file system of a folder.
func ReadDisk(dir string) Disk {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return Disk{Dir: dir, Err: err}
	}
	return Disk{
		Dir: dir, FreeBytes: st.Bavail * uint64(st.Bsize), FreeFileN: st.Ffree, FileN: st.Files, IsReadOnly: st.Flags&unix.ST_RDONLY != 0,
	}
}

// readDataDir reads the data directory. Before the first start it is that of the nearest folder above, where slipway serve
// makes it.
func readDataDir(dir string) Disk {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		above := filepath.Dir(filepath.Clean(dir))
		for _, err = os.Stat(above); errors.Is(err, fs.ErrNotExist) && above != filepath.Dir(above); _, err = os.Stat(above) {
			above = filepath.Dir(above)
		}
		d := ReadDisk(above)
		if d.Dir, d.IsNew = dir, true; d.Err == nil {
			d.Err = unix.Access(above, unix.W_OK|unix.X_OK)
		}
		return d
	}
	d := ReadDisk(dir)
	d.IsFile = err == nil && !info.IsDir()
	key := filepath.Join(dir, "secret.key")
	if info, err := os.Stat(key); err == nil && info.Mode().Perm()&0o077 != 0 {
		d.OpenKey = key
	}
	return d
}

// readDatabase says whether the file could be written, without opening it: closing a file gives up all locks that a
// process has on it, and this may be the process that has the database open.
func readDatabase(path string) Database {
	d := Database{Path: path}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return d
	}
	d.IsThere = true
	if d.Err = err; err == nil {
		d.Err, d.WrittenAt = unix.Access(path, unix.W_OK), info.ModTime()
	}
	if wal, err := os.Stat(path + "-wal"); err == nil && wal.ModTime().After(d.WrittenAt) {
		d.WrittenAt = wal.ModTime()
	}
	return d
}

// ReadClock asks the kernel whether an NTP client keeps the clock.
func ReadClock() Clock {
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	return Clock{IsKnown: err == nil, IsSynced: state != unix.TIME_ERROR && t.Status&unix.STA_UNSYNC == 0}
}
