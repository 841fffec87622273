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
	"reflect"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"slipway.dev/slipway/cmd/slipway/serve"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/lab"
	"slipway.dev/slipway/lab/simulate"
)

// version is set by the linker; see versionOf.
var version = "dev"

func init() { version = versionOf(version) }

// cli is the command line: slipway NOUN VERB.
type cli struct {
	Globals

	Serve    serveCommand     `cmd:"" help:"Answer machines that boot."`
	Lab      lab.Command      `cmd:"" help:"A virtual rack on libvirt."`
	Simulate simulate.Command `cmd:"" help:"Synthetic machines against a running server."`
	Try      tryCommand       `cmd:"" help:"Try Slipway with a rack of simulated machines; nothing real is touched."`

	Machine     machineCommand     `cmd:"" help:"Installed servers that are wanted: a host is chosen, installed and, at the end, wiped." group:"nouns"`
	Host        hostCommand        `cmd:"" help:"Physical servers: accept, place, power, inspect, follow them." group:"nouns"`
	BMC         bmcCommand         `cmd:"" name:"bmc" help:"The controllers that power hosts." group:"nouns"`
	Pool        poolCommand        `cmd:"" help:"Sets of hosts that machines are taken from." group:"nouns"`
	View        viewCommand        `cmd:"" help:"Searches of the hosts that are kept under a name." group:"nouns"`
	Golden      goldenCommand      `cmd:"" help:"What hosts of a kind must be made of." group:"nouns"`
	Rack        rackCommand        `cmd:"" help:"Racks: how high they are, what stands where, and how it is cabled." group:"nouns"`
	Operation   operationCommand   `cmd:"" help:"What is being done with hosts." group:"nouns"`
	Subnet      subnetCommand      `cmd:"" help:"Networks that DHCP serves." group:"nouns"`
	Range       rangeCommand       `cmd:"" help:"Addresses of a subnet that may be leased to anyone." group:"nouns"`
	Class       classCommand       `cmd:"" help:"DHCP options for classes of clients, such as phones and switches." group:"nouns"`
	Reservation reservationCommand `cmd:"" help:"Addresses kept for one machine each." group:"nouns"`
	Lease       leaseCommand       `cmd:"" help:"Addresses given to machines." group:"nouns"`
	Address     addressCommand     `cmd:"" help:"Static addresses of machines." group:"nouns"`
	Image       imageCommand       `cmd:"" help:"What machines can boot." group:"nouns"`
	AgentImage  agentImageCommand  `cmd:"" help:"The RAM disk that inspects, wipes and installs hosts." group:"nouns"`
	Artefact    artefactCommand    `cmd:"" help:"The files of images." group:"nouns"`
	Profile     profileCommand     `cmd:"" help:"Which machines boot what, and how." group:"nouns"`
	Layer       layerCommand       `cmd:"" help:"Configuration that hosts of a site, a rack or all of them share." group:"nouns"`
	Secret      secretCommand      `cmd:"" help:"Values that configurations refer to and only machines are given." group:"nouns"`
	Target      targetCommand      `cmd:"" help:"Kubernetes clusters that machines join." group:"nouns"`
	Cluster     clusterCommand     `cmd:"" help:"Kubernetes clusters that are attached: their custom resources say what is wanted." group:"nouns"`
	Session     sessionCommand     `cmd:"" help:"Boots, one by one." group:"nouns"`
	Event       eventCommand       `cmd:"" help:"What has happened." group:"nouns"`
	Issue       issueCommand       `cmd:"" help:"What is wrong." group:"nouns"`
	User        userCommand        `cmd:"" help:"People who log in, and what they may do." group:"nouns"`
	TLS         tlsCommand         `cmd:"" name:"tls" help:"The certificate of the admin door." group:"nouns"`
	Token       tokenCommand       `cmd:"" help:"Who may use the API over the network." group:"nouns"`
	Acceptrule  acceptruleCommand  `cmd:"" help:"Rules that accept hosts by themselves." group:"nouns"`
	Audit       auditCommand       `cmd:"" help:"What was asked of the server, by whom, and what that changed." group:"nouns"`

	Backup     backupCommand     `cmd:"" help:"Write a copy of the database while the server works."`
	Restore    restoreCommand    `cmd:"" help:"Put a backup into a data directory that no server uses."`
	Manager    managerCommand    `cmd:"" help:"Run the controllers of custom resources in a cluster, for a server elsewhere."`
	Apply      applyCommand      `cmd:"" help:"Make hosts, pools, join targets and machines as files of custom resources say, without Kubernetes."`
	Delete     deleteCommand     `cmd:"" help:"Take back what slipway apply has made of files."`
	Get        getCommand        `cmd:"" help:"Show what was applied, with its status."`
	Convert    convertCommand    `cmd:"" help:"Turn objects of other machine APIs into ours."`
	Manifests  manifestsCommand  `cmd:"" help:"Write what Slipway puts into a Kubernetes cluster."`
	Render     renderCommand     `cmd:"" help:"Show what a host would be given to become, now or with a draft."`
	Diff       diffCommand       `cmd:"" help:"Show how that differs from what the host was given last."`
	Explain    explainCommand    `cmd:"" help:"Say which layer each value of a host's configuration comes from."`
	Import     importCommand     `cmd:"" help:"Read hosts, subnets, reservations and what hosts become from a file."`
	Export     exportCommand     `cmd:"" help:"Write what the inventory holds as a file."`
	Whoami     whoamiCommand     `cmd:"" help:"Say who you are to the server, and what you may do."`
	Status     statusCommand     `cmd:"" help:"Show what the server is, how busy it is, and how many issues are open."`
	Doctor     doctorCommand     `cmd:"" help:"Look at the machine that a server runs on, or is to run on, and say what to do."`
	Selfcheck  selfcheckCommand  `cmd:"" help:"Have the server look itself over."`
	About      aboutCommand      `cmd:"" help:"Say what this program is, what it is made of, and under which licences."`
	Completion completionCommand `cmd:"" help:"Write a completion script for a shell."`
	Version    versionCommand    `cmd:"" help:"Show the versions of this program and of the server."`
}

