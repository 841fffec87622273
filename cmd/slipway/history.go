package main

import (
	"fmt"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
)

func sessions(c *client.Client) client.Noun[inventory.BootSession] { return c.Sessions }

type sessionCommand struct {
	List sessionList `cmd:"" help:"List boots, latest first."`
	Show sessionShow `cmd:"" help:"Show a boot, step by step."`
}

type sessionList struct {
	Host  string `help:"Only those of this host." placeholder:"HOST"`
	Limit int    `default:"20" help:"At most so many; 0 for all."`
}

// Run lists boot sessions.
func (c *sessionList) Run(s *session) error {
	return showList(s, sessions, client.Query{Host: c.Host}, c.Limit, []string{"SESSION", "STARTED", "MAC", "FIRMWARE", "BOOT", "STEP", "OUTCOME", "TOOK", "REASON"},
		func(b inventory.BootSession) []string {
			return []string{
				string(b.ID), timeText(b.StartedAt), string(b.MAC), strings.TrimSpace(string(b.Firmware) + " " + string(b.Arch)), b.Boot,
				b.Step, string(b.Outcome), took(b), b.Reason,
			}
		})
}

// took is how long a boot has lasted.
func took(b inventory.BootSession) string {
	end := b.EndedAt
	if end.IsZero() {
		end = b.LastAt
	}
	return fmt.Sprintf("%.1fs", end.Sub(b.StartedAt).Seconds())
}

type sessionShow struct {
	Session string `arg:""`
}

// Run shows a boot session with its events.
func (c *sessionShow) Run(s *session) error {
	err := showOne(s, sessions, c.Session, func(t *tableWriter, b inventory.BootSession) {
		t.field("session", string(b.ID))
		t.field("host", string(b.HostID))
		t.field("mac", string(b.MAC))
		t.field("address", addrText(b.Address))
		t.field("subnet", b.Subnet)
		t.field("firmware", strings.TrimSpace(string(b.Firmware)+" "+string(b.Arch)))
		t.field("boot", b.Boot)
		t.field("because", b.Reason)
		t.field("profile", b.Profile)
		t.field("image", b.Image)
		t.field("outcome", string(b.Outcome))
		t.field("took", took(b))
	})
	if err != nil || s.globals.Output != "table" {
		return err
	}
	v := newEventView(s, s.c)
	v.skipHost = true
	return v.run(client.EventQuery{Session: inventory.SessionID(c.Session)}, false, 0)
}

type eventCommand struct {
	List eventList `cmd:"" default:"withargs" help:"List events, or with -f follow them (the default)."`
}

type eventList struct {
	Follow  bool   `short:"f" help:"Wait for more."`
	After   *int64 `help:"Only those after this id; a negative number counts back from the newest (default -100; with -f -10)." placeholder:"ID"`
	Host    string `help:"Only those of this host." placeholder:"HOST"`
	Session string `help:"Only those of this boot session." placeholder:"ID"`
	Kind    string `help:"Only this kind, such as dhcp or dhcp.ack." placeholder:"KIND"`
	Limit   int    `help:"At most so many."`
}

// Run lists or follows events.
func (c *eventList) Run(s *session) error {
	api, err := s.client()
	if err != nil {
		return err
	}
	q := client.EventQuery{After: -100, Host: c.Host, Session: inventory.SessionID(c.Session), Kind: c.Kind}
	if c.Host != "" || c.Session != "" {
		q.After = 0
	}
	if c.Follow {
		q.After = -10
	}
	set(&q.After, c.After)
	v := newEventView(s, api)
	if err := v.run(q, c.Follow, c.Limit); err != nil {
		return err
	}
	if !c.Follow && c.After == nil && q.After < 0 && v.n == -q.After && s.globals.Output == "table" {
		s.say("the newest %d are shown; --after 0 shows all", v.n)
	}
	return nil
}

// eventView shows events as they come.
type eventView struct {
	s        *session
	api      *client.Client
	timeline *timeline
	skipHost bool      // it is the same for all
	since    time.Time // older ones are left out
	names    map[inventory.HostID]string
	n        int64 // that were shown
}

func newEventView(s *session, api *client.Client) *eventView {
	return &eventView{s: s, api: api, timeline: newTimeline(time.Local), names: map[inventory.HostID]string{}}
}

// run shows the events that a query finds, and with isFollow those that come.
func (v *eventView) run(q client.EventQuery, isFollow bool, limit int) error {
	n := 0
	if isFollow {
		for e, err := range v.api.Follow(v.s.ctx, q) {
			if err != nil {
				return err
			}
			if err := v.show(e); err != nil {
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
		page, err := v.api.Events(v.s.ctx, q)
		if err != nil {
			return err
		}
		for _, e := range page.Items {
			if err := v.show(e); err != nil {
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

// show writes one event: a line for people, or one JSON or YAML document.
func (v *eventView) show(e inventory.Event) error {
	if e.At.Before(v.since) {
		return nil
	}
	v.n++
	switch v.s.globals.Output {
	case "json":
		return writeJSON(v.s.out, e, false)
	case "yaml":
		if _, err := fmt.Fprintln(v.s.out, "---"); err != nil {
			return err
		}
		return writeYAML(v.s.out, e)
	}
	host := ""
	if !v.skipHost {
		host = v.name(e.HostID)
	}
	_, err := fmt.Fprint(v.s.out, v.timeline.Lines(e, host))
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
		if h, err := v.api.Hosts.Get(v.s.ctx, string(id)); err == nil {
			name = h.Name
		} else {
			name = string(id) // deleted meanwhile
		}
		v.names[id] = name
	}
	return name
}

func issues(c *client.Client) client.Noun[inventory.Issue] { return c.Issues }

type issueCommand struct {
	List issueList `cmd:"" help:"List open issues, newest first."`
	Show issueShow `cmd:"" help:"Show an issue."`
}

type issueList struct {
	All  bool   `help:"Closed ones as well."`
	Host string `help:"Only those of this host." placeholder:"HOST"`
}

// Run lists issues.
func (c *issueList) Run(s *session) error {
	return showList(s, issues, client.Query{All: c.All, Host: c.Host}, 0, []string{"ID", "SEVERITY", "TYPE", "HOSTS", "OPENED", "TIMES", "CLOSED", "CAUSE", "HINT"},
		func(i inventory.Issue) []string {
			var names []string
			for _, id := range i.HostIDs {
				names = append(names, s.hostNames()(id))
			}
			return []string{fmt.Sprint(i.ID), string(i.Severity), i.Type, strings.Join(names, ","), timeText(i.OpenedAt), fmt.Sprint(i.SeenN), timeText(i.ClosedAt), i.Cause, i.Hint}
		})
}

type issueShow struct {
	Issue int64 `arg:""`
}

// Run shows an issue.
func (c *issueShow) Run(s *session) error {
	return showOne(s, issues, fmt.Sprint(c.Issue), func(t *tableWriter, i inventory.Issue) {
		t.field("issue", fmt.Sprint(i.ID))
		t.field("type", i.Type)
		t.field("severity", string(i.Severity))
		for _, h := range i.HostIDs {
			t.field("host", s.hostNames()(h))
		}
		t.field("subnet", i.Subnet)
		t.field("cause", i.Cause)
		t.field("hint", i.Hint)
		t.field("opened", timeText(i.OpenedAt))
		t.field("last seen", fmt.Sprintf("%s, %d times", timeText(i.SeenAt), i.SeenN))
		t.field("closed", timeText(i.ClosedAt))
	})
}
