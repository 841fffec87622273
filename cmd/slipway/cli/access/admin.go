package access

import (
	"fmt"
	"strings"
	"time"

	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/cmd/slipway/cli/nouns"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
	"slipway.dev/slipway/web/wire"
)

// TokenCommand is slipway token.
type TokenCommand struct {
	Create tokenCreate                          `cmd:"" help:"Create a token and print its secret, once."`
	List   nouns.List[token, inventory.Token]   `cmd:"" help:"List tokens."`
	Delete nouns.Delete[token, inventory.Token] `cmd:"" help:"Delete tokens; they stop working at once."`
}

// token is how people read a token.
type token struct{}

// About implements nouns.Noun.
func (token) About() (one, many string) { return "token", "tokens" }

// Calls implements nouns.Noun.
func (token) Calls(c *client.Client) client.Noun[inventory.Token] { return c.Tokens }

// Fields implements nouns.Noun.
func (token) Fields(f *nouns.Fields, t inventory.Token) {
	f.Listed("name", t.Name)
	f.Listed("user", t.User)
	f.Listed("grants", mayDo(t.Grants, t.Cluster, t.Namespaces))
	f.Listed("created", cli.TimeText(t.CreatedAt))
	f.Listed("expires", cli.TimeText(t.ExpiresAt))
	f.Listed("last used", cli.TimeText(t.LastUsedAt))
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

// AcceptRuleCommand is slipway acceptrule.
type AcceptRuleCommand struct {
	List   nouns.List[acceptRule, inventory.AcceptRule]      `cmd:"" help:"List accept rules."`
	Show   nouns.Show[acceptRule, inventory.AcceptRule]      `cmd:"" help:"Show an accept rule."`
	Create nouns.Create[acceptRuleNew, inventory.AcceptRule] `cmd:"" help:"Add a rule: Slipway accepts hosts that match, and may install and wipe them." set:"does=be stored"`
	Delete nouns.Delete[acceptRule, inventory.AcceptRule]    `cmd:"" help:"Delete accept rules; hosts that they have accepted stay accepted."`
}

// acceptRule is how people read an accept rule.
type acceptRule struct {
	nouns.Plain[inventory.AcceptRule]
}

// About implements nouns.Noun.
func (acceptRule) About() (one, many string) { return "rule", "rules" }

// Fields implements nouns.Noun.
func (acceptRule) Fields(f *nouns.Fields, r inventory.AcceptRule) {
	f.Both("name", r.Name)
	f.Both("selector", r.Selector)
	f.Both("created", cli.TimeText(r.CreatedAt))
}

// acceptRuleNew are what can be said of a new accept rule.
type acceptRuleNew struct {
	acceptRule
	Selector string `required:"" help:"Hosts to accept, such as manufacturer=ACME,rack=r1; mac accepts all." placeholder:"SELECTOR"`
}

// Apply implements nouns.Flags.
func (f acceptRuleNew) Apply(_ *cli.Session, r *inventory.AcceptRule) error {
	r.Selector = f.Selector
	return nil
}

// WhoamiCommand is slipway whoami.
type WhoamiCommand struct{}

// Run says who the client is.
func (*WhoamiCommand) Run(s *cli.Session, api *client.Client) error {
	return cli.Answered(api.Me(s.Ctx)).Show(s, func(t *cli.TableWriter, me wire.Me) {
		t.Field("name", me.Name)
		t.Field("user", me.User)
		t.Field("grants", mayDo(me.Grants, me.Cluster, me.Namespaces))
		if me.NeedsSetup {
			t.Field("next", "there is no user yet: slipway user create NAME --role admin")
		}
	})
}
