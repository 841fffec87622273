package provision

import (
	"context"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/operation"
)

// booting is a machine whose live boot has had its script, with a controller that says what power points to.
func booting(t *testing.T) (r *rack, m *machine, s inventory.SessionID, power *inventory.PowerState) {
	t.Helper()
	r = newRack(t)
	m = r.accepted()
	is := inventory.PowerOn
	r.engine.cfg.OpenBMC = func(bmc.Target) (bmc.Driver, error) { return says{&is}, nil }
	r.engine.outfit()
	r.write(func(tx inventory.Tx) error {
		return tx.SaveBMC(&inventory.BMC{HostID: m.host().ID, Driver: inventory.Redfish, Address: "https://10.9.9.9"}, r.clock)
	})
	_, s = m.boot()
	return r, m, s, &is
}

// wantEnded expects that a boot is over, in the store and for those who look at what runs.
func (r *rack) wantEnded(m *machine, s inventory.SessionID, is bool) {
	r.t.Helper()
	r.settle()
	if got := r.session(s); got.EndedAt.IsZero() == is {
		r.t.Errorf("the boot has ended at %s with %q, want an end: %v", got.EndedAt, got.Outcome, is)
	}
	if live, ok := r.engine.sessions.Of(m.mac()); ok && live.ID == s && live.EndedAt.IsZero() == is {
		r.t.Errorf("among those that run the boot has ended at %s, want an end: %v", live.EndedAt, is)
	}
}

func TestABootEndsWhenItsControllerSaysThatThePowerIsOff(t *testing.T) {
	r, m, s, power := booting(t)
	id := m.host().ID
	*power = inventory.PowerOff
	r.engine.PowerNow(context.Background(), id)
	r.wantEnded(m, s, false) // it was heard a moment ago: controllers are late
	r.clock = r.clock.Add(2 * time.Minute)
	*power = inventory.PowerUnknown
	r.engine.PowerNow(context.Background(), id)
	r.wantEnded(m, s, false)
	*power = inventory.PowerOff
	r.engine.PowerNow(context.Background(), id)
	r.wantEnded(m, s, true)
	if got := r.session(s); got.EndedAt.Sub(got.StartedAt) > 3*time.Minute {
		t.Errorf("it took until %s", got.EndedAt)
	}
}

func TestABootEndsWhenAPersonSaysThatThePowerIsOff(t *testing.T) {
	r := newRack(t)
	m := r.accepted()
	_, s := m.boot()
	r.clock = r.clock.Add(time.Second)
	_, err := r.engine.ConfirmPower(context.Background(), m.host().ID, inventory.PowerOn, ledger.By("alice"))
	r.must(err)
	r.wantEnded(m, s, false)
	_, err = r.engine.ConfirmPower(context.Background(), m.host().ID, inventory.PowerOff, ledger.By("alice"))
	r.must(err)
	r.wantEnded(m, s, true)
}

func TestABootEndsWhenTheHostBootsFromAnotherPort(t *testing.T) {
	r := newRack(t)
	m, second := r.accepted(), r.machine(2)
	r.write(func(tx inventory.Tx) error {
		h, err := tx.FindHostByMAC(m.mac())
		if err != nil {
			return err
		}
		h.NICs = append(h.NICs, inventory.NIC{MAC: second.mac()})
		return tx.UpdateHost(&h, r.clock)
	})
	_, s := m.boot()
	second.uuid = m.uuid
	_, again := second.boot()
	r.wantEnded(m, s, true)
	r.wantEnded(second, again, false)
}

func TestABootEndsWithItsOperation(t *testing.T) {
	r, m, s, _ := booting(t)
	r.write(func(tx inventory.Tx) error {
		op := inventory.Operation{
			ID: "01K00000000000000000000078", HostID: m.host().ID, Kind: inventory.OpInstall, State: inventory.OpRunning, Step: inventory.StepFirstBoot,
			Params: operation.Params{Road: operation.RoadLive}.Encode(), StartedAt: r.clock,
		}
		return tx.CreateOperation(&op, r.clock)
	})
	live, _ := r.engine.sessions.Of(m.mac())
	live.Operation = "01K00000000000000000000078"
	r.engine.sessions.Put(live)
	r.write(func(tx inventory.Tx) error { return tx.SaveSession(live) })
	r.must(r.engine.Operator.WithJob(context.Background(), live.Operation, func(j *operation.Job) error { return j.Finish() }))
	r.wantEnded(m, s, true)
	if got := r.session(s); got.Outcome != inventory.OutcomeArrived {
		t.Errorf("outcome %s", got.Outcome)
	}
}

// TestATrialEndsNoBoot: the dialog asks what would happen before anybody has said yes.
func TestATrialEndsNoBoot(t *testing.T) {
	r, m, s, _ := booting(t)
	r.write(func(tx inventory.Tx) error {
		op := inventory.Operation{
			ID: "01K00000000000000000000079", HostID: m.host().ID, Kind: inventory.OpInspect, State: inventory.OpRunning, Step: inventory.StepReboot,
			Params: operation.Params{}.Encode(), StartedAt: r.clock,
		}
		return tx.CreateOperation(&op, r.clock)
	})
	live, _ := r.engine.sessions.Of(m.mac())
	live.Operation = "01K00000000000000000000079"
	r.engine.sessions.Put(live)
	r.write(func(tx inventory.Tx) error { return tx.SaveSession(live) })
	cancel := func(who ledger.Asker) {
		t.Helper()
		_, err := r.engine.Operator.Changed(context.Background(), who, m.host().ID, func(tx inventory.Tx, h *inventory.Host) error {
			op, err := tx.FindOpenOperation(h.ID)
			if err != nil {
				return err
			}
			j, err := r.engine.Operator.JobOf(tx, op)
			if err != nil {
				return err
			}
			return j.Cancel("released instead")
		})
		r.must(err)
	}
	cancel(ledger.Asker{DryRun: true})
	r.wantEnded(m, s, false)
	cancel(ledger.Asker{})
	r.wantEnded(m, s, true)
}

func TestThePowerOfAHostEndsNoBootOfAnotherMachine(t *testing.T) {
	r, m := up(t, noSecret, "")
	script, s := m.boot()
	if !strings.Contains(script, "kernel ") {
		t.Fatal(script)
	}
	r.clock = r.clock.Add(5 * time.Minute)
	r.engine.Operator.FoundOff(m.host().ID, r.clock)
	r.wantEnded(m, s, false)
}
