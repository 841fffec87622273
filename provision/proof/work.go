package proof

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
)

// Unclean says what is missing before a host counts as wiped, a line for each disk. It returns nothing when each owed disk
// has a certificate of its own, of the ordered mode and without an error. isFinal says that another try would show the
// same: a certificate is missing, or is of another mode.
func Unclean(owed []inventory.Disk, mode inventory.CleanMode, keep []inventory.DiskHint, certificates []inventory.WipeCertificate) (faults []string, isFinal bool) {
	taken := make([]bool, len(certificates))
	for _, d := range owed {
		i := find(d, certificates, taken, func(c inventory.WipeCertificate) inventory.Disk { return c.Disk })
		if i < 0 {
			faults, isFinal = append(faults, NameOf(d)+" has no certificate"), true
			continue
		}
		// One certificate counts for one disk: an agent cannot show the same twice.
		taken[i] = true
		c := certificates[i]
		switch {
		case c.Error != "":
			faults = append(faults, fmt.Sprintf("%s is not clean: %s", NameOf(d), c.Error))
		case c.IsKept || c.Method == "kept":
			faults, isFinal = append(faults, NameOf(d)+" was kept, and is not one of the disks to keep"), true
		case c.Mode != mode:
			faults, isFinal = append(faults, fmt.Sprintf("%s was wiped with mode %s, and the expected one is %s", NameOf(d), cmp.Or(string(c.Mode), "unknown"), mode)), true
		case c.Method == "none" && mode != inventory.CleanNone:
			faults, isFinal = append(faults, NameOf(d)+" was not wiped"), true
		}
	}
	// Its certificate is not owed. If it has an error, the host still holds data that nobody has seen wiped.
	for i, c := range certificates { // a disk that came after the inspection
		if !taken[i] && c.Error != "" && !isForeign(c.Disk) && !isKept(c.Disk, keep) {
			faults = append(faults, fmt.Sprintf("%s is not clean: %s", NameOf(c.Disk), c.Error))
		}
	}
	return faults, isFinal
}

// Untested says what a burn-in lacks that reports success. Each part of the inspection must have been under load for the
// ordered time, and no longer than has passed here since.
func Untested(b inventory.BurnIn, asked, passed time.Duration, hw inventory.Hardware) (faults []string) {
	// The server's own clock. The agent's seconds below are only its word.
	if passed < asked-asked/20 {
		faults = append(faults, fmt.Sprintf("the order was %s, and it reported after %s", inventory.Duration(asked), inventory.Duration(passed.Round(time.Second))))
	}
	if time.Duration(b.ForSeconds)*time.Second < asked {
		faults = append(faults, fmt.Sprintf("the order was %s, and it lasted %d s", inventory.Duration(asked), b.ForSeconds))
	}
	seen := map[string]bool{}
	diskN := 0
	for _, t := range b.Tests {
		if strings.HasPrefix(t.Name, "disk ") && !seen[t.Name] {
			diskN++
		}
		seen[t.Name] = true
		if least := asked.Seconds() * 0.9; t.Passed && t.Seconds < least {
			faults = append(faults, fmt.Sprintf("test %s ran for %.0f s", t.Name, t.Seconds))
		}
	}
	for _, name := range []string{"cpu", "memory"} {
		if !seen[name] {
			faults = append(faults, "test "+name+" is missing")
		}
	}
	if diskN < len(hw.Disks) { // their names may be others than when they were inspected
		faults = append(faults, fmt.Sprintf("%d of %d disks were tested", diskN, len(hw.Disks)))
	}
	for _, p := range hw.Ports {
		if p.HasLink && p.MAC != "" && !seen["port "+string(p.MAC)] {
			faults = append(faults, fmt.Sprintf("port %s was not tested", p.MAC))
		}
	}
	return faults
}

// Written is what an agent says that it wrote.
type Written struct {
	Disk     inventory.Disk
	Digest   string
	IsSeeded bool
}

// Unwritten says what is missing before an image counts as written, "" for nothing. It must be the ordered image with its
// configuration, on a disk of the host that is not kept. A host that was never inspected may have any disk. Without an
// expected digest, the agent must report one that it checked.
func Unwritten(w Written, digest string, hasSeed bool, hw *inventory.Hardware, keep []inventory.DiskHint) string {
	switch {
	case digest == "" && !strings.HasPrefix(w.Digest, "sha256:"):
		return "the agent does not say the digest of the image that was written"
	case digest != "" && !equal(w.Digest, digest):
		return fmt.Sprintf("the image that was written has the digest %s, and the expected one is %s", cmp.Or(w.Digest, "unknown"), digest)
	// A system without its configuration would start with the defaults of its image.
	case hasSeed && !w.IsSeeded:
		return "the image is written, and its configuration is not"
	case isKept(w.Disk, keep):
		return NameOf(w.Disk) + " was written, and is to be kept"
	case hw != nil && !slices.ContainsFunc(hw.Disks, func(d inventory.Disk) bool { return isSame(d, w.Disk) }):
		return NameOf(w.Disk) + " was written, and the inspection of this host has no such disk"
	}
	return ""
}

// OtherMachine says why a machine is not the inspected one. It returns "" when it is, or when nothing is known that
// distinguishes them. A machine that does not say what is known of it is another one.
func OtherMachine(known, said inventory.System) string {
	was, is := strings.ToLower(strings.TrimSpace(known.UUID)), strings.ToLower(strings.TrimSpace(said.UUID))
	switch {
	case was != "" && is == "":
		return "it does not say its UUID, and the machine that was inspected had " + was
	case was != is && was != "":
		return fmt.Sprintf("it has the UUID %s, and the machine that was inspected had %s", is, was)
	case known.Serial != "" && said.Serial != "" && !equal(known.Serial, said.Serial):
		return fmt.Sprintf("it has the serial number %s, and the machine that was inspected had %s", said.Serial, known.Serial)
	case was == "" && known.Serial != "" && said.Serial == "":
		return "it does not say its serial number, and the machine that was inspected had " + known.Serial
	}
	return ""
}
