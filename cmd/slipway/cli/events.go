package cli

import (
	"fmt"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
)

// eventView shows events as they come.
type eventView struct {
	s        *Session
	api      *client.Client
	timeline *timeline
	SkipHost bool      // it is the same for all
	Since    time.Time // older ones are left out
	names    map[inventory.HostID]string
	N        int64 // that were shown
}

// NewEventView returns a view that prints events to the output of the session.
func NewEventView(s *Session, api *client.Client) *eventView {
	return &eventView{s: s, api: api, timeline: newTimeline(time.Local), names: map[inventory.HostID]string{}}
}

// Run shows the events that a query finds, and with isFollow those that come.
func (v *eventView) Run(q client.EventQuery, isFollow bool, limit int) error {
	n := 0
	if isFollow {
		for e, err := range v.api.Follow(v.s.Ctx, q) {
			if err != nil {
				return err
			}
			if err := v.Show(e); err != nil {
				return err
			}
			if n++; n == limit {
				break
			}
		}
		return nil
	}
	q.Limit = 1000
	for {
		page, err := v.api.Events(v.s.Ctx, q)
		if err != nil {
			return err
		}
		for _, e := range page.Items {
			if err := v.Show(e); err != nil {
				return err
			}
			if n++; n == limit {
				return nil
			}
		}
		if page.Next == "" {
			return nil
		}
		q.After = page.Items[len(page.Items)-1].ID
	}
}

// Show writes one event: a line for people, or one JSON or YAML document.
func (v *eventView) Show(e inventory.Event) error {
	if e.At.Before(v.Since) {
		return nil
	}
	v.N++
	switch v.s.Globals.Output {
	case "json":
		return WriteJSON(v.s.Out, e, false)
	case "yaml":
		if _, err := fmt.Fprintln(v.s.Out, "---"); err != nil {
			return err
		}
		return writeYAML(v.s.Out, e)
	}
	host := ""
	if !v.SkipHost {
		host = v.name(e.HostID)
	}
	_, err := fmt.Fprint(v.s.Out, v.timeline.Lines(e, host))
	return err
}

// namesMax bounds what is remembered of hosts while events are followed for weeks.
const namesMax = 10_000

// name finds a host's name, once.
func (v *eventView) name(id inventory.HostID) string {
	if id == "" {
		return ""
	}
	name, ok := v.names[id]
	if !ok {
		if len(v.names) >= namesMax {
			clear(v.names)
		}
		if h, err := v.api.Hosts.Get(v.s.Ctx, string(id)); err == nil {
			name = h.Name
		} else {
			name = string(id) // deleted meanwhile
		}
		v.names[id] = name
	}
	return name
}

// HostNames returns a function that finds the names of hosts, once each.
func (s *Session) HostNames() func(inventory.HostID) string {
	return NewEventView(s, s.Connection).name
}
