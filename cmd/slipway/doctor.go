package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/cmd/slipway/cli/appliance"
	"slipway.dev/slipway/cmd/slipway/doctor"
	"slipway.dev/slipway/cmd/slipway/serve"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
)

// serverAnswersIn is how long a server that runs may look itself over.
const serverAnswersIn = 15 * time.Second

type doctorCommand struct {
	Config      string   `help:"YAML file of slipway serve (default: that of the running server, else /etc/slipway/config.yaml)." placeholder:"FILE"`
	Interface   []string `help:"Interface on which machines boot; repeat for more (default: those of the server that runs)." placeholder:"NAME"`
	DataDir     string   `help:"Data directory (default /var/lib/slipway)." placeholder:"DIR"`
	AdminListen string   `help:"Address of the admin listener." placeholder:"ADDR"`
	BootPort    int      `help:"TCP port of the boot listener." placeholder:"PORT"`
	BootTLSPort int      `name:"boot-tls-port" help:"TCP port of the boot listener over TLS." placeholder:"PORT"`
	Loaders     []string `help:"Folder with boot loaders; repeat for more." placeholder:"DIR"`
	Fix         bool     `help:"Raise limits of the kernel that are too low: socket buffers, neighbour table."`
}

// Help says where it looks.
func (*doctorCommand) Help() string {
	return "It looks at this machine: disk, database, clock, ports and who has them, interfaces, other DHCP servers, loaders, certificates. " +
		"If a server runs, it uses that server's flags, and adds the server's self-check. Run it as root: it then names " +
		"the programs that have ports. The exit status is 1 when something is wrong."
}

// Run checks the machine, and repairs what is safe to repair.
func (c *doctorCommand) Run(s *cli.Session) error {
	flags := c.flags(serve.UsualConfig)
	if c.Fix {
		if err := fixLimits(s); err != nil {
			return err
		}
	}
	cfg, checks, server, err := flags.Doctor(s.Ctx, cli.Version)
	if err != nil {
		return err
	}
	if server != 0 {
		checks = together(checks, serverChecks(s, filepath.Join(cfg.DataDir, "slipway.sock")))
	}
	err = s.Show(checks, func(t *cli.TableWriter) { appliance.CheckTable(t, checks) })
	if err == nil && doctor.IsWrong(checks) {
		return cli.ErrSaid
	}
	return err
}

// flags are those that were given, or those of the server that runs, or what the usual configuration file says.
func (c *doctorCommand) flags(usual string) serve.Cmd {
	flags := serve.Cmd{
		Config: c.Config, Interface: c.Interface, DataDir: c.DataDir, AdminListen: c.AdminListen, BootPort: c.BootPort,
		BootTLSPort: c.BootTLSPort, Loaders: c.Loaders,
	}
	if c.Config != "" || len(c.Interface) > 0 {
		return flags
	}
	if found, ok := runningFlags(c.DataDir); ok {
		return found
	}
	if _, err := os.Stat(usual); err == nil {
		flags.Config = usual
	}
	return flags
}

// together adds to what was found here what the server has said: of this machine what is not known yet, and all of the site. What is wrong
// with the machines of other instances, their own doctors say, and slipway selfcheck.
func together(here, said []doctor.Check) []doctor.Check {
	for _, k := range said {
		if k.IsHere { // the server knows the name of this instance
			for n := range here {
				here[n].Instance, here[n].IsHere = k.Instance, true
			}
			break
		}
	}
	isKnown := func(k doctor.Check) bool {
		isSame := func(o doctor.Check) bool { return o.Name == k.Name && o.Instance == k.Instance }
		return k.Instance != "" && !k.IsHere || slices.ContainsFunc(here, isSame)
	}
	return append(slices.Clip(here), slices.DeleteFunc(slices.Clone(said), isKnown)...)
}

// serverChecks are those that only the server knows of.
func serverChecks(s *cli.Session, socket string) []doctor.Check {
	ctx, cancel := context.WithTimeout(s.Ctx, serverAnswersIn)
	defer cancel()
	said, err := func() (all []doctor.Check, err error) {
		api, err := client.New(client.Config{Server: socket, Agent: "slipway/" + cli.Version})
		if err != nil {
			return nil, err
		}
		defer api.Close()
		p, err := api.SelfCheck(ctx)
		for _, k := range p.Items {
			all = append(all, doctor.Check(k))
		}
		return all, err
	}()
	if err != nil {
		return []doctor.Check{{Name: "server", Status: doctor.Failed, Detail: "runs, and does not answer: " + inventory.Clean(err.Error(), 200), Hint: "look at its log: journalctl -u slipway"}}
	}
	return said
}

// fixLimits raises limits and says how to keep them.
func fixLimits(s *cli.Session) error {
	made, err := doctor.Fix(doctor.Changes(doctor.ReadSysctl()))
	for _, m := range made {
		s.Say("%s was %d and is %d", m.Name, m.From, m.To)
	}
	switch {
	case err != nil:
		return &inventory.Error{Kind: inventory.Forbidden, Msg: "cannot change the limits of the kernel: " + err.Error(), Hint: "run as root, on the machine itself and not in a container", Err: err}
	case len(made) == 0:
		s.Say("there is nothing to raise")
	default:
		s.Say("to keep that, put into %s:", doctor.KeepIn)
		for _, m := range made {
			s.Say("%s", m.Line())
		}
	}
	return nil
}

// runningFlags returns the flags of the slipway serve that uses a data directory.
func runningFlags(dataDir string) (serve.Cmd, bool) {
	if dataDir == "" {
		dataDir = serve.Default().DataDir
	}
	pid := doctor.Holder(filepath.Join(dataDir, "lock"))
	if pid == 0 {
		return serve.Cmd{}, false
	}
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	text, err := os.ReadFile(filepath.Join(proc, "cmdline"))
	args := strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
	if err != nil || len(args) < 2 {
		return serve.Cmd{}, false
	}
	here, _ := os.Readlink(filepath.Join(proc, "cwd"))
	return parseServe(args[1:], dataDir, here)
}

// parseServe reads the arguments of a slipway serve that was started in a folder; ok is false when it is another command.
func parseServe(args []string, dataDir, here string) (out serve.Cmd, ok bool) {
	defer func() {
		if p := recover(); p != nil { // --help ends parsing so
			if _, isExit := p.(cli.Exited); !isExit {
				panic(p)
			}
			ok = false
		}
	}()
	var c struct {
		cli.Globals
		Serve serve.Cmd `cmd:""`
	}
	parser, err := newParser(&c, io.Discard, io.Discard)
	if err != nil {
		return out, false
	}
	parsed, err := parser.Parse(args)
	if err != nil || parsed.Command() != "serve" {
		return out, false
	}
	out = c.Serve
	out.DataDir = dataDir // as it is found from where we are
	for _, path := range []*string{&out.Config, &out.Catalogue, &out.AdminTLSCert, &out.AdminTLSKey} {
		if *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(here, *path)
		}
	}
	for i, l := range out.Loaders {
		if !filepath.IsAbs(l) {
			out.Loaders[i] = filepath.Join(here, l)
		}
	}
	return out, true
}
