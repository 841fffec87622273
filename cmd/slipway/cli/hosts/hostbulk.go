package hosts

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/foresight"
	"slipway.dev/slipway/provision/operation"
	"slipway.dev/slipway/web/client"
	"slipway.dev/slipway/web/wire"
)

type hostBulk struct {
	Verb     string   `arg:"" enum:"accept,inspect,install,power,maintain,protect,cordon,retain,adopt,confirm,clean,release,set,locate,delete" help:"accept, inspect, install, power, maintain, protect, cordon, retain, adopt, confirm, clean, release, set, locate or delete."`
	Hosts    []string `arg:"" optional:""`
	Selector string   `short:"l" help:"Those that the selector matches, instead of names." placeholder:"SELECTOR"`

	Off     bool           `help:"maintain, protect, cordon, retain, adopt, locate: end it."`
	Force   bool           `help:"delete: also hosts with a running operation: Slipway cancels it first."`
	Profile *string        `help:"install, set: profile to pin." placeholder:"NAME"`
	Action  string         `help:"power: on, off, shutdown, cycle or reset." enum:",on,off,shutdown,cycle,reset" default:"" placeholder:"ACTION"`
	Mode    string         `help:"clean: none, quick, full or secure." enum:",none,quick,full,secure" default:"" placeholder:"MODE"`
	Restart bool           `help:"inspect: restart machines that run."`
	BurnIn  *time.Duration `help:"inspect: load them for so long after that." placeholder:"DURATION"`
	Label   []string       `help:"set: KEY=VALUE sets a label, KEY- removes it; repeat for more." placeholder:"LABEL" sep:"none"`
	Site    *string        `help:"set: site." placeholder:"NAME"`
	Row     *string        `help:"set: row." placeholder:"NAME"`
	Rack    *string        `help:"set: rack." placeholder:"NAME"`
	DryRun  bool           `help:"Only say which hosts would be acted on, and why not the others."`
}

// Run does something to many hosts.
func (c *hostBulk) Run(s *cli.Session, api *client.Client) error {
	if (len(c.Hosts) > 0) == (c.Selector != "") {
		return cli.Usage("slipway host bulk VERB NAME... or --selector SELECTOR", "say which hosts, in one way")
	}
	r, err := c.request()
	if err != nil {
		return err
	}
	out, err := api.Hosts.Bulk(s.Ctx, r, c.DryRun)
	if err != nil {
		return err
	}
	err = showBulk(s, out, wasDone(out, "done"))
	if s.Globals.Output != "table" {
		return err
	}
	for _, line := range foreseen(out.Items) {
		s.Say("%s", line)
	}
	s.Say("%s acts on %d, skips %d", c.Verb, out.ActsN, out.SkipsN)
	return err
}

// foreseen says what a dry run foresees, each thing once with the number of hosts.
func foreseen(items []wire.BulkItem) (lines []string) {
	n := map[string]int{}
	for _, i := range items {
		if i.Acts && i.Does != "" {
			n[i.Does]++
		}
	}
	for _, does := range slices.Sorted(maps.Keys(n)) {
		hosts := fmt.Sprintf("%d hosts", n[does])
		if n[does] == 1 {
			hosts = "1 host"
		}
		lines = append(lines, strings.ReplaceAll(does, foresight.Hosts, hosts))
	}
	return lines
}

type hostForgetStrangers struct {
	SilentFor time.Duration `help:"Only those that have been silent for so long." placeholder:"DURATION"`
	DryRun    bool          `help:"Only say which hosts would be forgotten."`
}

// Run forgets the hosts that nobody has accepted.
func (c *hostForgetStrangers) Run(s *cli.Session, api *client.Client) error {
	out, err := api.Hosts.Bulk(s.Ctx, wire.BulkRequest{Verb: "delete", Strangers: true, SilentFor: inventory.Duration(c.SilentFor)}, c.DryRun)
	if err != nil {
		return err
	}
	done := wasDone(out, "forgotten")
	err = showBulk(s, out, done)
	if s.Globals.Output == "table" {
		s.Say("%d hosts %s, %d stay", out.ActsN, done, out.SkipsN)
	}
	return err
}

// wasDone says that hosts were acted on, or would be.
func wasDone(out wire.BulkResult, done string) string {
	if out.IsDryRun {
		return "would be " + done
	}
	return done
}

// showBulk shows what became of each host; done is what is said of those that were acted on. Skipped ones are a failure.
func showBulk(s *cli.Session, out wire.BulkResult, done string) error {
	err := s.Show(out, func(t *cli.TableWriter) {
		t.Row("HOST", "RESULT")
		for _, i := range out.Items {
			if i.Acts {
				t.Row(i.Host, done+cli.Prefixed(": ", strings.TrimPrefix(strings.ReplaceAll(i.Does, foresight.Hosts, i.Host), i.Host+" ")))
				continue
			}
			t.Row(i.Host, "skipped: "+i.Reason)
		}
	})
	if err == nil && out.SkipsN > 0 {
		return cli.ErrSaid
	}
	return err
}

// request is what the flags ask for.
func (c *hostBulk) request() (wire.BulkRequest, error) {
	r := wire.BulkRequest{Verb: c.Verb, Hosts: c.Hosts, Selector: c.Selector, Action: bmc.Action(c.Action), Mode: inventory.CleanMode(c.Mode)}
	on := !c.Off
	switch c.Verb {
	case "maintain", "protect", "cordon", "retain", "adopt", "locate":
		r.On = &on
	case "delete":
		r.Force = c.Force
	case "install":
		r.Profile = cli.Value(c.Profile)
	case "inspect":
		r.Inspect = operation.InspectRequest{MayRestart: c.Restart, BurnInFor: inventory.Duration(cli.Value(c.BurnIn))}
	case "set":
		labels, err := labelPatch(c.Label)
		if err != nil {
			return r, err
		}
		r.Set = &wire.HostPatch{Profile: c.Profile, Labels: labels, Place: placeFlags{Site: c.Site, Row: c.Row, Rack: c.Rack}.patch()}
	}
	return r, nil
}

// labelPatch reads KEY=VALUE and KEY-.
func labelPatch(words []string) (map[string]*string, error) {
	if len(words) == 0 {
		return nil, nil
	}
	labels := map[string]*string{}
	for _, l := range words {
		key, text, isSet := strings.Cut(l, "=")
		switch name, isRemoval := strings.CutSuffix(l, "-"); {
		case isSet:
			labels[key] = &text
		case isRemoval:
			labels[name] = nil
		default:
			return nil, cli.Usage("write KEY=VALUE to set a label and KEY- to remove it", "%q is not a label", l)
		}
	}
	return labels, nil
}
