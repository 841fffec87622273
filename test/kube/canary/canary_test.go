// Package canary_test looks for secrets where none may be. Every way in which one comes to Slipway from a cluster is gone
// through once with a value that can be told, well and badly; afterwards everything that is kept or said is searched.
package canary_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/manager"
	"slipway.dev/slipway/kubernetes/standalone"
	"slipway.dev/slipway/kubernetes/v1alpha1"
	"slipway.dev/slipway/test/kube/rig"
	"slipway.dev/slipway/web"
)

func TestMain(m *testing.M) { rig.Main(m) }

// The values that nobody may see, each from another door.
const (
	inBootstrap = "canary-in-bootstrap-data-6c1"
	inBad       = "canary-in-bad-bootstrap-data-7d2"
	inFormat    = "canary-in-data-of-unknown-format-8e3"
	inFile      = "canary-in-a-file-9f4"
	inHash      = "$6$canary$0fCanaryInAPasswordHash1a5"
	inBMC       = "canary-in-a-controllers-password-2b6"
	inToken     = "s3cr3tc4n4ry0000" // the secret half of a bootstrap token
	inGarbage   = "canary-in-a-broken-kubeconfig-3c7"
	inBadToken  = "canary-in-a-broken-token-4d8"
)

// words is a log that may be read while it is written.
type words struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (w *words) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.Write(b)
}

func (w *words) text() []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	return bytes.Clone(w.buf.Bytes())
}

// story is what one test sees of a rig.
type story struct {
	*rig.Rig
	t  *testing.T
	ns string
}

func TestNoSecretIsSeenAnywhere(t *testing.T) {
	log := &words{}
	logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug - 8}))
	manager.RouteLogs(logger)
	t.Cleanup(func() { manager.RouteLogs(slog.New(slog.DiscardHandler)) })
	r := rig.New(t, rig.Options{Hosts: 7, Setup: []rig.Setup{standalone.Setup}, Log: logger})
	s := &story{Rig: r, t: t, ns: r.Namespace(t)}
	canaries := map[string]string{
		"bootstrap data": inBootstrap, "bad bootstrap data": inBad, "data of an unknown format": inFormat, "a file": inFile,
		"a password's hash": inHash, "a controller's password": inBMC, "a stored token": inToken, "a broken kubeconfig": inGarbage, "a broken token": inBadToken,
		"a kubeconfig": keyOf(t, r.Kubeconfig),
	}
	s.tell()
	canaries["a minted token"] = s.minted("node-of-prod")

	// Where it must be, it is: else nothing is proven.
	s.has("data", inBootstrap)
	s.has("files", inFile)
	s.has("files", inHash)
	s.has("node-of-static", inToken)

	places := map[string][]byte{"the log": log.text()}
	s.objects(places)
	s.database(places)
	s.answers(places)
	s.search(places, canaries)

	// Nor is it when the machines go.
	for _, name := range []string{"data", "files", "node-of-static", "node-of-prod"} {
		s.delete(&v1alpha1.MetalMachine{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name}})
	}
	places = map[string][]byte{"the log, later": log.text()}
	s.objects(places)
	s.database(places)
	s.search(places, canaries)
}

