package lab

import (
	"context"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"

	"slipway.dev/slipway/inventory"
)

// Command is the command `slipway lab`.
type Command struct {
	Up   UpCommand   `cmd:"" default:"withargs" help:"Boot a virtual rack and stay until Ctrl-C (the default). Needs root."`
	Down DownCommand `cmd:"" help:"Remove everything that labs have left on this machine. Needs root."`
}

// UpCommand boots a rack and stays, or checks it and ends.
type UpCommand struct {
	Machines int    `default:"3" help:"How many machines: BIOS and UEFI PXE, which are installed, and UEFI HTTP Boot, which runs in memory, in turn."`
	Accel    string `default:"auto" enum:"auto,kvm,tcg" help:"How processors are run: kvm, tcg (emulation), or auto to find out."`
	Dir      string `default:"${labdir}" help:"Folder of the lab; removed when it ends." placeholder:"DIR"`
	ByHand   bool   `help:"Switch the machines on and leave them to you: nothing is named, accepted or installed. Not with --check."`

	Instances int           `default:"1" help:"How many servers: 1, or up to 3 with PostgreSQL. --check kills the one that leads."`
	Check     bool          `help:"End when every machine has arrived, and the installed ones are wiped again, with seconds; exit 1 if one did not."`
	Timeout   time.Duration `default:"15m" help:"How long --check waits."`
}

// Run boots the rack. SIGINT, SIGTERM and SIGHUP end it, and it cleans up before it returns.
func (c *UpCommand) Run() error {
	if c.Machines < 1 || c.Machines > 64 {
		return inventory.Errorf(inventory.Invalid, "a lab of %d machines is not possible", c.Machines).
			WithHint("use 1 to 64; each takes up to %d MiB of memory", agentMiB)
	}
	if c.Instances < 1 || c.Instances > MostInstances {
		return inventory.Errorf(inventory.Invalid, "a lab with %d servers is not possible", c.Instances).
			WithHint("use 1, or up to %d that share a database", MostInstances)
	}
	if c.ByHand && c.Check {
		return inventory.Errorf(inventory.Invalid, "a check does everything by itself").WithHint("leave out --by-hand or --check")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM, unix.SIGHUP)
	defer stop()
	return Up(ctx, UpConfig{IsByHand: c.ByHand, IsCheck: c.Check, Timeout: c.Timeout, Config: Config{
		Out:        os.Stdout,
		RackConfig: RackConfig{Dir: c.Dir, Accel: Accel(c.Accel), Specs: LifeSpecs(c.Machines), Instances: c.Instances},
	}})
}

// DownCommand removes what labs left.
type DownCommand struct {
	Dir string `default:"${labdir}" help:"Folder of the lab." placeholder:"DIR"`
}

// Run removes what labs left on this machine.
func (c *DownCommand) Run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	defer stop()
	return Down(ctx, c.Dir, os.Stdout)
}
