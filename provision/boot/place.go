package boot

import (
	"fmt"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/recorder"
	"slipway.dev/slipway/pxe"
)

// heardOn takes over where a relay says that a known host is, and says what is wrong with that: a host that is pinned
// to a switch port boots there only.
func (r *Registry) heardOn(h *inventory.Host, c pxe.Client) *inventory.Error {
	if !c.HasPort {
		return portProblem(h)
	}
	now := withPort(h.Facts, c)
	// Written only when the port differs: a relay names it with every packet.
	if h.Facts[inventory.FactPort] != now[inventory.FactPort] || h.Facts[inventory.FactRelay] != now[inventory.FactRelay] {
		id := h.ID
		r.Recorder.Take(recorder.Note{Do: func(tx inventory.Tx) error { return r.moved(tx, id, c) }})
	}
	return portProblemFor(h, c)
}

// portProblemFor returns what is wrong if a host boots from where a packet came.
func portProblemFor(h *inventory.Host, c pxe.Client) *inventory.Error {
	now := *h
	if c.HasPort {
		now.Facts = withPort(h.Facts, c)
	}
	return portProblem(&now)
}

// moved stores where a host was heard, and opens or closes the issue that it is not where it belongs.
func (r *Registry) moved(tx inventory.Tx, id inventory.HostID, c pxe.Client) error {
	// The host is read again: the recorder runs this later, and the host may be gone.
	h, err := tx.FindHost(id)
	if err != nil {
		return ledger.IgnoreNotFound(err)
	}
	h.Facts = withPort(h.Facts, c)
	if err := tx.UpdateHost(&h, r.Now()); err != nil {
		return fmt.Errorf("store port of %s: %w", h.Name, err)
	}
	return r.JudgePort(tx, &h, c)
}

// JudgePort opens or closes the issue that a host is not on the port that it is pinned to.
func (r *Registry) JudgePort(tx inventory.Tx, h *inventory.Host, c pxe.Client) error {
	issue := wrongPort(h, c)
	if problem := portProblem(h); problem != nil {
		issue.Cause, issue.Hint = h.Name+": "+problem.Msg, problem.Hint
		return r.Ledger.OpenIssue(tx, issue)
	}
	return r.Ledger.CloseIssue(tx, issue, "it is on its port, or pinned to none")
}

// pinned finds the host that an unknown MAC belongs to because of the switch port it is on. A host without any MAC is
// given this one; of a host that has others, a person says which machine it is.
func (r *Registry) pinned(tx inventory.Tx, c pxe.Client) (isIt bool, err error) {
	// A relay's word about the port is believed here, because an admin has pinned the host to it.
	h, err := tx.FindHostByPort(c.Port)
	switch {
	case err != nil:
		return false, ledger.IgnoreNotFound(err)
	case len(h.NICs) > 0:
		issue := wrongPort(&h, c)
		issue.Key += "/stranger"
		issue.Cause = fmt.Sprintf("%s is on port %s, which is that of %s, and is none of its MACs", c.MAC, c.Port, h.Name)
		issue.Hint = fmt.Sprintf("if it is %s with another card: slipway host set %s --mac %s; else put it on another port", h.Name, h.Name, c.MAC)
		issue.Refs = inventory.HostRef(string(c.MAC)).References()
		return false, r.Ledger.OpenIssue(tx, issue)
	}
	h.NICs = []inventory.NIC{{MAC: c.MAC, Vendor: r.vendor(c.MAC), IsBoot: true}}
	h.Facts, h.LastSeenAt = withPort(h.Facts, c), r.Now()
	if err := tx.UpdateHost(&h, r.Now()); err != nil {
		return false, fmt.Errorf("store host %s: %w", h.Name, err)
	}
	// The next packet finds the owner in memory.
	r.Sessions.SetHost(h.ID, c.MAC)
	return true, tx.AddEvent(&inventory.Event{
		At: r.Now(), Kind: inventory.EventHostChanged, HostID: h.ID, MAC: c.MAC,
		Detail: fmt.Sprintf("%s is %s: it is on port %s", c.MAC, h.Name, c.Port),
	})
}
