package web

import (
	"cmp"
	"context"
	"errors"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig/address"
	"slipway.dev/slipway/machineconfig/reference"
	"slipway.dev/slipway/web/rest"
)

// authored is a transaction that writes down who saves what may name secrets, and refuses names that are not for whoever
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

// DeleteLayer implements inventory.ConfigTx.
func (t authored) DeleteLayer(s inventory.Scope, name string) error {
	err := t.Tx.DeleteLayer(s, name)
	if err == nil && t.life != nil {
		t.life.HeldElsewhere()
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

// UpdateReservation implements inventory.NetworkTx. One that stays with its machine may change, whoever has the address.
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

// CreateSubnet implements inventory.NetworkTx.
func (t authored) CreateSubnet(n *inventory.Subnet, now time.Time) error {
	if err := address.MaySaveSubnet(t.Tx, n, now); err != nil {
		return err
	}
	return t.networkSaved(t.Tx.CreateSubnet(n, now))
}

// UpdateSubnet implements inventory.NetworkTx.
func (t authored) UpdateSubnet(n *inventory.Subnet, now time.Time) error {
	if err := address.MaySaveSubnet(t.Tx, n, now); err != nil {
		return err
	}
	return t.networkSaved(t.Tx.UpdateSubnet(n, now))
}

// JoinTargets implements inventory.RecordTx.
func (t authored) JoinTargets() inventory.Records[inventory.JoinTarget] {
	return authoredTargets{t.Tx.JoinTargets(), t}
}

// authoredTargets refuses join targets whose address is not for whoever saves them.
type authoredTargets struct {
	inventory.Records[inventory.JoinTarget]
	tx authored
}

// Create implements inventory.Records.
func (x authoredTargets) Create(j *inventory.JoinTarget, now time.Time) error {
	if err := address.MaySaveTarget(x.tx.Tx, j); err != nil {
		return err
	}
	return x.tx.networkSaved(x.Records.Create(j, now))
}

// Update implements inventory.Records.
func (x authoredTargets) Update(j *inventory.JoinTarget, now time.Time) error {
	if err := address.MaySaveTarget(x.tx.Tx, j); err != nil {
		return err
	}
	return x.tx.networkSaved(x.Records.Update(j, now))
}

// SaveBMC implements inventory.HardwareTx: imports and undoing say how hosts are powered.
func (t authored) SaveBMC(b *inventory.BMC, now time.Time) error {
	if err := address.MaySaveBMC(t.Tx, b); err != nil {
		return err
	}
	return t.networkSaved(t.Tx.SaveBMC(b, now))
}

// CreateProfile implements inventory.ImageTx.
func (t authored) CreateProfile(p *inventory.Profile, now time.Time) error {
	p.Saved = t.saved
	if err := reference.Profile(t.Tx, p); err != nil {
		return err
	}
	return t.holds(t.Tx.CreateProfile(p, now), p.Name, nil)
}

// UpdateProfile implements inventory.ImageTx.
func (t authored) UpdateProfile(p *inventory.Profile, now time.Time) error {
	p.Saved = t.saved
	if err := reference.Profile(t.Tx, p); err != nil {
		return err
	}
	return t.holds(t.Tx.UpdateProfile(p, now), p.Name, nil)
}

// CreateLayer implements inventory.ConfigTx.
func (t authored) CreateLayer(l *inventory.Layer, now time.Time) error {
	l.Saved = t.saved
	if err := reference.Layer(t.Tx, l); err != nil {
		return err
	}
	return t.holds(t.Tx.CreateLayer(l, now), "", l)
}

// UpdateLayer implements inventory.ConfigTx.
func (t authored) UpdateLayer(l *inventory.Layer, now time.Time) error {
	l.Saved = t.saved
	if err := reference.Layer(t.Tx, l); err != nil {
		return err
	}
	return t.holds(t.Tx.UpdateLayer(l, now), "", l)
}

// noteRefused puts the refusal of a name into the timeline: the transaction that it was in is taken back.
func (s scopedStore) noteRefused(req *rest.Request, err error) {
	var no *reference.Refusal
	if !errors.As(err, &no) {
		return
	}
	c := req.Caller
	_ = s.whole.Write(req.Detached(), func(tx inventory.Tx) error { // the audit has the refusal, too
		return tx.AddEvent(&inventory.Event{
			At: time.Now(), Kind: inventory.EventReferenceRefused, Subject: no.Use.Noun + "/" + no.Use.Name,
			Detail: inventory.Clean("refused to "+cmp.Or(c.Name, "somebody")+": "+no.Err.Msg, 500),
			Data:   map[string]any{"ref": no.Use.Ref, "hint": no.Err.Hint},
		})
	})
}
