package duty

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"slipway.dev/slipway/inventory"
)

// row returns the stored row of an instance.
func (w *world) row(name string) inventory.Instance {
	for _, i := range w.rows().instances {
		if i.Name == name {
			return i
		}
	}
	return inventory.Instance{}
}

func TestTheLifeOfAnInstanceIsSeenByItsSigns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(1)
		a := w.server("1", "a").runs(t, rack1)
		b := w.server("2", "b").runs(t)
		life := func(what string, of inventory.Instance, want Life) Sight {
			t.Helper()
			is := a.Sight(of)
			if is.Life != want {
				t.Errorf("%s: %+v, want %s", what, is, want)
			}
			return is
		}
		life("itself", w.row("a"), Alive)
		life("one whose signs nobody has seen yet", w.row("b"), Unknown)
		time.Sleep(5 * time.Second)
		if is := life("one that beats", w.row("b"), Alive); is.IsFirst || is.Quiet > 1100*time.Millisecond {
			t.Errorf("%+v", is)
		}
		ahead := w.row("b")
		ahead.HeartbeatN += 7
		life("a sign that is newer than the last look", ahead, Alive)
		b.kill()
		time.Sleep(2 * time.Second)
		life("one that has just died", w.row("b"), Alive)
		time.Sleep(10 * time.Second)
		if is := life("one that has died", w.row("b"), Silent); is.Quiet < 10*time.Second || is.Quiet > 13*time.Second {
			t.Errorf("%+v", is)
		}
		// While a does not reach the database, it knows nothing of others. Afterwards it counts anew.
		a.line.change(func(l *line) { l.cutUntil = time.Now().Add(10 * time.Second) })
		time.Sleep(9 * time.Second)
		life("one that died before a was cut off", w.row("b"), Unknown)
		time.Sleep(10 * time.Second)
		if is := life("the same, seen long enough", w.row("b"), Silent); !is.IsFirst {
			t.Errorf("it has not seen it alive: %+v", is)
		}
		c := w.server("3", "c").runs(t)
		time.Sleep(3 * time.Second)
		c.stop()
		<-c.ended
		time.Sleep(2 * time.Second)
		life("one that stopped", w.row("c"), Stopped)
		a.stop()
		<-a.ended
	})
}

func TestADutySaysWhoHadItBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(1)
		a := w.server("1", "a").runs(t, rack1)
		until(t, "a has it", a.has(rack1))
		b := w.server("2", "b").runs(t, rack1)
		if d := w.rows().duties[rack1]; d.Former != "" || d.Reason != "nobody had it" || a.TakenN() != 1 || a.Held()[rack1] != 1 {
			t.Errorf("%+v, %d taken, holds %v", d, a.TakenN(), a.Held())
		}
		a.kill()
		until(t, "b has it", b.has(rack1))
		if d := w.rows().duties[rack1]; d.Former != "a" || d.Holder != "2" || d.Reason != "instance a gave no sign of life for 3s" {
			t.Errorf("%+v", d)
		}
		a = w.server("1", "a").runs(t, rack1)
		time.Sleep(5 * time.Second)
		b.stop()
		<-b.ended
		until(t, "a has it again", a.has(rack1))
		if d := w.rows().duties[rack1]; d.Former != "b" || d.Holder != "1" || d.Reason != "instance b stopped" {
			t.Errorf("%+v", d)
		}
		a.stop()
		<-a.ended
	})
}

// drain is what an admin asks of an instance that serves.
func (w *world) drain(by *server, name string, isDrained bool) error {
	return w.edit(func(tx inventory.Tx) error {
		_, _, err := by.Drain(tx, name, isDrained)
		return err
	})
}

// refuses checks that something is a Conflict that says why, with a hint.
func refuses(t *testing.T, what string, err error, why string) {
	t.Helper()
	said, ok := err.(*inventory.Error)
	if !ok || said.Kind != inventory.Conflict || !strings.Contains(said.Msg, why) || said.Hint == "" {
		t.Errorf("%s: %v, want a conflict with %q and a hint", what, err, why)
	}
}

