package hosts

import (
	"context"
	"fmt"
	"io"
	"reflect"
	"strings"

	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
	"slipway.dev/slipway/web/wire"
)

type hostSet struct {
	Host         string   `arg:""`
	Name         *string  `help:"Another name." placeholder:"NAME"`
	Profile      *string  `help:"Profile to pin; empty lets the selectors decide." placeholder:"NAME"`
	DiskBoot     *string  `help:"How it is sent to its own disk: no-offer, exit or sanboot; empty asks the quirk table." placeholder:"WAY"`
	Port         *string  `help:"Switch port to pin it to, CIRCUIT@SWITCH as lease list shows it; empty unpins." placeholder:"PORT"`
	Adopted      *bool    `negatable:"" help:"Its operating system is not ours: it always boots its own disk."`
	MAC          []string `name:"mac" help:"All MACs that it has; repeat for more." placeholder:"MAC"`
	UUID         *string  `name:"uuid" help:"SMBIOS UUID." placeholder:"UUID"`
	Serial       *string  `help:"Serial number." placeholder:"TEXT"`
	AssetTag     *string  `help:"Asset tag." placeholder:"TEXT"`
	Manufacturer *string  `help:"Manufacturer." placeholder:"TEXT"`
	Product      *string  `help:"Product." placeholder:"TEXT"`
	cli.RootFlags
	KeepDisk []string `help:"Disk that is never wiped and never chosen, such as serial=S4XY; repeat for more, none for none." placeholder:"DISK" sep:"none"`
	Taint    []string `help:"Keeps away machines that do not tolerate it: KEY=VALUE or KEY; repeat for more, none for none." placeholder:"TAINT" sep:"none"`
	DryRun   bool     `help:"Only show what would change."`
}

// Run changes a host.
func (c *hostSet) Run(s *cli.Session, api *client.Client) error {
	p := wire.HostPatch{
		Name: c.Name, Profile: c.Profile, DiskBoot: (*inventory.DiskBoot)(c.DiskBoot), Port: c.Port, IsAdopted: c.Adopted, UUID: c.UUID,
		Serial: c.Serial, AssetTag: c.AssetTag, Manufacturer: c.Manufacturer, Product: c.Product,
	}
	for _, m := range c.MAC {
		p.MACs = append(p.MACs, inventory.MAC(m))
	}
	if err := c.patchDisks(s, api, &p); err != nil {
		return err
	}
	if reflect.ValueOf(p).IsZero() {
		return cli.Usage("slipway host set --help lists what can be changed", "nothing to change")
	}
	return patchHost(s, api, c.Host, p, c.DryRun)
}

// patchDisks adds what is said of disks and taints. A hint is written as a whole: what was not said of it stays as stored.
func (c *hostSet) patchDisks(s *cli.Session, api *client.Client, p *wire.HostPatch) (err error) {
	if c.KeepDisk != nil {
		if p.KeepDisks, err = cli.ParseDisks("--keep-disk", c.KeepDisk); err != nil {
			return err
		}
	}
	if c.Taint != nil {
		if p.Taints, err = cli.ParseTaints(c.Taint); err != nil {
			return err
		}
	}
	if !c.IsGiven() {
		return nil
	}
	var root inventory.DiskHint
	if err := c.Apply(&root); err != nil { // before the server is asked
		return err
	}
	h, err := api.Hosts.Get(s.Ctx, c.Host)
	if err != nil {
		return err
	}
	p.RootDisk = &h.RootDisk
	return c.Apply(p.RootDisk)
}

type hostPin struct {
	Host     string `arg:""`
	Revision int    `arg:"" help:"Number of the revision; 0 follows the newest."`
	DryRun   bool   `help:"Only show what would change."`
}

// Run pins a revision of the profile that the host has. A profile that a selector chose is pinned with it: another one
// has other revisions.
func (c *hostPin) Run(s *cli.Session, api *client.Client) error {
	p := wire.HostPatch{Revision: &c.Revision}
	if c.Revision != 0 {
		x, err := api.Hosts.Explain(s.Ctx, c.Host)
		if err != nil {
			return err
		}
		h, err := api.Hosts.Get(s.Ctx, c.Host)
		if err != nil {
			return err
		}
		if h.Profile == "" && x.Profile != "" {
			p.Profile = &x.Profile
		}
	}
	return patchHost(s, api, c.Host, p, c.DryRun)
}

// eachHost does something to every host, and says what came of it.
func eachHost(s *cli.Session, names []string, do func(h client.Hosts, ctx context.Context, name string) (inventory.Host, error)) error {
	return s.Each(names, func(c *client.Client, name string) error {
		return cli.Answered(do(c.Hosts, s.Ctx, name)).Show(s, hostRow)
	})
}

// hostRow says what became of a host.
func hostRow(t *cli.TableWriter, h inventory.Host) { t.Row(h.Name, string(h.State), flagsOf(h)) }

type hostInstall struct {
	Hosts   []string `arg:""`
	Profile string   `help:"Profile to pin first; without it the one that the host has." placeholder:"NAME"`
}

// Run arms hosts.
func (c *hostInstall) Run(s *cli.Session) error {
	return eachHost(s, c.Hosts, func(h client.Hosts, ctx context.Context, name string) (inventory.Host, error) {
		return h.Install(ctx, name, c.Profile)
	})
}

type hostRelease struct {
	Hosts []string `arg:""`
}

// Run takes hosts back.
func (c *hostRelease) Run(s *cli.Session) error { return eachHost(s, c.Hosts, client.Hosts.Release) }

type hostConfirm struct {
	Hosts []string `arg:""`
}

