package configs

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/cmd/slipway/cli/nouns"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
	"slipway.dev/slipway/web/wire"
)

// ProfileCommand is slipway profile.
type ProfileCommand struct {
	List   nouns.List[profile, inventory.Profile]   `cmd:"" help:"List profiles."`
	Show   nouns.Show[profile, inventory.Profile]   `cmd:"" help:"Show a profile."`
	Create profileCreate                            `cmd:"" help:"Add a profile."`
	Update profileUpdate                            `cmd:"" aliases:"set" help:"Change a profile; other settings stay."`
	Delete nouns.Delete[profile, inventory.Profile] `cmd:"" help:"Delete profiles."`
	Hosts  profileHosts                             `cmd:"" help:"List the hosts that a profile is for."`

	Check        profileCheck        `cmd:"" help:"Say what a change of a profile would do to its hosts, without storing it."`
	Revisions    profileRevisions    `cmd:"" help:"List what a profile was, newest first."`
	Diff         profileDiff         `cmd:"" help:"Compare two revisions of a profile."`
	Rollback     profileRollback     `cmd:"" help:"Make a profile what it was at a revision."`
	Capabilities profileCapabilities `cmd:"" help:"Show how well each format carries each part of a configuration."`
}

// profile is how people read a profile.
type profile struct{ nouns.Plain[inventory.Profile] }

// Fields implements nouns.Noun.
func (profile) Fields(f *nouns.Fields, p inventory.Profile) {
	f.Both("name", p.Name)
	f.Both("image", p.Image)
	f.Both("selector", p.Selector)
	f.Both("priority", fmt.Sprint(p.Priority))
	f.Both("arguments", strings.Join(p.KernelArgs, " "))
	f.Shown("parameter", parameterTexts(p)...)
	f.Both("revision", fmt.Sprint(p.Revision))
	f.Both("extends", p.Extends)
	f.Shown("format", p.Format)
	f.Shown("accepts", strings.Join(p.Accepts, " "))
	if p.Isolated {
		f.Shown("isolated", "secrets are given out without the guards of the boot network")
	}
	if p.Document != nil {
		f.Shown("document", string(p.Document.Format))
		f.Texts(cli.Lines(p.Document.Text)...)
	}
	if p.Config != "" {
		f.Texts("config")
		for _, line := range cli.Lines(p.Config) {
			f.Texts("  " + line)
		}
	}
}