func TestAnInstanceIsDrainedOnlyWhenAnotherTakesItsDuties(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(1)
		a := w.server("1", "a").runs(t, rack1)
		until(t, "a has it", a.has(rack1))
		refuses(t, "the only one", w.drain(a, "a", true), "no other instance is alive to take its duties")
		b := w.server("2", "b").runs(t, rack1)
		refuses(t, "before anybody knows of the other", w.drain(a, "a", true), "of b nobody knows yet")
		time.Sleep(5 * time.Second)
		if err := w.drain(a, "a", true); err != nil {
			t.Fatal(err)
		}
		if i := w.row("a"); !i.IsDrained || i.DrainedAt.IsZero() {
			t.Errorf("%+v", i)
		}
		until(t, "b has it", b.has(rack1))
		saysEvent(t, w, "instance b took duty network/rack1: instance a was drained")
		refuses(t, "the last one", w.drain(b, "b", true), "a is drained")
		if err := w.drain(b, "a", false); err != nil || w.row("a").IsDrained || !w.row("a").DrainedAt.IsZero() {
			t.Errorf("%v: %+v", err, w.row("a"))
		}
		if err := w.drain(b, "c", true); !inventory.IsKind(err, inventory.NotFound) {
			t.Errorf("one that is not there: %v", err)
		}
		a.kill()
		time.Sleep(5 * time.Second)
		refuses(t, "the only one that is left", w.drain(b, "b", true), "a is silent")
		if err := w.drain(b, "a", true); err != nil { // so that it does nothing when it comes back
			t.Errorf("one that has died: %v", err)
		}
		b.stop()
		<-b.ended
		// Nobody is left who could undrain it.
		a = w.server("1", "a").runs(t, rack1)
		time.Sleep(20 * time.Second)
		if a.Holds(rack1) {
			t.Error("a drained instance takes a duty")
		}
		a.stop()
		<-a.ended
		a = w.server("1", "a")
		a.Undrain()
		a.runs(t, rack1)
		until(t, "a has it", a.has(rack1))
		a.stop()
		<-a.ended
	})
}

func TestOnlyAnInstanceThatIsGoneIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(1)
		a := w.server("1", "a").runs(t, rack1)
		until(t, "a has it", a.has(rack1))
		const alone = "network/alone" // which no other instance would do
		b := w.server("2", "b").runs(t, alone)
		forget := func(name string) error {
			return w.edit(func(tx inventory.Tx) error {
				_, err := a.Forget(tx, name)
				return err
			})
		}
		refuses(t, "itself", forget("a"), "it runs, and answers this request")
		refuses(t, "one that nobody knows yet", forget("b"), "nobody knows yet")
		time.Sleep(5 * time.Second)
		refuses(t, "one that runs", forget("b"), "it runs")
		b.stop()
		<-b.ended
		b = w.server("2", "b").runs(t, alone, inventory.DutyEngine)
		until(t, "b has the engine", b.has(inventory.DutyEngine))
		time.Sleep(2 * time.Second)
		b.kill()
		time.Sleep(6 * time.Second)
		refuses(t, "one whose duties may still be its own", forget("b"), "it has the duties engine, network/alone")
		time.Sleep(6 * time.Second)
		if err := forget("b"); err != nil {
			t.Fatal(err)
		}
		if d := w.rows().duties[alone]; w.row("b").ID != "" || d.Holder != "" || d.Former != "b" {
			t.Errorf("%+v, %+v", w.row("b"), d)
		}
		saysEvent(t, w, "nobody has duty network/alone: instance b was deleted")
		if err := forget("b"); !inventory.IsKind(err, inventory.NotFound) {
			t.Errorf("a second time: %v", err)
		}
		a.stop()
		<-a.ended
	})
}

// TestAServerAloneTakesWhatOthersLeft: its database may come from a backup of one that several instances used.
func TestAServerAloneTakesWhatOthersLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(1)
		b := w.server("2", "b").runs(t, inventory.DutyEngine)
		until(t, "b has the engine", b.has(inventory.DutyEngine))
		b.kill()
		a := w.server("1", "a")
		a.cfg.IsAlone = true
		a.runs(t, inventory.DutyEngine)
		until(t, "a has the engine", a.has(inventory.DutyEngine))
		refuses(t, "a file of SQLite", w.drain(a, "a", true), "a file of SQLite has one instance")
		if err := w.edit(func(tx inventory.Tx) error { _, err := a.Forget(tx, "b"); return err }); err != nil {
			t.Error(err)
		}
		a.stop()
		<-a.ended
		if events := w.rows().events; slices.ContainsFunc(events[2:], func(e string) bool { return strings.Contains(e, "took duty") }) {
			t.Errorf("a server alone writes no events of its duties: %v", events)
		}
	})
}
