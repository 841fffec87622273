package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"slipway.dev/slipway/hardware"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
)

func machines(c *client.Client) client.Noun[inventory.Machine] { return c.Machines.Noun }

// machineCommand is slipway machine.
type machineCommand struct {
	List      machineList      `cmd:"" help:"List machines."`
	Show      machineShow      `cmd:"" help:"Show a machine and what is being done for it."`
	Create    machineCreate    `cmd:"" help:"Want a machine: a host is chosen, installed and started."`
	Set       machineSet       `cmd:"" help:"Change what a machine should be at its next installation."`
	Delete    machineDelete    `cmd:"" help:"End machines: their hosts are fenced, wiped and free again."`
	Reinstall machineReinstall `cmd:"" help:"Install machines anew on their hosts; disks that are kept stay as they are."`
	Retry     machineRetry     `cmd:"" help:"Let machines that have failed look for a host again."`
	Remediate machineRemediate `cmd:"" help:"Get a machine going again: power cycle, reinstall, replace."`
	Ack       machineAck       `cmd:"" help:"Acknowledge a hook, so that the step it blocks goes on."`
	Hold      machineHold      `cmd:"" help:"Say why a hook is not acknowledged yet."`
	Adopt     machineAdopt     `cmd:"" help:"Make a machine of a server that runs already; nothing is started on it."`
	Events    machineEvents    `cmd:"" help:"Show what has happened to a machine, with -f what happens."`
}

type machineList struct {
	Pool    string `help:"Only those of this pool." placeholder:"POOL"`
	Phase   string `help:"Only pending, provisioning, running, deleting or failed ones." placeholder:"PHASE"`
	Profile string `help:"Only those of this profile." placeholder:"PROFILE"`
	Limit   int    `help:"At most so many."`
}

// Run lists machines.
func (c *machineList) Run(s *session) error {
	q := client.Query{Pool: c.Pool, Phase: c.Phase, Profile: c.Profile}
	list, err := listAll(s, machines, q, c.Limit)
	if err != nil {
		return err
	}
	names := s.hostNames()
	return s.show(list, func(t *tableWriter) {
		t.row("NAME", "PHASE", "PROFILE", "POOL", "HOST", "CREATED", "REASON")
		for _, m := range list {
			t.row(m.Name, string(m.Phase), m.Profile, orDefault(m.Pool), names(m.HostID), timeText(m.CreatedAt), m.Reason)
		}
	})
}

// orDefault is the name of a pool, that of the default one when it is "".
func orDefault(pool string) string {
	if pool == "" {
		return inventory.DefaultPool
	}
	return pool
}

// hostNames returns a function that finds the names of hosts, once each.
func (s *session) hostNames() func(inventory.HostID) string { return newEventView(s, s.c).name }

type machineShow struct {
	Machine string `arg:""`
}

// Run shows a machine.
func (c *machineShow) Run(s *session) error {
	return showOne(s, machines, c.Machine, func(t *tableWriter, m inventory.Machine) {
		t.field("name", m.Name)
		t.field("uid", m.UID)
		t.field("owner", m.Owner)
		t.field("phase", string(m.Phase))
		t.field("because", m.Reason)
		t.field("hint", m.Hint)
		profile := m.Profile
		if m.ProfileRevision != 0 {
			profile += fmt.Sprintf(", revision %d", m.ProfileRevision)
		}
		t.field("profile", profile)
		t.field("image", m.Image)
		t.field("kernel arguments", strings.Join(m.KernelArgs, " "))
		t.field("bootstrap data from", m.BootstrapFrom)
		if m.Drain.Target != "" {
			t.field("node", m.NodeOf()+" in "+m.Drain.Target)
		}
		t.field("pool", orDefault(m.Pool))
		names := s.hostNames()
		t.field("host", names(m.HostID))
		t.field("claim", string(m.ClaimID))
		t.field("hostname", m.Hostname)
		placementFields(t, m.Placement)
		diskFields(t, m.RootDisk, m.KeepDisks)
		for _, k := range slices.Sorted(maps.Keys(m.Parameters)) {
			t.field("parameter", k+"="+m.Parameters[k])
		}
		t.field("clean", string(m.Clean))
		t.field("release after", string(m.ReleaseAfter))
		for _, h := range m.Hooks {
			text := "not acknowledged"
			if h.Reason != "" {
				text += ": " + h.Reason
			}
			if !h.AckedAt.IsZero() {
				text = "acknowledged " + timeText(h.AckedAt)
			}
			t.field("hook", fmt.Sprintf("%s of %s, %s", h.Step, h.Owner, text))
		}
		if m.AttemptN > 1 {
			t.field("attempts", fmt.Sprint(m.AttemptN))
		}
		for _, id := range m.Avoid {
			t.field("failed on", names(id))
		}
		t.field("created", timeText(m.CreatedAt))
		if !m.DeletedAt.IsZero() {
			t.field("deletion", "asked for "+timeText(m.DeletedAt))
		}
		s.openOperation(t, m.Name)
	})
}

