package duty

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"slipway.dev/slipway/inventory"
)

func TestAnInstanceKnowsTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(1)
		a := w.server("1", "a")
		if _, ok := a.Others(); ok {
			t.Error("it knows who is there before it has asked")
		}
		a.runs(t)
		b := w.server("2", "b").runs(t)
		c := w.server("3", "c").runs(t)
		says := func(want ...string) func() bool {
			return func() bool {
				all, ok := a.Others()
				var got []string
				for _, p := range all {
					is := p.Name + " at " + p.Addresses[0]
					if p.Life != Alive {
						is = p.Name + " is " + string(p.Life)
					}
					got = append(got, is)
				}
				return ok && slices.Equal(got, want)
			}
		}
		until(t, "a sees both", says("b at 10.0.0.2", "c at 10.0.0.3"))
		b.Reach([]string{"10.0.0.22"})
		if took := until(t, "a sees the new address", says("b at 10.0.0.22", "c at 10.0.0.3")); took > 2*time.Second {
			t.Errorf("an address is seen after %v", took)
		}
		c.stop()
		until(t, "c has stopped", says("b at 10.0.0.22", "c is stopped"))
		b.kill()
		if took := until(t, "b was killed", says("b is silent", "c is stopped")); took < 2*time.Second || took > 5*time.Second {
			t.Errorf("an instance that was killed counts as alive for %v", took)
		}
		a.stop()
		<-a.ended
		<-c.ended
	})
}

func TestATransactionChecksAnEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(1)
		a := w.server("1", "a").runs(t, rack1)
		until(t, "a has it", a.has(rack1))
		b := w.server("2", "b").runs(t, rack1)
		check := func(s *server, name string, epoch int64) error {
			return s.link.Read(context.Background(), func(tx inventory.Tx) error { return s.Check(tx, name, epoch) })
		}
		epoch, ok := a.Epoch(rack1)
		if err := check(a, rack1, epoch); err != nil || !ok {
			t.Errorf("epoch %d of the holder: %v", epoch, err)
		}
		for name, err := range map[string]error{
			"another epoch": check(a, rack1, epoch+1), "another instance": check(b, rack1, epoch),
			"a duty that nobody has had": check(a, "network/new", 0),
		} {
			if !inventory.IsKind(err, inventory.Conflict) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, ok := b.Epoch(rack1); ok {
			t.Error("an instance without the duty has an epoch of it")
		}
		a.stop()
		b.stop()
		<-a.ended
		<-b.ended
	})
}
