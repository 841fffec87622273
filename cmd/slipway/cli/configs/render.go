package configs

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/configuration"
	"slipway.dev/slipway/web/client"
)

// RenderCommand is slipway render.
type RenderCommand struct {
	Host     string  `arg:""`
	Document string  `help:"Only this document." placeholder:"NAME"`
	Profile  string  `help:"File with a profile that is not stored, as profile show -o yaml writes one." placeholder:"FILE" xor:"draft"`
	Config   *string `help:"File with another configuration for the profile that the host has." placeholder:"FILE" xor:"draft"`
}

// Run shows what a host would be given to become.
func (c *RenderCommand) Run(s *cli.Session, api *client.Client) error {
	p, o, err := c.preview(s, api)
	if err != nil {
		return InFiles(s, err, o)
	}
	if s.Globals.Output != "table" {
		err = s.Show(p, nil)
	} else {
		findingLines(s.Err, p.Findings, o)
		err = c.print(s, p)
	}
	if err == nil && p.Findings.HasErrors() {
		err = cli.ErrSaid
	}
	return err
}

// preview asks for what is stored, or for a draft.
func (c *RenderCommand) preview(s *cli.Session, api *client.Client) (p configuration.Preview, o origins, err error) {
	if c.Profile == "" && c.Config == nil {
		p, err = api.Hosts.Render(s.Ctx, c.Host)
		return p, nil, err
	}
	var draft inventory.Profile
	if c.Profile != "" {
		if draft, err = readProfile(s, c.Profile); err != nil {
			return p, nil, err
		}
	}
	if c.Config != nil || draft.Image == "" {
		if p, err = api.Hosts.Render(s.Ctx, c.Host); err != nil {
			return p, nil, err
		}
		draft.Image = cmp.Or(draft.Image, p.Image)
	}
	if c.Config == nil {
		p, err = api.Hosts.RenderDraft(s.Ctx, c.Host, draft)
		return p, origins{"document": c.Profile + " (document)"}, err
	}
	if draft, err = api.Profiles.Get(s.Ctx, p.Profile); err != nil {
		return p, nil, err
	}
	flags := configFlags{Config: c.Config}
	if o, err = flags.configure(s, &draft); err != nil {
		return p, nil, err
	}
	p, err = api.Hosts.RenderDraft(s.Ctx, c.Host, draft)
	return p, o, err
}

// readProfile reads a profile from a file.
func readProfile(s *cli.Session, path string) (p inventory.Profile, err error) {
	text, err := s.ReadText(path)
	if err != nil {
		return p, err
	}
	var v struct {
		Name       string            `yaml:"name"`
		Image      string            `yaml:"image"`
		Selector   string            `yaml:"selector"`
		Priority   int               `yaml:"priority"`
		KernelArgs []string          `yaml:"kernelArgs"`
		Parameters map[string]string `yaml:"parameters"`
		Extends    string            `yaml:"extends"`
		Config     string            `yaml:"config"`
		Format     string            `yaml:"format"`
		Accepts    []string          `yaml:"accepts"`
		Isolated   bool              `yaml:"isolated"`
		Document   *struct {
			Format inventory.DocumentFormat `yaml:"format"`
			Text   string                   `yaml:"text"`
		} `yaml:"document"`
		// What profile show writes besides.
		Revision, Version    int64  `yaml:",omitempty"`
		CreatedAt, UpdatedAt string `yaml:",omitempty"`
		Created              string `yaml:"createdAt"`
		Updated              string `yaml:"updatedAt"`
	}
	in := yaml.NewDecoder(strings.NewReader(text))
	in.KnownFields(true)
	if err := in.Decode(&v); err != nil {
		return p, inventory.Errorf(inventory.Invalid, "%s is not a profile: %s", cli.FileName(path), strings.TrimPrefix(err.Error(), "yaml: ")).
			WithHint("slipway profile show NAME -o yaml writes one; its configuration is a text under config: |")
	}
	p = inventory.Profile{
		Name: v.Name, Image: v.Image, Selector: v.Selector, Priority: v.Priority, KernelArgs: v.KernelArgs, Parameters: v.Parameters,
		Extends: v.Extends, Config: v.Config, Format: v.Format, Accepts: v.Accepts, Isolated: v.Isolated,
	}
	if v.Document != nil {
		p.Document = &inventory.Document{Format: v.Document.Format, Text: v.Document.Text}
	}
	return p, nil
}

