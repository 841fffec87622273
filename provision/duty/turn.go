package duty

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
)

const (
	heartbeatEvery = time.Second            // a third of the shortest term
	retryEvery     = 250 * time.Millisecond // when the database did not answer
	answerWithin   = 3 * time.Second        // after which a heartbeat that waits for its turn is given up
)

// turn is what a Keeper does in one transaction.
type turn struct {
	keeper *Keeper
	tx     inventory.Tx
	wanted map[string]bool

	now       time.Time // of the database, for people
	self      inventory.Instance
	instances map[string]inventory.Instance // by id

	// What came of it, once it is committed.

	held  map[string]int64 // epochs of what the instance holds
	moved []move
	wait  time.Duration // until the next turn
}

// move is a change of a duty's holder.
type move struct {
	verdict verdict
	duty    inventory.Duty // as it is afterwards
}

// run shows a sign of life and goes through all duties.
func (t *turn) run() error {
	if err := t.look(); err != nil {
		return err
	}
	duties, err := t.tx.ListDuties()
	if err != nil {
		return err
	}
	t.wait = heartbeatEvery
	known := map[string]bool{}
	for _, d := range duties {
		known[d.Name] = true
		if err := t.decide(d); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.wanted)) {
		if !known[name] {
			if err := t.decide(inventory.Duty{Name: name}); err != nil {
				return err
			}
		}
	}
	return nil
}

// look reads the signs of life of all instances, and shows that of this one. It is a Conflict when another process has taken its place.
//
// The order spares ways to the database, during which no other instance writes: what is stored goes there together with the commit.
func (t *turn) look() error {
	k := t.keeper
	all, err := t.tx.ListInstances()
	if err != nil {
		return err
	}
	t.note(all)
	t.self = t.instances[k.cfg.ID]
	switch t.self.Run {
	case k.run:
	case "":
		return inventory.Errorf(inventory.Conflict, "its row was deleted or marked as stopped")
	default:
		return inventory.Errorf(inventory.Conflict, "it was started again at %s", strings.Join(t.self.Addresses, ", "))
	}
	if t.now, err = t.tx.DatabaseTime(); err != nil {
		return err
	}
	t.self.HeartbeatN, t.self.SeenAt = t.self.HeartbeatN+1, t.now
	if k.told.Load().into(&t.self, t.now) {
		return t.tx.SaveInstance(t.self)
	}
	return t.tx.Heartbeat(k.cfg.ID, k.run, t.now)
}

func (t *turn) note(all []inventory.Instance) {
	t.keeper.watch.note(all, t.keeper.cfg.Elapsed())
	t.instances = map[string]inventory.Instance{}
	for _, i := range all {
		t.instances[i.ID] = i
	}
}

// others returns the other instances that the transaction has read.
func (t *turn) others() []inventory.Instance {
	all := []inventory.Instance{}
	for _, i := range t.instances {
		if i.ID != t.self.ID {
			all = append(all, i)
		}
	}
	slices.SortFunc(all, func(a, b inventory.Instance) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// decide does about one duty what the function decide says.
func (t *turn) decide(d inventory.Duty) error {
	q := question{duty: d, self: t.self, wants: t.wanted[d.Name], isAlone: t.keeper.cfg.IsAlone}
	if i, ok := t.instances[d.Holder]; ok {
		q.holder, q.silent = &i, t.keeper.watch.silent(i.ID, t.keeper.cfg.Elapsed())
	}
	if epoch, ok := t.keeper.former[d.Name]; ok && d.Holder == t.self.ID && d.Epoch == epoch {
		q.isFormer, q.silent = true, t.keeper.cfg.Elapsed()-t.keeper.formerAt
	}
	v, reason, wait := decide(q)
	if wait > 0 {
		t.wait = min(t.wait, wait)
	}
	switch v {
	case keep:
		t.held[d.Name] = d.Epoch
	case take:
		if q.holder != nil { // else the row has who gave it up
			d.Former = q.holder.Name
		}
		d.Holder, d.Epoch = t.self.ID, d.Epoch+1
		t.held[d.Name] = d.Epoch
		return t.move(v, d, reason)
	case give:
		if t.keeper.works.isBusy(d.Name) {
			return nil
		}
		d.Holder, d.Former = "", t.self.Name
		return t.move(v, d, reason)
	}
	return nil
}

// move stores that a duty has another holder, and the event that says why.
func (t *turn) move(v verdict, d inventory.Duty, reason string) error {
	d.SinceAt, d.Reason = t.now, reason
	t.moved = append(t.moved, move{v, d})
	if err := t.tx.SaveDuty(d); err != nil {
		return err
	}
	if t.keeper.cfg.IsAlone { // it starts and stops with the server, which has its own events
		return nil
	}
	detail := fmt.Sprintf("instance %s took duty %s: %s", t.self.Name, d.Name, reason)
	if v == give {
		detail = fmt.Sprintf("nobody has duty %s: %s", d.Name, reason)
	}
	return t.tx.AddEvent(&inventory.Event{
		At: t.now, Kind: inventory.EventDuty, Subject: "duty/" + d.Name, Detail: detail,
		Data: map[string]any{"holder": t.instances[d.Holder].Name, "former": d.Former, "epoch": d.Epoch, "reason": reason},
	})
}

// tell stores an event of this instance, for people.
func (t *turn) tell(format string, args ...any) error {
	if t.keeper.cfg.IsAlone {
		return nil
	}
	return t.tx.AddEvent(&inventory.Event{
		At: t.now, Kind: inventory.EventInstance, Subject: "instance/" + t.self.Name,
		Detail: inventory.Clean(fmt.Sprintf(format, args...), 500),
		Data:   map[string]any{"version": t.self.Version, "addresses": t.self.Addresses},
	})
}

// heldBy returns the duties of an instance.
func heldBy(id string, duties []inventory.Duty) (held []inventory.Duty) {
	for _, d := range duties {
		if d.Holder == id {
			held = append(held, d)
		}
	}
	return held
}

// log says what has changed.
func (t *turn) log() {
	for _, m := range t.moved {
		said := "took duty"
		if m.verdict == give {
			said = "gave duty up"
		}
		if m.verdict == take {
			t.keeper.takenN.Add(1)
		}
		t.keeper.cfg.Log.Info(said, "duty", m.duty.Name, "epoch", m.duty.Epoch, "reason", m.duty.Reason)
	}
}
