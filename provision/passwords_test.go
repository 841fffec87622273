package provision

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/power"
)

// ward is one controller of a test that knows one password, and does with a new one what its mode says.
type ward struct {
	mu       sync.Mutex
	mode     string // "", "says yes", "later", "says no and does it", "locks", "silent"
	password string
	pending  string
	logins   []string // passwords in the order in which they were tried
	refused  int
}

type wardDriver struct {
	w        *ward
	password string
}

func (w *ward) open(t bmc.Target) (bmc.Driver, error) {
	return &wardDriver{w: w, password: t.Password}, nil
}

func (d *wardDriver) enter() error {
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	d.w.logins = append(d.w.logins, d.password)
	if d.w.mode == "silent" {
		return inventory.Errorf(inventory.Unavailable, "the controller does not answer")
	}
	if d.password != d.w.password {
		d.w.refused++
		return inventory.Errorf(inventory.Unauthorized, "the controller refuses the password")
	}
	return nil
}

func (d *wardDriver) Power(context.Context) (inventory.PowerState, error) {
	return inventory.PowerOn, d.enter()
}
func (d *wardDriver) SetPower(context.Context, bmc.Action) error       { return d.enter() }
func (d *wardDriver) Close() error                                     { return nil }
func (d *wardDriver) Users(context.Context) ([]bmc.User, error)        { return nil, d.enter() }
func (d *wardDriver) CheckCredentials(context.Context) error           { return d.enter() }
func (d *wardDriver) CreateUser(context.Context, string, string) error { return nil }
func (d *wardDriver) DeleteUser(context.Context, string) error         { return nil }

func (d *wardDriver) SetPassword(_ context.Context, _, password string) error {
	if err := d.enter(); err != nil {
		return err
	}
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	switch d.w.mode {
	case "says yes":
	case "later":
		d.w.pending = password
	case "locks":
		d.w.password = "nobody knows"
	case "says no and does it":
		d.w.password = password
		return inventory.Errorf(inventory.Unavailable, "the controller did not answer in time")
	case "does it and falls silent":
		d.w.password, d.w.mode = password, "silent"
	default:
		d.w.password = password
	}
	return nil
}

// newWard is a life whose one host is powered by that controller.
func newWard(t *testing.T, mode string) (*life, *ward, *server) {
	l := newLife(t)
	w := &ward{mode: mode, password: "first"}
	l.open = w.open
	l.restart()
	s := l.add("a", false)
	_, err := l.engine.SaveBMC(context.Background(), inventory.BMC{HostID: s.host().ID, Driver: inventory.FakeBMC, System: "a", Username: "slipway"}, "first", ledger.By("a test"))
	l.must(err)
	return l, w, s
}

// bmcOf reads what is stored of the host's controller, with its passwords in clear.
func (l *life) bmcOf(s *server) (b inventory.BMC, inUse string, others []string) {
	l.t.Helper()
	l.must(l.store.Read(context.Background(), func(tx inventory.Tx) (err error) {
		b, err = tx.FindBMC(s.host().ID)
		return err
	}))
	open := func(sealed []byte) string {
		p, err := plain{}.Open(power.SecretName(b.HostID), sealed)
		l.must(err)
		return string(p)
	}
	for _, o := range b.Others {
		others = append(others, open(o.Sealed))
	}
	return b, open(b.Sealed), others
}

// rotateOnce runs a rotation to its end, and returns the operation.
func (l *life) rotateOnce(s *server) (op inventory.Operation) {
	l.t.Helper()
	op, err := l.engine.RotateBMC(context.Background(), s.host().ID, ledger.By("a test"))
	l.must(err)
	l.until("the rotation has ended", func() bool {
		l.must(l.store.Read(context.Background(), func(tx inventory.Tx) (err error) {
			op, err = tx.FindOperation(op.ID)
			return err
		}))
		return !op.IsOpen()
	})
	return op
}