// print writes one document as it is, or all with headings.
func (c *RenderCommand) print(s *cli.Session, p configuration.Preview) error {
	var names []string
	for _, d := range p.Documents {
		if c.Document == "" || c.Document == d.Name {
			if c.Document == "" && len(p.Documents) > 1 {
				fmt.Fprintf(s.Out, "==> %s <==\n", cli.Plain(d.Name))
			}
			if err := cli.WriteText(s.Out, d.Text); err != nil {
				return err
			}
		}
		names = append(names, d.Name)
	}
	switch {
	case c.Document != "" && !slices.Contains(names, c.Document):
		return inventory.Errorf(inventory.NotFound, "host %s is given no document %s", p.Host, c.Document).WithHint("it is given: %s", cli.OrNothing(names))
	case len(names) == 0 && !p.Findings.HasErrors():
		s.Say("host %s is given nothing: neither its profile nor a layer says anything", p.Host)
	case c.Document == "" && len(p.Args) > 0:
		s.Say("kernel arguments besides the image's: %s", strings.Join(p.Args, " "))
	}
	return nil
}

// DiffCommand is slipway diff.
type DiffCommand struct {
	Host string `arg:""`
}

// Run shows what differs from what the host was given last.
func (c *DiffCommand) Run(s *cli.Session, api *client.Client) error {
	p, err := api.Hosts.Render(s.Ctx, c.Host)
	if err != nil {
		return err
	}
	if s.Globals.Output != "table" {
		return s.Show(map[string]any{"host": p.Host, "since": p.Since, "digest": p.Digest, "diff": p.Diff}, nil)
	}
	findingLines(s.Err, p.Findings, nil)
	switch {
	case p.Findings.HasErrors():
		return cli.ErrSaid
	case p.Since == "":
		s.Say("host %s was given nothing yet", p.Host)
	case p.Diff == "":
		s.Say("host %s would be given what it was given last", p.Host)
	}
	if p.Diff == "" {
		return nil
	}
	return cli.WriteText(s.Out, p.Diff)
}

// ExplainCommand is slipway explain.
type ExplainCommand struct {
	Host string `arg:""`
	Path string `arg:"" optional:"" help:"Only values below this path, such as /files."`
}

// Run says where each value of a host's configuration comes from.
func (c *ExplainCommand) Run(s *cli.Session, api *client.Client) error {
	p, err := api.Hosts.Render(s.Ctx, c.Host)
	if err != nil {
		return err
	}
	for path := range p.Provenance {
		if !strings.HasPrefix(path, c.Path) {
			delete(p.Provenance, path)
		}
	}
	p.Documents = []inventory.RenderedDocument{}
	return s.Show(p, func(t *cli.TableWriter) {
		t.Field("profile", strings.TrimSpace(fmt.Sprintf("%s, revision %d", p.Profile, p.Revision)))
		t.Field("image", strings.TrimSpace(fmt.Sprintf("%s (%s %s)", p.Image, p.OS, p.Release)))
		t.Field("format", strings.TrimSpace(p.Format+" "+p.Tool))
		for _, r := range p.References {
			t.Field("needs", r)
		}
		for _, path := range slices.Sorted(maps.Keys(p.Provenance)) {
			t.Row(path, p.Provenance[path])
		}
		for _, f := range p.Findings {
			t.Row(string(f.Severity), strings.TrimSpace(f.Path+" "+f.Message))
		}
	})
}
