package manager

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"math/big"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore"
)

func TestNewerKindsAreToldByTheirVersion(t *testing.T) {
	for _, c := range []struct {
		theirs, ours string
		want         bool
	}{
		{"v1.10.0", "v1.9.3", true},
		{"v1.9.3", "v1.10.0", false},
		{"v1.9.3", "v1.9.3", false},
		{"v1.9.3", "v1.9.3-4-gabcdef", false},
		{"v1.10.0", "v1.9.3-4-gabcdef-dirty", true},
		{"v2.0.0", "v2.0.0-rc.1", true},
		{"", "v1.0.0", false},
		{"v9.0.0", "dev", false},
		{"dev", "v1.0.0", false},
	} {
		if got := isAfter(c.theirs, c.ours); got != c.want {
			t.Errorf("%s is after %s: %v", c.theirs, c.ours, got)
		}
	}
}

func TestTheCacheHoldsNoCopyOfASecret(t *testing.T) {
	in := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
		Annotations:   map[string]string{corev1.LastAppliedConfigAnnotation: `{"data":{"value":"c2VjcmV0"}}`, "kept": "yes"},
	}}
	out, err := slim(in)
	if err != nil {
		t.Fatal(err)
	}
	o := out.(*metav1.PartialObjectMetadata)
	if len(o.ManagedFields) > 0 || len(o.Annotations) != 1 || o.Annotations["kept"] != "yes" {
		t.Errorf("%+v", o.ObjectMeta)
	}
}

func TestManagersThatDoOtherWorkHaveOtherLeases(t *testing.T) {
	all := Options{}.LeaseName()
	a := Options{Namespaces: []string{"a", "b"}}.LeaseName()
	if all != "slipway" || a == all || a != (Options{Namespaces: []string{"b", "a"}}).LeaseName() || a == (Options{WatchFilter: "ab"}).LeaseName() {
		t.Errorf("leases %s and %s", all, a)
	}
}

