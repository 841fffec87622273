package attack_test

import (
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/lab/simulate"
	"slipway.dev/slipway/test/netlab"
	"slipway.dev/slipway/web/client"
	"slipway.dev/slipway/web/wire"
)

// TestASecondMachineWithTheMACOfARunningHostGetsNoSecret boots a machine that says of itself all that a running host says: MAC,
// UUID and serial number.
func TestASecondMachineWithTheMACOfARunningHostGetsNoSecret(t *testing.T) {
	a := victim(t)
	ctx, value := t.Context(), "attack-canary"
	a.ImportLive()
	if _, err := a.API.SetSecret(ctx, "db-root", wire.SecretInput{Value: &value}); err != nil {
		t.Fatal(err)
	}
	live := inventory.Profile{Name: "live", Image: "live", Selector: "mac", Config: "host: {timezone: Etc/UTC}"}
	if _, err := a.API.Profiles.Create(ctx, live); err != nil {
		t.Fatal(err)
	}
	if _, err := a.API.AcceptRules.Create(ctx, inventory.AcceptRule{Name: "all", Selector: "manufacturer"}); err != nil {
		t.Fatal(err)
	}
	a.Good(a.Boot(ctx, simulate.Config{Hosts: 2, Seed: 5, Expect: simulate.StageBooted}))
	before, given := a.Hosts(), deliveries(a)
	if given == 0 || before[0].State != inventory.Active {
		t.Fatalf("%d deliveries, and the host is %s: this test attacks nothing", given, before[0].State)
	}
	// All simulated machines share one port, which the rule about addresses refuses, so the secret comes after their first boot.
	live.Config = "files: [{path: /etc/x, secret: 'secret://db-root'}]"
	if _, err := a.API.Profiles.Put(ctx, "live", live); err != nil {
		t.Fatal(err)
	}

	a.Good(a.Boot(ctx, simulate.Config{Hosts: 2, Seed: 5, Expect: simulate.StageWaiting}))
	if n := deliveries(a); n != given {
		t.Errorf("%d documents were given to the second machines", n-given)
	}
	for _, h := range a.Hosts() {
		if h.State != inventory.Active {
			t.Errorf("host %s is %s, and its system runs", h.Name, h.State)
		}
		if !said(a, inventory.IssueUnconfirmed, h.Name) {
			t.Errorf("no issue says that another machine boots as %s", h.Name)
		}
	}
	for _, s := range sessions(a) { // not by its URL either
		code, _ := ask(a, a.Net.Client, attacker, "http://10.77.0.1/boot/"+string(s.ID)+"/config.cpio", "", "")
		if code < 400 {
			t.Errorf("the documents of %s are given to another address: %d", s.ID, code)
		}
	}
	live.Config = "host: {timezone: Etc/UTC}"
	if _, err := a.API.Profiles.Put(ctx, "live", live); err != nil {
		t.Fatal(err)
	}
	a.Good(a.Boot(ctx, simulate.Config{Hosts: 2, Seed: 9, Expect: simulate.StageBooted})) // the neighbours
}

// deliveries counts the documents that were given out.
func deliveries(a *netlab.Appliance) int {
	a.Lab.T.Helper()
	p, err := a.API.Events(a.Lab.T.Context(), client.EventQuery{Kind: inventory.EventConfigSent, Limit: 1000})
	if err != nil {
		a.Lab.T.Fatal(err)
	}
	return len(p.Items)
}

// TestAnAdminsProfileGivesNoSecretOfAnotherPool has an operator give a machine an admin's profile whose secret is for another
// pool, and boots it.
func TestAnAdminsProfileGivesNoSecretOfAnotherPool(t *testing.T) {
	a := victim(t)
	ctx, value := t.Context(), "attack-canary"
	a.ImportLive()
	for _, pool := range []string{"web", "db"} {
		if _, err := a.API.Pools.Create(ctx, wire.Pool{Pool: inventory.Pool{Name: pool, Selector: "pool=" + pool}}); err != nil {
			t.Fatal(err)
		}
	}
	only := wire.SecretInput{Value: &value, Consumers: &inventory.Consumers{Pools: []string{"db"}}}
	if _, err := a.API.SetSecret(ctx, "db-root", only); err != nil {
		t.Fatal(err)
	}
	config := "files: [{path: /etc/x, secret: 'secret://db-root'}]"
	if _, err := a.API.Profiles.Create(ctx, inventory.Profile{Name: "database", Image: "live", Config: config}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.API.AcceptRules.Create(ctx, inventory.AcceptRule{Name: "all", Selector: "manufacturer"}); err != nil {
		t.Fatal(err)
	}
	a.Good(a.Boot(ctx, simulate.Config{Hosts: 1, Seed: 5, Expect: simulate.StageWaiting}))
	label := "web"
	if _, err := a.API.Hosts.Patch(ctx, a.Hosts()[0].Name, wire.HostPatch{Labels: map[string]*string{"pool": &label}}); err != nil {
		t.Fatal(err)
	}
	web := as(a, "web-operator", inventory.Grant{Role: inventory.Operator, Pool: "web"})
	_, err := web.Machines.Create(ctx, inventory.Machine{Name: "web-1", Profile: "database", Pool: "web"})
	if err != nil && !isRefused(err) {
		t.Fatal(err)
	}
	if err == nil { // saved without a host: then nothing may be delivered
		a.Boot(ctx, simulate.Config{Hosts: 1, Seed: 5, Expect: simulate.StageWaiting})
		if n := deliveries(a); n != 0 {
			t.Errorf("%d documents with the secret of pool db were given to a machine of pool web", n)
		}
		netlabUntil(a, "the refusal is said", func() bool {
			m, err := a.API.Machines.Get(ctx, "web-1")
			return err == nil && m.Reason != "" || said(a, inventory.IssueBootRefused, "db-root")
		})
	}
	boots(a, 9)
}
