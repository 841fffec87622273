// Package recorder owns the way of notes into the store: events and other changes that no answer waits for. It never decides what
// they say.
package recorder

import (
	"cmp"
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/ahead"
)

// Recorder writes notes behind the packets: taking one never blocks, and many share one commit. Data that must be on disk
// before an answer do not come this way. Its fields may change before Serve only.
type Recorder struct {
	Store  inventory.Store
	Log    *slog.Logger
	HostOf func(inventory.MAC) inventory.HostID
	May    func(*Note) bool // whether a note is stored; nil: all are

	notes chan Note
	batch []Note // of Flush, to be used again
	lost  atomic.Uint64
}

// Note is one thing to write: an event with the session it belongs to, or do, any other change.
type Note struct {
	Event   inventory.Event
	Session inventory.BootSession // written when it has an ID
	Do      func(inventory.Tx) error
	Expect  func(inventory.Tx) // calls what Do reads; nil if nobody knows. See package ahead
}

const (
	notesWaiting  = 8192 // about 4 MB at worst
	notesPerWrite = 512
)

// New returns a Recorder that stores every note.
func New(store inventory.Store, log *slog.Logger, hostOf func(inventory.MAC) inventory.HostID) *Recorder {
	return &Recorder{Store: store, Log: log, HostOf: hostOf, notes: make(chan Note, notesWaiting)}
}

// LostN counts the notes that were dropped because the store could not keep up.
func (r *Recorder) LostN() uint64 { return r.lost.Load() }

// Take queues a note, or counts it as lost when the queue is full.
func (r *Recorder) Take(n Note) {
	if r.May != nil && !r.May(&n) {
		return
	}
	select {
	case r.notes <- n:
	default:
		r.lost.Add(1)
	}
}

// Serve writes notes until ctx is done, then those still waiting.
func (r *Recorder) Serve(ctx context.Context) error {
	for {
		select {
		case n := <-r.notes:
			r.write(ctx, r.more(n))
		case <-ctx.Done():
			// ctx has ended, and the notes still have to be written. A store that hangs must not hold up the end of the
			// server.
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			r.Flush(last)
			return nil
		}
	}
}

// Flush writes the notes that wait. Nothing else may write them at the same time.
func (r *Recorder) Flush(ctx context.Context) {
	for len(r.notes) > 0 {
		r.write(ctx, r.more(<-r.notes))
	}
}

// more adds to the first Note what waits behind it; what it returns holds until it is called again.
func (r *Recorder) more(first Note) []Note {
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
func (r *Recorder) write(ctx context.Context, batch []Note) {
	if r.commit(ctx, batch) == nil {
		return
	}
	for _, n := range batch {
		if err := r.commit(ctx, []Note{n}); err != nil {
			r.lost.Add(1)
			r.Log.Warn("event not stored", "kind", n.Event.Kind, "mac", n.Event.MAC, "err", err)
		}
	}
}

func (r *Recorder) commit(ctx context.Context, batch []Note) error {
	expect := func(tx inventory.Tx) {
		for i := range batch {
			if n := &batch[i]; n.Expect != nil {
				n.Expect(tx)
			} else if n.Session.ID != "" {
				_, _ = tx.FindSession(n.Session.ID)
			}
		}
	}
	return ahead.Write(ctx, r.Store, expect, func(tx inventory.Tx) error {
		latest := map[inventory.SessionID]inventory.BootSession{}
		for _, n := range batch {
			if n.Session.ID != "" {
				latest[n.Session.ID] = n.Session
			}
		}
		for _, n := range batch {
			if n.Do != nil {
				if err := n.Do(tx); err != nil {
					return err
				}
			}
			// The session comes before the event that refers to it, in its latest form and once.
			if s, ok := latest[n.Session.ID]; ok {
				delete(latest, n.Session.ID)
				if s.HostID == "" {
					s.HostID = r.HostOf(s.MAC)
				}
				if err := saveProgress(tx, s); err != nil {
					return err
				}
			}
			if n.Event.Kind == "" {
				continue
			}
			ev := n.Event
			if ev.HostID == "" && ev.MAC != "" {
				ev.HostID = r.HostOf(ev.MAC)
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
		s.Proof = cmp.Or(s.Proof, stored.Proof)
		if stored.Boot != "" && s.Boot == "" {
			s.Boot, s.Reason, s.Refs, s.Profile, s.Image = stored.Boot, stored.Reason, stored.Refs, stored.Profile, stored.Image
		}
	} else if !inventory.IsKind(err, inventory.NotFound) {
		return err
	}
	return tx.SaveSession(s)
}
