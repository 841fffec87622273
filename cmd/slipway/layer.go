package main

import (
	"fmt"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
)

func layers(c *client.Client) client.Noun[inventory.Layer] { return c.Layers.Noun }

func layerConfigs(c *client.Client) client.Configs[inventory.Layer] { return c.Layers }

// layerCommand is slipway layer. A layer is named by its key: global, site/NAME, rack/NAME or host/NAME.
type layerCommand struct {
	List      layerList      `cmd:"" help:"List layers."`
	Show      layerShow      `cmd:"" help:"Show a layer's text."`
	Set       layerSet       `cmd:"" help:"Store a layer from a file; its hosts are rendered first."`
	Check     layerCheck     `cmd:"" help:"Say what a layer would do to its hosts, without storing it."`
	Delete    layerDelete    `cmd:"" help:"Delete layers."`
	Revisions layerRevisions `cmd:"" help:"List what a layer was, newest first."`
	Rollback  layerRollback  `cmd:"" help:"Make a layer what it was at a revision."`
}

type layerList struct{}

// Run lists layers.
func (*layerList) Run(s *session) error {
	return showList(s, layers, client.Query{}, 0, []string{"LAYER", "REVISION", "LINES", "CHANGED"}, func(l inventory.Layer) []string {
		return []string{l.Key(), fmt.Sprint(l.Revision), fmt.Sprint(strings.Count(l.Config, "\n")), timeText(l.UpdatedAt)}
	})
}

type layerShow struct {
	Layer string `arg:"" help:"global, site/NAME, rack/NAME or host/NAME."`
}

// Run shows a layer: its text alone, so that it can be saved.
func (c *layerShow) Run(s *session) error {
	api, err := s.client()
	if err != nil {
		return err
	}
	l, err := api.Layers.Get(s.ctx, c.Layer)
	if err != nil {
		return err
	}
	if s.globals.Output != "table" {
		return s.show(l, nil)
	}
	return writeText(s.out, l.Config)
}

type layerSet struct {
	Layer  string `arg:"" help:"global, site/NAME, rack/NAME or host/NAME."`
	File   string `arg:"" help:"File with its text in YAML; - is standard input."`
	DryRun bool   `help:"Only show what would change."`
}

// Run stores a layer.
func (c *layerSet) Run(s *session) error {
	api, err := s.client()
	if err != nil {
		return err
	}
	text, err := s.readText(c.File)
	if err != nil {
		return err
	}
	o := origins{"layer " + c.Layer: fileName(c.File)}
	if name, isHost := strings.CutPrefix(c.Layer, "host/"); isHost {
		o["host "+name] = fileName(c.File)
	}
	if c.DryRun {
		d, err := api.Layers.Preview(s.ctx, "PUT", c.Layer, layerBody(text))
		return s.previewConfig(d, err, o)
	}
	l, err := api.SetLayer(s.ctx, c.Layer, text)
	if err != nil {
		return s.inFiles(err, o)
	}
	return s.stored(l)
}

// layerBody is a layer without the key that the address says.
func layerBody(text string) map[string]string { return map[string]string{"config": text} }

type layerCheck struct {
	Layer string `arg:"" help:"global, site/NAME, rack/NAME or host/NAME."`
	File  string `arg:"" help:"File with its text in YAML; - is standard input."`
	Diff  bool   `help:"Show what differs in the documents of its hosts."`
}

// Run says what a layer would do.
func (c *layerCheck) Run(s *session) error {
	api, err := s.client()
	if err != nil {
		return err
	}
	text, err := s.readText(c.File)
	if err != nil {
		return err
	}
	i, err := api.CheckLayer(s.ctx, c.Layer, text)
	if err != nil {
		return err
	}
	return s.showImpact(i, origins{"layer " + c.Layer: fileName(c.File), "host " + strings.TrimPrefix(c.Layer, "host/"): fileName(c.File)}, c.Diff)
}

type layerDelete struct {
	Layers []string `arg:"" help:"global, site/NAME, rack/NAME or host/NAME."`
	DryRun bool     `help:"Only show what would be deleted."`
}

// Run deletes layers.
func (c *layerDelete) Run(s *session) error { return remove(s, layers, c.Layers, c.DryRun) }

type layerRevisions struct {
	Layer    string `arg:"" help:"global, site/NAME, rack/NAME or host/NAME."`
	Revision int    `arg:"" optional:"" help:"Show this one."`
}

// Run lists revisions.
func (c *layerRevisions) Run(s *session) error {
	return showRevisions(s, layerConfigs, c.Layer, c.Revision, func(l inventory.Layer) string { return l.Config })
}

type layerRollback struct {
	Layer    string `arg:"" help:"global, site/NAME, rack/NAME or host/NAME."`
	Revision int    `arg:"" help:"The revision to go back to."`
	DryRun   bool   `help:"Only show what would change."`
}

// Run goes back to a revision.
func (c *layerRollback) Run(s *session) error {
	return rollback(s, layerConfigs, c.Layer, c.Revision, c.DryRun)
}

// showRevisions lists revisions, or shows the text of one.
func showRevisions[T any](s *session, noun func(*client.Client) client.Configs[T], name string, number int, text func(T) string) error {
	api, err := s.client()
	if err != nil {
		return err
	}
	if number != 0 {
		r, err := noun(api).Revision(s.ctx, name, number)
		if err != nil {
			return err
		}
		if s.globals.Output != "table" {
			return s.show(r, nil)
		}
		return writeText(s.out, text(*r.Body))
	}
	all := []client.Revision[T]{}
	for q := (client.Query{Limit: 500}); ; {
		p, err := noun(api).Revisions(s.ctx, name, q)
		if err != nil {
			return err
		}
		all = append(all, p.Items...)
		if q.After = p.Next; p.Next == "" {
			break
		}
	}
	return s.show(all, func(t *tableWriter) {
		t.row("REVISION", "CREATED", "CHANGED")
		for _, r := range all {
			t.row(fmt.Sprint(r.N), timeText(r.CreatedAt), strings.Join(r.Changed, " "))
		}
	})
}

func rollback[T any](s *session, noun func(*client.Client) client.Configs[T], name string, number int, isDryRun bool) error {
	api, err := s.client()
	if err != nil {
		return err
	}
	if isDryRun {
		d, err := noun(api).PreviewRollback(s.ctx, name, number)
		return s.previewConfig(d, err, nil)
	}
	stored, err := noun(api).Rollback(s.ctx, name, number)
	if err != nil {
		return s.inFiles(err, nil)
	}
	return s.stored(stored)
}
