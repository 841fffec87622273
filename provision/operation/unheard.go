package operation

import (
	"cmp"
	"context"
	"net/url"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/power"
)

// unheardAfter is how long a controller may take to obey before everybody sees that the operation waits for it.
const unheardAfter = 3 * time.Second

// watchController says in an operation that it waits for its controller: at once where the controller was silent when it was
// asked last, else when it has not obeyed after a while. An order to a dead controller takes minutes to fail.
func (o *Workers) watchController(ctx context.Context, op inventory.Operation, h *inventory.Host, p power.Access) (stop func()) {
	if p.Driver == nil || p.IsHandy() || op.State == inventory.OpWaiting || op.Reason != "" {
		return func() {}
	}
	hint := "repair the controller: slipway host bmc " + h.Name
	if op.Step == inventory.StepFence {
		hint += "; or switch the host off by hand and confirm: slipway host power " + h.Name + " --confirm off"
	}
	who := "the controller of " + h.Name + controllerAt(&p.Record)
	if !p.Record.IsReachable && p.Record.Reason != "" {
		o.waitsForController(ctx, op, who+" does not answer: "+p.Record.Reason, hint)
		return func() {}
	}
	t := time.AfterFunc(cmp.Or(o.cfg.UnheardAfter, unheardAfter), func() {
		o.waitsForController(ctx, op, who+" has not obeyed yet: it may be dead or slow", hint)
	})
	return func() { t.Stop() }
}

// controllerAt is where a controller is asked, without what may be secret in an address.
func controllerAt(b *inventory.BMC) string {
	at := b.Address
	if u, err := url.Parse(b.Address); err == nil && u.Host != "" {
		at = u.Host
	}
	if at == "" {
		return ""
	}
	return " at " + inventory.Clean(at, 200)
}

// waitsForController notes why an operation does not go on, unless it has gone on or says something already.
func (o *Workers) waitsForController(ctx context.Context, op inventory.Operation, reason, hint string) {
	err := o.WithJob(ctx, op.ID, func(j *Job) error {
		if j.op.Step != op.Step || j.op.AttemptN != op.AttemptN || j.op.Reason != "" || j.op.State != inventory.OpRunning {
			return nil
		}
		j.op.Reason, j.op.Hint = inventory.Clean(reason, 500), hint
		if err := j.note(j.op.Reason, map[string]any{"hint": hint}); err != nil {
			return err
		}
		return j.save()
	})
	if err != nil && ctx.Err() == nil {
		o.cfg.Log.Warn("operation does not say what it waits for", "host", op.HostID, "op", op.ID, "err", err)
	}
}
