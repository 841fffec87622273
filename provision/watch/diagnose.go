package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/ref"
	"slipway.dev/slipway/provision/configuration"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/session"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/diagnosis"
	"slipway.dev/slipway/pxe/trace"
)

// Wire is the record of what machines said.
type Wire interface {
	Packets(mac inventory.MAC, since time.Time) []trace.Packet
	Frames(mac inventory.MAC) []trace.Frame
	Notes(mac inventory.MAC) []trace.Note
}

// Diagnosis is why a machine does not boot, as far as one can tell from here.
type Diagnosis struct {
	Host    string              `json:"host,omitempty" doc:"Name; absent for a machine that is not listed"`
	MAC     inventory.MAC       `json:"mac" doc:"Of the port that it is about"`
	Session inventory.SessionID `json:"session,omitempty" doc:"Its latest boot"`
	Step    string              `json:"step,omitempty" doc:"How far that came"`
	Expects string              `json:"expects,omitempty" doc:"What should happen next, in words"`
	By      time.Time           `json:"by,omitzero" doc:"After that it is late"`
	IsLate  bool                `json:"isLate"`
	Trouble string              `json:"trouble,omitempty" doc:"What is late or has failed; absent when nothing is, and then there are no causes"`
	Causes  []diagnosis.Cause   `json:"causes" doc:"The likeliest first; none while nothing is late and nothing has failed"`
	Options []GivenOption       `json:"options,omitempty" doc:"DHCP options of its reservation, classes and subnet that it is given"`
	Packets []PacketLine        `json:"packets" doc:"What was on the wire lately, oldest first"`
	Refs    []inventory.Ref     `json:"-"` // what the texts name besides the host
}

// DiagnoserConfig is everything a Diagnoser needs.
type DiagnoserConfig struct {
	*ledger.Ledger // with the store, the time and the log
	Sessions       *session.Table
	Expectations   *Expectations
	// Wire is the record of what machines said, nil when there is none; Ours returns our addresses, and BootPort is the TCP
	// port of the boot listener.
	Wire     Wire
	Ours     func() []netip.Addr
	BootPort int
	// Plan is what a host in a subnet would boot.
	Plan func(tx inventory.Tx, h *inventory.Host, subnet string) (pxe.Plan, error)
}

// Diagnoser says why machines do not boot. Its methods may be called from many goroutines, once it is configured.
type Diagnoser struct{ cfg DiagnoserConfig }

// Configure gives a Diagnoser what it needs.
func (dg *Diagnoser) Configure(cfg DiagnoserConfig) { dg.cfg = cfg }

// PacketLine is a packet in one line.
type PacketLine struct {
	At       time.Time  `json:"at"`
	IsOurs   bool       `json:"isOurs" doc:"True when this server sent it"`
	Protocol trace.Kind `json:"protocol" enum:"dhcp,dhcpv6,tftp,tcp,icmp,router"`
	Summary  string     `json:"summary"`
}

// Diagnose says why a machine does not boot. Host is "" for a machine that is not listed. mac names the port; "" takes the
// one with the latest packet.
func (dg *Diagnoser) Diagnose(ctx context.Context, id inventory.HostID, mac inventory.MAC) (d Diagnosis, err error) {
	err = dg.cfg.Store.Read(ctx, func(tx inventory.Tx) error {
		d, err = dg.diagnose(tx, id, mac, false)
		return err
	})
	return d, err
}

// diagnose explains a boot when something is late or has failed; isLate says that the caller knows that.
func (dg *Diagnoser) diagnose(tx inventory.Tx, id inventory.HostID, mac inventory.MAC, isLate bool) (Diagnosis, error) {
	c := diagnosis.Case{Now: dg.cfg.Now(), BootPort: dg.cfg.BootPort}
	if dg.cfg.Ours != nil {
		c.Ours = dg.cfg.Ours()
	}
	var d Diagnosis
	if id != "" {
		h, err := tx.FindHost(id)
		if err != nil {
			return d, err
		}
		c.Host, d.Host = &h, h.Name
		// A host may have several ports. The question is about the one that sent something last.
		if mac == "" {
			mac = dg.heardPort(&h)
		}
		if err := dg.hostFacts(tx, &c, mac); err != nil {
			return d, err
		}
	}
	d.MAC = mac
	// A diagnosis works without a record, too. It then knows the inventory and the boot only.
	if dg.cfg.Wire != nil && mac != "" {
		c.Packets, c.Notes = dg.cfg.Wire.Packets(mac, c.Now.Add(-recordFor)), dg.cfg.Wire.Notes(mac)
	}
	if err := dg.bootFacts(tx, &c, mac); err != nil {
		return d, err
	}
	d.Session, d.Step = c.Session.ID, c.Session.Step
	next, by, waits, err := dg.cfg.Expectations.owed(tx, &c.Session)
	if err != nil {
		return d, err
	}
	if waits && c.Session.ID != "" {
		d.Expects, d.By, d.IsLate = next.expect, by, c.Now.After(by)
	}
	// The packets are cut to the latest for people. The rules below see all of them.
	d.Packets = linesOf(c.Packets, c.Ours)
	if d.Options, err = givenOptions(tx, mac, c.Subnet, c.Packets); err != nil {
		return d, err
	}
	c.IsLate = isLate || d.IsLate || c.Operation.IsOpen() && !c.Operation.DeadlineAt.IsZero() && c.Now.After(c.Operation.DeadlineAt)
	ended, err := dg.evidenceEnds(tx, &c)
	if err != nil {
		return d, err
	}
	// Evidence from before the end would blame the last attempt for the trouble of this one.
	c.End(ended)
	d.Causes = []diagnosis.Cause{}
	// Without trouble there are no causes: a healthy machine must not get advice.
	if d.Trouble = c.Trouble(); d.Trouble != "" {
		d.Causes = append(d.Causes, diagnosis.Explain(c)...)
	}
	d.Refs = ref.Within(&c)
	return d, nil
}

