package node_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"slipway.dev/slipway/kubernetes/node"
	metal "slipway.dev/slipway/kubernetes/v1alpha1"
	"slipway.dev/slipway/test/kube/cluster"
)

// watcher is a Set that runs, and what it wakes.
type watcher struct {
	*node.Set
	l *lab

	mu    sync.Mutex
	woken map[string]int // "<key>/<node>", or "<key>" for all of it
}

func (l *lab) watch() *watcher {
	l.t.Helper()
	w := &watcher{Set: node.NewSet(slog.New(slog.NewTextHandler(l.t.Output(), nil)), nil), l: l, woken: map[string]int{}}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	l.must(w.Source(func(key string, n *node.Node) []reconcile.Request {
		name := key
		if n != nil {
			name += "/" + n.Name
		}
		w.mu.Lock()
		w.woken[name]++
		w.mu.Unlock()
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: name}}}
	}).Start(l.t.Context(), queue))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Start(ctx) }()
	l.t.Cleanup(func() {
		cancel()
		queue.ShutDown()
		if err := <-done; err != nil {
			l.t.Errorf("the watch ended with %v", err)
		}
	})
	return w
}

func (w *watcher) open(key string, kubeconfig []byte) *node.Cluster {
	w.l.t.Helper()
	c, err := w.Cluster(w.l.t.Context(), key, "1", func(context.Context) ([]byte, error) { return kubeconfig, nil })
	w.l.must(err)
	return c
}

func (w *watcher) wokeN(name string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.woken[name]
}

// wakes waits until something was woken more often than n times.
func (w *watcher) wakes(name string, n int) {
	w.l.t.Helper()
	cluster.Until(w.l.t, patient, "somebody is woken for "+name, func() error {
		if got := w.wokeN(name); got <= n {
			return fmt.Errorf("woken %d times", got)
		}
		return nil
	})
}

// sees waits until a machine's node is as it should be.
func (w *watcher) sees(c *node.Cluster, id node.Identity, want node.Wanted, what string, is func(node.Observation) bool) node.Observation {
	w.l.t.Helper()
	var o node.Observation
	cluster.Until(w.l.t, patient, what, func() (err error) {
		if o, err = c.Observe(w.l.t.Context(), id, want); err == nil && !is(o) {
			err = fmt.Errorf("%+v", o)
		}
		return err
	})
	return o
}

func wanted(l *lab) {
	w := l.watch()
	c := w.open("lab/prod", l.Kubeconfig("slipway"))
	if again := w.open("lab/prod", nil); again != c {
		l.t.Error("the same version was opened twice")
	}
	w.wakes("lab/prod", 0)
	id := identity("k1")
	mine := corev1.Taint{Key: "example.com/mine", Effect: corev1.TaintEffectNoSchedule}
	theirs := corev1.Taint{Key: "example.com/theirs", Effect: corev1.TaintEffectNoSchedule}
	want := node.Wanted{Labels: map[string]string{metal.LabelMachine: "k1", "tier": "front"}, Annotations: map[string]string{"note": "x"}, Taints: []corev1.Taint{mine}}
	o, err := c.Observe(l.t.Context(), id, want)
	l.must(err)
	if !o.IsKnown || o.Found || o.Reason != metal.ReasonWaitingForNode {
		l.t.Errorf("before there is a node: %+v", o)
	}

	l.addNode("k1", providerID("k1"), nil)
	w.wakes("lab/prod/k1", 0)
	o = w.sees(c, id, want, "the node is seen", func(o node.Observation) bool { return o.IsReady })
	if o.Name != "k1" || o.UID != string(l.node("k1").UID) || o.Reason != metal.ReasonNodeReady || o.Versions.Kubelet != "v1.36.3" ||
		o.Versions.ContainerRuntime != (metal.ContainerRuntime{Name: "containerd", Version: "2.1.4"}) {
		l.t.Errorf("said %+v", o)
	}
	n := l.node("k1")
	if n.Labels["tier"] != "front" || n.Annotations["note"] != "x" || !slices.Contains(n.Spec.Taints, mine) {
		l.t.Errorf("the node has labels %v, annotations %v, taints %v", n.Labels, n.Annotations, n.Spec.Taints)
	}

	// Somebody takes ours away and adds something: ours comes back, theirs stays.
	n.Spec.Taints = []corev1.Taint{theirs}
	delete(n.Labels, "tier")
	n.Labels["theirs"] = "1"
	before := w.wokeN("lab/prod/k1")
	_, err = l.admin.CoreV1().Nodes().Update(l.t.Context(), n, metav1.UpdateOptions{})
	l.must(err)
	w.wakes("lab/prod/k1", before)
	is := func(labels map[string]string, taints ...corev1.Taint) func(node.Observation) bool {
		return func(node.Observation) bool {
			n := l.node("k1")
			for k, v := range labels {
				if n.Labels[k] != v {
					return false
				}
			}
			return slices.Equal(n.Spec.Taints, taints)
		}
	}
	w.sees(c, id, want, "what is ours is put back", is(map[string]string{"tier": "front", "theirs": "1"}, theirs, mine))

	// Nothing is written while nothing differs.
	cluster.Until(l.t, patient, "the latest write is seen", func() error {
		version := l.node("k1").ResourceVersion
		for range 20 {
			if _, err := c.Observe(l.t.Context(), id, want); err != nil {
				return err
			}
		}
		if now := l.node("k1").ResourceVersion; now != version {
			return fmt.Errorf("version %s became %s", version, now)
		}
		return nil
	})

	// What is wanted no more goes, and only that.
	w.sees(c, id, node.Wanted{}, "what was ours is gone", is(map[string]string{"tier": "", "theirs": "1"}, theirs))

	// It is lost, and then gone.
	l.beat("k1", corev1.ConditionUnknown)
	w.sees(c, id, node.Wanted{}, "the kubelet is lost", func(o node.Observation) bool { return o.Found && !o.IsReady && o.Reason == metal.ReasonNodeNotReady })
	before = w.wokeN("lab/prod/k1")
	l.must(l.admin.CoreV1().Nodes().Delete(l.t.Context(), "k1", metav1.DeleteOptions{}))
	w.wakes("lab/prod/k1", before)
	w.sees(c, id, node.Wanted{}, "the node is gone", func(o node.Observation) bool { return !o.Found && o.Reason == metal.ReasonWaitingForNode })
}