// parameterTexts writes the parameters of a profile as the flag takes them.
func parameterTexts(p inventory.Profile) (out []string) {
	for _, k := range slices.Sorted(maps.Keys(p.Parameters)) {
		out = append(out, k+"="+p.Parameters[k])
	}
	return out
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
	cli.Set(&p.Selector, f.Selector)
	cli.Set(&p.Priority, f.Priority)
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
func (c *profileCreate) Run(s *cli.Session, api *client.Client) error {
	p := inventory.Profile{Name: c.Name, Image: c.Image}
	c.apply(&p)
	o, err := c.configure(s, &p)
	if err != nil {
		return err
	}
	return saveProfile(s, api, "POST", "", p, c.DryRun, o)
}

type profileUpdate struct {
	Profile string  `arg:""`
	Image   *string `help:"Another image." placeholder:"NAME"`
	profileFlags
	DryRun bool `help:"Only show what would change."`
}

// Run changes a profile as it is stored now.
func (c *profileUpdate) Run(s *cli.Session, api *client.Client) error {
	p, o, err := c.edited(s, api)
	if err != nil {
		return err
	}
	return saveProfile(s, api, "PUT", c.Profile, p, c.DryRun, o, client.IfVersion(p.Version))
}

// edited is the profile as it is stored, with the changes.
func (c *profileUpdate) edited(s *cli.Session, api *client.Client) (p inventory.Profile, o origins, err error) {
	if p, err = api.Profiles.Get(s.Ctx, c.Profile); err != nil {
		return p, nil, err
	}
	cli.Set(&p.Image, c.Image)
	c.apply(&p)
	o, err = c.configure(s, &p)
	return p, o, err
}

// saveProfile stores a profile; findings are said with the lines of the user's own files.
func saveProfile(s *cli.Session, api *client.Client, method, name string, p inventory.Profile, isDryRun bool, o origins, opts ...client.Option) error {
	if isDryRun {
		d, err := api.Profiles.Preview(s.Ctx, method, name, p)
		return previewConfig(s, d, err, o)
	}
	return InFiles(s, cli.Write(s, profile{}.Calls, method, name, p, false, opts...), o)
}

type profileCheck struct {
	Profile string  `arg:""`
	Image   *string `help:"Another image." placeholder:"NAME"`
	profileFlags
	Diff bool `help:"Show what differs in the documents of its hosts."`
}

// Run says what a change would do; without one, what is wrong with the profile as it is.
func (c *profileCheck) Run(s *cli.Session, api *client.Client) error {
	p, o, err := (&profileUpdate{Profile: c.Profile, Image: c.Image, profileFlags: c.profileFlags}).edited(s, api)
	if err != nil {
		return err
	}
	i, err := api.Profiles.Check(s.Ctx, c.Profile, p)
	if err != nil {
		return InFiles(s, err, o)
	}
	return showImpact(s, i, o, c.Diff)
}

type profileRevisions struct {
	Profile  string `arg:""`
	Revision int    `arg:"" optional:"" help:"Show the configuration of this one; -o yaml shows all of it."`
}

// Run lists revisions.
func (c *profileRevisions) Run(s *cli.Session, api *client.Client) error {
	return showRevisions(s, api.Profiles.Revisions(c.Profile), c.Revision, func(p inventory.Profile) string { return p.Config })
}

type profileRollback struct {
	Profile  string `arg:""`
	Revision int    `arg:"" help:"The revision to go back to."`
	DryRun   bool   `help:"Only show what would change."`
}

// Run goes back to a revision.
func (c *profileRollback) Run(s *cli.Session, api *client.Client) error {
	return rollback(s, api.Profiles, c.Profile, c.Revision, c.DryRun)
}

type profileDiff struct {
	Profile string `arg:""`
	From    int    `arg:"" help:"The earlier revision."`
	To      int    `arg:"" optional:"" help:"The later one (default: the newest)."`
}

// Run compares two revisions, field by field.
func (c *profileDiff) Run(s *cli.Session, api *client.Client) error {
	revisions := api.Profiles.Revisions(c.Profile)
	from, err := revisions.Get(s.Ctx, fmt.Sprint(c.From))
	if err != nil {
		return err
	}
	if c.To == 0 {
		newest, err := revisions.List(s.Ctx, client.Query{Limit: 1})
		if err != nil {
			return err
		}
		c.To = newest.Items[0].N
	}
	to, err := revisions.Get(s.Ctx, fmt.Sprint(c.To))
	if err != nil {
		return err
	}
	if s.Globals.Output != "table" {
		return s.Show(map[string]any{"from": from, "to": to}, nil)
	}
	a, b := profileTexts(*from.Body), profileTexts(*to.Body)
	for i := range a {
		if a[i][1] == b[i][1] {
			continue
		}
		fmt.Fprintln(s.Out, a[i][0]+":")
		for _, line := range cli.LineDiff(a[i][1], b[i][1]) {
			fmt.Fprintln(s.Out, cli.Plain(line))
		}
	}
	return nil
}

// profileTexts are the fields of a profile as texts, always in the same order.
func profileTexts(p inventory.Profile) [][2]string {
	format, document := "", ""
	if p.Document != nil {
		format, document = string(p.Document.Format), p.Document.Text
	}
	return [][2]string{
		{"image", p.Image},
		{"selector", p.Selector},
		{"priority", fmt.Sprint(p.Priority)},
		{"arguments", strings.Join(p.KernelArgs, "\n")},
		{"parameters", strings.Join(parameterTexts(p), "\n")},
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
func (c *profileCapabilities) Run(s *cli.Session, api *client.Client) error {
	return cli.Answered(api.Capabilities(s.Ctx, c.Image, c.OS, c.Release)).Show(s, func(t *cli.TableWriter, k wire.CapabilityTable) {
		isFor := c.Image != "" || c.OS != ""
		head := []string{"PART"}
		for _, f := range k.Formats {
			if f.IsRead || !isFor {
				head = append(head, strings.ToUpper(strings.TrimSpace(f.Format+" "+f.Tool)))
			}
		}
		t.Row(head...)
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
			t.Row(cells...)
			if c.Notes {
				for _, n := range notes {
					t.Text("  " + n)
				}
			}
		}
	})
}

type profileHosts struct {
	Profile string `arg:""`
}

// Run lists the hosts of a profile.
func (c *profileHosts) Run(s *cli.Session, api *client.Client) error {
	return cli.Items(api.ProfileHosts(s.Ctx, c.Profile)).Show(s, func(t *cli.TableWriter, names []string) {
		for _, n := range names {
			t.Row(n)
		}
	})
}
