package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
)

func pools(c *client.Client) client.Noun[client.Pool] { return c.Pools }

type poolCommand struct {
	List   poolList   `cmd:"" help:"List pools and how their hosts are doing."`
	Show   poolShow   `cmd:"" help:"Show a pool."`
	Create poolCreate `cmd:"" help:"Add a pool: a set of hosts that machines are taken from."`
	Set    poolSet    `cmd:"" help:"Change a pool; what is not given stays."`
	Delete poolDelete `cmd:"" help:"Delete pools that no machine is in."`
}

type poolList struct{}

// Run lists pools.
func (*poolList) Run(s *session) error {
	return showList(s, pools, client.Query{}, 0, []string{"NAME", "SELECTOR", "HOSTS", "AVAILABLE", "CLAIMED", "CLEANING", "FAILED", "SPARE", "CLEAN"}, func(p client.Pool) []string {
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
func (c *poolShow) Run(s *session) error {
	return showOne(s, pools, c.Pool, func(t *tableWriter, p client.Pool) {
		t.field("name", p.Name)
		t.field("selector", p.Selector)
		t.field("requires", requirementsText(p.Requirements))
		t.field("hosts", fmt.Sprintf("%d: %d available, %d claimed, %d cleaning, %d failed", p.Hosts.Total, p.Hosts.Available, p.Hosts.Claimed, p.Hosts.Cleaning, p.Hosts.Failed))
		t.field("spare", fmt.Sprintf("at least %d", p.MinSpare))
		t.field("clean", cleanText(p.Clean))
		t.field("burn in", durationText(p.BurnInFor))
		t.field("at once", fmt.Sprintf("%s installations, %s wipes", unbounded(p.Budget.Provision), unbounded(p.Budget.Destroy)))
		t.field("between wipes", durationText(p.Budget.DestroyInterval))
		t.field("changed", timeText(p.UpdatedAt))
	})
}

func durationText(d inventory.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
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
	Require         []string       `help:"What its hosts must have: cpu=16,memory=64G,disk=1T or expression=CEL; repeat for more, an empty one takes all away." placeholder:"KEY=VALUE" sep:"none"`
	Clean           *string        `help:"How disks are wiped: none, quick, full or secure (default quick)." placeholder:"MODE"`
	MinSpare        *int           `help:"So many hosts stay unclaimed, to replace failed ones." placeholder:"N"`
	BurnIn          *time.Duration `help:"How long new hosts are loaded before they are available; 0s for not at all." placeholder:"DURATION"`
	MaxProvision    *int           `help:"Most installations at the same time; 0 for any number." placeholder:"N"`
	MaxDestroy      *int           `help:"Most wipes at the same time; 0 for any number." placeholder:"N"`
	DestroyInterval *time.Duration `help:"Least time between the starts of two wipes." placeholder:"DURATION"`
	DryRun          bool           `help:"Only show what would change."`
}

func (f *poolFlags) apply(p *inventory.Pool) error {
	set(&p.Selector, f.Selector)
	set(&p.Clean, (*inventory.CleanMode)(f.Clean))
	set(&p.MinSpare, f.MinSpare)
	set(&p.BurnInFor, (*inventory.Duration)(f.BurnIn))
	set(&p.Budget.Provision, f.MaxProvision)
	set(&p.Budget.Destroy, f.MaxDestroy)
	set(&p.Budget.DestroyInterval, (*inventory.Duration)(f.DestroyInterval))
	return parseRequirements(&p.Requirements, f.Require)
}

type poolCreate struct {
	Name string `arg:"" help:"Its name, a DNS label."`
	poolFlags
}

// Run adds a pool.
func (c *poolCreate) Run(s *session) error {
	var p client.Pool
	p.Name = c.Name
	if err := c.apply(&p.Pool); err != nil {
		return err
	}
	return write(s, pools, "POST", "", p, c.DryRun)
}

type poolSet struct {
	Pool string `arg:""`
	poolFlags
}

// Run changes a pool as it is stored now.
func (c *poolSet) Run(s *session) error {
	api, err := s.client()
	if err != nil {
		return err
	}
	p, err := api.Pools.Get(s.ctx, c.Pool)
	if err != nil {
		return err
	}
	if err := c.apply(&p.Pool); err != nil {
		return err
	}
	return write(s, pools, "PUT", c.Pool, p, c.DryRun, client.IfVersion(p.Version))
}

type poolDelete struct {
	Pools  []string `arg:""`
	DryRun bool     `help:"Only show what would be deleted."`
}

// Run deletes pools.
func (c *poolDelete) Run(s *session) error { return remove(s, pools, c.Pools, c.DryRun) }

func goldens(c *client.Client) client.Noun[inventory.Golden] { return c.Goldens }

type goldenCommand struct {
	List   goldenList   `cmd:"" help:"List golden hardware."`
	Show   goldenShow   `cmd:"" help:"Show golden hardware."`
	Create goldenCreate `cmd:"" help:"Say what hosts of a kind must be made of; what one lacks is an issue."`
	Set    goldenSet    `cmd:"" help:"Change golden hardware; what is not given stays."`
	Delete goldenDelete `cmd:"" help:"Delete golden hardware."`
}

type goldenList struct{}

// Run lists golden hardware.
func (*goldenList) Run(s *session) error {
	return showList(s, goldens, client.Query{}, 0, []string{"NAME", "SELECTOR", "REQUIRES", "DISKS", "PORTS", "DIMMS", "STRICT"}, func(g inventory.Golden) []string {
		return []string{g.Name, g.Selector, requirementsText(g.Requirements), someN(g.DiskN), someN(g.PortN), someN(g.DIMMN), yesNo(g.IsStrict)}
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
func (c *goldenShow) Run(s *session) error {
	return showOne(s, goldens, c.Golden, func(t *tableWriter, g inventory.Golden) {
		t.field("name", g.Name)
		t.field("selector", g.Selector)
		t.field("requires", requirementsText(g.Requirements))
		t.field("disks", someN(g.DiskN))
		t.field("ports", someN(g.PortN))
		t.field("dimms", someN(g.DIMMN))
		for _, k := range slices.Sorted(maps.Keys(g.Firmware)) {
			t.field("firmware", k+" "+g.Firmware[k])
		}
		t.field("strict", yesNo(g.IsStrict))
		t.field("changed", timeText(g.UpdatedAt))
	})
}

// goldenFlags are what can be said of golden hardware; nil is not given.
type goldenFlags struct {
	Require  []string `help:"What hosts must have: cpu=16,memory=64G,disk=1T or expression=CEL; repeat for more, an empty one takes all away." placeholder:"KEY=VALUE" sep:"none"`
	Firmware []string `help:"Version that they must have, such as bios=2.1, bmc=1.4, disk:PM9A3=GDC5 or port:mlx5_core=20.31; repeat for more, NAME= takes one away." placeholder:"NAME=VERSION" sep:"none"`
	Disks    *int     `help:"Exactly so many disks; 0 for any number." placeholder:"N"`
	Ports    *int     `help:"Exactly so many network ports; 0 for any number." placeholder:"N"`
	Dimms    *int     `help:"Exactly so many memory modules; 0 for any number." placeholder:"N"`
	Strict   *bool    `negatable:"" help:"A host that lacks something is not claimed."`
	DryRun   bool     `help:"Only show what would change."`
}

func (f *goldenFlags) apply(g *inventory.Golden) error {
	set(&g.DiskN, f.Disks)
	set(&g.PortN, f.Ports)
	set(&g.DIMMN, f.Dimms)
	set(&g.IsStrict, f.Strict)
	for _, text := range f.Firmware {
		name, version, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return usage("write it as bios=2.1", "--firmware %q is not NAME=VERSION", text)
		}
		if g.Firmware == nil {
			g.Firmware = map[string]string{}
		}
		if g.Firmware[name] = version; version == "" {
			delete(g.Firmware, name)
		}
	}
	return parseRequirements(&g.Requirements, f.Require)
}

type goldenCreate struct {
	Name     string `arg:"" help:"Its name, a DNS label."`
	Selector string `short:"l" required:"" help:"Hosts that it is for, such as product=R640." placeholder:"SELECTOR"`
	goldenFlags
}

// Run adds golden hardware.
func (c *goldenCreate) Run(s *session) error {
	g := inventory.Golden{Name: c.Name, Selector: c.Selector}
	if err := c.apply(&g); err != nil {
		return err
	}
	return write(s, goldens, "POST", "", g, c.DryRun)
}

type goldenSet struct {
	Golden   string  `arg:""`
	Selector *string `short:"l" help:"Hosts that it is for." placeholder:"SELECTOR"`
	goldenFlags
}

// Run changes golden hardware as it is stored now.
func (c *goldenSet) Run(s *session) error {
	api, err := s.client()
	if err != nil {
		return err
	}
	g, err := api.Goldens.Get(s.ctx, c.Golden)
	if err != nil {
		return err
	}
	set(&g.Selector, c.Selector)
	if err := c.apply(&g); err != nil {
		return err
	}
	return write(s, goldens, "PUT", c.Golden, g, c.DryRun, client.IfVersion(g.Version))
}

type goldenDelete struct {
	Goldens []string `arg:""`
	DryRun  bool     `help:"Only show what would be deleted."`
}

// Run deletes golden hardware.
func (c *goldenDelete) Run(s *session) error { return remove(s, goldens, c.Goldens, c.DryRun) }
