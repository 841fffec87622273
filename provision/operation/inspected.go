package operation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/hardware"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/proof"
	"slipway.dev/slipway/pxe"
)

// inspected takes the hardware that the agent found; stop says that the operation has ended with it.
func (j reportStep) inspected(hw inventory.Hardware, now time.Time) (stop bool, err error) {
	if len(hw.Disks) > hardware.MaxDisks {
		return true, j.giveUp(failure{
			reason: fmt.Sprintf("it has %d disks, and an inspection holds %d", len(hw.Disks), hardware.MaxDisks), isLasting: true,
			hint: "a disk that is not in the inspection would never be wiped: split the shelf into several hosts",
		})
	}
	hw.MissingDisks = nil
	hardware.Clean(&hw)
	hw.CollectedAt, hw.Source = now, "agent"
	i := inventory.Inspection{HostID: j.Host.ID, At: now, Hardware: hw, Operation: j.op.ID}
	last, err := j.Tx.FindInspection(j.Host.ID, 0)
	if err != nil && !inventory.IsKind(err, inventory.NotFound) {
		return false, fmt.Errorf("read inspection of %s: %w", j.Host.Name, err)
	}
	if err == nil {
		if why := proof.OtherMachine(last.Hardware.System, hw.System); why != "" {
			return true, j.isReplaced(why)
		}
		i.Changes = hardware.Diff(last.Hardware, hw)
		i.Hardware.MissingDisks = proof.Missing(last.Hardware, hw)
	}
	if err := j.learn(hw); err != nil {
		return false, err
	}
	goldens, err := j.Tx.Goldens().List(inventory.Page{})
	if err != nil {
		return false, fmt.Errorf("read golden hardware: %w", err)
	}
	if g, ok := hardware.Select(goldens, j.Host); ok {
		i.Golden, i.Faults = g.Name, hardware.Check(g, j.Host, hw)
	}
	if err := j.Tx.SaveInspection(&i); err != nil {
		return false, fmt.Errorf("store inspection of %s: %w", j.Host.Name, err)
	}
	if err := j.Tx.AddEvent(&inventory.Event{
		At: now, Kind: inventory.EventInspected, HostID: j.Host.ID, Detail: hardware.Summary(&hw),
		Data: map[string]any{"n": i.N, "changes": i.Changes, "faults": i.Faults, "operation": j.op.ID},
	}); err != nil {
		return false, err
	}
	return false, j.hardwareIssues(&i)
}

// learn takes over into the host what selectors, claims and people look for.
func (j reportStep) learn(hw inventory.Hardware) error {
	h := &j.Host
	for _, f := range []struct {
		field *string
		said  string
	}{
		{&h.UUID, hw.System.UUID},
		{&h.Serial, hw.System.Serial},
		{&h.AssetTag, hw.System.AssetTag},
		{&h.Manufacturer, hw.System.Manufacturer},
		{&h.Product, hw.System.Product},
	} {
		if f.said != "" {
			*f.field = f.said
		}
	}
	if hw.MemoryBytes > 0 {
		h.MemoryMiB = int(hw.MemoryBytes >> 20)
	}
	if hw.CPU.Arch != "" {
		h.Arch = hw.CPU.Arch
	}
	if h.Facts == nil {
		h.Facts = map[string]string{}
	}
	for k, v := range map[string]string{
		"cpu": hw.CPU.Model, "threads": fmt.Sprint(hw.CPU.Threads), "disks": fmt.Sprint(len(hw.Disks)), "biosVersion": hw.Firmware.Version,
		"switch": switchOf(&hw, h), inventory.FactSecureBoot: secureBootOf(&hw.Firmware),
	} {
		if v != "" {
			h.Facts[k] = inventory.Clean(v, 120)
		}
	}
	setFact(h, inventory.FactSecureBootDB, secureBootDB(&hw.Firmware))
	setFact(h, inventory.FactCPULevel, inventory.CPULevelOf(&hw.CPU))
	for _, p := range hw.Ports {
		if err := j.r.cfg.AddNIC(j.Tx, h, p.MAC); err != nil {
			return err
		}
		if i := slices.IndexFunc(h.NICs, func(n inventory.NIC) bool { return n.MAC == p.MAC }); i >= 0 {
			h.NICs[i].Name = inventory.Clean(p.Name, 32)
		}
	}
	j.o.cfg.Sessions.SetHost(h.ID, h.MACs()...)
	if err := j.storeHost(); err != nil {
		return err
	}
	return j.r.cfg.CheckHints(j.Tx, h)
}

