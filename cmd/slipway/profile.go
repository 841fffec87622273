package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
)

func profiles(c *client.Client) client.Noun[inventory.Profile] { return c.Profiles.Noun }

func profileConfigs(c *client.Client) client.Configs[inventory.Profile] { return c.Profiles }

type profileCommand struct {
	List   profileList   `cmd:"" help:"List profiles."`
	Show   profileShow   `cmd:"" help:"Show a profile."`
	Create profileCreate `cmd:"" help:"Add a profile."`
	Update profileUpdate `cmd:"" aliases:"set" help:"Change a profile; what is not given stays."`
	Delete profileDelete `cmd:"" help:"Delete profiles."`
	Hosts  profileHosts  `cmd:"" help:"List the hosts that a profile is for."`

	Check        profileCheck        `cmd:"" help:"Say what a change of a profile would do to its hosts, without storing it."`
	Revisions    profileRevisions    `cmd:"" help:"List what a profile was, newest first."`
	Diff         profileDiff         `cmd:"" help:"Compare two revisions of a profile."`
	Rollback     profileRollback     `cmd:"" help:"Make a profile what it was at a revision."`
	Capabilities profileCapabilities `cmd:"" help:"Show how well each format carries each part of a configuration."`
}

type profileList struct{}

// Run lists profiles.
func (*profileList) Run(s *session) error {
	return showList(s, profiles, client.Query{}, 0, []string{"NAME", "IMAGE", "SELECTOR", "PRIORITY", "ARGUMENTS", "REVISION", "EXTENDS"}, func(p inventory.Profile) []string {
		return []string{p.Name, p.Image, p.Selector, fmt.Sprint(p.Priority), strings.Join(p.KernelArgs, " "), fmt.Sprint(p.Revision), p.Extends}
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
		t.field("revision", fmt.Sprint(p.Revision))
		t.field("extends", p.Extends)
		t.field("format", p.Format)
		t.field("accepts", strings.Join(p.Accepts, " "))
		if p.Isolated {
			t.field("isolated", "secrets are given out without the guards of the boot network")
		}
		if p.Document != nil {
			t.field("document", string(p.Document.Format))
			for _, line := range lines(p.Document.Text) {
				t.text(line)
			}
		}
		if p.Config != "" {
			t.text("config")
			for _, line := range lines(p.Config) {
				t.text("  " + line)
			}
		}
	})
}

// profileFlags are what can be said of a profile; nil is not given.
type profileFlags struct {
	Selector *string           `help:"Hosts it is for, such as rack=r1,product=~R6.*" placeholder:"SELECTOR"`
	Priority *int              `help:"The highest wins where several match." placeholder:"N"`
	Arg      []string          `help:"Kernel argument after the image's own; repeat for more." placeholder:"ARG" sep:"none"`
	Set      map[string]string `help:"A parameter of the arguments, NAME=VALUE; on update, the given ones change." placeholder:"NAME=VALUE" mapsep:"none"`
	configFlags
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
	DryRun bool `help:"Only show what would change."`
}

// Run adds a profile.
func (c *profileCreate) Run(s *session) error {
	p := inventory.Profile{Name: c.Name, Image: c.Image}
	c.apply(&p)
	o, err := c.configure(s, &p)
	if err != nil {
		return err
	}
	return s.saveProfile("POST", "", p, c.DryRun, o)
}

type profileUpdate struct {
	Profile string  `arg:""`
	Image   *string `help:"Another image." placeholder:"NAME"`
	profileFlags
	DryRun bool `help:"Only show what would change."`
}

// Run changes a profile as it is stored now.
func (c *profileUpdate) Run(s *session) error {
	p, o, err := c.edited(s)
	if err != nil {
		return err
	}
	return s.saveProfile("PUT", c.Profile, p, c.DryRun, o, client.IfVersion(p.Version))
}

// edited is the profile as it is stored, with the changes.
func (c *profileUpdate) edited(s *session) (p inventory.Profile, o origins, err error) {
	api, err := s.client()
	if err != nil {
		return p, nil, err
	}
	if p, err = api.Profiles.Get(s.ctx, c.Profile); err != nil {
		return p, nil, err
	}
	set(&p.Image, c.Image)
	c.apply(&p)
	o, err = c.configure(s, &p)
	return p, o, err
}

// saveProfile stores a profile; findings are said with the lines of the user's own files.
func (s *session) saveProfile(method, name string, p inventory.Profile, isDryRun bool, o origins, opts ...client.Option) error {
	if isDryRun {
		api, err := s.client()
		if err != nil {
			return err
		}
		d, err := api.Profiles.Preview(s.ctx, method, name, p)
		return s.previewConfig(d, err, o)
	}
	return s.inFiles(write(s, profiles, method, name, p, false, opts...), o)
}

type profileCheck struct {
	Profile string  `arg:""`
	Image   *string `help:"Another image." placeholder:"NAME"`
	profileFlags
	Diff bool `help:"Show what differs in the documents of its hosts."`
}

