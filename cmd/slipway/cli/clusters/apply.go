package clusters

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/apply"
	"slipway.dev/slipway/kubernetes/backend"
	"slipway.dev/slipway/web/client"
)

// filesFlags say which objects are meant.
type filesFlags struct {
	Files     []string `short:"f" name:"file" required:"" help:"Files of objects, or directories of *.yaml; - is standard input." placeholder:"FILE"`
	Namespace string   `short:"n" help:"Of objects that name none." default:"default" placeholder:"NAME"`
	DryRun    bool     `help:"Only check, and show what would be done."`
}

// ApplyCommand is slipway apply.
type ApplyCommand struct{ filesFlags }

// Run applies files.
func (c *ApplyCommand) Run(s *cli.Session, api *client.Client) error {
	return c.each(s, api, (*apply.Applier).Apply)
}

// DeleteCommand is slipway delete.
type DeleteCommand struct{ filesFlags }

// Run deletes what files have asked for.
func (c *DeleteCommand) Run(s *cli.Session, api *client.Client) error {
	return c.each(s, api, (*apply.Applier).Delete)
}

// GetCommand is slipway get.
type GetCommand struct {
	Kind      string `arg:"" enum:"metalmachine,metalmachines,mm" help:"metalmachine (mm)."`
	Name      string `arg:"" optional:"" help:"Only this one."`
	Namespace string `short:"n" help:"Of the objects; all when it is left out and no name is given." placeholder:"NAME"`
}

// Run shows what was applied, with its status.
func (c *GetCommand) Run(s *cli.Session, api *client.Client) error {
	a, err := applier(s, api, true)
	if err != nil {
		return err
	}
	if c.Name != "" && c.Namespace == "" {
		c.Namespace = "default"
	}
	all, err := a.List(s.Ctx, c.Namespace, c.Name)
	if err != nil {
		return err
	}
	objects := make([]any, len(all))
	for i := range all {
		objects[i] = all[i].Object
	}
	var shown any = objects
	if c.Name != "" {
		shown = objects[0]
	}
	return s.Show(shown, func(t *cli.TableWriter) {
		t.Row("NAMESPACE", "NAME", "PHASE", "HOST", "REASON")
		for _, x := range all {
			t.Row(x.Namespace, x.Name, x.Phase, x.Host, x.Reason)
		}
	})
}

// applier returns what applies files, by the server's REST API.
func applier(s *cli.Session, api *client.Client, isDryRun bool) (*apply.Applier, error) {
	a, err := backend.NewRemote(s.Ctx, api)
	if err != nil {
		return nil, err
	}
	has := func(ctx context.Context, name string) (bool, error) {
		_, err := api.Secrets.Get(ctx, name)
		if cli.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	}
	return &apply.Applier{Appliance: a, HasSecret: has, DryRun: isDryRun}, nil
}

// each does something with each object of the files, and shows what becomes of it.
func (f *filesFlags) each(s *cli.Session, api *client.Client, do func(*apply.Applier, context.Context, []apply.Object, func(apply.Change)) error) error {
	objects, err := f.read(s)
	if err != nil {
		return err
	}
	a, err := applier(s, api, f.DryRun)
	if err != nil {
		return err
	}
	changes := []apply.Change{}
	err = do(a, s.Ctx, objects, func(c apply.Change) { changes = append(changes, c) })
	if len(changes) > 0 || err == nil {
		if shown := s.Show(changes, func(t *cli.TableWriter) {
			t.Row("OBJECT", "RESULT", "DETAIL")
			for _, c := range changes {
				t.Row(c.Ref(), string(c.Op), c.Detail)
			}
		}); shown != nil {
			return shown
		}
	}
	if err == nil && f.DryRun {
		s.Say("this was a dry run: nothing was changed")
	}
	return err
}

// read reads the objects of all files. What is wrong with any of them is said before anything is done.
func (f *filesFlags) read(s *cli.Session) ([]apply.Object, error) {
	names, err := f.expand()
	if err != nil {
		return nil, err
	}
	var (
		all []apply.Object
		bad apply.Errors
	)
	for _, name := range names {
		in, err := s.Open(name)
		if err != nil {
			return nil, err
		}
		objects, err := apply.Read(name, f.Namespace, in)
		_ = in.Close()
		var some apply.Errors
		switch {
		case errors.As(err, &some):
			bad = append(bad, some...)
		case err != nil:
			return nil, err
		}
		all = append(all, objects...)
	}
	if len(bad) > 0 {
		return nil, bad
	}
	if len(all) == 0 {
		return nil, inventory.Errorf(inventory.Invalid, "there is no object in %s", strings.Join(f.Files, ", "))
	}
	return all, nil
}

// expand lists the files of directories.
func (f *filesFlags) expand() (names []string, err error) {
	for _, name := range f.Files {
		info, err := os.Stat(name)
		if name == "-" || err != nil || !info.IsDir() {
			names = append(names, name) // what cannot be read is said when it is opened
			continue
		}
		entries, err := os.ReadDir(name)
		if err != nil {
			return nil, inventory.Errorf(inventory.Invalid, "cannot read %s: %v", name, err)
		}
		var inside []string
		for _, e := range entries {
			if ext := filepath.Ext(e.Name()); !e.IsDir() && (ext == ".yaml" || ext == ".yml" || ext == ".json") {
				inside = append(inside, filepath.Join(name, e.Name()))
			}
		}
		if len(inside) == 0 {
			return nil, inventory.Errorf(inventory.Invalid, "there is no *.yaml and no *.json in %s", name)
		}
		slices.Sort(inside)
		names = append(names, inside...)
	}
	return names, nil
}
