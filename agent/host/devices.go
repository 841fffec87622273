package host

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"slipway.dev/slipway/inventory/sleep"
)

// always are modules that no device asks for by itself, in order; those the image lacks are left out.
var always = []string{"af_packet", "efivarfs", "sd_mod", "ipmi_devintf", "ipmi_si", "ipmi_ssif", "dm_mod", "usbhid", "hid_generic"}

// quietClasses are PCI classes that a RAM disk has no use for and that may do harm: graphics drivers take the console
// away and wait for firmware, sound and wireless ones as well.
var quietClasses = []string{"03", "04", "0d", "05", "12"}

// Devices loads a driver for every device, by its modalias.
type Devices struct {
	Modules *Modules
	Choices []Driver // by hand
	Sys     string   // /sys
	seen    map[string]bool
}

// Coldplug loads drivers for the devices that are there, until no new ones turn up: a bus driver brings new devices. It
// returns how many different devices it has handled.
func (d *Devices) Coldplug(ctx context.Context) int {
	if d.seen == nil {
		d.seen = make(map[string]bool)
	}
	for ctx.Err() == nil {
		found := d.walk()
		// Each round marks what it found as seen, and a machine has finitely many devices: the loop ends.
		if len(found) == 0 {
			break
		}
		slices.SortStableFunc(found, func(a, b string) int { return urgency(a) - urgency(b) })
		for _, modalias := range found {
			d.match(modalias)
			if urgency(modalias) == 0 { // it may have brought a device that is as urgent
				// A network port often sits behind a bus of its own, as virtio ports do behind PCI. The port must not wait for
				// all disk drivers of this round.
				for _, child := range d.walk() {
					d.match(child)
				}
			}
		}
	}
	for _, name := range always {
		if d.Modules.has(canonical(name)) {
			d.load(name)
		}
	}
	return len(d.seen)
}

// urgency puts network ports first: the agent reports the machine while its disks are still being found.
func urgency(modalias string) int {
	if _, class := pciID(modalias); strings.HasPrefix(class, "02") || strings.HasPrefix(modalias, "virtio:d00000001") {
		return 0
	}
	return 1
}

// walk returns the modaliases that were not seen before.
func (d *Devices) walk() (found []string) {
	_ = filepath.WalkDir(filepath.Join(d.Sys, "devices"), func(p string, e fs.DirEntry, err error) error {
		// A device may go while the walk reads its folder; then the walk goes on with the next one.
		if err != nil {
			return nil
		}
		if e.Name() != "modalias" || e.IsDir() {
			return nil
		}
		if modalias := read(p); modalias != "" && !d.seen[modalias] {
			d.seen[modalias] = true
			found = append(found, modalias)
		}
		return nil
	})
	return found
}

func (d *Devices) match(modalias string) {
	if strings.HasPrefix(modalias, "cpu:") { // KVM, ciphers, power meters: not ours
		return
	}
	id, class := pciID(modalias)
	if module, ok := d.chosen(id, class); ok {
		if module != "none" {
			d.load(module)
		}
		return
	}
	for _, quiet := range quietClasses {
		if strings.HasPrefix(class, quiet) {
			return
		}
	}
	for _, name := range d.Modules.Match(modalias) {
		d.load(name)
	}
}

// chosen returns the module that the admin chose for a PCI device: an id counts before a class.
func (d *Devices) chosen(id, class string) (module string, ok bool) {
	for _, c := range d.Choices {
		if id != "" && c.For == id {
			return c.Module, true
		}
	}
	for _, c := range d.Choices {
		if c.For == "network" && strings.HasPrefix(class, "02") || c.For == "storage" && strings.HasPrefix(class, "01") {
			return c.Module, true
		}
	}
	return "", false
}

func (d *Devices) load(name string) {
	if err := d.Modules.Load(name); err != nil {
		// ENODEV is how a driver reports that no device here is its own. Several modules match one device, and most of them fail
		// so: an error of one module stops nothing.
		d.Modules.log.Debug("a module is not loaded", "module", name, "err", err)
	}
}

