package operation

import (
	"fmt"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/pxe"
)

// mustCut reports whether an operation ends an old system, on a host whose power the engine can cut. Root in that system can
// play a whole boot of our agent: only what booted after the power was seen off is believed.
func (o *Operator) mustCut(op *inventory.Operation, b *inventory.BMC) bool {
	switch op.Kind {
	case inventory.OpRelease, inventory.OpClean, inventory.OpReinstall:
		return o.cfg.Power.CutsPower(b)
	}
	return false
}

// isAfterOff reports whether a boot began after the power was seen off in this operation.
func (p Params) isAfterOff(began time.Time) bool { return !p.OffAt.IsZero() && !began.Before(p.OffAt) }

// Believes reports whether a boot that began at some time shows that the old system of the host does not run any more.
func (j *Job) Believes(began time.Time) (bool, error) {
	b, err := j.Tx.FindBMC(j.Host.ID)
	if err = ledger.IgnoreNotFound(err); err != nil { // what cannot be read is no proof
		return false, fmt.Errorf("read controller of %s: %w", j.Host.Name, err)
	}
	if !j.o.mustCut(&j.op, &b) {
		return true, nil
	}
	if !j.P.isAfterOff(began) {
		return false, nil
	}
	// A machine that has booted since and boots again may come from its disk: its power is cut anew before that is believed.
	return Follows(j.Tx, j.Host.ID, began, j.P.OffAt, RestartedFor)
}

// isFenced reports whether our agent runs on the host, in a boot that shows that its old system does not.
func (j *Job) isFenced() (bool, error) {
	began, ok := j.o.agents.here(j.Host.ID, j.o.cfg.Now())
	if !ok {
		return false, nil
	}
	return j.Believes(began)
}

// offFor is how long "off" is believed of a machine that nobody has looked at since: somebody may switch it on while the
// operation waits for a budget or a hook, and its old system may run again.
const offFor = time.Minute

// enterPower reports whether nothing need be done with the power: our agent runs, or the machine waits for it in its boot
// loader, after its old system has ended.
func (j *Job) enterPower() (passes bool, err error) {
	isFence := j.op.Step == inventory.StepFence
	if !isFence && j.o.cfg.Now().Sub(j.P.OffAt) > offFor {
		j.P.OffAt = time.Time{}
		j.op.Params = j.P.Encode()
	}
	if passes, err = j.isFenced(); passes || err != nil || isFence {
		return passes, err
	}
	return j.isAsking()
}

// isAsking reports whether the machine waits in its boot loader and will ask again by itself.
func (j *Job) isAsking() (bool, error) {
	now := j.o.cfg.Now()
	for _, n := range j.Host.NICs {
		s, ok := j.o.cfg.Sessions.Of(n.MAC)
		if !ok || !s.EndedAt.IsZero() || s.Boot != string(pxe.BootWait) || now.Sub(s.LastAt) >= askingFor {
			continue
		}
		if is, err := j.Believes(s.StartedAt); is || err != nil {
			return is, err
		}
	}
	return false, nil
}

// askingFor is how long after its last question a machine that was told to wait counts as waiting: it asks every five to
// nine seconds, and a slow one takes some more.
const askingFor = 40 * time.Second

const (
	// RestartedFor is how long after a restart that was ordered the boot that it begins counts as ordered.
	RestartedFor = 30 * time.Minute
)

// Follows reports whether a boot is the one that began after something happened to the host. That is the first boot, or one
// that firmware or an installer began within a while of a failed first one. A machine that boots as the host later needs
// another proof.
func Follows(tx inventory.Tx, h inventory.HostID, began, since time.Time, within time.Duration) (bool, error) {
	const looked = 64
	all, err := tx.ListSessions(h, inventory.Page{Limit: looked})
	if err != nil {
		return false, fmt.Errorf("read boots of host %s: %w", h, err)
	}
	first, hasMore := began, len(all) == looked
	for _, o := range all {
		if o.StartedAt.Before(since) {
			hasMore = false
		} else if o.StartedAt.Before(first) {
			first = o.StartedAt
		}
	}
	return !hasMore && began.Sub(first) <= within, nil // of more boots than are looked at the first is not known
}
