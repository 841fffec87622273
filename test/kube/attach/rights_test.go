package attach_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/manager"
	"slipway.dev/slipway/kubernetes/manifests"
	metal "slipway.dev/slipway/kubernetes/v1alpha1"
	"slipway.dev/slipway/test/kube/cluster"
)

func (a *admin) namespace(name string) {
	a.t.Helper()
	must(a.t, a.Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
}

// bind gives a user a role.
func (a *admin) bind(user, namespace, kind, role string) {
	a.t.Helper()
	subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: user, APIGroup: rbacv1.GroupName}}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role}
	var o client.Object = &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: user + "-" + role}, Subjects: subjects, RoleRef: ref}
	if namespace == "" {
		o = &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user + "-" + role}, Subjects: subjects, RoleRef: ref}
	}
	must(a.t, a.Create(context.Background(), o))
}

// wants makes a MetalMachine that needs a Secret.
func (a *admin) wants(namespace, name string) {
	a.t.Helper()
	m := &metal.MetalMachine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	m.Spec.OS.Profile = "debian"
	m.Spec.Files = []metal.File{{Path: "/etc/key", ContentFrom: &metal.SecretKeySelector{Name: "keys", Key: "k"}}}
	must(a.t, a.Create(context.Background(), m))
}

// untilSays waits until a MetalMachine is not ready, and says why.
func (a *admin) untilSays(namespace, name string, words ...string) {
	a.t.Helper()
	cluster.Until(a.t, limit, fmt.Sprintf("%s/%s says %q", namespace, name, words), func() error {
		m := &metal.MetalMachine{}
		if err := a.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: name}, m); err != nil {
			return err
		}
		c := apimeta.FindStatusCondition(m.Status.Conditions, metal.Ready)
		if c == nil {
			return fmt.Errorf("it says nothing")
		}
		for _, w := range words {
			if !strings.Contains(c.Reason+" "+c.Message, w) {
				return fmt.Errorf("it says %s %q", c.Reason, c.Message)
			}
		}
		return nil
	})
}

func install(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	cfg, err := clientcmd.RESTConfigFromKubeConfig(c.Admin())
	must(t, err)
	must(t, manager.Install(context.Background(), cfg, []inventory.ClusterMode{inventory.ModeStandalone}, "v1.0.0"))
}

// TestAnAccountWithRightsInOneNamespaceIsEnough attaches a cluster with a kubeconfig that may do something in one namespace
// only.
func TestAnAccountWithRightsInOneNamespaceIsEnough(t *testing.T) {
	c := cluster.Start(t)
	a, ctx := adminOf(t, c), context.Background()
	install(t, c)
	a.namespace("team")
	objects, err := manifests.Namespaced(manifests.Standalone, []string{"team"})
	must(t, err)
	for _, o := range objects {
		must(t, a.Create(ctx, o))
	}
	a.bind("nobody", "team", "Role", "slipway")

	s := newSide(t, "first", "v1.2.0", &acting{})
	s.isReal.Store(true)
	row := inventory.Cluster{Name: "lab", Modes: []inventory.ClusterMode{inventory.ModeStandalone}, Namespaces: []string{"team"}}
	k := s.attacher.Check(ctx, row, c.Kubeconfig("nobody"))
	for _, r := range k.Results {
		if !r.IsGood {
			t.Errorf("%s: %s (%s)", r.Name, r.Detail, r.Hint)
		}
	}
	wide := row
	wide.Namespaces = nil
	wantBad(t, s.attacher.Check(ctx, wide, c.Kubeconfig("nobody")), "rights", "customresourcedefinitions")

	s.attach(row, c.Kubeconfig("nobody"))
	if got := s.until("lab", inventory.ClusterAttached); got.UID == "" {
		t.Error("it has no UID")
	}
	must(t, a.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "keys"}, StringData: map[string]string{"k": "v"}}))
	a.wants("team", "one")
	a.wants("default", "two")
	a.untilSays("team", "one", "InvalidConfiguration", "debian") // its Secret was read; there is no such profile
	cfg, err := clientcmd.RESTConfigFromKubeConfig(c.Kubeconfig("nobody"))
	must(t, err)
	connections, err := rest.HTTPClientFor(cfg)
	must(t, err)
	weak, err := client.New(cfg, client.Options{Scheme: a.Scheme(), HTTPClient: connections})
	must(t, err)
	if err := weak.List(ctx, &metal.MetalHostList{}); !apierrors.IsForbidden(err) {
		t.Errorf("the account may list hosts: %v", err)
	}
	two := &metal.MetalMachine{}
	must(t, a.Get(ctx, client.ObjectKey{Namespace: "default", Name: "two"}, two))
	if len(two.Finalizers)+len(two.Status.Conditions) > 0 {
		t.Errorf("another namespace was looked at: %+v", two.ObjectMeta)
	}
	must(t, s.attacher.Detach(ctx, "lab", manager.Parting{By: "the test"}))
	one := &metal.MetalMachine{}
	must(t, a.Get(ctx, client.ObjectKey{Namespace: "team", Name: "one"}, one))
	if len(one.Finalizers) > 0 {
		t.Errorf("finalizers %v are left", one.Finalizers)
	}
	// Idle connections close by themselves after 90 seconds; only that of the administrator may be left.
	utilnet.CloseIdleConnectionsFor(connections.Transport)
	untilNothingRuns(t)
}

// TestTheStandaloneRoleReadsSecretsWhereItIsBoundOnly: without a binding an object says what to do, and it goes on by itself
// when that is done.
func TestTheStandaloneRoleReadsSecretsWhereItIsBoundOnly(t *testing.T) {
	c := cluster.Start(t)
	a, ctx := adminOf(t, c), context.Background()
	install(t, c)
	a.namespace("team")
	a.namespace("others")
	a.bind("slip", "", "ClusterRole", "slipway-standalone")
	a.bind("slip", manager.LeaseNamespace, "Role", "slipway-leader")
	for _, ns := range []string{"team", "others"} {
		must(t, a.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "keys"}, StringData: map[string]string{"k": "v"}}))
	}
	cfg, err := clientcmd.RESTConfigFromKubeConfig(c.Kubeconfig("slip"))
	must(t, err)
	weak, err := client.New(cfg, client.Options{Scheme: a.Scheme()})
	must(t, err)
	if err := weak.List(ctx, &corev1.SecretList{}); !apierrors.IsForbidden(err) {
		t.Errorf("the stand-alone role lists all Secrets: %v", err)
	}
	s := newSide(t, "first", "v1.2.0", &acting{})
	s.isReal.Store(true)
	s.attach(inventory.Cluster{Name: "lab", Modes: []inventory.ClusterMode{inventory.ModeStandalone}}, c.Kubeconfig("slip"))
	s.until("lab", inventory.ClusterAttached)
	a.wants("team", "one")
	a.untilSays("team", "one", "may not read Secrets of namespace team", "kubectl create rolebinding slipway-secrets -n team")
	a.bind("slip", "team", "ClusterRole", "slipway-secrets")
	a.untilSays("team", "one", "InvalidConfiguration", "debian") // its Secret was read; there is no such profile
	if err := weak.Get(ctx, client.ObjectKey{Namespace: "others", Name: "keys"}, &corev1.Secret{}); !apierrors.IsForbidden(err) {
		t.Errorf("a Secret of a namespace without a binding is read: %v", err)
	}
	s.until("lab", inventory.ClusterAttached)
}
