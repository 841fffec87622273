package attach_test

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/manager"
	metal "slipway.dev/slipway/kubernetes/v1alpha1"
	"slipway.dev/slipway/test/kube/cluster"
)

const (
	machinesCRD = "metalmachines.metal.slipway.dev"
	ours        = "metal.slipway.dev/metalmachine"
	theirs      = "example.com/theirs"
)

// TestAttachedClusters is one story on one API server; its parts build on each other.
func TestAttachedClusters(t *testing.T) {
	c := cluster.Start(t)
	a := adminOf(t, c)
	acts := &acting{}
	ctx := context.Background()
	s := newSide(t, "first", "v1.2.0", acts)
	sub := func(name string, test func(t *testing.T)) {
		t.Helper()
		if !t.Run(name, func(sub *testing.T) {
			s.t, a.t = sub, sub
			defer func() { s.t, a.t = t, t }()
			test(sub)
		}) {
			t.FailNow()
		}
	}

	sub("an account without rights is told what it lacks, and nothing is changed", func(t *testing.T) {
		k := s.attacher.Check(ctx, inventory.Cluster{Name: "lab"}, c.Kubeconfig("nobody"))
		wantBad(t, k, "rights", "jointargets.metal.slipway.dev", "more", "slipway manifests")
		wantBad(t, k, "kinds", "customresourcedefinitions", "slipway manifests")
		s.attach(inventory.Cluster{Name: "lab", Modes: []inventory.ClusterMode{inventory.ModeStandalone}}, c.Kubeconfig("nobody"))
		s.until("lab", inventory.ClusterFailed, "may not", "slipway manifests")
		s.untilIssue("lab", true)
		if _, err := a.crd(machinesCRD); !apierrors.IsNotFound(err) {
			t.Errorf("the kind is there: %v", err)
		}
	})
	sub("once an administrator has installed everything and bound the account, it is enough", func(t *testing.T) {
		cfg, err := clientcmd.RESTConfigFromKubeConfig(c.Admin())
		must(t, err)
		must(t, manager.Install(ctx, cfg, []inventory.ClusterMode{inventory.ModeStandalone}, "v1.0.0"))
		subject := []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: "nobody", APIGroup: rbacv1.GroupName}}
		must(t, a.Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "nobody"}, Subjects: subject,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "slipway-standalone"},
		}))
		must(t, a.Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "nobody", Namespace: manager.LeaseNamespace}, Subjects: subject,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "slipway-leader"},
		}))
		s.until("lab", inventory.ClusterAttached)
		s.untilIssue("lab", false)
		a.machine("one")
		a.untilMarked("one", "first")
	})
	sub("a kubeconfig that the cluster does not accept is said to be the cause, and another one heals it", func(t *testing.T) {
		s.give("lab", c.TokenKubeconfig("nonsense"))
		s.until("lab", inventory.ClusterFailed, "does not accept the credentials", "slipway cluster attach --name lab")
		s.untilIssue("lab", true)
		s.give("lab", c.Admin())
		got := s.until("lab", inventory.ClusterAttached)
		s.untilIssue("lab", false)
		if got.UID == "" || !strings.HasPrefix(got.Kubernetes, "v1.") || got.SeenAt.IsZero() {
			t.Errorf("not noted: %+v", got)
		}
		crd, err := a.crd(machinesCRD)
		must(t, err)
		if by := crd.GetAnnotations()["metal.slipway.dev/installed-by"]; by != "v1.2.0" {
			t.Errorf("an older kind was not replaced: installed by %q", by)
		}
	})
	sub("a cluster is attached once: under another name it is refused, and the first is named", func(t *testing.T) {
		wantBad(t, s.attacher.Check(ctx, inventory.Cluster{Name: "again"}, c.Admin()), "cluster", "attached as lab", "slipway cluster detach lab")
		s.attach(inventory.Cluster{Name: "again"}, c.Admin())
		s.until("again", inventory.ClusterFailed, "attached as lab", "slipway cluster detach lab")
		must(t, s.attacher.Detach(ctx, "again", manager.Parting{Force: true, By: "the test"}))
		a.machine("zero")
		a.untilMarked("zero", "first") // and goes on
		s.until("lab", inventory.ClusterAttached)
	})
	sub("the kinds of a newer version stay as they are", func(t *testing.T) {
		crd, err := a.crd(machinesCRD)
		must(t, err)
		crd.SetAnnotations(map[string]string{"metal.slipway.dev/installed-by": "v1.10.0", "example.com/newer": "yes"})
		must(t, a.Update(ctx, crd))
		old := s.until("lab", inventory.ClusterAttached)
		s.restart("lab")
		cluster.Until(t, limit, "it is attached anew", func() error {
			got, err := s.find("lab")
			if err == nil && (got.Version == old.Version || got.State != inventory.ClusterAttached) {
				err = fmt.Errorf("version %d is %s", got.Version, got.State)
			}
			return err
		})
		a.machine("two")
		a.untilMarked("two", "first")
		crd, err = a.crd(machinesCRD)
		must(t, err)
		if by := crd.GetAnnotations()["metal.slipway.dev/installed-by"]; by != "v1.10.0" {
			t.Errorf("a newer kind was replaced by that of %q", by)
		}
	})
	sub("while the server is away it is said so, and work goes on by itself when it is back", func(t *testing.T) {
		c.StopAPI()
		s.until("lab", inventory.ClusterUnreachable, "slipway cluster check lab")
		s.untilIssue("lab", true)
		k := s.attacher.Check(ctx, inventory.Cluster{Name: "lab", Kubeconfig: manager.KubeconfigSecret("lab")}, nil)
		wantBad(t, k, "server", "slipway cluster check")
		err := s.attacher.Detach(ctx, "lab", manager.Parting{By: "the test"})
		if err == nil || !strings.Contains(err.Error(), "lab was not detached") {
			t.Errorf("detached without letting go of anything: %v", err)
		}
		c.StartAPI()
		s.until("lab", inventory.ClusterAttached)
		s.untilIssue("lab", false)
		a.machine("three")
		a.untilMarked("three", "first")
	})
	sub("of two appliances one acts, and the other takes over", func(t *testing.T) {
		other := newSide(t, "second", "v1.2.0", acts)
		other.attach(inventory.Cluster{Name: "same"}, c.Admin())
		other.until("same", inventory.ClusterStandby, "first/lab")
		k := other.attacher.Check(ctx, inventory.Cluster{Name: "same"}, c.Admin())
		if i := slices.IndexFunc(k.Results, func(r manager.Result) bool { return r.Name == "lease" }); i < 0 || !strings.Contains(k.Results[i].Detail, "stands by") {
			t.Errorf("the lease is not told: %+v", k.Results)
		}
		if err := other.attacher.Detach(ctx, "same", manager.Parting{Purge: true, By: "the test"}); kindOf(err) != inventory.Conflict {
			t.Errorf("a purge below the feet of another: %v", err)
		}
		other.until("same", inventory.ClusterStandby)
		must(t, s.attacher.Detach(ctx, "lab", manager.Parting{By: "the test"}))
		other.until("same", inventory.ClusterAttached)
		a.machine("four")
		a.untilMarked("four", "second")
		other.stop()
		s.attach(inventory.Cluster{Name: "lab"}, c.Admin())
		s.until("lab", inventory.ClusterAttached)
		a.untilMarked("four", "first")
		acts.mu.Lock()
		defer acts.mu.Unlock()
		for uid, n := range acts.worst {
			if n != 1 {
				t.Errorf("%d managers acted at once in cluster %s", n, uid)
			}
		}
	})
	sub("a cluster whose controllers break down leaves the others alone", func(t *testing.T) {
		must(t, s.attacher.Detach(ctx, "lab", manager.Parting{By: "the test"}))
		s.attach(inventory.Cluster{Name: "lab", Namespaces: []string{"default"}}, c.Admin())
		s.until("lab", inventory.ClusterAttached)
		s.panics.Store("broken")
		s.attach(inventory.Cluster{Name: "broken", Namespaces: []string{"kube-public"}}, c.Admin())
		s.until("broken", inventory.ClusterFailed, "broke down: a bug")
		a.machine("five")
		a.untilMarked("five", "first")
		s.panics.Store("")
		s.until("broken", inventory.ClusterAttached)
		must(t, s.attacher.Detach(ctx, "broken", manager.Parting{By: "the test"}))
	})
	sub("namespaces and watch filter narrow what is seen", func(t *testing.T) {
		must(t, s.attacher.Detach(ctx, "lab", manager.Parting{By: "the test"}))
		s.attach(inventory.Cluster{Name: "lab", Namespaces: []string{"default"}, WatchFilter: "metal"}, c.Admin())
		s.until("lab", inventory.ClusterAttached)
		a.machine("plain")
		m := a.machine("ours-alone")
		m.Labels = map[string]string{"cluster.x-k8s.io/watch-filter": "metal"}
		must(t, a.Update(ctx, m))
		a.untilMarked("ours-alone", "first")
		plain := &metal.MetalMachine{}
		must(t, a.Get(ctx, client.ObjectKey{Namespace: "default", Name: "plain"}, plain))
		if plain.Annotations[markAnnotation] != "" {
			t.Error("an object without the label was seen")
		}
	})
	sub("detached, nothing hangs in the cluster and nothing is left here", func(t *testing.T) {
		a.machine("held", ours, theirs)
		must(t, s.attacher.Detach(ctx, "lab", manager.Parting{By: "the test"}))
		m := &metal.MetalMachine{}
		must(t, a.Get(ctx, client.ObjectKey{Namespace: "default", Name: "held"}, m))
		if len(m.Finalizers) != 1 || m.Finalizers[0] != theirs {
			t.Errorf("finalizers %v", m.Finalizers)
		}
		if _, err := s.find("lab"); kindOf(err) != inventory.NotFound {
			t.Errorf("the row is there: %v", err)
		}
		if _, err := s.Open(ctx, manager.KubeconfigSecret("lab")); kindOf(err) != inventory.NotFound {
			t.Errorf("the kubeconfig is there: %v", err)
		}
		untilNothingRuns(t)
	})
	sub("attached again, it goes on with what is there", func(t *testing.T) {
		a.machine("six")
		s.attach(inventory.Cluster{Name: "again"}, c.Admin())
		s.until("again", inventory.ClusterAttached)
		a.untilMarked("six", "first")
	})
	sub("detached for good, the cluster is as it was before", func(t *testing.T) {
		must(t, s.attacher.Detach(ctx, "again", manager.Parting{Purge: true, By: "the test"}))
		m := &metal.MetalMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "held"}}
		// It is somebody else's finalizer, who is done with it; the API server deletes the object meanwhile.
		must(t, a.Patch(ctx, m, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
		cluster.Until(t, limit, "the kinds are gone", func() error {
			if _, err := a.crd(machinesCRD); !apierrors.IsNotFound(err) {
				return fmt.Errorf("still there: %v", err)
			}
			return nil
		})
	})
	sub("one that never answers is forgotten by force", func(t *testing.T) {
		dead := strings.Replace(string(c.Admin()), c.Endpoint(), "127.0.0.1:1", 1)
		s.attach(inventory.Cluster{Name: "dead"}, []byte(dead))
		s.until("dead", inventory.ClusterUnreachable, "cannot be reached")
		must(t, s.attacher.Detach(ctx, "dead", manager.Parting{Force: true, By: "the test"}))
		s.untilIssue("dead", false)
		untilNothingRuns(t)
	})
}

