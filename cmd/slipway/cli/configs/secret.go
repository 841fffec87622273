package configs

import (
	"fmt"
	"strings"

	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/cmd/slipway/cli/nouns"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
	"slipway.dev/slipway/web/wire"
)

// SecretCommand is slipway secret.
type SecretCommand struct {
	List     nouns.List[secret, inventory.Secret]   `cmd:"" help:"List secrets: their names, never their values."`
	Show     nouns.Show[secret, inventory.Secret]   `cmd:"" help:"Show whom a secret is for, and what it is for; never its value."`
	For      secretFor                              `cmd:"" help:"Say whom a secret is for."`
	Set      secretSet                              `cmd:"" help:"Store a secret from a file or standard input, whether it exists or not."`
	Describe secretDescribe                         `cmd:"" help:"Say what a secret is for."`
	Uses     secretUses                             `cmd:"" help:"List what uses a secret."`
	Delete   nouns.Delete[secret, inventory.Secret] `cmd:"" help:"Delete secrets that nothing uses."`
}

// secret is how people read a secret: all but its value.
type secret struct{ nouns.Plain[inventory.Secret] }

// Fields implements nouns.Noun.
func (secret) Fields(f *nouns.Fields, x inventory.Secret) {
	f.Both("name", x.Name)
	f.Listed("for", strings.Join(x.Consumers.Texts(), " "))
	f.Both("about", x.About)
	f.Shown("for", cli.OrAdmins(x.Consumers))
	f.Shown("kept for", x.Owner)
	f.Both("changed", cli.TimeText(x.UpdatedAt))
	f.Listed("version", fmt.Sprint(x.Version))
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
	in := wire.SecretInput{Value: &value, About: c.About}
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
	return s.Stored(api.SetSecret(s.Ctx, c.Secret, wire.SecretInput{About: &c.About}))
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
	return s.Stored(api.SetSecret(s.Ctx, c.Secret, wire.SecretInput{Consumers: &consumers}))
}

type secretUses struct {
	Secret string `arg:""`
}

// Run lists what uses a secret.
func (c *secretUses) Run(s *cli.Session, api *client.Client) error {
	return cli.Answered(api.SecretUses(s.Ctx, c.Secret)).Show(s, func(t *cli.TableWriter, u wire.SecretUses) {
		for _, user := range u.UsedBy {
			t.Row(user)
		}
	})
}
