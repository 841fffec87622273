package provision

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/pxe"
)

// cluster is a Kubernetes cluster with a node for every claim that runs.
type cluster struct {
	drain     func(since time.Time) (inventory.DrainState, error) // nil: empty at once
	forget    error
	drained   []inventory.ClaimID // each call
	forgotten []string            // nodes, each success
	since     []time.Time
	meanwhile func(step string) // happens while it is being asked
}

func (c *cluster) Drain(_ context.Context, m inventory.Machine, _ inventory.Host, since time.Time) (inventory.DrainState, error) {
	c.drained, c.since = append(c.drained, m.ClaimID), append(c.since, since)
	if c.meanwhile != nil {
		c.meanwhile("drain")
	}
	if c.drain == nil {
		return inventory.DrainState{IsDone: true}, nil
	}
	return c.drain(since)
}

func (c *cluster) Forget(_ context.Context, m inventory.Machine, _ inventory.Host) error {
	if c.meanwhile != nil {
		c.meanwhile("forget")
	}
	if c.forget == nil {
		c.forgotten = append(c.forgotten, m.Drain.Node+"/"+string(m.ClaimID))
	}
	return c.forget
}

var blocked = inventory.DrainState{Reason: "BlockedByPDB", Detail: "budget db/quorum allows no disruption", BlockedBy: []string{"db/quorum"}}

func stays(s inventory.DrainState) func(time.Time) (inventory.DrainState, error) {
	return func(time.Time) (inventory.DrainState, error) { return s, nil }
}

// node starts a machine whose node is in cluster prod, and waits until it runs.
func (l *life) node(d inventory.Drain) (*server, inventory.Machine, *cluster) {
	l.t.Helper()
	c := &cluster{}
	l.nodes = c
	l.restart()
	s := l.add("a", true)
	d.Target = "prod"
	l.create(inventory.Machine{Name: "web-1", Hostname: "node-1.example.com", Drain: d, Saved: inventory.Saved{SavedByAdmin: true}})
	l.until("it runs", l.phase("web-1", inventory.MachineRunning))
	m, _ := l.find("web-1")
	return s, m, c
}

func (l *life) view(name string) (v contract.View) {
	l.t.Helper()
	l.must(l.store.Read(context.Background(), func(tx inventory.Tx) error {
		m, err := tx.FindMachine(name)
		if err != nil {
			return err
		}
		v, err = l.engine.View(tx, m)
		return err
	}))
	return v
}

func (l *life) delete(name string, force bool) {
	l.t.Helper()
	_, err := l.engine.DeleteMachine(context.Background(), name, force, ledger.By("a test"))
	l.must(err)
}

// notes counts the lines of the timeline that hold some words.
func (l *life) notes(words string) (n int) {
	l.t.Helper()
	l.must(l.store.Read(context.Background(), func(tx inventory.Tx) error {
		all, err := tx.ListEvents(inventory.EventFilter{}, 0, 0)
		for _, ev := range all {
			if strings.Contains(ev.Detail, words) {
				n++
			}
		}
		return err
	}))
	return n
}

func TestANodeIsEmptyBeforeItsHostIsFencedAndForgottenAfter(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		t.Run(fmt.Sprintf("the server is killed after every step: %v", restarts), func(t *testing.T) {
			l := newLife(t)
			s, m, c := l.node(inventory.Drain{})
			l.restarts = restarts
			offs, calls := s.offs, 0
			c.drain = func(time.Time) (inventory.DrainState, error) {
				if calls++; calls < 3 {
					return blocked, nil
				}
				return inventory.DrainState{IsDone: true}, nil
			}
			c.meanwhile = func(step string) {
				switch isOff := s.offs > offs; {
				case step == "drain" && isOff:
					t.Error("it was fenced while its node was not empty")
				case step == "forget" && !isOff:
					t.Error("its node was forgotten while its system could run")
				}
			}
			l.delete("web-1", false)
			l.until("the host is available", l.hostIs(s, inventory.Available))
			if calls != 3 || !slices.Equal(c.forgotten, []string{"node-1/" + string(m.ClaimID)}) || c.drained[0] != m.ClaimID {
				t.Errorf("drained %d times (%v), forgot %v", calls, c.drained, c.forgotten)
			}
			if c.since[0].IsZero() || c.since[0] != c.since[2] {
				t.Errorf("began at %v, then at %v", c.since[0], c.since[2])
			}
			if _, ok := l.find("web-1"); ok {
				t.Error("the machine is still there")
			}
		})
	}
}

