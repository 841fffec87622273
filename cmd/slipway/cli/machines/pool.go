package machines

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/cmd/slipway/cli/nouns"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
	"slipway.dev/slipway/web/wire"
)

// PoolCommand is slipway pool.
type PoolCommand struct {
	List   nouns.List[pool, wire.Pool]        `cmd:"" help:"List pools and how their hosts are doing."`
	Show   nouns.Show[pool, wire.Pool]        `cmd:"" help:"Show a pool."`
	Create nouns.Create[poolFlags, wire.Pool] `cmd:"" help:"Add a pool: a set of hosts that machines are taken from."`
	Set    nouns.Set[poolFlags, wire.Pool]    `cmd:"" help:"Change a pool; other settings stay."`
	Delete nouns.Delete[pool, wire.Pool]      `cmd:"" help:"Delete pools that no machine is in."`
}

// pool is how people read a pool, with the counts of its hosts.
type pool struct{}

// About implements nouns.Noun.
func (pool) About() (one, many string) { return "pool", "pools" }

// Calls implements nouns.Noun.
func (pool) Calls(c *client.Client) client.Noun[wire.Pool] { return c.Pools }

// New implements nouns.NewFlags.
func (pool) New(name string) (p wire.Pool) {
	p.Name = name
	return p
}

// Version implements nouns.Flags.
func (pool) Version(p wire.Pool) int64 { return p.Version }

// Fields implements nouns.Noun.
func (pool) Fields(f *nouns.Fields, p wire.Pool) {
	f.Both("name", p.Name)
	f.Both("selector", p.Selector)
	f.Shown("requires", cli.RequirementsText(p.Requirements))
	f.Listed("hosts", fmt.Sprint(p.Hosts.Total))
	f.Listed("available", fmt.Sprint(p.Hosts.Available))
	f.Listed("claimed", fmt.Sprint(p.Hosts.Claimed))
	f.Listed("cleaning", fmt.Sprint(p.Hosts.Cleaning))
	f.Listed("failed", fmt.Sprint(p.Hosts.Failed))
	f.Shown("hosts", fmt.Sprintf("%d: %d available, %d claimed, %d cleaning, %d failed",
		p.Hosts.Total, p.Hosts.Available, p.Hosts.Claimed, p.Hosts.Cleaning, p.Hosts.Failed))
	f.Listed("spare", fmt.Sprint(p.MinSpare))
	f.Shown("spare", fmt.Sprintf("at least %d", p.MinSpare))
	f.Both("clean", cleanText(p.Clean))
	f.Shown("burn in", cli.DurationText(p.BurnInFor))
	f.Shown("at once", fmt.Sprintf("%s installations, %s wipes", unbounded(p.Budget.Provision), unbounded(p.Budget.Destroy)))
	f.Shown("between wipes", cli.DurationText(p.Budget.DestroyInterval))
	f.Shown("changed", cli.TimeText(p.UpdatedAt))
}

func cleanText(m inventory.CleanMode) string {
	m = cmp.Or(m, inventory.CleanQuick)
	return string(m)
}

func unbounded(n int) string {
	if n == 0 {
		return "any number of"
	}
	return fmt.Sprint(n)
}

// poolFlags are what can be said of a pool; nil is not given.
type poolFlags struct {
	pool
	Selector        *string        `short:"l" help:"Hosts that are in it, such as rack=r1; empty for all." placeholder:"SELECTOR"`
	Require         []string       `help:"Hardware that its hosts must have: cpu=16,memory=64G,disk=1T or expression=CEL; repeat for more, an empty one takes all away." placeholder:"KEY=VALUE" sep:"none"`
	Clean           *string        `help:"How disks are wiped: none, quick, full or secure (default quick)." placeholder:"MODE"`
	MinSpare        *int           `help:"So many hosts stay unclaimed, to replace failed ones." placeholder:"N"`
	BurnIn          *time.Duration `help:"How long new hosts are loaded before they are available; 0s for not at all." placeholder:"DURATION"`
	MaxProvision    *int           `help:"Most installations at the same time; 0 for any number." placeholder:"N"`
	MaxDestroy      *int           `help:"Most wipes at the same time; 0 for any number." placeholder:"N"`
	DestroyInterval *time.Duration `help:"Least time between the starts of two wipes." placeholder:"DURATION"`
}

