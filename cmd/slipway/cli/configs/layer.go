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

// LayerCommand is slipway layer. A layer is named by its key: global, site/NAME, rack/NAME or host/NAME.
type LayerCommand struct {
	List      nouns.List[layer, inventory.Layer] `cmd:"" help:"List layers."`
	Show      layerShow                          `cmd:"" help:"Show a layer's text."`
	Set       layerSet                           `cmd:"" help:"Store a layer from a file; its hosts are rendered first."`
	Check     layerCheck                         `cmd:"" help:"Say what a layer would do to its hosts, without storing it."`
	Delete    layerDelete                        `cmd:"" help:"Delete layers."`
	Revisions layerRevisions                     `cmd:"" help:"List what a layer was, newest first."`
	Rollback  layerRollback                      `cmd:"" help:"Make a layer what it was at a revision."`
}

// layer is how people read a layer in a list.
type layer struct{ nouns.Plain[inventory.Layer] }

// Fields implements nouns.Noun.
func (layer) Fields(f *nouns.Fields, l inventory.Layer) {
	f.Listed("layer", l.Key())
	f.Listed("revision", fmt.Sprint(l.Revision))
	f.Listed("lines", fmt.Sprint(strings.Count(l.Config, "\n")))
	f.Listed("changed", cli.TimeText(l.UpdatedAt))
}

type layerShow struct {
	Layer string `arg:"" help:"global, site/NAME, rack/NAME or host/NAME."`
}

// Run shows a layer: its text alone, so that it can be saved.
func (c *layerShow) Run(s *cli.Session, api *client.Client) error {
	l, err := api.Layers.Get(s.Ctx, c.Layer)
	if err != nil {
		return err
	}
	if s.Globals.Output != "table" {
		return s.Show(l, nil)
	}
	return cli.WriteText(s.Out, l.Config)
}

type layerSet struct {
	Layer  string `arg:"" help:"global, site/NAME, rack/NAME or host/NAME."`
	File   string `arg:"" help:"File with its text in YAML; - is standard input."`
	DryRun bool   `help:"Only show what would change."`
}

// Run stores a layer.
func (c *layerSet) Run(s *cli.Session, api *client.Client) error {
	text, err := s.ReadText(c.File)
	if err != nil {
		return err
	}
	o := origins{"layer " + c.Layer: cli.FileName(c.File)}
	if name, isHost := strings.CutPrefix(c.Layer, "host/"); isHost {
		o["host "+name] = cli.FileName(c.File)
	}
	if c.DryRun {
		d, err := api.Layers.Preview(s.Ctx, "PUT", c.Layer, layerBody(text))
		return previewConfig(s, d, err, o)
	}
	l, err := api.SetLayer(s.Ctx, c.Layer, text)
	if err != nil {
		return InFiles(s, err, o)
	}
	return s.Stored(l, nil)
}

// layerBody is a layer without the key that the address says.
func layerBody(text string) map[string]string { return map[string]string{"config": text} }

type layerCheck struct {
	Layer string `arg:"" help:"global, site/NAME, rack/NAME or host/NAME."`
	File  string `arg:"" help:"File with its text in YAML; - is standard input."`
	Diff  bool   `help:"Show what differs in the documents of its hosts."`
}

// Run says what a layer would do.
func (c *layerCheck) Run(s *cli.Session, api *client.Client) error {
	text, err := s.ReadText(c.File)
	if err != nil {
		return err
	}
	i, err := api.CheckLayer(s.Ctx, c.Layer, text)
	if err != nil {
		return err
	}
	return showImpact(s, i, origins{"layer " + c.Layer: cli.FileName(c.File), "host " + strings.TrimPrefix(c.Layer, "host/"): cli.FileName(c.File)}, c.Diff)
}

type layerDelete struct {
	Layers []string `arg:"" help:"global, site/NAME, rack/NAME or host/NAME."`
	DryRun bool     `help:"Only show what would be deleted."`
}

// Run deletes layers.
func (c *layerDelete) Run(s *cli.Session) error {
	return cli.Remove(s, layer{}.Calls, c.Layers, c.DryRun)
}

type layerRevisions struct {
	Layer    string `arg:"" help:"global, site/NAME, rack/NAME or host/NAME."`
	Revision int    `arg:"" optional:"" help:"Show this one."`
}

// Run lists revisions.
func (c *layerRevisions) Run(s *cli.Session, api *client.Client) error {
	return showRevisions(s, api.Layers.Revisions(c.Layer), c.Revision, func(l inventory.Layer) string { return l.Config })
}

type layerRollback struct {
	Layer    string `arg:"" help:"global, site/NAME, rack/NAME or host/NAME."`
	Revision int    `arg:"" help:"The revision to go back to."`
	DryRun   bool   `help:"Only show what would change."`
}

// Run goes back to a revision.
func (c *layerRollback) Run(s *cli.Session, api *client.Client) error {
	return rollback(s, api.Layers, c.Layer, c.Revision, c.DryRun)
}

// showRevisions lists revisions, or shows the text of one.
func showRevisions[T any](s *cli.Session, revisions client.Noun[wire.Revision[T]], number int, text func(T) string) error {
	if number == 0 {
		all := func(*client.Client) client.Noun[wire.Revision[T]] { return revisions }
		return cli.ShowList(s, all, client.Query{}, 0, []string{"REVISION", "CREATED", "CHANGED"}, func(r wire.Revision[T]) []string {
			return []string{fmt.Sprint(r.N), cli.TimeText(r.CreatedAt), strings.Join(r.Changed, " ")}
		})
	}
	r, err := revisions.Get(s.Ctx, fmt.Sprint(number))
	if err != nil {
		return err
	}
	if s.Globals.Output != "table" {
		return s.Show(r, nil)
	}
	return cli.WriteText(s.Out, text(*r.Body))
}

func rollback[T any](s *cli.Session, noun client.Configs[T], name string, number int, isDryRun bool) error {
	if isDryRun {
		d, err := noun.PreviewRollback(s.Ctx, name, number)
		return previewConfig(s, d, err, nil)
	}
	stored, err := noun.Rollback(s.Ctx, name, number)
	if err != nil {
		return InFiles(s, err, nil)
	}
	return s.Stored(stored, nil)
}
