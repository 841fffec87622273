package watch

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig/late"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/session"
	"slipway.dev/slipway/pxe"
)

// Expected is the next thing that should happen with a host, and until when.
type Expected struct {
	What      string              `json:"what" doc:"In words"`
	By        time.Time           `json:"by,omitzero" doc:"After that it is late; absent when it waits for people"`
	Since     time.Time           `json:"since" doc:"Since when it is waited for"`
	IsLate    bool                `json:"isLate"`
	Step      string              `json:"step" doc:"Step of the operation, or the latest step of the boot"`
	Reason    string              `json:"reason,omitempty" doc:"What the operation waits for, or why its last attempt failed"`
	Hint      string              `json:"hint,omitempty" doc:"What to look at when it does not come"`
	Operation string              `json:"operation,omitempty"`
	Session   inventory.SessionID `json:"session,omitempty"`
	Refs      []inventory.Ref     `json:"-"` // what the texts name besides the host
}

// ExpectConfig is everything that Expectations need.
type ExpectConfig struct {
	Now      func() time.Time
	Sessions *session.Table
	// Deadlines replace how long steps of boots may take, by the kinds of their events: see Steps.
	Deadlines map[string]time.Duration
	// Operation is what an open operation expects next.
	Operation func(*inventory.Operation, *inventory.Host) *Expected
}

// Expectations say what should happen next. Their methods may be called from many goroutines, once they are configured.
type Expectations struct{ cfg ExpectConfig }

// Configure gives Expectations what they need.
func (e *Expectations) Configure(cfg ExpectConfig) { e.cfg = cfg }

// limit is how long the next sign may take.
type limit struct {
	within time.Duration
	expect string
}

// sign is what follows a step of a boot, and the causes when it does not, the likeliest first.
type sign struct {
	limit
	hint string
	// isRenewed: each sign of the machine begins the time anew. Without it only a further step does, because firmware that
	// asks again and again comes no further.
	isRenewed bool
	// owes reports whether it is owed at all, where the session alone does not say so; nil: it is.
	owes func(inventory.Tx, *inventory.BootSession) (bool, error)
}

// signs are the deadlines within a boot. Firmware and iPXE ask again for about a minute before they give up, so that is
// how long most may take; what an operation waits for after them has its deadline there.
var signs = map[string]sign{
	inventory.EventSessionStarted: isOffered,
	inventory.EventDHCPDiscover:   isOffered,
	inventory.EventDHCPOffer:      takesAddress,
	inventory.EventDHCPRequest:    takesAddress,
	inventory.EventDHCPAck: {
		limit: limit{within: time.Minute, expect: "the machine fetches a boot loader"},
		hint:  "a firewall on the way drops TFTP (UDP 69 and the ports after it) or HTTP, the firmware booted something else, or power failed",
	},
	inventory.EventLoaderStarted: {
		limit: limit{within: 2 * time.Minute, expect: "the machine has the whole boot loader"},
		hint:  "packets get lost: look at the cable, the duplex and the MTU of its switch port; or power failed while the loader was sent",
	},
	inventory.EventLoaderSent: {
		limit: limit{within: 90 * time.Second, expect: "the boot loader asks what to boot"},
		hint:  "Secure Boot refuses the loader (see its screen), the loader lacks a driver for this card, or its switch port comes up slowly (spanning tree)",
	},
	inventory.EventScriptAsked: fetchesFiles,
	inventory.EventBootDecided: fetchesFiles,
	inventory.EventArtefactSent: {
		limit: limit{within: 8 * time.Minute, expect: "what it fetched runs, and fetches its configuration or reports"},
		hint:  "see its console: the kernel may have panicked, or lack the driver of its network card; the machine may have too little memory", isRenewed: true,
		owes: owesRunning,
	},
	inventory.EventConfigSent: {
		limit: limit{within: 25 * time.Minute, expect: "the system that it boots reports"},
		hint:  "see its console; HTTP to this server may be blocked from there", isRenewed: true, owes: owesReport,
	},
	inventory.EventReported: {
		limit: limit{within: 25 * time.Minute, expect: "what it boots reports again"},
		hint:  "see its console; power may have failed", isRenewed: true,
	},
}

