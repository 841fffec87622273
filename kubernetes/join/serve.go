package join

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	certsv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sleep"
)

const (
	watchFor    = 5 * time.Minute  // then requests are listed again
	retryAfter  = 2 * time.Second  // for requests whose review met an error
	firstWait   = time.Second      // before a target is tried again; doubles
	longestWait = 15 * time.Second // hosts that join wait at most so long for a cluster that has come back
	alarmAfter  = 3                // failures in a row
	reviewers   = 8                // requests of one target that are decided at a time
)

// Serve approves the requests of hosts in every target that has a kubeconfig. It follows the targets as they change,
// and deletes tokens that have done their work. A target that cannot be reached does not delay any other. Serve
// returns nil when ctx ends, after its followers have ended.
func (j *Joiner) Serve(ctx context.Context) error {
	type follower struct {
		stamp string
		stop  func()
	}
	running := map[string]follower{}
	defer func() {
		for _, f := range running {
			f.stop()
		}
	}()
	tick := time.NewTicker(j.cfg.PollFor)
	defer tick.Stop()
	for {
		targets, err := j.listTargets(ctx)
		if err != nil && ctx.Err() == nil {
			j.cfg.Log.Warn("join targets not read", "err", err)
		}
		for name, f := range running {
			// A store that cannot be read says nothing about the targets: those that are followed go on.
			if t, ok := targets[name]; err == nil && (!ok || t.stamp != f.stamp) {
				f.stop()
				delete(running, name)
			}
		}
		for name, t := range targets {
			if _, ok := running[name]; !ok {
				running[name] = follower{t.stamp, j.start(ctx, t.JoinTarget)}
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-j.wake:
		}
	}
}

// stamped is a target, with a text that changes when Serve must connect to it again.
type stamped struct {
	inventory.JoinTarget
	stamp string
}

func (j *Joiner) listTargets(ctx context.Context) (map[string]stamped, error) {
	out := map[string]stamped{}
	err := j.cfg.Store.Read(ctx, func(tx inventory.Tx) error {
		clear(out)
		all, err := tx.JoinTargets().List(inventory.Page{})
		if err != nil {
			return err
		}
		for _, t := range all {
			if t.Kubeconfig == "" {
				continue
			}
			s, err := tx.Secrets().Find(t.Kubeconfig)
			if err != nil && inventory.KindOf(err) != inventory.NotFound {
				return err
			}
			// CreatedAt tells a target that was deleted and made again. Other settings are read for each token: they need no new
			// connection.
			out[t.Name] = stamped{t, fmt.Sprintf("%s %s %d", t.CreatedAt, t.Kubeconfig, s.Version)}
		}
		return nil
	})
	return out, err
}

// start follows a target until stop is called, which waits for it.
func (j *Joiner) start(ctx context.Context, t inventory.JoinTarget) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		j.follow(ctx, t)
	}()
	return func() { cancel(); <-done }
}

// follow serves a target through all failures.
func (j *Joiner) follow(ctx context.Context, t inventory.JoinTarget) {
	failed, wait, isFirst := 0, firstWait, true
	for ctx.Err() == nil {
		began := time.Now()
		err := j.session(ctx, &t, isFirst, func() {
			if failed >= alarmAfter {
				j.cfg.Log.Info("join target watched again", "target", t.Name)
				j.cfg.Alarm(ctx, Alarm{Kind: AlarmReachable, Target: t.Name, Detail: "target " + t.Name + " is reachable again"})
			}
			failed, wait, isFirst = 0, firstWait, false
		})
		if ctx.Err() != nil {
			return
		}
		// A server that ends each watch at once counts as one that fails. Otherwise it would be asked without a pause.
		if err == nil && time.Since(began) > firstWait {
			continue // the watch ended as agreed
		}
		if err != nil {
			failed++
		}
		// An API server that starts again is away for some seconds. Once is enough: nothing is new at the tenth failure.
		if err != nil && failed == alarmAfter {
			e := failure(t.Name, "read certificate requests", err)
			j.cfg.Log.Warn("join target not watched", "target", t.Name, "err", err)
			j.cfg.Alarm(ctx, Alarm{Kind: AlarmUnreachable, Target: t.Name, Detail: "hosts cannot join target " + t.Name + ": " + e.Msg, Hint: e.Hint})
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait/2 + rand.N(wait/2)): // spread, so that targets behind one router do not return together
		}
		wait = min(2*wait, longestWait)
	}
}

