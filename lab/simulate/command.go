package simulate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"slipway.dev/slipway/inventory"
)

// Command is slipway simulate, for the command line of package main.
type Command struct {
	Boot BootCommand `cmd:"" default:"withargs" help:"Boot synthetic machines against a running server (the default)."`
	Up   UpCommand   `cmd:"" name:"net-up" help:"Make two network namespaces joined by a cable: one for a server, one for machines."`
	Down DownCommand `cmd:"" name:"net-down" help:"Remove the namespaces of net-up."`
}

// BootCommand boots synthetic machines.
type BootCommand struct {
	Interface   string        `default:"vc" help:"Interface that the machines are plugged into." placeholder:"IF"`
	Netns       string        `help:"Network namespace of the interface; without it, the one that the command runs in." placeholder:"NAME"`
	Hosts       int           `default:"10" help:"How many machines."`
	Seed        uint64        `default:"1" help:"0 to 255. Another seed gives other machines; the same one gives the same."`
	Concurrency int           `help:"Machines switched on at once (0: all)." default:"0"`
	Firmware    string        `default:"bios,uefi,uefi-http,ipxe-rom" help:"Kinds of firmware, dealt out in turn; uefi=3 deals three."`
	Fault       []string      `help:"A fault and its probability, such as drop=0.01: ${faults}. May be repeated." placeholder:"NAME[=P]"`
	Pace        float64       `default:"1" help:"1: the timers of real firmware; 0: as fast as possible."`
	Expect      string        `default:"booted" enum:"booted,disk,waiting" help:"Where every machine should arrive: booted, disk or waiting."`
	Power       string        `help:"Give the machines controllers: an HTTP server at this address, for the BMC driver webhook. They stay off until they are switched on, and live until the timeout." placeholder:"HOST:PORT"`
	PowerNetns  string        `help:"Network namespace that the controllers listen in." placeholder:"NAME"`
	PowerFault  float64       `help:"Chance from 0 to 1 that a call to a controller fails."`
	Download    bool          `help:"Our agent really fetches the disk images that it has to write."`
	Timeout     time.Duration `default:"10m" help:"When to give up."`
	JSON        bool          `name:"json" help:"Write the result as JSON."`
}

// FaultHelp is what ${faults} stands for in the help text.
func FaultHelp() string { return faultNames() }

// config turns the flags into a Config.
func (c *BootCommand) config() (Config, error) {
	firmware, err := parseFirmware(c.Firmware)
	if err != nil {
		return Config{}, err
	}
	faults, err := parseFaults(c.Fault)
	if err != nil {
		return Config{}, err
	}
	cfg := Config{
		Interface: c.Interface, Namespace: c.Netns, Hosts: c.Hosts, Seed: c.Seed, Concurrency: c.Concurrency,
		Firmware: firmware, Faults: faults, Pace: c.Pace, Expect: Stage(c.Expect), Timeout: c.Timeout,
		Power: PowerConfig{Listen: c.Power, Namespace: c.PowerNetns, Faults: c.PowerFault}, Download: c.Download, SecondClient: true,
	}
	return cfg, cfg.Check()
}

// ErrNotArrived is what a run returns in which a machine did not arrive; everything about it has been printed.
var ErrNotArrived = errors.New("not every machine arrived")

// Run boots the machines: the summary goes to standard output, progress to standard error.
func (c *BootCommand) Run() error {
	cfg, err := c.config()
	if err != nil {
		return &inventory.Error{Kind: inventory.Invalid, Msg: err.Error(), Hint: "see: slipway simulate --help"}
	}
	if cfg.Namespace == "" && !isOwnNamespace() {
		return inventory.Errorf(inventory.Invalid, "synthetic machines would take addresses in this system's own network").
			WithHint("make a network for them with: slipway simulate net-up; or name one with --netns")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	defer stop()
	p := newProgress(os.Stderr, cfg.Hosts)
	cfg.Progress = p.show
	r, err := Run(ctx, cfg)
	p.done()
	if err != nil {
		return err
	}
	if err := c.write(os.Stdout, &r); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	if !r.IsGood() {
		return ErrNotArrived
	}
	return nil
}

func (c *BootCommand) write(w io.Writer, r *Result) error {
	if !c.JSON {
		return r.WriteSummary(w)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// progress shows where the machines are: one line that is rewritten on a terminal, a line every five seconds elsewhere.
type progress struct {
	out    *os.File
	isTerm bool
	hosts  int
	begin  time.Time
	calls  int
	width  int
}

func newProgress(out *os.File, hosts int) *progress {
	return &progress{out: out, isTerm: term.IsTerminal(int(out.Fd())), hosts: hosts, begin: time.Now()}
}

func (p *progress) show(n map[Stage]int) {
	p.calls++
	line := fmt.Sprintf("%4.0fs  %s", time.Since(p.begin).Seconds(), stageLine(n))
	switch {
	case p.isTerm:
		fmt.Fprintf(p.out, "\r%s%s", line, strings.Repeat(" ", max(0, p.width-len(line))))
		p.width = len(line)
	case p.calls%5 == 0:
		fmt.Fprintln(p.out, line)
	}
}

func (p *progress) done() {
	if p.isTerm && p.width > 0 {
		fmt.Fprintf(p.out, "\r%s\r", strings.Repeat(" ", p.width))
	}
}

// UpCommand makes the namespaces for trying things out.
type UpCommand struct {
	Name    string       `default:"slipway" help:"Namespaces are called NAME-srv and NAME-cli."`
	Address netip.Prefix `default:"10.77.0.1/16" help:"The server's address and network."`
}

// Run makes the namespaces and says how to use them.
func (c *UpCommand) Run() error {
	n, err := NewNet(c.Name, c.Address)
	if err != nil {
		return inventory.Errorf(inventory.Unavailable, "the namespaces were not made: %v", err).WithHint("run it as root")
	}
	fmt.Printf("A server:    ip netns exec %s slipway serve --interface %s --data-dir DIR\n", n.Server, n.ServerIf)
	fmt.Printf("Machines:    slipway simulate --netns %s --interface %s --hosts 20\n", n.Client, n.ClientIf)
	fmt.Printf("Remove it:   slipway simulate net-down --name %s\n", c.Name)
	return nil
}

// DownCommand removes the namespaces.
type DownCommand struct {
	Name string `default:"slipway" help:"As given to net-up."`
}

// Run removes the namespaces. A missing one is no error.
func (c *DownCommand) Run() error {
	(&Net{Server: c.Name + "-srv", Client: c.Name + "-cli"}).Close()
	return nil
}
