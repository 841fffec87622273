package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"slipway.dev/slipway/images"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
)

// waitFlag is --wait: alone it waits until the end, --wait=30m no longer than that; 0 does not wait.
type waitFlag time.Duration

const waitForEver = waitFlag(math.MaxInt64)

// IsBool lets the flag stand alone.
func (waitFlag) IsBool() bool { return true }

// Decode reads what stands behind the = of the flag, if anything does.
func (w *waitFlag) Decode(ctx *kong.DecodeContext) error {
	if ctx.Scan.Peek().Type != kong.FlagValueToken {
		*w = waitForEver
		return nil
	}
	text := fmt.Sprint(ctx.Scan.Pop().Value)
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return fmt.Errorf("%q is not how long to wait, such as 30m", text)
	}
	*w = waitFlag(d)
	return nil
}

// end returns when the waiting ends, zero for never.
func (w waitFlag) end(now time.Time) time.Time {
	if w == waitForEver {
		return time.Time{}
	}
	return now.Add(time.Duration(w))
}

// How often is looked, and how often progress is told where it cannot be overwritten.
const (
	lookEvery     = 500 * time.Millisecond
	progressEvery = 10 * time.Second
)

// follower shows what is done with a machine or a host, each step once, until that has ended.
type follower struct {
	s    *session
	api  *client.Client
	mark int64                      // events up to this one are old
	read map[inventory.HostID]int64 // events of each host up to these are shown
	// isOurs chooses among the events of the hosts that are read.
	isOurs func(inventory.Event) bool

	began, last  time.Time // by the server's clock
	said         string    // the last line that is not an event
	progress     string    // as last told
	progressedAt time.Time
	isLive       bool // a line of progress stands on the terminal
	isDeaf       bool // the server does not answer
}

// follow returns a follower of all that happens from now on.
func (s *session) follow(isOurs func(inventory.Event) bool) (*follower, error) {
	api, err := s.client()
	if err != nil {
		return nil, err
	}
	f := &follower{s: s, api: api, read: map[inventory.HostID]int64{}, isOurs: isOurs}
	newest, err := api.Events(s.ctx, client.EventQuery{After: -1, Limit: 1})
	if err == nil && len(newest.Items) > 0 {
		f.mark = newest.Items[len(newest.Items)-1].ID
	}
	return f, err
}

// until looks again and again, until look says that it is over or the time is. A server that does not answer is waited
// for: what it does goes on without it and after it.
func (f *follower) until(wait waitFlag, what string, look func() (isOver bool, err error)) error {
	defer f.clear()
	end := wait.end(time.Now())
	for {
		isOver, err := look()
		var e *inventory.Error
		switch {
		case f.s.ctx.Err() != nil:
			f.clear()
			f.s.say("%s goes on without this command", what)
			return errSaid
		case errors.As(err, &e) && e.Kind == inventory.Unavailable && !errors.Is(err, errEnded):
			if !f.isDeaf {
				f.line(e.Msg + "; trying again")
			}
			f.isDeaf = true
		case err != nil || isOver:
			return err
		default:
			f.isDeaf = false
		}
		if !end.IsZero() && time.Now().After(end) {
			return inventory.Errorf(inventory.Unavailable, "%s has not ended in %s%s", what, inventory.Duration(wait), prefixed(": ", f.said)).
				WithHint("it goes on without this command; --wait alone has no limit")
		}
		sleep(f.s.ctx, lookEvery)
	}
}

// errEnded marks the error of something that has ended, which is never an answer that is missing.
var errEnded = errors.New("it has ended")

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// prefixed puts something before a text that is not empty.
func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// host reads the events of a host from now on, beginning with those since the follower was made.
func (f *follower) host(id inventory.HostID) {
	if _, ok := f.read[id]; id != "" && !ok {
		f.read[id] = f.mark
	}
}

// events shows the new events of all hosts that are read.
func (f *follower) events() error {
	for id, after := range f.read {
		q := client.EventQuery{After: after, Host: string(id), Limit: 500}
		page, err := f.api.Events(f.s.ctx, q)
		if isNotFound(err) { // the host was forgotten
			delete(f.read, id)
			continue
		}
		if err != nil {
			return err
		}
		for _, e := range page.Items {
			f.read[id] = e.ID
			if f.isOurs(e) {
				f.event(e)
			}
		}
	}
	return nil
}

// event shows a step, with the time since the first one and since the one before.
func (f *follower) event(e inventory.Event) {
	if f.began.IsZero() {
		f.began, f.last = e.At, e.At
	}
	f.line(fmt.Sprintf("%9s %9s  %s", seconds(e.At.Sub(f.began)), "+"+seconds(e.At.Sub(f.last)), e.Detail))
	f.last = e.At
	if hint := dataText(e, "hint"); hint != "" {
		f.line(strings.Repeat(" ", 21) + "hint: " + hint)
	}
}

// dataText returns a text of an event's data, "" when there is none.
func dataText(e inventory.Event, key string) string {
	data, _ := e.Data.(map[string]any)
	text, _ := data[key].(string)
	return text
}

// note says something that is no event, when it is new.
func (f *follower) note(text string) {
	if text != "" && text != f.said {
		f.line(strings.Repeat(" ", 21) + text)
	}
	f.said = text
}

func (f *follower) line(text string) {
	f.clear()
	f.s.say("%s", text)
}

// clear takes the line of progress from the terminal.
func (f *follower) clear() {
	if f.isLive {
		fmt.Fprint(f.s.err, "\r\x1b[K")
		f.isLive = false
	}
}

