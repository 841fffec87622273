package main

import (
	"fmt"
	"time"

	"slipway.dev/slipway/images"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
)

type statusCommand struct {
	Wait  time.Duration `help:"Wait so long for a server that does not answer yet, such as 1m after slipway serve." placeholder:"TIME"`
	Parts bool          `help:"List the Go modules in the server as well."`
}

// statusOf is what slipway status says.
type statusOf struct {
	Version   string         `json:"version"`
	Go        string         `json:"go"`
	Platform  string         `json:"platform"`
	StartedAt string         `json:"startedAt"`
	Busy      *client.Sample `json:"busy,omitempty"` // in the last minute; absent before the first is over
	HourBoots float64        `json:"hourBoots"`      // boots in the last hour, or since the start
	IssueN    int            `json:"issueN"`         // open ones that the caller may see
	ErrorN    int            `json:"errorN"`         // of these, errors
	Parts     []client.Part  `json:"parts,omitempty"`
}

// Run says what the server is, how busy it is, and whether something is wrong.
func (c *statusCommand) Run(s *session) error {
	api, err := s.client()
	if err != nil {
		return err
	}
	if c.Wait > 0 {
		if err := awaitServer(s.ctx, api, c.Wait); err != nil {
			return err
		}
	}
	about, err := api.About(s.ctx)
	if err != nil {
		return err
	}
	out := statusOf{Version: about.Version, Go: about.Go, Platform: about.Platform, StartedAt: timeText(about.StartedAt)}
	if c.Parts {
		out.Parts = about.Parts
	}
	stats, err := api.Stats(s.ctx)
	if err == nil {
		out.takeStats(stats)
	} else {
		complain(s.err, err) // a server without samples is none that is broken
	}
	for i, err := range api.Issues.All(s.ctx, client.Query{}) {
		if err != nil {
			return err
		}
		if out.IssueN++; i.Severity == inventory.SeverityError {
			out.ErrorN++
		}
	}
	return s.show(out, out.table)
}

// takeStats adds up samples.
func (o *statusOf) takeStats(all client.Stats) {
	for _, s := range all.Samples {
		o.HourBoots += s.Boots * float64(all.StepSeconds)
	}
	if n := len(all.Samples); n > 0 {
		o.Busy = &all.Samples[n-1]
	}
}

func (o statusOf) table(t *tableWriter) {
	t.field("version", o.Version)
	t.field("built with", o.Go+" for "+o.Platform)
	t.field("started", o.StartedAt)
	if b := o.Busy; b != nil {
		t.field("dhcp", fmt.Sprintf("%.1f answers/s, %.1f unanswered/s", b.DHCPReplies, b.DHCPDrops))
		t.field("tftp", images.FormatBytes(int64(b.TFTPBytes))+"/s")
		t.field("http", images.FormatBytes(int64(b.HTTPBytes))+"/s")
		t.field("boots", fmt.Sprintf("%.0f in the last hour", o.HourBoots))
	}
	issues := "none"
	if o.IssueN > 0 {
		issues = fmt.Sprintf("%d open, %d of them errors: slipway issue list", o.IssueN, o.ErrorN)
	}
	t.field("issues", issues)
	for _, p := range o.Parts {
		t.field(p.Name, p.Version)
	}
}
