package cli

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"slipway.dev/slipway/images"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sleep"
	"slipway.dev/slipway/web/client"
)

// How often is looked, and how often progress is told where it cannot be overwritten.
const (
	LookEvery     = 500 * time.Millisecond
	progressEvery = 10 * time.Second
)

// Follower shows what is done with a machine or a host, each step once, until that has ended.
type Follower struct {
	s    *Session
	API  *client.Client
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

// Follow returns a follower of all that happens from now on.
func (s *Session) Follow(isOurs func(inventory.Event) bool) (*Follower, error) {
	api, err := s.Client()
	if err != nil {
		return nil, err
	}
	f := &Follower{s: s, API: api, read: map[inventory.HostID]int64{}, isOurs: isOurs}
	newest, err := api.Events(s.Ctx, client.EventQuery{After: -1, Limit: 1})
	if err == nil && len(newest.Items) > 0 {
		f.mark = newest.Items[len(newest.Items)-1].ID
	}
	return f, err
}

// Begun begins something. Where wait asks for it, f follows what happens from before the beginning; else f is nil.
func Begun[T any](s *Session, wait WaitFlag, begin func() (T, error)) (f *Follower, v T, err error) {
	if wait != 0 {
		if f, err = s.Follow(nil); err != nil {
			return nil, v, err
		}
	}
	v, err = begin()
	return f, v, err
}

// until looks again and again, until look says that it is over or the time is. A server that does not answer is waited
// for: what it does goes on without it and after it.
func (f *Follower) until(wait WaitFlag, what string, look func() (isOver bool, err error)) error {
	defer f.clear()
	end := wait.end(time.Now())
	for {
		isOver, err := look()
		var e *inventory.Error
		switch {
		case f.s.Ctx.Err() != nil:
			f.clear()
			f.s.Say("%s goes on without this command", what)
			return ErrSaid
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
			return inventory.Errorf(inventory.Unavailable, "%s has not ended in %s%s", what, inventory.Duration(wait), Prefixed(": ", f.said)).
				WithHint("it goes on without this command; --wait alone has no limit")
		}
		_ = sleep.For(f.s.Ctx, LookEvery)
	}
}

// errEnded marks the error of something that has ended, which is never an answer that is missing.
var errEnded = errors.New("it has ended")

// Prefixed puts something before a text that is not empty.
func Prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// host reads the events of a host from now on, beginning with those since the follower was made.
func (f *Follower) host(id inventory.HostID) {
	if _, ok := f.read[id]; id != "" && !ok {
		f.read[id] = f.mark
	}
}

// events shows the new events of all hosts that are read.
func (f *Follower) events() error {
	for id, after := range f.read {
		q := client.EventQuery{After: after, Host: string(id), Limit: 500}
		page, err := f.API.Events(f.s.Ctx, q)
		if IsNotFound(err) { // the host was forgotten
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
func (f *Follower) event(e inventory.Event) {
	if f.began.IsZero() {
		f.began, f.last = e.At, e.At
	}
	f.line(fmt.Sprintf("%9s %9s  %s", Seconds(e.At.Sub(f.began)), "+"+Seconds(e.At.Sub(f.last)), e.Detail))
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
func (f *Follower) note(text string) {
	if text != "" && text != f.said {
		f.line(strings.Repeat(" ", 21) + text)
	}
	f.said = text
}

func (f *Follower) line(text string) {
	f.clear()
	f.s.Say("%s", text)
}

// clear takes the line of progress from the terminal.
func (f *Follower) clear() {
	if f.isLive {
		fmt.Fprint(f.s.Err, "\r\x1b[K")
		f.isLive = false
	}
}

// told shows how far a step is: on a terminal in a line that changes, elsewhere now and then.
func (f *Follower) told(o *inventory.Operation) {
	text := ProgressText(o)
	if text == "" || text == f.progress {
		return
	}
	if f.s.isTerminal() {
		fmt.Fprintf(f.s.Err, "\r\x1b[K%21s%s", "", Plain(text))
		f.isLive, f.progress = true, text
		return
	}
	if now := time.Now(); now.Sub(f.progressedAt) >= progressEvery {
		f.line(strings.Repeat(" ", 21) + text)
		f.progressedAt, f.progress = now, text
	}
}

// ProgressText says how far the step of an operation is: "write: 1.20 GB of 2.10 GB, 57 %, 312 MB/s".
func ProgressText(o *inventory.Operation) string {
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

// IsNotFound reports whether something is not there.
func IsNotFound(err error) bool {
	var e *inventory.Error
	return errors.As(err, &e) && e.Kind == inventory.NotFound
}

// Ended is the error of something that has not ended well.
func Ended(reason, hint, format string, args ...any) error {
	e := inventory.Errorf(inventory.Conflict, format, args...)
	e.Msg += Prefixed(": ", reason)
	e.Hint, e.Err = hint, errEnded
	return e
}

// WaitMachine follows a machine until it runs, or with isDeletion until it is gone. It fails when a person has to decide.
func (s *Session) WaitMachine(f *Follower, m inventory.Machine, wait WaitFlag, isDeletion bool) (inventory.Machine, error) {
	what := "machine " + m.Name
	f.isOurs = func(e inventory.Event) bool {
		return e.Subject == "machine/"+m.Name && (e.Kind == inventory.EventOperation || e.Kind == inventory.EventMachine)
	}
	uid := m.UID
	err := f.until(wait, what, func() (bool, error) {
		f.host(m.HostID)
		now, err := f.API.Machines.Get(s.Ctx, m.Name)
		if IsNotFound(err) || err == nil && now.UID != uid {
			if err := f.events(); err != nil {
				return false, err
			}
			if isDeletion {
				return true, nil
			}
			return false, Ended("", "", "machine %s was deleted", m.Name)
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
func (f *Follower) machine(m *inventory.Machine, isDeletion bool) (bool, error) {
	open, err := f.API.Operations.List(f.s.Ctx, client.Query{Machine: m.Name, Open: true, Limit: 1})
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
		return false, Ended(m.Reason, cmp.Or(m.Hint, "slipway machine show "+m.Name), "machine %s has failed", m.Name)
	case m.Phase == inventory.MachineRunning && !isDeletion:
		return true, nil
	}
	if m.Phase == inventory.MachinePending {
		f.note(string(m.Phase) + Prefixed(": ", m.Reason) + Prefixed(" (", m.Hint) + strings.Repeat(")", min(1, len(m.Hint))))
	}
	return false, nil
}

// WaitOperation follows an operation until it is done.
func (s *Session) WaitOperation(f *Follower, o inventory.Operation, wait WaitFlag) (inventory.Operation, error) {
	f.isOurs = func(e inventory.Event) bool {
		return e.Kind == inventory.EventOperation && dataText(e, "operation") == o.ID
	}
	f.host(o.HostID)
	err := f.until(wait, "operation "+o.ID, func() (bool, error) {
		now, err := f.API.Operations.Get(s.Ctx, o.ID)
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
			return false, Ended(o.Reason, o.Hint, "%s %s", o.Kind, o.State)
		}
		f.told(&o)
		return false, nil
	})
	return o, err
}

// WaitHost follows the latest operation of that kind with a host.
func (s *Session) WaitHost(f *Follower, host string, kind inventory.OperationKind, wait WaitFlag) error {
	page, err := f.API.Operations.List(s.Ctx, client.Query{Host: host, Kind: string(kind), Limit: 1})
	if err != nil || len(page.Items) == 0 {
		return err
	}
	_, err = s.WaitOperation(f, page.Items[0], wait)
	return err
}
