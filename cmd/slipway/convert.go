package main

import (
	"errors"
	"io"
	"os"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machine/convert"
)

type convertCommand struct {
	Machines convertMachines `cmd:"" name:"machines-v1alpha1" help:"Read objects of cluster.k8s.io/v1alpha1, Metal3, Sidero or Tinkerbell and write ours."`
}

type convertMachines struct {
	Files   []string `short:"f" name:"file" required:"" help:"Files to read; - is standard input." placeholder:"FILE"`
	Profile string   `help:"What machines are installed with; without it a name stands there that has to be replaced." placeholder:"NAME"`
}

// Run writes the converted objects to standard output. Objects that cannot be read make it fail, at the end.
func (c *convertMachines) Run(s *session) error {
	var failed error
	for i, name := range c.Files {
		in, err := s.open(name)
		if err != nil {
			return err
		}
		r, err := convert.Read(name, in, convert.Options{Profile: c.Profile})
		_ = in.Close()
		if err != nil {
			return err
		}
		if i > 0 && len(r.Objects) > 0 {
			if _, err := io.WriteString(s.out, "---\n"); err != nil {
				return err
			}
		}
		if _, err := r.WriteTo(s.out); err != nil {
			return err
		}
		for _, u := range r.Unknown {
			s.say("%s: %s is no object that can be converted: left out", name, u)
			failed = errSaid
		}
	}
	return failed
}

// open opens a file to read; - is standard input.
func (s *session) open(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(s.in), nil
	}
	f, err := os.Open(name)
	if err != nil {
		if e := (*os.PathError)(nil); errors.As(err, &e) {
			err = e.Err
		}
		return nil, inventory.Errorf(inventory.Invalid, "cannot read %s: %v", name, err)
	}
	return f, nil
}
