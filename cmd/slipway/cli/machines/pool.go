package machines

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
)

func pools(c *client.Client) client.Noun[client.Pool] { return c.Pools }

// PoolCommand is slipway pool.
type PoolCommand struct {
	List   poolList   `cmd:"" help:"List pools and how their hosts are doing."`
	Show   poolShow   `cmd:"" help:"Show a pool."`
	Create poolCreate `cmd:"" help:"Add a pool: a set of hosts that machines are taken from."`
	Set    poolSet    `cmd:"" help:"Change a pool; other settings stay."`
	Delete poolDelete `cmd:"" help:"Delete pools that no machine is in."`
}

type poolList struct{}

// Run lists pools.
func (*poolList) Run(s *cli.Session) error {
	return cli.ShowList(s, pools, client.Query{}, 0, []string{"NAME", "SELECTOR", "HOSTS", "AVAILABLE", "CLAIMED", "CLEANING", "FAILED", "SPARE", "CLEAN"}, func(p client.Pool) []string {
		return []string{
			p.Name, p.Selector, fmt.Sprint(p.Hosts.Total), fmt.Sprint(p.Hosts.Available), fmt.Sprint(p.Hosts.Claimed), fmt.Sprint(p.Hosts.Cleaning),
			fmt.Sprint(p.Hosts.Failed), fmt.Sprint(p.MinSpare), cleanText(p.Clean),
		}
	})
}

func cleanText(m inventory.CleanMode) string {
	if m == "" {
		m = inventory.CleanQuick
	}
	return string(m)
}

type poolShow struct {
	Pool string `arg:""`
}

// Run shows a pool.
func (c *poolShow) Run(s *cli.Session) error {
	return cli.ShowOne(s, pools, c.Pool, func(t *cli.TableWriter, p client.Pool) {
		t.Field("name", p.Name)
		t.Field("selector", p.Selector)
		t.Field("requires", cli.RequirementsText(p.Requirements))
		t.Field("hosts", fmt.Sprintf("%d: %d available, %d claimed, %d cleaning, %d failed", p.Hosts.Total, p.Hosts.Available, p.Hosts.Claimed, p.Hosts.Cleaning, p.Hosts.Failed))
		t.Field("spare", fmt.Sprintf("at least %d", p.MinSpare))
		t.Field("clean", cleanText(p.Clean))
		t.Field("burn in", cli.DurationText(p.BurnInFor))
		t.Field("at once", fmt.Sprintf("%s installations, %s wipes", unbounded(p.Budget.Provision), unbounded(p.Budget.Destroy)))
		t.Field("between wipes", cli.DurationText(p.Budget.DestroyInterval))
		t.Field("changed", cli.TimeText(p.UpdatedAt))
	})
}

func unbounded(n int) string {
	if n == 0 {
		return "any number of"
	}
	return fmt.Sprint(n)
}

// poolFlags are what can be said of a pool; nil is not given.
type poolFlags struct {
	Selector        *string        `short:"l" help:"Hosts that are in it, such as rack=r1; empty for all." placeholder:"SELECTOR"`
	Require         []string       `help:"Hardware that its hosts must have: cpu=16,memory=64G,disk=1T or expression=CEL; repeat for more, an empty one takes all away." placeholder:"KEY=VALUE" sep:"none"`
	Clean           *string        `help:"How disks are wiped: none, quick, full or secure (default quick)." placeholder:"MODE"`
	MinSpare        *int           `help:"So many hosts stay unclaimed, to replace failed ones." placeholder:"N"`
	BurnIn          *time.Duration `help:"How long new hosts are loaded before they are available; 0s for not at all." placeholder:"DURATION"`
	MaxProvision    *int           `help:"Most installations at the same time; 0 for any number." placeholder:"N"`
	MaxDestroy      *int           `help:"Most wipes at the same time; 0 for any number." placeholder:"N"`
	DestroyInterval *time.Duration `help:"Least time between the starts of two wipes." placeholder:"DURATION"`
	DryRun          bool           `help:"Only show what would change."`
}

func (f *poolFlags) apply(p *inventory.Pool) error {
	cli.Set(&p.Selector, f.Selector)
	cli.Set(&p.Clean, (*inventory.CleanMode)(f.Clean))
	cli.Set(&p.MinSpare, f.MinSpare)
	cli.Set(&p.BurnInFor, (*inventory.Duration)(f.BurnIn))
	cli.Set(&p.Budget.Provision, f.MaxProvision)
	cli.Set(&p.Budget.Destroy, f.MaxDestroy)
	cli.Set(&p.Budget.DestroyInterval, (*inventory.Duration)(f.DestroyInterval))
	return cli.ParseRequirements(&p.Requirements, f.Require)
}

type poolCreate struct {
	Name string `arg:"" help:"Its name, a DNS label."`
	poolFlags
}

// Run adds a pool.
func (c *poolCreate) Run(s *cli.Session) error {
	var p client.Pool
	p.Name = c.Name
	if err := c.apply(&p.Pool); err != nil {
		return err
	}
	return cli.Write(s, pools, "POST", "", p, c.DryRun)
}

type poolSet struct {
	Pool string `arg:""`
	poolFlags
}

// Run changes a pool as it is stored now.
func (c *poolSet) Run(s *cli.Session, api *client.Client) error {
	p, err := api.Pools.Get(s.Ctx, c.Pool)
	if err != nil {
		return err
	}
	if err := c.apply(&p.Pool); err != nil {
		return err
	}
	return cli.Write(s, pools, "PUT", c.Pool, p, c.DryRun, client.IfVersion(p.Version))
}

