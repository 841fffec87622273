package main

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

const defaultSocket = "/var/lib/slipway/slipway.sock"

// Globals are the flags of every command.
type Globals struct {
	Server    string `help:"Server: http://HOST:PORT, or the path of its socket (default ${socket})." env:"SLIPWAY_SERVER" placeholder:"URL"`
	TokenFile string `help:"File with the token for a server over the network; SLIPWAY_TOKEN may hold the token itself." env:"SLIPWAY_TOKEN_FILE" placeholder:"FILE"`
	CAFile    string `name:"ca-file" help:"Certificate authority of a server with https; a server's own is printed by: slipway tls show --ca." env:"SLIPWAY_CA_FILE" placeholder:"FILE"`
	Output    string `short:"o" help:"table, json or yaml." enum:"table,json,yaml" default:"table"`
}

// session is one run of a command.
type session struct {
	ctx     context.Context
	globals Globals
	in      io.Reader
	out     io.Writer // data
	err     io.Writer // talk
	parser  *kong.Kong
	c       *client.Client
	tls     *tls.Config // for a server with https; nil is the usual one
}

// client connects to the server that the flags name.
func (s *session) client() (*client.Client, error) {
	if s.c != nil {
		return s.c, nil
	}
	token := os.Getenv("SLIPWAY_TOKEN")
	if s.globals.TokenFile != "" {
		b, err := os.ReadFile(s.globals.TokenFile)
		if err != nil {
			return nil, &inventory.Error{Kind: inventory.Invalid, Msg: "cannot read the token: " + err.Error(), Hint: "it is the file given with --token-file or SLIPWAY_TOKEN_FILE"}
		}
		token = strings.TrimSpace(string(b))
	}
	server := s.globals.Server
	if server == "" {
		server = defaultSocket
	}
	awaitSocket(s.ctx, server)
	if s.tls == nil {
		conf, err := trusting(server, s.globals.CAFile)
		if err != nil {
			return nil, err
		}
		s.tls = conf
	}
	c, err := client.New(client.Config{Server: server, Token: token, Agent: "slipway/" + version, TLS: s.tls})
	if err != nil {
		return nil, err
	}
	s.c = c
	return c, nil
}

func (s *session) close() {
	if s.c != nil {
		s.c.Close()
	}
}

// say tells the person at the terminal something that is not data.
func (s *session) say(format string, args ...any) {
	fmt.Fprintln(s.err, plainLines(fmt.Sprintf(format, args...)))
}

// isTerminal reports whether talk is read by a person.
func (s *session) isTerminal() bool {
	f, ok := s.err.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// show writes data in the form asked for; table writes it for people.
func (s *session) show(v any, table func(*tableWriter)) error {
	switch s.globals.Output {
	case "json":
		return writeJSON(s.out, v, true)
	case "yaml":
		return writeYAML(s.out, v)
	}
	t := &tableWriter{w: tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)}
	table(t)
	return t.w.Flush()
}

