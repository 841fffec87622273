package duty

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"slipway.dev/slipway/inventory"
)

const rack1 = "network/rack1"

func TestDecide(t *testing.T) {
	self := inventory.Instance{ID: "1", Name: "a", Run: "r1"}
	drained, cutOff := self, self
	cutOff.CutOff = "no answer from 10.0.0.1:8069"
	drained.IsDrained = true
	other := &inventory.Instance{ID: "2", Name: "b", Run: "r2"}
	stopped := &inventory.Instance{ID: "2", Name: "b"}
	of := func(name, holder string) inventory.Duty {
		return inventory.Duty{Name: name, Holder: holder, Epoch: 5, Reason: "instance c stopped"}
	}
	for _, c := range []struct {
		name   string
		q      question
		is     verdict
		reason string
		wait   time.Duration
	}{
		{"a new one", question{self: self, wants: true, duty: inventory.Duty{Name: rack1}}, take, "nobody had it", 0},
		{"a new one that others may do", question{self: self, duty: inventory.Duty{Name: rack1}}, leave, "", 0},
		{"a free one", question{self: self, wants: true, duty: of(rack1, "")}, take, "instance c stopped", 0},
		{"a free one, drained", question{self: drained, wants: true, duty: of(rack1, "")}, leave, "", 0},
		{"our own", question{self: self, wants: true, duty: of(rack1, "1"), holder: &self, silent: time.Hour}, keep, "", 0},
		{"our own, and just drained", question{self: drained, wants: true, duty: of(rack1, "1"), holder: &self}, keep, "", 0},
		{"our own, drained and not in use", question{self: drained, duty: of(rack1, "1"), holder: &self}, give, "instance a was drained", 0},
		{"our own, no longer wanted", question{self: self, duty: of(rack1, "1"), holder: &self}, give, "instance a does not do that work any more", 0},
		{"our own, cut off", question{self: cutOff, wants: true, duty: of(rack1, "1"), holder: &cutOff}, keep, "", 0},
		{
			"our own, cut off and left to others",
			question{self: cutOff, duty: of(rack1, "1"), holder: &cutOff},
			give,
			"instance a gets no answer from the instance with the engine", 0,
		},
		{"our own of before", question{self: self, wants: true, isFormer: true, duty: of("engine", "1"), holder: &self, silent: 8 * time.Second}, leave, "", time.Second},
		{"our own of before, silent", question{self: self, wants: true, isFormer: true, duty: of("engine", "1"), holder: &self, silent: 9 * time.Second}, take, "instance a was started again", 0},
		{"another's", question{self: self, wants: true, duty: of(rack1, "2"), holder: other, silent: 2 * time.Second}, leave, "", time.Second},
		{"another's that is silent", question{self: self, wants: true, duty: of(rack1, "2"), holder: other, silent: 3 * time.Second}, take, "instance b gave no sign of life for 3s", 0},
		{"the engine, after the term of a network", question{self: self, wants: true, duty: of("engine", "2"), holder: other, silent: 3 * time.Second}, leave, "", 6 * time.Second},
		{"the engine of one that is silent", question{self: self, wants: true, duty: of("engine", "2"), holder: other, silent: 9 * time.Second}, take, "instance b gave no sign of life for 9s", 0},
		{
			"another's that stopped while it was busy",
			question{self: self, wants: true, duty: of(rack1, "2"), holder: stopped, silent: 3 * time.Second},
			take, "instance b stopped without giving it up", 0,
		},
		{
			"another's, in a file of SQLite",
			question{self: self, wants: true, isAlone: true, duty: of(rack1, "2"), holder: other},
			take, "instance b does not use this database", 0,
		},
		{"another's that is silent, drained", question{self: drained, wants: true, duty: of(rack1, "2"), holder: other, silent: time.Hour}, leave, "", 0},
		{"another's that is silent, not wanted", question{self: self, duty: of(rack1, "2"), holder: other, silent: time.Hour}, leave, "", 0},
		{"that of a deleted instance", question{self: self, wants: true, duty: of(rack1, "3")}, take, "its instance was deleted", 0},
	} {
		v, reason, wait := decide(c.q)
		if v != c.is || reason != c.reason || wait != c.wait {
			t.Errorf("%s: %v, %q, wait %v; want %v, %q, wait %v", c.name, v, reason, wait, c.is, c.reason, c.wait)
		}
	}
}

