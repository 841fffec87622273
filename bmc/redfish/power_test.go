package redfish

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stmcginnis/gofish/schemas"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/bmc/redfish/redfishtest"
	"slipway.dev/slipway/inventory"
)

func TestResetTypesAreChosenOutOfWhatIsAllowed(t *testing.T) {
	all := []string{"On", "ForceOff", "GracefulShutdown", "GracefulRestart", "ForceRestart", "Nmi", "ForceOn", "PushPowerButton", "PowerCycle"}
	for _, tc := range []struct {
		name    string
		action  bmc.Action
		state   string
		allowed []string
		want    schemas.ResetType
	}{
		{"on is On", bmc.On, "Off", all, "On"},
		{"on is ForceOn where there is no On", bmc.On, "Off", []string{"ForceOn", "PushPowerButton"}, "ForceOn"},
		{"on presses the button of a machine that is off when nothing else is left", bmc.On, "Off", []string{"PushPowerButton"}, "PushPowerButton"},
		{"on never presses the button of a machine in an unknown state", bmc.On, "PoweringOff", []string{"PushPowerButton"}, ""},
		{"off is ForceOff", bmc.Off, "On", all, "ForceOff"},
		{"off is never the button", bmc.Off, "On", []string{"PushPowerButton", "GracefulShutdown"}, ""},
		{"shutdown is graceful", bmc.Shutdown, "On", all, "GracefulShutdown"},
		{"shutdown presses the button of iLO 4", bmc.Shutdown, "On", []string{"On", "ForceOff", "PushPowerButton"}, "PushPowerButton"},
		{"shutdown never presses the button of a machine that may be off", bmc.Shutdown, "", []string{"PushPowerButton"}, ""},
		{"cycle takes the power away", bmc.Cycle, "On", all, "PowerCycle"},
		{"cycle of a machine that is off is on", bmc.Cycle, "Off", all, "On"},
		{"cycle restarts where the power cannot be taken away", bmc.Cycle, "On", []string{"On", "ForceRestart"}, "ForceRestart"},
		{"reset is at once", bmc.Reset, "On", all, "ForceRestart"},
		{"reset is graceful where IBM removed the other", bmc.Reset, "On", []string{"On", "ForceOff", "GracefulRestart"}, "GracefulRestart"},
		{"a controller that does not say gets the best order", bmc.Off, "On", nil, "ForceOff"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := chooseReset(tc.action, tc.state, tc.allowed); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// Each fault meets Converge: the power is as wanted in the end, or there is a reason that a person can act on.
func TestPowerConvergesOrStopsWithTheReason(t *testing.T) {
	const reset, system = "ComputerSystem.Reset", "/Systems/"
	type fault = redfishtest.Fault
	for _, tc := range []struct {
		name   string
		faults func(s *redfishtest.Server) []fault
		m      *redfishtest.Memory
		is     bool           // on at first
		a      bmc.Action     // On when empty
		kind   inventory.Kind // "" for success
		says   string         // part of message and hint
		orders []redfishtest.Order
	}{
		{name: "a good controller", orders: []redfishtest.Order{"on"}},
		{name: "a machine that is on already gets no order", is: true},
		{name: "a machine that takes its time", m: &redfishtest.Memory{Lag: 8}, orders: []redfishtest.Order{"on"}},
		{name: "an order that is taken and forgotten is given again", m: &redfishtest.Memory{Ignores: 1}, orders: []redfishtest.Order{"on", "on"}},
		{name: "orders that are always forgotten end with the state", m: &redfishtest.Memory{Ignores: -1}, kind: inventory.Unavailable, says: "still off and not on", orders: []redfishtest.Order{"on", "on", "on"}},
		{name: "an operating system that ignores a shutdown", is: true, a: bmc.Shutdown, m: &redfishtest.Memory{Deaf: true}, kind: inventory.Unavailable, says: "still on and not off", orders: []redfishtest.Order{"shutdown", "shutdown", "shutdown"}},
		{name: "a state that flaps is on when it is seen on", m: &redfishtest.Memory{Flaps: true, Ignores: -1}},
		{name: "busy with Retry-After, then well", faults: func(*redfishtest.Server) []fault {
			return []fault{{Path: reset, Times: 2, Do: redfishtest.Status(503, "Retry-After", "7")}}
		}, orders: []redfishtest.Order{"on"}},
		{name: "busy for ever", faults: func(*redfishtest.Server) []fault {
			return []fault{{Path: system, Do: redfishtest.Status(503, "Retry-After", "120")}}
		}, kind: inventory.Unavailable, says: "left alone for 2m"},
		{name: "asked too often", faults: func(*redfishtest.Server) []fault {
			return []fault{{Path: system, Do: redfishtest.Status(429)}}
		}, kind: inventory.Unavailable, says: "busy"},
		{name: "an internal error, then well", faults: func(*redfishtest.Server) []fault {
			return []fault{{Path: reset, Times: 1, Do: redfishtest.Status(500)}}
		}, orders: []redfishtest.Order{"on"}},
		{name: "a conflict, then well", faults: func(*redfishtest.Server) []fault {
			return []fault{{Path: reset, Times: 1, Do: redfishtest.Status(409)}}
		}, orders: []redfishtest.Order{"on"}},
		{name: "connections that break, then well", faults: func(*redfishtest.Server) []fault {
			return []fault{{Path: reset, Times: 2, Do: redfishtest.Drop()}}
		}, orders: []redfishtest.Order{"on"}},
		{name: "connections that always break", faults: func(*redfishtest.Server) []fault {
			return []fault{{Do: redfishtest.Drop()}}
		}, kind: inventory.Unavailable, says: "does not answer"},
		{name: "a slow controller", faults: func(*redfishtest.Server) []fault {
			return []fault{{Path: system, Do: redfishtest.Slow(10 * time.Millisecond)}}
		}, orders: []redfishtest.Order{"on"}},
		{name: "a controller that hangs for a while", faults: func(*redfishtest.Server) []fault {
			return []fault{{Path: reset, Times: 1, Do: redfishtest.Hang()}}
		}, orders: []redfishtest.Order{"on"}},
		{name: "a controller that hangs", faults: func(*redfishtest.Server) []fault {
			return []fault{{Path: system, Do: redfishtest.Hang()}}
		}, kind: inventory.Unavailable, says: "does not answer"},
		{name: "answers that are cut off, then well", faults: func(*redfishtest.Server) []fault {
			return []fault{{Method: "GET", Path: system, Times: 2, Do: redfishtest.Body(`{"PowerState":"On`)}}
		}, orders: []redfishtest.Order{"on"}},
		{name: "answers that are no JSON", faults: func(*redfishtest.Server) []fault {
			return []fault{{Method: "GET", Path: system, Do: redfishtest.Body("<html>login</html>")}}
		}, kind: inventory.Unavailable, says: "no Redfish document"},
		{name: "answers without end", faults: func(*redfishtest.Server) []fault {
			return []fault{{Method: "GET", Path: system, Do: redfishtest.Huge(64 << 20)}}
		}, kind: inventory.Unavailable, says: "more than 4 MiB"},
		{name: "a power state of the wrong type is unknown, and the machine is ordered on", faults: func(*redfishtest.Server) []fault {
			return []fault{{Method: "GET", Path: system, Times: 2, Do: redfishtest.Body(`{"PowerState":7}`)}}
		}, orders: []redfishtest.Order{"on"}},
		{name: "a session that ends between look and order", faults: func(s *redfishtest.Server) []fault {
			return []fault{{Method: "POST", Path: reset, Times: 1, Do: s.Expire()}}
		}, orders: []redfishtest.Order{"on"}},
		{name: "sessions that always end", faults: func(s *redfishtest.Server) []fault {
			return []fault{{Path: system, Do: s.Expire()}}
		}, kind: inventory.Unauthorized, says: "refuses user"},
		{name: "a user who may not", faults: func(*redfishtest.Server) []fault {
			return []fault{{Path: reset, Do: redfishtest.Message(403, "Base.1.8.InsufficientPrivilege", "There are insufficient privileges.")}}
		}, kind: inventory.Unauthorized, says: "administrator"},
		{name: "a licence that is missing", faults: func(*redfishtest.Server) []fault {
			return []fault{{Path: reset, Do: redfishtest.Message(403, "iLO.2.14.LicenseKeyRequired", "")}}
		}, kind: inventory.Invalid, says: "licence"},
		{name: "a password that has to be changed", faults: func(*redfishtest.Server) []fault {
			return []fault{{Path: system, Do: redfishtest.Message(403, "Base.1.8.PasswordChangeRequired", "")}}
		}, kind: inventory.Unauthorized, says: "changed first"},
		{name: "a redirect on the same host", faults: func(*redfishtest.Server) []fault {
			return []fault{{Method: "POST", Path: reset, Times: 1, Do: redfishtest.Redirect(307, "/redfish/v1/Systems/437XR1138R2/Actions/ComputerSystem.Reset/")}}
		}, orders: []redfishtest.Order{"on"}},
		{name: "a redirect that makes a question of an order", faults: func(*redfishtest.Server) []fault {
			return []fault{{Method: "POST", Path: reset, Do: redfishtest.Redirect(302, "/redfish/v1/Systems/437XR1138R2")}}
		}, kind: inventory.Invalid, says: "redirects an order"},
		{name: "a redirect to another host", faults: func(*redfishtest.Server) []fault {
			return []fault{{Path: system, Do: redfishtest.Redirect(307, "https://192.0.2.66/redfish/v1/Systems/1")}}
		}, kind: inventory.Invalid, says: "192.0.2.66"},
		{name: "a redirect in circles", faults: func(*redfishtest.Server) []fault {
			return []fault{{Method: "GET", Path: system, Do: redfishtest.Redirect(307, "/redfish/v1/Systems/437XR1138R2/")}}
		}, kind: inventory.Invalid, says: "circles"},
		{name: "a system that is gone", faults: func(*redfishtest.Server) []fault {
			return []fault{{Path: system, Do: redfishtest.Status(404)}}
		}, kind: inventory.NotFound, says: "has no /redfish"},
		{name: "an order that pretends", faults: func(*redfishtest.Server) []fault {
			return []fault{{Path: reset, Do: redfishtest.Pretend()}}
		}, kind: inventory.Unavailable, says: "took the order"},
		{name: "an order that pretends once", faults: func(*redfishtest.Server) []fault {
			return []fault{{Path: reset, Times: 1, Do: redfishtest.Pretend()}}
		}, orders: []redfishtest.Order{"on"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			m := tc.m
			if m == nil {
				m = &redfishtest.Memory{}
			}
			m.Powered = tc.is
			s, d := drives(t, redfishtest.Standard, m)
			switch tc.name {
			case "a controller that hangs":
				d.timeout = 150 * time.Millisecond // for each of its answers
			case "a controller that hangs for a while":
				d.timeout = 2 * time.Second // for one
			}
			_, err := d.Power(t.Context()) // logged in before anything goes wrong
			ok(t, err)
			if tc.faults != nil {
				s.Script(tc.faults(s)...)
			}
			a, want := bmc.On, inventory.PowerOn
			if tc.a != "" {
				a, want = tc.a, inventory.PowerOff
			}
			err = bmc.Converge(t.Context(), d, a, want, &clock{time.Unix(0, 0)}, bmc.DefaultPace(nil))
			if tc.kind == "" {
				ok(t, err)
			} else {
				is(t, err, tc.kind)
				var e *inventory.Error
				if errors.As(err, &e); !strings.Contains(e.Msg+" "+e.Hint, tc.says) {
					t.Errorf("the reason is %q (%s); want it to say %q", e.Msg, e.Hint, tc.says)
				}
			}
			if diff := cmp.Diff(tc.orders, m.Orders()); diff != "" {
				t.Errorf("orders (-want +got):\n%s", diff)
			}
		})
	}
}

func TestACycleWithoutPowerCycleTakesThePowerAway(t *testing.T) {
	dialect := redfishtest.Supermicro // does not offer PowerCycle
	for name, tc := range map[string]struct {
		m    *redfishtest.Memory
		want []redfishtest.Order
		kind inventory.Kind
	}{
		"at once":                      {&redfishtest.Memory{Powered: true}, []redfishtest.Order{"off", "on"}, ""},
		"after a while":                {&redfishtest.Memory{Powered: true, Lag: 3}, []redfishtest.Order{"off", "on"}, ""},
		"not while it does not go off": {&redfishtest.Memory{Powered: true, Ignores: -1}, []redfishtest.Order{"off"}, inventory.Unavailable},
		"off already":                  {&redfishtest.Memory{}, []redfishtest.Order{"on"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, d := drives(t, dialect, tc.m)
			err := d.SetPower(t.Context(), bmc.Cycle)
			if tc.kind == "" {
				ok(t, err)
			} else {
				is(t, err, tc.kind)
			}
			if diff := cmp.Diff(tc.want, tc.m.Orders()); diff != "" {
				t.Errorf("orders (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAStateBetweenOnAndOffIsUnknown(t *testing.T) {
	m := &redfishtest.Memory{Lag: 2}
	_, d := drives(t, redfishtest.OpenBMC, m)
	ok(t, d.SetPower(t.Context(), bmc.On))
	got, err := d.Power(t.Context())
	ok(t, err)
	if got != inventory.PowerUnknown {
		t.Errorf("the power is %q while the machine starts, want unknown", got)
	}
	ok(t, d.SetPower(t.Context(), bmc.On)) // on its way: no second order
	if n := len(m.Orders()); n != 1 {
		t.Errorf("%d orders, want 1", n)
	}
}

func TestARefusalBecauseItIsSoAlreadyIsASuccess(t *testing.T) {
	m := &redfishtest.Memory{}
	s, d := drives(t, redfishtest.IDRAC, m)
	_, err := d.Power(t.Context())
	ok(t, err)
	// Someone else switches it on between look and order.
	s.Script(redfishtest.Fault{Method: "GET", Path: "/Systems/", Times: 1, Do: redfishtest.Body(`{"PowerState":"Off"}`)})
	ok(t, m.Do(redfishtest.On))
	ok(t, d.SetPower(t.Context(), bmc.On))
}
