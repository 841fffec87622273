package web

import (
	"net/netip"
	"strconv"
	"strings"

	"slipway.dev/slipway/inventory"
)

// What follows belongs to hosts and machines, and is seen by whoever sees those.

// gone is the answer about a thing whose host is out of reach.
func (t *scopedTx) gone(noun, name string) error { return t.reach.enough("", noun, name) }

// FindReservation implements inventory.NetworkTx.
func (t *scopedTx) FindReservation(a netip.Addr) (inventory.Reservation, error) {
	r, err := t.Tx.FindReservation(a)
	if err != nil {
		return r, err
	}
	if ok, err := t.seesMAC(r.MAC); err != nil || !ok {
		return inventory.Reservation{}, orGone(err, t.gone("reservation", a.String()))
	}
	return r, nil
}

func orGone(err, gone error) error {
	if err != nil {
		return err
	}
	return gone
}

// ListReservations implements inventory.NetworkTx.
func (t *scopedTx) ListReservations(subnet string, p inventory.Page) ([]inventory.Reservation, error) {
	return keptPages(p, func(p inventory.Page) ([]inventory.Reservation, error) { return t.Tx.ListReservations(subnet, p) },
		func(r inventory.Reservation) string { return r.Address.String() },
		func(r inventory.Reservation) (bool, error) { return t.seesMAC(r.MAC) })
}

// FindLease implements inventory.NetworkTx.
func (t *scopedTx) FindLease(a netip.Addr) (inventory.Lease, error) {
	l, err := t.Tx.FindLease(a)
	if err != nil {
		return l, err
	}
	if ok, err := t.seesMAC(l.MAC); err != nil || !ok {
		return inventory.Lease{}, orGone(err, t.gone("lease", a.String()))
	}
	return l, nil
}

// ListLeases implements inventory.NetworkTx.
func (t *scopedTx) ListLeases(subnet string, p inventory.Page) ([]inventory.Lease, error) {
	return keptPages(p, func(p inventory.Page) ([]inventory.Lease, error) { return t.Tx.ListLeases(subnet, p) },
		func(l inventory.Lease) string { return l.Address.String() },
		func(l inventory.Lease) (bool, error) { return t.seesMAC(l.MAC) })
}

// ListLeasesOf implements inventory.NetworkTx.
func (t *scopedTx) ListLeasesOf(mac inventory.MAC) ([]inventory.Lease, error) {
	if ok, err := t.seesMAC(mac); err != nil || !ok {
		return nil, err
	}
	return t.Tx.ListLeasesOf(mac)
}

// FindLayer implements inventory.ConfigTx.
func (t *scopedTx) FindLayer(s inventory.Scope, name string) (inventory.Layer, error) {
	if s == inventory.ScopeHost {
		if err := t.needHost(inventory.HostID(name)); err != nil {
			return inventory.Layer{}, err
		}
	}
	return t.Tx.FindLayer(s, name)
}

// ListLayers implements inventory.ConfigTx.
func (t *scopedTx) ListLayers(p inventory.Page) ([]inventory.Layer, error) {
	return keptPages(p, t.Tx.ListLayers, func(l inventory.Layer) string { return l.Key() }, func(l inventory.Layer) (bool, error) {
		if l.Scope != inventory.ScopeHost {
			return true, nil
		}
		return t.seesHost(inventory.HostID(l.Name))
	})
}

// isOfHostLayer returns the host whose layer a revision is of.
func isOfHostLayer(k inventory.RevisionKind, name string) (inventory.HostID, bool) {
	id, ok := strings.CutPrefix(name, string(inventory.ScopeHost)+"/")
	return inventory.HostID(id), ok && k == inventory.RevisionOfLayer
}

// FindRevision implements inventory.ConfigTx.
func (t *scopedTx) FindRevision(k inventory.RevisionKind, name string, n int) (inventory.Revision, error) {
	if id, ok := isOfHostLayer(k, name); ok {
		if err := t.needHost(id); err != nil {
			return inventory.Revision{}, err
		}
	}
	return t.Tx.FindRevision(k, name, n)
}

