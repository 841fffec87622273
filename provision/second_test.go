package provision

import (
	"fmt"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
)

// storedAs gives a machine a configuration as an older version would have, which compared nothing.
func (l *life) storedAs(name, config string) {
	l.t.Helper()
	l.write(func(tx inventory.Tx) error {
		m, err := tx.FindMachine(name)
		if err != nil {
			return err
		}
		m.Config = config
		return tx.UpdateMachine(&m, l.clock)
	})
	l.engine.HeldElsewhere()
	l.must(l.engine.clashes.Look(l.t.Context()))
}

func TestABootOfWhatCameSecondIsGivenNoConfiguration(t *testing.T) {
	for _, tc := range []struct{ name, double, own, says string }{
		{"an address", fmt.Sprintf(lan, "192.0.2.50/24"), fmt.Sprintf(lan, "192.0.2.51/24"), "machine two is given no configuration: the address 192.0.2.50 is that of machine one"},
		{"a host name", "host: {hostname: one}\n", "host: {hostname: other}\n", "machine two is given no configuration: the host name one is that of machine one"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := addressed(t, "")
			_, two := l.add("r1", true), l.add("r2", true)
			l.create(inventory.Machine{Name: "one", Placement: inventory.Placement{Host: "r1"}, Config: fmt.Sprintf(lan, "192.0.2.50/24")})
			l.create(inventory.Machine{Name: "two", Placement: inventory.Placement{Host: "r2"}})
			l.until("both run", func() bool {
				return l.phase("one", inventory.MachineRunning)() && l.phase("two", inventory.MachineRunning)()
			})

			l.storedAs("two", tc.double)
			two.runs = "" // it restarts
			l.turn()
			if two.runs != "disk" || two.host().State != inventory.Active {
				t.Errorf("a machine that runs booted %s and is %s", two.runs, two.host().State)
			}
			_, err := l.engine.Reinstall(t.Context(), "two", ledger.By("test"))
			if !inventory.IsKind(err, inventory.Conflict) || !strings.Contains(ledger.PublicMessage(err), tc.says) || inventory.HintOf(err) == "" {
				t.Errorf("its reinstallation: %v (%s)", err, inventory.HintOf(err))
			}
			if _, err := l.engine.Reinstall(t.Context(), "one", ledger.By("test")); !inventory.IsKind(err, inventory.Conflict) {
				t.Errorf("the first one was taken down while the second has the same: %v", err)
			}

			l.storedAs("two", tc.own)
			if _, err := l.engine.Reinstall(t.Context(), "two", ledger.By("test")); err != nil {
				t.Fatal(err)
			}
			l.storedAs("two", tc.double)
			l.until("it says why", func() bool { return l.hasCause(tc.says) })
			for range 20 {
				l.turn()
			}
			if two.writes != 1 {
				t.Errorf("the second was written")
			}
			if m, _ := l.find("two"); !strings.Contains(two.host().StateReason+m.Reason+l.lastReason("r2"), tc.says) {
				t.Errorf("no reason in its timeline: %q %q", two.host().StateReason, m.Reason)
			}
			l.storedAs("two", tc.own)
			l.until("the second runs", func() bool { return two.writes == 2 && l.phase("two", inventory.MachineRunning)() })
			if l.hasCause(tc.says) {
				t.Error("the issue stays open")
			}
		})
	}
}

// hasCause reports whether an open issue has a cause.
func (l *life) hasCause(cause string) (has bool) {
	l.t.Helper()
	l.read(func(tx inventory.Tx) error {
		all, err := tx.ListIssues(false, "")
		for _, i := range all {
			has = has || strings.Contains(i.Cause, cause)
		}
		return err
	})
	return has
}

// lastReason returns the details of the last events of a host.
func (l *life) lastReason(host string) (text string) {
	l.t.Helper()
	l.read(func(tx inventory.Tx) error {
		h, err := tx.FindHostByName(host)
		if err != nil {
			return err
		}
		all, err := tx.ListEvents(inventory.EventFilter{HostID: h.ID}, 0, 0)
		for _, e := range all {
			text += e.Detail + "\n"
		}
		return err
	})
	return text
}

func TestObjectsOfOneNameInTwoNamespacesAreTold(t *testing.T) {
	l := addressed(t, "")
	for _, ns := range []string{"one", "two"} {
		if err := l.wish(inventory.Machine{Name: "m-" + ns, Hostname: "web", Owner: "a/" + ns + "/MetalMachine/web/01" + ns}); err != nil {
			t.Fatal(err)
		}
	}
	l.must(l.engine.clashes.Look(t.Context()))
	l.read(func(tx inventory.Tx) error {
		all, err := tx.ListIssues(false, "")
		if len(all) != 1 || all[0].Severity != inventory.SeverityWarning || !strings.Contains(all[0].Cause, "machine m-two: the host name web is that of machine m-one, too") {
			t.Errorf("issues: %+v", all)
		}
		return err
	})
}
