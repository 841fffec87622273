package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
)

func profiles(c *client.Client) client.Noun[inventory.Profile] { return c.Profiles }

type profileCommand struct {
	List   profileList   `cmd:"" help:"List profiles."`
	Show   profileShow   `cmd:"" help:"Show a profile."`
	Create profileCreate `cmd:"" help:"Add a profile."`
	Update profileUpdate `cmd:"" help:"Change a profile; what is not given stays."`
	Delete profileDelete `cmd:"" help:"Delete profiles."`
	Hosts  profileHosts  `cmd:"" help:"List the hosts that a profile is for."`
}

type profileList struct{}

// Run lists profiles.
func (*profileList) Run(s *session) error {
	return showList(s, profiles, client.Query{}, 0, []string{"NAME", "IMAGE", "SELECTOR", "PRIORITY", "ARGUMENTS"}, func(p inventory.Profile) []string {
		return []string{p.Name, p.Image, p.Selector, fmt.Sprint(p.Priority), strings.Join(p.KernelArgs, " ")}
	})
}

type profileShow struct {
	Profile string `arg:""`
}

// Run shows a profile.
func (c *profileShow) Run(s *session) error {
	return showOne(s, profiles, c.Profile, func(t *tableWriter, p inventory.Profile) {
		t.field("name", p.Name)
		t.field("image", p.Image)
		t.field("selector", p.Selector)
		t.field("priority", fmt.Sprint(p.Priority))
		t.field("arguments", strings.Join(p.KernelArgs, " "))
		for _, k := range slices.Sorted(maps.Keys(p.Parameters)) {
			t.field("parameter", k+"="+p.Parameters[k])
		}
	})
}

// profileFlags are what can be said of a profile; nil is not given.
type profileFlags struct {
	Selector *string           `help:"Hosts it is for, such as rack=r1,product=~R6.*" placeholder:"SELECTOR"`
	Priority *int              `help:"The highest wins where several match." placeholder:"N"`
	Arg      []string          `help:"Kernel argument after the image's own; repeat for more." placeholder:"ARG" sep:"none"`
	Set      map[string]string `help:"A parameter of the arguments, NAME=VALUE; on update, the given ones change." placeholder:"NAME=VALUE" mapsep:"none"`
	DryRun   bool              `help:"Only show what would change."`
}

func (f *profileFlags) apply(p *inventory.Profile) {
	set(&p.Selector, f.Selector)
	set(&p.Priority, f.Priority)
	if f.Arg != nil {
		p.KernelArgs = slices.DeleteFunc(f.Arg, func(a string) bool { return a == "" })
	}
	for k, v := range f.Set {
		if p.Parameters == nil {
			p.Parameters = map[string]string{}
		}
		p.Parameters[k] = v
	}
}

type profileCreate struct {
	Name  string `arg:"" help:"Its name, a DNS label."`
	Image string `required:"" help:"Image that its hosts boot." placeholder:"NAME"`
	profileFlags
}

// Run adds a profile.
func (c *profileCreate) Run(s *session) error {
	p := inventory.Profile{Name: c.Name, Image: c.Image}
	c.apply(&p)
	return write(s, profiles, "POST", "", p, c.DryRun)
}

type profileUpdate struct {
	Profile string  `arg:""`
	Image   *string `help:"Another image." placeholder:"NAME"`
	profileFlags
}

// Run changes a profile as it is stored now.
func (c *profileUpdate) Run(s *session) error {
	api, err := s.client()
	if err != nil {
		return err
	}
	p, err := api.Profiles.Get(s.ctx, c.Profile)
	if err != nil {
		return err
	}
	set(&p.Image, c.Image)
	c.apply(&p)
	return write(s, profiles, "PUT", c.Profile, p, c.DryRun, client.IfVersion(p.Version))
}

type profileDelete struct {
	Profiles []string `arg:""`
	DryRun   bool     `help:"Only show what would be deleted."`
}

// Run deletes profiles.
func (c *profileDelete) Run(s *session) error { return remove(s, profiles, c.Profiles, c.DryRun) }

type profileHosts struct {
	Profile string `arg:""`
}

// Run lists the hosts of a profile.
func (c *profileHosts) Run(s *session) error {
	api, err := s.client()
	if err != nil {
		return err
	}
	names, err := api.ProfileHosts(s.ctx, c.Profile)
	if err != nil {
		return err
	}
	return s.show(names.Items, func(t *tableWriter) {
		for _, n := range names.Items {
			t.row(n)
		}
	})
}
