// Package appliance owns the commands for the server as a whole: slipway status, backup, restore, import, export, try, about,
// selfcheck and version.
package appliance

import (
	"fmt"
	"time"

	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/images"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
	"slipway.dev/slipway/web/wire"
)

// SelfcheckCommand is slipway selfcheck.
type SelfcheckCommand struct{}

// Run shows the server's self-check; an error in it is a failure.
func (*SelfcheckCommand) Run(s *cli.Session, api *client.Client) error {
	checks, err := api.SelfCheck(s.Ctx)
	if err != nil {
		return err
	}
	err = s.Show(checks.Items, func(t *cli.TableWriter) {
		t.Row("STATUS", "CHECK", "DETAIL", "HINT")
		for _, k := range checks.Items {
			t.Row(k.Status, k.Name, k.Detail, k.Hint)
		}
	})
	for _, k := range checks.Items {
		if err == nil && k.Status == "error" {
			return cli.ErrSaid
		}
	}
	return err
}

// VersionCommand is slipway version.
type VersionCommand struct {
	Client bool `help:"Only this program's; do not ask a server."`
}

// Run shows the versions. A server that is not there is no failure.
func (c *VersionCommand) Run(s *cli.Session) error {
	out := struct {
		Client string `json:"client"`
		Server string `json:"server,omitempty"`
	}{Client: cli.Version}
	if !c.Client {
		api, err := s.Client()
		if err != nil {
			return err
		}
		if v, err := api.Version(s.Ctx); err == nil {
			out.Server = v.Version
		} else {
			cli.Complain(s.Err, err)
		}
	}
	return s.Show(out, func(t *cli.TableWriter) {
		t.Field("client", out.Client)
		t.Field("server", out.Server)
	})
}

// StatusCommand is slipway status.
type StatusCommand struct {
	Wait  time.Duration `help:"Wait so long for a server that does not answer yet, such as 1m after slipway serve." placeholder:"TIME"`
	Parts bool          `help:"List the Go modules in the server as well."`
}

// statusOf is what slipway status says.
type statusOf struct {
	Version   string       `json:"version"`
	Go        string       `json:"go"`
	Platform  string       `json:"platform"`
	StartedAt string       `json:"startedAt"`
	Busy      *wire.Sample `json:"busy,omitempty"` // in the last minute; absent before the first is over
	HourBoots float64      `json:"hourBoots"`      // boots in the last hour, or since the start
	IssueN    int          `json:"issueN"`         // open ones that the caller may see
	ErrorN    int          `json:"errorN"`         // of these, errors
	Parts     []wire.Part  `json:"parts,omitempty"`
}

// Run says what the server is, how busy it is, and whether something is wrong.
func (c *StatusCommand) Run(s *cli.Session, api *client.Client) error {
	if c.Wait > 0 {
		if err := cli.AwaitServer(s.Ctx, api, c.Wait); err != nil {
			return err
		}
	}
	about, err := api.About(s.Ctx)
	if err != nil {
		return err
	}
	out := statusOf{Version: about.Version, Go: about.Go, Platform: about.Platform, StartedAt: cli.TimeText(about.StartedAt)}
	if c.Parts {
		out.Parts = about.Parts
	}
	stats, err := api.Stats(s.Ctx)
	if err == nil {
		out.takeStats(stats)
	} else {
		cli.Complain(s.Err, err) // a server without samples is none that is broken
	}
	for i, err := range api.Issues.All(s.Ctx, client.Query{}) {
		if err != nil {
			return err
		}
		if out.IssueN++; i.Severity == inventory.SeverityError {
			out.ErrorN++
		}
	}
	return s.Show(out, out.table)
}

// takeStats adds up samples.
func (o *statusOf) takeStats(all wire.Stats) {
	for _, s := range all.Samples {
		o.HourBoots += s.Boots * float64(all.StepSeconds)
	}
	if n := len(all.Samples); n > 0 {
		o.Busy = &all.Samples[n-1]
	}
}

func (o statusOf) table(t *cli.TableWriter) {
	t.Field("version", o.Version)
	t.Field("built with", o.Go+" for "+o.Platform)
	t.Field("started", o.StartedAt)
	if b := o.Busy; b != nil {
		t.Field("dhcp", fmt.Sprintf("%.1f answers/s, %.1f unanswered/s", b.DHCPReplies, b.DHCPDrops))
		t.Field("tftp", images.FormatBytes(int64(b.TFTPBytes))+"/s")
		t.Field("http", images.FormatBytes(int64(b.HTTPBytes))+"/s")
		t.Field("boots", fmt.Sprintf("%.0f in the last hour", o.HourBoots))
	}
	issues := "none"
	if o.IssueN > 0 {
		issues = fmt.Sprintf("%d open, %d of them errors: slipway issue list", o.IssueN, o.ErrorN)
	}
	t.Field("issues", issues)
	for _, p := range o.Parts {
		t.Field(p.Name, p.Version)
	}
}
