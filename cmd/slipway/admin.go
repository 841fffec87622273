package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/transfer"
	"slipway.dev/slipway/web/client"
)

func tokens(c *client.Client) client.Noun[inventory.Token] { return c.Tokens }

type tokenCommand struct {
	Create tokenCreate `cmd:"" help:"Create a token and print its secret, once."`
	List   tokenList   `cmd:"" help:"List tokens."`
	Delete tokenDelete `cmd:"" help:"Delete tokens; they stop working at once."`
}

type tokenCreate struct {
	Name      string        `arg:"" help:"Its name, a DNS label: who or what will use it."`
	ExpiresIn time.Duration `help:"How long it is valid, such as 30d; without it, until it is deleted." placeholder:"DURATION"`
	User      *string       `help:"Who answers for it: it may never do more than that user; '' for nobody." placeholder:"USER"`

	Cluster   string   `help:"For the controllers of this cluster (slipway manager), and for nothing else: an attached one, or the UID of any, that of its namespace kube-system." placeholder:"CLUSTER"`
	Namespace []string `help:"With --cluster: only for objects of this namespace. Repeat for more." placeholder:"NAME"`

	grantFlags `embed:""`
}

// Run creates a token. Its secret is the only thing on standard output, so that it can be sent to a file.
func (c *tokenCreate) Run(s *session) error {
	if c.ExpiresIn < 0 {
		return usage("write it as 720h", "--expires-in %s is in the past", c.ExpiresIn)
	}
	api, err := s.client()
	if err != nil {
		return err
	}
	var until time.Time
	if c.ExpiresIn > 0 {
		until = time.Now().Add(c.ExpiresIn).Round(time.Second)
	}
	grants, err := c.grants()
	if err != nil {
		return err
	}
	t, err := api.NewToken(s.ctx, client.TokenWish{Name: c.Name, User: c.User, Grants: grants, Cluster: c.Cluster, Namespaces: c.Namespace, ExpiresAt: until})
	if err != nil {
		return err
	}
	if s.globals.Output != "table" {
		return s.show(t, nil)
	}
	s.say("this is the secret of token %s; it is shown this once", t.Name)
	_, err = fmt.Fprintln(s.out, t.Secret)
	return err
}

type tokenList struct{}

// Run lists tokens.
func (*tokenList) Run(s *session) error {
	return showList(s, tokens, client.Query{}, 0, []string{"NAME", "USER", "GRANTS", "CREATED", "EXPIRES", "LAST USED"}, func(t inventory.Token) []string {
		return []string{t.Name, t.User, mayDo(t.Grants, t.Cluster, t.Namespaces), timeText(t.CreatedAt), timeText(t.ExpiresAt), timeText(t.LastUsedAt)}
	})
}

// mayDo says what a token may do: its roles, or that it is for the controllers of a cluster.
func mayDo(g inventory.Grants, cluster string, namespaces []string) string {
	switch {
	case cluster == "":
		return g.String()
	case len(namespaces) == 0:
		return "cluster " + cluster
	}
	return "cluster " + cluster + ": " + strings.Join(namespaces, ", ")
}

type tokenDelete struct {
	Tokens []string `arg:""`
	DryRun bool     `help:"Only show what would be deleted."`
}

// Run deletes tokens.
func (c *tokenDelete) Run(s *session) error { return remove(s, tokens, c.Tokens, c.DryRun) }

func acceptrules(c *client.Client) client.Noun[inventory.AcceptRule] { return c.AcceptRules }

type acceptruleCommand struct {
	List   acceptruleList   `cmd:"" help:"List accept rules."`
	Show   acceptruleShow   `cmd:"" help:"Show an accept rule."`
	Create acceptruleCreate `cmd:"" help:"Accept hosts by themselves from now on."`
	Delete acceptruleDelete `cmd:"" help:"Delete accept rules; hosts that they have accepted stay accepted."`
}

type acceptruleList struct{}

// Run lists accept rules.
func (*acceptruleList) Run(s *session) error {
	return showList(s, acceptrules, client.Query{}, 0, []string{"NAME", "SELECTOR", "CREATED"}, func(r inventory.AcceptRule) []string {
		return []string{r.Name, r.Selector, timeText(r.CreatedAt)}
	})
}

type acceptruleShow struct {
	Rule string `arg:""`
}

// Run shows an accept rule.
func (c *acceptruleShow) Run(s *session) error {
	return showOne(s, acceptrules, c.Rule, func(t *tableWriter, r inventory.AcceptRule) {
		t.field("name", r.Name)
		t.field("selector", r.Selector)
		t.field("created", timeText(r.CreatedAt))
	})
}

type acceptruleCreate struct {
	Name     string `arg:"" help:"Its name, a DNS label."`
	Selector string `required:"" help:"Hosts to accept, such as manufacturer=ACME,rack=r1; mac accepts all." placeholder:"SELECTOR"`
	DryRun   bool   `help:"Only show what would be stored."`
}

// Run adds an accept rule.
func (c *acceptruleCreate) Run(s *session) error {
	return write(s, acceptrules, "POST", "", inventory.AcceptRule{Name: c.Name, Selector: c.Selector}, c.DryRun)
}

type acceptruleDelete struct {
	Rules  []string `arg:""`
	DryRun bool     `help:"Only show what would be deleted."`
}

// Run deletes accept rules.
func (c *acceptruleDelete) Run(s *session) error { return remove(s, acceptrules, c.Rules, c.DryRun) }

