package provision

import (
	"context"
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
)

func TestAControllerThatIsAddedTakesOverFromAPerson(t *testing.T) {
	l := newLife(t)
	s := l.add("r1-u7", false)
	l.create(inventory.Machine{Name: "web-1"})
	l.until("a person is asked to switch it on", func() bool { return len(l.openIssues()) == 1 })
	s.bmc = true
	_, err := l.engine.SaveBMC(context.Background(), inventory.BMC{HostID: s.host().ID, Driver: inventory.FakeBMC, System: "r1-u7"}, "", ledger.By("a test"))
	l.must(err)
	var op inventory.Operation
	l.must(l.engine.cfg.Store.Read(context.Background(), func(tx inventory.Tx) (err error) {
		op, err = tx.FindOpenOperation(s.host().ID)
		return err
	}))
	if op.NextAt.After(l.clock) {
		t.Errorf("its operation waits for a person until %s, it is %s", op.NextAt, l.clock)
	}
	l.until("it runs", l.phase("web-1", inventory.MachineRunning))
	if open := l.openIssues(); len(open) != 0 || !s.isOn {
		t.Errorf("on: %v, issues %+v", s.isOn, open)
	}
}
