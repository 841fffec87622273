package machines

import (
	"strconv"
	"strings"

	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
)

func machines(c *client.Client) client.Noun[inventory.Machine] { return c.Machines.Noun }

// wantFlags are what can be said of a machine; nil is not given, an empty text takes away what there is.
type wantFlags struct {
	Revision      *int              `help:"Revision of the profile; 0 takes the newest when it is installed." placeholder:"N"`
	Pool          *string           `help:"Pool that its host is taken from." placeholder:"POOL"`
	Host          *string           `help:"Exactly this host." placeholder:"HOST"`
	Selector      *string           `short:"l" help:"Terms that its host must match, such as rack=r1,product=~R6.*" placeholder:"SELECTOR"`
	Require       []string          `help:"Hardware that its host must have: cpu=16,memory=64G,disk=1T,disks=2,port=25G,arch=x86_64, or expression=CEL; repeat for more." placeholder:"KEY=VALUE" sep:"none"`
	FailureDomain *string           `help:"Required site, row or rack of its host; with prefer: before it, preferred." placeholder:"DOMAIN"`
	Prefer        []string          `help:"Hosts that are better: WEIGHT:SELECTOR, such as 50:rack=r1; repeat for more." placeholder:"WEIGHT:SELECTOR" sep:"none"`
	Tolerate      []string          `help:"Taint that its host may have: KEY=VALUE or KEY, or all; repeat for more." placeholder:"TAINT" sep:"none"`
	Reuse         *string           `help:"Whether it takes the host that an earlier machine of its name had: any, prefer-same or require-same." placeholder:"WAY"`
	Hostname      *string           `help:"Name of its system; its own name without this." placeholder:"NAME"`
	Set           map[string]string `help:"Parameter, added to those of the profile; repeat for more." placeholder:"NAME=VALUE" mapsep:"none"`
	cli.RootFlags
	KeepDisk     []string `help:"Disk that is never wiped, such as serial=S4XY; repeat for more, none for none." placeholder:"DISK" sep:"none"`
	Hook         []string `help:"Step that waits until its owner acknowledges it, such as pre-fence:storage; repeat for more." placeholder:"STEP:OWNER" sep:"none"`
	Clean        *string  `help:"How its disks are wiped when it goes: none, quick, full or secure; the pool says without this." placeholder:"MODE"`
	ReleaseAfter *string  `help:"When it is gone: fenced (its host is wiped behind it) or cleaned." placeholder:"WHEN"`
}

// apply lays the flags over a machine.
func (f *wantFlags) apply(m *inventory.Machine) error {
	cli.Set(&m.ProfileRevision, f.Revision)
	cli.Set(&m.Pool, f.Pool)
	cli.Set(&m.Hostname, f.Hostname)
	cli.Set(&m.Clean, (*inventory.CleanMode)(f.Clean))
	cli.Set(&m.ReleaseAfter, (*inventory.ReleaseAfter)(f.ReleaseAfter))
	for k, v := range f.Set {
		if m.Parameters == nil {
			m.Parameters = map[string]string{}
		}
		m.Parameters[k] = v
	}
	if err := f.RootFlags.Apply(&m.RootDisk); err != nil {
		return err
	}
	if f.KeepDisk != nil {
		disks, err := cli.ParseDisks("--keep-disk", f.KeepDisk)
		if err != nil {
			return err
		}
		m.KeepDisks = disks
	}
	if f.Hook != nil {
		m.Hooks = nil
	}
	for _, text := range f.Hook {
		step, owner, ok := strings.Cut(text, ":")
		if !ok || owner == "" {
			return cli.Usage("write it as pre-fence:storage", "--hook %q is not STEP:OWNER", text)
		}
		m.Hooks = append(m.Hooks, inventory.Hook{Step: inventory.HookStep(step), Owner: owner})
	}
	return f.applyPlacement(&m.Placement)
}

