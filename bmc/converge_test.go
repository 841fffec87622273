package bmc_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
)

// clock is the time of a synctest bubble.
type clock struct{}

func (clock) Now() time.Time { return time.Now() }

func (clock) Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// machine is a controller that answers as a test says. After is how long an order takes; a machine that ignores orders
// counts down.
type machine struct {
	is      inventory.PowerState
	after   time.Duration
	ignores int              // this many orders first
	reads   []inventory.Kind // errors of the next reads, "" for none
	takes   []inventory.Kind // errors of the next orders
	orders  []time.Duration  // when they came, from the beginning
	asked   []bmc.Action     // what they were
	looks   int              // reads in all
	begun   time.Time        // of the test
	change  time.Time        // when the newest order takes effect
	next    inventory.PowerState
	stuck   bool // in calls, until ctx ends
}

func (m *machine) Power(ctx context.Context) (inventory.PowerState, error) {
	m.looks++
	if m.stuck {
		<-ctx.Done()
		return inventory.PowerUnknown, inventory.Errorf(inventory.Unavailable, "no answer: %v", ctx.Err())
	}
	if err := shift(&m.reads); err != nil {
		return inventory.PowerUnknown, err
	}
	if m.next != "" && !time.Now().Before(m.change) {
		m.is, m.next = m.next, ""
	}
	return m.is, nil
}

func (m *machine) SetPower(_ context.Context, a bmc.Action) error {
	m.orders = append(m.orders, time.Since(m.begun))
	m.asked = append(m.asked, a)
	if err := shift(&m.takes); err != nil {
		return err
	}
	if m.ignores > 0 {
		m.ignores--
		return nil
	}
	m.change, m.next = time.Now().Add(m.after), inventory.PowerOn
	if a == bmc.Off || a == bmc.Shutdown {
		m.next = inventory.PowerOff
	}
	return nil
}

func (m *machine) Close() error { return nil }

func shift(kinds *[]inventory.Kind) error {
	if len(*kinds) == 0 {
		return nil
	}
	k := (*kinds)[0]
	*kinds = (*kinds)[1:]
	if k == "" {
		return nil
	}
	return inventory.Errorf(k, "scripted")
}

func unavailable(n int) []inventory.Kind {
	all := make([]inventory.Kind, n)
	for i := range all {
		all[i] = inventory.Unavailable
	}
	return all
}

func TestConverge(t *testing.T) {
	const on, off = inventory.PowerOn, inventory.PowerOff
	for _, c := range []struct {
		name   string
		m      machine
		want   inventory.Kind // "" for success
		orders []time.Duration
		took   time.Duration
	}{
		{"a machine that is as wanted gets no order", machine{is: on}, "", nil, 0},
		{"a machine that obeys at once", machine{is: off}, "", []time.Duration{0}, 0},
		{"a machine that takes its time gets one order", machine{is: off, after: 30 * time.Second}, "", []time.Duration{0}, 36250 * time.Millisecond},
		{"an ignored order is given again", machine{is: off, ignores: 1}, "", []time.Duration{0, 69*time.Second + 250*time.Millisecond}, 69*time.Second + 250*time.Millisecond},
		{"a machine that ignores everything ends with the reason", machine{is: off, ignores: 9}, inventory.Unavailable, []time.Duration{0, 0, 0}, 0},
		{"a busy controller is asked again", machine{is: off, takes: unavailable(1)}, "", []time.Duration{0, 3 * time.Second}, 3 * time.Second},
		{"the wait doubles", machine{is: off, takes: unavailable(2)}, "", []time.Duration{0, 3 * time.Second, 9 * time.Second}, 9 * time.Second},
		{"three failures are enough", machine{is: off, takes: unavailable(3)}, inventory.Unavailable, []time.Duration{0, 3 * time.Second, 9 * time.Second}, 9 * time.Second},
		{"an unreadable state does not keep the order back", machine{is: off, reads: unavailable(1)}, "", []time.Duration{0}, 0},
		{"reads that fail for a while are survived", machine{is: off, reads: unavailable(5)}, "", []time.Duration{0}, 16250 * time.Millisecond},
		{"a wrong password ends it at the first read", machine{is: off, reads: []inventory.Kind{inventory.Unauthorized}}, inventory.Unauthorized, nil, 0},
		{"a wrong password ends it at the order", machine{is: off, takes: []inventory.Kind{inventory.Unauthorized}}, inventory.Unauthorized, []time.Duration{0}, 0},
		{"a wrong password ends it while it is confirmed", machine{is: off, reads: []inventory.Kind{"", inventory.Unauthorized}}, inventory.Unauthorized, []time.Duration{0}, 0},
		{"what can never be done ends it", machine{is: off, takes: []inventory.Kind{inventory.Invalid}}, inventory.Invalid, []time.Duration{0}, 0},
		{"a machine that is not there ends it", machine{is: off, reads: []inventory.Kind{inventory.NotFound}}, inventory.NotFound, nil, 0},
		{"a forbidden order ends it", machine{is: off, takes: []inventory.Kind{inventory.Forbidden}}, inventory.Forbidden, []time.Duration{0}, 0},
		{"a driver's own mistake is tried again", machine{is: off, takes: []inventory.Kind{inventory.Internal}}, "", []time.Duration{0, 3 * time.Second}, 3 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := c.m
				m.begun = time.Now()
				err := bmc.Converge(t.Context(), &m, bmc.On, on, clock{}, bmc.DefaultPace(nil))
				if got := kind(err); got != c.want {
					t.Fatalf("kind %q, want %q: %v", got, c.want, err)
				}
				if len(m.orders) != len(c.orders) {
					t.Fatalf("%d orders at %v; want %d", len(m.orders), m.orders, len(c.orders))
				}
				if c.m.ignores > 5 { // the times are those of the rows before
					if !strings.Contains(err.Error(), "still off and not on after 1m") {
						t.Errorf("the error does not say what is wrong: %v", err)
					}
					return
				}
				if diff := cmp.Diff(c.orders, m.orders); diff != "" {
					t.Error(diff)
				}
				if took := time.Since(m.begun); took != c.took {
					t.Errorf("it took %s; want %s", took, c.took)
				}
			})
		})
	}
}