func TestTheRightsAreThoseOfTheRoles(t *testing.T) {
	all, err := rights([]inventory.ClusterMode{inventory.ModeStandalone}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var text []string
	for _, r := range all {
		text = append(text, r.verb+" "+r.String())
		if strings.Contains(r.group, "cluster.x-k8s.io") || r.verb == "deletecollection" {
			t.Errorf("the stand-alone controllers need %s %s", r.verb, r)
		}
	}
	joined := strings.Join(text, "\n") + "\n"
	for _, want := range []string{"patch metalmachines.metal.slipway.dev/status\n", "update leases.coordination.k8s.io\n"} {
		if !strings.Contains(joined, want) {
			t.Errorf("%q is not among the rights", want)
		}
	}
	if strings.Contains(joined, "secrets\n") {
		t.Error("the stand-alone controllers need the Secrets of the whole cluster")
	}
	narrow, err := rights([]inventory.ClusterMode{inventory.ModeStandalone}, []string{"team"})
	if err != nil || len(narrow) == 0 {
		t.Fatal(err)
	}
	for _, r := range narrow {
		if r.namespace != "team" || strings.HasPrefix(r.resource, "metalhosts") || r.resource == "customresourcedefinitions" {
			t.Errorf("an account of one namespace needs %s %s in %q", r.verb, r, r.namespace)
		}
	}
	e := missing("lab", all)
	if e.Kind != inventory.Forbidden || !strings.Contains(e.Msg, "more") || !strings.Contains(e.Hint, "slipway manifests") {
		t.Errorf("%v, %s", e, e.Hint)
	}
}

func TestTheSameClusterTwiceIsFineForDifferentObjectsOnly(t *testing.T) {
	for _, c := range []struct {
		about string
		a, b  inventory.Cluster
		want  bool
	}{
		{"all and all", inventory.Cluster{}, inventory.Cluster{}, true},
		{"all and one namespace", inventory.Cluster{}, inventory.Cluster{Namespaces: []string{"a"}}, true},
		{"different namespaces", inventory.Cluster{Namespaces: []string{"a", "b"}}, inventory.Cluster{Namespaces: []string{"c"}}, false},
		{"a namespace of both", inventory.Cluster{Namespaces: []string{"a", "b"}}, inventory.Cluster{Namespaces: []string{"c", "b"}}, true},
		{"different filters", inventory.Cluster{WatchFilter: "a"}, inventory.Cluster{WatchFilter: "b"}, false},
		{"a filter and none", inventory.Cluster{WatchFilter: "a"}, inventory.Cluster{}, true},
		{"different modes", inventory.Cluster{Modes: []inventory.ClusterMode{inventory.ModeCAPI}}, inventory.Cluster{Modes: []inventory.ClusterMode{inventory.ModeStandalone}}, false},
		{"a mode and all", inventory.Cluster{Modes: []inventory.ClusterMode{inventory.ModeCAPI}}, inventory.Cluster{}, true},
	} {
		if overlap(c.a, c.b) != c.want || overlap(c.b, c.a) != c.want {
			t.Errorf("%s: want %v", c.about, c.want)
		}
	}
}

func TestOfTwoThatAttachOneClusterInTheSameInstantOneGoesOn(t *testing.T) {
	store, err := sqlstore.Open(t.Context(), sqlstore.Config{Path: filepath.Join(t.TempDir(), "slipway.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	a := New(Config{Store: store})
	now := time.Now()
	var rows []inventory.Cluster
	err = store.Write(t.Context(), func(tx inventory.Tx) error {
		errs := []error{tx.Secrets().Create(&inventory.Secret{Name: "k", Sealed: []byte("x")}, now)}
		for _, name := range []string{"a", "b", "c"} { // c looks at other objects
			c := inventory.Cluster{Name: name, Kubeconfig: "k", State: inventory.ClusterAttaching}
			if name == "c" {
				c.WatchFilter = "c"
			} else {
				c.WatchFilter = "ab"
			}
			errs = append(errs, tx.Clusters().Create(&c, now))
			rows = append(rows, c)
		}
		return errors.Join(errs...)
	})
	if err != nil {
		t.Fatal(err)
	}
	take := func() (refused map[string]bool) {
		refused = map[string]bool{}
		var mu sync.Mutex
		var all sync.WaitGroup
		for _, c := range rows {
			all.Go(func() {
				err := a.take(t.Context(), c, "the-uid", nil)
				if err != nil && inventory.KindOf(err) != inventory.Conflict {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				refused[c.Name] = err != nil
			})
		}
		all.Wait()
		return refused
	}
	first := take()
	if first["a"] == first["b"] || first["c"] {
		t.Fatalf("refused are %v", first)
	}
	if again := take(); again["a"] != first["a"] || again["b"] != first["b"] || again["c"] {
		t.Errorf("refused are %v, before %v", again, first)
	}
	if err := a.isTwice(t.Context(), inventory.Cluster{Name: "new"}, "the-uid"); inventory.KindOf(err) != inventory.Conflict {
		t.Errorf("a third one: %v", err)
	}
}

type opened map[string]string

func (o opened) Open(_ context.Context, name string) ([]byte, error) { return []byte(o[name]), nil }

// TestAServerThatSaysItIsAnotherClusterIsRefused: an attachment that looks at other objects may be of the same cluster; that
// it says so proves nothing.
func TestAServerThatSaysItIsAnotherClusterIsRefused(t *testing.T) {
	store, err := sqlstore.Open(t.Context(), sqlstore.Config{Path: filepath.Join(t.TempDir(), "db")})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	file := func(ca string) string {
		return "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n" +
			"clusters: [{name: a, cluster: {server: 'https://10.0.0.1:6443', certificate-authority-data: " + base64.StdEncoding.EncodeToString([]byte(ca)) + "}}]\n" +
			"users: [{name: a, user: {token: t}}]\n"
	}
	a := New(Config{Store: store, Secrets: opened{"cluster-prod": file(testCA(t))}})
	err = store.Write(t.Context(), func(tx inventory.Tx) error {
		c := inventory.Cluster{Name: "prod", Kubeconfig: "cluster-prod", State: inventory.ClusterAttaching, Namespaces: []string{"a"}}
		err := errors.Join(tx.Secrets().Create(&inventory.Secret{Name: "cluster-prod", Sealed: []byte("x")}, time.Now()), tx.Clusters().Create(&c, time.Now()))
		c.UID = "the-uid"
		return errors.Join(err, tx.NoteCluster(&c))
	})
	if err != nil {
		t.Fatal(err)
	}
	other := inventory.Cluster{Name: "other", Namespaces: []string{"b"}}
	same, err := a.open("other", "a kubeconfig", []byte(a.cfg.Secrets.(opened)["cluster-prod"]))
	if err != nil {
		t.Fatal(err)
	}
	same.uid = "the-uid"
	if err := a.isImpostor(t.Context(), other, same); err != nil {
		t.Errorf("the same cluster, other objects: %v", err)
	}
	impostor, err := a.open("other", "a kubeconfig", []byte(file(testCA(t))))
	if err != nil {
		t.Fatal(err)
	}
	impostor.uid = "the-uid"
	if err := a.isImpostor(t.Context(), other, impostor); inventory.KindOf(err) != inventory.Conflict {
		t.Errorf("a server with another authority: %v", err)
	}
	impostor.uid = "another-uid"
	if err := a.isImpostor(t.Context(), other, impostor); err != nil {
		t.Errorf("another cluster: %v", err)
	}
}

// testCA makes a certificate authority.
func testCA(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true}, &x509.Certificate{SerialNumber: big.NewInt(1)}, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func TestControllersAreNotHeldToFiveRequestsASecond(t *testing.T) {
	own, hangUp := ownConnections(&rest.Config{})
	defer hangUp()
	if own.QPS < 100 || own.Burst < 100 {
		t.Errorf("%g requests a second, %d at once", own.QPS, own.Burst)
	}
	own, hangUp = ownConnections(&rest.Config{QPS: -1})
	defer hangUp()
	if own.QPS != -1 {
		t.Errorf("what was said is changed to %g", own.QPS)
	}
}

func TestWhatAClusterIsKnownByStays(t *testing.T) {
	const a, b = "6f1c2f0e-5d0e-4a35-8a52-3a51d9a5a001", "6f1c2f0e-5d0e-4a35-8a52-3a51d9a5b002"
	for what, c := range map[string]struct {
		before, now string
		want        inventory.Kind
	}{
		"the first time":                        {"", a, ""},
		"the same":                              {a, a, ""},
		"another":                               {a, b, inventory.Conflict},
		"nothing":                               {"", "", inventory.Invalid},
		"nothing any more":                      {a, "", inventory.Invalid},
		"the word for machines of people":       {"", inventory.FromPeople, inventory.Invalid},
		"the beginning of another's owners":     {"", a + "/team", inventory.Invalid},
		"a text that would not fit into a line": {"", a + "\nx", inventory.Invalid},
	} {
		if err := isSame("lab", c.before, c.now); inventory.KindOf(err) != c.want {
			t.Errorf("%s: %v, want %q", what, err, c.want)
		}
	}
}

// TestARowKeepsItsCluster: pools and takeovers are granted by UID, so a new one would shed them.
func TestARowKeepsItsCluster(t *testing.T) {
	store, err := sqlstore.Open(t.Context(), sqlstore.Config{Path: filepath.Join(t.TempDir(), "db")})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	a := New(Config{Store: store})
	c := inventory.Cluster{Name: "lab", Kubeconfig: "k", State: inventory.ClusterAttaching}
	if err := store.Write(t.Context(), func(tx inventory.Tx) error {
		return errors.Join(tx.Secrets().Create(&inventory.Secret{Name: "k", Sealed: []byte("x")}, time.Now()), tx.Clusters().Create(&c, time.Now()))
	}); err != nil {
		t.Fatal(err)
	}
	if err := a.take(t.Context(), c, "uid-1", nil); err != nil {
		t.Fatal(err)
	}
	if err := a.take(t.Context(), c, "uid-2", nil); inventory.KindOf(err) != inventory.Conflict {
		t.Errorf("another UID: %v", err)
	}
	if err := a.take(t.Context(), c, "uid-1", nil); err != nil {
		t.Errorf("its own: %v", err)
	}
}
