// Package live owns the fan-out of committed events. It reads them by id from the store after a wake-up, keeps the newest
// in memory, and hands them to the subscribers. It never makes an event, and never delays the writer that makes one.
//
// Start reading at Hub.Subscribe: Serve fills the ring, and each subscription empties it at its own pace.
package live

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
)

// Config is what a Hub needs: a Store. The other fields have the default that is named with them.
type Config struct {
	Store interface {
		Read(ctx context.Context, fn func(inventory.Tx) error) error
	}
	Log      *slog.Logger  // nowhere
	RingN    int           // newest events kept in memory: 4096
	BatchN   int           // events read from the store at once: 512
	ReaderN  int           // subscriptions at once: 1024
	SlowFor  time.Duration // the hub ends a subscription that takes no event for so long: 30 s
	RetryFor time.Duration // wait after a failed read: 1 s
	PollFor  time.Duration // it reads the store so often without a wake-up, should one be lost: 30 s
	PauseFor time.Duration // it reads no more often than this, however many commits there are: 50 ms
}

// Hub hands committed events to subscribers. Its memory is bounded: a subscription that is too slow for the newest RingN
// events reads from the store, and one that takes nothing ends. Many goroutines may call its methods.
type Hub struct {
	cfg  Config
	wake chan struct{}

	mu      sync.Mutex
	isOver  bool
	isReady bool // the newest id of the store is known
	ring    ring
	changed chan struct{} // closed and replaced when there is something new, or it is over
	readers sync.WaitGroup
	readerN int
}

// New returns a Hub. Without Serve it reads nothing, and subscriptions wait.
func New(cfg Config) *Hub {
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	cfg.RingN = cmp.Or(cfg.RingN, 4096)
	cfg.BatchN = cmp.Or(cfg.BatchN, 512)
	cfg.ReaderN = cmp.Or(cfg.ReaderN, 1024)
	cfg.SlowFor = cmp.Or(cfg.SlowFor, 30*time.Second)
	cfg.RetryFor = cmp.Or(cfg.RetryFor, time.Second)
	cfg.PollFor = cmp.Or(cfg.PollFor, 30*time.Second)
	cfg.PauseFor = cmp.Or(cfg.PauseFor, 50*time.Millisecond)
	return &Hub{cfg: cfg, wake: make(chan struct{}, 1), ring: newRing(cfg.RingN), changed: make(chan struct{})}
}

// Wake says that events may have been committed. It never blocks; the store calls it after its commits.
func (h *Hub) Wake() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// Serve reads committed events until ctx is done, then ends all subscriptions and waits for them.
func (h *Hub) Serve(ctx context.Context) error {
	for ctx.Err() == nil {
		wait := h.cfg.PollFor
		if err := h.catchUp(ctx); err != nil && ctx.Err() == nil {
			h.cfg.Log.Warn("events not read", "err", err)
			wait = h.cfg.RetryFor
		}
		sleep(ctx, h.cfg.PauseFor, nil)
		sleep(ctx, wait, h.wake)
	}
	h.mu.Lock()
	h.isOver = true
	h.tell()
	h.mu.Unlock()
	h.readers.Wait()
	return nil
}

// sleep waits for d, or until a wake-up or the end of ctx.
func sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-wake:
	case <-timer.C:
	}
}

// tell wakes the subscriptions. The caller holds mu.
func (h *Hub) tell() {
	close(h.changed)
	h.changed = make(chan struct{})
}

// catchUp puts the newer events of the store into the ring. Only Serve calls it, so that nothing changes the ring between its
// two locks. The lock is not held during the read: subscriptions go on meanwhile.
func (h *Hub) catchUp(ctx context.Context) error {
	for {
		h.mu.Lock()
		last, isReady := h.ring.last, h.isReady
		h.mu.Unlock()
		var (
			newest int64
			events []inventory.Event
		)
		err := h.cfg.Store.Read(ctx, func(tx inventory.Tx) (err error) {
			if !isReady {
				newest, err = tx.LastEventID()
				return err
			}
			events, err = tx.ListEvents(inventory.EventFilter{}, last, h.cfg.BatchN)
			return err
		})
		if err != nil {
			return err
		}
		h.mu.Lock()
		if !isReady {
			h.isReady = true
			h.ring.startAt(newest)
			h.tell()
		}
		for _, e := range events {
			h.ring.add(e)
		}
		if len(events) > 0 {
			h.tell()
		}
		h.mu.Unlock()
		if len(events) < h.cfg.BatchN {
			return nil
		}
	}
}

// Subscribe returns the events with an id above after that pass the filter, in order and without gap, past ones first. A
// negative after begins that many ids before the newest, and FromNow with the next one. An id from the future, of a
// database that was replaced by an older one, counts as FromNow.
//
// The channel closes after cancel, at the end of the Hub, when the store cannot be read, and when nobody takes an event for
// SlowFor. The reader then subscribes again with the last id that it has seen. cancel must be called, may be called twice,
// and waits for nothing.
func (h *Hub) Subscribe(after int64, f inventory.EventFilter) (events <-chan inventory.Event, cancel func(), err error) {
	ctx, cancel := context.WithCancel(context.Background())
	s := &subscription{hub: h, filter: f, out: make(chan inventory.Event, 16)}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.isOver || h.readerN >= h.cfg.ReaderN {
		cancel()
		return nil, nil, inventory.Errorf(inventory.Unavailable, "no free place for another event stream").
			WithHint("close one of the %d that are open, or ask for the list of events instead", h.readerN)
	}
	h.readerN++
	h.readers.Go(func() {
		defer close(s.out)
		if err := s.run(ctx, after); err != nil {
			h.cfg.Log.Warn("event stream ended", "err", err)
		}
		cancel()
		h.mu.Lock()
		h.readerN--
		h.mu.Unlock()
	})
	return s.out, cancel, nil
}