// session lists the requests of a target, and then watches from the version of that list, so that it misses none. It
// calls up once the watch runs, and returns nil when the watch ends in order.
func (j *Joiner) session(ctx context.Context, t *inventory.JoinTarget, isFirst bool, up func()) error {
	c, err := j.connect(ctx, t)
	if err != nil {
		return err
	}
	list, err := c.listRequests(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := c.watchRequests(ctx, list.ResourceVersion, watchFor)
	if err != nil {
		return err
	}
	defer w.Stop()
	up()
	// Only now is the cluster reachable, and only once per start of the process is anything left from before.
	if isFirst {
		j.doomRevoked(ctx, t.Name)
	}
	// The reviews end before session returns. So the next session never judges a request that an old review still judges.
	p := &pool{j: j, c: c, slots: make(chan struct{}, reviewers), reported: map[types.UID]bool{}, retry: make(chan struct{}, 1)}
	defer p.wg.Wait()
	for _, requests := range byAsker(list.Items) {
		p.review(ctx, requests...)
	}
	return p.run(ctx, t, w.ResultChan())
}

// pool reviews the requests of one watch of one target.
type pool struct {
	j     *Joiner
	c     *cluster
	wg    sync.WaitGroup
	slots chan struct{}
	retry chan struct{} // a review failed
	mu    sync.Mutex
	// Nobody settles these requests, so that each event about them would raise the alarm again.
	reported map[types.UID]bool
}

// run handles what a watch brings until it ends.
func (p *pool) run(ctx context.Context, t *inventory.JoinTarget, events <-chan watch.Event) error {
	tick := time.NewTicker(p.j.cfg.PollFor)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case e, ok := <-events:
			if !ok {
				return nil
			}
			switch r, isRequest := e.Object.(*certsv1.CertificateSigningRequest); {
			case e.Type == watch.Error:
				return apierrors.FromObject(e.Object)
			case isRequest && (e.Type == watch.Added || e.Type == watch.Modified):
				p.review(ctx, r)
			}
		case <-p.retry:
			if sleep.For(ctx, retryAfter) != nil {
				return nil
			}
			return nil // all open requests are listed and reviewed again
		case <-tick.C:
			p.j.sweep(ctx, p.c, t)
		}
	}
}

// byAsker groups requests by their user, the newest first. A kubelet that starts again makes a new key, and waits for
// its latest request only. That one must spend the token.
func byAsker(all []certsv1.CertificateSigningRequest) map[string][]*certsv1.CertificateSigningRequest {
	groups := map[string][]*certsv1.CertificateSigningRequest{}
	for i := range all {
		groups[all[i].Spec.Username] = append(groups[all[i].Spec.Username], &all[i])
	}
	for _, g := range groups {
		slices.SortStableFunc(g, func(a, b *certsv1.CertificateSigningRequest) int {
			return b.CreationTimestamp.Compare(a.CreationTimestamp.Time)
		})
	}
	return groups
}

// review decides requests of one asker in their order, in parallel with those of others. It waits while reviewers
// decisions run.
func (p *pool) review(ctx context.Context, requests ...*certsv1.CertificateSigningRequest) {
	requests = slices.DeleteFunc(requests, func(r *certsv1.CertificateSigningRequest) bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.reported[r.UID] || isSettled(r)
	})
	if len(requests) == 0 {
		return
	}
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return
	}
	p.wg.Go(func() {
		defer func() { <-p.slots }()
		for _, r := range requests {
			// The kubelet waits for its newest request. If an older one spent the token, the kubelet would wait without end.
			if !p.reviewOne(ctx, r) {
				return // an older request must not get what this one waits for
			}
		}
	})
}

