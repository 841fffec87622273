package kubectl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"slipway.dev/slipway/cmd/slipway/cli"
)

// IsPlugin reports whether the program was started by the name that kubectl looks for.
func IsPlugin(argv0 string) bool {
	return strings.TrimSuffix(filepath.Base(argv0), ".exe") == "kubectl-slipway"
}

// pluginCLI is the command line of kubectl slipway.
type pluginCLI struct {
	Kubeconfig    string `help:"Of the cluster; as with kubectl." type:"existingfile" placeholder:"FILE"`
	Context       string `help:"Of the kubeconfig." placeholder:"NAME"`
	Namespace     string `short:"n" help:"Of the objects; the context's when it is left out." placeholder:"NAME"`
	AllNamespaces bool   `short:"A" help:"Objects of all namespaces."`
	As            string `help:"Ask as this user." placeholder:"USER"`
	Output        string `short:"o" help:"table, json or yaml." enum:"table,json,yaml" default:"table"`

	Machines    pluginMachines    `cmd:"" help:"List machines, and why they wait."`
	Hosts       pluginHosts       `cmd:"" help:"List hosts, and what is wrong with them."`
	Why         pluginWhy         `cmd:"" help:"Say why a machine or a host waits, and what to do."`
	ConsoleURL  pluginConsole     `cmd:"" name:"console-url" help:"Say how to see the console of a machine's host."`
	Reprovision pluginReprovision `cmd:"" help:"Reinstall machines; their nodes are drained first."`
	Power       pluginPower       `cmd:"" help:"Switch the host of a machine off and on: power cycle NAME."`
	Cordon      pluginCordon      `cmd:"" help:"Keep new machines away from hosts; running machines stay."`
	Uncordon    pluginUncordon    `cmd:"" help:"Let machines have hosts again."`
	Version     pluginVersion     `cmd:"" help:"Show the version of this program."`
}

// pluginSession is one run of the plugin.
type pluginSession struct {
	*cli.Session
	flags Flags
}

func (s *pluginSession) connect() (*Plugin, error) { return New(s.flags) }

