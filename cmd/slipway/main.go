// Command slipway is the appliance and its command line in one binary. The command line is a client of the REST API
// like any other: it never touches the database or decides anything.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/cmd/slipway/cli/access"
	"slipway.dev/slipway/cmd/slipway/cli/appliance"
	"slipway.dev/slipway/cmd/slipway/cli/clusters"
	"slipway.dev/slipway/cmd/slipway/cli/configs"
	"slipway.dev/slipway/cmd/slipway/cli/hosts"
	"slipway.dev/slipway/cmd/slipway/cli/images"
	"slipway.dev/slipway/cmd/slipway/cli/kubectl"
	"slipway.dev/slipway/cmd/slipway/cli/machines"
	"slipway.dev/slipway/cmd/slipway/cli/networks"
	"slipway.dev/slipway/cmd/slipway/cli/records"
	"slipway.dev/slipway/cmd/slipway/serve"
	"slipway.dev/slipway/lab"
	"slipway.dev/slipway/lab/simulate"
)

// version is set by the linker; see cli.VersionOf.
var version = "dev"

func init() { cli.Version = cli.VersionOf(version) }

// commandLine is the command line: slipway NOUN VERB.
type commandLine struct {
	cli.Globals

	Serve    serveCommand         `cmd:"" help:"Answer machines that boot."`
	Lab      lab.Command          `cmd:"" help:"A virtual rack on libvirt."`
	Simulate simulate.Command     `cmd:"" help:"Synthetic machines against a running server."`
	Try      appliance.TryCommand `cmd:"" help:"Try Slipway with a rack of simulated machines; nothing real is touched."`

	Machine     machines.MachineCommand     `cmd:"" help:"Installed servers that are wanted: a host is chosen, installed and, at the end, wiped." group:"nouns"`
	Host        hosts.HostCommand           `cmd:"" help:"Physical servers: accept, place, power, inspect, follow them." group:"nouns"`
	BMC         hosts.BMCCommand            `cmd:"" name:"bmc" help:"The controllers that power hosts." group:"nouns"`
	Pool        machines.PoolCommand        `cmd:"" help:"Sets of hosts that machines are taken from." group:"nouns"`
	View        hosts.ViewCommand           `cmd:"" help:"Searches of the hosts that are kept under a name." group:"nouns"`
	Golden      machines.GoldenCommand      `cmd:"" help:"Hardware that hosts of a kind must have." group:"nouns"`
	Rack        hosts.RackCommand           `cmd:"" help:"Racks: how high they are, what stands where, and how it is cabled." group:"nouns"`
	Operation   records.OperationCommand    `cmd:"" help:"Running and past operations on hosts." group:"nouns"`
	Subnet      networks.SubnetCommand      `cmd:"" help:"Networks that DHCP serves." group:"nouns"`
	Range       networks.RangeCommand       `cmd:"" help:"Addresses of a subnet that may be leased to anyone." group:"nouns"`
	Class       networks.ClassCommand       `cmd:"" help:"DHCP options for classes of clients, such as phones and switches." group:"nouns"`
	Reservation networks.ReservationCommand `cmd:"" help:"Addresses kept for one machine each." group:"nouns"`
	Lease       networks.LeaseCommand       `cmd:"" help:"Addresses given to machines." group:"nouns"`
	Address     networks.AddressCommand     `cmd:"" help:"Static addresses of machines." group:"nouns"`
	Image       images.ImageCommand         `cmd:"" help:"Systems that machines can boot." group:"nouns"`
	AgentImage  images.AgentImageCommand    `cmd:"" help:"The RAM disk that inspects, wipes and installs hosts." group:"nouns"`
	Artefact    images.ArtefactCommand      `cmd:"" help:"The files of images." group:"nouns"`
	Profile     configs.ProfileCommand      `cmd:"" help:"Which machines boot what, and how." group:"nouns"`
	Layer       configs.LayerCommand        `cmd:"" help:"Configuration that hosts of a site, a rack or all of them share." group:"nouns"`
	Secret      configs.SecretCommand       `cmd:"" help:"Values that configurations refer to and only machines are given." group:"nouns"`
	Target      clusters.TargetCommand      `cmd:"" help:"Kubernetes clusters that machines join." group:"nouns"`
	Cluster     clusters.ClusterCommand     `cmd:"" help:"Kubernetes clusters that are attached: their custom resources say what is wanted." group:"nouns"`
	Session     records.SessionCommand      `cmd:"" help:"Boots, one by one." group:"nouns"`
	Event       records.EventCommand        `cmd:"" help:"What has happened." group:"nouns"`
	Issue       records.IssueCommand        `cmd:"" help:"What is wrong." group:"nouns"`
	User        access.UserCommand          `cmd:"" help:"People who log in, and what they may do." group:"nouns"`
	TLS         access.TLSCommand           `cmd:"" name:"tls" help:"The certificate of the admin listener." group:"nouns"`
	Token       access.TokenCommand         `cmd:"" help:"API tokens for programs." group:"nouns"`
	Acceptrule  access.AcceptRuleCommand    `cmd:"" help:"Rules that accept hosts by themselves." group:"nouns"`
	Instance    appliance.InstanceCommand   `cmd:"" help:"The Slipway servers of one database, and what each of them does." group:"nouns"`
	Audit       records.AuditCommand        `cmd:"" help:"Requests to the server, their users, and their changes." group:"nouns"`

	Backup     appliance.BackupCommand    `cmd:"" help:"Write a copy of the database while the server works."`
	Restore    appliance.RestoreCommand   `cmd:"" help:"Put a backup into a data directory that no server uses."`
	Database   appliance.DatabaseCommand  `cmd:"" help:"Move the inventory between a file of SQLite and PostgreSQL."`
	Manager    clusters.ManagerCommand    `cmd:"" help:"Run the controllers of custom resources in a cluster, for a server elsewhere."`
	Apply      clusters.ApplyCommand      `cmd:"" help:"Make hosts, pools, join targets and machines as files of custom resources say, without Kubernetes."`
	Delete     clusters.DeleteCommand     `cmd:"" help:"Take back what slipway apply has made of files."`
	Get        clusters.GetCommand        `cmd:"" help:"Show what was applied, with its status."`
	Convert    clusters.ConvertCommand    `cmd:"" help:"Turn objects of other machine APIs into ours."`
	Manifests  clusters.ManifestsCommand  `cmd:"" help:"Write what Slipway puts into a Kubernetes cluster."`
	Render     configs.RenderCommand      `cmd:"" help:"Show what a host would be given to become, now or with a draft."`
	Diff       configs.DiffCommand        `cmd:"" help:"Show how that differs from what the host was given last."`
	Explain    configs.ExplainCommand     `cmd:"" help:"Say which layer each value of a host's configuration comes from."`
	Import     appliance.ImportCommand    `cmd:"" help:"Read hosts, subnets, reservations and what hosts become from a file."`
	Export     appliance.ExportCommand    `cmd:"" help:"Write what the inventory holds as a file."`
	Whoami     access.WhoamiCommand       `cmd:"" help:"Say who you are to the server, and what you may do."`
	Status     appliance.StatusCommand    `cmd:"" help:"Show what the server is, how busy it is, and how many issues are open."`
	Doctor     doctorCommand              `cmd:"" help:"Look at the machine that a server runs on, or is to run on, and say what to do."`
	Selfcheck  appliance.SelfcheckCommand `cmd:"" help:"Have the server look itself over."`
	About      appliance.AboutCommand     `cmd:"" help:"Say what this program is, what it is made of, and under which licences."`
	Completion cli.CompletionCommand      `cmd:"" help:"Write a completion script for a shell."`
	Version    appliance.VersionCommand   `cmd:"" help:"Show the versions of this program and of the server."`
}