func (f *wantFlags) applyPlacement(p *inventory.Placement) error {
	cli.Set(&p.Host, f.Host)
	cli.Set(&p.Selector, f.Selector)
	cli.Set(&p.Reuse, (*inventory.Reuse)(f.Reuse))
	if f.FailureDomain != nil {
		p.FailureDomain, p.IsDomainPreferred = strings.CutPrefix(*f.FailureDomain, "prefer:")
	}
	if f.Prefer != nil {
		p.Preferred = nil
	}
	for _, text := range f.Prefer {
		number, selector, ok := strings.Cut(text, ":")
		weight, err := strconv.Atoi(number)
		if !ok || err != nil || selector == "" {
			return cli.Usage("write it as 50:rack=r1, with a weight from 1 to 100", "--prefer %q is not WEIGHT:SELECTOR", text)
		}
		p.Preferred = append(p.Preferred, inventory.Preference{Weight: weight, Selector: selector})
	}
	if f.Tolerate != nil {
		p.Tolerations = nil
	}
	for _, text := range f.Tolerate {
		key, value, _ := strings.Cut(text, "=")
		switch {
		case text == "all":
			key = ""
		case key == "":
			return cli.Usage("write KEY=VALUE or KEY, or all for every taint", "--tolerate %q has no key", text)
		}
		p.Tolerations = append(p.Tolerations, inventory.Toleration{Key: key, Value: value})
	}
	return cli.ParseRequirements(&p.Requirements, f.Require)
}

type machineCreate struct {
	Name    string `arg:"" help:"Its name, a DNS label."`
	Profile string `required:"" help:"Profile that it is made of." placeholder:"NAME"`
	wantFlags
	Wait   cli.WaitFlag `help:"Show each step until it runs; --wait=30m waits no longer than that."`
	DryRun bool         `help:"Only check everything."`
}

// Run creates a machine.
func (c *machineCreate) Run(s *cli.Session, api *client.Client) error {
	m := inventory.Machine{Name: c.Name, Profile: c.Profile}
	if err := c.apply(&m); err != nil {
		return err
	}
	if c.DryRun {
		return cli.Write(s, machines, "POST", "", m, true)
	}
	return lifeOf(s, c.Wait, "", func() (inventory.Machine, error) { return api.Machines.Create(s.Ctx, m) })
}

// lifeOf begins something with a machine, and follows it where that is asked for. gone is the name of a machine that
// ends by it, else "".
func lifeOf(s *cli.Session, wait cli.WaitFlag, gone string, begin func() (inventory.Machine, error)) error {
	f, m, err := cli.Begun(s, wait, begin)
	if err != nil {
		return err
	}
	if f != nil && m.Name != "" {
		if m, err = s.WaitMachine(f, m, wait, gone != ""); err != nil {
			return err
		}
	}
	switch {
	case gone != "":
		if f != nil || m.Name == "" {
			s.Say("machine %s is gone", gone)
		}
		return nil
	case f != nil:
		s.Say("machine %s runs on %s", m.Name, s.HostNames()(m.HostID))
	}
	return s.Stored(m, nil)
}

type machineSet struct {
	Machine string  `arg:""`
	Profile *string `help:"Profile of its next installation." placeholder:"NAME"`
	wantFlags
	DryRun bool `help:"Only show what would change."`
}

// Run changes a machine as it is stored now.
func (c *machineSet) Run(s *cli.Session, api *client.Client) error {
	m, err := api.Machines.Get(s.Ctx, c.Machine)
	if err != nil {
		return err
	}
	if c.Profile != nil && *c.Profile != m.Profile {
		m.Profile, m.ProfileRevision = *c.Profile, 0
	}
	if err := c.apply(&m); err != nil {
		return err
	}
	return cli.Write(s, machines, "PUT", c.Machine, m, c.DryRun, client.IfVersion(m.Version))
}

type machineDelete struct {
	Machines []string     `arg:""`
	Force    bool         `help:"Neither fence nor wipe: Slipway quarantines the host, and its old system may still run."`
	Wait     cli.WaitFlag `help:"Show each step until it is gone; --wait=30m waits no longer than that."`
	DryRun   bool         `help:"Only show what would be deleted."`
}

// Run deletes machines.
func (c *machineDelete) Run(s *cli.Session) error {
	if c.DryRun {
		verb := map[bool]string{false: "delete", true: "force"}[c.Force]
		return s.Each(c.Machines, func(api *client.Client, name string) error {
			does, err := api.Machines.Foresee(s.Ctx, name, verb)
			if err == nil {
				s.Say("%s would be deleted%s", name, cli.ToldThat(does))
			}
			return err
		})
	}
	return s.Each(c.Machines, func(api *client.Client, name string) error {
		return lifeOf(s, c.Wait, name, func() (inventory.Machine, error) {
			m, _, err := api.Machines.Remove(s.Ctx, name, c.Force)
			return m, err
		})
	})
}