// restart has a cluster attached anew.
func (s *side) restart(name string) {
	s.t.Helper()
	must(s.t, s.store.Write(context.Background(), func(tx inventory.Tx) error {
		c, err := tx.Clusters().Find(name)
		if err != nil {
			return err
		}
		c.Modes = nil
		if err := tx.NoteCluster(&inventory.Cluster{Name: name, State: inventory.ClusterAttaching}); err != nil {
			return err
		}
		return tx.Clusters().Update(&c, c.UpdatedAt)
	}))
	s.attacher.Wake()
}

func kindOf(err error) inventory.Kind {
	var e *inventory.Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}

func wantBad(t *testing.T, k manager.Checked, name string, words ...string) {
	t.Helper()
	for _, r := range k.Results {
		if r.Name != name {
			continue
		}
		if r.IsGood {
			t.Errorf("%s is good: %s", name, r.Detail)
		}
		for _, w := range words {
			if !strings.Contains(r.Detail+" "+r.Hint, w) {
				t.Errorf("%s: %q, %q does not say %q", name, r.Detail, r.Hint, w)
			}
		}
		return
	}
	t.Errorf("%s was not looked at: %+v", name, k.Results)
}

// untilNothingRuns waits until no goroutine of an attached cluster is left, nor of a connection to one but for the test's.
func untilNothingRuns(t *testing.T) {
	t.Helper()
	cluster.Until(t, limit, "nothing of a cluster runs any more", func() error {
		stacks := make([]byte, 1<<20)
		connectionN := 0
		for _, g := range strings.Split(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
			for _, what := range []string{"sigs.k8s.io/", "k8s.io/client-go/", "attach.(*Attacher).follow", "attach.(*life)"} {
				if strings.Contains(g, what) {
					return fmt.Errorf("%s is left:\n%s", what, g)
				}
			}
			if strings.Contains(g, "readLoop") {
				connectionN++
			}
		}
		if connectionN > 1 {
			return fmt.Errorf("%d connections are left", connectionN)
		}
		return nil
	})
}