// serveCommand is slipway serve with this program's version.
type serveCommand struct{ serve.Cmd }

// Run serves until ctx ends.
func (c *serveCommand) Run() error {
	go cli.GiveBackMemory(context.Background()) // ends with the program
	return c.Serve(cli.Version)
}

func main() {
	if kubectl.IsPlugin(os.Args[0]) {
		os.Exit(kubectl.Run(os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is the whole program; it returns the exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) (code int) {
	defer func() {
		if p := recover(); p != nil {
			c, ok := p.(cli.Exited)
			if !ok {
				panic(p)
			}
			code = int(c)
		}
	}()
	var c commandLine
	parser, err := newParser(&c, stdout, stderr)
	if err != nil {
		fmt.Fprintln(stderr, "error:", err)
		return cli.ExitFailed
	}
	if len(args) > 0 && args[0] == "help" { // as other programs have it: slipway help host accept
		args = append(slices.Clone(args[1:]), "--help")
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		cli.Complain(stderr, err)
		if wrong, ok := errors.AsType[*kong.ParseError](err); ok && wrong.Context != nil {
			fmt.Fprintf(stderr, "hint: %s --help\n", commandPath(wrong.Context))
		}
		return cli.ExitUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s := &cli.Session{Ctx: ctx, Globals: c.Globals, In: stdin, Out: stdout, Err: stderr, Parser: parser}
	defer s.Close()
	switch noun, _, _ := strings.Cut(parsed.Command(), " "); noun {
	case "serve", "lab", "simulate":
		stop() // these handle signals themselves
	}
	return cli.Conclude(parsed.Run(s), stderr)
}