// pciID reads id (8086:1572) and class (020000) from a modalias such as
// pci:v00008086d00001572sv...sd...bc02sc00i00; both are "" for other buses.
func pciID(modalias string) (id, class string) {
	if !strings.HasPrefix(modalias, "pci:v0000") || len(modalias) < 22 || modalias[13:18] != "d0000" {
		return "", ""
	}
	id = strings.ToLower(modalias[9:13] + ":" + modalias[18:22])
	if i := strings.Index(modalias, "bc"); i >= 0 && len(modalias) >= i+11 {
		class = strings.ToLower(modalias[i+2:i+4] + modalias[i+6:i+8] + modalias[i+9:i+11])
	}
	return id, class
}

const (
	settleFor  = time.Second      // how long no disk may turn up
	settleMost = 20 * time.Second // a controller that goes on finding disks is not waited for any longer
)

// Settle returns when the disks are there: when their list has stood still for a while, and no NVMe controller is still
// starting. Drivers find disks in the background after they are loaded.
func (d *Devices) Settle(ctx context.Context) {
	began, since, last := time.Now(), time.Now(), ""
	for time.Since(began) < settleMost && time.Since(since) < settleFor {
		if now := d.found(); now != last {
			since, last = time.Now(), now
		}
		if sleep.For(ctx, lookGap) != nil {
			return
		}
	}
}

// found names the disks that are there, and the controllers that are still starting; these change at each look.
func (d *Devices) found() string {
	words := entries(filepath.Join(d.Sys, "block"))
	for _, e := range entries(filepath.Join(d.Sys, "class/nvme")) {
		if state := read(filepath.Join(d.Sys, "class/nvme", e, "state")); state == "new" || state == "connecting" || state == "resetting" {
			words = append(words, e, time.Now().String())
		}
	}
	return strings.Join(words, " ")
}

func entries(dir string) (names []string) {
	all, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, e := range all {
		names = append(names, e.Name())
	}
	return names
}

// Hotplug loads drivers for devices that turn up later: disks behind slow controllers, USB. It listens to the kernel's
// uevents until ctx ends. ready is closed when nothing is missed any more.
func (d *Devices) Hotplug(ctx context.Context, ready chan<- struct{}) {
	defer func() {
		if ready != nil {
			close(ready)
		}
	}()
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_KOBJECT_UEVENT)
	if err != nil {
		d.Modules.log.Warn("devices that turn up later get no driver", "err", err)
		return
	}
	defer unix.Close(fd)
	timeout := unix.NsecToTimeval(int64(500 * time.Millisecond)) // how long ctx may be overdue
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: 1}); err != nil {
		d.Modules.log.Warn("devices that turn up later get no driver", "err", err)
		return
	}
	// Recvfrom does not know ctx. The timeout makes it return, so that the loop sees the end of ctx.
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout)
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 4<<20) // a small one only loses events
	close(ready)
	ready = nil
	seen := make(map[string]bool)
	buf := make([]byte, 16<<10)
	for ctx.Err() == nil {
		n, from, err := unix.Recvfrom(fd, buf, 0)
		if err != nil {
			continue
		}
		// Only the kernel, which has port 0, may tell of devices.
		if sa, ok := from.(*unix.SockaddrNetlink); !ok || sa.Pid != 0 {
			continue
		}
		if modalias := addedDevice(buf[:n]); modalias != "" && !seen[modalias] {
			seen[modalias] = true
			d.match(modalias)
		}
	}
}

// addedDevice returns the modalias of a device that a uevent adds, else "".
func addedDevice(event []byte) (modalias string) {
	isAdd := false
	for _, field := range strings.Split(string(event), "\x00") {
		if field == "ACTION=add" {
			isAdd = true
		}
		if v, ok := strings.CutPrefix(field, "MODALIAS="); ok {
			modalias = v
		}
	}
	if !isAdd {
		return ""
	}
	return modalias
}

// read returns a small file's text without blanks around it; "" when it cannot be read.
func read(file string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
