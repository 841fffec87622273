package operation

import (
	"fmt"
	"net/netip"
	"net/url"

	"slipway.dev/slipway/inventory"
)

// came keeps from which instance the machine has booted.
func (j *Job) came(base string) {
	u, err := url.Parse(base)
	if err != nil {
		return
	}
	if at, err := netip.ParseAddr(u.Hostname()); err == nil {
		j.P.At = at
		j.op.Params = j.P.Encode()
	}
}

// blame adds to a failure that the instance is gone from which the machine has booted. What the machine runs may know no other one: the
// programs of installers keep to the address in their kernel arguments.
func (j *Job) blame(f *failure) {
	switch j.op.Step {
	case inventory.StepFence, inventory.StepPower, inventory.StepRest, inventory.StepSet:
		return // these wait for a controller
	}
	if j.o.cfg.Gone == nil || !j.P.At.IsValid() {
		return
	}
	why := j.o.cfg.Gone(j.P.At)
	if why == "" {
		return
	}
	f.reason += fmt.Sprintf("; it booted from %s, and %s", j.P.At, why)
	f.hint = "start that instance again, or restart " + j.Host.Name + ": it then boots from another instance"
}
