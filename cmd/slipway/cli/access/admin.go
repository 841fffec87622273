package access

import (
	"fmt"
	"strings"
	"time"

	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
)

func tokens(c *client.Client) client.Noun[inventory.Token] { return c.Tokens }

// TokenCommand is slipway token.
type TokenCommand struct {
	Create tokenCreate `cmd:"" help:"Create a token and print its secret, once."`
	List   tokenList   `cmd:"" help:"List tokens."`
	Delete tokenDelete `cmd:"" help:"Delete tokens; they stop working at once."`
}

type tokenCreate struct {
	Name      string        `arg:"" help:"Its name, a DNS label: who or what will use it."`
	ExpiresIn time.Duration `help:"How long it is valid, such as 30d; without it, until it is deleted." placeholder:"DURATION"`
	User      *string       `help:"The user that owns it, and whose rights bound it; '' for nobody." placeholder:"USER"`

	Cluster   string   `help:"For the controllers of this cluster (slipway manager), and for nothing else: an attached one, or the UID of any, that of its namespace kube-system." placeholder:"CLUSTER"`
	Namespace []string `help:"With --cluster: only for objects of this namespace. Repeat for more." placeholder:"NAME"`

	grantFlags `embed:""`
}

// Run creates a token. Its secret is the only thing on standard output, so that it can be sent to a file.
func (c *tokenCreate) Run(s *cli.Session, api *client.Client) error {
	if c.ExpiresIn < 0 {
		return cli.Usage("write it as 720h", "--expires-in %s is in the past", c.ExpiresIn)
	}
	var until time.Time
	if c.ExpiresIn > 0 {
		until = time.Now().Add(c.ExpiresIn).Round(time.Second)
	}
	grants, err := c.grants()
	if err != nil {
		return err
	}
	t, err := api.NewToken(s.Ctx, client.TokenWish{Name: c.Name, User: c.User, Grants: grants, Cluster: c.Cluster, Namespaces: c.Namespace, ExpiresAt: until})
	if err != nil {
		return err
	}
	if s.Globals.Output != "table" {
		return s.Show(t, nil)
	}
	s.Say("this is the secret of token %s; it is shown this once", t.Name)
	_, err = fmt.Fprintln(s.Out, t.Secret)
	return err
}

type tokenList struct{}

// Run lists tokens.
func (*tokenList) Run(s *cli.Session) error {
	return cli.ShowList(s, tokens, client.Query{}, 0, []string{"NAME", "USER", "GRANTS", "CREATED", "EXPIRES", "LAST USED"}, func(t inventory.Token) []string {
		return []string{t.Name, t.User, mayDo(t.Grants, t.Cluster, t.Namespaces), cli.TimeText(t.CreatedAt), cli.TimeText(t.ExpiresAt), cli.TimeText(t.LastUsedAt)}
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
func (c *tokenDelete) Run(s *cli.Session) error { return cli.Remove(s, tokens, c.Tokens, c.DryRun) }

func acceptrules(c *client.Client) client.Noun[inventory.AcceptRule] { return c.AcceptRules }

// AcceptRuleCommand is slipway acceptrule.
type AcceptRuleCommand struct {
	List   acceptruleList   `cmd:"" help:"List accept rules."`
	Show   acceptruleShow   `cmd:"" help:"Show an accept rule."`
	Create acceptruleCreate `cmd:"" help:"Accept hosts by themselves from now on."`
	Delete acceptruleDelete `cmd:"" help:"Delete accept rules; hosts that they have accepted stay accepted."`
}

type acceptruleList struct{}

// Run lists accept rules.
func (*acceptruleList) Run(s *cli.Session) error {
	return cli.ShowList(s, acceptrules, client.Query{}, 0, []string{"NAME", "SELECTOR", "CREATED"}, func(r inventory.AcceptRule) []string {
		return []string{r.Name, r.Selector, cli.TimeText(r.CreatedAt)}
	})
}

type acceptruleShow struct {
	Rule string `arg:""`
}

// Run shows an accept rule.
func (c *acceptruleShow) Run(s *cli.Session) error {
	return cli.ShowOne(s, acceptrules, c.Rule, func(t *cli.TableWriter, r inventory.AcceptRule) {
		t.Field("name", r.Name)
		t.Field("selector", r.Selector)
		t.Field("created", cli.TimeText(r.CreatedAt))
	})
}

type acceptruleCreate struct {
	Name     string `arg:"" help:"Its name, a DNS label."`
	Selector string `required:"" help:"Hosts to accept, such as manufacturer=ACME,rack=r1; mac accepts all." placeholder:"SELECTOR"`
	DryRun   bool   `help:"Only show what would be stored."`
}

// Run adds an accept rule.
func (c *acceptruleCreate) Run(s *cli.Session) error {
	return cli.Write(s, acceptrules, "POST", "", inventory.AcceptRule{Name: c.Name, Selector: c.Selector}, c.DryRun)
}

type acceptruleDelete struct {
	Rules  []string `arg:""`
	DryRun bool     `help:"Only show what would be deleted."`
}

// Run deletes accept rules.
func (c *acceptruleDelete) Run(s *cli.Session) error {
	return cli.Remove(s, acceptrules, c.Rules, c.DryRun)
}

// WhoamiCommand is slipway whoami.
type WhoamiCommand struct{}

// Run says who the client is.
func (*WhoamiCommand) Run(s *cli.Session, api *client.Client) error {
	me, err := api.Me(s.Ctx)
	if err != nil {
		return err
	}
	return s.Show(me, func(t *cli.TableWriter) {
		t.Field("name", me.Name)
		t.Field("user", me.User)
		t.Field("grants", mayDo(me.Grants, me.Cluster, me.Namespaces))
		if me.NeedsSetup {
			t.Field("next", "there is no user yet: slipway user create NAME --role admin")
		}
	})
}
