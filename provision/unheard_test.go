package provision

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/operation"
)

// deaf is a controller that answers nothing until it is released.
type deaf struct {
	bmc.Driver
	released chan struct{}
}

func (d deaf) hear(ctx context.Context) error {
	select {
	case <-d.released:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (d deaf) Power(ctx context.Context) (inventory.PowerState, error) {
	if err := d.hear(ctx); err != nil {
		return inventory.PowerUnknown, err
	}
	return d.Driver.Power(ctx)
}

func (d deaf) SetPower(ctx context.Context, a bmc.Action) error {
	if err := d.hear(ctx); err != nil {
		return err
	}
	return d.Driver.SetPower(ctx, a)
}

// TestADeletionThatWaitsForADeadControllerSaysSoAtOnce: an order to a controller that does not answer takes minutes to fail.
// What the operation waits for shows while the first order is under way.
func TestADeletionThatWaitsForADeadControllerSaysSoAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		isKnown bool
		want    string
	}{
		"one that was silent before": {true, "the controller of a at 10.0.9.1 does not answer: no route to host"},
		"one that was well before":   {false, "the controller of a at 10.0.9.1 has not obeyed yet"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLife(t)
			s := l.add("a", true)
			l.create(inventory.Machine{Name: "web-1"})
			l.until("it runs", l.phase("web-1", inventory.MachineRunning))
			released := make(chan struct{})
			l.engine.cfg.OpenBMC = func(t bmc.Target) (bmc.Driver, error) {
				d, err := l.bank.Open(t)
				return deaf{d, released}, err
			}
			l.engine.cfg.UnheardAfter = 20 * time.Millisecond
			l.engine.outfit()
			l.write(func(tx inventory.Tx) error {
				b, err := tx.FindBMC(s.host().ID)
				if err != nil {
					return err
				}
				b.Address, b.IsReachable, b.Reason = "https://admin:hunter2@10.0.9.1/redfish?key=hunter2", true, ""
				if c.isKnown {
					b.IsReachable, b.Reason = false, "no route to host"
				}
				return tx.SaveBMC(&b, l.clock)
			})
			_, err := l.engine.DeleteMachine(context.Background(), "web-1", false, ledger.By("a test"))
			l.must(err)
			var workers sync.WaitGroup
			v := l.view("web-1")
			for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
				l.must(l.engine.DriveOnce(context.Background(), make(chan struct{}, operation.DriveAtOnce), &workers))
				if v = l.view("web-1"); v.Operation != nil && v.Operation.Reason != "" {
					break
				}
			}
			if op := v.Operation; op == nil || op.Step != inventory.StepFence || op.AttemptN != 1 || !strings.HasPrefix(op.Reason, c.want) ||
				!strings.Contains(op.Hint, "slipway host power a --confirm off") || strings.Contains(op.Reason, "hunter2") {
				t.Errorf("operation %+v", op)
			}
			if !strings.HasPrefix(v.Machine.Reason, c.want) || v.Machine.Hint == "" {
				t.Errorf("the machine says %q (%s)", v.Machine.Reason, v.Machine.Hint)
			}
			if n := l.notes("the controller of a"); n != 1 {
				t.Errorf("%d entries in the timeline", n)
			}
			close(released)
			workers.Wait()
			l.until("it goes on once the controller answers", func() bool { _, ok := l.find("web-1"); return !ok })
		})
	}
}