func TestSilenceIsNeverCountedTooLong(t *testing.T) {
	w := watch{}
	at := func(run string, n int64) []inventory.Instance {
		return []inventory.Instance{{ID: "2", Run: run, HeartbeatN: n}}
	}
	for _, c := range []struct {
		name  string
		sees  []inventory.Instance
		now   time.Duration
		quiet time.Duration
	}{
		{"one that was never seen", nil, 10, 0},
		{"first sight", at("r", 1), 100, 0},
		{"the same again", at("r", 1), 130, 30},
		{"a new sign", at("r", 2), 140, 0},
		{"it is not there", nil, 150, 10},
		{"another run with the same number", at("s", 2), 160, 0},
		{"the same again", at("s", 2), 190, 30},
	} {
		w.note(c.sees, c.now)
		if got := w.silent("2", c.now); got != c.quiet {
			t.Errorf("%s: silent for %v, want %v", c.name, got, c.quiet)
		}
	}
	w.forget()
	if got := w.silent("2", 1000); got != 0 {
		t.Errorf("silent for %v after all was forgotten", got)
	}
}

// server is an instance for a test of its own, over a good line.
type server struct {
	*Keeper
	line  *line
	link  *link
	stop  context.CancelFunc
	ended chan struct{} // closed when Run has returned
	err   error         // what it returned
}

func (w *world) server(id, name string) *server {
	l := &line{dead: make(chan struct{})}
	s := &server{line: l, link: &link{world: w, line: l, rnd: rand.New(rand.NewPCG(7, uint64(len(id+name))))}, ended: make(chan struct{})}
	s.Keeper = New(Config{
		Store: s.link, Instance: inventory.Instance{ID: id, Name: name, Addresses: []string{"10.0.0." + id}},
		Elapsed: func() time.Duration { return time.Since(w.from) },
	})
	return s
}

// runs registers a server and lets it do some duties.
func (s *server) runs(t *testing.T, wants ...string) *server {
	t.Helper()
	s.Want(wants...)
	if err := s.Register(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	go func() {
		defer close(s.ended)
		s.err = s.Run(ctx)
	}()
	return s
}

func (s *server) kill() {
	close(s.line.dead)
	s.stop()
	<-s.ended
}

// until waits for something, and returns how long it took.
func until(t *testing.T, what string, is func() bool) time.Duration {
	t.Helper()
	from := time.Now()
	for !is() {
		if time.Since(from) > time.Minute {
			t.Fatalf("%s: not within a minute", what)
		}
		time.Sleep(time.Millisecond)
	}
	return time.Since(from)
}

func (s *server) has(name string) func() bool { return func() bool { return s.Holds(name) } }

func saysEvent(t *testing.T, w *world, want string) {
	t.Helper()
	events := w.rows().events
	for _, e := range events {
		if e == want {
			return
		}
	}
	t.Errorf("no event says %q:\n%s", want, strings.Join(events, "\n"))
}

func TestADutyMovesWhenItsHolder(t *testing.T) {
	for _, c := range []struct {
		name      string
		ends      func(w *world, a *server)
		not, most time.Duration // how long nobody has the network
		engine    time.Duration // and at most the engine
		event     string
	}{
		{"stops", func(_ *world, a *server) { a.stop(); <-a.ended }, 0, 1100 * time.Millisecond, 1100 * time.Millisecond, "instance b took duty engine: instance a stopped"},
		{"is killed", func(_ *world, a *server) { a.kill() }, 2 * time.Second, 4100 * time.Millisecond, 10100 * time.Millisecond, "instance b took duty engine: instance a gave no sign of life for 9s"},
		{"is cut off", func(_ *world, a *server) {
			a.line.change(func(l *line) { l.cutUntil = time.Now().Add(time.Hour) })
		}, 2 * time.Second, 5100 * time.Millisecond, 11100 * time.Millisecond, "instance b took duty network/rack1: instance a gave no sign of life for 3s"},
		{"is drained", func(w *world, _ *server) {
			_ = w.edit(func(tx inventory.Tx) error {
				i, err := tx.FindInstance("1")
				i.IsDrained = true
				if err == nil {
					err = tx.SaveInstance(i)
				}
				return err
			})
		}, 0, 2200 * time.Millisecond, 2200 * time.Millisecond, "nobody has duty engine: instance a was drained"},
		{"does something else", func(_ *world, a *server) { a.Want() }, 0, 1100 * time.Millisecond, 1100 * time.Millisecond, "instance b took duty network/rack1: instance a does not do that work any more"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(1)
				a := w.server("1", "a").runs(t, inventory.DutyEngine, rack1)
				until(t, "a has it", a.has(rack1))
				b := w.server("2", "b").runs(t, inventory.DutyEngine, rack1)
				time.Sleep(10 * time.Second)
				if !a.Holds(rack1) || !a.Holds(inventory.DutyEngine) || b.Holds(rack1) || b.Holds(inventory.DutyEngine) {
					t.Fatal("the first one has lost its duties for nothing")
				}
				c.ends(w, a)
				took := until(t, "b has the network", b.has(rack1))
				engine := took + until(t, "b has the engine", b.has(inventory.DutyEngine))
				if took < c.not || took > c.most || engine > c.engine {
					t.Errorf("the network went over after %v, want %v to %v; the engine after %v, want at most %v", took, c.not, c.most, engine, c.engine)
				}
				saysEvent(t, w, c.event)
				if a.Holds(rack1) || a.Holds(inventory.DutyEngine) {
					t.Error("both have it")
				}
				a.line.change(func(l *line) { l.cutUntil = time.Time{} })
				a.stop()
				b.stop()
				<-a.ended
				<-b.ended
			})
		})
	}
}