type poolDelete struct {
	Pools  []string `arg:""`
	DryRun bool     `help:"Only show what would be deleted."`
}

// Run deletes pools.
func (c *poolDelete) Run(s *cli.Session) error { return cli.Remove(s, pools, c.Pools, c.DryRun) }

func goldens(c *client.Client) client.Noun[inventory.Golden] { return c.Goldens }

// GoldenCommand is slipway golden.
type GoldenCommand struct {
	List   goldenList   `cmd:"" help:"List golden hardware."`
	Show   goldenShow   `cmd:"" help:"Show golden hardware."`
	Create goldenCreate `cmd:"" help:"Describe the hardware that hosts of a kind must have; a missing part is an issue."`
	Set    goldenSet    `cmd:"" help:"Change golden hardware; other settings stay."`
	Delete goldenDelete `cmd:"" help:"Delete golden hardware."`
}

type goldenList struct{}

// Run lists golden hardware.
func (*goldenList) Run(s *cli.Session) error {
	return cli.ShowList(s, goldens, client.Query{}, 0, []string{"NAME", "SELECTOR", "REQUIRES", "DISKS", "PORTS", "DIMMS", "STRICT"}, func(g inventory.Golden) []string {
		return []string{g.Name, g.Selector, cli.RequirementsText(g.Requirements), someN(g.DiskN), someN(g.PortN), someN(g.DIMMN), cli.YesNo(g.IsStrict)}
	})
}

func someN(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

type goldenShow struct {
	Golden string `arg:""`
}

// Run shows golden hardware.
func (c *goldenShow) Run(s *cli.Session) error {
	return cli.ShowOne(s, goldens, c.Golden, func(t *cli.TableWriter, g inventory.Golden) {
		t.Field("name", g.Name)
		t.Field("selector", g.Selector)
		t.Field("requires", cli.RequirementsText(g.Requirements))
		t.Field("disks", someN(g.DiskN))
		t.Field("ports", someN(g.PortN))
		t.Field("dimms", someN(g.DIMMN))
		for _, k := range slices.Sorted(maps.Keys(g.Firmware)) {
			t.Field("firmware", k+" "+g.Firmware[k])
		}
		t.Field("strict", cli.YesNo(g.IsStrict))
		t.Field("changed", cli.TimeText(g.UpdatedAt))
	})
}

// goldenFlags are what can be said of golden hardware; nil is not given.
type goldenFlags struct {
	Require  []string `help:"Hardware that hosts must have: cpu=16,memory=64G,disk=1T or expression=CEL; repeat for more, an empty one takes all away." placeholder:"KEY=VALUE" sep:"none"`
	Firmware []string `help:"Version that they must have, such as bios=2.1, bmc=1.4, disk:PM9A3=GDC5 or port:mlx5_core=20.31; repeat for more, NAME= takes one away." placeholder:"NAME=VERSION" sep:"none"`
	Disks    *int     `help:"Exactly so many disks; 0 for any number." placeholder:"N"`
	Ports    *int     `help:"Exactly so many network ports; 0 for any number." placeholder:"N"`
	Dimms    *int     `help:"Exactly so many memory modules; 0 for any number." placeholder:"N"`
	Strict   *bool    `negatable:"" help:"A host that lacks something is not claimed."`
	DryRun   bool     `help:"Only show what would change."`
}

func (f *goldenFlags) apply(g *inventory.Golden) error {
	cli.Set(&g.DiskN, f.Disks)
	cli.Set(&g.PortN, f.Ports)
	cli.Set(&g.DIMMN, f.Dimms)
	cli.Set(&g.IsStrict, f.Strict)
	for _, text := range f.Firmware {
		name, version, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return cli.Usage("write it as bios=2.1", "--firmware %q is not NAME=VERSION", text)
		}
		if g.Firmware == nil {
			g.Firmware = map[string]string{}
		}
		if g.Firmware[name] = version; version == "" {
			delete(g.Firmware, name)
		}
	}
	return cli.ParseRequirements(&g.Requirements, f.Require)
}

type goldenCreate struct {
	Name     string `arg:"" help:"Its name, a DNS label."`
	Selector string `short:"l" required:"" help:"Hosts that it is for, such as product=R640." placeholder:"SELECTOR"`
	goldenFlags
}

// Run adds golden hardware.
func (c *goldenCreate) Run(s *cli.Session) error {
	g := inventory.Golden{Name: c.Name, Selector: c.Selector}
	if err := c.apply(&g); err != nil {
		return err
	}
	return cli.Write(s, goldens, "POST", "", g, c.DryRun)
}

type goldenSet struct {
	Golden   string  `arg:""`
	Selector *string `short:"l" help:"Hosts that it is for." placeholder:"SELECTOR"`
	goldenFlags
}

// Run changes golden hardware as it is stored now.
func (c *goldenSet) Run(s *cli.Session, api *client.Client) error {
	g, err := api.Goldens.Get(s.Ctx, c.Golden)
	if err != nil {
		return err
	}
	cli.Set(&g.Selector, c.Selector)
	if err := c.apply(&g); err != nil {
		return err
	}
	return cli.Write(s, goldens, "PUT", c.Golden, g, c.DryRun, client.IfVersion(g.Version))
}

type goldenDelete struct {
	Goldens []string `arg:""`
	DryRun  bool     `help:"Only show what would be deleted."`
}

// Run deletes golden hardware.
func (c *goldenDelete) Run(s *cli.Session) error { return cli.Remove(s, goldens, c.Goldens, c.DryRun) }
