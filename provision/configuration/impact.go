package configuration

import (
	"context"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/address"
	"slipway.dev/slipway/machineconfig/layer"
	"slipway.dev/slipway/machineconfig/reference"
	"slipway.dev/slipway/machineconfig/render"
	"slipway.dev/slipway/pxe"
)

// Impact is what saving a profile or layer would do to the hosts that use it.
type Impact struct {
	HostN    int                  `json:"hostN"`    // hosts that use it
	ChangedN int                  `json:"changedN"` // of which would get something else than without the edit
	FailedN  int                  `json:"failedN"`  // of which could not be rendered
	Hosts    []HostImpact         `json:"hosts"`    // those that change or fail, by name, at most 200
	Findings machineconfig.Report `json:"findings"` // about the profile or layer itself, or the first host's
}

// HostImpact is what an edit would do to one host.
type HostImpact struct {
	Host     string               `json:"host"`
	Diff     string               `json:"diff,omitempty"` // redacted; for the first 20 hosts
	Findings machineconfig.Report `json:"findings,omitempty"`
}

// Err returns why the edit must not be saved, nil if it may.
func (i *Impact) Err() error { return i.Findings.Err() }

// What an Impact shows.
const (
	impactHosts = 200 // hosts that are listed
	impactDiffs = 20  // of which are shown with their differences
)

// Edits tries what a profile or layer would change, and notes what it makes machines hold when it is saved.
type Edits struct{ *Configurer }

// CheckProfile renders every host that uses a profile, as it would be after the edit, and says what that changes. A
// profile without hosts is tried on a made-up one, so that its errors show at once.
func (c *Edits) CheckProfile(ctx context.Context, draft *inventory.Profile) (Impact, error) {
	i, err := c.impact(ctx, edit{profile: draft})
	if err == nil && i.HostN == 0 {
		err = c.tryOut(ctx, draft, &i)
	}
	return i, err
}

// CheckLayer renders every host that a layer is for, as it would be after the edit, and says what that changes.
func (c *Edits) CheckLayer(ctx context.Context, draft *inventory.Layer) (Impact, error) {
	i, err := c.impact(ctx, edit{layer: draft})
	if err == nil && i.HostN == 0 {
		_, i.Findings = layer.Parse(draft.Config, "layer "+draft.Key())
	}
	return i, err
}

// trial is one host of an impact.
type trial struct {
	subject       address.Subject
	holdings      []inventory.Holding // what the configuration after the edit makes it hold
	before, after *render.Input       // before is nil for a host that was given nothing
	impact        HostImpact
	isChanged     bool
}

// impact compares what every host is given before and after an edit. The store is read by one goroutine at a time,
// the rendering runs on all processors.
func (c *Edits) impact(ctx context.Context, t edit) (Impact, error) {
	i := Impact{Hosts: []HostImpact{}, Findings: machineconfig.Report{}}
	since := int64(0)
	err := c.cfg.Store.Write(ctx, func(inventory.Tx) error { // all that was noted until now is in the store then
		since = c.held.now()
		return nil
	})
	if err != nil {
		return i, err
	}
	err = c.cfg.Store.Read(ctx, func(tx inventory.Tx) error {
		locked := &sync.Mutex{}
		trials, err := c.trials(tx, t, locked)
		if err != nil {
			return err
		}
		work := make(chan *trial)
		var g errgroup.Group
		for range runtime.GOMAXPROCS(0) {
			g.Go(func() error {
				for j := range work {
					c.compare(j)
				}
				return nil
			})
		}
		for _, j := range trials {
			if ctx.Err() != nil {
				break
			}
			work <- j
		}
		close(work)
		_ = g.Wait() // compare returns nothing
		trials, all, err := c.addClashes(t, tx, trials)
		if err != nil {
			return err
		}
		if i.add(trials); ctx.Err() == nil {
			c.walked(t, since, all)
		}
		return ctx.Err()
	})
	return i, err
}

