// Package inspect owns what a machine reports of its own hardware. It reads sysfs, procfs, SMBIOS, EFI variables,
// disk headers, the BMC and the LLDP frames of neighbours, and makes an inventory.Hardware of them. It never changes
// the machine, except for the one BMC account that a task asks for.
//
// Everything that it reads counts as hostile: a stick of memory can claim any text. Lengths are checked, and texts
// cleaned.
//
// Start reading at Source.Hardware. Each part is in a file of its own.
package inspect

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
)

// Bounds on what one machine may have; what is more is left out.
const (
	maxPCI   = 1024
	maxPorts = 128
	maxText  = 128
)

// MaxDisks is how many disks a machine may have. With more, Disks lists one beyond it, so that nobody takes the list
// for complete: a disk that nobody knows is never wiped.
const MaxDisks = 1024

// Devices holds the reads that need a system call. A method without a result returns an error.
type Devices interface {
	// NVMe reads by an admin command of a disk's controller: its identity (4096 bytes) or its health log (512).
	NVMe(disk string, what NVMeRead) ([]byte, error)
	// ATAHealth asks a SATA disk whether it expects a failure soon (SMART RETURN STATUS).
	ATAHealth(disk string) (isWell bool, err error)
	// TPM sends a command to the TPM 2.0 and returns its answer.
	TPM(command []byte) ([]byte, error)
	// PermanentMAC returns the MAC that the maker gave to a port.
	PermanentMAC(port string) (inventory.MAC, error)
}

// BMCPort carries one request to the machine's own BMC, without the network.
type BMCPort interface {
	// Do returns the answer without its completion code; a code other than 0 is a CompletionError.
	Do(ctx context.Context, netFn, command byte, data ...byte) ([]byte, error)
}

// Source is a machine to inspect. Root, Devices, Log and Now are required. One goroutine uses it.
type Source struct {
	Root    string // of the file system: / but in tests
	Devices Devices
	BMC     BMCPort // nil when there is none
	// Neighbours returns the neighbours of each port by LLDP, by port name; nil when nobody listened.
	Neighbours func(ctx context.Context) map[string]inventory.Neighbour
	Log        *slog.Logger
	Now        func() time.Time
}

// Hardware inspects everything, in some seconds, most of them for LLDP. It leaves out what it cannot read: a machine
// with a broken part is still inspected.
func (s *Source) Hardware(ctx context.Context) inventory.Hardware {
	h := inventory.Hardware{CollectedAt: s.Now().UTC(), Source: "agent"}
	h.Kernel = s.text("proc/sys/kernel/osrelease")
	dmi := s.dmi()
	h.System, h.DIMMs = dmi.system, dmi.dimms
	h.Firmware = s.firmware(dmi)
	h.CPU = s.cpu()
	h.MemoryBytes = s.memory(dmi.dimms)
	h.PCI = s.pci()
	for _, d := range h.PCI {
		// Display controllers that are 3D controllers, and processing accelerators. The VGA of a BMC is neither.
		if strings.HasPrefix(d.Class, "0302") || strings.HasPrefix(d.Class, "12") || strings.HasPrefix(d.Class, "0300") && isAccelerator(d.ID) {
			h.Accelerators = append(h.Accelerators, d)
		}
	}
	h.Disks = s.Disks(ctx)
	h.TPM = s.tpm()
	h.BMC = s.bmc(ctx)
	h.Ports = s.ports()
	if s.Neighbours != nil {
		heard := s.Neighbours(ctx)
		for i := range h.Ports {
			if n, ok := heard[h.Ports[i].Name]; ok {
				h.Ports[i].Neighbour = &n
			}
		}
	}
	return h
}

// path joins below the root.
func (s *Source) path(parts ...string) string {
	return filepath.Join(append([]string{s.Root}, parts...)...)
}

// raw reads at most a mebibyte of a file; nil when it cannot. Files of sysfs and efivarfs have sizes that are not
// true, so that it reads until there is no more.
func (s *Source) raw(parts ...string) []byte {
	f, err := os.Open(s.path(parts...))
	if err != nil {
		return nil
	}
	defer f.Close()
	buf := make([]byte, 1<<20)
	n := 0
	for n < len(buf) {
		m, err := f.Read(buf[n:])
		n += m
		if err != nil || m == 0 {
			break
		}
	}
	return buf[:n]
}

// text reads a short text and cleans it.
func (s *Source) text(parts ...string) string {
	return clean(string(s.raw(parts...)))
}

// number reads a decimal or 0x number; 0 when there is none.
func (s *Source) number(parts ...string) int64 {
	n, err := strconv.ParseInt(s.text(parts...), 0, 64)
	if err != nil {
		return 0
	}
	return n
}

// list returns the names in a folder, sorted the way people count: sda, sdb, ..., sdaa; eth2 before eth10.
func (s *Source) list(parts ...string) (names []string) {
	entries, err := os.ReadDir(s.path(parts...))
	if err != nil {
		return nil
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	sort.SliceStable(names, func(i, j int) bool {
		a, b := names[i], names[j]
		if len(a) != len(b) && strings.TrimRight(a, "0123456789") == strings.TrimRight(b, "0123456789") {
			return len(a) < len(b)
		}
		return a < b
	})
	return names
}

// resolve follows a link and returns its target relative to the root; "" when the target does not exist. A link in a
// recorded tree must not lead out of it.
func (s *Source) resolve(parts ...string) string {
	p, err := filepath.EvalSymlinks(s.path(parts...))
	if err != nil {
		return ""
	}
	root, err := filepath.EvalSymlinks(s.Root)
	if err != nil {
		return ""
	}
	rel, err := filepath.Rel(root, p)
	if err != nil || strings.HasPrefix(rel, "..") {
		return ""
	}
	return rel
}

// link returns the last element of what a link points to, such as the name of a driver.
func (s *Source) link(parts ...string) string {
	to, err := os.Readlink(s.path(parts...))
	if err != nil {
		return ""
	}
	return clean(filepath.Base(to))
}

// exists reports whether there is such a file.
func (s *Source) exists(parts ...string) bool {
	_, err := os.Lstat(s.path(parts...))
	return err == nil
}

func clean(text string) string {
	// A NUL ends the texts of firmware, whatever stands behind it.
	text, _, _ = strings.Cut(text, "\x00")
	return inventory.Clean(text, maxText)
}

// Identity returns what distinguishes this machine, in milliseconds: its UUID and serial number, and the MACs of its
// ports. The agent registers with it before an inspection.
func (s *Source) Identity() (system inventory.System, macs []inventory.MAC) {
	for _, p := range s.ports() {
		macs = append(macs, p.MAC)
	}
	return s.dmi().system, macs
}