// evidenceEnds is when the latest evidence ended: the power of the host went off, or what was done with it ended.
func (dg *Diagnoser) evidenceEnds(tx inventory.Tx, c *diagnosis.Case) (at time.Time, err error) {
	if c.Host == nil {
		return at, nil
	}
	latest := func(t time.Time) {
		if t.After(at) {
			at = t
		}
	}
	// A boot over the network is wanted since the power went on. Packets before that belong to an earlier boot.
	if c.WantsNetboot {
		latest(c.PowerOnAt)
	}
	changes, err := tx.ListEvents(inventory.EventFilter{HostID: c.Host.ID, Kind: inventory.EventPower, Before: math.MaxInt64}, 0, powersLooked)
	if err != nil {
		return at, err
	}
	for _, ev := range changes {
		if fields, ok := ev.Data.(map[string]any); ok && fmt.Sprint(fields["to"]) == string(inventory.PowerOff) {
			latest(ev.At)
		}
	}
	// Two, because the newest may still be open, and has no end yet.
	ops, err := tx.ListOperations(inventory.OperationFilter{HostID: c.Host.ID}, inventory.Page{Limit: 2})
	for _, o := range ops {
		latest(o.EndedAt)
	}
	s, err2 := tx.FindSession(c.Session.ID) // those before it were ended by the next attempt of the firmware, which tells nothing
	latest(s.EndedAt)
	return at, errors.Join(err, ledger.IgnoreNotFound(err2))
}

const (
	recordFor   = 2 * time.Hour // how far back packets are looked at
	mostPackets = 400           // how many of them are shown: the latest
)

func linesOf(packets []trace.Packet, ours []netip.Addr) []PacketLine {
	out := []PacketLine{}
	for _, p := range packets[max(0, len(packets)-mostPackets):] {
		out = append(out, PacketLine{At: p.At, IsOurs: slices.Contains(ours, p.Src.Addr()), Protocol: p.Kind, Summary: p.String()})
	}
	return out
}

// heardPort is the port of a host that was heard last, or from which it boots.
func (dg *Diagnoser) heardPort(h *inventory.Host) inventory.MAC {
	if len(h.NICs) == 0 {
		return ""
	}
	best, at := configuration.BootMAC(h), time.Time{}
	for _, n := range h.NICs {
		if s, ok := dg.cfg.Sessions.Of(n.MAC); ok && s.LastAt.After(at) {
			best, at = n.MAC, s.LastAt
		}
		if last := dg.lastPacket(n.MAC); last.After(at) {
			best, at = n.MAC, last
		}
	}
	return best
}

func (dg *Diagnoser) lastPacket(mac inventory.MAC) time.Time {
	if dg.cfg.Wire == nil {
		return time.Time{}
	}
	frames := dg.cfg.Wire.Frames(mac)
	if len(frames) == 0 {
		return time.Time{}
	}
	return frames[len(frames)-1].At
}

// hostFacts adds what the inventory says of the host.
func (dg *Diagnoser) hostFacts(tx inventory.Tx, c *diagnosis.Case, mac inventory.MAC) (err error) {
	h := c.Host
	if c.Issues, err = tx.ListIssues(false, h.ID); err != nil {
		return err
	}
	// No open operation is the usual case, and no error.
	if c.Operation, err = tx.FindOpenOperation(h.ID); err != nil && !inventory.IsKind(err, inventory.NotFound) {
		return err
	}
	if op := &c.Operation; op.Step == inventory.StepNetboot && op.State == inventory.OpRunning {
		c.WantsNetboot, c.PowerOnAt = true, op.StepAt
	}
	for _, n := range h.NICs {
		if at := dg.lastPacket(n.MAC); n.MAC != mac && !at.IsZero() {
			c.OtherPorts = append(c.OtherPorts, diagnosis.Port{MAC: n.MAC, LastAt: at})
		}
	}
	return nil
}

