package duty

import (
	"fmt"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
)

// Drain stores that an instance shall hold no duty, or ends that, and returns its row before and after. The instance gives up its duties at
// its next sign of life, after their works have ended. Drain refuses that while no other instance can take them.
func (k *Keeper) Drain(tx inventory.Tx, name string, isDrained bool) (before, after inventory.Instance, err error) {
	before, err = tx.FindInstanceByName(name)
	if err != nil || before.IsDrained == isDrained {
		return before, before, err
	}
	after = before
	after.IsDrained, after.DrainedAt = isDrained, time.Time{}
	if isDrained {
		if err := k.mayDrain(tx, before); err != nil {
			return before, before, err
		}
		if after.DrainedAt, err = tx.DatabaseTime(); err != nil {
			return before, before, err
		}
	}
	return before, after, tx.SaveInstance(after)
}

// mayDrain refuses to drain an instance when no other would take its duties.
func (k *Keeper) mayDrain(tx inventory.Tx, i inventory.Instance) error {
	if k.cfg.IsAlone {
		return inventory.Errorf(inventory.Conflict, "instance %s cannot be drained: a file of SQLite has one instance", i.Name).
			WithHint("stop the server for maintenance; several instances need PostgreSQL, see docs/database.md")
	}
	all, err := tx.ListInstances()
	if err != nil {
		return err
	}
	var others []string
	for _, o := range all {
		if o.ID == i.ID {
			continue
		}
		life := k.Sight(o).Life
		switch {
		case life == Alive && !o.IsDrained:
			return nil
		case life == Alive:
			others = append(others, o.Name+" is drained")
		case life == Unknown:
			others = append(others, "of "+o.Name+" nobody knows yet whether it is alive")
		default:
			others = append(others, o.Name+" is "+string(life))
		}
	}
	if life := k.Sight(i).Life; life == Silent || life == Stopped { // it holds nothing that it can give up
		return nil
	}
	return inventory.Errorf(inventory.Conflict,
		"instance %s cannot be drained: no other instance is alive to take its duties%s", i.Name, listed(others)).
		WithHint("start another instance, or undrain one; slipway instance list shows all. One that has just started is known after %s",
			inventory.Duration(SilentAfter))
}

// listed adds reasons to a sentence.
func listed(reasons []string) string {
	if len(reasons) == 0 {
		return ""
	}
	return " (" + strings.Join(reasons, "; ") + ")"
}

// Forget deletes an instance that is gone for good, and returns what its row was. An instance that may run is refused. Duties that it left,
// and that no other instance has taken, become nobody's.
func (k *Keeper) Forget(tx inventory.Tx, name string) (inventory.Instance, error) {
	i, err := tx.FindInstanceByName(name)
	if err != nil {
		return i, err
	}
	duties, err := tx.ListDuties()
	if err != nil {
		return i, err
	}
	left := heldBy(i.ID, duties)
	if err := k.mayForget(i, left); err != nil {
		return i, err
	}
	if len(left) > 0 {
		t := turn{keeper: k, tx: tx}
		if t.now, err = tx.DatabaseTime(); err != nil {
			return i, err
		}
		if err := t.bury(i, left, fmt.Sprintf("instance %s was deleted", i.Name)); err != nil {
			return i, err
		}
	}
	return i, tx.DeleteInstance(i.ID)
}

// mayForget refuses an instance that may run, or may still act under a duty.
func (k *Keeper) mayForget(i inventory.Instance, held []inventory.Duty) error {
	is := k.Sight(i)
	var names []string
	var term time.Duration
	for _, d := range held {
		names, term = append(names, d.Name), max(term, inventory.DutyTerm(d.Name))
	}
	switch {
	case i.ID == k.cfg.ID:
		return inventory.Errorf(inventory.Conflict, "instance %s cannot be deleted: it runs, and answers this request", i.Name).
			WithHint("stop it first; then delete it at another instance")
	case is.Life == Alive:
		return inventory.Errorf(inventory.Conflict, "instance %s cannot be deleted: it runs", i.Name).
			WithHint("stop it first; slipway instance drain %s moves its duties to others", i.Name)
	case is.Life == Unknown:
		return inventory.Errorf(inventory.Conflict, "instance %s cannot be deleted: nobody knows yet whether it runs", i.Name).
			WithHint("the instance that serves has just started, or lost the database: ask again in %s", inventory.Duration(SilentAfter))
	case len(held) > 0 && !k.cfg.IsAlone && is.Quiet < term:
		has := strings.Join(names, ", ")
		return inventory.Errorf(inventory.Conflict, "instance %s cannot be deleted: it has the duties %s", i.Name, has).
			WithHint("others take them when it has given no sign of life for %s: ask again then", inventory.Duration(term))
	}
	return nil
}
