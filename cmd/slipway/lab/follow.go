package lab

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
)

// pollEvery is how often hosts are read besides what events say: a stream may break.
const pollEvery = time.Second

// follower keeps a board up to date with a server, and accepts the lab's machines as they are discovered.
type follower struct {
	api   api
	board *board
	// reached is told each step that a machine reaches, and changed that anything was learned; both run in follow.
	reached func(*row, step)
	changed func()
}

// follow runs until done says so or ctx ends; then it returns ctx's error. An error of the event stream ends it too.
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

// poll reads the hosts and accepts those of the lab that wait for it.
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
	if f.changed != nil {
		f.changed()
	}
}

// readProfile asks for the profile of the boot that is under way.
func (f *follower) readProfile(ctx context.Context, r *row) {
	if r.Host != "" && r.Profile == "" {
		r.Profile = f.api.profileOf(ctx, string(r.HostID))
	}
}

// report says per machine how long it took to arrive and when it passed each step, in seconds.
func report(rows []row) string {
	var b strings.Builder
	for _, r := range rows {
		took := "did not arrive"
		if r.isBooted() {
			took = "arrived after " + seconds(r.At[stepBooted]) + " s"
		}
		fmt.Fprintf(&b, "%s %s:", r.Name, took)
		for s := range stepBooted {
			fmt.Fprintf(&b, " %s %s", s, seconds(r.At[s]))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// timeline is what the server noted about a machine, seconds after it was switched on.
func (b *board) timeline(r *row) string {
	var t strings.Builder
	for _, ev := range r.events {
		fmt.Fprintf(&t, "%7.2f  %-18s %s\n", ev.At.Sub(b.startedAt).Seconds(), ev.Kind, ev.Detail)
	}
	if t.Len() == 0 {
		return "nothing was heard from it\n"
	}
	return t.String()
}
