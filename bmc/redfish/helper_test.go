package redfish

import (
	"context"
	"testing"
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/bmc/redfish/redfishtest"
	"slipway.dev/slipway/inventory"
)

// canary is the password of all tests: no error may tell it.
const canary = "canary-Pa55word"

// start serves a controller and returns it with a target that reaches it.
func start(t testing.TB, o redfishtest.Options) (*redfishtest.Server, bmc.Target) {
	t.Helper()
	o.User, o.Password = "slipway", canary
	s := redfishtest.New(o)
	return s, target(s.Start(t))
}

func target(address string) bmc.Target {
	return bmc.Target{BMC: inventory.BMC{Driver: inventory.Redfish, Address: address, Username: "slipway", InsecureSkipVerify: true}, Password: canary}
}

// drive opens a driver that never waits between looks.
func drive(t testing.TB, to bmc.Target) *driver {
	t.Helper()
	d, err := open(to)
	if err != nil {
		t.Fatal(err)
	}
	d.sleep = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// drives is start and drive with one machine in memory.
func drives(t testing.TB, dialect redfishtest.Dialect, m *redfishtest.Memory) (*redfishtest.Server, *driver) {
	t.Helper()
	s, to := start(t, redfishtest.Options{Dialect: dialect, Systems: []redfishtest.System{{Machine: m}}})
	return s, drive(t, to)
}

// clock is time that passes by sleeping only.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

func (c *clock) Sleep(ctx context.Context, d time.Duration) error {
	c.now = c.now.Add(d)
	return ctx.Err()
}

// is demands a kind of error.
func is(t *testing.T, err error, kind inventory.Kind) {
	t.Helper()
	if err == nil || bmc.KindOf(err) != kind {
		t.Fatalf("the error is %v (%s), want kind %s", err, bmc.KindOf(err), kind)
	}
}

// ok demands success.
func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
