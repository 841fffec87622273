package appliance

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/cmd/slipway/cli/nouns"
	"slipway.dev/slipway/web/client"
	"slipway.dev/slipway/web/wire"
)

// InstanceCommand is slipway instance.
type InstanceCommand struct {
	List    nouns.List[instance, wire.Instance]   `cmd:"" help:"List the servers of the database, and the duties of each."`
	Show    nouns.Show[instance, wire.Instance]   `cmd:"" help:"Show an instance, and why it has its duties."`
	Drain   instanceDrain                         `cmd:"" help:"Have an instance hold no duties, before maintenance; others take them."`
	Undrain instanceUndrain                       `cmd:"" help:"Let an instance hold duties again."`
	Delete  nouns.Delete[instance, wire.Instance] `cmd:"" help:"Delete instances that are gone for good."`

	Invite      instanceInvite      `cmd:"" help:"Print the command that makes a new machine an instance."`
	Invitations instanceInvitations `cmd:"" help:"List invitations of new machines."`
	Withdraw    instanceWithdraw    `cmd:"" help:"Withdraw an invitation."`
	Join        instanceJoin        `cmd:"" help:"On a new machine: make it an instance, with the code of an invitation."`
}

// instance is how people read an instance.
type instance struct{}

// About returns the names of the noun.
func (instance) About() (one, many string) { return "instance", "instances" }

// Calls returns the calls of the API.
func (instance) Calls(c *client.Client) client.Noun[wire.Instance] { return c.Instances.Noun }

// Fields implements nouns.Noun.
func (instance) Fields(f *nouns.Fields, i wire.Instance) {
	f.Both("name", i.Name)
	f.Both("life", lifeText(i))
	f.Both("last sign", signText(i))
	f.Both("version", i.Version)
	f.Both("addresses", strings.Join(slices.DeleteFunc(slices.Clone(i.Addresses), isOfLink), ", "))
	var names []string
	for _, d := range i.Duties {
		names = append(names, d.Name)
	}
	f.Listed("duties", strings.Join(names, ", "))
	f.Shown("links", strings.Join(i.Links, ", "))
	f.Shown("cut off", cli.TimeText(i.CutOffAt))
	f.Shown("reason", i.CutOff)
	f.Shown("id", i.ID)
	f.Shown("started", cli.TimeText(i.StartedAt))
	f.Shown("drained", cli.TimeText(i.DrainedAt))
	for _, d := range i.Duties {
		f.Shown("duty", fmt.Sprintf("%s since %s, epoch %d: %s", d.Name, cli.TimeText(d.SinceAt), d.Epoch, d.Reason))
	}
}

// isOfLink reports whether an address is known on one network only, so that it tells people nothing (fe80::).
func isOfLink(address string) bool {
	a, err := netip.ParseAddr(address)
	return err == nil && a.IsLinkLocalUnicast() && a.Is6()
}

// lifeText says whether an instance runs, and what is special about it.
func lifeText(i wire.Instance) string {
	text := i.Life
	if i.CutOff != "" && i.Life == "alive" {
		text += ", cut off from the engine"
	}
	if i.IsDrained {
		text += ", drained"
	}
	return text
}

// signText is the age of the last sign of life; without one, the time that the database has, which no clock of ours is compared with.
func signText(i wire.Instance) string {
	switch {
	case i.QuietSeconds != nil:
		return cli.Ago(time.Now().Add(-time.Duration(*i.QuietSeconds*float64(time.Second))), time.Now())
	case i.IsThis:
		return "now"
	}
	return cli.TimeText(i.SeenAt)
}

type instanceDrain struct {
	Instance string `arg:"" help:"Its name."`
}

// Run drains an instance.
func (c *instanceDrain) Run(s *cli.Session, api *client.Client) error {
	i, err := api.Instances.Drain(s.Ctx, c.Instance)
	if err != nil {
		return err
	}
	if err := s.Show(i, func(t *cli.TableWriter) { nouns.Table[instance](t, i) }); err != nil {
		return err
	}
	if len(i.Duties) > 0 {
		s.Say("others take its duties within seconds: slipway instance list")
	}
	return nil
}

type instanceUndrain struct {
	Instance string `arg:"" help:"Its name."`
}

// Run ends the draining of an instance.
func (c *instanceUndrain) Run(s *cli.Session, api *client.Client) error {
	return cli.Answered(api.Instances.Undrain(s.Ctx, c.Instance)).Show(s, nouns.Table[instance])
}

// instancesTable says in a status which servers are alive, and what each does. Of a file of SQLite there is one, with nothing to say.
func instancesTable(t *cli.TableWriter, d *wire.Database, all []wire.Instance) {
	if len(all) == 0 || d.Kind == wire.DatabaseSQLite {
		return
	}
	aliveN, leader := 0, "none"
	for _, i := range all {
		if i.Life == "alive" {
			aliveN++
		}
		if i.IsLeader {
			leader = i.Name
		}
	}
	t.Field("instances", fmt.Sprintf("%d of %d alive; %s has the engine", aliveN, len(all), leader))
	for _, i := range all {
		text := i.Name + " " + lifeText(i) + ", last sign " + signText(i)
		for _, d := range i.Duties {
			text += fmt.Sprintf("; %s in epoch %d", d.Name, d.Epoch)
		}
		t.Field("", text)
	}
}
