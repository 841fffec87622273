// Package validation finds what is wrong with a configuration, whatever format it will have. It checks values, and what they refer
// to within the configuration. It never asks the inventory, and never checks what a format can express: machineconfig.Check does.
//
// Start reading at Validate.
package validation

import (
	"slipway.dev/slipway/machineconfig"
)

// Validate finds everything that is wrong with a configuration in any format. It is for merged, filled and expanded
// ones. Findings name the layer that set the value.
func Validate(c *machineconfig.Config) machineconfig.Report {
	v := &checker{c: c}
	v.counts()
	if !v.r.HasErrors() { // otherwise the other checks might take long
		v.all()
	}
	v.r.Locate(c)
	return v.r
}

func (v *checker) all() {
	s := system{v}
	s.host()
	s.boot()
	network(v)
	storage(v)
	accounts{v}.check()
	access{v}.check()
	tree{v}.check()
	units{v}.check()
	s.kernel()
	s.time()
	software{v}.check()
	software{v}.trust()
	commands{v}.check()
	commands{v}.scripts()
	bootstrap{v}.check()
}