// switchOf names the switch and its port at the other end of the card that a host boots from, else of the first that heard one.
func switchOf(hw *inventory.Hardware, h *inventory.Host) (text string) {
	for _, p := range hw.Ports {
		if p.Neighbour == nil {
			continue
		}
		isBoot := slices.ContainsFunc(h.NICs, func(n inventory.NIC) bool { return n.MAC == p.MAC && n.IsBoot })
		if isBoot || text == "" {
			text = strings.TrimSpace(cmp.Or(p.Neighbour.System, p.Neighbour.Chassis) + " " + p.Neighbour.Port)
		}
		if isBoot {
			return text
		}
	}
	return text
}

// secureBootOf is what an inspection says of Secure Boot; "" where the question makes no sense.
func secureBootOf(f *inventory.FirmwareInfo) string {
	switch {
	case f.Kind != inventory.UEFI && f.Kind != inventory.UEFIHTTP:
		return ""
	case f.IsSecureBoot:
		return pxe.SecureBootOn
	}
	return pxe.SecureBootOff
}

// secureBootDB are the names of the certificates that a firmware trusts; "" when they are not known.
func secureBootDB(f *inventory.FirmwareInfo) string {
	var names []string
	for _, c := range f.SecureBootDB {
		if name := strings.ReplaceAll(c.Name, "; ", ", "); !slices.Contains(names, name) && len(names) < maxTrusted {
			names = append(names, name)
		}
	}
	return strings.Join(names, "; ")
}

// maxTrusted bounds the certificates of a firmware that are kept as a fact; most have five.
const maxTrusted = 32

// setFact notes a fact that an inspection tells; one that it does not tell stays as it is known.
func setFact(h *inventory.Host, name, value string) {
	if value != "" {
		h.Facts[name] = inventory.Clean(value, 2048)
	}
}

// hardwareIssues opens and closes what an inspection shows.
func (j agentStep) hardwareIssues(i *inventory.Inspection) error {
	var missing []string
	for _, d := range i.Hardware.PCI {
		if d.IsMissingDriver {
			missing = append(missing, d.ID)
		}
	}
	for _, c := range []struct {
		kind, cause, hint string
		isOpen            bool
	}{
		{
			inventory.IssueDiskMissing, sayMissing(i.Hardware.MissingDisks), "put it back, or say that it is gone for good: slipway host set " + j.Host.Name + " --keep-disk serial=SERIAL",
			len(proof.Owed(inventory.Hardware{MissingDisks: i.Hardware.MissingDisks}, j.Host.KeepDisks)) > 0,
		},
		{inventory.IssueGolden, fmt.Sprintf("not as golden hardware %s says: %s", i.Golden, joinFew(i.Faults)), "slipway host hardware " + j.Host.Name, len(i.Faults) > 0},
		{inventory.IssueDriver, fmt.Sprintf("the agent has no driver for %s", joinFew(missing)), "make the agent image with that driver: slipway agent-image build --help", len(missing) > 0},
		{inventory.IssueHardware, fmt.Sprintf("%d changes since the inspection before", len(i.Changes)), "slipway host hardware " + j.Host.Name + " --diff", len(i.Changes) > 0},
	} {
		issue := j.issue(c.kind, inventory.SeverityWarning, c.cause, c.hint)
		if !c.isOpen {
			if err := j.o.cfg.Ledger.CloseIssue(j.Tx, issue, "the last inspection shows none of it"); err != nil {
				return err
			}
			continue
		}
		if err := j.o.cfg.Ledger.OpenIssue(j.Tx, issue); err != nil {
			return err
		}
	}
	return nil
}

// burntIn takes the result of a burn-in; a host that failed it is quarantined.
func (j agentStep) burntIn(b *inventory.BurnIn) (stop bool, err error) {
	if b == nil || len(b.Tests) > 512 {
		return true, j.fail(failure{reason: "the agent's report lacks the burn-in"})
	}
	var failed []string
	for i := range b.Tests {
		t := &b.Tests[i]
		t.Name, t.Detail, t.Unit = inventory.Clean(t.Name, 80), inventory.Clean(t.Detail, 300), inventory.Clean(t.Unit, 20)
		if !t.Passed {
			failed = append(failed, t.Name+": "+t.Detail)
		}
	}
	if err := j.keepReport(inventory.ReportBurnIn, b); err != nil {
		return true, err
	}
	if len(failed) == 0 {
		if failed, err = j.untested(b); err != nil {
			return true, err
		}
	}
	issue := j.issue(inventory.IssueBurnIn, inventory.SeverityError, "burn-in failed: "+joinFew(failed), "slipway host report "+j.Host.Name)
	if len(failed) == 0 {
		return false, j.o.cfg.Ledger.CloseIssue(j.Tx, issue, "burn-in passed")
	}
	return true, j.giveUp(failure{reason: "burn-in failed: " + joinFew(failed), hint: "slipway host report " + j.Host.Name, isLasting: true})
}