// keyOf is a piece of the private key in a kubeconfig, as it stands there.
func keyOf(t *testing.T, kubeconfig []byte) string {
	t.Helper()
	cfg, err := clientcmd.Load(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range cfg.AuthInfos {
		block, _ := pem.Decode(u.ClientKeyData)
		return string(pem.EncodeToMemory(block))[40:100]
	}
	t.Fatal("the kubeconfig has no user")
	return ""
}

// tell goes through every door once.
func (s *story) tell() {
	s.secret("bootstrap", "value", "#cloud-config\nwrite_files:\n- {path: /etc/canary, content: "+inBootstrap+"}\n", "format", "cloud-config")
	s.machine("data", func(mm *v1alpha1.MetalMachine) {
		mm.Spec.Bootstrap = &v1alpha1.Bootstrap{DataSecretName: "bootstrap"}
	})
	s.secret("bad", "value", "#cloud-config\nwrite_files: "+inBad+"\nruncmd: ["+inBad+"\n", "format", "cloud-config")
	s.machine("bad", func(mm *v1alpha1.MetalMachine) {
		mm.Spec.Bootstrap = &v1alpha1.Bootstrap{DataSecretName: "bad"}
	})
	s.secret("strange", "value", inFormat, "format", "talos-"+inFormat)
	s.machine("strange", func(mm *v1alpha1.MetalMachine) {
		mm.Spec.Bootstrap = &v1alpha1.Bootstrap{DataSecretName: "strange"}
	})
	s.secret("files", "file", inFile, "hash", inHash)
	s.machine("files", func(mm *v1alpha1.MetalMachine) {
		mm.Spec.Files = []v1alpha1.File{{Path: "/etc/canary", ContentFrom: &v1alpha1.SecretKeySelector{Name: "files", Key: "file"}}}
		mm.Spec.Users = []v1alpha1.User{{Name: "ops", PasswordHashFrom: &v1alpha1.SecretKeySelector{Name: "files", Key: "hash"}}}
	})
	s.secret("targets", "token", "canary."+inToken, "kubeconfig", string(s.Kubeconfig), "garbage", "clusters: ["+inGarbage, "badtoken", inBadToken)
	at := func(key string) *v1alpha1.SecretKeySelector {
		return &v1alpha1.SecretKeySelector{Name: "targets", Key: key}
	}
	hash := []v1alpha1.CACertHash{v1alpha1.CACertHash(s.Cluster.CAHash())}
	s.target("static", v1alpha1.JoinTargetSpec{StaticToken: &v1alpha1.StaticToken{TokenSecretRef: *at("token"), CACertHashes: hash}})
	s.target("badtoken", v1alpha1.JoinTargetSpec{StaticToken: &v1alpha1.StaticToken{TokenSecretRef: *at("badtoken"), CACertHashes: hash}})
	s.target("prod", v1alpha1.JoinTargetSpec{KubeconfigSecretRef: at("kubeconfig")})
	s.target("garbage", v1alpha1.JoinTargetSpec{KubeconfigSecretRef: at("garbage")})
	s.initialized()
	for _, name := range []string{"static", "prod", "badtoken", "garbage"} {
		s.machine("node-of-"+name, func(mm *v1alpha1.MetalMachine) {
			mm.Spec.Roles = []v1alpha1.MachineRole{v1alpha1.RoleNode}
			mm.Spec.Bootstrap = &v1alpha1.Bootstrap{Join: &v1alpha1.Join{TargetRef: v1alpha1.TargetReference{Name: name}}}
		})
	}
	s.controller()

	s.is("data", v1alpha1.ConfigDelivered, metav1.ConditionTrue, "")
	s.is("files", v1alpha1.ConfigDelivered, metav1.ConditionTrue, "")
	s.is("bad", v1alpha1.BootstrapDataAvailable, metav1.ConditionFalse, v1alpha1.ReasonUnsupportedFormat)
	s.is("strange", v1alpha1.BootstrapDataAvailable, metav1.ConditionFalse, v1alpha1.ReasonUnsupportedFormat)
	s.is("node-of-static", v1alpha1.ConfigDelivered, metav1.ConditionTrue, "")
	s.is("node-of-prod", v1alpha1.ConfigDelivered, metav1.ConditionTrue, "")
	s.WaitFor(s.t, "the broken kubeconfig is told", func() error {
		jt := &v1alpha1.JoinTarget{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "garbage"}}
		s.Get(s.t, jt)
		if len(jt.Status.Conditions) == 0 || apimeta.IsStatusConditionTrue(jt.Status.Conditions, v1alpha1.Reachable) {
			return fmt.Errorf("conditions are %v", jt.Status.Conditions)
		}
		return nil
	})
}

// controller gives a host the password of its controller.
func (s *story) controller() {
	s.secret("bmc", "username", "root", "password", inBMC)
	name := s.Machine(6).Name()
	s.WaitFor(s.t, "the host's controller can be named", func() error {
		mh := &v1alpha1.MetalHost{}
		if err := s.Client.Get(context.Background(), client.ObjectKey{Name: name}, mh); err != nil {
			return err
		}
		mh.Spec.Power = &v1alpha1.HostPower{
			Driver: v1alpha1.PowerRedfish, Address: "https://bmc.example", CredentialsRef: &v1alpha1.SecretReference{Name: "bmc", Namespace: s.ns},
		}
		return s.Client.Update(context.Background(), mh)
	})
	s.WaitFor(s.t, "the password is kept, sealed", func() error {
		return s.Store.Read(context.Background(), func(tx inventory.Tx) error {
			b, err := tx.FindBMC(s.Machine(6).ID())
			if err == nil && b.Driver != inventory.Redfish {
				err = fmt.Errorf("the controller is %s", b.Driver)
			}
			return err
		})
	})
}

func (s *story) secret(name string, pairs ...string) {
	s.t.Helper()
	o := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name}, StringData: map[string]string{}}
	for p := range slices.Chunk(pairs, 2) {
		o.StringData[p[0]] = p[1]
	}
	s.Must(s.t, o)
}

func (s *story) machine(name string, change func(*v1alpha1.MetalMachine)) {
	s.t.Helper()
	mm := &v1alpha1.MetalMachine{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name}}
	mm.Spec.OS.Profile = rig.DiskProfile
	change(mm)
	s.Must(s.t, mm)
}