// trials collects the hosts that use what is edited, with what their renderings depend on.
func (c *Edits) trials(tx inventory.Tx, t edit, locked *sync.Mutex) (trials []*trial, err error) {
	t.Tx = tx
	b, err := c.book(t, true)
	if err != nil {
		return nil, err
	}
	hosts, err := tx.ListHosts(inventory.HostFilter{}, inventory.Page{})
	if err != nil {
		return nil, fmt.Errorf("list hosts: %w", err)
	}
	for n := range hosts {
		h := &hosts[n]
		after, problem, err := c.inputsOf(t, h, locked)
		if err != nil {
			return nil, err
		}
		before, was, err := c.inputsOf(tx, h, locked)
		if err != nil {
			return nil, err
		}
		isUsed := after != nil && t.isUsedBy(after) || before != nil && t.isUsedBy(before)
		if problem == nil && !isUsed {
			continue
		}
		j := &trial{after: after, impact: HostImpact{Host: h.Name}}
		if j.subject, err = subjectOn(tx, h); err != nil {
			return nil, err
		}
		if after != nil {
			after.Address = lockedAddresses(b.Give(j.subject), locked)
		}
		switch {
		case problem != nil && was != nil:
			continue // it had one before
		case problem != nil && problem.Kind == inventory.NotFound && h.Profile == "":
			j.impact.Findings.Warnf("", "profile", "host %s: %s", inventory.HostRef(h.Name), problem.Msg).Says(problem)
			j.isChanged = true
		case problem != nil:
			j.impact.Findings.Errorf("", "profile", "host %s: %s", inventory.HostRef(h.Name), problem.Msg).Says(problem)
		}
		j.before = before
		trials = append(trials, j)
	}
	return trials, nil
}

// inputsOf returns what a host's rendering depends on, nil when it is given nothing.
func (c *Edits) inputsOf(tx inventory.Tx, h *inventory.Host, locked *sync.Mutex) (*render.Input, *inventory.Error, error) {
	p, err := c.cfg.Plan(tx, h, "")
	if err != nil || p.Profile == nil || p.Image == nil {
		return nil, p.Problem, err
	}
	in, err := c.Inputs(tx, h, p, BootMAC(h))
	if err != nil || !in.IsWanted() {
		return nil, nil, err
	}
	in.Address = lockedAddresses(in.Address, locked)
	target, secret, has, may := in.Target, in.Secret, in.HasSecret, in.MayUse
	in.MayUse = func(u inventory.Use) error {
		locked.Lock()
		defer locked.Unlock()
		return may(u)
	}
	in.Target = func(name string) (inventory.JoinTarget, error) {
		locked.Lock()
		defer locked.Unlock()
		return target(name)
	}
	in.Secret = func(name string) ([]byte, error) {
		locked.Lock()
		defer locked.Unlock()
		return secret(name)
	}
	in.HasSecret = func(name string) bool {
		locked.Lock()
		defer locked.Unlock()
		return has(name)
	}
	return &in, nil, nil
}

// compare renders a host before and after.
func (c *Edits) compare(j *trial) {
	var before, after render.Result
	if j.after != nil {
		after = c.cfg.Renderer.Host(*j.after)
		j.impact.Findings = append(j.impact.Findings, after.Findings...)
		if after.Config != nil {
			j.holdings = address.Of(after.Config, j.subject)
			j.impact.Findings = append(j.impact.Findings, constantAddresses(after.Config)...)
		}
	}
	if j.impact.Findings.HasErrors() {
		return
	}
	if j.before != nil {
		before = c.cfg.Renderer.Host(*j.before)
	}
	if before.Digest != after.Digest {
		j.isChanged = true
		j.impact.Diff = diff(redacted(before.Documents), redacted(after.Documents))
	}
}

// addClashes adds to trials what they would hold that somebody or something else has, with each other and with all that the
// edit does not touch. Machines of the edit that wait for a host are tried, too; those that clash are added to what is shown.
func (c *Edits) addClashes(t edit, tx inventory.Tx, trials []*trial) (shown, all []*trial, err error) {
	t.Tx = tx
	b, err := c.book(t, true)
	if err != nil {
		return nil, nil, err
	}
	waiting, err := c.waiting(t, b)
	if err != nil {
		return nil, nil, err
	}
	all = append(trials[:len(trials):len(trials)], waiting...)
	var held []inventory.Holding
	except := map[string]bool{}
	for _, j := range all {
		except[j.subject.Key()] = true
		held = append(held, j.holdings...)
	}
	among := map[string][]address.Clash{}
	for _, clash := range address.Among(held) {
		among[clash.Key()] = append(among[clash.Key()], clash)
	}
	for _, j := range all {
		fresh, err := newOnly(tx, j.subject, j.holdings)
		if err != nil {
			return nil, nil, err
		}
		no, err := b.TooMany(j.subject, j.holdings, fresh)
		if err != nil {
			return nil, nil, err
		}
		if no != nil {
			j.impact.Findings = append(j.impact.Findings, tooMany(no)...)
			continue
		}
		clashes, err := b.Clashes(j.subject, j.holdings, except)
		if err != nil {
			return nil, nil, err
		}
		for _, clash := range append(clashes, among[j.subject.Key()]...) {
			isNew := false
			for _, h := range fresh {
				isNew = isNew || h.IsSame(&clash.Holding)
			}
			j.impact.Findings = append(j.impact.Findings, clashFindings([]address.Clash{clash}, isNew)...)
		}
	}
	for _, j := range waiting {
		if len(j.impact.Findings) > 0 {
			trials = append(trials, j)
		}
	}
	return trials, all, nil
}

