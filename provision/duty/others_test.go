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
		b.Tell(func(t *Told) { t.Addresses = []string{"10.0.0.22"} })
		if took := until(t, "a sees the new address", says("b at 10.0.0.22", "c at 10.0.0.3")); took > 2*time.Second {
			t.Errorf("an address is seen after %v", took)
		}
		b.Tell(func(t *Told) { t.Links, t.CutOff = []string{"10.0.0.22:8069"}, "no answer" })
		row := func() inventory.Instance {
			all, _ := a.Others()
			return all[0].Instance
		}
		took := until(t, "a sees the new link", func() bool { return slices.Equal(row().Links, []string{"10.0.0.22:8069"}) })
		since := row().CutOffAt
		if took > 2*time.Second || row().CutOff != "no answer" || since.IsZero() || row().Addresses[0] != "10.0.0.22" {
			t.Errorf("after %v it reads %+v", took, row())
		}
		b.Tell(func(t *Told) { t.CutOff = "no route" })
		until(t, "a sees the other reason", func() bool { return row().CutOff == "no route" })
		if !row().CutOffAt.Equal(since) {
			t.Errorf("it is cut off since %v, and not since %v", row().CutOffAt, since)
		}
		b.Tell(func(t *Told) { t.CutOff = "" })
		until(t, "a sees that it is over", func() bool { return row().CutOff == "" && row().CutOffAt.IsZero() })
		b.Tell(func(t *Told) { t.CutOff = "no answer" })
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
