package acceptance

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
)

// verdict collects what stands against a host, and what a reader should know besides.
type verdict struct{ reasons, notes []string }

func (v *verdict) against(format string, args ...any) {
	if len(v.reasons) < notesShown {
		v.reasons = append(v.reasons, inventory.Clean(fmt.Sprintf(format, args...), textLimit))
	}
}

func (v *verdict) note(format string, args ...any) {
	if len(v.notes) < notesShown {
		v.notes = append(v.notes, inventory.Clean(fmt.Sprintf(format, args...), textLimit))
	}
}

func (v *verdict) host(h *inventory.Host) {
	switch {
	case h.State == inventory.Discovered:
		v.against("nobody has accepted the host")
	case h.State == inventory.Failed && h.StateReason != "":
		v.against("it is in quarantine: %s", h.StateReason)
	case h.State == inventory.Failed:
		v.against("it is in quarantine")
	case h.IsDirty && h.Machine == "":
		v.against("something was installed on it since it was last wiped")
	}
	if h.Machine != "" {
		v.note("machine %s is installed on it", h.Machine)
	}
	if h.InMaintenance {
		v.note("it is in maintenance")
	}
	if h.FailureN > 0 {
		v.note("installations in a row that failed on it: %d", h.FailureN)
	}
}

func (v *verdict) inspection(i *inventory.Inspection) {
	for _, f := range i.Faults {
		v.against("it %s", f)
	}
	for _, d := range i.Hardware.Disks {
		if d.Health != "" && !strings.EqualFold(d.Health, "ok") {
			v.against("disk %s is not healthy: %s", diskName(d), d.Health)
		}
	}
	if n := len(i.Changes); n > 0 {
		v.note("changes of hardware since the inspection before: %d", n)
	}
	for _, p := range i.Hardware.PCI {
		if p.IsMissingDriver {
			v.note("the agent has no driver for %s", strings.Join(strings.Fields(p.Vendor+" "+p.Model+" "+p.ID+" "+p.Address), " "))
		}
	}
}

func (v *verdict) burnIn(b inventory.BurnIn) (isPassed bool) {
	if len(b.Tests) == 0 {
		v.against("the burn-in has tested nothing")
		return false
	}
	isPassed = true
	for _, t := range b.Tests {
		if !t.Passed {
			isPassed = false
			v.against("burn-in of %s failed: %s", t.Name, cmp.Or(t.Detail, "no detail"))
		}
	}
	return isPassed
}

func (v *verdict) bmc(b *inventory.BMC) {
	switch b.Driver {
	case inventory.Manual, inventory.WoL:
		v.note("its power is not read back: it is switched by %s", b.Driver)
	default:
		if !b.IsReachable {
			v.against("its BMC is not reachable: %s", cmp.Or(b.Reason, "no reason known"))
		}
	}
}

// issue repeats an open issue, unless it only says that there are faults, which are listed.
func (v *verdict) issue(i *inventory.Issue, hasFaults bool) {
	switch {
	case i.Type == inventory.IssueGolden && hasFaults:
	case i.Severity == inventory.SeverityError:
		v.against("open issue: %s", i.Cause)
	default:
		v.note("open warning: %s", i.Cause)
	}
}

// diskName names a disk by what is printed on it.
func diskName(d inventory.Disk) string {
	switch {
	case d.Serial != "":
		return fmt.Sprintf("%s (%s)", d.Serial, d.Name)
	case d.WWN != "":
		return fmt.Sprintf("%s (%s)", d.WWN, d.Name)
	}
	return d.Name
}

// isSame reports whether two readings are of one disk: by WWN, else by serial, and by name only where neither is known.
func isSame(a, b inventory.Disk) bool {
	switch {
	case a.WWN != "" && b.WWN != "":
		return strings.EqualFold(a.WWN, b.WWN)
	case a.Serial != "" && b.Serial != "":
		return a.Serial == b.Serial
	}
	return a.WWN == b.WWN && a.Serial == b.Serial && a.Name == b.Name
}

// addDisks puts the newest certificate to each disk. isFree says that nothing should be installed on them: then a
// certificate that is older than the last installation proves nothing.
func (s *Sheet) addDisks(reports []inventory.Report, isFree bool, v *verdict) {
	var wipedAt, installedAt time.Time
	if s.Hardware != nil {
		for _, d := range s.Hardware.Disks {
			s.Disks = append(s.Disks, Disk{Disk: d})
		}
	}
	for _, r := range reports { // the newest first
		switch {
		case r.Kind == inventory.ReportInstall && installedAt.IsZero():
			installedAt = r.CreatedAt
		case r.Kind == inventory.ReportWipe && wipedAt.IsZero():
			wipedAt = r.CreatedAt
		}
		if r.Kind != inventory.ReportWipe {
			continue
		}
		var all []inventory.WipeCertificate
		if json.Unmarshal(r.Body, &all) != nil {
			v.against("wipe report %s cannot be read", r.ID)
			continue
		}
		for _, c := range all {
			s.addCertificate(&Wipe{Report: r.ID, At: r.CreatedAt.UTC(), WipeCertificate: c})
		}
	}
	if isFree && installedAt.After(wipedAt) {
		v.against("something was installed on it since it was last wiped")
	}
	for _, d := range s.Disks {
		v.disk(d)
	}
}

// addCertificate keeps the first certificate of a disk, which is the newest. Twin disks that say the same serial each get
// one of the certificates of a report.
func (s *Sheet) addCertificate(w *Wipe) {
	isKnown := false
	for i := range s.Disks {
		if d := &s.Disks[i]; isSame(d.Disk, w.Disk) {
			switch isKnown = true; {
			case d.Wipe == nil:
				d.Wipe = w
				return
			case d.Wipe.Report != w.Report: // older than what is known; it must not serve a twin either
				return
			}
		}
	}
	for _, d := range s.Departed {
		isKnown = isKnown || isSame(d.Disk, w.Disk)
	}
	if !isKnown && len(s.Departed) < departedShown {
		s.Departed = append(s.Departed, Disk{Disk: w.Disk, Wipe: w})
	}
}

func (v *verdict) disk(d Disk) {
	name, w := diskName(d.Disk), d.Wipe
	switch {
	case w == nil && (d.Disk.IsRemovable || d.Disk.IsReadOnly):
		v.note("disk %s was not wiped: it is removable or read-only", name)
	case w == nil:
		v.against("disk %s has no certificate of a wipe", name)
	case w.Error != "":
		v.against("disk %s is not clean: %s", name, w.Error)
	case w.IsKept || w.Method == "kept":
		v.note("disk %s was kept with its data", name)
	case w.Mode == inventory.CleanNone || w.Mode == "":
		v.against("disk %s has no certificate of a wipe", name)
	case w.VerifiedN == 0:
		v.note("disk %s was wiped, and no sample was read back", name)
	}
}
