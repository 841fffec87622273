package duty

import (
	"context"
	"time"
)

// While runs fn whenever the instance holds a duty, until ctx ends. The context of fn ends with the duty.
// While waits for fn then. It returns when fn returns by itself.
func (k *Keeper) While(ctx context.Context, name string, fn func(context.Context) error) error {
	for {
		changed := k.changes()
		g, ok := k.grant(name)
		if ok {
			if isOver, err := k.during(ctx, name, g.epoch, fn); isOver {
				return err
			}
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}

// during runs fn while the instance holds a duty in one epoch. IsOver says that While has ended as well.
func (k *Keeper) during(ctx context.Context, name string, epoch int64, fn func(context.Context) error) (isOver bool, err error) {
	held, end := context.WithCancel(ctx)
	defer end()
	done := make(chan error, 1)
	k.works.count(name, 1)
	go func() {
		defer k.works.count(name, -1)
		done <- fn(held)
	}()
	for {
		changed := k.changes()
		g, ok := k.grant(name)
		if !ok || g.epoch != epoch {
			end()
			<-done // what it says is that it was ended
			return false, nil
		}
		select {
		case err := <-done:
			return true, err
		case <-changed:
		case <-time.After(g.until - k.cfg.Elapsed()):
		}
	}
}

// Taken waits until another instance has had a duty that this one has now, and returns a Conflict then. It returns nil when ctx ends. While
// the database does not answer, nobody can take a duty: Taken waits for its next answer.
func (k *Keeper) Taken(ctx context.Context, name string) error {
	first, ok := k.grant(name)
	if !ok {
		return k.lost(name)
	}
	missedAt := int64(-1) // how often the database had answered when the duty was missing first
	for {
		changed := k.changes()
		g, has := (*k.held.Load())[name] // its time may be over: that alone does not mean that somebody took it
		answers := k.answers.Load()
		switch {
		case has && g.epoch != first.epoch, !has && missedAt >= 0 && answers > missedAt:
			return k.lost(name)
		case has:
			missedAt = -1
		case missedAt < 0:
			missedAt = answers
		}
		var again <-chan time.Time
		if !has {
			again = time.After(retryEvery)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-again:
		}
	}
}
