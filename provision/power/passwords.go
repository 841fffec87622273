package power

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
)

const (
	// mostOthers bounds the passwords that are kept in addition to the one in use.
	mostOthers = 3
	// nextWithin is how long a controller may take to begin to use a password that it has accepted.
	nextWithin = time.Hour
	// proofTries and proofEvery are how often, and how long apart, a new password is tried. Two refusals lock no account.
	proofTries = 2
	proofEvery = 3 * time.Second
)

// Rotate sets a new password, and logs in with it before the old one is forgotten. Both are stored, sealed, before the
// controller learns of the new one; whatever it answers, both stay until one is known to let us in.
func (c *Controllers) Rotate(ctx context.Context, op inventory.Operation, h *inventory.Host, p Access) (bool, error) {
	if p.Err != nil || p.Driver == nil {
		return false, cmp.Or(p.Err, error(inventory.Errorf(inventory.Invalid, "host %s has no controller", h.Name)))
	}
	if _, ok := p.Driver.(bmc.UserManager); !ok {
		return false, inventory.Errorf(inventory.Invalid, "the controller of %s cannot change passwords", h.Name)
	}
	// After a crash here the password is stored, and the controller does not know it. The repetition takes the stored one again.
	sealed, isFresh, err := c.nextPassword(ctx, op, h)
	if err != nil {
		return false, err
	}
	next := p.Record
	next.Sealed = sealed
	if isFresh || c.proves(ctx, h, next) != nil { // one that was drawn before may be known to the controller already
		if err := c.giveNext(ctx, h, p.Record, next); err != nil {
			return false, err
		}
	}
	return true, c.promote(ctx, h, sealed)
}

// giveNext tells the controller the next password, and succeeds only when that lets us in.
func (c *Controllers) giveNext(ctx context.Context, h *inventory.Host, old, next inventory.BMC) error {
	password, err := c.cfg.Secrets.Open(SecretName(h.ID), next.Sealed)
	if err != nil {
		return err
	}
	said := c.asUser(h, old, func(users bmc.UserManager) error { return users.SetPassword(ctx, old.Username, string(password)) })
	var problem error
	for try := range proofTries {
		if try > 0 {
			if err := (Clock{Time: c.cfg.Now}).Sleep(ctx, min(proofEvery, c.Pace().Backoff)); err != nil {
				break
			}
		}
		if problem = c.proves(ctx, h, next); problem == nil {
			return nil // whatever it said before
		}
	}
	if said != nil {
		return said
	}
	if bmc.KindOf(problem) != inventory.Unauthorized {
		return problem // it does not answer now; both are kept, and tried again
	}
	if c.proves(ctx, h, old) == nil {
		return inventory.Errorf(inventory.Invalid, "the controller of %s answered that it took the new password, but lets us in with the old one only", h.Name).
			WithHint("the old one stays in use; look at the controller's rules for passwords on its own pages, then rotate again")
	}
	return inventory.Errorf(inventory.Unauthorized, "the controller of %s answered that it took the new password, but lets us in neither with it nor with the old one", h.Name).
		WithHint("both are kept and tried again by: slipway bmc check %s; it may have locked the account for some minutes", h.Name)
}

// nextPassword returns the password that the account is to get: the one that was drawn before, or a new one, which is
// stored first.
func (c *Controllers) nextPassword(ctx context.Context, op inventory.Operation, h *inventory.Host) (sealed []byte, isFresh bool, err error) {
	var drawn []byte
	if len(op.Result) > 0 { // an operation of an older version keeps it itself
		_ = json.Unmarshal(op.Result, &drawn)
	}
	if isFresh = len(drawn) == 0; isFresh {
		password, err := NewPassword()
		if err != nil {
			return nil, false, err
		}
		if drawn, err = c.cfg.Sealer.Seal(SecretName(h.ID), []byte(password)); err != nil {
			return nil, false, err
		}
	}
	err = c.editBMC(ctx, h.ID, func(b *inventory.BMC) {
		if i := slices.IndexFunc(b.Others, func(o inventory.OtherPassword) bool { return o.IsNext }); i >= 0 {
			sealed = b.Others[i].Sealed // the controller may have it already: it is not lost
			b.Others[i].At, isFresh = c.cfg.Now(), false
			return
		}
		sealed = drawn
		b.Others = KeepOther(b.Others, inventory.OtherPassword{Sealed: drawn, At: c.cfg.Now(), IsNext: true})
	})
	return sealed, isFresh, err
}