func kind(err error) inventory.Kind {
	if err == nil {
		return ""
	}
	return bmc.KindOf(err)
}

func TestConvergeEndsWithItsContext(t *testing.T) {
	for _, c := range []struct {
		name string
		m    machine
	}{
		{"while it waits for the machine", machine{is: inventory.PowerOff, after: time.Hour}},
		{"while it waits to try again", machine{is: inventory.PowerOff, takes: unavailable(9)}},
		{"while a call hangs", machine{stuck: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
				defer cancel()
				begun := time.Now()
				err := bmc.Converge(ctx, &c.m, bmc.On, inventory.PowerOn, clock{}, bmc.DefaultPace(nil))
				if kind(err) != inventory.Unavailable {
					t.Errorf("kind %q: %v", kind(err), err)
				}
				if took := time.Since(begun); took != 7*time.Second {
					t.Errorf("it took %s; the context ended after 7s", took)
				}
			})
		})
	}
}

func TestLooksGetRarer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := machine{is: inventory.PowerOff, ignores: 1, begun: time.Now()}
		p := bmc.Pace{Every: time.Second, For: time.Hour}
		if err := bmc.Converge(t.Context(), &m, bmc.On, inventory.PowerOn, clock{}, p); kind(err) != inventory.Unavailable {
			t.Fatal(err)
		}
		// One look at first, then after 0, 1, 2.5, 4.75 and 8.125 seconds, and every 5 from then on.
		if m.looks < 720 || m.looks > 730 {
			t.Errorf("%d looks in an hour; want one in 5 seconds", m.looks)
		}
	})
}

func TestJitterIsAtMostAQuarter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := machine{is: inventory.PowerOff, takes: unavailable(2), begun: time.Now()}
		if err := bmc.Converge(t.Context(), &m, bmc.On, inventory.PowerOn, clock{}, bmc.DefaultPace(func() float64 { return 1 })); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]time.Duration{0, 3750 * time.Millisecond, 11250 * time.Millisecond}, m.orders); diff != "" {
			t.Error(diff)
		}
	})
}

func TestTheActionIsPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := machine{is: inventory.PowerOn, begun: time.Now()}
		if err := bmc.Converge(t.Context(), &m, bmc.Shutdown, inventory.PowerOff, clock{}, bmc.DefaultPace(nil)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]bmc.Action{bmc.Shutdown}, m.asked); diff != "" {
			t.Error(diff)
		}
	})
}

func TestKindOf(t *testing.T) {
	if got := bmc.KindOf(errors.New("plain")); got != inventory.Internal {
		t.Errorf("a plain error is %s", got)
	}
	wrapped := errors.Join(errors.New("outer"), inventory.Errorf(inventory.Unauthorized, "inner"))
	if got := bmc.KindOf(wrapped); got != inventory.Unauthorized {
		t.Errorf("a wrapped error is %s", got)
	}
}

type booter struct{ machine }

func (*booter) SetBoot(context.Context, bmc.Boot) error   { return nil }
func (*booter) Boot(context.Context) (bmc.Boot, error)    { return bmc.Boot{}, nil }
func (*booter) Locate(context.Context, bool) error        { return nil }
func (*booter) InsertMedia(context.Context, string) error { return nil }
func (*booter) EjectMedia(context.Context) error          { return nil }
func (*booter) Media(context.Context) (string, error)     { return "", nil }

func TestCapabilitiesAreWhatADriverCanDo(t *testing.T) {
	if diff := cmp.Diff([]string{"power"}, bmc.Capabilities(&machine{})); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"power", "boot", "locate", "media"}, bmc.Capabilities(&booter{})); diff != "" {
		t.Error(diff)
	}
}
