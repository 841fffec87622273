// Package node_test owns the tests of what happens to nodes, against a real control plane. No kubelet runs: the tests
// make nodes and pods, and end those pods that were asked to go.
package node_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore"
	"slipway.dev/slipway/kubernetes/join"
	"slipway.dev/slipway/kubernetes/node"
	"slipway.dev/slipway/test/kube/cluster"
)

const (
	target  = "prod"
	patient = 90 * time.Second
	ns      = "work"
	site    = "fra"
)

// lab is a control plane, and an appliance with one join target whose account has what the manifest gives it.
type lab struct {
	*cluster.Cluster
	t     *testing.T // of the moment
	store *sqlstore.Store
	admin *kubernetes.Clientset
	nodes *node.Nodes
	early *watcher

	mu     sync.Mutex
	values map[string][]byte // of secrets
	ahead  time.Duration     // our clock
}

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{Cluster: cluster.Start(t), t: t, values: map[string][]byte{}}
	l.admin = cluster.Client(t, l.Admin())
	l.kubectl(join.NodesManifest(), "apply", "--server-side", "-f", "-")
	store, err := sqlstore.Open(t.Context(), sqlstore.Config{Path: filepath.Join(t.TempDir(), "slipway.db")})
	l.must(err)
	l.store = store
	t.Cleanup(func() { _ = store.Close() })
	l.target(target, l.Kubeconfig("slipway"))
	l.nodes = node.New(node.Config{
		Store: store, Secrets: l, Site: site, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Now: func() time.Time {
			l.mu.Lock()
			defer l.mu.Unlock()
			return time.Now().Add(l.ahead)
		},
	})
	_, err = l.admin.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.CreateOptions{})
	l.must(err)
	_, err = l.admin.CoreV1().ServiceAccounts(ns).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	l.must(err)
	return l
}

func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// kubectl does what an administrator does by hand.
func (l *lab) kubectl(stdin []byte, args ...string) {
	l.t.Helper()
	file := filepath.Join(l.t.TempDir(), "admin.conf")
	l.must(os.WriteFile(file, l.Admin(), 0o600))
	cmd := exec.CommandContext(l.t.Context(), cluster.Part(l.t, "kubectl"), append([]string{"--kubeconfig=" + file}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+l.t.TempDir())
	cmd.Stdin = bytes.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		l.t.Fatalf("kubectl %v: %v\n%s", args, err, out)
	}
}

// target stores a join target with a kubeconfig; none when it is nil.
func (l *lab) target(name string, kubeconfig []byte) {
	l.t.Helper()
	t := inventory.JoinTarget{Name: name, Endpoint: l.Endpoint(), Kubernetes: "1.36.3", CA: string(l.CA())}
	l.must(l.store.Write(l.t.Context(), func(tx inventory.Tx) error {
		if kubeconfig != nil {
			t.Kubeconfig = "kubeconfig-" + name
			l.mu.Lock()
			l.values[t.Kubeconfig] = kubeconfig
			l.mu.Unlock()
			if err := tx.Secrets().Create(&inventory.Secret{Name: t.Kubeconfig, Sealed: []byte("sealed")}, time.Now()); err != nil {
				return err
			}
		} else {
			t.Token = "token-" + name
			if err := tx.Secrets().Create(&inventory.Secret{Name: t.Token, Sealed: []byte("sealed")}, time.Now()); err != nil {
				return err
			}
		}
		return tx.JoinTargets().Create(&t, time.Now())
	}))
}

// Open makes the lab a node.Secrets.
func (l *lab) Open(_ context.Context, name string) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if v, ok := l.values[name]; ok {
		return v, nil
	}
	return nil, inventory.Errorf(inventory.NotFound, "no secret %s", name)
}

func (l *lab) skip(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ahead += d
}

// machine is a machine whose node is, or is to be, named like it.
func machine(name string) (inventory.Machine, inventory.Host) {
	return inventory.Machine{
		Name: name, ClaimID: inventory.ClaimID("01CLAIM" + name),
		Drain: inventory.Drain{Target: target, Node: name},
	}, inventory.Host{ID: inventory.HostID("host-" + name)}
}

func providerID(name string) string {
	m, h := machine(name)
	c := inventory.Claim{ID: m.ClaimID}
	return c.ProviderID(site, string(h.ID))
}

func identity(name string) node.Identity {
	return node.Identity{ProviderID: providerID(name), Machine: name, Hostname: name, ClaimedAt: time.Now()}
}