// reviewOne decides a request. It returns false when that has to be repeated.
func (p *pool) reviewOne(ctx context.Context, r *certsv1.CertificateSigningRequest) bool {
	d, err := p.j.review(ctx, p.c, r)
	if d.Verdict == Report {
		p.mu.Lock()
		p.reported[r.UID] = true
		p.mu.Unlock()
	}
	if err != nil && ctx.Err() == nil {
		p.j.cfg.Log.Warn("certificate request not reviewed", "target", p.c.target, "csr", r.Name, "err", err)
		select {
		case p.retry <- struct{}{}:
		default:
		}
	}
	return err == nil
}

// sweep closes tokens whose node has appeared or whose time has passed, and deletes Secrets that could not be deleted
// before.
func (j *Joiner) sweep(ctx context.Context, c *cluster, t *inventory.JoinTarget) {
	open, err := inventory.Read(ctx, j.cfg.Store, func(tx inventory.Tx) ([]inventory.JoinToken, error) {
		return tx.ListJoinTokens(t.Name, inventory.TokenMinted, inventory.TokenSpent)
	})
	if err != nil {
		j.cfg.Log.Warn("join tokens not read", "target", t.Name, "err", err)
		return
	}
	// Taken out before the calls, and put back when one fails: what Revoke adds meanwhile is not lost.
	doomed := j.takeDoomed(t.Name)
	for _, tok := range open {
		next := inventory.JoinTokenState("")
		if tok.State == inventory.TokenSpent {
			n, err := c.findNode(ctx, tok.NodeName)
			switch {
			case err == nil && hasAppeared(n, tok):
				next = inventory.TokenJoined
			case err != nil && !apierrors.IsNotFound(err):
				// The cluster does not answer. The other tokens would only wait for the same timeout, and the next sweep comes soon.
				j.doom(t.Name, doomed)
				j.cfg.Log.Warn("node not read", "target", t.Name, "node", tok.NodeName, "err", err)
				return
			}
		}
		// A spent token expires too: its node never appeared, and another host may have the name.
		if next == "" && !j.cfg.Now().Before(tok.ExpiresAt) {
			next = inventory.TokenRevoked
		}
		if next != "" && j.advance(ctx, tok, next) {
			doomed = append(doomed, tok.ID)
		}
	}
	j.deleteSecrets(ctx, c, doomed)
}

// advance moves a token to a state, unless it has moved since it was read. It returns whether it did.
func (j *Joiner) advance(ctx context.Context, t inventory.JoinToken, to inventory.JoinTokenState) bool {
	moved := false
	err := j.cfg.Store.Write(ctx, func(tx inventory.Tx) error {
		// Between the reading and here lies a call to the cluster: a release may have revoked the token meanwhile.
		current, err := tx.FindJoinToken(t.ID)
		if moved = err == nil && current.State == t.State; !moved {
			return err
		}
		current.State = to
		return tx.SaveJoinToken(current)
	})
	if err != nil {
		j.cfg.Log.Warn("join token not stored", "target", t.Target, "token", t.ID, "err", err)
		return false
	}
	if moved {
		j.cfg.Log.Info("join token closed", "target", t.Target, "node", t.NodeName, "token", t.ID, "state", string(to))
	}
	return moved
}

// hasAppeared reports whether a node is the one that joined with a token, and not an older one of the same name: it was
// made after the token, or its kubelet has spoken since. A minute is left for the difference of clocks.
func hasAppeared(n *corev1.Node, t inventory.JoinToken) bool {
	if n.CreationTimestamp.After(t.CreatedAt.Add(-time.Minute)) {
		return true
	}
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue && c.LastHeartbeatTime.After(t.CreatedAt)
	})
}

// doomRevoked notes the Secrets of closed tokens that may have survived a restart of this process. Expired ones need
// nothing: the cluster's token cleaner deletes them.
func (j *Joiner) doomRevoked(ctx context.Context, target string) {
	var ids []string
	err := j.cfg.Store.Read(ctx, func(tx inventory.Tx) error {
		ids = nil
		all, err := tx.ListJoinTokens(target, inventory.TokenRevoked, inventory.TokenJoined)
		for _, t := range all {
			if t.ExpiresAt.After(j.cfg.Now()) {
				ids = append(ids, t.ID)
			}
		}
		return err
	})
	if err != nil {
		j.cfg.Log.Warn("join tokens not read", "target", target, "err", err)
	}
	j.doom(target, ids)
}
