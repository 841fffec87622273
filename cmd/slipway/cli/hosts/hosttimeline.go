package hosts

import (
	"fmt"
	"strings"
	"time"

	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/provision/watch"
	"slipway.dev/slipway/web/client"
)

type hostTimeline struct {
	Host  string `arg:""`
	Limit int    `default:"5" help:"At most so many boots and operations."`
}

// Run shows the boots and operations of a host, step by step.
func (c *hostTimeline) Run(s *cli.Session, api *client.Client) error {
	t, err := api.Hosts.Timeline(s.Ctx, c.Host, "", c.Limit)
	if err != nil {
		return err
	}
	if s.Globals.Output != "table" {
		return s.Show(t, nil)
	}
	if x := t.Expects; x != nil {
		fmt.Fprintln(s.Out, expectedLine(x, time.Now()))
		for _, more := range []string{x.Reason, x.Hint} {
			if more != "" {
				fmt.Fprintln(s.Out, "  "+cli.Plain(more))
			}
		}
	}
	for _, g := range t.Groups {
		fmt.Fprintf(s.Out, "%s  %s %s  %s  %s\n", g.StartedAt.Local().Format("2006-01-02 15:04:05"), g.Kind, cli.Plain(g.Title), g.State, cli.Plain(g.ID))
		if g.Reason != "" {
			fmt.Fprintln(s.Out, "  "+cli.Plain(g.Reason))
		}
		for _, x := range g.Steps {
			fmt.Fprintln(s.Out, strings.TrimRight(stepLine(x, time.Now()), " "))
		}
	}
	if len(t.Groups) == 0 {
		s.Say("nothing was done with it yet")
	}
	return nil
}

// expectedLine says what should happen next.
func expectedLine(x *watch.Expected, now time.Time) string {
	switch {
	case x.By.IsZero():
		return "next: " + cli.Plain(x.What)
	case x.IsLate:
		return fmt.Sprintf("late: %s, since %s", cli.Plain(x.What), now.Sub(x.By).Round(time.Second))
	}
	return fmt.Sprintf("next: %s, within %s", cli.Plain(x.What), x.By.Sub(now).Round(time.Second))
}

// stepLine is a step with how long it took and usually takes.
func stepLine(x client.TimelineStep, now time.Time) string {
	took, usual := "", ""
	switch {
	case !x.EndedAt.IsZero():
		took = cli.Seconds(x.EndedAt.Sub(x.StartedAt))
	case !x.StartedAt.IsZero():
		took = cli.Seconds(now.Sub(x.StartedAt))
	}
	if x.SampleN > 0 {
		usual = fmt.Sprintf("usually %.1fs", x.Usual)
	}
	return fmt.Sprintf("  %-8s %-28s %10s  %-16s %s", x.State, cli.Plain(x.Title), took, usual, cli.Plain(x.Detail))
}

type hostSticker struct {
	Host string `arg:""`
	Base string `default:"http://127.0.0.1:8067" help:"Address of the web UI that the code leads to." placeholder:"URL"`
}

// Run writes the sticker of a host.
func (c *hostSticker) Run(s *cli.Session, api *client.Client) error {
	svg, err := api.Hosts.Sticker(s.Ctx, c.Host, c.Base)
	if err != nil {
		return err
	}
	return cli.WriteText(s.Out, string(svg))
}