func adopted(l *lab) {
	w := l.watch()
	c := w.open("lab/prod", l.Kubeconfig("slipway"))
	l.addNode("m1", "", nil)
	id := identity("m1")
	w.sees(c, id, node.Wanted{}, "the node has got its provider id", func(o node.Observation) bool {
		return o.Found && l.node("m1").Spec.ProviderID == id.ProviderID
	})
	// Another machine of that name is told who has it, and changes nothing.
	later := id
	later.ProviderID = "slipway://fra/host-m1/01LATER"
	o := w.sees(c, later, node.Wanted{Labels: map[string]string{"x": "y"}}, "the other machine is told", func(o node.Observation) bool { return o.Reason == metal.ReasonNodeProviderIDMismatch })
	if !bytes.Contains([]byte(o.Message), []byte(id.ProviderID)) || !bytes.Contains([]byte(o.Message), []byte(later.ProviderID)) {
		l.t.Errorf("said %q", o.Message)
	}
	if n := l.node("m1"); n.Spec.ProviderID != id.ProviderID || n.Labels["x"] != "" {
		l.t.Errorf("the node of another machine was changed: %s %v", n.Spec.ProviderID, n.Labels)
	}
	// One that was there before the machine got its host keeps having none.
	l.addNode("m2", "", nil)
	old := identity("m2")
	old.ClaimedAt = time.Now().Add(time.Hour)
	w.sees(c, old, node.Wanted{}, "the older node is seen", func(o node.Observation) bool { return bytes.Contains([]byte(o.Message), []byte("m2 is older")) })
	if n := l.node("m2"); n.Spec.ProviderID != "" {
		l.t.Errorf("an older node got provider id %s", n.Spec.ProviderID)
	}
}

func controlPlane(l *lab) {
	w := l.watch()
	c := w.open("lab/prod", l.Kubeconfig("slipway"))
	l.must(c.Check(l.t.Context()))
	read := func() node.ControlPlane {
		l.t.Helper()
		cp, err := w.open("lab/prod", nil).ControlPlane(l.t.Context())
		l.must(err)
		return cp
	}
	if cp := read(); cp.IsInitialized {
		l.t.Errorf("said %+v of an empty cluster", cp)
	}
	_, err := l.admin.CoreV1().ConfigMaps("kube-system").Create(l.t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "kubeadm-config"}, Data: map[string]string{"ClusterConfiguration": "kubernetesVersion: v1.36.3\n"},
	}, metav1.CreateOptions{})
	l.must(err)
	if cp := read(); cp != (node.ControlPlane{IsInitialized: true, Version: "v1.36.3"}) {
		l.t.Errorf("said %+v", cp)
	}
}

