package provision

import (
	"context"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/session"
	"slipway.dev/slipway/pxe"
)

// stalledIssues returns the open issues of a type.
func (r *rack) stalledIssues(kind string) (found []inventory.Issue) {
	r.must(r.store.Read(context.Background(), func(tx inventory.Tx) error {
		all, err := tx.ListIssues(false, "")
		for _, i := range all {
			if i.Type == kind {
				found = append(found, i)
			}
		}
		return err
	}))
	return found
}

func TestABootThatStandsStillOpensAnIssueUntilItGoesOn(t *testing.T) {
	r := newRack(t)
	m := r.machine(1)
	m.boot()
	m.accept()
	r.clock = r.clock.Add(time.Hour)
	m.dhcp(pxe.StageFirmware) // a new boot: it has its address, and fetches no loader
	look := func() { r.must(watch(r.engine)) }
	look()
	if open := r.stalledIssues(inventory.IssueStalled); len(open) != 0 {
		t.Fatalf("before its deadline: %+v", open)
	}
	var next *Expected
	r.must(r.store.Read(context.Background(), func(tx inventory.Tx) (err error) {
		next, err = r.engine.Expects(tx, m.host())
		return err
	}))
	if next == nil || next.IsLate || next.By.IsZero() || !strings.Contains(next.What, "loader") {
		t.Errorf("expected next: %+v", next)
	}
	r.clock = r.clock.Add(61 * time.Second)
	look()
	look()
	open := r.stalledIssues(inventory.IssueStalled)
	if len(open) != 1 || open[0].SeenN != 1 || !strings.Contains(open[0].Cause, "loader") || open[0].Hint == "" {
		t.Fatalf("after its deadline: %+v", open)
	}
	m.dhcp(pxe.StageIPXE) // it goes on
	look()
	if open := r.stalledIssues(inventory.IssueStalled); len(open) != 0 {
		t.Errorf("after it went on: %+v", open)
	}
}

func TestAMachineThatWasSentToItsDiskOwesNothing(t *testing.T) {
	for _, boot := range []pxe.Boot{pxe.BootDisk, pxe.BootIgnore, pxe.BootPark} {
		s := inventory.BootSession{HostID: "h", Boot: string(boot), Step: inventory.EventDHCPDiscover}
		if _, waits := waitsFor(&s); waits {
			t.Errorf("something is expected after %s", boot)
		}
	}
	ended := inventory.BootSession{HostID: "h", Step: inventory.EventDHCPAck, EndedAt: time.Unix(1, 0)}
	if _, waits := waitsFor(&ended); waits {
		t.Error("something is expected of a boot that is over")
	}
	if _, waits := waitsFor(&inventory.BootSession{HostID: "h", Step: inventory.EventDHCPAck}); !waits {
		t.Error("nothing is expected after an address was given")
	}
}

func TestDeadlinesAreThoseOfTheConfiguration(t *testing.T) {
	e := &Engine{cfg: Config{Now: time.Now, Deadlines: map[string]time.Duration{"netboot": time.Second, inventory.EventDHCPAck: 2 * time.Second, "wipe": time.Minute}}}
	if l := e.limitOf(inventory.StepNetboot); l.within != time.Second || l.expect == "" {
		t.Errorf("netboot: %+v", l)
	}
	if l := e.limitOf(inventory.StepWipe); l.begin() != time.Minute {
		t.Errorf("the first sign of a wipe may come %s after it is due", l.begin())
	}
	if l := e.limitOf(inventory.StepBudget); l.within != 0 {
		t.Errorf("what waits for people has a deadline: %+v", l)
	}
	s := inventory.BootSession{HostID: "h", Step: inventory.EventDHCPAck}
	if x, by, _ := e.next(&s, session.Step{}); x.within != 2*time.Second || !by.Equal(s.LastAt.Add(2*time.Second)) {
		t.Errorf("sign after the address: %+v by %s", x, by)
	}
	for _, name := range StepNames() {
		if name == "" {
			t.Error("a step without a name")
		}
	}
}

// While a file is being sent nothing is late, and when it has been sent for too long the deadline counts from before.
func TestNothingIsLateWhileAFileIsSent(t *testing.T) {
	clock := time.Date(2026, 11, 26, 8, 0, 0, 0, time.UTC)
	now := func() time.Time { return clock }
	e := &Engine{cfg: Config{Now: now}}
	r := session.New(now, func(s *inventory.BootSession, at session.Step) (time.Time, bool) {
		_, by, waits := e.next(s, at)
		return by, waits
	})
	e.sessions = r
	s, _, _ := r.Heard(pxe.Client{MAC: "52:54:00:00:00:01", Stage: pxe.StageFirmware}, inventory.EventDHCPDiscover)
	r.SetHost("h1", s.MAC)
	s, _, _ = r.Heard(pxe.Client{MAC: s.MAC}, inventory.EventLoaderStarted)
	r.Loading(&s, "ipxe.efi")
	late := func() bool {
		l, _, _ := r.Take()
		return len(l) == 1
	}
	for _, passes := range []time.Duration{session.LoadingFor / 2, session.LoadingFor/2 - time.Second} {
		if clock = clock.Add(passes); late() {
			t.Fatalf("late at %s while its loader is sent", clock)
		}
	}
	if clock = clock.Add(time.Second + 1); !late() {
		t.Error("not late although nobody sends it anything")
	}
	r.Loading(&s, "ipxe.efi")
	r.Loaded(&s, "ipxe.efi")
	if clock = clock.Add(1); !late() {
		t.Error("not late although the file ended")
	}
}