func TestAPasswordIsForgottenOnlyWhenItsSuccessorLetsUsIn(t *testing.T) {
	for _, c := range []struct {
		mode  string
		state inventory.OperationState
		says  string
	}{
		{"", inventory.OpDone, ""},
		{"says no and does it", inventory.OpDone, ""},
		{"says yes", inventory.OpFailed, "with the old one only"},
		{"later", inventory.OpFailed, "with the old one only"},
		{"locks", inventory.OpFailed, "neither"},
		{"does it and falls silent", inventory.OpFailed, "does not answer"},
	} {
		t.Run(c.mode, func(t *testing.T) {
			l, w, s := newWard(t, c.mode)
			op := l.rotateOnce(s)
			b, inUse, others := l.bmcOf(s)
			if op.State != c.state || !strings.Contains(op.Reason, c.says) {
				t.Fatalf("the operation is %s: %s", op.State, op.Reason)
			}
			if c.state == inventory.OpDone {
				if inUse != w.password || inUse == "first" || power.IsUnsettled(&b) {
					t.Errorf("in use %q, others %v, the controller knows %q", inUse, others, w.password)
				}
				return
			}
			if inUse != "first" || len(others) != 1 || !b.Others[0].IsNext {
				t.Fatalf("in use %q, others %+v", inUse, b.Others)
			}
			if w.refused > 4 {
				t.Errorf("%d wrong logins", w.refused)
			}
		})
	}
}

func TestAPasswordThatComesIntoForceLateIsFound(t *testing.T) {
	for _, mode := range []string{"later", "does it and falls silent"} {
		t.Run(mode, func(t *testing.T) {
			l, w, s := newWard(t, mode)
			l.rotateOnce(s)
			w.mu.Lock()
			if w.pending != "" {
				w.password = w.pending
			}
			w.mode = ""
			w.mu.Unlock()
			h := s.host()
			l.must(l.engine.WithBMC(context.Background(), h.ID, func(d bmc.Driver, _ inventory.BMC) error {
				_, err := d.Power(context.Background())
				return err
			}))
			b, inUse, others := l.bmcOf(s)
			if inUse != w.password || power.IsUnsettled(&b) || !slices.Contains(others, "first") {
				t.Errorf("in use %q, others %v, the controller knows %q", inUse, others, w.password)
			}
		})
	}
}

func TestAPasswordThatAPersonGivesWronglyDoesNotLoseTheRightOne(t *testing.T) {
	l, w, s := newWard(t, "")
	b, _, _ := l.bmcOf(s)
	_, err := l.engine.SaveBMC(context.Background(), b, "mistyped", ledger.By("a test"))
	l.must(err)
	l.must(l.engine.WithBMC(context.Background(), s.host().ID, func(d bmc.Driver, _ inventory.BMC) error {
		_, err := d.Power(context.Background())
		return err
	}))
	b, inUse, _ := l.bmcOf(s)
	if inUse != "first" || power.IsUnsettled(&b) {
		t.Errorf("in use %q, others %+v", inUse, b.Others)
	}
	before := len(w.logins) // what is settled is not asked about again
	l.must(l.engine.WithBMC(context.Background(), s.host().ID, func(bmc.Driver, inventory.BMC) error { return nil }))
	if len(w.logins) != before {
		t.Errorf("logins %v", w.logins[before:])
	}
}

func TestARefusedLoginIsNotRepeatedUntilAPersonAsks(t *testing.T) {
	l, w, s := newWard(t, "")
	w.mu.Lock()
	w.password, w.logins, w.refused = "changed at the controller", nil, 0
	w.mu.Unlock()
	polls := func(d time.Duration) {
		t.Helper()
		for end := l.clock.Add(d); l.clock.Before(end); l.clock = l.clock.Add(time.Minute) {
			slots := make(chan struct{}, 1)
			var workers sync.WaitGroup
			l.must(l.engine.PollOnce(context.Background(), slots, &workers))
			workers.Wait()
		}
	}
	polls(10 * time.Minute)
	if w.refused != 1 {
		t.Fatalf("%d wrong logins in ten minutes", w.refused)
	}
	polls(48 * time.Hour)
	if w.refused != 3 {
		t.Fatalf("%d wrong logins in two days", w.refused)
	}
	if i := l.issueOf(inventory.IssueBMC); i == nil || !strings.Contains(i.Hint, "not asked again before the credentials change") {
		t.Errorf("the issue is %+v", i)
	}
	l.engine.Logins.Forget(s.host().ID) // a person asks
	polls(10 * time.Minute)
	if w.refused != 4 {
		t.Fatalf("%d wrong logins after somebody asked", w.refused)
	}
	b, _, _ := l.bmcOf(s)
	_, err := l.engine.SaveBMC(context.Background(), b, "changed at the controller", ledger.By("a test"))
	l.must(err)
	polls(10 * time.Minute)
	if b, _, _ := l.bmcOf(s); !b.IsReachable || w.refused != 4 {
		t.Errorf("reachable %v, %d wrong logins", b.IsReachable, w.refused)
	}
}