var (
	isOffered = sign{
		limit: limit{within: time.Minute, expect: "the machine is offered an address"},
		hint:  "its timeline and slipway host explain say why it got none",
	}
	takesAddress = sign{
		limit: limit{within: time.Minute, expect: "the machine takes the address that it is offered"},
		hint:  "another DHCP server was quicker (see the rogue servers of its network), its switch port drops our answers, or its firmware took another port",
	}
	fetchesFiles = sign{
		limit: limit{within: 2 * time.Minute, expect: "the machine fetches what it boots"},
		hint:  "the machine ran out of memory, or HTTP to this server is blocked: its screen says which; or power failed",
	}
	asksAgain = sign{
		limit: limit{within: 2 * time.Minute, expect: "the machine asks again whether there is something to boot"},
		hint:  "power failed, or somebody began another boot by hand", isRenewed: true, owes: owesAsking,
	}
)

// owesAsking reports whether a machine that was told to wait owes another question: only while something is being done with its
// host. One that waits for a person, or whose work is done, may be switched off at any time.
func owesAsking(tx inventory.Tx, s *inventory.BootSession) (bool, error) {
	// An operation that waits, for a person say, may leave its machine off.
	op, err := tx.FindOpenOperation(s.HostID)
	return err == nil && op.State == inventory.OpRunning, ledger.IgnoreNotFound(err)
}

// waitsFor is what follows in a boot, and whether anything does: a machine that was sent on to its own disk owes nothing,
// and what our agent does once it runs is its operation's.
func waitsFor(s *inventory.BootSession) (sign, bool) {
	if s.HostID == "" || !s.EndedAt.IsZero() {
		return sign{}, false
	}
	switch boot := pxe.Boot(s.Boot); {
	case boot == pxe.BootDisk, boot == pxe.BootIgnore, boot == pxe.BootPark:
		return sign{}, false
	case boot == pxe.BootWait:
		return asksAgain, true
	case boot == pxe.BootAgent && session.StepIndex(s.Step) > session.StepIndex(inventory.EventArtefactSent):
		return sign{}, false
	}
	x, ok := signs[s.Step]
	return x, ok
}

// owesRunning reports whether a machine that has files of what it boots owes a sign that they run: not all files came, it
// is our agent, or it has a configuration to fetch. Whatever else an admin boots may be silent.
func owesRunning(tx inventory.Tx, s *inventory.BootSession) (bool, error) {
	if s.Boot == string(pxe.BootAgent) || s.Config != "" {
		return true, nil
	}
	i, err := tx.Images().Find(s.Image)
	if err != nil {
		return false, ledger.IgnoreNotFound(err)
	}
	// The files that came tell whether the boot is complete. Each name counts once, because a machine may fetch a file again.
	events, err := tx.ListEvents(inventory.EventFilter{SessionID: s.ID}, 0, eventsLooked)
	if err != nil {
		return false, err
	}
	sent := map[string]bool{}
	for _, e := range events {
		if fields, ok := e.Data.(map[string]any); ok && e.Kind == inventory.EventArtefactSent {
			sent[fmt.Sprint(fields["name"])] = true
		}
	}
	return len(sent) < filesOf(&i), nil
}

// eventsLooked bounds the events of a boot that are read.
const eventsLooked = 500

// filesOf is how many files of an image a boot fetches.
func filesOf(i *inventory.Image) (n int) {
	for _, f := range i.Files {
		if f.Role == inventory.RoleKernel || f.Role == inventory.RoleInitrd {
			n++
		}
	}
	return n
}

// owesReport reports whether the configuration of a boot makes what it boots report.
func owesReport(tx inventory.Tx, s *inventory.BootSession) (bool, error) {
	r, err := tx.FindRendering(s.Config)
	if err != nil {
		return false, ledger.IgnoreNotFound(err)
	}
	// A configuration that never mentions the address for reports leads to a system that never reports.
	return slices.ContainsFunc(r.Documents, func(d inventory.RenderedDocument) bool {
		return late.RefersTo(d.Text, "session://report")
	}), nil
}