// bootFacts adds the latest boot of the port, and what the host would boot now.
func (dg *Diagnoser) bootFacts(tx inventory.Tx, c *diagnosis.Case, mac inventory.MAC) (err error) {
	s, ok := dg.cfg.Sessions.Of(mac)
	// After a restart of the server only the store knows the boot.
	if !ok && c.Host != nil {
		last, err := tx.ListSessions(c.Host.ID, inventory.Page{Limit: 1})
		if err != nil {
			return err
		}
		if len(last) == 1 && last[0].MAC == mac {
			s = last[0]
		}
	}
	c.Session = s
	if s.ID != "" {
		if c.Events, err = tx.ListEvents(inventory.EventFilter{SessionID: s.ID}, 0, eventsLooked); err != nil {
			return err
		}
	}
	for _, e := range c.Events { // the wire's own notes are gone after a restart
		if fields, ok := e.Data.(map[string]any); ok && e.Kind == inventory.EventDHCPUnanswered {
			c.Notes = append(c.Notes, trace.Note{At: e.At, Subnet: s.Subnet, Reason: fmt.Sprint(fields["reason"])})
		}
	}
	// Both sources in the order of time: the loop below wants the latest note.
	slices.SortStableFunc(c.Notes, func(a, b trace.Note) int { return a.At.Compare(b.At) })
	subnet := s.Subnet
	// The boot of a machine without an address may have no subnet. The notes say where it asked.
	for i := len(c.Notes) - 1; i >= 0 && subnet == ""; i-- {
		subnet = c.Notes[i].Subnet
	}
	if x, err := tx.Subnets().Find(subnet); err == nil {
		c.Subnet = &x
	} else if !inventory.IsKind(err, inventory.NotFound) {
		return err
	}
	if c.Host == nil {
		return nil
	}
	p, err := dg.cfg.Plan(tx, c.Host, subnet)
	if err != nil {
		return err
	}
	c.Image = p.Image
	client := pxe.Client{Stage: pxe.StageFirmware, MAC: mac, Arch: cmp.Or(s.Arch, c.Host.Arch), Firmware: cmp.Or(s.Firmware, c.Host.Firmware)}
	if heard, ok := diagnosis.Firmware(c.Packets); ok { // what it said of itself goes before what is remembered
		client = heard
	}
	client.Address, client.Subnet = s.Address, subnet
	if c.Decision = pxe.Decide(client, c.Host, p, c.Now); c.Decision.Boot == pxe.BootAgent && p.Work != nil {
		c.Image = p.Work.Agent
	}
	return nil
}

// powersLooked bounds how far back changes of power are looked at.
const powersLooked = 20

// Likeliest returns the first cause that stops a boot which is late, with what its texts name; ok is false when none is known.
func (dg *Diagnoser) Likeliest(tx inventory.Tx, id inventory.HostID, mac inventory.MAC) (cause diagnosis.Cause, refs []inventory.Ref, ok bool) {
	d, err := dg.diagnose(tx, id, mac, true)
	if err != nil {
		dg.cfg.Log.Warn("boot not diagnosed", "host", id, "err", err)
		return diagnosis.Cause{}, nil, false
	}
	// A cause that only slows the boot down must not stand as the reason in an issue.
	if len(d.Causes) == 0 || d.Causes[0].Weight < stops {
		return diagnosis.Cause{}, nil, false
	}
	return d.Causes[0], d.Refs, true
}

// stops is the weight from which a cause stops a boot; those below make it slow.
const stops = 30

// Record returns the frames of a machine, oldest first.
func (dg *Diagnoser) Record(ctx context.Context, id inventory.HostID, mac inventory.MAC) (frames []trace.Frame, err error) {
	if dg.cfg.Wire == nil {
		return nil, nil
	}
	// A MAC alone needs no look into the store, so this also works for machines that are not listed.
	if mac != "" || id == "" {
		return dg.cfg.Wire.Frames(mac), nil
	}
	err = dg.cfg.Store.Read(ctx, func(tx inventory.Tx) error {
		h, err := tx.FindHost(id)
		if err != nil {
			return err
		}
		for _, n := range h.NICs {
			frames = append(frames, dg.cfg.Wire.Frames(n.MAC)...)
		}
		return nil
	})
	slices.SortStableFunc(frames, func(a, b trace.Frame) int { return a.At.Compare(b.At) })
	return frames, err
}
