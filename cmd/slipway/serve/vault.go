package serve

import (
	"context"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/secret"
	"slipway.dev/slipway/kubernetes/join"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/web/wire"
)

// vault opens stored secrets by name, and seals what is not stored under one.
type vault struct {
	*secret.Box
	store inventory.Store
}

// secretsOf is the vault as package join wants it.
type secretsOf struct{ vault }

// Open implements join.Secrets.
func (v secretsOf) Open(ctx context.Context, name string) (plain []byte, err error) {
	err = v.store.Read(ctx, func(tx inventory.Tx) error {
		s, err := tx.Secrets().Find(name)
		if err != nil {
			return err
		}
		// The name is bound into the seal: a sealed text that was moved to another row does not open.
		plain, err = v.Box.Open(name, s.Sealed)
		return err
	})
	return plain, err
}

// Unseal implements join.Secrets.
func (v secretsOf) Unseal(label string, sealed []byte) ([]byte, error) {
	return v.Box.Open(label, sealed)
}

// noteJoin hands an alarm about a join target on to the engine.
func (a *appliance) noteJoin(ctx context.Context, alarm join.Alarm) {
	err := a.engine.Ledger.NoteJoin(ctx, ledger.JoinAlarm{
		Target: alarm.Target, HostID: alarm.Host, SessionID: alarm.Session, Detail: alarm.Detail, Hint: alarm.Hint,
		IsOver: alarm.Kind == join.AlarmReachable,
	})
	if err != nil {
		a.log.Warn("alarm of a join target not stored", "target", alarm.Target, "detail", alarm.Detail, "err", err)
	}
}

// checkTarget looks whether hosts can join a target.
func (a *appliance) checkTarget(ctx context.Context, t inventory.JoinTarget) wire.TargetCheck {
	found := a.joiner.Check(ctx, t)
	out := wire.TargetCheck{Target: found.Target, Version: found.Version, IsGood: found.IsGood(), Results: []wire.TargetCheckResult{}}
	for _, r := range found.Results {
		out.Results = append(out.Results, wire.TargetCheckResult(r))
	}
	return out
}
