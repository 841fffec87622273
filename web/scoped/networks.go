package scoped

import (
	"net/netip"
	"time"

	"slipway.dev/slipway/inventory"
)

// networkTx shows leases and reservations of hosts in reach.
type networkTx struct{ *sight }

// FindReservation implements inventory.NetworkTx.
func (t networkTx) FindReservation(a netip.Addr) (inventory.Reservation, error) {
	r, err := t.all.FindReservation(a)
	return seen(t.sight, r, err, func(r inventory.Reservation) (bool, error) { return t.seesMAC(r.MAC) }, "reservation", a.String())
}

// ListReservations implements inventory.NetworkTx.
func (t networkTx) ListReservations(subnet string, p inventory.Page) ([]inventory.Reservation, error) {
	return keptPages(p, func(p inventory.Page) ([]inventory.Reservation, error) { return t.all.ListReservations(subnet, p) },
		func(r inventory.Reservation) string { return r.Address.String() },
		func(r *inventory.Reservation) (bool, error) { return t.seesMAC(r.MAC) })
}

// FindLease implements inventory.NetworkTx.
func (t networkTx) FindLease(a netip.Addr) (inventory.Lease, error) {
	l, err := t.all.FindLease(a)
	return seen(t.sight, l, err, func(l inventory.Lease) (bool, error) { return t.seesMAC(l.MAC) }, "lease", a.String())
}

// ListLeases implements inventory.NetworkTx.
func (t networkTx) ListLeases(subnet string, p inventory.Page) ([]inventory.Lease, error) {
	return keptPages(p, func(p inventory.Page) ([]inventory.Lease, error) { return t.all.ListLeases(subnet, p) },
		func(l inventory.Lease) string { return l.Address.String() },
		func(l *inventory.Lease) (bool, error) { return t.seesMAC(l.MAC) })
}

// ListLeasesOf implements inventory.NetworkTx.
func (t networkTx) ListLeasesOf(mac inventory.MAC) ([]inventory.Lease, error) {
	if ok, err := t.seesMAC(mac); err != nil || !ok {
		return nil, err
	}
	return t.all.ListLeasesOf(mac)
}

// Writes of reservations and leases need the role everywhere.

func (t networkTx) CreateReservation(r *inventory.Reservation, now time.Time) error {
	return t.all.CreateReservation(r, now)
}

func (t networkTx) UpdateReservation(r *inventory.Reservation, now time.Time) error {
	return t.all.UpdateReservation(r, now)
}

func (t networkTx) DeleteReservation(a netip.Addr) error { return t.all.DeleteReservation(a) }
func (t networkTx) SaveLease(l inventory.Lease) error    { return t.all.SaveLease(l) }
func (t networkTx) DeleteLease(a netip.Addr) error       { return t.all.DeleteLease(a) }

// addressTx shows what machines and hosts in reach have.
type addressTx struct{ *sight }

// FindAllocation implements inventory.AddressTx.
func (t addressTx) FindAllocation(a netip.Addr) (inventory.Allocation, error) {
	got, err := t.all.FindAllocation(a)
	return seen(t.sight, got, err, func(got inventory.Allocation) (bool, error) { return t.seesHolder(got.Holder) }, "address", a.String())
}

// ListAllocations implements inventory.AddressTx.
func (t addressTx) ListAllocations(f inventory.AddressFilter) ([]inventory.Allocation, error) {
	all, err := t.all.ListAllocations(f)
	if err != nil {
		return nil, err
	}
	for i := range all {
		unnameLeft(&all[i].Note)
	}
	return kept(all, func(a *inventory.Allocation) (bool, error) { return t.seesHolder(a.Holder) })
}

// ListHoldings implements inventory.AddressTx.
func (t addressTx) ListHoldings(f inventory.AddressFilter) ([]inventory.Holding, error) {
	return t.seenHoldings(t.all.ListHoldings(f))
}

// FindHoldings implements inventory.AddressTx.
func (t addressTx) FindHoldings(k inventory.HoldingKind, value string) ([]inventory.Holding, error) {
	return t.seenHoldings(t.all.FindHoldings(k, value))
}

// ListHeldTwice implements inventory.AddressTx.
func (t addressTx) ListHeldTwice() ([]inventory.Holding, error) {
	return t.seenHoldings(t.all.ListHeldTwice())
}

func (t addressTx) seenHoldings(all []inventory.Holding, err error) ([]inventory.Holding, error) {
	if err != nil {
		return nil, err
	}
	for i := range all {
		unnameLeft(&all[i].Source)
	}
	return kept(all, func(h *inventory.Holding) (bool, error) { return t.seesHolder(h.Holder) })
}

// unnameLeft leaves the machine out of a note about an address that a machine left on its host. The machine is gone, so that nobody
// can tell whose it was.
func unnameLeft(note *string) {
	if _, rest, isLeft := inventory.CutLeftBy(*note); isLeft {
		*note = "left by a machine" + rest
	}
}

// What gives and takes addresses is of the engine, for machines that were found.

func (t addressTx) CreateAllocation(a *inventory.Allocation, now time.Time) error {
	return t.all.CreateAllocation(a, now)
}
func (t addressTx) DeleteAllocation(a netip.Addr) error { return t.all.DeleteAllocation(a) }
func (t addressTx) LeaveAllocations(machineUID string, h inventory.HostID, note string) error {
	return t.all.LeaveAllocations(machineUID, h, note)
}

func (t addressTx) SaveHoldings(h inventory.Holder, all []inventory.Holding) error {
	return t.all.SaveHoldings(h, all)
}