// Run is the whole plugin; it returns the exit code.
func Run(args []string, stdout, stderr io.Writer) (code int) {
	defer func() {
		if p := recover(); p != nil {
			c, ok := p.(cli.Exited)
			if !ok {
				panic(p)
			}
			code = int(c)
		}
	}()
	var c pluginCLI
	parser, err := kong.New(&c, kong.Name("kubectl slipway"), kong.Description("Bare-metal machines and hosts, as their custom resources tell them."),
		kong.Writers(stdout, stderr), kong.Exit(func(code int) { panic(cli.Exited(code)) }), kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.BindToProvider((*pluginSession).connect))
	if err != nil {
		fmt.Fprintln(stderr, "error:", err)
		return cli.ExitFailed
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		cli.Complain(stderr, err)
		var wrong *kong.ParseError
		if errors.As(err, &wrong) {
			fmt.Fprintln(stderr, "hint: kubectl slipway --help")
		}
		return cli.ExitUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	s := &pluginSession{
		Session: &cli.Session{Ctx: ctx, Globals: cli.Globals{Output: c.Output}, Out: stdout, Err: stderr},
		flags:   Flags{Kubeconfig: c.Kubeconfig, Context: c.Context, Namespace: c.Namespace, IsEverywhere: c.AllNamespaces, As: c.As},
	}
	return cli.Conclude(parsed.Run(s), stderr)
}

type pluginMachines struct{}

// Run lists machines.
func (*pluginMachines) Run(s *pluginSession, p *Plugin) error {
	headings := []string{"NAMESPACE", "NAME", "PHASE", "HOST", "NODE", "READY", "WAITS"}
	return cli.Answered(p.Machines(s.Ctx)).Show(s.Session, cli.Rows(headings, func(m Machine) []string {
		return []string{m.Namespace, m.Name, m.Phase, m.Host, m.Node, cli.YesNo(m.IsReady), short(m.Waits, 80)}
	}))
}

// short cuts a text for a cell of a table.
func short(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

type pluginHosts struct{}

// Run lists hosts.
func (*pluginHosts) Run(s *pluginSession, p *Plugin) error {
	headings := []string{"NAME", "PHASE", "POWER", "CLAIM", "DOMAIN", "ADDRESS", "PROBLEM"}
	return cli.Answered(p.Hosts(s.Ctx)).Show(s.Session, cli.Rows(headings, func(h Host) []string {
		return []string{h.Name, h.Phase, h.Power, h.Claim, h.Domain, h.Address, short(h.Problem, 80)}
	}))
}

type pluginWhy struct {
	Object string `arg:"" help:"NAME or machine/NAME of a machine, host/NAME of a host."`
}

// Run explains an object.
func (c *pluginWhy) Run(s *pluginSession, p *Plugin) error {
	return cli.Answered(p.Why(s.Ctx, c.Object)).Show(s.Session, func(t *cli.TableWriter, w *Why) {
		t.Text(w.Object + ": " + w.Summary)
		if w.Hint != "" {
			t.Text("what to do: " + w.Hint)
		}
		if len(w.Conditions) > 0 {
			t.Text("")
			t.Row("CONDITION", "STATUS", "SINCE", "REASON", "MESSAGE")
		}
		for _, k := range w.Conditions {
			t.Row(k.Type, k.Status, cli.TimeText(k.Since), k.Reason, k.Message)
		}
		if len(w.Events) > 0 {
			t.Text("")
			t.Row("EVENT", "AT", "REASON", "TEXT")
		}
		for _, e := range w.Events {
			t.Row(e.Type, cli.TimeText(e.At), e.Reason, e.Text)
		}
	})
}

type pluginConsole struct {
	Machine string `arg:""`
}

// Run says where a console is. Custom resources know no such address: the server has the line.
func (c *pluginConsole) Run(s *pluginSession, p *Plugin) error {
	w, err := p.Why(s.Ctx, c.Machine)
	if err != nil {
		return err
	}
	if w.Host == "" {
		s.Say("%s has no host yet: kubectl slipway why %s", w.Object, c.Machine)
		return cli.ErrSaid
	}
	if s.Globals.Output == "table" {
		s.Say("the server has the console; with SLIPWAY_SERVER and SLIPWAY_TOKEN set:")
		_, err = fmt.Fprintf(s.Out, "slipway host console %s\n", w.Host)
		return err
	}
	return s.Show(map[string]string{"host": w.Host, "path": "/api/v1/hosts/" + w.Host + "/bmc/console"}, nil)
}

type pluginReprovision struct {
	Machines []string `arg:""`
}

// Run installs machines again.
func (c *pluginReprovision) Run(s *pluginSession, p *Plugin) error {
	return s.all(c.Machines, "is reinstalled", func(name string) error { return p.Reprovision(s.Ctx, name, time.Now()) })
}

type pluginPower struct {
	Action   string   `arg:"" enum:"cycle" help:"cycle."`
	Machines []string `arg:""`
}

// Run switches hosts off and on.
func (c *pluginPower) Run(s *pluginSession, p *Plugin) error {
	return s.all(c.Machines, "is rebooted", func(name string) error { return p.Reboot(s.Ctx, name, time.Now()) })
}

type pluginCordon struct {
	Hosts []string `arg:""`
}

// Run cordons hosts.
func (c *pluginCordon) Run(s *pluginSession, p *Plugin) error {
	return s.all(c.Hosts, "is cordoned", func(name string) error { return p.Cordon(s.Ctx, name, true) })
}

type pluginUncordon struct {
	Hosts []string `arg:""`
}

// Run lifts the cordon of hosts.
func (c *pluginUncordon) Run(s *pluginSession, p *Plugin) error {
	return s.all(c.Hosts, "is no longer cordoned", func(name string) error { return p.Cordon(s.Ctx, name, false) })
}

// all does something to every name, and goes on after one that fails.
func (s *pluginSession) all(names []string, said string, do func(name string) error) error {
	var failed error
	for _, name := range names {
		if err := do(name); err != nil {
			cli.Complain(s.Err, err)
			failed = cli.ErrSaid
			continue
		}
		s.Say("%s %s", name, said)
	}
	return failed
}

type pluginVersion struct{}

// Run shows the version.
func (*pluginVersion) Run(s *pluginSession) error {
	return s.Show(map[string]string{"client": cli.Version}, func(t *cli.TableWriter) { t.Field("client", cli.Version) })
}