type importCommand struct {
	File   string   `arg:"" help:"CSV or YAML; - is standard input."`
	Format string   `help:"csv or yaml (default: by the file's name)." placeholder:"FORMAT"`
	Preset string   `help:"Program that wrote the CSV file: netbox, maas, ansible or device42." placeholder:"PROGRAM"`
	Map    []string `help:"Field of a column that has another heading, such as hostname=name, COLUMN=label:KEY, or COLUMN= to leave it out; repeat for more." placeholder:"COLUMN=FIELD" sep:"none"`
	DryRun bool     `help:"Only show what would change."`
}

// The programs whose exports are read, and how the names of workbooks end.
var (
	presets   = []string{"netbox", "maas", "ansible", "device42"}
	workbooks = []string{".xlsx", ".xlsm", ".xls", ".ods"}
)

// Run imports a file: all of it or nothing.
func (c *importCommand) Run(s *session) error {
	format := c.Format
	if format == "" {
		format = formatOf(c.File)
	}
	if slices.Contains(workbooks, filepath.Ext(strings.ToLower(c.File))) && c.Format == "" {
		return usage("save the sheet as CSV", "%s is a workbook of a spreadsheet program, not a CSV file", c.File)
	}
	if c.Preset != "" && !slices.Contains(presets, c.Preset) {
		return usage("use one of "+strings.Join(presets, ", "), "--preset %q is not known", c.Preset)
	}
	if format != "csv" && format != "yaml" {
		return usage("say it with --format csv or --format yaml", "%s does not tell whether it is CSV or YAML", c.File)
	}
	in := s.in
	if c.File != "-" {
		f, err := os.Open(c.File)
		if err != nil {
			return &inventory.Error{Kind: inventory.Invalid, Msg: "cannot read the file: " + err.Error()}
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	content := bufio.NewReader(in)
	if _, err := content.Peek(1); errors.Is(err, io.EOF) {
		return inventory.Errorf(inventory.Invalid, "%s is empty", c.File).WithHint("save it again; nothing was changed")
	}
	api, err := s.client()
	if err != nil {
		return err
	}
	out, err := api.ImportFile(s.ctx, format, filepath.Base(c.File), content, client.Sheet{Preset: c.Preset, Map: c.Map}, c.DryRun)
	if err != nil {
		return s.inFiles(err, nil)
	}
	if s.globals.Output != "table" {
		return s.show(out, nil)
	}
	var d transfer.Diff
	for _, change := range out.Changes {
		x := transfer.Change{Noun: transfer.Noun(change.Noun), Name: change.Name, Op: transfer.Op(change.Op)}
		for _, f := range change.Fields {
			x.Fields = append(x.Fields, transfer.FieldChange(f))
		}
		d.Changes = append(d.Changes, x)
	}
	d.Changes = append(d.Changes, unchanged(out.UnchangedN)...)
	if _, err := io.WriteString(s.out, plainLines(d.String())); err != nil {
		return err
	}
	if len(out.Ignored) > 0 {
		s.say("columns left out: %s", strings.Join(out.Ignored, ", "))
	}
	if out.IsDryRun {
		s.say("this was a dry run: nothing was changed")
	}
	return nil
}

func unchanged(n int) (list []transfer.Change) {
	for range n {
		list = append(list, transfer.Change{Op: transfer.OpUnchanged})
	}
	return list
}

func formatOf(file string) string {
	switch strings.ToLower(filepath.Ext(file)) {
	case ".csv", ".tsv":
		return "csv"
	case ".yaml", ".yml":
		return "yaml"
	}
	return ""
}

type exportCommand struct {
	Noun   string `arg:"" enum:"hosts,subnets,reservations,profiles,layers,targets,secrets,all" help:"hosts, subnets, reservations; in YAML only: profiles, layers, targets, secrets (their names), or all."`
	Format string `enum:"csv,yaml" default:"yaml" help:"csv or yaml."`
}

// Run writes the file to standard output.
func (c *exportCommand) Run(s *session) error {
	api, err := s.client()
	if err != nil {
		return err
	}
	return api.Export(s.ctx, c.Noun, c.Format, s.out)
}

type selfcheckCommand struct{}

// Run shows the server's self-check; an error in it is a failure.
func (*selfcheckCommand) Run(s *session) error {
	api, err := s.client()
	if err != nil {
		return err
	}
	checks, err := api.SelfCheck(s.ctx)
	if err != nil {
		return err
	}
	err = s.show(checks.Items, func(t *tableWriter) {
		t.row("STATUS", "CHECK", "DETAIL", "HINT")
		for _, k := range checks.Items {
			t.row(k.Status, k.Name, k.Detail, k.Hint)
		}
	})
	for _, k := range checks.Items {
		if err == nil && k.Status == "error" {
			return errSaid
		}
	}
	return err
}

type whoamiCommand struct{}

// Run says who the client is.
func (*whoamiCommand) Run(s *session) error {
	api, err := s.client()
	if err != nil {
		return err
	}
	me, err := api.Me(s.ctx)
	if err != nil {
		return err
	}
	return s.show(me, func(t *tableWriter) {
		t.field("name", me.Name)
		t.field("user", me.User)
		t.field("grants", mayDo(me.Grants, me.Cluster, me.Namespaces))
		if me.NeedsSetup {
			t.field("next", "there is no user yet: slipway user create NAME --role admin")
		}
	})
}

type versionCommand struct {
	Client bool `help:"Only this program's; do not ask a server."`
}

// Run shows the versions. A server that is not there is no failure.
func (c *versionCommand) Run(s *session) error {
	out := struct {
		Client string `json:"client"`
		Server string `json:"server,omitempty"`
	}{Client: version}
	if !c.Client {
		api, err := s.client()
		if err != nil {
			return err
		}
		if v, err := api.Version(s.ctx); err == nil {
			out.Server = v.Version
		} else {
			complain(s.err, err)
		}
	}
	return s.show(out, func(t *tableWriter) {
		t.field("client", out.Client)
		t.field("server", out.Server)
	})
}
