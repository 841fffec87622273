package live

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
)

// FromNow, as the after of Subscribe, leaves out all events up to now.
const FromNow = math.MaxInt64

// subscription is one reader, with a goroutine of its own. It remembers how far it is. It reads from the ring, and older events
// from the store.
type subscription struct {
	hub    *Hub
	filter inventory.EventFilter
	out    chan inventory.Event
}

// run hands out events until ctx or the hub ends, or the reader is too slow.
func (s *subscription) run(ctx context.Context, after int64) (err error) {
	v, ok := s.await(ctx, func(v view) bool { return v.isReady }, after)
	if !ok {
		return nil
	}
	if after, err = s.begin(ctx, after, v.last); err != nil {
		return fmt.Errorf("read newest event: %w", err)
	}
	for {
		v, ok := s.await(ctx, func(v view) bool { return v.last > after }, after)
		if !ok {
			return nil
		}
		events, next := v.events, v.next
		if !v.isInRing {
			if events, next, err = s.read(ctx, after); err != nil {
				if ctx.Err() != nil {
					return nil
				}
				return fmt.Errorf("read events after %d: %w", after, err)
			}
		}
		if !s.send(ctx, events) {
			return nil
		}
		after = next
	}
}

// begin returns the id to begin after, when last is the newest in the ring. The store may be ahead of that.
func (s *subscription) begin(ctx context.Context, after, last int64) (int64, error) {
	switch {
	case after < 0:
		return max(0, last+after), nil
	case after <= last || after == FromNow:
		return min(after, last), nil
	}
	err := s.hub.cfg.Store.Read(ctx, func(tx inventory.Tx) error {
		newest, err := tx.LastEventID()
		after = min(after, newest)
		return err
	})
	return after, err
}

// await waits until ready accepts a view. ok is false when ctx or the hub has ended.
func (s *subscription) await(ctx context.Context, ready func(view) bool, after int64) (v view, ok bool) {
	for {
		v = s.hub.look(after, s.filter)
		if v.isOver || ctx.Err() != nil {
			return v, false
		}
		if ready(v) {
			return v, true
		}
		select {
		case <-v.changed:
		case <-ctx.Done():
		}
	}
}

// read returns events from the store, and the id up to which it has read.
func (s *subscription) read(ctx context.Context, after int64) (events []inventory.Event, next int64, err error) {
	err = s.hub.cfg.Store.Read(ctx, func(tx inventory.Tx) error {
		// Before the list, in the same snapshot: the filter may leave out all newer events, and the next read begins
		// after them.
		if next, err = tx.LastEventID(); err != nil {
			return err
		}
		events, err = tx.ListEvents(s.filter, after, s.hub.cfg.BatchN)
		return err
	})
	if len(events) == s.hub.cfg.BatchN {
		next = events[len(events)-1].ID
	}
	return events, next, err
}

// send hands out events. It returns false when the reader has taken none for SlowFor.
func (s *subscription) send(ctx context.Context, events []inventory.Event) bool {
	var slow *time.Timer
	for _, e := range events {
		select {
		case s.out <- e:
			continue
		// The buffer is full. Only now is a timer worth its price.
		default:
		}
		if slow == nil {
			slow = time.NewTimer(s.hub.cfg.SlowFor)
			defer slow.Stop()
		}
		slow.Reset(s.hub.cfg.SlowFor)
		select {
		case s.out <- e:
		case <-ctx.Done():
			return false
		case <-slow.C:
			s.hub.cfg.Log.Info("event stream cut: its reader is too slow")
			return false
		}
	}
	return true
}

// Matches reports whether an event passes a filter, as a store decides it.
func Matches(f inventory.EventFilter, e inventory.Event) bool {
	switch {
	case f.HostID != "" && f.HostID != e.HostID, f.SessionID != "" && f.SessionID != e.SessionID:
		return false
	case f.Kind == "" || f.Kind == e.Kind:
		return true
	}
	return !strings.Contains(f.Kind, ".") && strings.HasPrefix(e.Kind, f.Kind+".")
}