// KeepOther puts a password in front of those that are kept. A refused password goes first where there are too many.
func KeepOther(all []inventory.OtherPassword, o inventory.OtherPassword) []inventory.OtherPassword {
	all = append([]inventory.OtherPassword{o}, all...)
	for len(all) > mostOthers {
		last := len(all) - 1
		// Never index 0: that is the password that was just added.
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
func (c *Controllers) editBMC(ctx context.Context, id inventory.HostID, change func(b *inventory.BMC)) error {
	// The controller may know the new password by now. The record is written even when the caller has gone.
	return c.cfg.Store.Write(context.WithoutCancel(ctx), func(tx inventory.Tx) error {
		b, err := tx.FindBMC(id)
		if err != nil {
			return err
		}
		change(&b)
		return tx.SaveBMC(&b, c.cfg.Now())
	})
}

// promote makes a password that let us in the one in use. The one before it is kept as one that may be refused: where the
// controller is told its former password, as by a secret of Kubernetes, that is known.
func (c *Controllers) promote(ctx context.Context, h *inventory.Host, sealed []byte) error {
	return c.editBMC(ctx, h.ID, func(b *inventory.BMC) {
		former := b.Sealed
		b.Others = slices.DeleteFunc(b.Others, func(o inventory.OtherPassword) bool { return slices.Equal(o.Sealed, sealed) })
		for i := range b.Others {
			b.Others[i].IsNext, b.Others[i].IsRefused = false, true
		}
		if len(former) > 0 && !slices.Equal(former, sealed) {
			b.Others = KeepOther(b.Others, inventory.OtherPassword{Sealed: former, At: c.cfg.Now(), IsRefused: true})
		}
		b.Sealed = sealed
	})
}

// settle finds out which password lets us in, where more than one may: the one in use first, then the others. It returns
// the way to power the host with that one, or with the one in use when none does.
func (c *Controllers) settle(ctx context.Context, h *inventory.Host, p Access, andRefused bool) Access {
	_, problem := p.Driver.Power(ctx)
	if problem == nil {
		c.dropOthers(ctx, p.Record)
		return p
	}
	for _, o := range p.Record.Others {
		// Only a refused login is a reason to try another password. Anything else would use up tries for nothing.
		if bmc.KindOf(problem) != inventory.Unauthorized || ctx.Err() != nil {
			return p
		}
		if o.IsRefused && !andRefused {
			continue
		}
		other := p.Record
		other.Sealed = o.Sealed
		if problem = c.proves(ctx, h, other); problem != nil {
			continue
		}
		d, err := c.openAs(h, other)
		if err != nil || c.promote(ctx, h, o.Sealed) != nil {
			return p
		}
		p.Close()
		c.cfg.Log.Info("the controller knows another of the passwords that were kept; it is used from now on", "host", h.Name)
		return Access{Record: other, Driver: d}
	}
	return p
}

// dropOthers forgets what the password in use, which let us in, has made superfluous. One that the controller was told to
// take may still come into force.
func (c *Controllers) dropOthers(ctx context.Context, b inventory.BMC) {
	isOver := func(o inventory.OtherPassword) bool {
		return !o.IsRefused && (!o.IsNext || c.cfg.Now().Sub(o.At) > nextWithin)
	}
	if !slices.ContainsFunc(b.Others, isOver) {
		return
	}
	err := c.editBMC(ctx, b.HostID, func(now *inventory.BMC) {
		for i := range now.Others {
			if slices.Equal(now.Sealed, b.Sealed) && isOver(now.Others[i]) {
				now.Others[i].IsNext, now.Others[i].IsRefused = false, true
			}
		}
	})
	if err != nil {
		c.cfg.Log.Warn("passwords of a controller not put in order", "host", b.HostID, "err", err)
	}
}

// IsUnsettled reports whether another password than the one in use may be the right one.
func IsUnsettled(b *inventory.BMC) bool {
	return slices.ContainsFunc(b.Others, func(o inventory.OtherPassword) bool { return !o.IsRefused })
}

// openAs opens a driver with the password of a record.
func (c *Controllers) openAs(h *inventory.Host, b inventory.BMC) (bmc.Driver, error) {
	b, err := c.OpenedOptions(b)
	if err != nil {
		return nil, err
	}
	t := bmc.Target{BMC: b, HostName: h.Name, HostMACs: h.MACs()}
	if len(b.Sealed) > 0 {
		password, err := c.cfg.Secrets.Open(SecretName(h.ID), b.Sealed)
		if err != nil {
			return nil, err
		}
		t.Password = string(password)
	}
	return c.cfg.OpenBMC(t)
}

// asUser runs fn with the accounts of a controller, in a session of its own.
func (c *Controllers) asUser(h *inventory.Host, b inventory.BMC, fn func(bmc.UserManager) error) error {
	d, err := c.openAs(h, b)
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

// proves logs in again with the password of a record, and returns why that does not let us in.
func (c *Controllers) proves(ctx context.Context, h *inventory.Host, b inventory.BMC) error {
	err := c.asUser(h, b, func(users bmc.UserManager) error { return users.CheckCredentials(ctx) })
	if err != nil && ctx.Err() != nil {
		return errors.Join(ctx.Err(), err)
	}
	return err
}

// NewPassword draws 16 characters, which is as long as IPMI 1.5 passwords may be; two of them meet the rules that
// some vendors have.
func NewPassword() (string, error) {
	const letters = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"
	b := []byte("A7")
	for len(b) < 16 {
		n, err := rand.Int(rand.Reader, big.NewInt(int64(len(letters))))
		if err != nil {
			return "", fmt.Errorf("draw a password: %w", err)
		}
		b = append(b, letters[n.Int64()])
	}
	return string(b), nil
}
