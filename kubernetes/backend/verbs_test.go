package backend_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/live"
	"slipway.dev/slipway/kubernetes/backend"
	"slipway.dev/slipway/kubernetes/contract"
)

// contrary is an appliance that refuses verbs, each with the name of a machine that is gone and of a host of another pool.
type contrary struct{ contract.Appliance }

func (contrary) refuse() error {
	return inventory.Errorf(inventory.Conflict, "%s has it, and %s was first", inventory.HostRef("a-1"), inventory.MachineRef("hush-9")).
		WithHint("see host %s", inventory.HostRef("a-1"))
}

func (r contrary) Accept(context.Context, inventory.HostID) error            { return r.refuse() }
func (r contrary) Maintain(context.Context, inventory.HostID, bool) error    { return r.refuse() }
func (r contrary) Protect(context.Context, inventory.HostID, bool) error     { return r.refuse() }
func (r contrary) Power(context.Context, inventory.HostID, bmc.Action) error { return r.refuse() }
func (r contrary) Offer(context.Context, string, string) error               { return r.refuse() }

func (r contrary) Reinstall(context.Context, string) (m inventory.Machine, err error) {
	return m, r.refuse()
}

func (r contrary) Remediate(context.Context, string, []string) (m inventory.Machine, err error) {
	return m, r.refuse()
}

func (r contrary) RetryMachine(context.Context, string) (m inventory.Machine, err error) {
	return m, r.refuse()
}

func (r contrary) DeleteMachine(context.Context, string, bool) (m inventory.Machine, err error) {
	return m, r.refuse()
}

func (r contrary) GiveBootstrap(context.Context, string, contract.Bootstrap, bool) error {
	return r.refuse()
}

func TestNoVerbNamesWhatItsClusterMayNotSee(t *testing.T) {
	s := newSite(t)
	s.host("a-1", "52:54:00:00:0a:01", "rack-1")
	h := s.host("b-1", "52:54:00:00:0b:01", "rack-2")
	own := ownerIn(uidB, "prod", "x")
	m := s.machine("x", own, h)
	s.keptToRack2()
	here := backend.NewLocal(backend.LocalConfig{Engine: s.engine, Store: s.store, Events: live.New(live.Config{Store: s.store}), Site: "fra"})
	b := backend.ForCluster(contrary{here}, uidB, func(context.Context) ([]map[string]string, error) { return nil, nil })
	ctx := t.Context()
	of := func(_ inventory.Machine, err error) error { return err }
	for verb, err := range map[string]error{
		"accept": b.Accept(ctx, h.ID), "maintain": b.Maintain(ctx, h.ID, true), "protect": b.Protect(ctx, h.ID, true), "power": b.Power(ctx, h.ID, bmc.On),
		"reinstall": of(b.Reinstall(ctx, m.Name)), "remediate": of(b.Remediate(ctx, m.Name, nil)), "retry": of(b.RetryMachine(ctx, m.Name)),
		"delete": of(b.DeleteMachine(ctx, m.Name, true)), "bootstrap": b.GiveBootstrap(ctx, m.Name, contract.Bootstrap{}, true), "offer": b.Offer(ctx, own, ""),
	} {
		var e *inventory.Error
		if !errors.As(err, &e) || e.Kind != inventory.Conflict {
			t.Errorf("%s: %v", verb, err)
		} else if strings.Contains(e.Msg+e.Hint, "a-1") || strings.Contains(e.Msg, "hush-9") {
			t.Errorf("%s names what the cluster may not see: %s (%s)", verb, e.Msg, e.Hint)
		}
	}
}