// Run says what a change would do; without one, what is wrong with the profile as it is.
func (c *profileCheck) Run(s *session) error {
	p, o, err := (&profileUpdate{Profile: c.Profile, Image: c.Image, profileFlags: c.profileFlags}).edited(s)
	if err != nil {
		return err
	}
	api, err := s.client()
	if err != nil {
		return err
	}
	i, err := api.Profiles.Check(s.ctx, c.Profile, p)
	if err != nil {
		return s.inFiles(err, o)
	}
	return s.showImpact(i, o, c.Diff)
}

type profileRevisions struct {
	Profile  string `arg:""`
	Revision int    `arg:"" optional:"" help:"Show the configuration of this one; -o yaml shows all of it."`
}

// Run lists revisions.
func (c *profileRevisions) Run(s *session) error {
	return showRevisions(s, profileConfigs, c.Profile, c.Revision, func(p inventory.Profile) string { return p.Config })
}

type profileRollback struct {
	Profile  string `arg:""`
	Revision int    `arg:"" help:"The revision to go back to."`
	DryRun   bool   `help:"Only show what would change."`
}

// Run goes back to a revision.
func (c *profileRollback) Run(s *session) error {
	return rollback(s, profileConfigs, c.Profile, c.Revision, c.DryRun)
}

type profileDiff struct {
	Profile string `arg:""`
	From    int    `arg:"" help:"The earlier revision."`
	To      int    `arg:"" optional:"" help:"The later one; the newest when it is not said."`
}

// Run compares two revisions, field by field.
func (c *profileDiff) Run(s *session) error {
	api, err := s.client()
	if err != nil {
		return err
	}
	from, err := api.Profiles.Revision(s.ctx, c.Profile, c.From)
	if err != nil {
		return err
	}
	if c.To == 0 {
		newest, err := api.Profiles.Revisions(s.ctx, c.Profile, client.Query{Limit: 1})
		if err != nil {
			return err
		}
		c.To = newest.Items[0].N
	}
	to, err := api.Profiles.Revision(s.ctx, c.Profile, c.To)
	if err != nil {
		return err
	}
	if s.globals.Output != "table" {
		return s.show(map[string]any{"from": from, "to": to}, nil)
	}
	a, b := profileTexts(*from.Body), profileTexts(*to.Body)
	for i := range a {
		if a[i][1] == b[i][1] {
			continue
		}
		fmt.Fprintln(s.out, a[i][0]+":")
		for _, line := range lineDiff(a[i][1], b[i][1]) {
			fmt.Fprintln(s.out, plain(line))
		}
	}
	return nil
}

// profileTexts are the fields of a profile as texts, always in the same order.
func profileTexts(p inventory.Profile) [][2]string {
	var parameters []string
	for _, k := range slices.Sorted(maps.Keys(p.Parameters)) {
		parameters = append(parameters, k+"="+p.Parameters[k])
	}
	format, document := "", ""
	if p.Document != nil {
		format, document = string(p.Document.Format), p.Document.Text
	}
	return [][2]string{
		{"image", p.Image},
		{"selector", p.Selector},
		{"priority", fmt.Sprint(p.Priority)},
		{"arguments", strings.Join(p.KernelArgs, "\n")},
		{"parameters", strings.Join(parameters, "\n")},
		{"extends", p.Extends},
		{"format", p.Format},
		{"accepts", strings.Join(p.Accepts, "\n")},
		{"isolated", fmt.Sprint(p.Isolated)},
		{"document format", format},
		{"document", document},
		{"config", p.Config},
	}
}

type profileCapabilities struct {
	Image   string `help:"For this image." placeholder:"NAME" xor:"target"`
	OS      string `name:"os" help:"For this operating system of the catalogue." placeholder:"OS" xor:"target"`
	Release string `help:"And this release of it." placeholder:"RELEASE"`
	Notes   bool   `help:"Say how it is emulated, or what is lost and what to use instead."`
}

// Run shows the capability table.
func (c *profileCapabilities) Run(s *session) error {
	api, err := s.client()
	if err != nil {
		return err
	}
	k, err := api.Capabilities(s.ctx, c.Image, c.OS, c.Release)
	if err != nil {
		return err
	}
	return s.show(k, func(t *tableWriter) {
		isFor := c.Image != "" || c.OS != ""
		head := []string{"PART"}
		for _, f := range k.Formats {
			if f.IsRead || !isFor {
				head = append(head, strings.ToUpper(strings.TrimSpace(f.Format+" "+f.Tool)))
			}
		}
		t.row(head...)
		for _, row := range k.Fields {
			cells := []string{row.Path}
			var notes []string
			for _, f := range k.Formats {
				if !f.IsRead && isFor {
					continue
				}
				cell := f.Cells[row.Path]
				cells = append(cells, cell.Support)
				if cell.Note != "" {
					notes = append(notes, f.Format+": "+cell.Note)
				}
			}
			t.row(cells...)
			if c.Notes {
				for _, n := range notes {
					t.text("  " + n)
				}
			}
		}
	})
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