// Apply implements nouns.Flags.
func (f poolFlags) Apply(_ *cli.Session, p *wire.Pool) error {
	cli.Set(&p.Selector, f.Selector)
	cli.Set(&p.Clean, (*inventory.CleanMode)(f.Clean))
	cli.Set(&p.MinSpare, f.MinSpare)
	cli.Set(&p.BurnInFor, (*inventory.Duration)(f.BurnIn))
	cli.Set(&p.Budget.Provision, f.MaxProvision)
	cli.Set(&p.Budget.Destroy, f.MaxDestroy)
	cli.Set(&p.Budget.DestroyInterval, (*inventory.Duration)(f.DestroyInterval))
	return cli.ParseRequirements(&p.Requirements, f.Require)
}

// GoldenCommand is slipway golden.
type GoldenCommand struct {
	List   nouns.List[golden, inventory.Golden]      `cmd:"" help:"List golden hardware."`
	Show   nouns.Show[golden, inventory.Golden]      `cmd:"" help:"Show golden hardware."`
	Create nouns.Create[goldenNew, inventory.Golden] `cmd:"" help:"Describe the hardware that hosts of a kind must have; a missing part is an issue."`
	Set    nouns.Set[goldenEdit, inventory.Golden]   `cmd:"" help:"Change golden hardware; other settings stay."`
	Delete nouns.Delete[golden, inventory.Golden]    `cmd:"" help:"Delete golden hardware."`
}

// golden is how people read golden hardware.
type golden struct{ nouns.Plain[inventory.Golden] }

// Fields implements nouns.Noun.
func (golden) Fields(f *nouns.Fields, g inventory.Golden) {
	f.Both("name", g.Name)
	f.Both("selector", g.Selector)
	f.Both("requires", cli.RequirementsText(g.Requirements))
	f.Both("disks", cli.CountText(g.DiskN))
	f.Both("ports", cli.CountText(g.PortN))
	f.Both("dimms", cli.CountText(g.DIMMN))
	for _, k := range slices.Sorted(maps.Keys(g.Firmware)) {
		f.Shown("firmware", k+" "+g.Firmware[k])
	}
	f.Both("strict", cli.YesNo(g.IsStrict))
	f.Shown("changed", cli.TimeText(g.UpdatedAt))
}

// goldenFlags are what can be said of golden hardware; nil is not given.
type goldenFlags struct {
	golden
	Require  []string `help:"Hardware that hosts must have: cpu=16,memory=64G,disk=1T or expression=CEL; repeat for more, an empty one takes all away." placeholder:"KEY=VALUE" sep:"none"`
	Firmware []string `help:"Version that they must have, such as bios=2.1, bmc=1.4, disk:PM9A3=GDC5 or port:mlx5_core=20.31; repeat for more, NAME= takes one away." placeholder:"NAME=VERSION" sep:"none"`
	Disks    *int     `help:"Exactly so many disks; 0 for any number." placeholder:"N"`
	Ports    *int     `help:"Exactly so many network ports; 0 for any number." placeholder:"N"`
	Dimms    *int     `help:"Exactly so many memory modules; 0 for any number." placeholder:"N"`
	Strict   *bool    `negatable:"" help:"A host that lacks something is not claimed."`
}

// Apply implements nouns.Flags.
func (f goldenFlags) Apply(_ *cli.Session, g *inventory.Golden) error {
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

// goldenNew are what can be said of new golden hardware.
type goldenNew struct {
	Selector string `short:"l" required:"" help:"Hosts that it is for, such as product=R640." placeholder:"SELECTOR"`
	goldenFlags
}

// Apply implements nouns.Flags.
func (f goldenNew) Apply(s *cli.Session, g *inventory.Golden) error {
	g.Selector = f.Selector
	return f.goldenFlags.Apply(s, g)
}

// goldenEdit are what can be said of golden hardware that exists.
type goldenEdit struct {
	Selector *string `short:"l" help:"Hosts that it is for." placeholder:"SELECTOR"`
	goldenFlags
}

// Apply implements nouns.Flags.
func (f goldenEdit) Apply(s *cli.Session, g *inventory.Golden) error {
	cli.Set(&g.Selector, f.Selector)
	return f.goldenFlags.Apply(s, g)
}
