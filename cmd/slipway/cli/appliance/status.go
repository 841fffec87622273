// Package appliance owns the commands for the server as a whole: slipway status, backup, restore, import, export, try, about,
// selfcheck and version.
package appliance

import (
	"cmp"
	"fmt"
	"slices"
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
		CheckTable(t, checks.Items)
	})
	for _, k := range checks.Items {
		if err == nil && k.Status == "error" {
			return cli.ErrSaid
		}
	}
	return err
}

// CheckTable shows checks, with the instances that they are about if there can be several.
func CheckTable(t *cli.TableWriter, all []wire.Check) {
	isOfSeveral := slices.ContainsFunc(all, func(k wire.Check) bool { return k.Instance != "" })
	row := func(status, name, instance, detail, hint string) {
		if isOfSeveral {
			t.Row(status, name, instance, detail, hint)
			return
		}
		t.Row(status, name, detail, hint)
	}
	row("STATUS", "CHECK", "INSTANCE", "DETAIL", "HINT")
	for _, k := range all {
		row(k.Status, k.Name, k.Instance, k.Detail, k.Hint)
	}
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
	Instance  string       `json:"instance,omitempty"` // the one that answers; "" if there can be no other
	BusyAt    string       `json:"busyAt,omitempty"`   // the one that busy and hourBoots are of
	Version   string       `json:"version"`
	Go        string       `json:"go"`
	Platform  string       `json:"platform"`
	StartedAt string       `json:"startedAt"`
	Busy      *wire.Sample `json:"busy,omitempty"` // in the last minute; absent before the first is over
	HourBoots float64      `json:"hourBoots"`      // boots in the last hour, or since the start
	IssueN    int          `json:"issueN"`         // open ones that the caller may see
	ErrorN    int          `json:"errorN"`         // of these, errors
	// Database is where the inventory is; nil: the caller may not see it.
	Database *wire.Database `json:"database,omitempty"`
	// Instances are the servers of that database; nil: the caller may not see them.
	Instances []wire.Instance `json:"instances,omitempty"`
	Parts     []wire.Part     `json:"parts,omitempty"`
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
	out := statusOf{
		Instance: about.Instance, Version: about.Version, Go: about.Go, Platform: about.Platform, StartedAt: cli.TimeText(about.StartedAt),
	}
	if c.Parts {
		out.Parts = about.Parts
	}
	stats, err := api.Stats(s.Ctx)
	if err == nil {
		out.takeStats(stats)
	} else {
		cli.Complain(s.Err, err) // a server without samples is none that is broken
	}
	if d, err := client.Database(s.Ctx, api); err == nil {
		out.Database = &d
	} else if !inventory.IsKind(err, inventory.Forbidden) && !inventory.IsKind(err, inventory.NotFound) { // an older server has none
		cli.Complain(s.Err, err)
	}
	if out.Database != nil && out.Database.IsReachable {
		out.takeInstances(s, api)
	}
	for i, err := range api.Issues.All(s.Ctx, client.Query{}) {
		if err != nil && out.Database != nil && !out.Database.IsReachable { // what is said of the database is the reason
			_ = s.Show(out, out.table)
			return cli.ErrSaid
		} else if err != nil {
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
	o.BusyAt = all.Instance
	for _, s := range all.Samples {
		o.HourBoots += s.Boots * float64(all.StepSeconds)
	}
	if n := len(all.Samples); n > 0 {
		o.Busy = &all.Samples[n-1]
	}
}

// takeInstances reads the servers of the database. An older server knows none.
func (o *statusOf) takeInstances(s *cli.Session, api *client.Client) {
	for i, err := range api.Instances.All(s.Ctx, client.Query{}) {
		if err != nil {
			if !inventory.IsKind(err, inventory.Forbidden) && !inventory.IsKind(err, inventory.NotFound) {
				cli.Complain(s.Err, err)
			}
			return
		}
		o.Instances = append(o.Instances, i)
	}
}

// databaseTable says where the inventory is. Of a file there is little to say.
func databaseTable(t *cli.TableWriter, d *wire.Database) {
	if d.Kind == wire.DatabaseSQLite {
		t.Field("database", d.Address)
		return
	}
	if !d.IsReachable {
		t.Field("database", d.Address+": "+cmp.Or(d.Reason, "not asked yet"))
		if d.Hint != "" {
			t.Field("", d.Hint)
		}
		return
	}
	durable := "acknowledged changes are durable"
	if d.IsDurable != nil && !*d.IsDurable {
		durable = "acknowledged changes can be lost"
	}
	t.Field("database", fmt.Sprintf("%s, PostgreSQL %s at %s, answers in %.1f ms; %s",
		d.Address, d.Version, d.Server, 1000*d.RoundTripSeconds, durable))
	for _, r := range d.Risks {
		t.Field("", r.Cause)
	}
	if d.WaitsFor != "" {
		t.Field("", "nothing is stored: each commit waits for "+d.WaitsFor)
	}
	for _, s := range d.Standbys {
		text := s.Name + " " + s.Address
		if s.State == "" {
			text += ": not known; GRANT pg_read_all_stats shows it"
		} else {
			text += fmt.Sprintf(": %s, %s, %s behind", s.State, s.Sync, images.FormatBytes(s.LagBytes))
		}
		t.Field("standby", text)
	}
	if d.LostCommits > 0 {
		t.Field("", fmt.Sprintf("%d acknowledged commits were lost: slipway issue list", d.LostCommits))
	}
}

func (o statusOf) table(t *cli.TableWriter) {
	t.Field("instance", o.Instance)
	t.Field("version", o.Version)
	t.Field("built with", o.Go+" for "+o.Platform)
	t.Field("started", o.StartedAt)
	if b := o.Busy; b != nil {
		if o.BusyAt != o.Instance {
			t.Field("busy", "as the instance with the engine, "+o.BusyAt+", counts:")
		}
		t.Field("dhcp", fmt.Sprintf("%.1f answers/s, %.1f unanswered/s", b.DHCPReplies, b.DHCPDrops))
		t.Field("tftp", images.FormatBytes(int64(b.TFTPBytes))+"/s")
		t.Field("http", images.FormatBytes(int64(b.HTTPBytes))+"/s")
		t.Field("boots", fmt.Sprintf("%.0f in the last hour", o.HourBoots))
	}
	if o.Database != nil {
		databaseTable(t, o.Database)
		if !o.Database.IsReachable {
			t.Field("issues", "not known without the database")
			return
		}
		instancesTable(t, o.Database, o.Instances)
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