// TestTwoClustersAtOnce has one appliance look after two API servers, of which one goes away.
func TestTwoClustersAtOnce(t *testing.T) {
	one, two := cluster.Start(t), cluster.Start(t)
	acts := &acting{}
	s := newSide(t, "first", "v1.2.0", acts)
	s.attach(inventory.Cluster{Name: "one"}, one.Admin())
	s.attach(inventory.Cluster{Name: "two"}, two.Admin())
	s.until("one", inventory.ClusterAttached)
	s.until("two", inventory.ClusterAttached)
	atOne, atTwo := adminOf(t, one), adminOf(t, two)
	atOne.machine("m")
	atTwo.machine("m")
	atOne.untilMarked("m", "first")
	atTwo.untilMarked("m", "first")
	one.StopAPI()
	s.until("one", inventory.ClusterUnreachable)
	atTwo.machine("n")
	atTwo.untilMarked("n", "first")
	if c := s.until("two", inventory.ClusterAttached); c.Reason != "" {
		t.Errorf("two: %s", c.Reason)
	}
	one.StartAPI()
	s.until("one", inventory.ClusterAttached)
}

// TestAnOldServerIsRefused needs no real API server: an old one could not be built.
func TestAnOldServerIsRefused(t *testing.T) {
	cluster.Skip(t)
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"major":"1","minor":"29","gitVersion":"v1.29.14"}`))
	}))
	defer srv.Close()
	text, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: srv.URL, CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {Token: "t"}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	})
	must(t, err)
	s := newSide(t, "first", "v1.2.0", &acting{})
	wantBad(t, s.attacher.Check(context.Background(), inventory.Cluster{Name: "old"}, text), "server", "v1.29.14", "1.30", "upgrade")
	s.attach(inventory.Cluster{Name: "old"}, text)
	s.until("old", inventory.ClusterFailed, "v1.29.14", "1.30 or newer")
}
