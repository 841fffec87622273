package duty

import (
	"context"
	"maps"
	"slices"
	"time"

	"slipway.dev/slipway/inventory"
)

// Run shows signs of life, and takes and gives up duties, until ctx ends. Then it gives up what it has, at once. It returns a Conflict when
// another process runs as this instance.
func (k *Keeper) Run(ctx context.Context) error {
	defer k.leave()
	for {
		wait, err := k.beat(ctx)
		if inventory.IsKind(err, inventory.Conflict) {
			return err
		}
		var timer <-chan time.Time
		if wait > 0 {
			timer = time.After(wait)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-k.poked:
		case <-timer:
		}
	}
}

// beat is one transaction of Run. It returns when the next one is due, 0 for no time.
func (k *Keeper) beat(ctx context.Context) (wait time.Duration, err error) {
	wanted := k.wants()
	k.drop(func(name string) bool { return !wanted[name] }) // before the others can read it
	var t turn
	asked := k.cfg.Elapsed()
	within, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	err = k.cfg.Store.Write(within, func(tx inventory.Tx) error {
		t = turn{keeper: k, tx: tx, wanted: wanted, held: map[string]int64{}}
		return t.run()
	})
	switch {
	case inventory.IsKind(err, inventory.Conflict):
		return 0, inventory.Errorf(inventory.Conflict, "this instance, %s, has lost its place in the database: %v", k.cfg.Name, err).
			WithHint("it was away, and another process was started with its name or a copy of its data directory: slipway instance list")
	case err != nil && ctx.Err() != nil:
		return 0, nil
	case err != nil:
		k.cutOff(err)
		return retryEvery, nil
	}
	k.hold(t.held, asked)
	k.show(t.others())
	k.answers.Add(1)
	t.log()
	if k.isCutOff {
		k.isCutOff = false
		k.cfg.Log.Info("the database answers again", "duties", slices.Sorted(maps.Keys(t.held)))
	}
	if k.isDrained != t.self.IsDrained {
		k.isDrained = t.self.IsDrained
		k.cfg.Log.Info("an admin has changed whether this instance holds duties", "drained", k.isDrained)
		k.poke()
	}
	if k.cfg.IsAlone {
		return 0, nil
	}
	return t.wait, nil
}

// cutOff notes that the database did not answer. What is held ends by itself.
func (k *Keeper) cutOff(err error) {
	k.watch.forget()
	k.show(k.seen.Load().others)
	if !k.isCutOff {
		k.isCutOff = true
		k.cfg.Log.Warn("the database does not answer: the duties of this instance end soon, unless it does again", "err", err)
	}
	now := k.cfg.Elapsed()
	k.drop(func(name string) bool {
		g := (*k.held.Load())[name]
		if now < g.until {
			return false
		}
		k.cfg.Log.Warn("duty has ended here: the database has not answered for too long", "duty", name)
		return true
	})
}
