package provision

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
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
}

// sign is what follows a step of a boot, and the causes when it does not, the likeliest first.
type sign struct {
	limit
	hint string
}

// signs are the deadlines within a boot. Firmware and iPXE ask again for about a minute before they give up, so that is
// how long most may take; what an operation waits for after them has its deadline there.
var signs = map[string]sign{
	inventory.EventSessionStarted: {limit{within: time.Minute, expect: "the machine takes the address that it is offered"}, noAddress},
	inventory.EventDHCPDiscover:   {limit{within: time.Minute, expect: "the machine takes the address that it is offered"}, noAddress},
	inventory.EventDHCPOffer:      {limit{within: time.Minute, expect: "the machine takes the address that it is offered"}, noAddress},
	inventory.EventDHCPRequest:    {limit{within: time.Minute, expect: "the machine takes the address that it is offered"}, noAddress},
	inventory.EventDHCPAck: {
		limit{within: time.Minute, expect: "the machine fetches a boot loader"},
		"a firewall between here and the machine drops TFTP (UDP 69 and the ports after it) or HTTP; the firmware booted something else; or power failed",
	},
	inventory.EventLoaderStarted: {
		limit{within: 2 * time.Minute, expect: "the machine has the whole boot loader"},
		"packets get lost: look at the cable, the duplex and the MTU of its switch port; or power failed while the loader was sent",
	},
	inventory.EventLoaderSent: {
		limit{within: 90 * time.Second, expect: "the boot loader asks what to boot"},
		"Secure Boot refuses the loader: its screen says so; the loader has no driver for this network card; or its switch port is slow to come up (spanning tree)",
	},
	inventory.EventScriptAsked: {limit{within: 2 * time.Minute, expect: "the machine fetches what it boots"}, noFiles},
	inventory.EventBootDecided: {limit{within: 2 * time.Minute, expect: "the machine fetches what it boots"}, noFiles},
}

const (
	noAddress = "another DHCP server was quicker, see the rogue servers of its network; its switch port drops what we answer; or its firmware asks on several ports and took another"
	noFiles   = "the machine ran out of memory, or HTTP to this server is blocked: its screen says which; or power failed"
)

// waitsFor is what follows in a boot, and whether anything does: a machine that was sent on to its own disk owes nothing.
func waitsFor(s *inventory.BootSession) (sign, bool) {
	if s.HostID == "" || !s.EndedAt.IsZero() {
		return sign{}, false
	}
	switch pxe.Boot(s.Boot) {
	case pxe.BootDisk, pxe.BootIgnore, pxe.BootPark:
		return sign{}, false
	case pxe.BootWait:
		return sign{limit{within: 2 * time.Minute, expect: "the machine asks again whether there is something to boot"}, "power failed, or somebody began another boot by hand"}, true
	}
	x, ok := signs[s.Step]
	return x, ok
}

// StepNames lists the names that Config.Deadlines may have.
func StepNames() []string {
	var names []string
	for s := range limits {
		names = append(names, string(s))
	}
	return slices.Sorted(slices.Values(slices.AppendSeq(names, maps.Keys(signs))))
}

// limitOf returns the deadline of a step, as it is configured here.
func (e *Engine) limitOf(s inventory.Step) limit {
	l := limits[s]
	if d := e.cfg.Deadlines[string(s)]; d > 0 && l.within > 0 {
		l.within = d
		l.first = min(l.first, d)
	}
	return l
}

// signOf returns what follows in a boot, with the deadline that is configured here.
func (e *Engine) signOf(s *inventory.BootSession) (sign, bool) {
	x, ok := waitsFor(s)
	if d := e.cfg.Deadlines[s.Step]; ok && d > 0 {
		x.within = d
	}
	return x, ok
}

// Way returns the steps of an operation in order, those that it has passed included.
func Way(o *inventory.Operation) []inventory.Step { return steps(o.Kind, paramsOf(o)) }

// ImageOf returns the image that an operation installs, "" if it installs none.
func ImageOf(o *inventory.Operation) string { return paramsOf(o).Image }

// Expects returns what should happen next with a host; nil when nothing is under way.
func (e *Engine) Expects(tx inventory.Tx, h inventory.Host) (*Expected, error) {
	now := e.cfg.Now()
	var x *Expected
	if op, err := tx.FindOpenOperation(h.ID); err == nil {
		x = e.expectsOf(&op, &h)
	} else if !isKind(err, inventory.NotFound) {
		return nil, err
	}
	for _, n := range h.NICs {
		s, ok := e.sessions.of(n.MAC)
		next, waits := e.signOf(&s)
		if !ok || !waits || s.HostID != h.ID {
			continue
		}
		by := s.LastAt.Add(next.within)
		if x != nil && (!x.By.IsZero() && x.By.Before(by) || s.StartedAt.Before(x.Since) || s.Boot == string(pxe.BootWait)) {
			continue
		}
		was := x
		x = &Expected{What: next.expect, By: by, Since: s.LastAt, Step: s.Step, Hint: next.hint, Session: s.ID, Operation: s.Operation}
		if was != nil {
			x.Operation, x.Reason = was.Operation, was.Reason
		}
	}
	if x != nil {
		x.IsLate = !x.By.IsZero() && now.After(x.By)
	}
	return x, nil
}

