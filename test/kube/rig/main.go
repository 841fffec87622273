package rig

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"slipway.dev/slipway/test/kube/cluster"
)

// shared is the control plane of a package of tests.
var shared struct {
	isOn bool         // Main was called
	ns   atomic.Int64 // namespaces so far: none ends where nothing deletes what is in it
	turn sync.Mutex
	once sync.Once
	logs sync.Once // controller-runtime keeps the first log that it is given
	tb   *lasting
	it   *cluster.Cluster
}

// Main runs the tests of a package on one control plane, which starts with the first rig. It is called from TestMain.
func Main(m *testing.M) {
	shared.isOn = true
	code := m.Run()
	if shared.tb != nil {
		shared.tb.end(code != 0)
	}
	os.Exit(code)
}

// controlPlane returns the control plane that a test uses, alone.
func controlPlane(t testing.TB) *cluster.Cluster {
	t.Helper()
	cluster.Skip(t)
	if !shared.isOn {
		return cluster.Start(t)
	}
	shared.turn.Lock()
	t.Cleanup(shared.turn.Unlock)
	shared.once.Do(func() {
		tb := &lasting{}
		shared.tb = tb
		shared.it = cluster.Start(tb)
	})
	if shared.it == nil {
		t.Fatal("the control plane of this package did not start; see the first test")
	}
	return shared.it
}

// lasting is a testing.TB that lasts as long as the process.
type lasting struct {
	testing.TB
	mu     sync.Mutex
	ends   []func()
	failed bool
}

// Outside returns what New needs in a program that is no test, such as a benchmark, and what ends it. Where a test would
// fail it panics.
func Outside() (tb testing.TB, end func()) {
	l := &lasting{}
	return l, func() { l.end(false) }
}

// TempDir makes a folder that goes at the end.
func (l *lasting) TempDir() string {
	dir, err := os.MkdirTemp("", "slipway-rig-")
	if err != nil {
		panic(err)
	}
	l.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func (l *lasting) Errorf(f string, args ...any) { l.Fatalf(f, args...) }
func (l *lasting) Error(args ...any)            { l.Fatal(args...) }
func (l *lasting) Helper()                      {}
func (l *lasting) Context() context.Context     { return context.Background() }
func (l *lasting) Name() string                 { return "control plane" }
func (l *lasting) Failed() bool                 { return l.failed }
func (l *lasting) Log(args ...any)              { fmt.Fprintln(os.Stderr, args...) }
func (l *lasting) Logf(f string, args ...any) {
	fmt.Fprintf(os.Stderr, f+"\n", args...)
}
func (l *lasting) Fatal(args ...any) { panic(fmt.Sprint(args...)) }
func (l *lasting) Fatalf(f string, args ...any) {
	panic(fmt.Sprintf(f, args...))
}

func (l *lasting) Cleanup(fn func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ends = append(l.ends, fn)
}

func (l *lasting) end(failed bool) {
	l.failed = failed
	for _, fn := range slices.Backward(l.ends) {
		fn()
	}
}

// tidy leaves the cluster as it was found, for the next rig: no object of our kinds or of Cluster API's, no namespace and
// no node of a test.
func (r *Rig) tidy() {
	if !shared.isOn {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	d, err := discovery.NewDiscoveryClientForConfig(r.Config)
	r.must(err)
	lists, err := d.ServerPreferredResources()
	if err != nil && len(lists) == 0 {
		r.t.Errorf("list the kinds of the cluster: %v", err)
	}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		r.must(err)
		for _, res := range list.APIResources {
			isOurs := strings.HasSuffix(gv.Group, "slipway.dev") || strings.HasSuffix(gv.Group, "cluster.x-k8s.io")
			isNode := gv.Group == "" && slices.Contains([]string{"Node", "Pod", "Secret", "PersistentVolume"}, res.Kind) ||
				slices.Contains([]string{"VolumeAttachment", "PodDisruptionBudget"}, res.Kind)
			if isOurs || isNode {
				r.clear(ctx, gv.WithKind(res.Kind))
			}
		}
	}
	var namespaces corev1.NamespaceList
	r.must(r.Client.List(ctx, &namespaces))
	for i := range namespaces.Items {
		if ns := &namespaces.Items[i]; strings.HasPrefix(ns.Name, "t") && ns.DeletionTimestamp == nil {
			_ = r.Client.Delete(ctx, ns) // no controller ends it here; it only has to be out of the way
		}
	}
}

// clear removes all objects of a kind, whatever holds them.
func (r *Rig) clear(ctx context.Context, kind schema.GroupVersionKind) {
	var all unstructured.UnstructuredList
	all.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := r.Client.List(ctx, &all); err != nil {
		if !apierrors.IsNotFound(err) && !apierrors.IsMethodNotSupported(err) {
			r.t.Errorf("list %s: %v", kind.Kind, err)
		}
		return
	}
	for i := range all.Items {
		o := &all.Items[i]
		if strings.HasPrefix(o.GetNamespace(), "kube-") {
			continue
		}
		if len(o.GetFinalizers()) > 0 {
			_ = r.Client.Patch(ctx, o, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
		}
		if err := r.Client.Delete(ctx, o, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
			r.t.Errorf("delete %s %s: %v", kind.Kind, o.GetName(), err)
		}
	}
}
