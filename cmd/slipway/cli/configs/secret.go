package configs

import (
	"fmt"
	"strings"

	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
)

func secrets(c *client.Client) client.Noun[inventory.Secret] { return c.Secrets }

// SecretCommand is slipway secret.
type SecretCommand struct {
	List     secretList     `cmd:"" help:"List secrets: their names, never their values."`
	Show     secretShow     `cmd:"" help:"Show whom a secret is for, and what it is for; never its value."`
	For      secretFor      `cmd:"" help:"Say whom a secret is for."`
	Set      secretSet      `cmd:"" help:"Store a secret from a file or standard input, whether it exists or not."`
	Describe secretDescribe `cmd:"" help:"Say what a secret is for."`
	Uses     secretUses     `cmd:"" help:"List what uses a secret."`
	Delete   secretDelete   `cmd:"" help:"Delete secrets that nothing uses."`
}

type secretList struct{}

// Run lists secrets.
func (*secretList) Run(s *cli.Session) error {
	return cli.ShowList(s, secrets, client.Query{}, 0, []string{"NAME", "FOR", "ABOUT", "CHANGED", "VERSION"}, func(x inventory.Secret) []string {
		return []string{x.Name, strings.Join(x.Consumers.Texts(), " "), x.About, cli.TimeText(x.UpdatedAt), fmt.Sprint(x.Version)}
	})
}

// secretSet has no flag for the value: a command line is seen by everybody on the machine, and kept by shells.
type secretSet struct {
	Secret string   `arg:"" help:"Its name, a DNS label."`
	File   string   `default:"-" help:"File with the value; - is standard input, or a question at a terminal." placeholder:"FILE"`
	About  *string  `help:"Description." placeholder:"TEXT"`
	For    []string `help:"Whom it is for: pool:NAME, profile:NAME or target:NAME. It may be given several times; without it that stays." placeholder:"CONSUMER"`
	DryRun bool     `help:"Only show what would change."`
}

// Run stores a secret.
func (c *secretSet) Run(s *cli.Session, api *client.Client) error {
	value, err := s.ReadSecret("value of "+c.Secret, c.File)
	if err != nil {
		return err
	}
	in := client.SecretInput{Value: &value, About: c.About}
	if len(c.For) > 0 {
		consumers, err := inventory.ParseConsumers(c.For)
		if err != nil {
			return err
		}
		in.Consumers = &consumers
	}
	if c.DryRun {
		return s.Preview(api.Secrets.Preview(s.Ctx, "PUT", c.Secret, in))
	}
	return s.Stored(api.SetSecret(s.Ctx, c.Secret, in))
}

type secretDescribe struct {
	Secret string `arg:""`
	About  string `arg:"" help:"Description."`
}

// Run says what a secret is for.
func (c *secretDescribe) Run(s *cli.Session, api *client.Client) error {
	return s.Stored(api.SetSecret(s.Ctx, c.Secret, client.SecretInput{About: &c.About}))
}

type secretShow struct {
	Secret string `arg:""`
}

// Run shows what is known of a secret but its value.
func (c *secretShow) Run(s *cli.Session) error {
	return cli.ShowOne(s, secrets, c.Secret, func(t *cli.TableWriter, x inventory.Secret) {
		t.Field("name", x.Name)
		t.Field("about", x.About)
		t.Field("for", cli.OrAdmins(x.Consumers))
		t.Field("kept for", x.Owner)
		t.Field("changed", cli.TimeText(x.UpdatedAt))
	})
}

// secretFor has its consumers as arguments, so that taking the last away has to be said.
type secretFor struct {
	Secret    string   `arg:""`
	Consumers []string `arg:"" optional:"" help:"pool:NAME, profile:NAME or target:NAME; these replace those that it has."`
	Admins    bool     `help:"For nobody by name: only configurations that an admin has saved may name it."`
}

// Run says whom a secret is for.
func (c *secretFor) Run(s *cli.Session, api *client.Client) error {
	if c.Admins == (len(c.Consumers) > 0) {
		return cli.Usage("write pool:NAME, profile:NAME or target:NAME", "say whom the secret is for, or --admins")
	}
	consumers, err := inventory.ParseConsumers(c.Consumers)
	if err != nil {
		return err
	}
	return s.Stored(api.SetSecret(s.Ctx, c.Secret, client.SecretInput{Consumers: &consumers}))
}

type secretUses struct {
	Secret string `arg:""`
}

// Run lists what uses a secret.
func (c *secretUses) Run(s *cli.Session, api *client.Client) error {
	u, err := api.SecretUses(s.Ctx, c.Secret)
	if err != nil {
		return err
	}
	return s.Show(u, func(t *cli.TableWriter) {
		for _, user := range u.UsedBy {
			t.Row(user)
		}
	})
}

type secretDelete struct {
	Secrets []string `arg:""`
	DryRun  bool     `help:"Only show what would be deleted."`
}

// Run deletes secrets.
func (c *secretDelete) Run(s *cli.Session) error { return cli.Remove(s, secrets, c.Secrets, c.DryRun) }
