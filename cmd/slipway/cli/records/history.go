// Package records owns the commands for what has happened: slipway session, event, issue, operation and audit. It decides nothing: it
// calls the REST API.
package records

import (
	"fmt"
	"strings"

	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
)

func sessions(c *client.Client) client.Noun[inventory.BootSession] { return c.Sessions }

// SessionCommand is slipway session.
type SessionCommand struct {
	List sessionList `cmd:"" help:"List boots, latest first."`
	Show sessionShow `cmd:"" help:"Show a boot, step by step."`
}

type sessionList struct {
	Host  string `help:"Only those of this host." placeholder:"HOST"`
	Limit int    `default:"20" help:"At most so many; 0 for all."`
}

// Run lists boot sessions.
func (c *sessionList) Run(s *cli.Session) error {
	return cli.ShowList(s, sessions, client.Query{Host: c.Host}, c.Limit, []string{"SESSION", "STARTED", "MAC", "FIRMWARE", "BOOT", "STEP", "OUTCOME", "TOOK", "REASON"},
		func(b inventory.BootSession) []string {
			return []string{
				string(b.ID), cli.TimeText(b.StartedAt), string(b.MAC), strings.TrimSpace(string(b.Firmware) + " " + string(b.Arch)), b.Boot,
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
func (c *sessionShow) Run(s *cli.Session) error {
	err := cli.ShowOne(s, sessions, c.Session, func(t *cli.TableWriter, b inventory.BootSession) {
		t.Field("session", string(b.ID))
		t.Field("host", string(b.HostID))
		t.Field("mac", string(b.MAC))
		t.Field("address", cli.AddrText(b.Address))
		t.Field("subnet", b.Subnet)
		t.Field("firmware", strings.TrimSpace(string(b.Firmware)+" "+string(b.Arch)))
		t.Field("boot", b.Boot)
		t.Field("because", b.Reason)
		t.Field("profile", b.Profile)
		t.Field("image", b.Image)
		t.Field("outcome", string(b.Outcome))
		t.Field("took", took(b))
	})
	if err != nil || s.Globals.Output != "table" {
		return err
	}
	v := cli.NewEventView(s, s.Connection)
	v.SkipHost = true
	return v.Run(client.EventQuery{Session: inventory.SessionID(c.Session)}, false, 0)
}

// EventCommand is slipway event.
type EventCommand struct {
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
func (c *eventList) Run(s *cli.Session, api *client.Client) error {
	q := client.EventQuery{After: -100, Host: c.Host, Session: inventory.SessionID(c.Session), Kind: c.Kind}
	if c.Host != "" || c.Session != "" {
		q.After = 0
	}
	if c.Follow {
		q.After = -10
	}
	cli.Set(&q.After, c.After)
	v := cli.NewEventView(s, api)
	if err := v.Run(q, c.Follow, c.Limit); err != nil {
		return err
	}
	if !c.Follow && c.After == nil && q.After < 0 && v.N == -q.After && s.Globals.Output == "table" {
		s.Say("the newest %d are shown; --after 0 shows all", v.N)
	}
	return nil
}

func issues(c *client.Client) client.Noun[inventory.Issue] { return c.Issues }

// IssueCommand is slipway issue.
type IssueCommand struct {
	List issueList `cmd:"" help:"List open issues, newest first."`
	Show issueShow `cmd:"" help:"Show an issue."`
}

type issueList struct {
	All  bool   `help:"Closed ones as well."`
	Host string `help:"Only those of this host." placeholder:"HOST"`
}

// Run lists issues.
func (c *issueList) Run(s *cli.Session) error {
	return cli.ShowList(s, issues, client.Query{All: c.All, Host: c.Host}, 0, []string{"ID", "SEVERITY", "TYPE", "HOSTS", "OPENED", "TIMES", "CLOSED", "CAUSE", "HINT"},
		func(i inventory.Issue) []string {
			var names []string
			for _, id := range i.HostIDs {
				names = append(names, s.HostNames()(id))
			}
			return []string{fmt.Sprint(i.ID), string(i.Severity), i.Type, strings.Join(names, ","), cli.TimeText(i.OpenedAt), fmt.Sprint(i.SeenN), cli.TimeText(i.ClosedAt), i.Cause, i.Hint}
		})
}

type issueShow struct {
	Issue int64 `arg:""`
}

// Run shows an issue.
func (c *issueShow) Run(s *cli.Session) error {
	return cli.ShowOne(s, issues, fmt.Sprint(c.Issue), func(t *cli.TableWriter, i inventory.Issue) {
		t.Field("issue", fmt.Sprint(i.ID))
		t.Field("type", i.Type)
		t.Field("severity", string(i.Severity))
		for _, h := range i.HostIDs {
			t.Field("host", s.HostNames()(h))
		}
		t.Field("subnet", i.Subnet)
		t.Field("instance", i.Instance)
		t.Field("cause", i.Cause)
		t.Field("hint", i.Hint)
		t.Field("opened", cli.TimeText(i.OpenedAt))
		t.Field("last seen", fmt.Sprintf("%s, %d times", cli.TimeText(i.SeenAt), i.SeenN))
		t.Field("closed", cli.TimeText(i.ClosedAt))
	})
}
