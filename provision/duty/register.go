package duty

import (
	"context"
	"fmt"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sleep"
)

// surelyGone is how long an instance shows no sign of life before another process may be that instance.
const surelyGone = SilentAfter

// Register makes this process the instance in the database. If the instance did not stop by itself, the server was killed, or a copy of its
// data directory runs. Register waits to find out which. It is a Conflict when another process lives that has the same name or data
// directory.
func (k *Keeper) Register(ctx context.Context) error {
	for waits := false; ; waits = true {
		var t turn
		var other *inventory.Instance
		err := k.cfg.Store.Write(ctx, func(tx inventory.Tx) (err error) {
			t = turn{keeper: k, tx: tx}
			other, err = t.register()
			return err
		})
		if err != nil {
			return err
		}
		if other == nil {
			t.log()
			return nil
		}
		if k.watch[other.ID].changedN > 0 {
			return k.refused(*other)
		}
		if !waits {
			k.cfg.Log.Info("waiting until the instance of before is surely gone", "instance", other.Name, "for", surelyGone)
		}
		if err := sleep.For(ctx, retryEvery); err != nil {
			return err
		}
	}
}

// refused says which process is in the way.
func (k *Keeper) refused(other inventory.Instance) error {
	where := ""
	if len(other.Addresses) > 0 {
		where = " at " + strings.Join(other.Addresses, ", ")
	}
	if other.ID == k.cfg.ID {
		return inventory.Errorf(inventory.Conflict, "the data directory is a copy: instance %s has the same and runs%s", other.Name, where).
			WithHint("stop one of them; or delete the file instance.id here, and give this instance another name with --instance")
	}
	return inventory.Errorf(inventory.Conflict, "another instance with the name %s runs%s", other.Name, where).
		WithHint("give this one another name: slipway serve --instance NAME")
}

// register stores the instance, unless another process may live that has its id or name: it returns that one then.
func (t *turn) register() (other *inventory.Instance, err error) {
	k := t.keeper
	if t.now, err = t.tx.DatabaseTime(); err != nil {
		return nil, err
	}
	all, err := t.tx.ListInstances()
	if err != nil {
		return nil, err
	}
	t.note(all)
	duties, err := t.tx.ListDuties()
	if err != nil {
		return nil, err
	}
	t.self = inventory.Instance{ID: k.cfg.ID}
	for _, i := range all {
		if i.ID != k.cfg.ID && i.Name != k.cfg.Name {
			continue
		}
		if k.mayLive(i, duties) {
			return &i, nil
		}
		if i.ID == k.cfg.ID {
			t.self = i
		} else if err := t.bury(i, heldBy(i.ID, duties), fmt.Sprintf("instance %s is gone", i.Name)); err != nil {
			return nil, err
		} else if err := t.tx.DeleteInstance(i.ID); err != nil {
			return nil, err
		}
	}
	k.inherit(duties)
	t.self.Name, t.self.Version = k.cfg.Name, k.cfg.Version
	k.told.Load().into(&t.self, t.now)
	t.self.Run, t.self.StartedAt, t.self.SeenAt = k.run, t.now, t.now
	t.self.HeartbeatN++
	if k.cfg.IsAlone || k.undrains { // with IsAlone, the row may come from a database with other instances
		t.self.IsDrained, t.self.DrainedAt = false, time.Time{}
	}
	if err := t.tx.SaveInstance(t.self); err != nil {
		return nil, err
	}
	return nil, t.tell("instance %s started, version %s, at %s", t.self.Name, t.self.Version, strings.Join(t.self.Addresses, ", "))
}

// mayLive reports whether an instance that stands in the way may be a process that runs. If it has another id, its duties are freed: then
// their terms have to end as well.
func (k *Keeper) mayLive(i inventory.Instance, duties []inventory.Duty) bool {
	if i.Run == "" || k.cfg.IsAlone {
		return false
	}
	gone := surelyGone
	for _, d := range duties {
		if d.Holder == i.ID && i.ID != k.cfg.ID {
			gone = max(gone, inventory.DutyTerm(d.Name))
		}
	}
	return k.watch.silent(i.ID, k.cfg.Elapsed()) < gone
}

// inherit remembers the duties of the run before this one. Their terms may not be over yet.
func (k *Keeper) inherit(duties []inventory.Duty) {
	k.former = map[string]int64{}
	k.formerAt = k.cfg.Elapsed() - k.watch.silent(k.cfg.ID, k.cfg.Elapsed())
	if k.cfg.IsAlone {
		k.formerAt = -time.Hour
	}
	for _, d := range duties {
		if d.Holder == k.cfg.ID {
			k.former[d.Name] = d.Epoch
		}
	}
}

// bury frees the duties of an instance that is gone for good: an admin has deleted it, or its name is used again, as after its data
// directory was lost.
func (t *turn) bury(i inventory.Instance, held []inventory.Duty, reason string) error {
	for _, d := range held {
		d.Holder, d.Former = "", i.Name
		if err := t.move(give, d, reason); err != nil {
			return err
		}
	}
	return nil
}

// leaveWithin bounds how long a stop waits for works to end, and for the database. What is not given up then goes to others after its term.
const leaveWithin = 3 * time.Second

// leave gives up everything, and marks the instance as stopped.
func (k *Keeper) leave() {
	k.drop(func(string) bool { return true })
	ctx, cancel := context.WithTimeout(context.Background(), leaveWithin)
	defer cancel()
	k.works.rest(ctx, k.poked)
	var t turn
	err := k.cfg.Store.Write(ctx, func(tx inventory.Tx) error {
		t = turn{keeper: k, tx: tx}
		return t.leave()
	})
	switch {
	case inventory.IsKind(err, inventory.Conflict): // another process has taken its place
	case err != nil:
		k.cfg.Log.Warn("cannot give duties up: other instances take them after some seconds", "err", err)
	default:
		t.log()
	}
}

func (t *turn) leave() error {
	if err := t.look(); err != nil {
		return err
	}
	duties, err := t.tx.ListDuties()
	if err != nil {
		return err
	}
	for _, d := range duties {
		if d.Holder == t.self.ID && !t.keeper.works.isBusy(d.Name) {
			d.Holder, d.Former = "", t.self.Name
			if err := t.move(give, d, fmt.Sprintf("instance %s stopped", t.self.Name)); err != nil {
				return err
			}
		}
	}
	t.self.Run, t.self.CutOff, t.self.CutOffAt = "", "", time.Time{}
	if err := t.tx.SaveInstance(t.self); err != nil {
		return err
	}
	return t.tell("instance %s stopped", t.self.Name)
}