func TestWhatKeepsANodeFromBeingEmptyIsToldOnce(t *testing.T) {
	l := newLife(t)
	s, _, c := l.node(inventory.Drain{Timeout: inventory.Duration(10 * time.Minute)})
	c.drain = stays(blocked)
	l.delete("web-1", false)
	l.until("it is asked ten times", func() bool { return len(c.drained) >= 10 })
	v := l.view("web-1")
	if v.Drain == nil || v.Drain.Reason != "BlockedByPDB" || !slices.Equal(v.Drain.BlockedBy, []string{"db/quorum"}) || v.Operation.Step != inventory.StepDrain {
		t.Fatalf("the view says %+v of %+v", v.Drain, v.Operation)
	}
	if !strings.Contains(v.Machine.Reason, "quorum") || v.Machine.Phase != inventory.MachineDeleting {
		t.Errorf("machine %s: %s", v.Machine.Phase, v.Machine.Reason)
	}
	if n := l.notes("allows no disruption"); n != 1 {
		t.Errorf("the timeline says it %d times", n)
	}
	c.drain = func(time.Time) (inventory.DrainState, error) {
		return inventory.DrainState{}, errors.New("connection refused")
	}
	l.until("the cluster is gone", func() bool { return l.view("web-1").Drain.Reason == "WorkloadClusterUnreachable" })
	if s.host().State != inventory.Releasing || !s.isOn {
		t.Errorf("host %+v", s.host())
	}
	_, err := l.engine.Maintain(context.Background(), s.host().ID, true, ledger.By("a test"))
	l.must(err)
	before := c.since[0]
	l.turn()
	l.turn()
	_, err = l.engine.Maintain(context.Background(), s.host().ID, false, ledger.By("a test"))
	l.must(err)
	n := len(c.since)
	l.until("it goes on after the maintenance", func() bool { return len(c.since) > n })
	if c.since[n] != before {
		t.Errorf("a maintenance moved the beginning from %v to %v", before, c.since[n])
	}
	l.until("the time for it is over", l.hostIs(s, inventory.Available))
	if l.notes("is not empty after 10m") != 1 {
		t.Error("the timeline does not say that it was fenced all the same")
	}
	c.drain, c.drained = nil, nil
	l.create(inventory.Machine{Name: "plain"})
	l.until("it runs", l.phase("plain", inventory.MachineRunning))
	l.delete("plain", false)
	l.until("the host is available", l.hostIs(s, inventory.Available))
	if len(c.drained) != 0 {
		t.Error("a machine that is no node was drained")
	}
}

func TestADrainThatBlocksWaitsForAPerson(t *testing.T) {
	for _, c := range []struct {
		name string
		mend func(l *life, c *cluster)
	}{
		{"who mends what keeps the pods", func(_ *life, c *cluster) { c.drain = nil }},
		{"who lets the pods be", func(l *life, _ *cluster) {
			m, _ := l.find("web-1")
			m.Drain.IsSkipped = true
			_, err := l.engine.UpdateMachine(context.Background(), m, ledger.By("a test"))
			l.must(err)
		}},
		{"who no longer wants to block", func(l *life, _ *cluster) {
			m, _ := l.find("web-1")
			m.Drain.IsBlocking = false
			_, err := l.engine.UpdateMachine(context.Background(), m, ledger.By("a test"))
			l.must(err)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLife(t)
			s, _, k := l.node(inventory.Drain{Timeout: inventory.Duration(time.Minute), IsBlocking: true})
			k.drain = stays(blocked)
			l.delete("web-1", false)
			l.until("it waits", func() bool {
				v := l.view("web-1")
				return v.Operation.State == inventory.OpWaiting && v.Drain.Reason == "DrainTimeout"
			})
			for range 20 {
				l.turn()
			}
			if !s.isOn || s.host().State != inventory.Releasing {
				t.Fatalf("host %+v", s.host())
			}
			c.mend(l, k)
			l.until("the host is available", l.hostIs(s, inventory.Available))
		})
	}
}

func TestANodeThatCannotBeForgottenIsLeftToPeople(t *testing.T) {
	l := newLife(t)
	s, _, c := l.node(inventory.Drain{ForgetTimeout: inventory.Duration(5 * time.Minute)})
	c.forget = errors.New("connection refused")
	l.delete("web-1", false)
	l.until("it is fenced", func() bool { return l.view("web-1").Operation.Step == inventory.StepForget })
	if s.isOn || s.wipes != 0 {
		t.Errorf("on %v, wiped %d times", s.isOn, s.wipes)
	}
	l.until("the host is available", l.hostIs(s, inventory.Available))
	if l.notes("left to people") != 1 || len(c.forgotten) != 0 {
		t.Errorf("forgot %v", c.forgotten)
	}
}