// openOperation shows what is being done for a machine; that it cannot be read hides nothing else.
func (s *session) openOperation(t *tableWriter, machine string) {
	open, err := s.c.Operations.Find(s.ctx, client.OperationQuery{Machine: machine, IsOpen: true, Limit: 1})
	if err != nil || len(open.Items) == 0 {
		return
	}
	o := open.Items[0]
	t.field("operation", fmt.Sprintf("%s, %s: %s %s", o.ID, o.Kind, o.Step, o.State))
	t.field("progress", progressText(&o))
}

func placementFields(t *tableWriter, p inventory.Placement) {
	t.field("on host", p.Host)
	t.field("not in pools", strings.Join(p.NotPools, ", "))
	t.field("selector", p.Selector)
	t.field("requires", requirementsText(p.Requirements))
	for _, w := range p.Preferred {
		t.field("prefers", fmt.Sprintf("%d:%s", w.Weight, w.Selector))
	}
	for _, x := range p.Tolerations {
		t.field("tolerates", taintText(inventory.Taint(x)))
	}
	domain := p.FailureDomain
	if p.IsDomainPreferred {
		domain += ", if possible"
	}
	t.field("failure domain", domain)
	t.field("reuse", strings.TrimSpace(string(p.Reuse)+" "+p.ReuseKey))
}

func diskFields(t *tableWriter, root inventory.DiskHint, keep []inventory.DiskHint) {
	if !root.IsZero() {
		t.field("root disk", root.String())
	}
	for _, d := range keep {
		t.field("keeps disk", d.String())
	}
}

func taintText(x inventory.Taint) string {
	switch {
	case x.Key == "":
		return "everything"
	case x.Value == "":
		return x.Key
	}
	return x.Key + "=" + x.Value
}

// requirementsText writes requirements as --require reads them.
func requirementsText(r inventory.HardwareRequirements) string {
	var parts []string
	add := func(key, value string, is bool) {
		if is {
			parts = append(parts, key+"="+value)
		}
	}
	add("cpu", fmt.Sprint(r.CPUThreads), r.CPUThreads > 0)
	add("memory", strings.ReplaceAll(hardware.Bytes(r.MemoryBytes), " ", ""), r.MemoryBytes > 0)
	add("disk", strings.ReplaceAll(hardware.Bytes(r.DiskBytes), " ", ""), r.DiskBytes > 0)
	add("disks", fmt.Sprint(r.Disks), r.Disks > 0)
	if r.IsRotational != nil {
		add("rotational", yesNo(*r.IsRotational), true)
	}
	add("port", fmt.Sprintf("%dM", r.PortMbps), r.PortMbps > 0)
	add("accelerator", r.AcceleratorID, r.AcceleratorID != "")
	add("accelerators", fmt.Sprint(r.Accelerators), r.Accelerators > 0)
	add("arch", string(r.Arch), r.Arch != "")
	add("firmware", r.Firmware, r.Firmware != "")
	add("expression", r.Expression, r.Expression != "")
	return strings.Join(parts, ",")
}

type machineEvents struct {
	Machine string `arg:""`
	Follow  bool   `short:"f" help:"Wait for more."`
}

// Run shows a machine's timeline.
func (c *machineEvents) Run(s *session) error {
	api, err := s.client()
	if err != nil {
		return err
	}
	m, err := api.Machines.Get(s.ctx, c.Machine)
	if err != nil {
		return err
	}
	v := newEventView(s, api)
	events, err := machineEventsOf(s, api, &m)
	if err != nil {
		return err
	}
	q := client.EventQuery{After: client.FromNow}
	for _, e := range events {
		if err := v.show(e); err != nil {
			return err
		}
		q.After = e.ID
	}
	if !c.Follow {
		return nil
	}
	for e, err := range api.Follow(s.ctx, q) {
		if err != nil {
			return err
		}
		if isAbout(e, &m) {
			if err := v.show(e); err != nil {
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
func machineEventsOf(s *session, api *client.Client, m *inventory.Machine) ([]inventory.Event, error) {
	found := map[int64]inventory.Event{}
	hosts := map[inventory.HostID]bool{m.HostID: true}
	collect := func(q client.EventQuery) error {
		for q.Limit = 1000; ; {
			page, err := api.Events(s.ctx, q)
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
		if err := collect(client.EventQuery{Kind: inventory.EventOperation, Host: string(id)}); err != nil && !isNotFound(err) {
			return nil, err
		}
	}
	var events []inventory.Event
	for _, id := range slices.Sorted(maps.Keys(found)) {
		events = append(events, found[id])
	}
	return events, nil
}
