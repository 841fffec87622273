package provision

import (
	"fmt"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

// The oracle of references (storetest.CheckRefs) looks at what these two tests store, as after each test with a rack.

func TestARefusedDocumentKeepsTheReferencesOfItsBoot(t *testing.T) {
	r, _ := configRack(t)
	r.target(t)
	r.configured("plane", inventory.ImageConfig{Format: "ignition", Version: "3.3.0"}, inventory.Profile{Config: fmt.Sprintf(joins, "init")})
	pinned := func(n int) *machine {
		m := r.machine(n)
		m.dhcp(pxe.StageFirmware)
		r.write(func(tx inventory.Tx) error {
			h, err := tx.FindHostByMAC(m.mac())
			if err != nil {
				return err
			}
			h.Profile, h.Name = "plane", fmt.Sprintf("web-%d", n)
			return tx.UpdateHost(&h, r.clock)
		})
		m.accept()
		m.lease(m.mac())
		return m
	}
	first, second := pinned(1), pinned(2)
	_, _ = first.boot()
	_, s := second.boot()
	_, err := second.ask(s, "user-data")
	if refs := inventory.RefsOf(err); len(refs) == 0 {
		t.Errorf("%v names a host without a reference", err)
	}
	r.settle()
}

func TestAStalledBootKeepsTheReferencesOfItsCause(t *testing.T) {
	r := newRack(t)
	r.image("debian", false, "", 1)
	m, other := r.machine(1), r.machine(2)
	m.dhcp(pxe.StageFirmware)
	other.dhcp(pxe.StageFirmware)
	m.accept()
	other.accept()
	r.settle()
	a, b := m.host(), other.host()
	r.write(func(tx inventory.Tx) error {
		_, err := tx.OpenIssue(&inventory.Issue{
			Key: "identity-conflict/x/y", Type: inventory.IssueIdentityConflict, Severity: inventory.SeverityWarning, HostIDs: []inventory.HostID{a.ID, b.ID},
			Cause: a.Name + " and " + b.Name + " both report serial 7", Refs: []inventory.Ref{inventory.HostRef(a.Name), inventory.HostRef(b.Name)},
		}, r.clock)
		return err
	})
	r.clock = r.clock.Add(time.Hour)
	m.boot()
	for range 20 {
		r.clock = r.clock.Add(time.Minute)
		r.look()
	}
	for _, x := range r.openIssues() {
		if x.Type == inventory.IssueStalled && len(x.Refs) == 0 {
			t.Errorf("%s: %q has no references", x.Type, x.Cause)
		}
	}
}
