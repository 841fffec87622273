package web

import (
	"fmt"
	"net/http"
	"net/netip"
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

// hides fails if an answer to a viewer of pool alpha names a thing of pool beta.
func (r *rig) hides(who []string, method, path, body string) {
	r.t.Helper()
	a := r.via(who, method, "/api/v1"+path, body)
	if a.status >= http.StatusBadRequest {
		r.t.Errorf("%s %s: %d %s", method, path, a.status, a.body)
	}
	for _, name := range []string{"beta-1", "beta-m"} {
		if strings.Contains(a.body, name) {
			r.t.Errorf("%s %s tells %s: %s", method, path, name, a.body)
		}
	}
}

func TestADifferenceOfTextsHidesNames(t *testing.T) {
	for name, refs := range map[string][]inventory.Ref{"references": {inventory.HostRef("beta-1")}, "an old version": {{Kind: ref.Unknown}}} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			r.teams()
			r.ofAlpha("beta-1 goes first", inventory.HostRef("beta-1"))
			id := r.oldEdit(`{"name":"alpha-1","stateReason":"beta-1 goes first"}`, refs...)
			who := r.as("op", inventory.Grant{Role: inventory.Operator, Pool: "alpha"})
			r.hides(who, http.MethodGet, fmt.Sprintf("/audit/%d", id), "")
			r.hides(who, http.MethodPatch, "/hosts/alpha-1?dryRun=true", `{"serial":"x1"}`)
		})
	}
}

// oldEdit adds an edit of host alpha-1 to the audit.
func (r *rig) oldEdit(before string, refs ...inventory.Ref) (id int64) {
	r.t.Helper()
	err := r.store.Write(r.t.Context(), func(tx inventory.Tx) error {
		h, err := tx.FindHostByName("alpha-1")
		if err != nil {
			return err
		}
		a := inventory.Audit{
			At: testStart, Actor: "user root", Operation: "update-host", Noun: "host", Name: "alpha-1", HostID: h.ID, Change: inventory.AuditUpdate,
			Status: http.StatusOK, Before: []byte(before), After: []byte(`{"name":"alpha-1","stateReason":""}`), Refs: refs,
		}
		err = tx.AddAudit(&a)
		id = a.ID
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return id
}

func TestAReasonThatIsCutHidesNames(t *testing.T) {
	r := newRig(t, nil)
	r.teams()
	r.ofAlpha(strings.Repeat("x", 193)+" beta-1", inventory.HostRef("beta-1"))
	who := r.as("looker", inventory.Grant{Role: inventory.Viewer, Pool: "alpha"})
	if a := r.via(who, http.MethodGet, "/api/v1/hosts", ""); strings.Contains(a.body, "x bet") {
		t.Errorf("the list tells the beginning of a name: %s", a.body)
	}
}

func TestAnAddressThatAMachineLeftHidesTheMachine(t *testing.T) {
	r := newRig(t, nil)
	r.teams()
	err := r.store.Write(t.Context(), func(tx inventory.Tx) error {
		h, err := tx.FindHostByName("alpha-1")
		if err != nil {
			return err
		}
		m, err := tx.FindMachine("beta-m")
		if err != nil {
			return err
		}
		a := inventory.Allocation{Address: netip.MustParseAddr("10.0.0.77"), Subnet: "rack1", Holder: inventory.Holder{MachineUID: m.UID}}
		if err := tx.CreateAllocation(&a, testStart); err != nil {
			return err
		}
		return tx.LeaveAllocations(m.UID, h.ID, inventory.LeftBy("beta-m"))
	})
	if err != nil {
		t.Fatal(err)
	}
	who := r.as("looker", inventory.Grant{Role: inventory.Viewer, Pool: "alpha"})
	r.hides(who, http.MethodGet, "/addresses", "")
	if a := r.via(who, http.MethodGet, "/api/v1/addresses", ""); !strings.Contains(a.body, "left by a machine: its old system may run") {
		t.Errorf("the address does not say why it is kept: %s", a.body)
	}
}
