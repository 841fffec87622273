package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
)

// pollEvery is how often the follower reads the hosts in addition to the events: a stream may break.
const pollEvery = time.Second

// follower keeps a board up to date with a server, and accepts the machines of the lab when the server discovers
// them.
type follower struct {
	api   api
	board *board
	// follow calls reached for each step of a machine, and changed after each change; either may be nil.
	reached func(*row, step)
	changed func()
	heard   func(context.Context, inventory.Event) // called for each event of a machine of the lab; may be nil
}

// follow runs until done returns true, or ctx or the event stream ends; then it returns their error. Only its own
// goroutine touches the board: the stream sends events through a channel.
func (f *follower) follow(ctx context.Context, done func() bool) error {
	ctx, cancel := context.WithCancel(ctx)
	events, broken := make(chan inventory.Event, 256), make(chan error, 1)
	go func() {
		broken <- f.api.follow(ctx, func(ev inventory.Event) {
			select {
			case events <- ev:
			case <-ctx.Done():
			}
		})
	}()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for !done() {
		select {
		case ev := <-events:
			f.take(ctx, ev)
		case <-tick.C:
			f.poll(ctx)
		case err := <-broken:
			cancel()
			return err
		}
	}
	cancel()
	<-broken
	return nil
}

func (f *follower) take(ctx context.Context, ev inventory.Event) {
	r, s := f.board.event(ev)
	if r == nil {
		return
	}
	if f.heard != nil {
		f.heard(ctx, ev)
	}
	switch ev.Kind {
	case inventory.EventHostDiscovered:
		f.poll(ctx)
	case inventory.EventBootDecided, inventory.EventStateChanged:
		f.poll(ctx)
		f.readProfile(ctx, r)
	}
	if s >= 0 && f.reached != nil {
		f.reached(r, s)
	}
	if f.changed != nil {
		f.changed()
	}
}

// poll reads the hosts, accepts those of the lab, and calls live. It ignores errors: the next poll is a second away.
func (f *follower) poll(ctx context.Context) {
	hosts, err := f.api.hosts(ctx)
	if err != nil {
		return // the next poll is a second away
	}
	for _, w := range f.board.takeHosts(hosts) {
		err := f.api.accept(ctx, w.host, w.row.Spec)
		var e *inventory.Error
		if err != nil && !(errors.As(err, &e) && e.Kind == inventory.Conflict) {
			w.row.Message = fmt.Sprintf("not accepted: %v", err)
		}
	}
	f.live(ctx)
	if f.changed != nil {
		f.changed()
	}
}

// live creates the machines whose hosts are inspected, and deletes those that are to leave once they run.
func (f *follower) live(ctx context.Context) {
	if !slices.ContainsFunc(f.board.rows, func(r *row) bool { return r.IsInstalled }) {
		return
	}
	machines, ops, err := f.api.under(ctx)
	if err != nil {
		return
	}
	f.board.takeLife(machines, ops)
	for _, r := range f.board.rows {
		switch {
		case !r.IsInstalled:
		case !r.isWanted && r.At[stepInspected] > 0 && r.State == inventory.Available && r.Op.ID == "":
			r.isWanted = f.did(r, "not created", f.api.create(ctx, r.Spec))
		case r.IsLeaving && !r.isEnded && r.At[stepRunning] > 0 && r.Phase == inventory.MachineRunning:
			r.isEnded = f.did(r, "not deleted", f.api.remove(ctx, r.Spec))
		}
	}
}

// did reports whether a request succeeded. Conflict counts as success: an earlier request did it. It shows any other
// error, and the next poll tries again.
func (f *follower) did(r *row, what string, err error) bool {
	var e *inventory.Error
	if err == nil || errors.As(err, &e) && e.Kind == inventory.Conflict {
		return true
	}
	r.Message = fmt.Sprintf("%s: %v", what, err)
	return false
}

// readProfile reads the profile of the present boot.
func (f *follower) readProfile(ctx context.Context, r *row) {
	if r.Host != "" && r.Profile == "" {
		r.Profile = f.api.profileOf(ctx, string(r.HostID))
	}
}

// report says for each machine when it arrived and when it passed each step, in seconds since power-on.
func report(rows []row) string {
	var b strings.Builder
	for _, r := range rows {
		took := "did not arrive"
		if r.hasArrived() {
			took = "arrived after " + seconds(r.At[r.goal()]) + " s"
		}
		fmt.Fprintf(&b, "%s %s:", r.Name, took)
		for _, s := range r.steps() {
			if s == r.goal() {
				break
			}
			fmt.Fprintf(&b, " %s %s", s, seconds(r.At[s]))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// timeline lists the events of a machine, in seconds since power-on.
func (b *board) timeline(r *row) string {
	var t strings.Builder
	for _, ev := range r.events {
		fmt.Fprintf(&t, "%7.2f  %-18s %s\n", ev.At.Sub(b.startedAt).Seconds(), ev.Kind, ev.Detail)
	}
	if t.Len() == 0 {
		return "it has sent nothing\n"
	}
	return t.String()
}
