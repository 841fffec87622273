package manager

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sleep"
	"slipway.dev/slipway/kubernetes/kubeconfig"
)

const (
	callFor = 10 * time.Second // for one question to an API server
	// minVersion is the oldest API server: admission policies are there by default since then.
	minVersion = "1.30.0"
	lostAfter  = 2               // probes without answer
	lostEvery  = 5 * time.Second // at most, between probes once one had no answer
)

// peer is a cluster that this process speaks to. Its clients have connections of their own, which hangUp closes.
type peer struct {
	name    string
	cfg     *rest.Config
	client  client.Client // untyped and without a cache
	disco   *discovery.DiscoveryClient
	hangUp  func()
	version string
	uid     string
	// isNarrow says that the account has rights in the namespaces of its cluster only.
	isNarrow bool
}

// open reads a kubeconfig and makes the clients. It opens no connection yet.
func (a *Attacher) open(name, what string, text []byte) (*peer, error) {
	cfg, err := kubeconfig.Parse(what, text)
	if err != nil {
		return nil, err
	}
	// Many machines at once are many small requests; the API server has limits of its own that are fairer than ours.
	cfg.QPS, cfg.Burst = 500, 1000
	cfg.Dial = a.cfg.Egress.DialCluster
	return newPeer(name, cfg)
}

func newPeer(name string, cfg *rest.Config) (*peer, error) {
	p := &peer{name: name, cfg: cfg}
	own, hangUp := ownConnections(cfg)
	p.hangUp = hangUp
	hc, err := rest.HTTPClientFor(own)
	if err != nil {
		return nil, inventory.Errorf(inventory.Invalid, "cluster %s: its kubeconfig cannot be used", name).WithHint("it holds a certificate or key that is none")
	}
	if p.disco, err = discovery.NewDiscoveryClientForConfigAndClient(own, hc); err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	p.client, err = client.New(own, client.Options{HTTPClient: hc, Scheme: scheme})
	return p, err
}

// greet asks a cluster who it is. namespaces are those that the controllers watch, none for all.
func (p *peer) greet(ctx context.Context, namespaces []string) error {
	ctx, cancel := context.WithTimeout(ctx, callFor)
	defer cancel()
	v, err := p.askVersion(ctx)
	if err != nil {
		return err
	}
	// Kept before it is judged, because Check shows the version of a cluster that is too old.
	p.version = v
	if is, err := version.ParseGeneric(v); err == nil && is.LessThan(version.MustParseGeneric(minVersion)) {
		return inventory.Errorf(inventory.Invalid, "cluster %s runs Kubernetes %s; 1.30 or newer is needed", p.name, inventory.Clean(v, 64)).
			WithHint("upgrade its control plane: admission policies are checked by the API server itself since 1.30")
	}
	if err := p.narrow(ctx, namespaces); err != nil {
		return err
	}
	if p.uid, err = uidOf(ctx, p.client, namespaces); apierrors.IsForbidden(err) {
		return nil // Slipway checks its rights as a whole
	}
	return err
}

// askVersion asks for the version of the API server, which needs no rights.
func (p *peer) askVersion(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callFor)
	defer cancel()
	var v struct {
		GitVersion string `json:"gitVersion"`
	}
	raw, err := p.disco.RESTClient().Get().AbsPath("/version").Do(ctx).Raw()
	if err != nil {
		return "", err
	}
	if err := json.Unmarshal(raw, &v); err != nil || v.GitVersion == "" {
		return "", inventory.Errorf(inventory.Invalid, "cluster %s: there is nothing of Kubernetes where the kubeconfig points", p.name).
			WithHint("check the server address in the kubeconfig")
	}
	return v.GitVersion, nil
}

// connect opens the kubeconfig of a cluster.
func (a *Attacher) connect(ctx context.Context, c inventory.Cluster) (*peer, error) {
	text, err := a.cfg.Secrets.Open(ctx, c.Kubeconfig)
	if err != nil {
		return nil, err
	}
	return a.open(c.Name, "secret "+c.Kubeconfig+" of cluster "+c.Name, text)
}

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

// isTwice refuses a cluster that is attached under another name, unless the two handle different objects. Otherwise
// two sets of controllers would change the same objects in turn.
func (a *Attacher) isTwice(ctx context.Context, c inventory.Cluster, uid string) error {
	return a.cfg.Store.Read(ctx, func(tx inventory.Tx) error { return refuseSecond(tx, c, uid) })
}