func TestDutiesStayWhenTheDatabaseWasAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(1)
		a := w.server("1", "a").runs(t, rack1)
		until(t, "a has it", a.has(rack1))
		b := w.server("2", "b").runs(t, rack1)
		time.Sleep(5 * time.Second)
		for _, s := range []*server{a, b} {
			s.line.change(func(l *line) { l.cutUntil = time.Now().Add(30 * time.Second) })
		}
		if took := until(t, "a stops", func() bool { return !a.Holds(rack1) }); took > 3*time.Second {
			t.Errorf("without the database, it went on for %v", took)
		}
		time.Sleep(35 * time.Second)
		if events := w.rows().events; !a.Holds(rack1) || len(events) != 3 { // both started, and a took it
			t.Errorf("the duty moved: %v", events)
		}
		a.stop()
		b.stop()
		<-a.ended
		<-b.ended
	})
}

// Taken tells a duty that another instance has taken from one that only could not be renewed.
func TestADutyIsTakenByAnotherInstanceOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(1)
		a := w.server("1", "a").runs(t, rack1)
		until(t, "a has it", a.has(rack1))
		b := w.server("2", "b").runs(t, rack1)
		taken := make(chan error, 1)
		go func() { taken <- a.Taken(context.Background(), rack1) }()
		time.Sleep(5 * time.Second)
		for _, s := range []*server{a, b} { // the database is away for both
			s.line.change(func(l *line) { l.cutUntil = time.Now().Add(30 * time.Second) })
		}
		time.Sleep(40 * time.Second)
		select {
		case err := <-taken:
			t.Fatalf("nobody has taken it: %v", err)
		default:
		}
		a.line.change(func(l *line) { l.cutUntil = time.Now().Add(30 * time.Second) })
		until(t, "b has it", b.has(rack1))
		b.stop() // gives it up, so that a has it again: what it has kept in memory is old all the same
		<-b.ended
		if err := <-taken; !inventory.IsKind(err, inventory.Conflict) {
			t.Errorf("b had it meanwhile: %v", err)
		}
		until(t, "a has it again", a.has(rack1))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := a.Taken(ctx, rack1); err != nil {
			t.Errorf("nobody has taken it: %v", err)
		}
		a.stop()
		<-a.ended
		if err := a.Taken(t.Context(), rack1); !inventory.IsKind(err, inventory.Conflict) {
			t.Errorf("an instance without the duty: %v", err)
		}
	})
}

