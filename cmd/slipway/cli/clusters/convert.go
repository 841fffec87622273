package clusters

import (
	"errors"

	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/convert"
)

// ConvertCommand is slipway convert.
type ConvertCommand struct {
	Machines convertMachines `cmd:"" default:"withargs" name:"machines-v1alpha1" help:"Read objects of cluster.k8s.io/v1alpha1, Metal3, Sidero or Tinkerbell and write ours."`
}

type convertMachines struct {
	Files   []string `short:"f" name:"file" required:"" help:"Files to read, or directories of them; - is standard input." placeholder:"FILE"`
	Profile string   `help:"Profile of the machines; without it the result has a placeholder that you have to replace." placeholder:"NAME"`
}

// Run writes the converted objects of all files to standard output. It fails, at the end, when something could not be read,
// or when nothing in the files can be converted. It only names objects of other kinds.
func (c *convertMachines) Run(s *cli.Session) error {
	if c.Profile != "" {
		if err := inventory.CheckName("profile", c.Profile); err != nil {
			return err
		}
	}
	all := convert.New(convert.Options{Profile: c.Profile})
	names, err := (&filesFlags{Files: c.Files}).expand()
	if err != nil {
		return err
	}
	for _, name := range names {
		in, err := s.Open(name)
		if err != nil {
			var e *inventory.Error
			if errors.As(err, &e) {
				all.Fail(name, e.Msg)
				continue
			}
			return err
		}
		all.Add(name, in)
		_ = in.Close()
	}
	r, err := all.Convert()
	if _, writeErr := r.WriteTo(s.Out); writeErr != nil {
		return writeErr
	}
	for _, u := range r.Unknown {
		s.Say("%s is no object that can be converted: left out", u)
	}
	if err == nil && len(r.Objects) == len(r.Unknown) {
		return inventory.Errorf(inventory.Invalid, "the files hold no object that can be converted").
			WithHint("it reads cluster.k8s.io/v1alpha1, metal3.io, metal.sidero.dev and tinkerbell.org")
	}
	return err
}