// waiting are the machines of an edit that have no host yet.
func (c *Edits) waiting(t edit, b *address.Book) (all []*trial, err error) {
	machines, err := t.ListMachines(inventory.MachineFilter{}, inventory.Page{})
	if err != nil {
		return nil, err
	}
	for i := range machines {
		m := &machines[i]
		if m.HostID != "" {
			continue
		}
		x, err := c.holds(t, b, m, nil)
		if err != nil {
			return nil, err
		}
		if x.in == nil || !t.isUsedBy(x.in) {
			continue
		}
		j := &trial{subject: x.Subject, holdings: x.all, impact: HostImpact{Host: "machine " + m.Name}}
		if err := saidError(x.err); err != nil {
			j.impact.Findings.Errorf("", "address", "machine %s: %s", inventory.MachineRef(m.Name), err.Msg).Says(err)
		}
		all = append(all, j)
	}
	return all, nil
}

// add sums up what was compared.
func (i *Impact) add(trials []*trial) {
	for _, j := range trials {
		i.HostN++
		isFailed := j.impact.Findings.HasErrors()
		if isFailed {
			i.FailedN++
		}
		if len(i.Findings) == 0 || isFailed && !i.Findings.HasErrors() {
			i.Findings = append(i.Findings, j.impact.Findings...)
		}
		if j.isChanged {
			i.ChangedN++
		}
		if (isFailed || j.isChanged) && len(i.Hosts) < impactHosts {
			if len(i.Hosts) >= impactDiffs {
				j.impact.Diff = ""
			}
			i.Hosts = append(i.Hosts, j.impact)
		}
	}
}

// tryOut renders a profile for a made-up host.
func (c *Edits) tryOut(ctx context.Context, draft *inventory.Profile, i *Impact) error {
	return c.cfg.Store.Read(ctx, func(tx inventory.Tx) error {
		image, err := tx.Images().Find(draft.Image)
		if err != nil {
			return err
		}
		h := inventory.Host{
			ID: "00000000-0000-7000-8000-000000000000", Name: "example", State: inventory.Available, Arch: image.Arch,
			NICs: []inventory.NIC{{MAC: "52:54:00:00:00:01", IsBoot: true}},
		}
		in, err := c.Inputs(edit{Tx: tx, profile: draft}, &h, pxe.Plan{Profile: draft, Image: &image}, h.NICs[0].MAC)
		if err != nil || !in.IsWanted() {
			return err
		}
		in.MayUse = func(u inventory.Use) error { return reference.Check(tx, u, reference.Place{IsAnywhere: true}) }
		b, err := c.book(tx, true)
		if err != nil {
			return err
		}
		s := subject(nil, &h)
		in.Address = b.Give(s)
		r := c.cfg.Renderer.Host(in)
		if i.Findings = append(i.Findings, r.Findings...); r.Config == nil {
			return nil
		}
		i.Findings = append(i.Findings, constantAddresses(r.Config)...)
		all := slices.DeleteFunc(address.Of(r.Config, s), func(g inventory.Holding) bool { return g.Source == "inventory" })
		clashes, err := clashesOf(b, s, all)
		i.Findings = append(i.Findings, clashes...)
		return err
	})
}

// walked keeps what trials have found without a fault: the transaction that saves the edit need not find it again.
func (c *Edits) walked(t edit, since int64, trials []*trial) {
	key, err := editKey(t.profile, t.layer)
	if err != nil {
		return
	}
	w := &heldWalk{edit: key, since: since, holders: map[string]bool{}, index: map[string][]inventory.Holding{}}
	for _, j := range trials {
		if j.impact.Findings.HasErrors() {
			return
		}
		w.holders[j.subject.Key()] = true
		for _, h := range unlessIdle(j.subject, j.holdings) {
			at := string(h.Kind) + "/" + h.Value
			w.index[at] = append(w.index[at], h)
		}
	}
	c.held.keep(w)
}

func lockedAddresses(of machineconfig.AddressOf, locked *sync.Mutex) machineconfig.AddressOf {
	return func(subnet string) (netip.Prefix, error) {
		locked.Lock()
		defer locked.Unlock()
		return of(subnet)
	}
}