// Run takes a person's word for who boots.
func (c *hostConfirm) Run(s *cli.Session) error { return eachHost(s, c.Hosts, client.Hosts.Confirm) }

// hostSwitch turns something on or off for hosts.
type hostSwitch struct {
	Hosts []string `arg:""`
	Off   bool     `help:"End it."`
}

// turn does so by a call of the API.
func (c *hostSwitch) turn(s *cli.Session, call func(h client.Hosts, ctx context.Context, name string, on bool) (inventory.Host, error)) error {
	return eachHost(s, c.Hosts, func(h client.Hosts, ctx context.Context, name string) (inventory.Host, error) {
		return call(h, ctx, name, !c.Off)
	})
}

type (
	hostMaintain struct{ hostSwitch }
	hostCordon   struct{ hostSwitch }
	hostRetain   struct{ hostSwitch }
	hostProtect  struct{ hostSwitch }
	hostAdopt    struct{ hostSwitch }
)

// Run puts hosts into maintenance or takes them out.
func (c *hostMaintain) Run(s *cli.Session) error { return c.turn(s, client.Hosts.Maintain) }

// Run cordons hosts or ends that.
func (c *hostCordon) Run(s *cli.Session) error { return c.turn(s, client.Hosts.Cordon) }

// Run retains hosts or ends that.
func (c *hostRetain) Run(s *cli.Session) error { return c.turn(s, client.Hosts.Retain) }

// Run protects hosts or ends that.
func (c *hostProtect) Run(s *cli.Session) error { return c.turn(s, client.Hosts.Protect) }

// Run adopts running servers or ends that.
func (c *hostAdopt) Run(s *cli.Session) error { return c.turn(s, client.Hosts.Adopt) }

type hostScript struct {
	Host string `arg:""`
}

// Run shows the script that a host would get.
func (c *hostScript) Run(s *cli.Session, api *client.Client) error {
	text, err := api.Hosts.Script(s.Ctx, c.Host)
	if err != nil {
		return err
	}
	if s.Globals.Output != "table" {
		return s.Show(map[string]string{"script": text}, nil)
	}
	_, err = io.WriteString(s.Out, cli.PlainLines(text))
	return err
}

type hostEvents struct {
	Host    string `arg:""`
	Follow  bool   `short:"f" help:"Wait for more."`
	Session string `help:"Only this boot session." placeholder:"ID"`
	All     bool   `help:"From the first boot on; without it, the last 3 boots."`
}

// bootsShown is how many boots host events shows when not asked for all.
const bootsShown = 3

// Run shows a host's timeline.
func (c *hostEvents) Run(s *cli.Session, api *client.Client) error {
	h, err := api.Hosts.Get(s.Ctx, c.Host)
	if err != nil {
		return err
	}
	q := client.EventQuery{Host: string(h.ID), Session: inventory.SessionID(c.Session)}
	v := cli.NewEventView(s, api)
	v.SkipHost = true
	if !c.All && c.Session == "" {
		boots, err := api.Sessions.List(s.Ctx, client.Query{Host: string(h.ID), Limit: bootsShown})
		if err != nil {
			return err
		}
		if n := len(boots.Items); n > 0 {
			v.Since = boots.Items[n-1].StartedAt
		}
	}
	if err := v.Run(q, c.Follow, 0); err != nil {
		return fmt.Errorf("events of %s: %w", h.Name, err)
	}
	return nil
}

// flagsOf names what is special about a host.
func flagsOf(h inventory.Host) string {
	var flags []string
	for _, f := range []struct {
		is   bool
		name string
	}{{h.InMaintenance, "maintenance"}, {h.IsProtected, "protected"}, {h.IsAdopted, "adopted"}, {h.IsCordoned, "cordoned"}, {h.IsRetained, "retained"}, {h.IsArmed, "armed"}, {h.IsDirty && h.ClaimID == "", "dirty"}} {
		if f.is {
			flags = append(flags, f.name)
		}
	}
	return strings.Join(flags, ",")
}

// patchHost changes a host, or shows what that would change.
func patchHost(s *cli.Session, api *client.Client, host string, p wire.HostPatch, isDryRun bool) error {
	if isDryRun {
		return s.Preview(api.Hosts.Preview(s.Ctx, "PATCH", host, p))
	}
	return s.Stored(api.Hosts.Patch(s.Ctx, host, p))
}

// placeFlags are the flags that say where a host stands.
type placeFlags struct {
	Site *string `help:"Site." placeholder:"NAME"`
	Row  *string `help:"Row." placeholder:"NAME"`
	Rack *string `help:"Rack." placeholder:"NAME"`
	Unit *int    `help:"Lowest number of the rack units it fills; 0 for unknown." placeholder:"N"`

	Height *int            `help:"How many rack units it fills (default 1)." placeholder:"N"`
	Face   *inventory.Face `help:"Side it is mounted on, when it does not fill the depth of the rack: front or rear." placeholder:"FACE"`
}

func (f placeFlags) patch() *wire.PlacePatch {
	if f == (placeFlags{}) {
		return nil
	}
	return &wire.PlacePatch{Site: f.Site, Row: f.Row, Rack: f.Rack, Unit: f.Unit, Height: f.Height, Face: f.Face}
}

type hostPlace struct {
	Host string `arg:""`
	placeFlags
	DryRun bool `help:"Only show what would change."`
}

// Run places a host.
func (c *hostPlace) Run(s *cli.Session, api *client.Client) error {
	p := c.patch()
	if p == nil {
		return cli.Usage("give --site, --row, --rack, --unit, --height or --face", "nothing to change")
	}
	return patchHost(s, api, c.Host, wire.HostPatch{Place: p}, c.DryRun)
}
