package provision

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
)

const (
	// mostOthers bounds the passwords that are kept beside the one in use.
	mostOthers = 3
	// nextWithin is how long a controller may take to begin to use a password that it has accepted.
	nextWithin = time.Hour
	// proofTries and proofEvery are how often, and how long apart, a new password is tried. Two refusals lock no account.
	proofTries = 2
	proofEvery = 3 * time.Second
)

// RotateBMC gives the account of a host's controller a new random password.
func (e *Engine) RotateBMC(ctx context.Context, id inventory.HostID, who ledger.Asker) (op inventory.Operation, err error) {
	_, err = e.changed(ctx, who, id, func(tx inventory.Tx, h *inventory.Host) error {
		j, err := e.start(tx, h, inventory.Operation{Kind: inventory.OpRotate, By: who.By}, Params{})
		if err == nil {
			op = j.op
		}
		return err
	})
	if err == nil {
		e.logins.Forget(id)
	}
	return op, err
}

// rotate sets a new password, and logs in with it before the old one is forgotten. Both are stored, sealed, before the
// controller learns of the new one; whatever it answers, both stay until one is known to let us in.
func (e *Engine) rotate(ctx context.Context, op inventory.Operation, h *inventory.Host, p powering) (bool, error) {
	if p.err != nil || p.driver == nil {
		return false, cmp.Or(p.err, error(inventory.Errorf(inventory.Invalid, "host %s has no controller", h.Name)))
	}
	if _, ok := p.driver.(bmc.UserManager); !ok {
		return false, inventory.Errorf(inventory.Invalid, "the controller of %s cannot change passwords", h.Name)
	}
	sealed, isFresh, err := e.nextPassword(ctx, op, h)
	if err != nil {
		return false, err
	}
	next := p.record
	next.Sealed = sealed
	if isFresh || e.proves(ctx, h, next) != nil { // one that was drawn before may be known to the controller already
		if err := e.giveNext(ctx, h, p.record, next); err != nil {
			return false, err
		}
	}
	return true, e.promote(ctx, h, sealed)
}

// giveNext tells the controller the next password, and succeeds only when that lets us in.
func (e *Engine) giveNext(ctx context.Context, h *inventory.Host, old, next inventory.BMC) error {
	password, err := e.cfg.Secrets.Open(bmcSecret(h.ID), next.Sealed)
	if err != nil {
		return err
	}
	said := e.asUser(h, old, func(users bmc.UserManager) error { return users.SetPassword(ctx, old.Username, string(password)) })
	var problem error
	for try := range proofTries {
		if try > 0 {
			if err := (clock{e.cfg.Now}).Sleep(ctx, min(proofEvery, e.pace().Backoff)); err != nil {
				break
			}
		}
		if problem = e.proves(ctx, h, next); problem == nil {
			return nil // whatever it said before
		}
	}
	if said != nil {
		return said
	}
	if bmc.KindOf(problem) != inventory.Unauthorized {
		return problem // it does not answer now; both are kept, and tried again
	}
	if e.proves(ctx, h, old) == nil {
		return inventory.Errorf(inventory.Invalid, "the controller of %s answered that it took the new password, but lets us in with the old one only", h.Name).
			WithHint("the old one stays in use; look at the controller's rules for passwords on its own pages, then rotate again")
	}
	return inventory.Errorf(inventory.Unauthorized, "the controller of %s answered that it took the new password, but lets us in neither with it nor with the old one", h.Name).
		WithHint("both are kept and tried again by: slipway bmc check %s; it may have locked the account for some minutes", h.Name)
}

// nextPassword returns the password that the account is to get: the one that was drawn before, or a new one, which is
// stored first.
func (e *Engine) nextPassword(ctx context.Context, op inventory.Operation, h *inventory.Host) (sealed []byte, isFresh bool, err error) {
	var drawn []byte
	if len(op.Result) > 0 { // an operation of an older version keeps it itself
		_ = json.Unmarshal(op.Result, &drawn)
	}
	if isFresh = len(drawn) == 0; isFresh {
		password, err := newPassword()
		if err != nil {
			return nil, false, err
		}
		if drawn, err = e.cfg.Sealer.Seal(bmcSecret(h.ID), []byte(password)); err != nil {
			return nil, false, err
		}
	}
	err = e.editBMC(ctx, h.ID, func(b *inventory.BMC) {
		if i := slices.IndexFunc(b.Others, func(o inventory.OtherPassword) bool { return o.IsNext }); i >= 0 {
			sealed = b.Others[i].Sealed // the controller may have it already: it is not lost
			b.Others[i].At, isFresh = e.cfg.Now(), false
			return
		}
		sealed = drawn
		b.Others = keepOther(b.Others, inventory.OtherPassword{Sealed: drawn, At: e.cfg.Now(), IsNext: true})
	})
	return sealed, isFresh, err
}

// keepOther puts a password in front of those that are kept. What was refused goes first where there are too many.
func keepOther(all []inventory.OtherPassword, o inventory.OtherPassword) []inventory.OtherPassword {
	all = append([]inventory.OtherPassword{o}, all...)
	for len(all) > mostOthers {
		last := len(all) - 1
		for i := last; i > 0; i-- {
			if all[i].IsRefused {
				last = i
				break
			}
		}
		all = slices.Delete(all, last, last+1)
	}
	return all
}

