// Package machines owns the commands for installed servers: slipway machine, pool and golden. It decides nothing: it calls the REST API.
package machines

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
)

// MachineCommand is slipway machine.
type MachineCommand struct {
	List      machineList      `cmd:"" help:"List machines."`
	Show      machineShow      `cmd:"" help:"Show a machine and what is being done for it."`
	Create    machineCreate    `cmd:"" help:"Create a machine: Slipway chooses, installs and starts a host for it."`
	Set       machineSet       `cmd:"" help:"Change what a machine should be at its next installation."`
	Delete    machineDelete    `cmd:"" help:"Delete machines: Slipway fences and wipes their hosts, and makes them available again."`
	Reinstall machineReinstall `cmd:"" help:"Reinstall machines on their hosts. This overwrites their system disks."`
	Retry     machineRetry     `cmd:"" help:"Let machines that have failed look for a host again."`
	Remediate machineRemediate `cmd:"" help:"Remediate a machine: power cycle, else reinstall, else replace. The last two destroy data."`
	Ack       machineAck       `cmd:"" help:"Acknowledge a hook, so that the step it blocks goes on."`
	Hold      machineHold      `cmd:"" help:"Give the reason why a hook is not acknowledged yet."`
	Adopt     machineAdopt     `cmd:"" help:"Make a machine of a server that runs already; Slipway starts nothing on it."`
	Events    machineEvents    `cmd:"" help:"Show what has happened to a machine, with -f what happens."`
}

type machineList struct {
	Pool    string `help:"Only those of this pool." placeholder:"POOL"`
	Phase   string `help:"Only pending, provisioning, running, deleting or failed ones." placeholder:"PHASE"`
	Profile string `help:"Only those of this profile." placeholder:"PROFILE"`
	Limit   int    `help:"At most so many."`
}

// Run lists machines.
func (c *machineList) Run(s *cli.Session, _ *client.Client) error {
	q := client.Query{Pool: c.Pool, Phase: c.Phase, Profile: c.Profile}
	names := s.HostNames()
	return cli.ShowList(s, machines, q, c.Limit, []string{"NAME", "PHASE", "PROFILE", "POOL", "HOST", "CREATED", "REASON"}, func(m inventory.Machine) []string {
		return []string{m.Name, string(m.Phase), m.Profile, cli.OrDefault(m.Pool), names(m.HostID), cli.TimeText(m.CreatedAt), m.Reason}
	})
}

type machineShow struct {
	Machine string `arg:""`
}

// Run shows a machine.
func (c *machineShow) Run(s *cli.Session) error {
	return cli.ShowOne(s, machines, c.Machine, func(t *cli.TableWriter, m inventory.Machine) {
		t.Field("name", m.Name)
		t.Field("uid", m.UID)
		t.Field("owner", m.Owner)
		t.Field("phase", string(m.Phase))
		t.Field("because", m.Reason)
		t.Field("hint", m.Hint)
		profile := m.Profile
		if m.ProfileRevision != 0 {
			profile += fmt.Sprintf(", revision %d", m.ProfileRevision)
		}
		t.Field("profile", profile)
		t.Field("image", m.Image)
		t.Field("kernel arguments", strings.Join(m.KernelArgs, " "))
		t.Field("bootstrap data from", m.BootstrapFrom)
		if m.Drain.Target != "" {
			t.Field("node", m.NodeOf()+" in "+m.Drain.Target)
		}
		t.Field("pool", cli.OrDefault(m.Pool))
		names := s.HostNames()
		t.Field("host", names(m.HostID))
		t.Field("claim", string(m.ClaimID))
		t.Field("hostname", m.Hostname)
		placementFields(t, m.Placement)
		cli.DiskFields(t, m.RootDisk, m.KeepDisks)
		for _, k := range slices.Sorted(maps.Keys(m.Parameters)) {
			t.Field("parameter", k+"="+m.Parameters[k])
		}
		t.Field("clean", string(m.Clean))
		t.Field("release after", string(m.ReleaseAfter))
		for _, h := range m.Hooks {
			text := "not acknowledged"
			if h.Reason != "" {
				text += ": " + h.Reason
			}
			if !h.AckedAt.IsZero() {
				text = "acknowledged " + cli.TimeText(h.AckedAt)
			}
			t.Field("hook", fmt.Sprintf("%s of %s, %s", h.Step, h.Owner, text))
		}
		if m.AttemptN > 1 {
			t.Field("attempts", fmt.Sprint(m.AttemptN))
		}
		for _, id := range m.Avoid {
			t.Field("failed on", names(id))
		}
		t.Field("created", cli.TimeText(m.CreatedAt))
		if !m.DeletedAt.IsZero() {
			t.Field("deletion", "asked for "+cli.TimeText(m.DeletedAt))
		}
		openOperation(s, t, m.Name)
	})
}