// told shows how far a step is: on a terminal in a line that changes, elsewhere now and then.
func (f *follower) told(o *inventory.Operation) {
	text := progressText(o)
	if text == "" || text == f.progress {
		return
	}
	if f.s.isTerminal() {
		fmt.Fprintf(f.s.err, "\r\x1b[K%21s%s", "", plain(text))
		f.isLive, f.progress = true, text
		return
	}
	if now := time.Now(); now.Sub(f.progressedAt) >= progressEvery {
		f.line(strings.Repeat(" ", 21) + text)
		f.progressedAt, f.progress = now, text
	}
}

// progressText says how far the step of an operation is: "write: 1.20 GB of 2.10 GB, 57 %, 312 MB/s".
func progressText(o *inventory.Operation) string {
	p := o.Progress
	var parts []string
	if p.Detail != "" {
		parts = append(parts, p.Detail)
	}
	switch {
	case p.Total > 0:
		parts = append(parts, fmt.Sprintf("%s of %s", images.FormatBytes(p.Bytes), images.FormatBytes(p.Total)), fmt.Sprintf("%d %%", min(100, int(100*float64(p.Bytes)/float64(p.Total)))))
	case p.Bytes > 0:
		parts = append(parts, images.FormatBytes(p.Bytes))
	}
	if p.BytesPerSecond > 0 {
		parts = append(parts, images.FormatBytes(int64(p.BytesPerSecond))+"/s")
	}
	if parts == nil {
		return ""
	}
	return string(o.Step) + ": " + strings.Join(parts, ", ")
}

// isNotFound reports whether something is not there.
func isNotFound(err error) bool {
	var e *inventory.Error
	return errors.As(err, &e) && e.Kind == inventory.NotFound
}

// ended is the error of something that has not ended well.
func ended(reason, hint, format string, args ...any) error {
	e := inventory.Errorf(inventory.Conflict, format, args...)
	e.Msg += prefixed(": ", reason)
	e.Hint, e.Err = hint, errEnded
	return e
}

// waitMachine follows a machine until it runs, or with isDeletion until it is gone. It fails when a person has to decide.
func (s *session) waitMachine(f *follower, m inventory.Machine, wait waitFlag, isDeletion bool) (inventory.Machine, error) {
	what := "machine " + m.Name
	f.isOurs = func(e inventory.Event) bool {
		return e.Subject == "machine/"+m.Name && (e.Kind == inventory.EventOperation || e.Kind == inventory.EventMachine)
	}
	uid := m.UID
	err := f.until(wait, what, func() (bool, error) {
		f.host(m.HostID)
		now, err := f.api.Machines.Get(s.ctx, m.Name)
		if isNotFound(err) || err == nil && now.UID != uid {
			if err := f.events(); err != nil {
				return false, err
			}
			if isDeletion {
				return true, nil
			}
			return false, ended("", "", "machine %s was deleted", m.Name)
		}
		if err != nil {
			return false, err
		}
		m = now
		f.host(m.HostID)
		return f.machine(&m, isDeletion)
	})
	return m, err
}

// machine shows what is new of a machine and reports whether it has come to an end.
func (f *follower) machine(m *inventory.Machine, isDeletion bool) (bool, error) {
	open, err := f.api.Operations.Find(f.s.ctx, client.OperationQuery{Machine: m.Name, IsOpen: true, Limit: 1})
	if err != nil {
		return false, err
	}
	if err := f.events(); err != nil {
		return false, err
	}
	isBusy := len(open.Items) > 0
	switch {
	case isBusy:
		f.told(&open.Items[0])
	case m.Phase == inventory.MachineFailed:
		return false, ended(m.Reason, cmp.Or(m.Hint, "slipway machine show "+m.Name), "machine %s has failed", m.Name)
	case m.Phase == inventory.MachineRunning && !isDeletion:
		return true, nil
	}
	if m.Phase == inventory.MachinePending {
		f.note(string(m.Phase) + prefixed(": ", m.Reason) + prefixed(" (", m.Hint) + strings.Repeat(")", min(1, len(m.Hint))))
	}
	return false, nil
}

// waitOperation follows an operation until it is done.
func (s *session) waitOperation(f *follower, o inventory.Operation, wait waitFlag) (inventory.Operation, error) {
	f.isOurs = func(e inventory.Event) bool {
		return e.Kind == inventory.EventOperation && dataText(e, "operation") == o.ID
	}
	f.host(o.HostID)
	err := f.until(wait, "operation "+o.ID, func() (bool, error) {
		now, err := f.api.Operations.Get(s.ctx, o.ID)
		if err != nil {
			return false, err
		}
		o = now
		if err := f.events(); err != nil {
			return false, err
		}
		switch o.State {
		case inventory.OpDone:
			return true, nil
		case inventory.OpFailed, inventory.OpCancelled:
			return false, ended(o.Reason, o.Hint, "%s %s", o.Kind, o.State)
		}
		f.told(&o)
		return false, nil
	})
	return o, err
}

// waitHost follows the latest operation of that kind with a host.
func (s *session) waitHost(f *follower, host string, kind inventory.OperationKind, wait waitFlag) error {
	page, err := f.api.Operations.Find(s.ctx, client.OperationQuery{Host: host, Kind: string(kind), Limit: 1})
	if err != nil || len(page.Items) == 0 {
		return err
	}
	_, err = s.waitOperation(f, page.Items[0], wait)
	return err
}