func (e *Engine) expectsOf(op *inventory.Operation, h *inventory.Host) *Expected {
	x := &Expected{
		What: e.limitOf(op.Step).expect, By: op.DeadlineAt, Since: op.StepAt, Step: string(op.Step), Reason: op.Reason, Hint: firstOf(op.Hint, e.lateHint(op, h)),
		Operation: op.ID,
	}
	switch {
	case op.State == inventory.OpWaiting && op.Reason != "":
		x.What, x.Reason = op.Reason, ""
	case x.What == "":
		x.What = "step " + string(op.Step) + " is done"
	}
	return x
}

// stalled are the boots that stand still, each with its host: an issue is open for each.
type stalled struct {
	mu    sync.Mutex
	boots map[inventory.SessionID]inventory.BootSession
	known bool // what an engine before this one had left open was closed
}

// stallEvery is how often boots are looked over for those that stand still.
const stallEvery = 2 * time.Second

// watchBoots opens an issue for each boot whose next sign did not come in time, and closes it when it goes on or is over.
func (e *Engine) watchBoots(ctx context.Context) error {
	e.stalled.mu.Lock()
	defer e.stalled.mu.Unlock()
	still := e.sessions.standing(e.cfg.Now(), e.signOf)
	var begun, over []inventory.BootSession
	for id, s := range still {
		if _, ok := e.stalled.boots[id]; !ok {
			begun = append(begun, s)
		}
	}
	hosts := map[inventory.HostID]bool{}
	for _, s := range still {
		hosts[s.HostID] = true
	}
	for id, s := range e.stalled.boots {
		if _, ok := still[id]; !ok && !hosts[s.HostID] { // the issue is the host's: another of its ports may stand still
			over = append(over, s)
		}
	}
	if len(begun) == 0 && len(over) == 0 && e.stalled.known {
		return nil
	}
	err := e.cfg.Store.Write(ctx, func(tx inventory.Tx) error {
		if !e.stalled.known {
			if err := e.closeStalled(tx); err != nil {
				return err
			}
		}
		for _, s := range over {
			if err := e.closeIssue(tx, stall(&s, sign{}), "the boot went on, or is over"); err != nil {
				return err
			}
		}
		for _, s := range begun {
			next, _ := e.signOf(&s)
			i := stall(&s, next)
			if why, ok := e.likeliest(tx, s.HostID, s.MAC); ok {
				i.Cause, i.Hint = i.Cause+". Likely: "+why.Sentence, why.Hint
			}
			if err := e.openIssue(tx, i); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		e.stalled.boots, e.stalled.known = still, true
	}
	return err
}

// closeStalled closes what was left open before a restart: whatever boots now is looked at anew.
func (e *Engine) closeStalled(tx inventory.Tx) error {
	open, err := tx.ListIssues(false, "")
	for _, i := range open {
		if i.Type != inventory.IssueStalled {
			continue
		}
		if err := e.closeIssue(tx, i, "the server was restarted"); err != nil {
			return err
		}
	}
	return err
}

// stall is the issue that a boot stands still.
func stall(s *inventory.BootSession, next sign) inventory.Issue {
	return inventory.Issue{
		Key: inventory.IssueStalled + "/" + string(s.HostID), Type: inventory.IssueStalled, Severity: inventory.SeverityWarning,
		HostIDs: []inventory.HostID{s.HostID}, Subnet: s.Subnet, Hint: next.hint,
		Cause: "its boot stands still after " + s.Step + ": for " + inventory.Duration(next.within).String() + " nothing came, expected that " + next.expect,
	}
}

// standing returns the boots whose next sign is late.
func (t *sessions) standing(now time.Time, signOf func(*inventory.BootSession) (sign, bool)) map[inventory.SessionID]inventory.BootSession {
	t.mu.Lock()
	defer t.mu.Unlock()
	still := map[inventory.SessionID]inventory.BootSession{}
	for _, s := range t.byMAC {
		if next, waits := signOf(s); waits && now.Sub(s.LastAt) > next.within {
			still[s.ID] = *s
		}
	}
	return still
}
