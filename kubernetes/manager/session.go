package manager

import (
	"context"
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sleep"
)

const (
	lostAfter = 2               // probes without answer
	lostEvery = 5 * time.Second // at most, between probes once one had no answer
)

// session attaches a cluster and runs its controllers until ctx ends or something breaks. It calls up when they run.
//
// The order of the checks matters. Nothing is written to a cluster before it is known to be the right one.
func (a *Attacher) session(ctx context.Context, c inventory.Cluster, up func()) error {
	p, err := a.connect(ctx, c)
	if err != nil {
		return err
	}
	// Each session has its own connections. They are closed with it, so that a detached cluster costs nothing.
	defer p.hangUp()
	if c.State == "" {
		a.note(ctx, c, func(n *inventory.Cluster) { n.State = inventory.ClusterAttaching })
	}
	// Who is it? greet only reads, and so do the comparisons after it.
	if err := p.greet(ctx, c.Namespaces); err != nil {
		return err
	}
	if p.uid != "" { // else its account may not read it, which prepare says
		if err := isSame(c.Name, c.UID, p.uid); err != nil {
			return err
		}
	}
	if err := a.isImpostor(ctx, c, p); err != nil {
		return err
	}
	// From here on no other attachment can take this cluster.
	if err := a.take(ctx, c, p.uid, authorityOf(p.cfg)); err != nil {
		return err
	}
	// This is the first call that writes to the cluster.
	if err := a.prepare(ctx, p, c); err != nil {
		return err
	}
	// An account that may not read the UID has been told by prepare what it lacks. Without a UID no machine has an owner.
	if err := isSame(c.Name, "", p.uid); err != nil {
		return err
	}
	opts := Options{
		Appliance: a.cfg.Appliance, Cluster: c.Name, UID: p.uid, Namespaces: c.Namespaces, WatchFilter: c.WatchFilter, Sets: a.sets(c),
		Identity: a.cfg.Identity + "/" + c.Name, Lease: a.cfg.Lease, Log: a.cfg.Log.With("cluster", c.Name),
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	// probe ends before session returns. So no note of this session comes after one of the next.
	l := &life{a: a, p: p, c: c, opts: opts, version: p.version}
	opts.OnElected = func() {
		up()
		l.elect(ctx)
	}
	wg.Go(func() { l.probe(ctx) })
	// When Run has returned, no Reconcile runs any more: the next session may have other rights or another set.
	return Run(ctx, p.cfg, opts)
}

// prepare makes sure that a cluster has the kinds, and gives the rights, that the controllers need.
func (a *Attacher) prepare(ctx context.Context, p *peer, c inventory.Cluster) error {
	modes := modesOf(c)
	// A refused installation is not final. What counts is whether the controllers can run.
	installed := install(ctx, p, modes, a.cfg.Version)
	if installed != nil && inventory.KindOf(asError(c.Name, installed)) != inventory.Forbidden {
		return installed
	}
	lacking, err := p.lacks(ctx, modes, c.Namespaces)
	if err != nil {
		return err
	}
	if len(lacking) > 0 {
		return missing(c.Name, lacking)
	}
	if installed == nil {
		return nil
	}
	// An account that may run the controllers need not be one that may install: an administrator can have done that.
	absent, err := p.absent(ctx, modes)
	if err != nil {
		return err
	}
	if len(absent) > 0 {
		return inventory.Errorf(inventory.Forbidden, "cluster %s does not have %s, and the account in the kubeconfig may not install it", c.Name, listed(absent)).
			WithHint("%s", grant(c.Name))
	}
	return nil
}

// life is the state of a session while it runs.
type life struct {
	a    *Attacher
	p    *peer
	c    inventory.Cluster
	opts Options

	mu        sync.Mutex // held over notes as well, so that they are written in order
	isElected bool
	version   string
}

func (l *life) elect(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isElected = true
	l.answers(ctx, inventory.ClusterAttached, "")
}

func (l *life) answers(ctx context.Context, state inventory.ClusterState, reason string) {
	l.a.note(ctx, l.c, func(n *inventory.Cluster) {
		n.State, n.Reason, n.Hint, n.UID, n.Kubernetes, n.SeenAt = state, reason, "", l.p.uid, l.version, l.a.cfg.Now()
	})
}

// probe asks the cluster now and then whether it is there: a watch that receives nothing does not tell. The manager
// ends by itself when it cannot renew its lease.
func (l *life) probe(ctx context.Context) {
	wait, lostN := min(l.a.cfg.ProbeEvery, time.Second), 0 // whether another leads is seen at once
	for {
		if sleep.For(ctx, wait) != nil {
			return
		}
		wait = l.a.cfg.ProbeEvery
		v, err := l.p.askVersion(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			wait = min(l.a.cfg.ProbeEvery, lostEvery)
			// One lost answer is normal while an API server is upgraded. Two in a row are shown.
			if lostN++; lostN >= lostAfter {
				e := asError(l.p.name, err)
				l.a.note(ctx, l.c, func(n *inventory.Cluster) {
					n.State, n.Reason, n.Hint = inventory.ClusterUnreachable, e.Msg, e.Hint
				})
			}
			continue
		}
		lostN = 0
		l.found(ctx, v)
	}
}

// found notes that the cluster has answered.
func (l *life) found(ctx context.Context, version string) {
	l.mu.Lock()
	isElected := l.isElected
	l.mu.Unlock()
	holder := ""
	if !isElected {
		// Without the lock, because the call may take seconds. elect may come meanwhile: it is looked at again below.
		holder, _ = l.p.holder(ctx, l.opts)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.version = version
	switch {
	case l.isElected:
		l.answers(ctx, inventory.ClusterAttached, "")
	case holder != "" && holder != l.opts.Identity:
		l.answers(ctx, inventory.ClusterStandby, "its controllers run at "+inventory.Clean(holder, 200))
	}
}