func TestAReinstallationEmptiesTheOldNodeFirst(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		t.Run(fmt.Sprintf("the server is killed after every step: %v", restarts), func(t *testing.T) {
			l := newLife(t)
			s, old, c := l.node(inventory.Drain{})
			l.restarts = restarts
			calls := 0
			c.drain = func(time.Time) (inventory.DrainState, error) {
				if calls++; calls < 3 {
					return blocked, nil
				}
				return inventory.DrainState{IsDone: true}, nil
			}
			writes, offs := s.writes, s.offs
			c.meanwhile = func(step string) {
				if step == "drain" && s.offs > offs {
					t.Error("it was fenced while its node was not empty")
				}
			}
			oldID := l.view("web-1").ProviderID
			m, err := l.engine.Reinstall(context.Background(), "web-1", ledger.By("a test"))
			l.must(err)
			if v := l.view("web-1"); m.ClaimID == old.ClaimID || v.ProviderID == oldID || v.Delivered || v.IsUp {
				t.Errorf("claim %s, then %s; view %+v", old.ClaimID, m.ClaimID, v)
			}
			l.until("it runs", l.phase("web-1", inventory.MachineRunning))
			if s.writes != writes+1 || !slices.Equal(c.forgotten, []string{"node-1/" + string(old.ClaimID)}) || c.drained[0] != old.ClaimID {
				t.Errorf("written %d times, drained %v, forgot %v", s.writes-writes, c.drained, c.forgotten)
			}
			if v := l.view("web-1"); !v.Delivered || !v.IsUp {
				t.Errorf("view %+v", v)
			}
		})
	}
}

func TestADeletionByForceAsksNobody(t *testing.T) {
	l := newLife(t)
	_, _, c := l.node(inventory.Drain{})
	c.drain = stays(blocked)
	l.delete("web-1", false)
	l.until("it is being drained", func() bool { return len(c.drained) > 0 })
	n := len(c.drained)
	l.delete("web-1", true)
	l.turn()
	if _, ok := l.find("web-1"); ok || len(c.drained) != n {
		t.Errorf("there: %v, asked %d times more", ok, len(c.drained)-n)
	}
}

func TestARetainedHostKeepsItsDisksWhenItsMachineGoes(t *testing.T) {
	l := newLife(t)
	s := l.add("a", true)
	l.create(inventory.Machine{Name: "web-1"})
	l.until("it runs", l.phase("web-1", inventory.MachineRunning))
	h := s.host()
	h.IsRetained = true
	_, err := l.engine.UpdateHost(context.Background(), h, ledger.By("a test"))
	l.must(err)
	l.delete("web-1", false)
	l.until("it is parked", l.hostIs(s, inventory.Failed))
	if h := s.host(); s.wipes != 0 || s.isOn || h.ClaimID != "" || !h.IsDirty || !strings.Contains(h.StateReason, "retained") {
		t.Errorf("wiped %d times, on %v, host %+v", s.wipes, s.isOn, h)
	}
	if _, ok := l.find("web-1"); ok {
		t.Error("the machine is still there")
	}
	_, err = l.engine.Release(context.Background(), h.ID, ledger.By("a test"))
	l.must(err)
	l.create(inventory.Machine{Name: "web-2"})
	l.until("it says what is in the way", func() bool { m, _ := l.find("web-2"); return strings.Contains(m.Reason, "not wiped yet") })
	_, err = l.engine.CleanHost(context.Background(), h.ID, "", ledger.By("a test"))
	l.must(err)
	l.until("it runs", l.phase("web-2", inventory.MachineRunning))
}

// TestASystemIsSeenWhenItHasBootedAndNotWhenItWasWritten: that an image and its configuration were written does not say
// that it boots.
func TestASystemIsSeenWhenItHasBootedAndNotWhenItWasWritten(t *testing.T) {
	for _, c := range []struct {
		name     string
		isSilent bool // what is installed has no configuration, and reports nothing
	}{{"one that reports", false}, {"one that reports nothing", true}} {
		t.Run(c.name, func(t *testing.T) {
			l := newLife(t)
			s := l.add("s1", true)
			s.isMute = true
			profile := "debian12"
			if c.isSilent {
				profile = "bare"
				l.write(func(tx inventory.Tx) error {
					return tx.Profiles().Create(&inventory.Profile{Name: profile, Image: "debian-disk"}, l.clock)
				})
			}
			l.create(inventory.Machine{Name: "web-1", Profile: profile})
			wasUnseen := false
			l.until("it was written", func() bool {
				v := l.view("web-1")
				wasUnseen = wasUnseen || v.IsUnseen
				return v.Delivered
			})
			if v := l.view("web-1"); !v.Delivered || v.IsUp != c.isSilent || !wasUnseen {
				t.Fatalf("delivered %v, up %v, unseen %v", v.Delivered, v.IsUp, wasUnseen)
			}
			if !c.isSilent {
				l.until("it boots from its disk", func() bool { return s.runs == "disk" })
				l.must(l.engine.Report(context.Background(), s.os, s.address(), "", pxe.Report{Step: pxe.ReportUp}))
			}
			l.until("it was seen", func() bool { return !l.view("web-1").IsUnseen })
			if v := l.view("web-1"); !v.IsUp || !c.isSilent && v.Machine.Phase != inventory.MachineRunning {
				t.Errorf("up %v, phase %s", v.IsUp, v.Machine.Phase)
			}
		})
	}
}
