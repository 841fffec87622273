package provision

import (
	"context"
	"fmt"
	"maps"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/recorder"
	"slipway.dev/slipway/pxe"
)

// heardOn takes over where a relay says that a known host is, and says what is wrong with that: a host that is pinned
// to a switch port boots there only.
func (e *Engine) heardOn(h *inventory.Host, c pxe.Client) *inventory.Error {
	if !c.HasPort {
		return portProblem(h)
	}
	now := *h
	now.Facts = withPort(h.Facts, c)
	if h.Facts[inventory.FactPort] != now.Facts[inventory.FactPort] || h.Facts[inventory.FactRelay] != now.Facts[inventory.FactRelay] {
		id := h.ID
		e.recorder.Take(recorder.Note{Do: func(tx inventory.Tx) error { return e.moved(tx, id, c) }})
	}
	return portProblem(&now)
}

// withPort returns facts with what a relay said; a machine without one has none of them.
func withPort(old map[string]string, c pxe.Client) map[string]string {
	f := maps.Clone(old)
	if f == nil {
		f = map[string]string{}
	}
	relay := ""
	if c.Relay.IsValid() {
		relay = c.Relay.String()
	}
	for k, v := range map[string]string{inventory.FactPort: inventory.Clean(c.Port, 1024), inventory.FactRelay: relay} {
		if f[k] = v; v == "" {
			delete(f, k)
		}
	}
	return f
}

// portProblem says that a pinned host was last heard elsewhere; nil when it is where it belongs.
func portProblem(h *inventory.Host) *inventory.Error {
	heard := h.Facts[inventory.FactPort]
	if h.Port == "" || heard == h.Port {
		return nil
	}
	where := "port " + heard
	if heard == "" {
		if len(h.Facts) == 0 && h.LastSeenAt.IsZero() { // not heard yet
			return nil
		}
		where = "no switch port that a relay names"
	}
	return inventory.Errorf(inventory.Conflict, "it is pinned to port %s, and a machine with its MAC is on %s", h.Port, where).
		WithHint("put its cable back, or pin it again: slipway host set %s --port PORT", h.Name)
}

// moved stores where a host was heard, and opens or closes the issue that it is not where it belongs.
func (e *Engine) moved(tx inventory.Tx, id inventory.HostID, c pxe.Client) error {
	h, err := tx.FindHost(id)
	if err != nil {
		return ledger.IgnoreNotFound(err)
	}
	h.Facts = withPort(h.Facts, c)
	if err := tx.UpdateHost(&h, e.cfg.Now()); err != nil {
		return fmt.Errorf("store port of %s: %w", h.Name, err)
	}
	return e.judgePort(tx, &h, c)
}

// judgePort opens or closes the issue that a host is not on the port that it is pinned to.
func (e *Engine) judgePort(tx inventory.Tx, h *inventory.Host, c pxe.Client) error {
	issue := wrongPort(h, c)
	if problem := portProblem(h); problem != nil {
		issue.Cause, issue.Hint = h.Name+": "+problem.Msg, problem.Hint
		return e.ledger.OpenIssue(tx, issue)
	}
	return e.ledger.CloseIssue(tx, issue, "it is on its port, or pinned to none")
}

func wrongPort(h *inventory.Host, c pxe.Client) inventory.Issue {
	return inventory.Issue{
		Key: inventory.IssueWrongPort + "/" + string(h.ID), Type: inventory.IssueWrongPort, Severity: inventory.SeverityError,
		HostIDs: []inventory.HostID{h.ID}, Subnet: c.Subnet,
	}
}

// atPort asks pinned for an unknown MAC on a port that a host is pinned to; it writes only then.
func (e *Engine) atPort(ctx context.Context, c pxe.Client, k known) (known, error) {
	if k.host != nil || c.Port == "" {
		return k, nil
	}
	err := e.cfg.Store.Read(ctx, func(tx inventory.Tx) error {
		_, err := tx.FindHostByPort(c.Port)
		return err
	})
	if err != nil {
		return k, ledger.IgnoreNotFound(err)
	}
	err = e.cfg.Store.Write(ctx, func(tx inventory.Tx) error {
		_, isIt, err := e.pinned(tx, c)
		if err == nil && isIt {
			k, err = e.known(tx, c.MAC, c.Subnet)
		}
		return err
	})
	return k, err
}

// pinned finds the host that an unknown MAC belongs to because of the switch port it is on. A host without any MAC is
// given this one; of a host that has others, a person says which machine it is.
func (e *Engine) pinned(tx inventory.Tx, c pxe.Client) (h inventory.Host, isIt bool, err error) {
	if c.Port == "" {
		return h, false, nil
	}
	h, err = tx.FindHostByPort(c.Port)
	switch {
	case err != nil:
		return h, false, ledger.IgnoreNotFound(err)
	case len(h.NICs) > 0:
		issue := wrongPort(&h, c)
		issue.Key += "/stranger"
		issue.Cause = fmt.Sprintf("%s is on port %s, which is that of %s, and is none of its MACs", c.MAC, c.Port, h.Name)
		issue.Hint = fmt.Sprintf("if it is %s with another card: slipway host set %s --mac %s; else put it on another port", h.Name, h.Name, c.MAC)
		issue.Refs = inventory.HostRef(string(c.MAC)).References()
		return h, false, e.ledger.OpenIssue(tx, issue)
	}
	h.NICs = []inventory.NIC{{MAC: c.MAC, Vendor: e.cfg.Vendor(c.MAC), IsBoot: true}}
	h.Facts, h.LastSeenAt = withPort(h.Facts, c), e.cfg.Now()
	if err := tx.UpdateHost(&h, e.cfg.Now()); err != nil {
		return h, false, fmt.Errorf("store host %s: %w", h.Name, err)
	}
	e.sessions.SetHost(h.ID, c.MAC)
	return h, true, tx.AddEvent(&inventory.Event{
		At: e.cfg.Now(), Kind: inventory.EventHostChanged, HostID: h.ID, MAC: c.MAC,
		Detail: fmt.Sprintf("%s is %s: it is on port %s", c.MAC, h.Name, c.Port),
	})
}
