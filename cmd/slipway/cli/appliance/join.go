package appliance

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/cmd/slipway/newcomer"
	"slipway.dev/slipway/cmd/slipway/serve/invite"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
	"slipway.dev/slipway/web/wire"
)

type instanceInvite struct {
	Name string        `help:"Name that the new instance must have (default: the new machine chooses)." placeholder:"NAME"`
	For  time.Duration `default:"15m" help:"How long the code works, 1m to 1h." placeholder:"DURATION"`
}

// Help says what the code is worth.
func (*instanceInvite) Help() string {
	return "Run the command that it prints on the new machine, and give it the code in the line below. " +
		"The code works for one machine, for 15 minutes or the time of --for. " +
		"Anybody with the code gets secret.key and the password of the database: send it only where you would send these."
}

// Run makes an invitation. Standard output has the command and the code, each on a line, so that a script can send both to the other
// machine. The code is no part of the command: every user of that machine could read it in the list of processes.
func (c *instanceInvite) Run(s *cli.Session, api *client.Client) error {
	made, err := api.Instances.Invite(s.Ctx, client.InvitationWish{Name: c.Name, For: inventory.Duration(c.For)})
	if err != nil {
		return err
	}
	if s.Globals.Output != "table" {
		return s.Show(made, nil)
	}
	s.Say("run the command on the new machine until %s, and paste the code when it asks", made.ExpiresAt.Local().Format(time.TimeOnly))
	s.Say("the code is shown this once, and works for one machine:")
	_, err = fmt.Fprintf(s.Out, "%s\n%s\n", made.Command, made.Code)
	return err
}

type instanceInvitations struct{}

// Run lists invitations.
func (*instanceInvitations) Run(s *cli.Session, api *client.Client) error {
	all, err := api.Instances.Invitations(s.Ctx)
	if err != nil {
		return err
	}
	return s.Show(all, func(t *cli.TableWriter) {
		t.Row("ID", "STATE", "NAME", "BY", "MADE", "EXPIRES", "USED", "FROM")
		for _, i := range all {
			t.Row(i.ID, i.State, nameOf(i), i.By, cli.TimeText(i.MadeAt), cli.TimeText(i.ExpiresAt), cli.TimeText(i.UsedAt), fromOf(i))
		}
	})
}

func nameOf(i wire.Invitation) string {
	if i.UsedAs != "" {
		return i.UsedAs
	}
	return i.Name
}

func fromOf(i wire.Invitation) string {
	if i.UsedFrom.IsValid() {
		return i.UsedFrom.String()
	}
	return ""
}

type instanceWithdraw struct {
	Invitation string `arg:"" help:"Its id: slipway instance invitations."`
}

// Run withdraws an invitation.
func (c *instanceWithdraw) Run(s *cli.Session, api *client.Client) error {
	return api.Instances.Withdraw(s.Ctx, c.Invitation)
}

type instanceJoin struct {
	Addresses      string   `arg:"" help:"Addresses of instances, with commas between them."`
	Code           string   `arg:"" optional:"" default:"-" help:"The code (default: asked for, or from standard input); others can see it here."`
	Name           string   `help:"Name of the new instance (default: that of the invitation, or of the machine)." placeholder:"NAME"`
	Config         string   `default:"/etc/slipway/config.yaml" help:"Configuration file, also an existing one." placeholder:"FILE"`
	DataDir        string   `help:"Data directory (default /var/lib/slipway)." placeholder:"DIR"`
	InstanceListen string   `help:"Address on which other instances ask this one (default: as they have it)." placeholder:"ADDR"`
	Interface      []string `help:"Interface on which machines boot; repeat for more (default: by their networks)." placeholder:"NAME"`
}

// Help says what it does, and in which order.
func (*instanceJoin) Help() string {
	return "Run slipway instance invite on an instance: it prints this command. " +
		"The new machine gets secret.key, the address and the password of the database, and " +
		"the settings that all instances share. It checks that it reaches the database and fits the site, and then writes all of it. " +
		"If a check fails, remove the cause and run the command again: the code works for this machine until it expires. " +
		"A line of the configuration file that says something else is never changed."
}

// Run makes this machine an instance.
func (c *instanceJoin) Run(s *cli.Session) error {
	addresses, err := invite.ParseAddresses(c.Addresses)
	if err != nil {
		return err
	}
	if c.Code == "-" {
		if c.Code, err = s.ReadSecret("code", "-"); err != nil {
			return err
		}
	} else {
		s.Say("the code is in the list of processes and in the log of sudo; leave it out next time: the command asks for it")
	}
	code, err := invite.ParseCode(c.Code)
	if err != nil {
		return err
	}
	config, err := filepath.Abs(c.Config)
	if err != nil {
		return err
	}
	dataDir := c.DataDir
	if dataDir != "" {
		if dataDir, err = filepath.Abs(dataDir); err != nil {
			return err
		}
	}
	out, err := newcomer.Join(s.Ctx, newcomer.Options{
		Addresses: addresses, Code: code, Name: c.Name, Config: config, DataDir: dataDir, InstanceListen: c.InstanceListen,
		Interfaces: c.Interface, Version: cli.Version, Now: time.Now,
	})
	if err != nil {
		return err
	}
	for _, n := range out.Notes {
		s.Say("%s", n)
	}
	return s.Show(out, func(t *cli.TableWriter) {
		t.Field("instance", out.Instance)
		t.Field("set up by", out.From)
		t.Field("fingerprint", out.Fingerprint)
		t.Field("database", out.Database)
		t.Field("interfaces", strings.Join(out.Interfaces, ", "))
		t.Field("written", strings.Join(out.Wrote, ", "))
		t.Field("unchanged", strings.Join(out.Kept, ", "))
		t.Field("next", out.Next)
	})
}