// next returns what follows in a boot and until when, with the deadline that is configured here.
func (e *Expectations) next(s *inventory.BootSession, at session.Step) (x sign, by time.Time, ok bool) {
	if x, ok = waitsFor(s); !ok {
		return sign{}, time.Time{}, false
	}
	if d := e.cfg.Deadlines[s.Step]; d > 0 {
		x.within = d
	}
	from := s.LastAt
	switch now := e.cfg.Now(); {
	// A transfer is under way. The deadline moves with the clock until that ends or takes too long.
	case at.IsLoading(now):
		from = now
	case !x.isRenewed && !at.At.IsZero():
		from = at.At
	}
	return x, from.Add(x.within), true
}

// Due is until when the next sign of a boot should come; ok is false when nothing is expected.
func (e *Expectations) Due(s *inventory.BootSession, at session.Step) (by time.Time, ok bool) {
	_, by, ok = e.next(s, at)
	return by, ok
}

// owed is next, unless nothing is owed after all.
func (e *Expectations) owed(tx inventory.Tx, s *inventory.BootSession) (x sign, by time.Time, ok bool, err error) {
	x, by, ok = e.next(s, e.cfg.Sessions.StepOf(s))
	if stored, err := tx.FindSession(s.ID); ok && err == nil && !stored.EndedAt.IsZero() {
		return x, by, false, nil // its power went off, say, and it has not been heard since
	}
	if ok && x.owes != nil {
		ok, err = x.owes(tx, s)
	}
	return x, by, ok && err == nil, err
}

// Expects returns what should happen next with a host; nil when nothing is under way.
func (e *Expectations) Expects(tx inventory.Tx, h inventory.Host) (*Expected, error) {
	now := e.cfg.Now()
	var x *Expected
	if op, err := tx.FindOpenOperation(h.ID); err == nil {
		x = e.cfg.Operation(&op, &h)
	} else if !inventory.IsKind(err, inventory.NotFound) {
		return nil, err
	}
	for _, n := range h.NICs {
		s, ok := e.cfg.Sessions.Of(n.MAC)
		if !ok || s.HostID != h.ID {
			continue
		}
		next, by, waits, err := e.owed(tx, &s)
		if err != nil {
			return nil, err
		}
		if !waits {
			continue
		}
		// The nearer deadline wins. A boot that is older than what the operation waits for says nothing of it.
		if x != nil && (!x.By.IsZero() && x.By.Before(by) || s.StartedAt.Before(x.Since) || s.Boot == string(pxe.BootWait)) {
			continue
		}
		was := x
		x = &Expected{What: next.expect, By: by, Since: by.Add(-next.within), Step: s.Step, Hint: next.hint, Session: s.ID, Operation: s.Operation}
		if was != nil {
			x.Operation, x.Reason, x.Refs = was.Operation, was.Reason, was.Refs
		}
	}
	if x == nil {
		return e.expectsPerson(&h), nil
	}
	x.IsLate = !x.By.IsZero() && now.After(x.By)
	return x, nil
}

// expectsPerson is what a machine waits for that was told to wait; nil when it does not wait.
func (e *Expectations) expectsPerson(h *inventory.Host) *Expected {
	// A host with several ports may have several boots. The first one that waits is as good as any.
	for _, s := range e.cfg.Sessions.Boots(h.ID) {
		if s.Boot != string(pxe.BootWait) || !s.EndedAt.IsZero() {
			continue
		}
		x := &Expected{What: "it waits: " + s.Reason, Step: s.Step, Session: s.ID, Refs: s.Refs}
		x.Since = e.cfg.Sessions.StepOf(&s.BootSession).At
		if x.Since.IsZero() { // the server was restarted meanwhile
			x.Since = s.StartedAt
		}
		if h.State == inventory.Discovered {
			x.What, x.Hint = "somebody accepts it", "slipway host accept "+h.Name
		}
		return x
	}
	return nil
}

// Steps lists the steps of boots that have a deadline.
func Steps() []string { return slices.Sorted(maps.Keys(signs)) }
