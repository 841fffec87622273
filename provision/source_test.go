package provision

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/pxe"
)

func TestNobodyTakesABootOverByTheMACAlone(t *testing.T) {
	r := newRack(t)
	r.image("live", false, "mac", 0)
	m, other := r.machine(1), r.machine(2)
	m.boot()
	m.accept()
	_, s := m.boot()
	r.write(func(tx inventory.Tx) error {
		if err := tx.Subnets().Create(&inventory.Subnet{
			Name: "rack", CIDR: netip.MustParsePrefix("10.0.0.0/24"), Mode: inventory.ModeFull, Unknown: inventory.UnknownDisk,
			LeaseFor: inventory.Duration(time.Hour), BootLeaseFor: inventory.Duration(time.Hour),
		}, r.clock); err != nil {
			return err
		}
		return tx.SaveLease(inventory.Lease{
			Address: other.address(), Subnet: "rack", MAC: other.mac(), State: inventory.LeaseBound,
			ExpiresAt: r.clock.Add(time.Hour),
		})
	})
	ask := func(from netip.Addr) error {
		c := pxe.Client{Stage: pxe.StageIPXE, MAC: m.mac(), Address: from}
		_, err := r.engine.Script(context.Background(), "", c, base)
		return err
	}
	if err := ask(netip.MustParseAddr("10.0.0.250")); !inventory.IsKind(err, inventory.Forbidden) {
		t.Errorf("from another address while it boots: %v", err)
	}
	r.restart()
	if err := ask(other.address()); !inventory.IsKind(err, inventory.Forbidden) {
		t.Errorf("from another machine's address after a restart: %v", err)
	}
	if got := r.session(s); !got.EndedAt.IsZero() || got.Address != m.address() {
		t.Errorf("its boot has become %+v", got)
	}
	r.must(ask(m.address()))
}

func TestAMachineThatFoundUsWithoutOurDHCPIsTreatedAsItsSubnetSays(t *testing.T) {
	r := newRack(t)
	r.write(func(tx inventory.Tx) error {
		return tx.Subnets().Create(&inventory.Subnet{
			Name: "rack", CIDR: netip.MustParsePrefix("10.0.0.0/24"), Mode: inventory.ModeOff, Unknown: inventory.UnknownWait,
			LeaseFor: inventory.Duration(time.Hour), BootLeaseFor: inventory.Duration(time.Hour),
		}, r.clock)
	})
	asked := map[string]bool{}
	r.engine.cfg.Policy = func(subnet string) inventory.UnknownPolicy {
		asked[subnet] = true
		return inventory.UnknownWait
	}
	r.engine.outfit()
	m := r.machine(1)
	c := pxe.Client{Stage: pxe.StageIPXE, MAC: m.mac(), Address: m.address()}
	if _, err := r.engine.Script(context.Background(), "", c, base); err != nil {
		t.Fatal(err)
	}
	if !asked["rack"] || asked[""] {
		t.Errorf("the policies of %v were asked for, want that of subnet rack", asked)
	}
	r.must(r.store.Read(context.Background(), func(tx inventory.Tx) error {
		events, err := tx.ListEvents(inventory.EventFilter{Kind: inventory.EventHostDiscovered}, 0, 1)
		if len(events) != 1 || !strings.Contains(events[0].Detail, "heard on subnet rack") {
			t.Errorf("discovered: %+v", events)
		}
		return err
	}))
}

func TestAHostThatIsOnlyHeardByDHCPWasSeen(t *testing.T) {
	r := newRack(t)
	m := r.machine(1)
	m.boot()
	m.accept()
	_, err := r.engine.Maintain(context.Background(), m.host().ID, true, ledger.By("a test"))
	r.must(err)
	r.clock = r.clock.Add(time.Hour)
	m.dhcp(pxe.StageFirmware)
	if h := m.host(); !h.LastSeenAt.Equal(r.clock) {
		t.Errorf("last seen at %s, want %s", h.LastSeenAt, r.clock)
	}
}

func TestAReportWithoutWordsEndsInNoColon(t *testing.T) {
	r := newRack(t)
	m := r.machine(1)
	_, s := m.boot()
	r.must(r.engine.Report(context.Background(), s, m.address(), "", pxe.Report{Step: pxe.ReportDisk}))
	r.must(r.store.Read(context.Background(), func(tx inventory.Tx) error {
		events, err := tx.ListEvents(inventory.EventFilter{SessionID: s}, 0, 100)
		for _, e := range events {
			if strings.HasSuffix(strings.TrimSpace(e.Detail), ":") {
				t.Errorf("%s: %q", e.Kind, e.Detail)
			}
		}
		return err
	}))
}
