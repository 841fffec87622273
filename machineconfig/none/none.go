// Package none is the bootstrapper for machines that become part of nothing. It never emits anything.
package none

import (
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
)

// Bootstrapper emits nothing.
type Bootstrapper struct{}

// New returns a Bootstrapper.
func New() *Bootstrapper { return &Bootstrapper{} }

// Kind is none.
func (*Bootstrapper) Kind() string { return "none" }

// Emit returns no activation. A narrower layer says none to undo what a wider one asks for; a target would contradict.
func (*Bootstrapper) Emit(in machineconfig.BootstrapInput) (*machineconfig.Activation, machineconfig.Requirements, error) {
	if in.Spec.Target != "" {
		return nil, machineconfig.Requirements{}, inventory.Errorf(inventory.Invalid, "/bootstrap/target: kind none joins nothing").
			WithHint("name another kind, or take the target away")
	}
	return nil, machineconfig.Requirements{}, nil
}
