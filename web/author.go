package web

import (
	"context"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig/address"
	"slipway.dev/slipway/machineconfig/reference"
)

// authored is a transaction that writes down who saves what may name secrets, and refuses names that are not for the one who
// saves them. Handlers, imports and undoing reach the store only through it.
type authored struct {
	inventory.Tx
	saved inventory.Saved
	life  Holder // gives machines the addresses and names that what is saved says; nil gives none
	after *[]func(context.Context, bool)
}

// holds has what was saved give machines their addresses and names, and refuses what two would have.
func (t authored) holds(err error, profile string, l *inventory.Layer) error {
	if err != nil || t.life == nil {
		return err
	}
	after, err := t.life.HoldConfigured(t.Tx, profile, l)
	if after != nil {
		*t.after = append(*t.after, after)
	}
	return err
}

// networkSaved says that an address of the network was saved.
func (t authored) networkSaved(err error) error {
	if err == nil && t.life != nil {
		t.life.NetworkSaved()
	}
	return err
}

// CreateReservation implements inventory.NetworkTx.
func (t authored) CreateReservation(r *inventory.Reservation, now time.Time) error {
	if t.life != nil {
		if err := t.life.MayReserve(t.Tx, r); err != nil {
			return err
		}
	}
	return t.Tx.CreateReservation(r, now)
}

// UpdateReservation implements inventory.NetworkTx. One that stays with its machine may change, whatever machine has the address.
func (t authored) UpdateReservation(r *inventory.Reservation, now time.Time) error {
	old, err := t.Tx.FindReservation(r.Address)
	if err != nil {
		return err
	}
	isOfAnother := r.MAC != old.MAC || r.UUID != old.UUID || r.Port != old.Port || r.ClientID != old.ClientID
	if isOfAnother && t.life != nil {
		if err := t.life.MayReserve(t.Tx, r); err != nil {
			return err
		}
	}
	return t.Tx.UpdateReservation(r, now)
}

// Subnets implements inventory.RecordTx.
func (t authored) Subnets() inventory.Records[inventory.Subnet] {
	return authoredRecords[inventory.Subnet]{
		t.Tx.Subnets(),
		func(n *inventory.Subnet, now time.Time) error { return address.MaySaveSubnet(t.Tx, n, now) },
		func(_ *inventory.Subnet, err error) error { return t.networkSaved(err) },
	}
}

// JoinTargets implements inventory.RecordTx.
func (t authored) JoinTargets() inventory.Records[inventory.JoinTarget] {
	return authoredRecords[inventory.JoinTarget]{
		t.Tx.JoinTargets(),
		func(j *inventory.JoinTarget, _ time.Time) error { return address.MaySaveTarget(t.Tx, j) },
		func(_ *inventory.JoinTarget, err error) error { return t.networkSaved(err) },
	}
}

// Profiles implements inventory.RecordTx.
func (t authored) Profiles() inventory.Records[inventory.Profile] {
	return authoredRecords[inventory.Profile]{
		t.Tx.Profiles(),
		func(p *inventory.Profile, _ time.Time) error {
			p.Saved = t.saved
			return reference.Profile(t.Tx, p)
		},
		func(p *inventory.Profile, err error) error { return t.holds(err, p.Name, nil) },
	}
}

// Layers implements inventory.RecordTx.
func (t authored) Layers() inventory.Records[inventory.Layer] {
	return authoredLayers{authoredRecords[inventory.Layer]{
		t.Tx.Layers(),
		func(l *inventory.Layer, _ time.Time) error {
			l.Saved = t.saved
			return reference.Layer(t.Tx, l)
		},
		func(l *inventory.Layer, err error) error { return t.holds(err, "", l) },
	}, t}
}

// authoredRecords refuse what is not for whoever saves it.
type authoredRecords[R any] struct {
	inventory.Records[R]
	may   func(*R, time.Time) error
	saved func(*R, error) error // gets the error of the write
}

// Create implements inventory.Records.
func (x authoredRecords[R]) Create(r *R, now time.Time) error {
	if err := x.may(r, now); err != nil {
		return err
	}
	return x.saved(r, x.Records.Create(r, now))
}

// Update implements inventory.Records.
func (x authoredRecords[R]) Update(r *R, now time.Time) error {
	if err := x.may(r, now); err != nil {
		return err
	}
	return x.saved(r, x.Records.Update(r, now))
}

// authoredLayers free what machines hold by a layer that is deleted.
type authoredLayers struct {
	authoredRecords[inventory.Layer]
	tx authored
}

// Delete implements inventory.Records.
func (x authoredLayers) Delete(key string) error {
	err := x.Records.Delete(key)
	if err == nil && x.tx.life != nil {
		x.tx.life.HeldElsewhere()
	}
	return err
}

// SaveBMC implements inventory.HardwareTx: imports and undoing say how hosts are powered.
func (t authored) SaveBMC(b *inventory.BMC, now time.Time) error {
	if err := address.MaySaveBMC(t.Tx, b); err != nil {
		return err
	}
	return t.networkSaved(t.Tx.SaveBMC(b, now))
}