// editBMC changes the record of a host's controller.
func (e *Engine) editBMC(ctx context.Context, id inventory.HostID, change func(b *inventory.BMC)) error {
	return e.cfg.Store.Write(context.WithoutCancel(ctx), func(tx inventory.Tx) error {
		b, err := tx.FindBMC(id)
		if err != nil {
			return err
		}
		change(&b)
		return tx.SaveBMC(&b, e.cfg.Now())
	})
}

// promote makes a password that let us in the one in use. The one before it is kept as one that may be refused: where the
// controller is told its former password, as by a secret of Kubernetes, that is known.
func (e *Engine) promote(ctx context.Context, h *inventory.Host, sealed []byte) error {
	return e.editBMC(ctx, h.ID, func(b *inventory.BMC) {
		former := b.Sealed
		b.Others = slices.DeleteFunc(b.Others, func(o inventory.OtherPassword) bool { return slices.Equal(o.Sealed, sealed) })
		for i := range b.Others {
			b.Others[i].IsNext, b.Others[i].IsRefused = false, true
		}
		if len(former) > 0 && !slices.Equal(former, sealed) {
			b.Others = keepOther(b.Others, inventory.OtherPassword{Sealed: former, At: e.cfg.Now(), IsRefused: true})
		}
		b.Sealed = sealed
	})
}

// settle finds out which password lets us in, where more than one may: the one in use first, then the others. It returns
// the way to power the host with that one, or with the one in use when none does.
func (e *Engine) settle(ctx context.Context, h *inventory.Host, p powering, andRefused bool) powering {
	_, problem := p.driver.Power(ctx)
	if problem == nil {
		e.dropOthers(ctx, p.record)
		return p
	}
	for _, o := range p.record.Others {
		if bmc.KindOf(problem) != inventory.Unauthorized || ctx.Err() != nil {
			return p
		}
		if o.IsRefused && !andRefused {
			continue
		}
		other := p.record
		other.Sealed = o.Sealed
		if problem = e.proves(ctx, h, other); problem != nil {
			continue
		}
		d, err := e.openWith(h, other)
		if err != nil || e.promote(ctx, h, o.Sealed) != nil {
			return p
		}
		p.close()
		e.cfg.Log.Info("the controller knows another of the passwords that were kept; it is used from now on", "host", h.Name)
		return powering{record: other, driver: d}
	}
	return p
}

// dropOthers forgets what the password in use, which let us in, has made superfluous. One that the controller was told to
// take may still come into force.
func (e *Engine) dropOthers(ctx context.Context, b inventory.BMC) {
	isOver := func(o inventory.OtherPassword) bool {
		return !o.IsRefused && (!o.IsNext || e.cfg.Now().Sub(o.At) > nextWithin)
	}
	if !slices.ContainsFunc(b.Others, isOver) {
		return
	}
	err := e.editBMC(ctx, b.HostID, func(now *inventory.BMC) {
		for i := range now.Others {
			if slices.Equal(now.Sealed, b.Sealed) && isOver(now.Others[i]) {
				now.Others[i].IsNext, now.Others[i].IsRefused = false, true
			}
		}
	})
	if err != nil {
		e.cfg.Log.Warn("passwords of a controller not put in order", "host", b.HostID, "err", err)
	}
}

// isUnsettled reports whether another password than the one in use may be the right one.
func isUnsettled(b *inventory.BMC) bool {
	return slices.ContainsFunc(b.Others, func(o inventory.OtherPassword) bool { return !o.IsRefused })
}

// openWith opens a driver with the password of a record.
func (e *Engine) openWith(h *inventory.Host, b inventory.BMC) (bmc.Driver, error) {
	b, err := e.openedOptions(b)
	if err != nil {
		return nil, err
	}
	t := bmc.Target{BMC: b, HostName: h.Name, HostMACs: h.MACs()}
	if len(b.Sealed) > 0 {
		password, err := e.cfg.Secrets.Open(bmcSecret(h.ID), b.Sealed)
		if err != nil {
			return nil, err
		}
		t.Password = string(password)
	}
	return e.cfg.OpenBMC(t)
}

// asUser runs fn with the accounts of a controller, in a session of its own.
func (e *Engine) asUser(h *inventory.Host, b inventory.BMC, fn func(bmc.UserManager) error) error {
	d, err := e.openWith(h, b)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	users, ok := d.(bmc.UserManager)
	if !ok {
		return inventory.Errorf(inventory.Invalid, "the controller of %s has no accounts", h.Name)
	}
	return fn(users)
}

// proves logs in anew with the password of a record, and returns why that does not let us in.
func (e *Engine) proves(ctx context.Context, h *inventory.Host, b inventory.BMC) error {
	err := e.asUser(h, b, func(users bmc.UserManager) error { return users.CheckCredentials(ctx) })
	if err != nil && ctx.Err() != nil {
		return errors.Join(ctx.Err(), err)
	}
	return err
}
