package instance

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/ahead"
	"slipway.dev/slipway/inventory/sleep"
	"slipway.dev/slipway/provision/duty"
)

// Member is this process among the instances of its database. One of them has the engine, the leader. The others serve machines and people
// on its behalf, and one of them becomes the leader when it dies.
type Member struct {
	Duties *duty.Keeper
	// Store is for all work of the leader. It reads at any time. It writes once Lead has returned, and nothing after another instance has
	// taken over, also in a server that was paused.
	Store inventory.Store
	ID    string // of this instance
	Name  string // what admins call it; "" if there can be no other

	cfg      Config
	led      *ledStore
	ear      ear
	fresh    fresh
	leader   atomic.Pointer[inventory.Instance] // the last known; nil: none was ever seen
	term     atomic.Pointer[term]
	isLast   atomic.Bool // nobody has the engine, and this instance is drained
	isCutOff atomic.Bool // the leader lives, and has not answered this instance for some seconds
	stop     context.CancelFunc
	left     chan error // gets the end of Duties.Run
}

// Join makes this process one of the instances of its database, and has it take the duty of the engine when that is free.
func Join(ctx context.Context, cfg Config) (*Member, error) {
	duties, is, err := newKeeper(cfg)
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
	led := &ledStore{Store: cfg.Store}
	m := &Member{Duties: duties, Store: led, ID: is.ID, led: led, cfg: cfg, stop: stop, left: make(chan error, 1)}
	if !cfg.IsAlone {
		m.Name = is.Name
	}
	m.term.Store(newTerm(""))
	go func() { m.left <- duties.Run(running) }()
	return m, nil
}

// ledStore is the store of the leader, in the epoch in which it leads.
type ledStore struct {
	inventory.Store
	fenced atomic.Pointer[inventory.Store] // nil before this instance leads
}

// Write implements inventory.Store.
func (l *ledStore) Write(ctx context.Context, fn func(inventory.Tx) error) error {
	return l.WriteAhead(ctx, func(inventory.Tx) {}, fn)
}

// WriteAhead implements ahead.Store.
func (l *ledStore) WriteAhead(ctx context.Context, expect func(inventory.Tx), fn func(inventory.Tx) error) error {
	s := l.fenced.Load()
	if s == nil {
		return inventory.Errorf(inventory.Unavailable, "this instance does not have the engine").
			WithHint("slipway instance list shows which instance has it")
	}
	mayWrite := false
	err := ahead.Write(ctx, *s, expect, func(tx inventory.Tx) error {
		mayWrite = true
		return fn(tx)
	})
	// Another instance has the engine. For the client that is no Conflict: its next try, at that instance, may succeed.
	if e, ok := errors.AsType[*inventory.Error](err); ok && !mayWrite && e.Kind == inventory.Conflict {
		lost := *e
		lost.Kind = inventory.Unavailable
		return &lost
	}
	return err
}

// Leave gives all duties up, so that other instances go on at once.
func (m *Member) Leave() {
	m.stop()
	m.left <- <-m.left // it may be asked for again
}

// Stay returns when this instance may lead no longer, and nil when ctx ends. The parts of the leader keep in memory what another instance
// may change from then on. So the server ends. systemd starts it again, and it serves on behalf of the new leader.
func (m *Member) Stay(ctx context.Context) error {
	taken := make(chan error, 1)
	go func() { taken <- m.Duties.Taken(ctx, inventory.DutyEngine) }()
	select {
	case err := <-m.left:
		m.left <- nil
		return err
	case err := <-taken:
		return m.because(ctx, err)
	}
}

// because says why this instance has lost the engine, if an admin wanted it.
func (m *Member) because(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	isDrained := false
	_ = m.cfg.Store.Read(ctx, func(tx inventory.Tx) error { // without an answer, the reason stays what it is
		r, err := m.Duties.Roster(tx)
		for _, p := range r.Peers {
			isDrained = isDrained || p.IsSelf && p.IsDrained
		}
		return err
	})
	if isDrained {
		return &inventory.Error{
			Kind: inventory.Conflict, Msg: "an admin has drained this instance, so another one takes the engine", Err: err,
			Hint: "start this server again, as systemd does: then it serves on behalf of the other one",
		}
	}
	return err
}

const (
	// lookEvery is how often an instance without the engine reads the name of the leader.
	lookEvery = 500 * time.Millisecond
	// freeFor is how long a start waits for an engine that nobody has: a keeper takes it within a second.
	freeFor = 2 * time.Second
)

// Lead waits until this instance has the duty of the engine. Meanwhile it tells the admin which instance has it.
func (m *Member) Lead(ctx context.Context) error {
	waiting, end := context.WithCancel(ctx)
	defer end()
	held := make(chan error, 1)
	go func() {
		held <- m.Duties.While(waiting, inventory.DutyEngine, func(context.Context) error { return nil })
	}()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	told := ""
	for {
		select {
		case err := <-held:
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				return err
			}
			m.Duties.Tell(func(t *duty.Told) { t.CutOff = "" })
			s, err := m.Duties.Under(m.cfg.Store, inventory.DutyEngine)
			if err == nil {
				m.led.fenced.Store(&s)
			}
			return err
		case err := <-m.left:
			m.left <- nil
			return err
		case <-tick.C:
		}
		if now := m.look(ctx); now != told && now != "" {
			told = now
			fmt.Fprintln(m.cfg.Out, now)
			m.cfg.Log.Info(now)
		}
	}
}

