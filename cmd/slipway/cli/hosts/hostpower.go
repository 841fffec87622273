package hosts

import (
	"cmp"
	"time"

	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/operation"
	"slipway.dev/slipway/web/client"
)

type hostPower struct {
	Host    string       `arg:""`
	Action  string       `arg:"" optional:"" default:"" enum:",on,off,shutdown,cycle,reset" help:"on, off (at once), shutdown (asks its system), cycle or reset; without it, the power state is shown."`
	Confirm string       `help:"Confirm that you have seen it on or off. All later steps, such as a wipe, rely on this." enum:",on,off" default:"" placeholder:"STATE"`
	Wait    cli.WaitFlag `help:"Wait until the change is confirmed; --wait=5m waits no longer than that."`
}

// Run shows or changes the power of a host.
func (c *hostPower) Run(s *cli.Session, api *client.Client) error {
	switch {
	case c.Action != "" && c.Confirm != "":
		return cli.Usage("slipway host power NAME --confirm off says that it is off", "either change the power or confirm it")
	case c.Confirm != "":
		return s.Stored(api.Hosts.ConfirmPower(s.Ctx, c.Host, inventory.PowerState(c.Confirm)))
	case c.Action == "":
		return showPower(s, api, c.Host)
	}
	f, o, err := cli.Begun(s, c.Wait, func() (inventory.Operation, error) { return api.Hosts.Power(s.Ctx, c.Host, c.Action) })
	if err != nil {
		return err
	}
	return begun(s, f, o, c.Wait)
}

// begun follows an operation where that is asked for, else it says how to.
func begun(s *cli.Session, f *cli.Follower, o inventory.Operation, wait cli.WaitFlag) error {
	if wait != 0 {
		return s.Stored(s.WaitOperation(f, o, wait))
	}
	if s.Globals.Output == "table" {
		s.Say("operation %s; slipway operation wait %s follows it", o.ID, o.ID)
	}
	return s.Stored(o, nil)
}

// showPower shows what was read last.
func showPower(s *cli.Session, api *client.Client, host string) error {
	b, err := api.Hosts.BMC(s.Ctx, host)
	if err != nil {
		return err
	}
	return s.Show(map[string]any{"host": b.Host, "power": b.Power, "powerAt": b.PowerAt, "isReachable": b.IsReachable, "reason": b.Reason}, func(t *cli.TableWriter) {
		t.Field("host", b.Host)
		t.Field("power", powerText(b.Power))
		t.Field("read", cli.Ago(b.PowerAt, time.Now()))
		t.Field("because", b.Reason)
	})
}

func powerText(p inventory.PowerState) string {
	p = cmp.Or(p, inventory.PowerUnknown)
	return string(p)
}

type hostLocate struct {
	Hosts []string `arg:""`
	Off   bool     `help:"Switch it off."`
}

// Run lights identify LEDs.
func (c *hostLocate) Run(s *cli.Session) error {
	return s.Each(c.Hosts, func(api *client.Client, host string) error { return api.Hosts.Locate(s.Ctx, host, !c.Off) })
}

type hostInspect struct {
	Host       string         `arg:""`
	Restart    bool           `help:"Restart it if it runs (default: inspect it at its next boot)."`
	BurnIn     *time.Duration `help:"Load it for so long after that, such as 10m." placeholder:"DURATION"`
	MayWrite   bool           `help:"The burn-in may overwrite its disks: all data on them is lost."`
	BMCUser    string         `name:"bmc-user" help:"Make that account on its controller, from the host itself, and power the host by it." placeholder:"NAME"`
	BMCNetwork string         `name:"bmc-network" help:"Where that controller must be: its address, or a network. Without it, only the present controller of the host, or without one the address in the last inspection." placeholder:"ADDRESS|NETWORK"`
	Wait       cli.WaitFlag   `help:"Show each step until it is done; --wait=30m waits no longer than that."`
}

// Run inspects a host.
func (c *hostInspect) Run(s *cli.Session, api *client.Client) error {
	if c.MayWrite && c.BurnIn == nil {
		return cli.Usage("slipway host inspect NAME --burn-in 10m --may-write", "--may-write is about a burn-in, and none is asked for")
	}
	if c.BMCNetwork != "" && c.BMCUser == "" {
		return cli.Usage("slipway host inspect NAME --bmc-user slipway --bmc-network 10.1.0.0/16", "--bmc-network is about the account of --bmc-user, and none is asked for")
	}
	r := operation.InspectRequest{MayRestart: c.Restart, BurnInFor: inventory.Duration(cli.Value(c.BurnIn)), MayWrite: c.MayWrite, BMCUser: c.BMCUser, BMCNetwork: c.BMCNetwork}
	return doneTo(s, api, inventory.OpInspect, c.Wait, func() (inventory.Host, error) { return api.Hosts.Inspect(s.Ctx, c.Host, r) })
}

type hostClean struct {
	Host string       `arg:""`
	Mode string       `default:"quick" enum:"none,quick,full,secure" help:"quick: the ends of disks and partitions, most data stays readable; full: every block; secure: the disks' own erase; none: only mark it as clean." placeholder:"MODE"`
	Wait cli.WaitFlag `help:"Show each step until it is done; --wait=30m waits no longer than that."`
}

// Run wipes a host.
func (c *hostClean) Run(s *cli.Session, api *client.Client) error {
	return doneTo(s, api, inventory.OpClean, c.Wait, func() (inventory.Host, error) {
		return api.Hosts.Clean(s.Ctx, c.Host, inventory.CleanMode(c.Mode))
	})
}

// doneTo begins an operation with a host, and follows it where that is asked for.
func doneTo(s *cli.Session, api *client.Client, kind inventory.OperationKind, wait cli.WaitFlag, begin func() (inventory.Host, error)) error {
	f, h, err := cli.Begun(s, wait, begin)
	if err != nil {
		return err
	}
	if f != nil {
		if err := s.WaitHost(f, string(h.ID), kind, wait); err != nil {
			return err
		}
		if h, err = api.Hosts.Get(s.Ctx, string(h.ID)); err != nil {
			return err
		}
	}
	return s.Show(h, func(t *cli.TableWriter) { hostRow(t, h) })
}