// addNode registers a node as its kubelet would.
func (l *lab) addNode(name, provider string, labels map[string]string) *corev1.Node {
	l.t.Helper()
	n, err := l.admin.CoreV1().Nodes().Create(l.t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Spec: corev1.NodeSpec{ProviderID: provider},
	}, metav1.CreateOptions{})
	l.must(err)
	return l.beat(n.Name, corev1.ConditionTrue)
}

// beat is what a kubelet says of its node, or what is said when it says nothing.
func (l *lab) beat(name string, ready corev1.ConditionStatus) *corev1.Node {
	l.t.Helper()
	n, err := l.admin.CoreV1().Nodes().Get(l.t.Context(), name, metav1.GetOptions{})
	l.must(err)
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, Reason: "Test", LastHeartbeatTime: metav1.Now()}}
	n.Status.NodeInfo.KubeletVersion, n.Status.NodeInfo.ContainerRuntimeVersion = "v1.36.3", "containerd://2.1.4"
	n, err = l.admin.CoreV1().Nodes().UpdateStatus(l.t.Context(), n, metav1.UpdateOptions{})
	l.must(err)
	return n
}

func (l *lab) node(name string) *corev1.Node {
	l.t.Helper()
	n, err := l.admin.CoreV1().Nodes().Get(l.t.Context(), name, metav1.GetOptions{})
	l.must(err)
	return n
}

// addPod makes a pod that runs and is ready.
func (l *lab) addPod(name, on string, with ...func(*corev1.Pod)) {
	l.t.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: ns, Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{NodeName: on, Containers: []corev1.Container{{Name: "c", Image: "example.invalid/none"}}},
	}
	for _, f := range with {
		f(p)
	}
	p, err := l.admin.CoreV1().Pods(ns).Create(l.t.Context(), p, metav1.CreateOptions{})
	l.must(err)
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	_, err = l.admin.CoreV1().Pods(ns).UpdateStatus(l.t.Context(), p, metav1.UpdateOptions{})
	l.must(err)
}

func app(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels["app"] = name }
}

// pod returns a pod, nil when it is gone.
func (l *lab) pod(name string) *corev1.Pod {
	l.t.Helper()
	p, err := l.admin.CoreV1().Pods(ns).Get(l.t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	l.must(err)
	return p
}

// isLeaving reports whether a pod was asked to go.
func (l *lab) isLeaving(name string) bool {
	l.t.Helper()
	p := l.pod(name)
	return p == nil || p.DeletionTimestamp != nil
}

// end does what a kubelet does when a pod has ended.
func (l *lab) end(names ...string) {
	l.t.Helper()
	now := int64(0)
	for _, name := range names {
		err := l.admin.CoreV1().Pods(ns).Delete(l.t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: &now})
		if err != nil && !apierrors.IsNotFound(err) {
			l.t.Fatal(err)
		}
	}
}

// addBudget makes a budget and waits until it counts.
func (l *lab) addBudget(name, of string, least int) {
	l.t.Helper()
	min := intstr.FromInt(least)
	_, err := l.admin.PolicyV1().PodDisruptionBudgets(ns).Create(l.t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: ns},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &min, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": of}}},
	}, metav1.CreateOptions{})
	l.must(err)
	l.budget(name, func(b *policyv1.PodDisruptionBudget) bool {
		return b.Status.ObservedGeneration == b.Generation && b.Status.CurrentHealthy > 0
	})
}

// budget waits until a budget is as it should be.
func (l *lab) budget(name string, is func(*policyv1.PodDisruptionBudget) bool) {
	l.t.Helper()
	cluster.Until(l.t, patient, "budget "+name+" is counted", func() error {
		b, err := l.admin.PolicyV1().PodDisruptionBudgets(ns).Get(l.t.Context(), name, metav1.GetOptions{})
		if err == nil && !is(b) {
			err = errors.New("not yet")
		}
		return err
	})
}

// drain asks how far the node of a machine is, as the engine does.
func (l *lab) drain(name string, with ...func(*inventory.Drain)) inventory.DrainState {
	l.t.Helper()
	m, h := machine(name)
	for _, f := range with {
		f(&m.Drain)
	}
	s, err := l.nodes.Drain(l.t.Context(), m, h, time.Now())
	l.must(err)
	return s
}

// drained waits until a node is empty: what is deleted is seen a little later.
func (l *lab) drained(name string, with ...func(*inventory.Drain)) inventory.DrainState {
	l.t.Helper()
	var s inventory.DrainState
	cluster.Until(l.t, patient, "node "+name+" is empty", func() error {
		if s = l.drain(name, with...); !s.IsDone {
			return errors.New(s.Detail)
		}
		return nil
	})
	return s
}