// serveCommand is slipway serve with this program's version.
type serveCommand struct{ serve.Cmd }

// Run serves until it is told to stop.
func (c *serveCommand) Run() error {
	go giveBackMemory(context.Background()) // ends with the program
	return c.Serve(version)
}

func main() {
	if isPlugin(os.Args[0]) {
		os.Exit(runPlugin(os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// exited is what the help flag ends parsing with.
type exited int

// newParser returns the command line's parser. What it writes by itself is help.
func newParser(c *cli, stdout, stderr io.Writer) (*kong.Kong, error) {
	return kong.New(c, kong.Name("slipway"), kong.Description("Bare-metal provisioning: DHCP, TFTP, HTTP boot and an inventory in one binary."),
		kong.Writers(stdout, stderr), kong.Exit(func(code int) { panic(exited(code)) }), kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
		kong.TypeMapper(reflect.TypeFor[time.Duration](), kong.MapperFunc(decodeDuration)), kong.ExplicitGroups([]kong.Group{{Key: "nouns", Title: "Nouns (slipway NOUN VERB):"}}),
		kong.Vars{"faults": simulate.FaultHelp(), "labdir": lab.DefaultDir, "socket": defaultSocket})
}

// decodeDuration reads a flag such as 90s, 12h or 30d.
func decodeDuration(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("duration", &text); err != nil {
		return err
	}
	d, err := inventory.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("%q is not a duration: write it as 90s, 10m, 12h or 30d", text)
	}
	target.SetInt(int64(d))
	return nil
}

// run is the whole program; it returns the exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) (code int) {
	defer func() {
		if p := recover(); p != nil {
			c, ok := p.(exited)
			if !ok {
				panic(p)
			}
			code = int(c)
		}
	}()
	var c cli
	parser, err := newParser(&c, stdout, stderr)
	if err != nil {
		fmt.Fprintln(stderr, "error:", err)
		return exitFailed
	}
	if len(args) > 0 && args[0] == "help" { // as other programs have it: slipway help host accept
		args = append(slices.Clone(args[1:]), "--help")
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		complain(stderr, err)
		var wrong *kong.ParseError
		if errors.As(err, &wrong) && wrong.Context != nil {
			fmt.Fprintf(stderr, "hint: %s --help\n", commandPath(wrong.Context))
		}
		return exitUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s := &session{ctx: ctx, globals: c.Globals, in: stdin, out: stdout, err: stderr, parser: parser}
	defer s.close()
	switch noun, _, _ := strings.Cut(parsed.Command(), " "); noun {
	case "serve", "lab", "simulate":
		stop() // these handle signals themselves
	}
	return conclude(parsed.Run(s), stderr)
}

// commandPath is the command as far as it was understood.
func commandPath(c *kong.Context) string {
	path := "slipway"
	for _, p := range c.Path {
		if p.Command != nil {
			path += " " + p.Command.Name
		}
	}
	return path
}

// conclude says what went wrong and returns the exit code.
func conclude(err error, stderr io.Writer) int {
	var usage *usageError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errSaid):
		return exitFailed
	case errors.As(err, &usage):
		complain(stderr, usage.err)
		return exitUsage
	}
	complain(stderr, err)
	return exitFailed
}

// errSaid is a failure that has been shown already.
var errSaid = errors.New("shown already")

// usageError is a flag or argument that cannot be meant.
type usageError struct{ err *inventory.Error }

func (e *usageError) Error() string { return e.err.Error() }

// usage makes a usageError.
func usage(hint, format string, args ...any) error {
	return &usageError{inventory.Errorf(inventory.Invalid, format, args...).WithHint("%s", hint)}
}

// complain writes an error and its hint.
func complain(stderr io.Writer, err error) {
	var said *inventory.Error
	switch {
	case errors.As(err, &said):
		if said.Kind == inventory.Unauthorized {
			said = said.WithHint("give a token with --token-file FILE or SLIPWAY_TOKEN; on the server: slipway token create NAME")
		}
		fmt.Fprintln(stderr, "error:", plainLines(said.Msg))
		if said.Hint != "" {
			fmt.Fprintln(stderr, "hint:", plainLines(said.Hint))
		}
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(stderr, "error: interrupted")
	default:
		fmt.Fprintln(stderr, "error:", plainLines(err.Error()))
	}
}