func underRack1(t *testing.T, s *server) inventory.Store {
	t.Helper()
	store, err := s.Under(s.link, rack1)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func TestAPausedHolderWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(1)
		a := w.server("1", "a").runs(t, rack1)
		until(t, "a has it", a.has(rack1))
		b := w.server("2", "b").runs(t, rack1)
		time.Sleep(5 * time.Second)
		// It is paused within a write, after it has looked whether it has the duty.
		a.line.change(func(l *line) { l.resumed = make(chan struct{}) })
		wrote := make(chan error, 1)
		ran := false
		store := underRack1(t, a)
		go func() {
			wrote <- store.Write(t.Context(), func(inventory.Tx) error { ran = true; return nil })
		}()
		time.Sleep(time.Minute)
		if !b.Holds(rack1) {
			t.Fatal("nobody has taken over")
		}
		a.line.resume()
		if err := <-wrote; !inventory.IsKind(err, inventory.Conflict) || !strings.Contains(err.Error(), "lost duty network/rack1") || ran {
			t.Errorf("after the pause: %v (ran: %v)", err, ran)
		}
		if a.Holds(rack1) {
			t.Error("after the pause it believes that it has the duty")
		}
		nothing := func(inventory.Tx) error { return nil }
		if err := store.Write(t.Context(), nothing); !inventory.IsKind(err, inventory.Conflict) {
			t.Errorf("a later write: %v", err)
		}
		if _, err := a.Under(a.link, rack1); !inventory.IsKind(err, inventory.Conflict) {
			t.Errorf("work begins although b has the duty: %v", err)
		}
		if err := store.Read(t.Context(), nothing); err != nil {
			t.Errorf("a read: %v", err)
		}
		if err := a.link.Write(t.Context(), nothing); err != nil {
			t.Errorf("a write that is no duty: %v", err)
		}
		if err := underRack1(t, b).Write(t.Context(), nothing); err != nil {
			t.Errorf("the new holder writes: %v", err)
		}
		a.stop()
		b.stop()
		<-a.ended
		<-b.ended
	})
}

func TestASecondProcessIsRefusedWhileTheFirstLives(t *testing.T) {
	for _, c := range []struct{ name, id, called, says string }{
		{"a copy of the data directory", "1", "a", "the data directory is a copy: instance a has the same and runs at 10.0.0.1"},
		{"a copy with another name", "1", "c", "the data directory is a copy: instance a has the same and runs at 10.0.0.1"},
		{"the same name", "2", "a", "another instance with the name a runs at 10.0.0.1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(1)
				a := w.server("1", "a").runs(t, rack1, inventory.DutyEngine)
				time.Sleep(5 * time.Second)
				second := w.server(c.id, c.called)
				if err := second.Register(t.Context()); !inventory.IsKind(err, inventory.Conflict) || !strings.Contains(err.Error(), c.says) {
					t.Fatalf("the second start: %v", err)
				}
				time.Sleep(5 * time.Second)
				if !a.Holds(rack1) {
					t.Error("the first one lost its duties")
				}
				a.kill()
				third := w.server(c.id, c.called).runs(t, rack1, inventory.DutyEngine) // after a power cut nothing says that the first is gone
				network := until(t, "the third has the network", third.has(rack1))
				until(t, "the third has the engine", third.has(inventory.DutyEngine))
				t.Logf("after a kill: the network is served again %v after the start was let in", network)
				third.stop()
				<-third.ended
				again := w.server(c.id, c.called)
				from := time.Now()
				again.runs(t, rack1)
				until(t, "it has it", again.has(rack1))
				if took := time.Since(from); took > 100*time.Millisecond {
					t.Errorf("a start after a clean stop took %v", took)
				}
				again.stop()
				<-again.ended
			})
		})
	}
}

// TestTheFirstEndsWhenACopyTookItsPlace: it was paused for so long that it seemed to be gone.
func TestTheFirstEndsWhenACopyTookItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(1)
		a := w.server("1", "a").runs(t, rack1)
		until(t, "a has it", a.has(rack1))
		a.line.change(func(l *line) { l.resumed = make(chan struct{}) })
		b := w.server("1", "a").runs(t, rack1)
		until(t, "the copy has it", b.has(rack1))
		a.line.resume()
		<-a.ended
		if !inventory.IsKind(a.err, inventory.Conflict) || !strings.Contains(a.err.Error(), "has lost its place") {
			t.Errorf("the first one ended with %v", a.err)
		}
		if a.Holds(rack1) || !b.Holds(rack1) {
			t.Error("the first one has the duty")
		}
		b.stop()
		<-b.ended
	})
}