// openOperation shows what is being done for a machine; that it cannot be read hides nothing else.
func openOperation(s *cli.Session, t *cli.TableWriter, machine string) {
	open, err := s.Connection.Operations.List(s.Ctx, client.Query{Machine: machine, Open: true, Limit: 1})
	if err != nil || len(open.Items) == 0 {
		return
	}
	o := open.Items[0]
	t.Field("operation", fmt.Sprintf("%s, %s: %s %s", o.ID, o.Kind, o.Step, o.State))
	t.Field("progress", cli.ProgressText(&o))
}

func placementFields(t *cli.TableWriter, p inventory.Placement) {
	t.Field("on host", p.Host)
	t.Field("not in pools", strings.Join(p.NotPools, ", "))
	t.Field("selector", p.Selector)
	t.Field("requires", cli.RequirementsText(p.Requirements))
	for _, w := range p.Preferred {
		t.Field("prefers", fmt.Sprintf("%d:%s", w.Weight, w.Selector))
	}
	for _, x := range p.Tolerations {
		t.Field("tolerates", cli.TaintText(inventory.Taint(x)))
	}
	domain := p.FailureDomain
	if p.IsDomainPreferred {
		domain += ", if possible"
	}
	t.Field("failure domain", domain)
	t.Field("reuse", strings.TrimSpace(string(p.Reuse)+" "+p.ReuseKey))
}

type machineEvents struct {
	Machine string `arg:""`
	Follow  bool   `short:"f" help:"Wait for more."`
}

// Run shows a machine's timeline.
func (c *machineEvents) Run(s *cli.Session, api *client.Client) error {
	m, err := api.Machines.Get(s.Ctx, c.Machine)
	if err != nil {
		return err
	}
	v := cli.NewEventView(s, api)
	events, err := machineEventsOf(s, api, &m)
	if err != nil {
		return err
	}
	q := client.EventQuery{After: client.FromNow}
	for _, e := range events {
		if err := v.Show(e); err != nil {
			return err
		}
		q.After = e.ID
	}
	if !c.Follow {
		return nil
	}
	for e, err := range api.Follow(s.Ctx, q) {
		if err != nil {
			return err
		}
		if isAbout(e, &m) {
			if err := v.Show(e); err != nil {
				return err
			}
		}
	}
	return nil
}

func isAbout(e inventory.Event, m *inventory.Machine) bool {
	return e.Subject == "machine/"+m.Name && !e.At.Before(m.CreatedAt)
}

// machineEventsOf collects what has happened to a machine, oldest first: what is noted of machines, which names the hosts
// that it has had, and what was done with those.
func machineEventsOf(s *cli.Session, api *client.Client, m *inventory.Machine) ([]inventory.Event, error) {
	found := map[int64]inventory.Event{}
	hosts := map[inventory.HostID]bool{m.HostID: true}
	collect := func(q client.EventQuery) error {
		for q.Limit = 1000; ; {
			page, err := api.Events(s.Ctx, q)
			if err != nil {
				return err
			}
			for _, e := range page.Items {
				if q.After = e.ID; isAbout(e, m) {
					found[e.ID], hosts[e.HostID] = e, true
				}
			}
			if page.Next == "" {
				return nil
			}
		}
	}
	if err := collect(client.EventQuery{Kind: inventory.EventMachine}); err != nil {
		return nil, err
	}
	for id := range maps.Clone(hosts) {
		if id == "" {
			continue
		}
		if err := collect(client.EventQuery{Kind: inventory.EventOperation, Host: string(id)}); err != nil && !cli.IsNotFound(err) {
			return nil, err
		}
	}
	var events []inventory.Event
	for _, id := range slices.Sorted(maps.Keys(found)) {
		events = append(events, found[id])
	}
	return events, nil
}