// ListRevisions implements inventory.ConfigTx.
func (t *scopedTx) ListRevisions(k inventory.RevisionKind, name string, before, limit int) ([]inventory.Revision, error) {
	if id, ok := isOfHostLayer(k, name); ok {
		if err := t.needHost(id); err != nil {
			return nil, err
		}
	}
	return t.Tx.ListRevisions(k, name, before, limit)
}

// FindRendering implements inventory.ConfigTx.
func (t *scopedTx) FindRendering(d inventory.Digest) (inventory.Rendering, error) {
	r, err := t.Tx.FindRendering(d)
	if err != nil {
		return r, err
	}
	if ok, err := t.seesHost(r.HostID); err != nil || !ok {
		return inventory.Rendering{}, orGone(err, t.gone("rendering", string(d)))
	}
	return r, nil
}

// ListRenderings implements inventory.ConfigTx.
func (t *scopedTx) ListRenderings(host inventory.HostID, limit int) ([]inventory.Rendering, error) {
	if err := t.needHost(host); err != nil {
		return nil, err
	}
	return t.Tx.ListRenderings(host, limit)
}

// claim answers with a claim whose host is within reach.
func (t *scopedTx) claim(c inventory.Claim, err error) (inventory.Claim, error) {
	if err != nil {
		return c, err
	}
	if ok, err := t.seesHost(c.HostID); err != nil || !ok {
		return inventory.Claim{}, orGone(err, t.gone("claim", string(c.ID)))
	}
	return c, nil
}

// FindClaim implements inventory.MachineTx.
func (t *scopedTx) FindClaim(id inventory.ClaimID) (inventory.Claim, error) {
	return t.claim(t.Tx.FindClaim(id))
}

// FindClaimOfHost implements inventory.MachineTx.
func (t *scopedTx) FindClaimOfHost(id inventory.HostID) (inventory.Claim, error) {
	return t.claim(t.Tx.FindClaimOfHost(id))
}

// FindClaimOfMachine implements inventory.MachineTx.
func (t *scopedTx) FindClaimOfMachine(uid string) (inventory.Claim, error) {
	return t.claim(t.Tx.FindClaimOfMachine(uid))
}

// FindOperation implements inventory.OperationTx.
func (t *scopedTx) FindOperation(id string) (inventory.Operation, error) {
	o, err := t.Tx.FindOperation(id)
	if err != nil {
		return o, err
	}
	if _, err := t.FindHost(o.HostID); err != nil {
		if inventory.IsKind(err, inventory.NotFound) {
			err = t.gone("operation", id)
		}
		return inventory.Operation{}, err
	}
	return o, nil
}

// FindOpenOperation implements inventory.OperationTx.
func (t *scopedTx) FindOpenOperation(h inventory.HostID) (inventory.Operation, error) {
	if err := t.needHost(h); err != nil {
		return inventory.Operation{}, err
	}
	return t.Tx.FindOpenOperation(h)
}

// ListOperations implements inventory.OperationTx.
func (t *scopedTx) ListOperations(f inventory.OperationFilter, p inventory.Page) ([]inventory.Operation, error) {
	return keptPages(p, func(p inventory.Page) ([]inventory.Operation, error) { return t.Tx.ListOperations(f, p) }, operationID,
		func(o inventory.Operation) (bool, error) { return t.seesHost(o.HostID) })
}

// FindInspection implements inventory.HardwareTx.
func (t *scopedTx) FindInspection(h inventory.HostID, n int) (inventory.Inspection, error) {
	if err := t.needHost(h); err != nil {
		return inventory.Inspection{}, err
	}
	return t.Tx.FindInspection(h, n)
}

// LastInspection implements inventory.HardwareTx.
func (t *scopedTx) LastInspection(h inventory.HostID) (int, error) {
	if err := t.needHost(h); err != nil {
		return 0, err
	}
	return t.Tx.LastInspection(h)
}

// ListInspections implements inventory.HardwareTx.
func (t *scopedTx) ListInspections(h inventory.HostID, limit int) ([]inventory.Inspection, error) {
	if err := t.needHost(h); err != nil {
		return nil, err
	}
	return t.Tx.ListInspections(h, limit)
}

// ListHeard implements inventory.HardwareTx.
func (t *scopedTx) ListHeard() (map[inventory.HostID]inventory.Heard, error) {
	all, err := t.Tx.ListHeard()
	if err != nil {
		return nil, err
	}
	for id := range all {
		ok, err := t.seesHost(id)
		if err != nil {
			return nil, err
		}
		if !ok {
			delete(all, id)
		}
	}
	return all, nil
}