func TestAnInstanceThatIsAloneWritesNoSignsOfLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(1)
		for range 3 {
			a := w.server("1", "a")
			a.cfg.IsAlone = true
			a.runs(t, inventory.DutyEngine)
			if took := until(t, "it has the engine", a.has(inventory.DutyEngine)); took > 100*time.Millisecond {
				t.Errorf("it took the engine after %v", took)
			}
			a.Want(inventory.DutyEngine, rack1)
			until(t, "it has the network", a.has(rack1))
			was := w.rows().instances["1"].HeartbeatN
			time.Sleep(24 * time.Hour)
			if n := w.rows().instances["1"].HeartbeatN - was; n != 0 || !a.Holds(rack1) {
				t.Errorf("%d signs of life in a day; has the network: %v", n, a.Holds(rack1))
			}
			a.Want(inventory.DutyEngine)
			until(t, "it gives the network up", func() bool { return !a.Holds(rack1) })
			a.kill()
		}
		if events := w.rows().events; len(events) > 0 {
			t.Errorf("events: %v", events)
		}
	})
}

func TestWorkRunsWhileTheDutyIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(1)
		a, b := w.server("1", "a").runs(t, rack1), w.server("2", "b")
		var running atomic.Int32
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- a.While(ctx, rack1, func(ctx context.Context) error {
				running.Add(1)
				defer running.Add(-1)
				<-ctx.Done()
				return ctx.Err()
			})
		}()
		runs := func(n int32) func() bool { return func() bool { return running.Load() == n } }
		until(t, "it runs", runs(1))
		a.line.change(func(l *line) { l.cutUntil = time.Now().Add(time.Minute) })
		b.runs(t, rack1)
		until(t, "b has it", b.has(rack1))
		if running.Load() != 0 {
			t.Error("the work goes on at a while b has the duty")
		}
		time.Sleep(time.Minute)
		b.stop()
		<-b.ended
		until(t, "it runs again", runs(1))
		cancel()
		if err := <-ended; err != nil && ctx.Err() == nil {
			t.Error(err)
		}
		failed := inventory.Errorf(inventory.Internal, "broken")
		if err := a.While(t.Context(), rack1, func(context.Context) error { return failed }); err != failed {
			t.Errorf("While returned %v", err)
		}
		a.stop()
		<-a.ended
	})
}

func TestALookTakesWhatWasGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(1)
		a := w.server("1", "a").runs(t, rack1)
		until(t, "a has it", a.has(rack1))
		b := w.server("2", "b").runs(t, rack1)
		time.Sleep(300 * time.Millisecond)
		a.stop()
		<-a.ended
		b.Look()
		if took := until(t, "b has it", b.has(rack1)); took > 50*time.Millisecond {
			t.Errorf("b took it after %v", took)
		}
		b.stop()
		<-b.ended
	})
}

// TestADutyIsGivenUpAfterItsWork: another instance would send the same command to a machine while the first one still speaks to it.
func TestADutyIsGivenUpAfterItsWork(t *testing.T) {
	for _, c := range []struct {
		name string
		ends func(a *server)
	}{
		{"no longer wanted", func(a *server) { a.Want() }},
		{"stopped", func(a *server) { a.stop() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(1)
				a := w.server("1", "a").runs(t, rack1)
				b := w.server("2", "b").runs(t, rack1)
				ctx, cancel := context.WithCancel(t.Context())
				var running atomic.Bool
				ended := make(chan error, 1)
				go func() {
					ended <- a.While(ctx, rack1, func(ctx context.Context) error {
						running.Store(true)
						<-ctx.Done()
						time.Sleep(2 * time.Second) // a controller answers late
						running.Store(false)
						return nil
					})
				}()
				until(t, "it runs", running.Load)
				c.ends(a)
				took := until(t, "b has it", func() bool {
					if b.Holds(rack1) && running.Load() {
						t.Error("b has it while a works")
					}
					return b.Holds(rack1)
				})
				if took < 2*time.Second || took > 3500*time.Millisecond {
					t.Errorf("b has it after %v", took)
				}
				cancel()
				<-ended
				a.stop()
				b.stop()
				<-a.ended
				<-b.ended
			})
		})
	}
}

func TestTheClockOfTheKernelRuns(t *testing.T) {
	first := sinceBoot()
	time.Sleep(2 * time.Millisecond)
	if passed := sinceBoot() - first; first <= 0 || passed < 2*time.Millisecond || passed > time.Minute {
		t.Errorf("%v have passed since %v", passed, first)
	}
}
