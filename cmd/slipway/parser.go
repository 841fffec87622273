package main

import (
	"io"
	"reflect"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/cmd/slipway/cli/nouns"
	"slipway.dev/slipway/inventory/transfer"
	"slipway.dev/slipway/lab"
	"slipway.dev/slipway/lab/simulate"
)

// newParser returns the parser of a grammar: the whole command line, or a part of it. What it writes by itself is help.
func newParser(grammar any, stdout, stderr io.Writer) (*kong.Kong, error) {
	return kong.New(grammar, kong.Name("slipway"), kong.Description("Bare-metal provisioning: DHCP, TFTP, HTTP boot and an inventory in one binary."),
		kong.Writers(stdout, stderr), kong.Exit(func(code int) { panic(cli.Exited(code)) }), kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
		kong.BindToProvider((*cli.Session).Client), // for the commands that call the API
		kong.PostBuild(nouns.NameArguments),
		kong.TypeMapper(reflect.TypeFor[time.Duration](), kong.MapperFunc(cli.DecodeDuration)), kong.ExplicitGroups([]kong.Group{{Key: "nouns", Title: "Nouns (slipway NOUN VERB):"}}),
		kong.Vars{
			"faults": simulate.FaultHelp(), "labdir": lab.DefaultDir, "socket": cli.DefaultSocket,
			"nouns": strings.Join(transfer.Nouns(), ","),
		})
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
