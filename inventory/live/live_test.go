package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/inventory"
)

// journal is a store that knows only events.
type journal struct {
	inventory.Tx
	mu     sync.Mutex
	events []inventory.Event
	fails  int // reads that fail before one works
	reads  int
}

func (j *journal) Read(_ context.Context, fn func(inventory.Tx) error) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.reads++
	if j.fails > 0 {
		j.fails--
		return errors.New("disk on fire")
	}
	return fn(j)
}

func (j *journal) LastEventID() (int64, error) {
	if len(j.events) == 0 {
		return 0, nil
	}
	return j.events[len(j.events)-1].ID, nil
}

func (j *journal) ListEvents(f inventory.EventFilter, after int64, limit int) (out []inventory.Event, err error) {
	for _, e := range j.events {
		if e.ID > after && Matches(f, e) && len(out) < limit {
			out = append(out, e)
		}
	}
	return out, nil
}

// commit adds n events, with every third of kind dhcp.ack and ids that skip one now and then.
func (j *journal) commit(n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	id, _ := j.LastEventID()
	for range n {
		id++
		if id%7 == 0 {
			id++
		}
		kind := inventory.EventBootDecided
		if id%3 == 0 {
			kind = inventory.EventDHCPAck
		}
		j.events = append(j.events, inventory.Event{ID: id, Kind: kind, HostID: inventory.HostID(fmt.Sprint("h", id%2))})
	}
}

func (j *journal) ids(after int64, f inventory.EventFilter) (ids []int64) {
	for _, e := range j.events {
		if e.ID > after && Matches(f, e) {
			ids = append(ids, e.ID)
		}
	}
	return ids
}

// start runs a hub in the bubble and returns what ends it.
func start(t *testing.T, cfg Config) (h *Hub, stop func()) {
	t.Helper()
	h = New(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- h.Serve(ctx) }()
	return h, func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	}
}

// take reads what is there, and what the hub has not looked at since its last pause.
func take(events <-chan inventory.Event) (ids []int64, isOpen bool) {
	time.Sleep(100 * time.Millisecond)
	for {
		synctest.Wait()
		select {
		case e, ok := <-events:
			if !ok {
				return ids, false
			}
			ids = append(ids, e.ID)
		default:
			return ids, true
		}
	}
}

func TestSubscribersGetEveryEventOnceAndInOrder(t *testing.T) {
	for _, tc := range []struct {
		name   string
		after  int64
		filter inventory.EventFilter
		want   func(j *journal, last int64) []int64 // after 50 old and 40 new events
	}{
		{
			"from the beginning, which only the store still has", 0,
			inventory.EventFilter{},
			func(j *journal, _ int64) []int64 { return j.ids(0, inventory.EventFilter{}) },
		},
		{
			"from an id in the middle", 30,
			inventory.EventFilter{},
			func(j *journal, _ int64) []int64 { return j.ids(30, inventory.EventFilter{}) },
		},
		{
			"from now", FromNow,
			inventory.EventFilter{},
			func(j *journal, last int64) []int64 { return j.ids(last, inventory.EventFilter{}) },
		},
		{
			"from an id of a database that was newer", 1_000_000,
			inventory.EventFilter{},
			func(j *journal, last int64) []int64 { return j.ids(last, inventory.EventFilter{}) },
		},
		{
			"from five ids back", -5,
			inventory.EventFilter{},
			func(j *journal, last int64) []int64 { return j.ids(last-5, inventory.EventFilter{}) },
		},
		{
			"one family of kinds", 0,
			inventory.EventFilter{Kind: "dhcp"},
			func(j *journal, _ int64) []int64 { return j.ids(0, inventory.EventFilter{Kind: "dhcp.ack"}) },
		},
		{
			"one host", 0,
			inventory.EventFilter{HostID: "h1"},
			func(j *journal, _ int64) []int64 { return j.ids(0, inventory.EventFilter{HostID: "h1"}) },
		},
		{"a filter that nothing passes", 0, inventory.EventFilter{Kind: "dhc"}, func(*journal, int64) []int64 { return nil }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := &journal{}
				j.commit(50)
				h, stop := start(t, Config{Store: j, RingN: 8, BatchN: 5})
				synctest.Wait()
				last, _ := j.LastEventID()
				events, cancel, err := h.Subscribe(tc.after, tc.filter)
				if err != nil {
					t.Fatal(err)
				}
				defer cancel()
				got, _ := take(events)
				for range 8 {
					j.commit(5)
					h.Wake()
					more, _ := take(events)
					got = append(got, more...)
				}
				if diff := cmp.Diff(tc.want(j, last), got); diff != "" {
					t.Errorf("ids (-want +got):\n%s", diff)
				}
				stop()
				if _, isOpen := take(events); isOpen {
					t.Error("the channel is open after the hub has ended")
				}
			})
		})
	}
}

func TestAnIDThatTheHubHasNotSeenYetIsNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &journal{}
		j.commit(5)
		h, stop := start(t, Config{Store: j})
		defer stop()
		synctest.Wait()
		j.commit(5) // and nobody has woken the hub
		newest, _ := j.LastEventID()
		events, cancel, err := h.Subscribe(newest, inventory.EventFilter{})
		if err != nil {
			t.Fatal(err)
		}
		defer cancel()
		synctest.Wait()
		h.Wake()
		synctest.Wait()
		j.commit(1)
		h.Wake()
		if got, _ := take(events); len(got) != 1 || got[0] <= newest {
			t.Errorf("after %d came %v, want only what is newer", newest, got)
		}
	})
}