// ListReports implements inventory.HardwareTx.
func (t *scopedTx) ListReports(h inventory.HostID, kind string, limit int) ([]inventory.Report, error) {
	if err := t.needHost(h); err != nil {
		return nil, err
	}
	return t.Tx.ListReports(h, kind, limit)
}

// FindBMC implements inventory.HardwareTx.
func (t *scopedTx) FindBMC(h inventory.HostID) (inventory.BMC, error) {
	if err := t.needHost(h); err != nil {
		return inventory.BMC{}, err
	}
	return t.Tx.FindBMC(h)
}

// ListBMCs implements inventory.HardwareTx.
func (t *scopedTx) ListBMCs(p inventory.Page) ([]inventory.BMC, error) {
	return keptPages(p, t.Tx.ListBMCs, func(b inventory.BMC) string { return string(b.HostID) },
		func(b inventory.BMC) (bool, error) { return t.seesHost(b.HostID) })
}

// FindSession implements inventory.HistoryTx.
func (t *scopedTx) FindSession(id inventory.SessionID) (inventory.BootSession, error) {
	b, err := t.Tx.FindSession(id)
	if err != nil {
		return b, err
	}
	if ok, err := t.seesHost(b.HostID); err != nil || !ok {
		return inventory.BootSession{}, orGone(err, t.gone("session", string(id)))
	}
	return b, nil
}

// ListSessions implements inventory.HistoryTx.
func (t *scopedTx) ListSessions(host inventory.HostID, p inventory.Page) ([]inventory.BootSession, error) {
	return keptPages(p, func(p inventory.Page) ([]inventory.BootSession, error) { return t.Tx.ListSessions(host, p) },
		func(b inventory.BootSession) string { return string(b.ID) },
		func(b inventory.BootSession) (bool, error) { return t.seesHost(b.HostID) })
}

// FindIssue implements inventory.HistoryTx.
func (t *scopedTx) FindIssue(id int64) (inventory.Issue, error) {
	i, err := t.Tx.FindIssue(id)
	if err != nil {
		return i, err
	}
	if ok, err := t.seesIssue(i); err != nil || !ok {
		return inventory.Issue{}, orGone(err, t.gone("issue", strconv.FormatInt(id, 10)))
	}
	return i, nil
}

// seesIssue wants all hosts of an issue in reach: its text names each of them.
func (t *scopedTx) seesIssue(i inventory.Issue) (bool, error) {
	for _, id := range i.HostIDs {
		if ok, err := t.seesHost(id); err != nil || !ok {
			return false, err
		}
	}
	return len(i.HostIDs) > 0, nil
}

// ListIssues implements inventory.HistoryTx.
func (t *scopedTx) ListIssues(all bool, host inventory.HostID) ([]inventory.Issue, error) {
	rows, err := t.Tx.ListIssues(all, host)
	if err != nil {
		return nil, err
	}
	return kept(rows, t.seesIssue)
}

// ListEvents implements inventory.HistoryTx.
func (t *scopedTx) ListEvents(f inventory.EventFilter, after int64, limit int) ([]inventory.Event, error) {
	isDown := f.Before > 0 // newest first: what comes next has lower ids
	first := inventory.Page{After: strconv.FormatInt(after, 10), Limit: limit}
	if isDown {
		first.After = "0"
	}
	return keptPages(first,
		func(p inventory.Page) ([]inventory.Event, error) {
			at, _ := strconv.ParseInt(p.After, 10, 64) // we wrote it
			if isDown {
				if at > 0 {
					f.Before = at
				}
				at = after
			}
			return t.Tx.ListEvents(f, at, p.Limit)
		},
		func(e inventory.Event) string { return strconv.FormatInt(e.ID, 10) }, t.seesEvent)
}

// openSubjects are the nouns whose events everybody may hear: they belong to nobody.
var openSubjects = map[string]bool{"profile": true, "image": true, "golden": true, "artefact": true}

