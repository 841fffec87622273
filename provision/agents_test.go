package provision

import (
	"context"
	"testing"

	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/operation"
)

// meantime is a store during whose next read something else happens.
type meantime struct {
	inventory.Store
	then func()
}

func (m *meantime) Read(ctx context.Context, fn func(inventory.Tx) error) error {
	err := m.Store.Read(ctx, fn)
	if then := m.then; then != nil {
		m.then = nil
		then()
	}
	return err
}

// The first word of an agent may come in just before its machine is switched off, and be read after that.
func TestTheWordOfAnAgentWhoseMachineIsSwitchedOffMeanwhileFencesNothing(t *testing.T) {
	ask := map[string]func(*life, inventory.SessionID, *server) error{
		"its hello": func(l *life, id inventory.SessionID, s *server) error {
			return l.engine.AgentReport(context.Background(), id, s.address(), l.engine.AgentKey(id), wire.Report{Version: wire.Version, State: wire.Hello})
		},
		"its question for work": func(l *life, id inventory.SessionID, s *server) error {
			_, err := l.engine.TaskNow(context.Background(), id, s.address(), l.engine.AgentKey(id), wire.Version, base)
			return err
		},
	}
	for name, ask := range ask {
		t.Run(name, func(t *testing.T) {
			l := newLife(t)
			s := l.add("a", true)
			s.isStuck = true
			l.create(inventory.Machine{Name: "web-1"})
			l.until("it is on", func() bool { return s.isOn })
			_, id := s.boot()
			_, err := l.engine.DeleteMachine(context.Background(), "web-1", false, ledger.By("a test"))
			l.must(err)
			l.engine.cfg.Store = &meantime{Store: l.store, then: func() { // fenced by its power, which is off for good
				l.until("it is off", func() bool { return !s.isOn })
			}}
			l.engine.outfit()
			if err := ask(l, id, s); err != nil {
				t.Fatal(err)
			}
			l.engine.cfg.Store = l.store
			l.engine.outfit()
			s.isStuck = false
			l.turn()
			if op, err := l.engine.Operator.OpenOperation(context.Background(), s.host().ID); err != nil || op.Step == inventory.StepWipe && !s.isOn {
				t.Fatalf("it is at %s with the machine on: %t, %v", op.Step, s.isOn, err)
			}
			began := l.clock
			l.until("it is wiped and free", l.hostIs(s, inventory.Available))
			if took := l.clock.Sub(began); took > operation.BeginFor {
				t.Errorf("it took %s", took)
			}
		})
	}
}

// From then on the machine may be on its way into what was written to its disk.
func TestAnAgentThatWasToldToRestartIsNoFence(t *testing.T) {
	l := newLife(t)
	s := l.add("a", true)
	l.create(inventory.Machine{Name: "web-1"})
	l.until("its disk is written", func() bool {
		op, err := l.engine.Operator.OpenOperation(context.Background(), s.host().ID)
		l.must(err)
		return op.Step == inventory.StepReboot
	})
	task, err := l.engine.TaskNow(context.Background(), s.session, s.address(), l.engine.AgentKey(s.session), wire.Version, base)
	if err != nil || task.Kind != wire.Reboot {
		t.Fatalf("it is told %+v, %v", task, err)
	}
	offs := s.offs
	_, err = l.engine.DeleteMachine(context.Background(), "web-1", false, ledger.By("a test"))
	l.must(err)
	l.must(l.engine.AgentReport(context.Background(), s.session, s.address(), l.engine.AgentKey(s.session), wire.Report{Version: wire.Version, Task: task.ID, State: wire.Done}))
	if h := s.host(); h.State != inventory.Releasing {
		t.Errorf("the host is %s, with its power on and its old system on its way", h.State)
	}
	l.until("the host is free", l.hostIs(s, inventory.Available))
	if s.offs == offs || s.wipes != 1 {
		t.Errorf("its power was cut %d times, and it was wiped %d times", s.offs-offs, s.wipes)
	}
}