func (s *story) target(name string, spec v1alpha1.JoinTargetSpec) {
	s.t.Helper()
	spec.ControlPlaneEndpoint, spec.KubernetesVersion = s.Cluster.Endpoint(), "1.36.3"
	s.Must(s.t, &v1alpha1.JoinTarget{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name}, Spec: spec})
}

// initialized makes the cluster look as kubeadm leaves it.
func (s *story) initialized() {
	s.t.Helper()
	s.Must(s.t, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kubeadm-config"}, Data: map[string]string{"ClusterConfiguration": "kubernetesVersion: v1.36.3\n"},
	})
	s.t.Cleanup(func() {
		_ = s.Client.Delete(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kubeadm-config"}})
	})
}

func (s *story) is(name, kind string, status metav1.ConditionStatus, reason string) {
	s.t.Helper()
	s.WaitFor(s.t, fmt.Sprintf("%s of %s is %s %s", kind, name, status, reason), func() error {
		mm := &v1alpha1.MetalMachine{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name}}
		s.Get(s.t, mm)
		c := apimeta.FindStatusCondition(mm.Status.Conditions, kind)
		if c == nil || c.Status != status || reason != "" && c.Reason != reason {
			text, err := json.Marshal(mm.Status)
			return errors.Join(fmt.Errorf("status is %s", text), err)
		}
		return nil
	})
}

func (s *story) delete(o client.Object) {
	s.t.Helper()
	if err := s.Client.Delete(context.Background(), o); err != nil {
		s.t.Fatal(err)
	}
	s.WaitFor(s.t, o.GetName()+" is gone", func() error {
		if err := s.Client.Get(context.Background(), client.ObjectKeyFromObject(o), o); client.IgnoreNotFound(err) != nil || err == nil {
			return errors.Join(errors.New("it is there"), err)
		}
		return nil
	})
}

// document is all that a machine was configured with.
func (s *story) document(machine string) string {
	s.t.Helper()
	mm := &v1alpha1.MetalMachine{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: machine}}
	s.Get(s.t, mm)
	if mm.Status.HostRef == nil {
		s.t.Fatalf("%s has no host", machine)
	}
	r := s.Robot(mm.Status.HostRef.Name)
	return r.Document("user-data") + r.Document("meta-data")
}

func (s *story) has(machine, canary string) {
	s.t.Helper()
	if doc := s.document(machine); find([]byte(doc), canary) == "" {
		s.t.Errorf("%q did not reach %s:\n%s", canary, machine, doc)
	}
}

// minted is the secret half of the token that a machine was given.
func (s *story) minted(machine string) string {
	s.t.Helper()
	doc := s.document(machine)
	for _, text := range append([]string{doc}, unpacked(doc)...) {
		if m := regexp.MustCompile(`\b[a-z0-9]{6}\.([a-z0-9]{16})\b`).FindStringSubmatch(text); m != nil {
			return m[1]
		}
	}
	s.t.Fatalf("%s was given no token:\n%s", machine, doc)
	return ""
}

var packed = regexp.MustCompile(`[A-Za-z0-9+/]{24,}={0,2}`)

// unpacked is what texts in base64 say, also those that were pressed before.
func unpacked(text string) (out []string) {
	for _, p := range packed.FindAllString(text, -1) {
		b, err := base64.StdEncoding.DecodeString(p)
		if err != nil {
			continue
		}
		if z, err := gzip.NewReader(bytes.NewReader(b)); err == nil {
			if plain, err := io.ReadAll(io.LimitReader(z, 1<<20)); err == nil {
				b = plain
			}
		}
		out = append(out, string(b))
	}
	return out
}

// objects reads everything in the cluster but Secrets, as the API server says it.
func (s *story) objects(places map[string][]byte) {
	s.t.Helper()
	d, err := discovery.NewDiscoveryClientForConfig(s.Config)
	s.must(err)
	lists, err := d.ServerPreferredResources()
	s.must(err)
	api, err := kubernetes.NewForConfig(s.Config)
	s.must(err)
	all := 0
	for _, list := range lists {
		for _, res := range list.APIResources {
			if !slices.Contains(res.Verbs, "list") || list.GroupVersion == "v1" && res.Kind == "Secret" {
				continue
			}
			root := "/apis/"
			if list.GroupVersion == "v1" {
				root = "/api/"
			}
			text, err := api.RESTClient().Get().AbsPath(root + list.GroupVersion + "/" + res.Name).Do(context.Background()).Raw()
			s.must(err)
			places["the cluster's "+res.Name+" in "+list.GroupVersion] = text
			all++
		}
	}
	if mm := places["the cluster's metalmachines in metal.slipway.dev/v1alpha1"]; all < 30 || !bytes.Contains(mm, []byte("node-of-garbage")) {
		s.t.Errorf("%d kinds were read; the machines are %s", all, mm)
	}
}

