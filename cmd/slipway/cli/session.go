// Package cli owns the frame of the command line: the connection to the server, tables, JSON and YAML, and errors with
// hints. It also has the flags that several commands share, and waits for what the server does. It knows no single noun.
//
// Start reading at Session, then ShowList.
package cli

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf8"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"
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
	server := s.Globals.Server
	if server == "" {
		server = DefaultSocket
	}
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

// WriteJSON writes a value as JSON with a line break at the end. With isPretty it indents; < and > stay as they are.
func WriteJSON(w io.Writer, v any, isPretty bool) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if isPretty {
		enc.SetIndent("", "  ")
	}
	return enc.Encode(v)
}

// writeYAML writes what JSON would say, with the same names in the same order.
func writeYAML(w io.Writer, v any) error {
	var text bytes.Buffer
	if err := WriteJSON(&text, v, false); err != nil {
		return err
	}
	var node yaml.Node
	if err := yaml.Unmarshal(text.Bytes(), &node); err != nil {
		return fmt.Errorf("turn JSON into YAML: %w", err)
	}
	blockStyle(&node)
	enc := yaml.NewEncoder(w)
	enc.SetIndent(2)
	if err := enc.Encode(&node); err != nil {
		return err
	}
	return enc.Close()
}

// blockStyle takes away the braces and quotes that came with JSON, where YAML does not need them.
func blockStyle(n *yaml.Node) {
	n.Style = 0
	for _, c := range n.Content {
		blockStyle(c)
	}
}

// TableWriter writes rows of cells.
type TableWriter struct {
	w     *tabwriter.Writer
	heads []string // of the columns
}

// wideCell is the longest text that other cells stand beside: a longer one would push them far to the right.
const wideCell = 72

// Row writes one line; what machines and people have written cannot steer the terminal. A row in capitals names the columns.
// Behind a cell that is too wide the others follow on lines of their own, with the names of their columns.
func (t *TableWriter) Row(cells ...string) {
	if !slices.ContainsFunc(cells, func(c string) bool { return !headRE.MatchString(c) }) {
		t.heads = slices.Clone(cells)
	}
	wide := len(cells)
	for i, c := range cells {
		if c = Plain(c); c == "" {
			c = "-"
		}
		cells[i] = c
		if wide == len(cells) && utf8.RuneCountInString(c) > wideCell {
			wide = i + 1
		}
	}
	fmt.Fprintln(t.w, strings.Join(cells[:wide], "\t"))
	for i := wide; i < len(cells); i++ {
		if cells[i] == "-" {
			continue
		}
		name := ""
		if i < len(t.heads) {
			name = strings.ToLower(t.heads[i]) + ": "
		}
		fmt.Fprintln(t.w, strings.Repeat("\t", wide-1)+name+cells[i])
	}
}

var headRE = regexp.MustCompile(`^[A-Z][A-Z. %/-]+$`)

// Field writes a name and its value, unless that is empty.
func (t *TableWriter) Field(name, value string) {
	if value != "" {
		fmt.Fprintf(t.w, "%s\t%s\n", name, Plain(value))
	}
}

// Text writes a line that has no cells.
func (t *TableWriter) Text(line string) { fmt.Fprintln(t.w, Plain(line)) }

// Plain makes a text fit for one cell: no control, formatting or direction characters.
func Plain(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029':
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
}

// PlainLines is plain for a text of several lines.
func PlainLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = Plain(lines[i])
	}
	return strings.Join(lines, "\n")
}

// ListAll collects a list, page by page, up to limit items; 0 is all.
func ListAll[T any](s *Session, noun func(*client.Client) client.Noun[T], q client.Query, limit int) ([]T, error) {
	c, err := s.Client()
	if err != nil {
		return nil, err
	}
	q.Limit = 500
	if limit > 0 && limit < q.Limit {
		q.Limit = limit
	}
	items := []T{}
	for item, err := range noun(c).All(s.Ctx, q) {
		if err != nil {
			return nil, err
		}
		if limit > 0 && len(items) == limit {
			s.SayCut(limit, true)
			break
		}
		items = append(items, item)
	}
	return items, nil
}

// SayCut says that a list goes on behind its limit.
func (s *Session) SayCut(limit int, isCut bool) {
	if isCut && s.Globals.Output == "table" {
		s.Say("the first %d are shown; --limit 0 shows all", limit)
	}
}

// ShowList lists things as a table with those headings.
func ShowList[T any](s *Session, noun func(*client.Client) client.Noun[T], q client.Query, limit int, headings []string, row func(T) []string) error {
	return Answered(ListAll(s, noun, q, limit)).Show(s, Rows(headings, row))
}

// ShowOne shows a thing.
func ShowOne[T any](s *Session, noun func(*client.Client) client.Noun[T], name string, table func(*TableWriter, T)) error {
	c, err := s.Client()
	if err != nil {
		return err
	}
	return Answered(noun(c).Get(s.Ctx, name)).Show(s, table)
}

// Write creates or puts a thing, or with isDryRun shows what that would change. method is POST or PUT.
func Write[T any](s *Session, noun func(*client.Client) client.Noun[T], method, name string, item T, isDryRun bool, opts ...client.Option) error {
	c, err := s.Client()
	if err != nil {
		return err
	}
	if isDryRun {
		return s.Preview(noun(c).Preview(s.Ctx, method, name, item))
	}
	var stored T
	if method == "POST" {
		stored, err = noun(c).Create(s.Ctx, item)
	} else {
		stored, err = noun(c).Put(s.Ctx, name, item, opts...)
	}
	if err != nil {
		return err
	}
	return s.Stored(stored, nil)
}

// Stored shows what a write has stored: nothing to people, who know what they have typed. err is the error of the write.
func (s *Session) Stored(v any, err error) error {
	if err != nil || s.Globals.Output == "table" {
		return err
	}
	return s.Show(v, nil)
}

// Preview shows what a write would change.
func (s *Session) Preview(d client.Diff, err error) error {
	if err != nil {
		return err
	}
	return s.Show(d, func(t *TableWriter) {
		if len(d.Changes) == 0 {
			t.Row("nothing would change")
			return
		}
		t.Row("FIELD", "FROM", "TO")
		for _, c := range d.Changes {
			t.Row(c.Field, ValueText(c.From), ValueText(c.To))
		}
	})
}

// ValueText is a value of a change for people: a string as it is, everything else as JSON.
func ValueText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

// Remove deletes things one by one, and goes on after one that fails.
func Remove[T any](s *Session, noun func(*client.Client) client.Noun[T], names []string, isDryRun bool, opts ...client.Option) error {
	return s.Each(names, func(c *client.Client, name string) error {
		if isDryRun {
			d, err := noun(c).Preview(s.Ctx, "DELETE", name, nil, opts...)
			if err == nil {
				s.Say("%s would be deleted%s", name, ToldThat(d.Does))
			}
			return err
		}
		return noun(c).Delete(s.Ctx, name, opts...)
	})
}

// ToldThat is what would happen, behind a colon; "" when the server has no word for it.
func ToldThat(does string) string {
	if does == "" {
		return ""
	}
	return ": " + does
}

// Each does something to every name, and goes on after one that fails.
func (s *Session) Each(names []string, do func(c *client.Client, name string) error) error {
	c, err := s.Client()
	if err != nil {
		return err
	}
	var failed error
	for _, name := range names {
		if err := do(c, name); err != nil {
			if len(names) == 1 || s.Ctx.Err() != nil {
				return err
			}
			Complain(s.Err, err)
			failed = ErrSaid
		}
	}
	return failed
}