// LeadAtOnce is Lead for an instance that finds the engine free. ok is false if another instance has it, or if this one may not take it
// yet. An instance alone waits for its engine, however slow its disk is: nobody else leads.
func (m *Member) LeadAtOnce(ctx context.Context) (ok bool, err error) {
	if m.cfg.IsAlone {
		err := m.Lead(ctx)
		return err == nil, err
	}
	for until := time.Now().Add(freeFor); time.Now().Before(until); {
		if m.Duties.Holds(inventory.DutyEngine) {
			err := m.Lead(ctx)
			return err == nil, err
		}
		if m.look(ctx); m.leader.Load() != nil {
			return false, nil
		}
		if err := sleep.For(ctx, 10*time.Millisecond); err != nil {
			return false, err
		}
	}
	return false, nil
}

// Leads reports whether Lead has returned without an error.
func (m *Member) Leads() bool { return m.led.fenced.Load() != nil }

// Leader returns the links of the instance that has the engine, as it was known last; none if nobody has been seen with it.
func (m *Member) Leader() []string {
	if i := m.leader.Load(); i != nil {
		return i.Links
	}
	return nil
}

// Admit refuses another instance that the list of the database does not have, or has as stopped. It reads the list again for one that it
// does not know, because that one may have started this moment. It refuses with Unavailable, so that an instance asks again.
func (m *Member) Admit(id string) error {
	others, isKnown := m.Duties.Others()
	if !isKnown {
		return nil // this instance has just started, and has not read the list yet
	}
	for _, p := range others {
		if p.ID == id && p.Run != "" {
			return nil
		}
	}
	if m.fresh.runs(m.cfg.Store, id) {
		return nil
	}
	return inventory.Errorf(inventory.Unavailable,
		"instance %q is not in the list: an admin has deleted it, or it has not started", inventory.Clean(id, 60)).
		WithHint("slipway instance list shows the instances; one that reaches the database again starts, and joins the list")
}

// Heard notes whether the leader has answered a call, as the error says. One goroutine calls it. When the leader lives, and does not answer
// for some time, the other instances read that in the row of this one.
func (m *Member) Heard(err error) {
	leader, life := "", duty.Unknown
	if i := m.leader.Load(); i != nil {
		leader = i.ID
	}
	others, _ := m.Duties.Others()
	for _, p := range others {
		if p.ID == leader {
			life = p.Life
		}
	}
	cutOff := m.ear.hear(leader, life, err, time.Now())
	m.isCutOff.Store(cutOff != "")
	m.Duties.Tell(func(t *duty.Told) { t.CutOff = cutOff })
}

// IsCutOff reports whether the leader lives, and has not answered this instance for some seconds.
func (m *Member) IsCutOff() bool { return m.isCutOff.Load() }

// term is how long one instance has the engine, from its start on.
type term struct {
	leader string // "" before the first is known
	ctx    context.Context
	end    context.CancelFunc
}

func newTerm(leader string) *term {
	ctx, end := context.WithCancel(context.Background())
	return &term{leader, ctx, end}
}

// Term returns a context that ends when another instance has taken the engine, or the leader has been started again. Stop to wait for the
// old leader then: one that was paused or lost power closes no connection.
func (m *Member) Term() context.Context { return m.term.Load().ctx }

// note keeps who the leader is; nil: nobody has the engine.
func (m *Member) note(leader *inventory.Instance) {
	m.leader.Store(leader)
	if leader == nil {
		return // the last one may still answer what it was asked
	}
	if old, now := m.term.Load(), leader.ID+" "+leader.Run; old.leader != now {
		m.term.Store(newTerm(now))
		old.end()
	}
}

// look finds the leader in the database, and returns a line about it for people. The line is "" if this instance is the leader.
func (m *Member) look(ctx context.Context) (text string) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	err := m.cfg.Store.Read(ctx, func(tx inventory.Tx) error {
		r, err := m.Duties.Roster(tx)
		if err != nil {
			return err
		}
		var leader *inventory.Instance
		for _, p := range r.Peers {
			if p.IsLeader && p.IsSelf {
				text = ""
				return nil
			}
			if p.IsLeader {
				leader = &p.Instance
			}
		}
		m.note(leader)
		text = standing(r)
		m.isLast.Store(text == drainedLast)
		return nil
	})
	if err != nil { // who it was stays true until another has it
		return fmt.Sprint("the database does not answer: ", err)
	}
	return text
}

// drainedLast is what standing says when nobody will take the engine before an admin acts.
const drainedLast = "no instance has the engine, and an admin has drained this one; slipway serve --undrain lets it take the engine"

// Absent says why the leader does not answer, and what to do.
func (m *Member) Absent() *inventory.Error {
	switch {
	case m.isLast.Load():
		return inventory.Errorf(inventory.Unavailable, "no instance has the engine, and an admin has drained this one").
			WithHint("start another instance; if there is none, start this one again with --undrain")
	case m.leader.Load() == nil:
		return inventory.Errorf(inventory.Unavailable, "no instance has the engine at the moment").
			WithHint("another takes it within seconds; if none does, see the logs of the instances")
	}
	return inventory.Errorf(inventory.Unavailable, "the instance with the engine does not answer").
		WithHint("if it does not come back, another instance takes over within seconds; this one serves machines meanwhile")
}

// standing says why the instance whose roster this is has not the engine.
func standing(r duty.Roster) string {
	isDrained := false
	for _, p := range r.Peers {
		switch {
		case p.IsSelf:
			isDrained = p.IsDrained
		case p.IsLeader && p.Life != duty.Silent && p.Life != duty.Stopped:
			return fmt.Sprintf("instance %s has the engine; this one serves on its behalf, and takes over if that one dies or stops", p.Name)
		}
	}
	if isDrained {
		return drainedLast
	}
	return "no instance has the engine; this one takes it within seconds"
}
