// Package cli owns the frame of the command line: the connection to the server, tables, JSON and YAML, and errors with
// hints. It also has the flags that several commands share, and waits for what the server does. It knows no single noun.
//
// Start reading at Session, then ShowList.
package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/alecthomas/kong"
	"golang.org/x/term"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
)

// DefaultSocket is where slipway serve listens for commands on the same machine.
const DefaultSocket = "/var/lib/slipway/slipway.sock"

// Globals are the flags of every command.
type Globals struct {
	Server    string `help:"Server: http://HOST:PORT, or the path of its socket (default ${socket})." env:"SLIPWAY_SERVER" placeholder:"URL"`
	TokenFile string `help:"File with the token for a server over the network; SLIPWAY_TOKEN may hold the token itself." env:"SLIPWAY_TOKEN_FILE" placeholder:"FILE"`
	CAFile    string `name:"ca-file" help:"Certificate authority of a server with https; a server's own is printed by: slipway tls show --ca." env:"SLIPWAY_CA_FILE" placeholder:"FILE"`
	Output    string `short:"o" help:"table, json or yaml." enum:"table,json,yaml" default:"table"`
}

// Session is one run of a command.
type Session struct {
	Ctx        context.Context
	Globals    Globals
	In         io.Reader
	Out        io.Writer // data
	Err        io.Writer // talk
	Parser     *kong.Kong
	Connection *client.Client
	TLS        *tls.Config // for a server with https; nil is the usual one
}

// Client connects to the server that the flags name.
func (s *Session) Client() (*client.Client, error) {
	if s.Connection != nil {
		return s.Connection, nil
	}
	token := os.Getenv("SLIPWAY_TOKEN")
	if s.Globals.TokenFile != "" {
		b, err := os.ReadFile(s.Globals.TokenFile)
		if err != nil {
			return nil, &inventory.Error{Kind: inventory.Invalid, Msg: "cannot read the token: " + err.Error(), Hint: "it is the file given with --token-file or SLIPWAY_TOKEN_FILE"}
		}
		token = strings.TrimSpace(string(b))
	}
	server := cmp.Or(s.Globals.Server, DefaultSocket)
	awaitSocket(s.Ctx, server)
	if s.TLS == nil {
		conf, err := Trusting(server, s.Globals.CAFile)
		if err != nil {
			return nil, err
		}
		s.TLS = conf
	}
	c, err := client.New(client.Config{Server: server, Token: token, Agent: "slipway/" + Version, TLS: s.TLS})
	if err != nil {
		return nil, err
	}
	s.Connection = c
	return c, nil
}

// Close ends the connection to the server, if a command has opened one.
func (s *Session) Close() {
	if s.Connection != nil {
		s.Connection.Close()
	}
}

// Say tells the person at the terminal something that is not data.
func (s *Session) Say(format string, args ...any) {
	fmt.Fprintln(s.Err, PlainLines(fmt.Sprintf(format, args...)))
}

// isTerminal reports whether talk is read by a person.
func (s *Session) isTerminal() bool {
	f, ok := s.Err.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Show writes data in the form asked for; table writes it for people.
func (s *Session) Show(v any, table func(*TableWriter)) error {
	switch s.Globals.Output {
	case "json":
		return WriteJSON(s.Out, v, true)
	case "yaml":
		return writeYAML(s.Out, v)
	}
	t := &TableWriter{w: tabwriter.NewWriter(s.Out, 0, 0, 2, ' ', 0)}
	table(t)
	return t.w.Flush()
}