func writeJSON(w io.Writer, v any, isPretty bool) error {
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
	if err := writeJSON(&text, v, false); err != nil {
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

// tableWriter writes rows of cells.
type tableWriter struct {
	w     *tabwriter.Writer
	heads []string // of the columns
}

// wideCell is the longest text that other cells stand beside: a longer one would push them far to the right.
const wideCell = 72

// row writes one line; what machines and people have written cannot steer the terminal. A row in capitals names the columns.
// Behind a cell that is too wide the others follow on lines of their own, with the names of their columns.
func (t *tableWriter) row(cells ...string) {
	if !slices.ContainsFunc(cells, func(c string) bool { return !headRE.MatchString(c) }) {
		t.heads = slices.Clone(cells)
	}
	wide := len(cells)
	for i, c := range cells {
		if c = plain(c); c == "" {
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

// field writes a name and its value, unless that is empty.
func (t *tableWriter) field(name, value string) {
	if value != "" {
		fmt.Fprintf(t.w, "%s\t%s\n", name, plain(value))
	}
}

// text writes a line that has no cells.
func (t *tableWriter) text(line string) { fmt.Fprintln(t.w, plain(line)) }

// plain makes a text fit for one cell: no control, formatting or direction characters.
func plain(s string) string {
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

// plainLines is plain for a text of several lines.
func plainLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = plain(lines[i])
	}
	return strings.Join(lines, "\n")
}

// listAll collects a list, page by page, up to limit items; 0 is all.
func listAll[T any](s *session, noun func(*client.Client) client.Noun[T], q client.Query, limit int) ([]T, error) {
	c, err := s.client()
	if err != nil {
		return nil, err
	}
	q.Limit = 500
	if limit > 0 && limit < q.Limit {
		q.Limit = limit
	}
	items := []T{}
	for item, err := range noun(c).All(s.ctx, q) {
		if err != nil {
			return nil, err
		}
		if limit > 0 && len(items) == limit {
			s.sayCut(limit, true)
			break
		}
		items = append(items, item)
	}
	return items, nil
}

// sayCut says that a list goes on behind its limit.
func (s *session) sayCut(limit int, isCut bool) {
	if isCut && s.globals.Output == "table" {
		s.say("the first %d are shown; --limit 0 shows all", limit)
	}
}

// showList lists things as a table with those headings.
func showList[T any](s *session, noun func(*client.Client) client.Noun[T], q client.Query, limit int, headings []string, row func(T) []string) error {
	items, err := listAll(s, noun, q, limit)
	if err != nil {
		return err
	}
	return s.show(items, func(t *tableWriter) {
		t.row(headings...)
		for _, item := range items {
			t.row(row(item)...)
		}
	})
}

// showOne shows a thing.
func showOne[T any](s *session, noun func(*client.Client) client.Noun[T], name string, table func(*tableWriter, T)) error {
	c, err := s.client()
	if err != nil {
		return err
	}
	item, err := noun(c).Get(s.ctx, name)
	if err != nil {
		return err
	}
	return s.show(item, func(t *tableWriter) { table(t, item) })
}

// write creates or puts a thing, or with isDryRun shows what that would change. method is POST or PUT.
func write[T any](s *session, noun func(*client.Client) client.Noun[T], method, name string, item T, isDryRun bool, opts ...client.Option) error {
	c, err := s.client()
	if err != nil {
		return err
	}
	if isDryRun {
		return s.preview(noun(c).Preview(s.ctx, method, name, item))
	}
	var stored T
	if method == "POST" {
		stored, err = noun(c).Create(s.ctx, item)
	} else {
		stored, err = noun(c).Put(s.ctx, name, item, opts...)
	}
	if err != nil {
		return err
	}
	return s.stored(stored)
}

// stored shows what a write has stored: nothing to people, who know what they have typed.
func (s *session) stored(v any) error {
	if s.globals.Output == "table" {
		return nil
	}
	return s.show(v, nil)
}

// preview shows what a write would change.
func (s *session) preview(d client.Diff, err error) error {
	if err != nil {
		return err
	}
	return s.show(d, func(t *tableWriter) {
		if len(d.Changes) == 0 {
			t.row("nothing would change")
			return
		}
		t.row("FIELD", "FROM", "TO")
		for _, c := range d.Changes {
			t.row(c.Field, valueText(c.From), valueText(c.To))
		}
	})
}

func valueText(v any) string {
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

// remove deletes things one by one, and goes on after one that fails.
func remove[T any](s *session, noun func(*client.Client) client.Noun[T], names []string, isDryRun bool, opts ...client.Option) error {
	return s.each(names, func(c *client.Client, name string) error {
		if isDryRun {
			d, err := noun(c).Preview(s.ctx, "DELETE", name, nil, opts...)
			if err == nil {
				s.say("%s would be deleted%s", name, toldThat(d.Does))
			}
			return err
		}
		return noun(c).Delete(s.ctx, name, opts...)
	})
}

// toldThat is what would happen, behind a colon; "" when the server has no word for it.
func toldThat(does string) string {
	if does == "" {
		return ""
	}
	return ": " + does
}

// each does something to every name, and goes on after one that fails.
func (s *session) each(names []string, do func(c *client.Client, name string) error) error {
	c, err := s.client()
	if err != nil {
		return err
	}
	var failed error
	for _, name := range names {
		if err := do(c, name); err != nil {
			if len(names) == 1 || s.ctx.Err() != nil {
				return err
			}
			complain(s.err, err)
			failed = errSaid
		}
	}
	return failed
}
