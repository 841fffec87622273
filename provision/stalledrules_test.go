package provision

import (
	"context"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/session"
	"slipway.dev/slipway/provision/watch"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/lease"
)

// stalledFor is how long an issue stays open of a machine of which nothing more is heard.
const stalledFor = 24 * time.Hour

// standing is a host whose boot stands still after its address, with the issue open.
func standing(t *testing.T) (*rack, *machine) {
	t.Helper()
	r := newRack(t)
	r.image("live", false, "mac", 0)
	m := r.known(1)
	m.dhcp(pxe.StageFirmware)
	r.clock = r.clock.Add(2 * time.Minute)
	r.look()
	if n := len(r.stalledIssues(inventory.IssueStalled)); n != 1 {
		t.Fatalf("%d issues", n)
	}
	return r, m
}

// What is fetched may be silent for ever: it is no issue, and is forgotten with its boot.
func TestABootThatOwesNothingDoesNotStandStill(t *testing.T) {
	r := newRack(t)
	r.image("live", false, "mac", 0)
	m := r.known(1)
	for _, l := range legs() {
		r.clock = r.clock.Add(time.Second)
		l.play(m)
	}
	r.clock = r.clock.Add(9 * time.Minute)
	for range 2 {
		if r.look(); len(r.stalledIssues(inventory.IssueStalled)) != 0 {
			t.Fatal("an issue is open of what may be silent")
		}
	}
	r.clock = r.clock.Add(session.SilentFor)
	r.must(sweep(r.engine))
	if r.look(); len(r.engine.Stalled()) != 0 {
		t.Errorf("remembered after its boot: %+v", r.engine.Stalled())
	}
}

// Somebody has to accept it, or its work is done: whoever switches it off breaks nothing.
func TestAMachineThatWaitsForAPersonDoesNotStandStill(t *testing.T) {
	r := newRack(t)
	newRecord(r)
	m := r.machine(1)
	m.boot()
	if x := r.expected(m.host()); x == nil || !x.By.IsZero() || x.What != "somebody accepts it" || x.Hint != "slipway host accept "+m.host().Name {
		t.Errorf("of a machine that is not accepted is expected %+v", x)
	}
	m.accept()
	m.boot()
	if x := r.expected(m.host()); x == nil || !x.By.IsZero() || !strings.Contains(x.What, "no profile matches") {
		t.Errorf("of a machine without a profile is expected %+v", x)
	}
	for range 20 { // it is switched off
		r.clock = r.clock.Add(time.Minute)
		r.look()
		d, err := r.engine.Diagnose(context.Background(), m.host().ID, "")
		r.must(err)
		if open := r.stalledIssues(inventory.IssueStalled); len(open)+len(d.Causes) != 0 || d.IsLate {
			t.Fatalf("after %s: %+v, %+v", r.clock, open, d.Causes)
		}
	}
}

func (r *rack) expected(h inventory.Host) (x *watch.Expected) {
	r.t.Helper()
	r.must(r.store.Read(context.Background(), func(tx inventory.Tx) (err error) {
		x, err = r.engine.Expects(tx, h)
		return err
	}))
	return x
}

// Between two looks a boot may have come further and stand still again: the issue is opened anew.
func TestABootThatStandsStillFurtherOn(t *testing.T) {
	r, m := standing(t)
	m.seek()
	m.hear(inventory.EventDHCPOffer)
	m.hear(inventory.EventDHCPAck)
	r.engine.Transferring(pxe.Transfer{Source: m.address(), Proto: "tftp", Name: "snponly.efi"})
	r.engine.Transferred(pxe.Transfer{Source: m.address(), Proto: "tftp", Name: "snponly.efi", Bytes: 5, Size: 5})
	r.settle()
	r.clock = r.clock.Add(3 * time.Minute)
	if r.look(); len(r.stalledIssues(inventory.IssueStalled)) != 0 {
		t.Error("still open though it came further")
	}
	r.look()
	if open := r.stalledIssues(inventory.IssueStalled); len(open) != 1 || !strings.Contains(open[0].Cause, "after loader.sent") {
		t.Errorf("%+v", open)
	}
}

