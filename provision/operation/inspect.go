package operation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/hardware"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/proof"
	"slipway.dev/slipway/pxe"
)

// InspectRequest is an inspection that a person orders.
type InspectRequest struct {
	MayRestart bool               `json:"mayRestart,omitempty"` // a machine that runs is restarted; else it is inspected at its next boot
	BurnInFor  inventory.Duration `json:"burnInFor,omitempty"`
	MayWrite   bool               `json:"mayWrite,omitempty"` // the burn-in may overwrite disks
	// BMCUser makes an account of that name on the machine's controller, from the machine itself, with a password that
	// nobody sees; from then on the host is powered by it, over IPMI.
	BMCUser string `json:"bmcUser,omitempty" maxLength:"16" pattern:"^[a-z][a-z0-9-]*$"`
	// BMCNetwork is where that controller must be: an address, or a network such as 10.1.0.0/16. Without it, the address that the
	// agent names must be one that was known before this inspection.
	BMCNetwork string `json:"bmcNetwork,omitempty" maxLength:"64"`
}

// Inspect looks at a host's hardware with our agent. Of a host whose machine was replaced it accepts the new one.
func (o *Orders) Inspect(ctx context.Context, id inventory.HostID, r InspectRequest, who ledger.Asker) (inventory.Host, error) {
	if time.Duration(r.BurnInFor) < 0 || time.Duration(r.BurnInFor) > 7*24*time.Hour {
		return inventory.Host{}, inventory.Errorf(inventory.Invalid, "a burn-in of %s is not between 0 and a week", r.BurnInFor)
	}
	if r.BMCUser != "" && (len(r.BMCUser) > 16 || inventory.CheckName("account", r.BMCUser) != nil) {
		return inventory.Host{}, inventory.Errorf(inventory.Invalid, "%q is not a name for an account of a controller", inventory.Clean(r.BMCUser, 40)).
			WithHint("use at most 16 of a-z, 0-9 and -")
	}
	network, err := ParseBMCNetwork(r.BMCNetwork)
	if err != nil {
		return inventory.Host{}, err
	}
	return o.Changed(ctx, who, id, func(tx inventory.Tx, h *inventory.Host) error {
		if wasReplaced, err := o.acceptReplacement(tx, h, who.By); err != nil {
			return err
		} else if _, err := tx.FindOpenOperation(h.ID); wasReplaced && err == nil {
			return nil // what waited for this goes on
		}
		if h.State == inventory.Active || h.ClaimID != "" || h.IsAdopted {
			return inventory.Errorf(inventory.Conflict, "host %s is %s, claimed or adopted: an inspection would end what runs on it", h.Name, h.State).
				WithHint("release it first")
		}
		if r.MayWrite && (h.IsProtected || h.ClaimID != "") {
			return inventory.Errorf(inventory.Forbidden, "host %s is protected or claimed: nothing on its disks is overwritten", h.Name)
		}
		return o.startInspection(tx, h, Params{MayRestart: r.MayRestart, BurnInFor: r.BurnInFor, MayWrite: r.MayWrite, BMCUser: r.BMCUser, BMCNetwork: network}, who.By)
	})
}

// acceptReplacement forgets by what a host was known, if another machine has taken its place.
func (o *Orders) acceptReplacement(tx inventory.Tx, h *inventory.Host, by string) (bool, error) {
	closed, err := tx.CloseIssue(replaced(h, "").Key, o.cfg.Now())
	if err != nil || !closed {
		return false, err
	}
	last, err := tx.FindInspection(h.ID, 0)
	if err != nil {
		return false, fmt.Errorf("read inspection of %s: %w", h.Name, err)
	}
	last = inventory.Inspection{HostID: h.ID, At: o.cfg.Now(), Hardware: inventory.Hardware{Source: SourceReplaced}}
	if err := tx.SaveInspection(&last); err != nil {
		return false, err
	}
	op, err := tx.FindOpenOperation(h.ID)
	if err == nil {
		err = o.goOnReplaced(tx, op)
	}
	if err = ledger.IgnoreNotFound(err); err != nil {
		return false, err
	}
	return true, o.cfg.Ledger.Edit(tx, h, "the machine in its place is accepted by "+by)
}

// SourceReplaced marks an inspection of a machine that nobody has looked at yet: another one stands in its place. Which disks
// it has is not known.
const SourceReplaced = "replaced"

// goOnReplaced goes on with what waited for a person to accept another machine. A wipe looks first which disks that one has.
func (o *Orders) goOnReplaced(tx inventory.Tx, op inventory.Operation) error {
	j, err := o.JobOf(tx, op)
	if err != nil {
		return err
	}
	if op.Kind == inventory.OpRelease || op.Kind == inventory.OpClean {
		j.P.MustInspect = true
		j.op.Params = j.P.Encode()
		if op.Step == inventory.StepWipe {
			j.op.Step = inventory.StepNetboot
			return j.forward()
		}
	}
	j.op.NextAt = o.cfg.Now()
	return tx.UpdateOperation(&j.op, o.cfg.Now())
}

// startInspection begins to look at a host's hardware.
func (o *Operator) startInspection(tx inventory.Tx, h *inventory.Host, p Params, by string) error {
	if p.BurnInFor == 0 {
		burn, err := o.burnInOf(tx, h)
		if err != nil {
			return err
		}
		if _, err := tx.FindInspection(h.ID, 0); inventory.IsKind(err, inventory.NotFound) {
			p.BurnInFor = burn // of new hosts
		}
	}
	if err := o.cfg.Ledger.Move(tx, h, inventory.Inspect, "", "inspection asked for by "+by); err != nil {
		return err
	}
	_, err := o.Start(tx, h, inventory.Operation{Kind: inventory.OpInspect, By: by}, p)
	return err
}

// burnInOf is how long the pools that a host is in want new hosts to be loaded.
func (o *Operator) burnInOf(tx inventory.Tx, h *inventory.Host) (inventory.Duration, error) {
	pools, err := tx.Pools().List(inventory.Page{})
	if err != nil {
		return 0, fmt.Errorf("read pools: %w", err)
	}
	var longest inventory.Duration
	for _, p := range pools {
		if sel, err := inventory.ParseSelector(p.Selector); err == nil && (len(sel) == 0 || sel.Matches(h)) {
			longest = max(longest, p.BurnInFor)
		}
	}
	return longest, nil
}

// InspectAccepted begins the inspection of a host that was just accepted, if there is an agent to do it.
func (o *Operator) InspectAccepted(tx inventory.Tx, h *inventory.Host, by string) error {
	if h.State != inventory.Available || h.IsAdopted || h.InMaintenance {
		return nil
	}
	if _, err := tx.Images().Find(inventory.AgentImage(h.Arch)); err != nil {
		return ledger.IgnoreNotFound(err)
	}
	if _, err := tx.FindOpenOperation(h.ID); err == nil {
		return nil
	}
	return o.startInspection(tx, h, Params{}, by)
}

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

func joinFew(words []string) string {
	text := ""
	for i, w := range words {
		if i == 3 {
			return text + fmt.Sprintf(" and %d more", len(words)-3)
		}
		if i > 0 {
			text += ", "
		}
		text += w
	}
	return text
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
