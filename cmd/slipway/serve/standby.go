package serve

import (
	"context"
	"fmt"
	"time"

	"slipway.dev/slipway/cmd/slipway/serve/instance"
	"slipway.dev/slipway/inventory"
)

// standBy makes this process one of the instances of its database, and waits until it has the duty of the engine. One instance serves at a
// time. Others wait here: they have read nothing that can become old, and answer nobody. leave gives the duty up, so that the next one goes
// on at once.
func (a *appliance) standBy(ctx context.Context) (leave func(), err error) {
	if a.duties, err = instance.New(instance.Config{
		Store: a.store, DataDir: a.cfg.DataDir, Name: a.cfg.Instance, Addresses: ourAddresses(a.cfg.Interfaces), Version: a.cfg.Version,
		IsAlone: !a.cfg.storage().IsServer(), Log: a.log,
	}); err != nil {
		return nil, err
	}
	// A key that does not fit shows now, and not when the other instance has died.
	if _, _, err := openSecrets(ctx, a.store, a.cfg.DataDir); err != nil {
		return nil, err
	}
	a.duties.Want(inventory.DutyEngine)
	if err := a.duties.Register(ctx); err != nil {
		return nil, err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	a.left = make(chan error, 1)
	go func() { a.left <- a.duties.Run(running) }()
	leave = func() {
		stop()
		a.left <- <-a.left // it stays there for stay
	}
	if err := a.await(ctx); err != nil {
		leave()
		return nil, err
	}
	return leave, nil
}

// await waits until this instance has the duty of the engine, and tells the admin who has it meanwhile.
func (a *appliance) await(ctx context.Context) error {
	waiting, end := context.WithCancel(ctx)
	defer end()
	held := make(chan error, 1)
	go func() {
		held <- a.duties.While(waiting, inventory.DutyEngine, func(context.Context) error { return nil })
	}()
	told := ""
	for {
		select {
		case err := <-held:
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return err
		case err := <-a.left:
			a.left <- nil
			return err
		case <-time.After(2 * time.Second):
		}
		if now := a.whoServes(ctx); now != told {
			told = now
			fmt.Fprintf(a.cfg.Out, "standing by: %s\n", now)
			a.log.Info("standing by", "reason", now)
		}
	}
}

// whoServes says, for people, why this instance waits.
func (a *appliance) whoServes(ctx context.Context) (text string) {
	err := a.store.Read(ctx, func(tx inventory.Tx) error {
		d, err := tx.FindDuty(inventory.DutyEngine)
		if err != nil {
			return err
		}
		all, err := tx.ListInstances()
		text = "no instance serves, and this one may not: was it drained?"
		for _, i := range all {
			if i.ID == d.Holder {
				text = fmt.Sprintf("instance %s serves; this one goes on if that one dies or stops", i.Name)
			}
		}
		return err
	})
	if err != nil {
		return fmt.Sprint("the database does not answer: ", err)
	}
	return text
}

// stay returns when this instance may serve no longer. Its parts keep in memory what another one may change now, so that the server ends.
// systemd starts it again, and it stands by.
func (a *appliance) stay(ctx context.Context) error {
	taken := make(chan error, 1)
	go func() { taken <- a.duties.Taken(ctx, inventory.DutyEngine) }()
	select {
	case err := <-a.left:
		a.left <- nil
		return err
	case err := <-taken:
		return err
	}
}