func TestAReaderThatTakesNothingIsCutAndResumesByID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &journal{}
		h, stop := start(t, Config{Store: j, RingN: 8, BatchN: 5, SlowFor: 10 * time.Second})
		defer stop()
		synctest.Wait()
		events, cancel, err := h.Subscribe(0, inventory.EventFilter{})
		if err != nil {
			t.Fatal(err)
		}
		defer cancel()
		j.commit(100)
		h.Wake()
		time.Sleep(11 * time.Second)
		got, isOpen := take(events)
		if isOpen || len(got) == 0 || len(got) > 20 {
			t.Fatalf("%d events and open=%v; want the few that were buffered, then the end", len(got), isOpen)
		}
		again, cancelAgain, err := h.Subscribe(got[len(got)-1], inventory.EventFilter{})
		if err != nil {
			t.Fatal(err)
		}
		defer cancelAgain()
		rest, _ := take(again)
		if diff := cmp.Diff(j.ids(0, inventory.EventFilter{}), append(got, rest...)); diff != "" {
			t.Errorf("ids over both connections (-want +got):\n%s", diff)
		}
	})
}

func TestASlowReaderHoldsUpNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &journal{}
		h, stop := start(t, Config{Store: j, RingN: 8})
		defer stop()
		_, cancelSlow, err := h.Subscribe(0, inventory.EventFilter{})
		if err != nil {
			t.Fatal(err)
		}
		defer cancelSlow()
		quick, cancel, err := h.Subscribe(0, inventory.EventFilter{})
		if err != nil {
			t.Fatal(err)
		}
		defer cancel()
		j.commit(200)
		h.Wake()
		if got, _ := take(quick); len(got) != 200 {
			t.Errorf("the quick reader got %d events of 200", len(got))
		}
	})
}

func TestAFailedReadIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &journal{fails: 3}
		h, stop := start(t, Config{Store: j})
		defer stop()
		events, cancel, err := h.Subscribe(0, inventory.EventFilter{})
		if err != nil {
			t.Fatal(err)
		}
		defer cancel()
		j.commit(3)
		time.Sleep(4 * time.Second)
		if got, _ := take(events); len(got) != 3 {
			t.Errorf("%d events after the disk came back, want 3", len(got))
		}
	})
}

func TestALostWakeUpCostsTimeOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &journal{}
		h, stop := start(t, Config{Store: j, PollFor: 20 * time.Second})
		defer stop()
		events, cancel, err := h.Subscribe(0, inventory.EventFilter{})
		if err != nil {
			t.Fatal(err)
		}
		defer cancel()
		synctest.Wait()
		j.commit(2)
		time.Sleep(21 * time.Second)
		if got, _ := take(events); len(got) != 2 {
			t.Errorf("%d events, want 2", len(got))
		}
	})
}

func TestTooManySubscriptionsAreRefusedAndCancelMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, stop := start(t, Config{Store: &journal{}, ReaderN: 2})
		var cancels []func()
		for range 2 {
			_, cancel, err := h.Subscribe(0, inventory.EventFilter{})
			if err != nil {
				t.Fatal(err)
			}
			cancels = append(cancels, cancel)
		}
		_, _, err := h.Subscribe(0, inventory.EventFilter{})
		var e *inventory.Error
		if !errors.As(err, &e) || e.Kind != inventory.Unavailable {
			t.Errorf("a third subscription: %v, want unavailable", err)
		}
		cancels[0]()
		cancels[0]()
		synctest.Wait()
		if _, cancel, err := h.Subscribe(0, inventory.EventFilter{}); err != nil {
			t.Errorf("after one was cancelled: %v", err)
		} else {
			cancels = append(cancels, cancel)
		}
		stop()
		if _, _, err := h.Subscribe(0, inventory.EventFilter{}); err == nil {
			t.Error("a hub that has ended takes subscriptions")
		}
		for _, cancel := range cancels {
			cancel()
		}
	})
}

func TestManyReadersUnderConcurrentCommits(t *testing.T) {
	j := &journal{}
	h := New(Config{Store: j, RingN: 16, BatchN: 7})
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- h.Serve(ctx) }()
	const total = 500
	var wg sync.WaitGroup
	results := make([][]int64, 8)
	for i := range results {
		events, cancel, err := h.Subscribe(0, inventory.EventFilter{})
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			defer cancel()
			for e := range events {
				if results[i] = append(results[i], e.ID); len(results[i]) == total {
					return
				}
			}
		})
	}
	for range total / 5 {
		j.commit(5)
		h.Wake()
	}
	wg.Wait()
	cancel()
	if err := <-served; err != nil {
		t.Fatal(err)
	}
	want := j.ids(0, inventory.EventFilter{})
	for i, got := range results {
		if !slices.Equal(want, got) {
			t.Errorf("reader %d got %d events that differ from the %d committed", i, len(got), len(want))
		}
	}
}

// However many commits there are, the store is asked for events only so often; the first after a rest is heard at once.
func TestManyCommitsAreReadTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &journal{}
		h, stop := start(t, Config{Store: j, PauseFor: 50 * time.Millisecond})
		defer stop()
		time.Sleep(time.Second)
		events, cancel, err := h.Subscribe(FromNow, inventory.EventFilter{})
		if err != nil {
			t.Fatal(err)
		}
		defer cancel()
		synctest.Wait()
		j.commit(1)
		h.Wake()
		synctest.Wait()
		if len(events) != 1 {
			t.Fatal("the first event after a rest was not heard at once")
		}
		<-events
		before := j.reads
		for range 1000 {
			j.commit(1)
			h.Wake()
			time.Sleep(time.Millisecond)
			for len(events) > 0 {
				<-events
			}
		}
		if n := j.reads - before; n > 21 {
			t.Errorf("a second of commits was read %d times, want every 50 ms", n)
		}
	})
}
