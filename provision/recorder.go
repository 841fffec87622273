package provision

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"slipway.dev/slipway/inventory"
)

// recorder writes notes behind the packets: taking one never blocks, and many share one commit. What must be on disk
// before an answer does not come this way.
type recorder struct {
	store  inventory.Store
	log    *slog.Logger
	notes  chan note
	hostOf func(inventory.MAC) inventory.HostID
	may    func(*note) bool // nil: everything is stored
	batch  []note           // of serve, to be used again
	noted  atomic.Uint64
	lost   atomic.Uint64
}

// note is one thing to write: an event with the session it belongs to, or do, any other change.
type note struct {
	event   inventory.Event
	session inventory.BootSession // written when it has an ID
	do      func(inventory.Tx) error
}

const (
	notesWaiting  = 8192 // about 4 MB at worst
	notesPerWrite = 512
)

func newRecorder(store inventory.Store, log *slog.Logger, hostOf func(inventory.MAC) inventory.HostID) *recorder {
	return &recorder{store: store, log: log, notes: make(chan note, notesWaiting), hostOf: hostOf}
}

// take queues a note, or counts it as lost when the queue is full.
func (r *recorder) take(n note) {
	if r.may != nil && !r.may(&n) {
		return
	}
	select {
	case r.notes <- n:
		r.noted.Add(1)
	default:
		r.lost.Add(1)
	}
}

// serve writes notes until ctx is done, then those still waiting.
func (r *recorder) serve(ctx context.Context) error {
	for {
		select {
		case n := <-r.notes:
			r.write(ctx, r.more(n))
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			for len(r.notes) > 0 {
				r.write(last, r.more(<-r.notes))
			}
			return nil
		}
	}
}

// more adds to the first note what waits behind it; what it returns holds until it is called again.
func (r *recorder) more(first note) []note {
	clear(r.batch)
	r.batch = append(r.batch[:0], first)
	for len(r.batch) < notesPerWrite {
		select {
		case n := <-r.notes:
			r.batch = append(r.batch, n)
		default:
			return r.batch
		}
	}
	return r.batch
}

// write commits a batch at once; if that fails, each note by itself, so that one bad note costs only itself.
func (r *recorder) write(ctx context.Context, batch []note) {
	if r.commit(ctx, batch) == nil {
		return
	}
	for _, n := range batch {
		if err := r.commit(ctx, []note{n}); err != nil {
			r.lost.Add(1)
			r.log.Warn("event not stored", "kind", n.event.Kind, "mac", n.event.MAC, "err", err)
		}
	}
}

func (r *recorder) commit(ctx context.Context, batch []note) error {
	return r.store.Write(ctx, func(tx inventory.Tx) error {
		latest := map[inventory.SessionID]inventory.BootSession{}
		for _, n := range batch {
			if n.session.ID != "" {
				latest[n.session.ID] = n.session
			}
		}
		for _, n := range batch {
			if n.do != nil {
				if err := n.do(tx); err != nil {
					return err
				}
			}
			// The session comes before the event that refers to it, in its latest form and once.
			if s, ok := latest[n.session.ID]; ok {
				delete(latest, n.session.ID)
				if s.HostID == "" {
					s.HostID = r.hostOf(s.MAC)
				}
				if err := saveProgress(tx, s); err != nil {
					return err
				}
			}
			if n.event.Kind == "" {
				continue
			}
			ev := n.event
			if ev.HostID == "" && ev.MAC != "" {
				ev.HostID = r.hostOf(ev.MAC)
			}
			if err := tx.AddEvent(&ev); err != nil {
				return err
			}
		}
		return nil
	})
}

// saveProgress writes a session as the packets know it, without undoing what Script or Report have decided about it
// in a transaction of their own meanwhile.
func saveProgress(tx inventory.Tx, s inventory.BootSession) error {
	stored, err := tx.FindSession(s.ID)
	if err == nil {
		if stored.LastAt.After(s.LastAt) || !stored.EndedAt.IsZero() {
			return nil
		}
		if s.Proof == "" {
			s.Proof = stored.Proof
		}
		if stored.Boot != "" && s.Boot == "" {
			s.Boot, s.Reason, s.Profile, s.Image = stored.Boot, stored.Reason, stored.Profile, stored.Image
		}
	} else if !isKind(err, inventory.NotFound) {
		return err
	}
	return tx.SaveSession(s)
}