// seesEvent decides by the host of an event, else by what it is about.
func (t *scopedTx) seesEvent(e inventory.Event) (bool, error) {
	noun, name, _ := strings.Cut(e.Subject, "/")
	switch {
	case e.HostID != "":
		return t.seesHost(e.HostID)
	case noun == "machine":
		_, err := t.FindMachine(name)
		return err == nil, unlessRefused(err)
	case noun == "pool":
		return t.reach.caller.grants.In(name).Allows(inventory.Viewer), nil
	}
	return openSubjects[noun], nil
}

// unlessRefused keeps errors that are no answer.
func unlessRefused(err error) error {
	if inventory.IsKind(err, inventory.NotFound) || inventory.IsKind(err, inventory.Forbidden) {
		return nil
	}
	return err
}

// FindRack implements inventory.RackTx: a rack is seen by whoever sees a host in it.
func (t *scopedTx) FindRack(id string) (inventory.Rack, error) {
	r, err := t.Tx.FindRack(id)
	if err != nil {
		return r, err
	}
	hosts, err := hostsInRack(t, r)
	if err == nil && len(hosts) == 0 {
		err = t.gone("rack", id)
	}
	if err != nil {
		return inventory.Rack{}, err
	}
	return r, nil
}

// ListRacks implements inventory.RackTx.
func (t *scopedTx) ListRacks() ([]inventory.Rack, error) {
	all, err := t.Tx.ListRacks()
	if err != nil {
		return nil, err
	}
	hosts, err := t.ListHosts(inventory.HostFilter{}, inventory.Page{})
	if err != nil {
		return nil, err
	}
	isSeen := map[string]bool{}
	for _, h := range hosts {
		isSeen[h.Place.RackID()] = true
	}
	return kept(all, func(r inventory.Rack) (bool, error) { return isSeen[r.ID()], nil })
}

// ListTokens implements inventory.AccessTx.
func (t *scopedTx) ListTokens() ([]inventory.Token, error) {
	return tokensOf(t.Tx, t.reach.caller.user)
}

// seesHolder reports whether the caller sees who has an address or a name.
func (t *scopedTx) seesHolder(h inventory.Holder) (bool, error) {
	if h.MachineUID == "" {
		return t.seesHost(h.HostID)
	}
	_, err := t.FindMachineByUID(h.MachineUID)
	if inventory.IsKind(err, inventory.NotFound) || inventory.IsKind(err, inventory.Forbidden) {
		return false, nil
	}
	return err == nil, err
}

// FindAllocation implements inventory.AddressTx.
func (t *scopedTx) FindAllocation(a netip.Addr) (inventory.Allocation, error) {
	got, err := t.Tx.FindAllocation(a)
	if err != nil {
		return got, err
	}
	if ok, err := t.seesHolder(got.Holder); err != nil || !ok {
		return inventory.Allocation{}, orGone(err, t.gone("address", a.String()))
	}
	return got, nil
}

// ListAllocations implements inventory.AddressTx.
func (t *scopedTx) ListAllocations(f inventory.AddressFilter) ([]inventory.Allocation, error) {
	all, err := t.Tx.ListAllocations(f)
	if err != nil {
		return nil, err
	}
	return kept(all, func(a inventory.Allocation) (bool, error) { return t.seesHolder(a.Holder) })
}

// ListHoldings implements inventory.AddressTx.
func (t *scopedTx) ListHoldings(f inventory.AddressFilter) ([]inventory.Holding, error) {
	return t.seenHoldings(t.Tx.ListHoldings(f))
}

// FindHoldings implements inventory.AddressTx.
func (t *scopedTx) FindHoldings(k inventory.HoldingKind, value string) ([]inventory.Holding, error) {
	return t.seenHoldings(t.Tx.FindHoldings(k, value))
}

// ListHeldTwice implements inventory.AddressTx.
func (t *scopedTx) ListHeldTwice() ([]inventory.Holding, error) {
	return t.seenHoldings(t.Tx.ListHeldTwice())
}

func (t *scopedTx) seenHoldings(all []inventory.Holding, err error) ([]inventory.Holding, error) {
	if err != nil {
		return nil, err
	}
	return kept(all, func(h inventory.Holding) (bool, error) { return t.seesHolder(h.Holder) })
}

// Whole is the transaction without the caller's limits: whether an address is free does not depend on who asks. Nothing of
// it may be told to the caller.
func (t *scopedTx) Whole() inventory.Tx { return t.Tx }
