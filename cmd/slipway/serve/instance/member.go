package instance

import (
	"context"
	"fmt"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/duty"
)

// Member is this process among the instances of its database, of which one serves.
type Member struct {
	Duties *duty.Keeper
	// Store is for all work of the server. It writes nothing after another instance has taken over, also in a server that was paused.
	Store inventory.Store
	cfg   Config
	stop  context.CancelFunc
	left  chan error // gets the end of Duties.Run
}

// Join makes this process one of the instances of its database, and waits until it has the duty of the engine. One instance serves at a
// time. Others wait here: they have read nothing that can become old, and answer nobody.
func Join(ctx context.Context, cfg Config) (*Member, error) {
	duties, err := newKeeper(cfg)
	if err != nil {
		return nil, err
	}
	if cfg.Undrain {
		duties.Undrain()
	}
	duties.Want(inventory.DutyEngine)
	if err := duties.Register(ctx); err != nil {
		return nil, err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	m := &Member{Duties: duties, cfg: cfg, stop: stop, left: make(chan error, 1)}
	go func() { m.left <- duties.Run(running) }()
	err = m.standBy(ctx)
	if err == nil {
		m.Store, err = duties.Under(cfg.Store, inventory.DutyEngine)
	}
	if err != nil {
		m.Leave()
		return nil, err
	}
	return m, nil
}

// Leave gives the duty up, so that the next instance goes on at once.
func (m *Member) Leave() {
	m.stop()
	m.left <- <-m.left // it may be asked for again
}

// Stay returns when this instance may serve no longer, and nil when ctx ends. The parts of the server keep in memory what another instance
// may change from then on. So the server ends. systemd starts it again, and it stands by.
func (m *Member) Stay(ctx context.Context) error {
	taken := make(chan error, 1)
	go func() { taken <- m.Duties.Taken(ctx, inventory.DutyEngine) }()
	select {
	case err := <-m.left:
		m.left <- nil
		return err
	case err := <-taken:
		return err
	}
}

// standBy waits until this instance has the duty of the engine. Meanwhile it tells the admin which instance has it.
func (m *Member) standBy(ctx context.Context) error {
	waiting, end := context.WithCancel(ctx)
	defer end()
	held := make(chan error, 1)
	go func() {
		held <- m.Duties.While(waiting, inventory.DutyEngine, func(context.Context) error { return nil })
	}()
	told := ""
	for {
		select {
		case err := <-held:
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return err
		case err := <-m.left:
			m.left <- nil
			return err
		case <-time.After(2 * time.Second):
		}
		if now := m.whoServes(ctx); now != told {
			told = now
			fmt.Fprintf(m.cfg.Out, "standing by: %s\n", now)
			m.cfg.Log.Info("standing by", "reason", now)
		}
	}
}

// whoServes says, for people, why an instance stands by.
func (m *Member) whoServes(ctx context.Context) (text string) {
	err := m.cfg.Store.Read(ctx, func(tx inventory.Tx) error {
		r, err := m.Duties.Roster(tx)
		text = standing(r)
		return err
	})
	if err != nil {
		return fmt.Sprint("the database does not answer: ", err)
	}
	return text
}

// standing says why the instance whose roster this is has not the engine.
func standing(r duty.Roster) string {
	isDrained := false
	for _, p := range r.Peers {
		switch {
		case p.IsSelf:
			isDrained = p.IsDrained
		case p.IsLeader && p.Life != duty.Silent && p.Life != duty.Stopped:
			return fmt.Sprintf("instance %s serves; this one goes on if that one dies or stops", p.Name)
		}
	}
	if isDrained {
		return "no instance serves, and an admin has drained this one; slipway serve --undrain lets it serve"
	}
	return "no instance serves; this one goes on within seconds"
}