// database reads the files of the store, and a copy that holds nothing else but what is in it now.
func (s *story) database(places map[string][]byte) {
	s.t.Helper()
	dir := s.t.TempDir()
	s.must(s.Store.Backup(context.Background(), filepath.Join(dir, "copy.db")))
	found := 0
	s.must(filepath.WalkDir(filepath.Dir(dir), func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		places["the file "+filepath.Base(path)] = append(places["the file "+filepath.Base(path)], text...)
		if bytes.Contains(text, []byte(s.ns+"-files")) {
			found++
		}
		return err
	}))
	if found < 2 {
		s.t.Errorf("%d database files were read, want the store's and its copy", found)
	}
}

// answers asks the REST API everything that can be asked.
func (s *story) answers(places map[string][]byte) {
	s.t.Helper()
	h := web.New(web.Config{
		Store: s.Store, Lifecycle: s.Engine(), Configs: s.Engine(), Now: time.Now, Log: slog.New(slog.DiscardHandler),
		Vendor: func(inventory.MAC) string { return "" }, Version: "test", BootBase: "http://10.0.0.1",
	}).SocketHandler()
	text, err := web.Spec()
	s.must(err)
	var spec struct {
		Paths map[string]map[string]any `json:"paths"`
	}
	s.must(yaml.Unmarshal(text, &spec))
	get := func(path string) []byte {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second) // some answers do not end
		defer cancel()
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil))
		places["GET "+path] = rec.Body.Bytes()
		if rec.Code != http.StatusOK {
			return nil
		}
		return rec.Body.Bytes()
	}
	named := map[string][]string{} // by the collection
	hole := regexp.MustCompile(`\{[^}]+\}`)
	for _, path := range slices.SortedFunc(maps.Keys(spec.Paths), func(a, b string) int { return len(a) - len(b) }) {
		if spec.Paths[path]["get"] == nil || strings.HasSuffix(path, "/stream") {
			continue
		}
		holes := hole.FindAllStringIndex(path, -1)
		switch {
		case len(holes) == 0:
			named[path] = names(get(path + "?limit=1000"))
			if len(named[path]) == 0 {
				named[path] = names(get(path))
			}
		case len(holes) == 1:
			for _, name := range named[strings.TrimSuffix(path[:holes[0][0]], "/")] {
				get(path[:holes[0][0]] + name + path[holes[0][1]:])
			}
		}
	}
	if !bytes.Contains(places["GET /api/v1/machines/"+s.ns+"-data"], []byte(s.ns+"-data")) {
		s.t.Errorf("the machine was not among %d answers", len(places))
	}
}

// names are those of the things in a list.
func names(body []byte) (out []string) {
	var list struct {
		Items []map[string]any `json:"items"`
	}
	if json.Unmarshal(body, &list) != nil {
		return nil
	}
	for _, it := range list.Items {
		for _, key := range []string{"name", "id"} {
			if v, ok := it[key].(string); ok && v != "" {
				out = append(out, v)
				break
			}
		}
	}
	return out[:min(len(out), 20)]
}

func (s *story) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *story) search(places map[string][]byte, canaries map[string]string) {
	s.t.Helper()
	for place, text := range places {
		for what, canary := range canaries {
			if where := find(text, canary); where != "" {
				s.t.Errorf("%s is in %s: %q", what, place, where)
			}
		}
	}
}

// find looks for a value in clear, in base64 at any place of a longer text, and in hexadecimal. It returns what is around.
func find(text []byte, canary string) string {
	shapes := []string{canary, hex.EncodeToString([]byte(canary))}
	for shift := range 3 {
		b := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", shift) + canary))
		shapes = append(shapes, b[(shift*8+5)/6:len(b)-4])
	}
	for _, shape := range shapes {
		if i := bytes.Index(text, []byte(shape)); i >= 0 {
			return string(text[max(0, i-60):min(len(text), i+len(shape)+20)])
		}
	}
	return ""
}

func TestACanaryIsFoundInAllItsShapes(t *testing.T) {
	for _, before := range []string{"", "a", "ab", "abc", "abcd"} {
		whole := before + inFile + "zz"
		for name, text := range map[string]string{"clear": whole, "base64": base64.StdEncoding.EncodeToString([]byte(whole)), "hex": hex.EncodeToString([]byte(whole))} {
			if find([]byte(text), inFile) == "" {
				t.Errorf("not found in %s after %q", name, before)
			}
			if find([]byte(text), inHash) != "" {
				t.Errorf("found in %s what is not there", name)
			}
		}
	}
}
