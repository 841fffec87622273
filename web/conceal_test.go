package web

import (
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/ref"
)

// ofAlpha stores a reason for host alpha-1, and an event of it, with references.
func (r *rig) ofAlpha(says string, refs ...inventory.Ref) {
	r.t.Helper()
	err := r.store.Write(r.t.Context(), func(tx inventory.Tx) error {
		h, err := tx.FindHostByName("alpha-1")
		if err != nil {
			return err
		}
		h.StateReason, h.Refs = says, refs
		if err := tx.UpdateHost(&h, testStart); err != nil {
			return err
		}
		return tx.AddEvent(&inventory.Event{At: testStart, Kind: inventory.EventHostChanged, HostID: h.ID, Detail: says, Refs: refs})
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

// TestTheNameOfSomethingGoneIsLeftOut: a reference says in which pool a thing was, so that its name is left out for those who could
// not see it when it was there, and for nobody else.
func TestTheNameOfSomethingGoneIsLeftOut(t *testing.T) {
	r := newRig(t, nil)
	r.teams()
	r.ofAlpha("beta-m goes before alpha-m, and beta-1 has its address",
		inventory.MachineRef("beta-m"), inventory.MachineRef("alpha-m"), inventory.HostRef("beta-1"))
	err := r.store.Write(t.Context(), func(tx inventory.Tx) error {
		for _, name := range []string{"alpha-m", "beta-m"} {
			if err := tx.DeleteMachine(name); err != nil {
				return err
			}
		}
		h, err := tx.FindHostByName("beta-1")
		if err != nil {
			return err
		}
		h.Name = "renamed"
		return tx.UpdateHost(&h, testStart)
	})
	if err != nil {
		t.Fatal(err)
	}
	const want = "(hidden) goes before alpha-m, and (hidden) has its address"
	who := r.as("looker", inventory.Grant{Role: inventory.Viewer, Pool: "alpha"})
	for _, path := range []string{"/api/v1/hosts/alpha-1", "/api/v1/hosts", "/api/v1/events?host=alpha-1&limit=1000"} {
		if a := r.mustAs(who, 200, "GET", path, ""); !strings.Contains(a.body, want) || strings.Contains(a.body, "beta") {
			t.Errorf("%s: %s", path, a.body)
		}
		if a := r.ask("GET", path, ""); !strings.Contains(a.body, "beta-m goes before alpha-m") {
			t.Errorf("an admin reads at %s: %s", path, a.body)
		}
	}
}

// TestATextWithoutReferencesIsForReadersEverywhere: nobody can say what the texts of versions before references name. A change of
// the row by somebody who does not see its text leaves that as it is.
func TestATextWithoutReferencesIsForReadersEverywhere(t *testing.T) {
	r := newRig(t, nil)
	r.teams()
	const says = "beta-m goes first"
	r.ofAlpha(says, inventory.Ref{Kind: ref.Unknown})
	who := r.as("op", inventory.Grant{Role: inventory.Operator, Pool: "alpha"})
	for _, path := range []string{"/api/v1/hosts/alpha-1", "/api/v1/hosts", "/api/v1/events?host=alpha-1&limit=1000", "/api/v1/hosts/alpha-1/timeline"} {
		if a := r.mustAs(who, 200, "GET", path, ""); strings.Contains(a.body, "beta") || strings.Contains(a.body, "goes first") {
			t.Errorf("%s: %s", path, a.body)
		}
	}
	r.mustAs(who, 200, "PATCH", "/api/v1/hosts/alpha-1", `{"serial":"s1"}`)
	if a := r.ask("GET", "/api/v1/hosts/alpha-1", ""); !strings.Contains(a.body, says) || !strings.Contains(a.body, `"s1"`) {
		t.Errorf("after a change: %s", a.body)
	}
}