func tainted(l *lab) {
	w := l.watch()
	c := w.open("lab/prod", l.Kubeconfig("slipway"))
	off := corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute}
	l.addNode("n1", providerID("n1"), nil)
	l.addNode("n2", "aws:///eu/i-3", nil)
	for _, on := range []bool{true, true, false, false} {
		for _, name := range []string{"n1", "n2", "nobody"} {
			l.must(c.Taint(l.t.Context(), identity(name), off, on))
		}
		isOff := func(name string) bool {
			return slices.ContainsFunc(l.node(name).Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&off) })
		}
		if got := isOff("n1"); got != on {
			l.t.Errorf("the taint is there: %t, wanted %t", got, on)
		}
		if isOff("n2") {
			l.t.Error("a foreign node was tainted")
		}
		if n := len(l.node("n1").Spec.Taints); on && n < 2 || n == 0 {
			l.t.Error("the taint of the node lifecycle is gone")
		}
	}
}

// watchEarly watches clusters that will never work, while the other stories are told.
func (l *lab) watchEarly() {
	l.t.Helper()
	dead, err := net.Listen("tcp", "127.0.0.1:0")
	l.must(err)
	text := bytes.ReplaceAll(l.Kubeconfig("slipway"), []byte(l.Endpoint()), []byte(dead.Addr().String()))
	l.must(dead.Close())
	l.early = l.watch()
	l.early.open("dead", text)
	l.early.open("poor", l.Kubeconfig("somebody"))
}

func unreachable(l *lab) {
	// The first is dead from the start, the second dies, and the account of the third may not read nodes.
	w := l.early
	w.l = l
	first, second, third := w.open("dead", nil), w.open("prod", l.Kubeconfig("slipway")), w.open("poor", nil)
	id := identity("o1")
	l.addNode("o1", id.ProviderID, nil)
	w.sees(second, id, node.Wanted{}, "the node is seen", func(o node.Observation) bool { return o.IsReady })
	down := func(o node.Observation) bool { return o.IsKnown && o.Reason == metal.ReasonWorkloadClusterUnreachable }
	for name, c := range map[string]*node.Cluster{"dead": first, "poor": third} {
		if o := w.sees(c, id, node.Wanted{}, "cluster "+name+" is given up", down); o.Found || o.Message == "" {
			l.t.Errorf("%s: said %+v", name, o)
		}
		w.wakes(name, 0)
	}
	n := w.wokeN("prod")
	l.StopAPI()
	o := w.sees(second, id, node.Wanted{Labels: map[string]string{"x": "y"}}, "the cluster is unreachable", down)
	if !o.Found || o.IsReady || !strings.HasPrefix(o.Message, "cluster prod cannot be reached at https://") {
		l.t.Errorf("said %+v", o)
	}
	w.wakes("prod", n)
	m, h := machine("o1")
	if _, err := l.nodes.Drain(l.t.Context(), m, h, time.Now()); err == nil {
		l.t.Error("a node was emptied in a cluster that is away")
	}
	if err := l.nodes.Forget(l.t.Context(), m, h); err == nil {
		l.t.Error("a node was forgotten in a cluster that is away")
	}
	n = w.wokeN("prod")
	l.StartAPI()
	w.wakes("prod", n)
	w.sees(second, id, node.Wanted{Labels: map[string]string{"x": "y"}}, "the node is seen again", func(o node.Observation) bool {
		return o.IsReady && l.node("o1").Labels["x"] == "y"
	})
	cluster.Until(l.t, patient, "the node is forgotten", func() error {
		if err := l.nodes.Forget(l.t.Context(), m, h); err != nil {
			return err
		}
		_, err := l.admin.CoreV1().Nodes().Get(l.t.Context(), "o1", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("it is still there"), err)
	})
}

func TestAKubeconfigThatRunsProgramsIsRefused(t *testing.T) {
	text := []byte(`apiVersion: v1
kind: Config
current-context: x
contexts: [{name: x, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1", certificate-authority-data: eA==}}]
users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/true, interactiveMode: Never}}}]
`)
	_, err := node.NewSet(nil, nil).Cluster(t.Context(), "lab", "1", func(context.Context) ([]byte, error) { return text, nil })
	if err == nil {
		t.Fatal("a kubeconfig that runs a program was taken")
	}
}