// Two ports of a host that stand still in turns are told of once a minute.
func TestAnIssueOfManyPortsIsToldOnceAMinute(t *testing.T) {
	r, m := standing(t)
	second := r.machine(2)
	r.write(func(tx inventory.Tx) error {
		h := m.host()
		h.NICs = append(h.NICs, inventory.NIC{MAC: second.mac()})
		return tx.UpdateHost(&h, r.clock)
	})
	seen := func() int { return r.stalledIssues(inventory.IssueStalled)[0].SeenN }
	for i, step := range []struct {
		after time.Duration
		want  int
	}{{0, 1}, {time.Minute + time.Second, 2}, {time.Second, 2}, {30 * time.Second, 2}, {30 * time.Second, 3}} {
		if i == 0 { // both ask from now on, the second a little later
			m.vain(lease.NoSubnet)
			r.clock = r.clock.Add(5 * time.Second)
			second.vain(lease.NoSubnet)
			r.settle()
			r.clock = r.clock.Add(-5 * time.Second)
		}
		r.clock = r.clock.Add(step.after)
		if r.look(); seen() != step.want {
			t.Fatalf("look %d: told %d times, want %d", i, seen(), step.want)
		}
	}
}

func TestAHostThatIsDeletedDoesNotStandStill(t *testing.T) {
	r := newRack(t)
	r.image("live", false, "mac", 0)
	m := r.known(1)
	m.dhcp(pxe.StageFirmware)
	r.settle()
	id := m.host().ID
	r.write(func(tx inventory.Tx) error { return tx.DeleteHost(id) })
	r.clock = r.clock.Add(2 * time.Minute)
	if r.look(); len(r.stalledIssues(inventory.IssueStalled)) != 0 {
		t.Error("an issue is open of a host that is gone")
	}
}

// An engine takes over what the one before it left open, and nothing else.
func TestWhatARestartTakesOver(t *testing.T) {
	r, m := standing(t)
	opened := r.stalledIssues(inventory.IssueStalled)[0].OpenedAt
	r.write(func(tx inventory.Tx) error {
		for _, i := range []inventory.Issue{
			{Key: "other", Type: inventory.IssueWrongPort, Severity: inventory.SeverityWarning, Cause: "it has no boot", Hint: "none"},
			{Key: inventory.IssueStalled + "/gone", Type: inventory.IssueStalled, Severity: inventory.SeverityWarning, Cause: "its host is gone", Hint: "none"},
		} {
			if _, err := tx.OpenIssue(&i, r.clock); err != nil {
				return err
			}
		}
		return nil
	})
	r.clock = r.clock.Add(20 * time.Hour)
	r.restart()
	r.look()
	r.look()
	open := r.stalledIssues(inventory.IssueStalled)
	if len(open) != 1 || open[0].HostIDs[0] != m.host().ID || open[0].SeenN != 1 {
		t.Errorf("after the restart: %+v", open)
	}
	if was := r.engine.Stalled()[m.host().ID]; was.Told != was.Boot.ID || was.ToldStep != inventory.EventDHCPAck { // it is not told anew
		t.Errorf("taken over: %+v", was)
	}
	if n := len(r.stalledIssues(inventory.IssueWrongPort)); n != 1 {
		t.Error("an issue of another kind is closed by the restart")
	}
	r.clock = opened.Add(stalledFor)
	if r.look(); len(r.stalledIssues(inventory.IssueStalled)) != 1 {
		t.Error("closed within a day")
	}
	r.clock = opened.Add(stalledFor + time.Second)
	if r.look(); len(r.stalledIssues(inventory.IssueStalled)) != 0 {
		t.Error("the restart made the day longer")
	}
}