type machineReinstall struct {
	Machines []string     `arg:""`
	Wait     cli.WaitFlag `help:"Show each step until it runs; --wait=30m waits no longer than that."`
	DryRun   bool         `help:"Only show what would happen."`
}

// Run installs machines again.
func (c *machineReinstall) Run(s *cli.Session) error {
	return s.Each(c.Machines, func(api *client.Client, name string) error {
		if c.DryRun {
			does, err := api.Machines.Foresee(s.Ctx, name, "reinstall")
			if err == nil {
				s.Say("%s would be reinstalled%s", name, cli.ToldThat(does))
			}
			return err
		}
		return lifeOf(s, c.Wait, "", func() (inventory.Machine, error) { return api.Machines.Reinstall(s.Ctx, name) })
	})
}

type machineRetry struct {
	Machines []string     `arg:""`
	Wait     cli.WaitFlag `help:"Show each step until it runs; --wait=30m waits no longer than that."`
}

// Run lets machines try again.
func (c *machineRetry) Run(s *cli.Session) error {
	return s.Each(c.Machines, func(api *client.Client, name string) error {
		return lifeOf(s, c.Wait, "", func() (inventory.Machine, error) { return api.Machines.Retry(s.Ctx, name) })
	})
}

type machineRemediate struct {
	Machine string       `arg:""`
	Step    []string     `help:"Only this step of power-cycle, reinstall and replace; repeat for more, in the order in which they are tried." placeholder:"STEP"`
	Wait    cli.WaitFlag `help:"Show each step until it runs; --wait=30m waits no longer than that."`
}

// Run gets a machine going again.
func (c *machineRemediate) Run(s *cli.Session, api *client.Client) error {
	return lifeOf(s, c.Wait, "", func() (inventory.Machine, error) {
		return api.Machines.Remediate(s.Ctx, c.Machine, c.Step...)
	})
}

type machineAck struct {
	Machine string `arg:""`
	Step    string `arg:"" enum:"pre-claim,pre-boot,post-join,pre-drain,pre-fence,pre-clean,pre-release" help:"pre-claim, pre-boot, post-join, pre-drain, pre-fence, pre-clean or pre-release."`
	Owner   string `arg:"" help:"Who acknowledges."`
}

// Run acknowledges a hook.
func (c *machineAck) Run(s *cli.Session, api *client.Client) error {
	return s.Stored(api.Machines.Ack(s.Ctx, c.Machine, inventory.HookStep(c.Step), c.Owner))
}

type machineHold struct {
	Machine string `arg:""`
	Step    string `arg:"" enum:"pre-claim,pre-boot,post-join,pre-drain,pre-fence,pre-clean,pre-release" help:"pre-claim, pre-boot, post-join, pre-drain, pre-fence, pre-clean or pre-release."`
	Owner   string `arg:"" help:"Who acknowledges."`
	Reason  string `arg:"" help:"Why it is not acknowledged yet."`
}

// Run says why a hook is not acknowledged yet.
func (c *machineHold) Run(s *cli.Session, api *client.Client) error {
	return s.Stored(api.Machines.Hold(s.Ctx, c.Machine, inventory.HookStep(c.Step), c.Owner, c.Reason))
}

type machineAdopt struct {
	Name    string `arg:"" help:"Its name, a DNS label."`
	Host    string `required:"" help:"The adopted host that it runs on." placeholder:"HOST"`
	Profile string `required:"" help:"Profile that it would be made of." placeholder:"NAME"`
	Pool    string `help:"Pool that it counts in." placeholder:"POOL"`
}

// Run makes a machine of a server that runs already.
func (c *machineAdopt) Run(s *cli.Session, api *client.Client) error {
	return s.Stored(api.Machines.Adopt(s.Ctx, inventory.Machine{Name: c.Name, Profile: c.Profile, Pool: c.Pool}, c.Host))
}