// take stores the identity of an attached cluster and what vouches for it, unless another attachment has it. It does
// so in one transaction: of two that attach the same cluster in one instant, one continues.
func (a *Attacher) take(ctx context.Context, c inventory.Cluster, uid string, authority []string) error {
	return a.cfg.Store.Write(ctx, func(tx inventory.Tx) error {
		// The row may have changed since Serve read it: the calls to the cluster took their time.
		stored, err := tx.Clusters().Find(c.Name)
		if inventory.KindOf(err) == inventory.NotFound || err == nil && !stored.CreatedAt.Equal(c.CreatedAt) {
			return nil // detached meanwhile: this session is about to end
		}
		if err != nil {
			return err
		}
		if err := refuseSecond(tx, stored, uid); err != nil || uid == "" {
			return err
		}
		if err := isSame(c.Name, stored.UID, uid); err != nil {
			return err
		}
		// The identity and what vouches for it are stored in one transaction. After a crash between the two, a stranger could be
		// the first to vouch for the cluster.
		if err := vouched(tx, stored, uid, authority); err != nil {
			return err
		}
		if err := a.keepAuthority(tx, uid, authority); err != nil || stored.UID == uid && !stored.TakesOver {
			return err
		}
		// The admin has vouched for this one server. The next one has to prove itself again.
		stored.UID, stored.TakesOver = uid, false
		return tx.NoteCluster(&stored)
	})
}

// refuseSecond refuses the second of two attachments of one cluster. The one with the stored UID is the first, else
// the older one.
func refuseSecond(tx inventory.Tx, c inventory.Cluster, uid string) error {
	if uid == "" {
		return nil
	}
	all, err := tx.Clusters().List(inventory.Page{})
	if err != nil {
		return err
	}
	for _, o := range all {
		// Both sides must come to the same answer, whichever asks first. Otherwise two would refuse each other without end.
		isFirst := c.UID != uid || o.CreatedAt.Before(c.CreatedAt) || o.CreatedAt.Equal(c.CreatedAt) && o.Name < c.Name
		if o.Name != c.Name && o.UID == uid && isFirst && overlap(o, c) {
			return inventory.Errorf(inventory.Conflict, "this cluster is attached as %s already", o.Name).
				WithHint("use cluster %s; to rename it, first: slipway cluster detach %s; or attach other namespaces, modes or a watch filter than the first", o.Name, o.Name)
		}
	}
	return nil
}

// isImpostor refuses a server that claims to be a cluster which is attached under another name, and has another
// certificate authority. The claim decides whose machines are its own.
func (a *Attacher) isImpostor(ctx context.Context, c inventory.Cluster, p *peer) error {
	var others []inventory.Cluster
	err := a.cfg.Store.Read(ctx, func(tx inventory.Tx) error {
		all, err := tx.Clusters().List(inventory.Page{})
		others = slices.DeleteFunc(all, func(o inventory.Cluster) bool { return o.Name == c.Name || o.UID != p.uid || p.uid == "" })
		return err
	})
	if err != nil {
		return err
	}
	for _, o := range others {
		text, err := a.cfg.Secrets.Open(ctx, o.Kubeconfig)
		if err != nil {
			return err
		}
		cfg, err := kubeconfig.Parse("the kubeconfig of cluster "+o.Name, text)
		if err != nil {
			return err
		}
		// Without authorities in both kubeconfigs, only the address can tell the two servers apart.
		ours, theirs := bytes.TrimSpace(p.cfg.CAData), bytes.TrimSpace(cfg.CAData)
		if !bytes.Equal(ours, theirs) || len(ours) == 0 && cfg.Host != p.cfg.Host {
			return inventory.Errorf(inventory.Conflict, "this cluster says that it is the one that is attached as %s, and its certificate authority is another", o.Name).
				WithHint("a cluster is known by the UID of its namespace kube-system; if both are the same cluster, give them one certificate authority in their kubeconfigs")
		}
	}
	return nil
}

// overlap reports whether the controllers of both could handle the same object. An empty list or filter stands for
// all.
func overlap(a, b inventory.Cluster) bool {
	isMode := slices.ContainsFunc(modesOf(a), b.Runs)
	isFilter := a.WatchFilter == "" || b.WatchFilter == "" || a.WatchFilter == b.WatchFilter
	isNamespace := len(a.Namespaces) == 0 || len(b.Namespaces) == 0 ||
		slices.ContainsFunc(a.Namespaces, func(n string) bool { return slices.Contains(b.Namespaces, n) })
	return isMode && isFilter && isNamespace
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

func modesOf(c inventory.Cluster) []inventory.ClusterMode {
	if len(c.Modes) == 0 {
		return inventory.ClusterModes()
	}
	return c.Modes
}

// sets returns the controllers that run for a cluster.
func (a *Attacher) sets(c inventory.Cluster) []Set {
	return slices.DeleteFunc(slices.Clone(a.cfg.Sets), func(s Set) bool { return !c.Runs(s.Mode) })
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
