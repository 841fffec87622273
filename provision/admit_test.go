package provision

import (
	"context"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/delivery"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/pxe"
)

// places are all the doors under the URL of a boot, used by somebody at an address.
func places(e *Engine, s inventory.SessionID, mac inventory.MAC, from netip.Addr) map[string]func() error {
	ctx := context.Background()
	return map[string]func() error{
		"ask": func() error { _, err := e.Ask(ctx, s, from, base); return err },
		"script": func() error {
			_, err := e.Script(ctx, s, pxe.Client{Stage: pxe.StageIPXE, MAC: mac, Address: from}, base)
			return err
		},
		"script without a MAC": func() error {
			_, err := e.Script(ctx, s, pxe.Client{Stage: pxe.StageIPXE, Address: from}, base)
			return err
		},
		"report": func() error { return e.Report(ctx, s, from, "", pxe.Report{Step: pxe.ReportFailed}) },
		"report with a wrong key": func() error {
			return e.Report(ctx, s, from, strings.Repeat("0", 32), pxe.Report{Step: pxe.ReportFailed})
		},
		"artefact": func() error {
			_, err := e.Artefact(ctx, s, from, inventory.Digest("sha256:"+strings.Repeat("04", 32)), "linux")
			return err
		},
		"RAM disks": func() error { _, _, err := e.Initrds(ctx, s, from); return err },
		"document": func() error {
			_, err := e.Document(ctx, pxe.ConfigRequest{Session: s, Source: from, Base: base, Name: "user-data"})
			return err
		},
		"list of documents": func() error {
			_, err := e.Document(ctx, pxe.ConfigRequest{Session: s, Source: from, Base: base})
			return err
		},
		"agent's task":   func() error { _, err := e.AgentTask(ctx, s, from, e.AgentKey(s), wire.Version, base); return err },
		"agent's report": func() error { return e.AgentReport(ctx, s, from, e.AgentKey(s), wire.Report{State: wire.Hello}) },
	}
}

func TestAThiefWhoKnowsASessionChangesNothing(t *testing.T) {
	r := newRack(t)
	m := r.accepted()
	_, s := m.boot()
	r.must(m.report(s, pxe.ReportProgress))
	before, host := r.session(s), m.host()
	thief := netip.MustParseAddr("10.0.0.66")
	for name, use := range places(r.engine, s, m.mac(), thief) {
		r.clock = r.clock.Add(2 * ledger.RefusedAgain) // each is worth its own note
		if err := use(); !inventory.IsKind(err, inventory.Forbidden) || !strings.Contains(err.Error(), thief.String()) {
			t.Errorf("%s: %v", name, err)
		}
		r.settle()
		kinds := r.kinds(s)
		if kinds[len(kinds)-1] != inventory.EventSessionRefused && kinds[len(kinds)-1] != inventory.EventIssueOpened {
			t.Errorf("%s left no event: %v", name, kinds[len(kinds)-1])
		}
	}
	if after := r.session(s); !reflect.DeepEqual(after, before) {
		t.Errorf("the boot is %+v, and was %+v", after, before)
	}
	if live, _ := r.engine.sessions.Of(m.mac()); live.ID != s || live.Address != m.address() {
		t.Errorf("the running boot is %+v", live)
	}
	if h := m.host(); h.State != host.State || h.Version != host.Version {
		t.Errorf("the host is %s (version %d), and was %s (version %d)", h.State, h.Version, host.State, host.Version)
	}
	open := r.openIssues()
	if len(open) != 1 || open[0].Type != inventory.IssueSessionRefused || open[0].HostIDs[0] != host.ID || open[0].Hint == "" || !strings.Contains(open[0].Cause, thief.String()) {
		t.Fatalf("issues %+v", open)
	}
	r.must(m.report(s, pxe.ReportUp))
	if h := m.host(); h.State != inventory.Active {
		t.Errorf("the machine itself is %s after its report", h.State)
	}
	r.clock = r.clock.Add(delivery.StrangerForgotten)
	r.must(r.engine.Sweep(context.Background()))
	if open := r.openIssues(); len(open) != 0 {
		t.Errorf("a day later: %+v", open)
	}
}

func TestAThiefAsksOftenAndFillsNoTimeline(t *testing.T) {
	r := newRack(t)
	m := r.accepted()
	_, s := m.boot()
	before := len(r.kinds(s))
	for i := range 200 {
		from := netip.AddrFrom4([4]byte{10, 0, 1, byte(i)})
		_, _ = r.engine.Ask(context.Background(), s, from, base)
	}
	r.settle()
	if n := len(r.kinds(s)) - before; n > 2 {
		t.Errorf("%d events of one minute", n)
	}
}

func TestABootGoesOnAtANewAddressOfItsOwn(t *testing.T) {
	second := netip.MustParseAddr("10.0.0.177")
	six := netip.MustParseAddr("2001:db8::77")
	for name, c := range map[string]struct {
		from   netip.Addr
		before func(r *rack, m *machine)
	}{
		"the operating system got another lease": {second, func(r *rack, m *machine) {
			m.lease(m.mac())
			r.write(func(tx inventory.Tx) error {
				l, err := tx.FindLease(m.address())
				l.Address = second
				if err != nil {
					return err
				}
				return tx.SaveLease(l)
			})
		}},
		"it uses IPv6 by now": {six, func(r *rack, m *machine) {
			r.engine.cfg.Neighbour = func(a netip.Addr) (inventory.MAC, bool) { return m.mac(), a == six }
			r.engine.outfit()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRack(t)
			m := r.accepted()
			_, s := m.boot()
			c.before(r, m)
			if err := places(r.engine, s, m.mac(), c.from)["artefact"](); err != nil {
				t.Error(err)
			}
			r.must(r.engine.Report(context.Background(), s, c.from, "", pxe.Report{Step: pxe.ReportProgress}))
			if got := r.session(s); got.Address != c.from {
				t.Errorf("the boot is at %s", got.Address)
			}
			r.must(r.engine.Report(context.Background(), s, c.from, "", pxe.Report{Step: pxe.ReportUp}))
			if h := m.host(); h.State != inventory.Active {
				t.Errorf("the host is %s", h.State)
			}
			if open := r.openIssues(); len(open) != 0 {
				t.Errorf("issues %+v", open)
			}
		})
	}
}

func TestALeaseThatHasEndedVouchesForNobody(t *testing.T) {
	r := newRack(t)
	m := r.accepted()
	_, s := m.boot()
	second := netip.MustParseAddr("10.0.0.177")
	m.lease(m.mac())
	r.write(func(tx inventory.Tx) error {
		return tx.SaveLease(inventory.Lease{
			Address: second, Subnet: "rack", MAC: m.mac(), State: inventory.LeaseBound, StartsAt: r.clock, ExpiresAt: r.clock.Add(-time.Second),
		})
	})
	if err := places(r.engine, s, m.mac(), second)["artefact"](); !inventory.IsKind(err, inventory.Forbidden) {
		t.Errorf("from a lease that ended: %v", err)
	}
}
