package contract

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/clusterapi"
	"slipway.dev/slipway/kubernetes/contract"
	infrav1 "slipway.dev/slipway/kubernetes/infra/v1alpha1"
	"slipway.dev/slipway/kubernetes/node"
	metalv1 "slipway.dev/slipway/kubernetes/v1alpha1"
	"slipway.dev/slipway/provision/operation"
	"slipway.dev/slipway/test/kube/rig"
)

var ctx = context.Background()

func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f != nil {
		_ = f.Value.Set("6") // they wait more than they work
	}
	rig.Main(m)
}

// newRig makes a rig with the controllers of package clusterapi, in a cluster with Cluster API's kinds.
func newRig(t *testing.T, edit ...func(*rig.Options)) *rig.Rig {
	t.Helper()
	o := rig.Options{
		Setup: []rig.Setup{clusterapi.Setup}, Schemes: []func(*runtime.Scheme) error{clusterv1.AddToScheme},
		Modes: []inventory.ClusterMode{inventory.ModeStandalone, inventory.ModeCAPI},
		Nodes: func(r *rig.Rig) operation.Nodes {
			return node.New(node.Config{Store: r.Store, Secrets: r.Secrets(), Site: "lab", Now: r.Now})
		},
	}
	for _, fn := range edit {
		fn(&o)
	}
	r := rig.New(t, o)
	installCore(t, r, r.Client)
	return r
}

// installCore brings Cluster API's own kinds in, from its module: only the version of the contract, without the webhooks
// that convert. Its controllers do not run: tests write what those would.
func installCore(t *testing.T, r *rig.Rig, c client.Client) {
	t.Helper()
	for _, name := range []string{"clusters", "machines", "machinesets", "machinehealthchecks"} {
		f, err := os.Open(filepath.Join(coreDir(t), "core", "config", "crd", "bases", "cluster.x-k8s.io_"+name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		crd := &unstructured.Unstructured{}
		if err := yaml.NewYAMLOrJSONDecoder(f, 4096).Decode(crd); err != nil {
			t.Fatal(err)
		}
		unstructured.RemoveNestedField(crd.Object, "spec", "conversion")
		unstructured.RemoveNestedField(crd.Object, "status")
		versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
		if err != nil {
			t.Fatal(err)
		}
		versions = slices.DeleteFunc(versions, func(v any) bool { return v.(map[string]any)["name"] != "v1beta2" })
		if err := unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions"); err != nil {
			t.Fatal(err)
		}
		if err := c.Create(ctx, crd); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	r.WaitFor(t, "Cluster API's kinds are served", func() error {
		return errors.Join(c.List(ctx, &clusterv1.ClusterList{}), c.List(ctx, &clusterv1.MachineList{}))
	})
}

// coreDir is where the module of Cluster API is that tools/parts/kube pins.
var coreDir = func() func(t *testing.T) string {
	once := sync.OnceValues(func() (string, error) {
		cmd := exec.Command("go", "mod", "download", "-json", "sigs.k8s.io/cluster-api")
		cmd.Dir = filepath.Join("..", "..", "..", "tools", "parts", "kube")
		var out, talk bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &talk
		if err := cmd.Run(); err != nil {
			return "", fmt.Errorf("%w: %s", err, talk.String())
		}
		var module struct{ Dir string }
		err := json.NewDecoder(&out).Decode(&module)
		return module.Dir, err
	})
	return func(t *testing.T) string {
		t.Helper()
		dir, err := once()
		if err != nil {
			t.Fatalf("the module of Cluster API: %v", err)
		}
		return dir
	}
}()

// stage is a Cluster in a namespace of its own with hosts that no other test has.
type stage struct {
	*testing.T
	r       *rig.Rig
	c       client.Client // of the cluster that the objects are in
	ns      string
	robots  []*rig.Robot
	cluster *clusterv1.Cluster
	infra   *infrav1.SlipwayCluster
}

// newStage makes a Cluster whose infrastructure is provisioned, as Cluster API would.
func newStage(t *testing.T, r *rig.Rig, hosts int) *stage {
	t.Helper()
	s := bareStage(t, r, hosts)
	s.addCluster(nil)
	s.until("the SlipwayCluster is provisioned", func() error {
		s.get(s.infra)
		return is(isTrue(s.infra.Status.Initialization.Provisioned), "it is not: %+v", s.infra.Status)
	})
	s.provisioned()
	return s
}

// bareStage makes a namespace with hosts.
func bareStage(t *testing.T, r *rig.Rig, hosts int) *stage {
	t.Helper()
	s := &stage{T: t, r: r, c: r.Client, ns: r.Namespace(t)}
	s.robots = r.AddHosts(hosts, map[string]string{"for": s.ns})
	return s
}

// create makes objects, and get reads one anew.
func (s *stage) create(objects ...client.Object) {
	s.Helper()
	for _, o := range objects {
		if err := s.c.Create(ctx, o); err != nil {
			s.Fatalf("create %T %s: %v", o, o.GetName(), err)
		}
	}
}

func (s *stage) get(o client.Object) {
	s.Helper()
	if err := s.c.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
		s.Fatal(err)
	}
}

func is(ok bool, format string, args ...any) error {
	if ok {
		return nil
	}
	return fmt.Errorf(format, args...)
}

func isTrue(b *bool) bool { return b != nil && *b }

func (s *stage) until(what string, try func() error) {
	s.Helper()
	s.r.WaitFor(s.T, what, try)
}

func ptr[T any](v T) *T { return &v }

// addCluster makes a Cluster with its SlipwayCluster, which edit may change before.
func (s *stage) addCluster(edit func(*infrav1.SlipwayCluster)) {
	s.Helper()
	s.cluster = &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "c"},
		Spec:       clusterv1.ClusterSpec{InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.Group, Kind: "SlipwayCluster", Name: "c"}},
	}
	s.create(s.cluster)
	s.infra = &infrav1.SlipwayCluster{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.ns, Name: "c", Labels: map[string]string{clusterv1.ClusterNameLabel: "c"},
			OwnerReferences: []metav1.OwnerReference{s.ownerRef("Cluster", s.cluster)},
		},
		Spec: infrav1.SlipwayClusterSpec{ControlPlaneEndpoint: infrav1.APIEndpoint{Host: "10.9.9.9", Port: 6443}},
	}
	if edit != nil {
		edit(s.infra)
	}
	s.create(s.infra)
}

func (s *stage) ownerRef(kind string, o client.Object) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: clusterv1.GroupVersion.String(), Kind: kind, Name: o.GetName(), UID: o.GetUID(), Controller: ptr(true), BlockOwnerDeletion: ptr(true),
	}
}

// provisioned writes what Cluster API does when the infrastructure of a Cluster is there.
func (s *stage) provisioned() {
	s.Helper()
	s.edit(s.cluster, func() { s.cluster.Status.Initialization.InfrastructureProvisioned = ptr(true) }, true)
}

// edit changes an object, or its status, trying again when somebody else did too.
func (s *stage) edit(o client.Object, fn func(), isStatus bool) {
	s.Helper()
	s.until("an edit goes through", func() error {
		if err := s.c.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		fn()
		if isStatus {
			return s.c.Status().Update(ctx, o)
		}
		return s.c.Update(ctx, o)
	})
}

// pair is a Machine with its SlipwayMachine.
type pair struct {
	*stage
	m   *clusterv1.Machine
	sm  *infrav1.SlipwayMachine
	set *clusterv1.MachineSet // that it is one of; nil for none
}

// add makes a Machine and its SlipwayMachine, as a MachineSet would.
func (s *stage) add(name string, edit func(*clusterv1.Machine, *infrav1.SlipwayMachine)) *pair {
	s.Helper()
	labels := map[string]string{clusterv1.ClusterNameLabel: "c"}
	p := &pair{stage: s}
	p.m = &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name, Labels: labels, Finalizers: []string{clusterv1.MachineFinalizer}},
		Spec: clusterv1.MachineSpec{
			ClusterName: "c", Bootstrap: clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{APIGroup: "bootstrap.cluster.x-k8s.io", Kind: "KubeadmConfig", Name: name}},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.Group, Kind: "SlipwayMachine", Name: name},
		},
	}
	p.sm = &infrav1.SlipwayMachine{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name, Labels: labels}}
	p.sm.Spec.OS = metalv1.OSSpec{Profile: rig.DiskProfile}
	p.sm.Spec.Placement = &metalv1.Placement{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"for": s.ns}}}
	if edit != nil {
		edit(p.m, p.sm)
	}
	s.create(p.m)
	p.sm.OwnerReferences = append(p.sm.OwnerReferences, s.ownerRef("Machine", p.m))
	s.create(p.sm)
	return p
}

const bootstrapData = "## template: jinja\n#cloud-config\nwrite_files:\n- path: /run/kubeadm/kubeadm-join-config.yaml\n  owner: root:root\n  permissions: '0640'\n  content: |\n    name: '{{ ds.meta_data.local_hostname }}'\n    secret: canary-of-the-contract\nruncmd:\n- kubeadm join --config /run/kubeadm/kubeadm-join-config.yaml\n"

// bootstrap writes the Secret of a Machine and names it, as the bootstrap provider and Cluster API do.
func (p *pair) bootstrap(edit func(*corev1.Secret)) {
	p.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.ns, Name: p.m.Name + "-data", Labels: map[string]string{clusterv1.ClusterNameLabel: "c"}},
		Type:       clusterv1.ClusterSecretType, Data: map[string][]byte{"value": []byte(bootstrapData), "format": []byte("cloud-config")},
	}
	if edit != nil {
		edit(secret)
	}
	p.create(secret)
	p.edit(p.m, func() { p.m.Spec.Bootstrap.DataSecretName = ptr(secret.Name) }, false)
}

// read reads the SlipwayMachine anew; gone reports that it is not there any more.
func (p *pair) read() (gone bool) {
	p.Helper()
	fresh := &infrav1.SlipwayMachine{}
	err := p.c.Get(ctx, client.ObjectKeyFromObject(p.sm), fresh)
	if apierrors.IsNotFound(err) {
		return true
	}
	if err != nil {
		p.Fatal(err)
	}
	p.sm = fresh
	return false
}

// condition returns a condition of the SlipwayMachine as it is now.
func (p *pair) condition(kind string) metav1.Condition {
	p.Helper()
	p.read()
	return conditionOf(p.sm.Status.Conditions, kind)
}

func conditionOf(cs []metav1.Condition, kind string) metav1.Condition {
	for _, c := range cs {
		if c.Type == kind {
			return c
		}
	}
	return metav1.Condition{}
}

// untilIs waits until a condition has a status and a reason ("" for any).
func (p *pair) untilIs(kind string, status metav1.ConditionStatus, reason string) {
	p.Helper()
	p.until(fmt.Sprintf("%s is %s %s", kind, status, reason), func() error {
		c := p.condition(kind)
		return is(c.Status == status && (reason == "" || c.Reason == reason), "it is %s %s: %s", c.Status, c.Reason, c.Message)
	})
}

// untilClaimed waits for a host.
func (p *pair) untilClaimed() {
	p.Helper()
	p.until(p.m.Name+" has a claim", func() error {
		p.read()
		return is(p.sm.Spec.ClaimID != "" && p.sm.Status.HostRef != nil, "it has none: %+v", p.sm.Status.Conditions)
	})
}

// untilProvisioned waits until the contract's flag is true.
func (p *pair) untilProvisioned() {
	p.Helper()
	p.until(p.m.Name+" is provisioned", func() error {
		p.read()
		return is(isTrue(p.sm.Status.Initialization.Provisioned), "it is not: %+v", p.sm.Status.Conditions)
	})
}

// whole makes a Machine that is provisioned.
func (s *stage) whole(name string, edit func(*clusterv1.Machine, *infrav1.SlipwayMachine)) *pair {
	s.Helper()
	p := s.add(name, edit)
	p.bootstrap(nil)
	p.untilProvisioned()
	return p
}

// robot plays the host of a machine.
func (p *pair) robot() *rig.Robot {
	p.Helper()
	p.read()
	if p.sm.Status.HostRef == nil {
		p.Fatal("it has no host")
	}
	return p.r.Robot(p.sm.Status.HostRef.Name)
}

// view is what the appliance has for a claim; ok is false when there is none.
func (p *pair) view() (v contract.View, ok bool) {
	p.Helper()
	v, err := p.r.Appliance().FindClaim(ctx, inventory.ClaimID(p.sm.Spec.ClaimID))
	var e *inventory.Error
	if errors.As(err, &e) && e.Kind == inventory.NotFound {
		return v, false
	}
	if err != nil {
		p.Fatal(err)
	}
	return v, true
}

// remove deletes a Machine as Cluster API does, after it has drained: first what is under it, then itself.
func (p *pair) remove() {
	p.Helper()
	p.deleteMachine()
	if err := p.c.Delete(ctx, p.sm); client.IgnoreNotFound(err) != nil {
		p.Fatal(err)
	}
}

func (p *pair) deleteMachine() {
	p.Helper()
	if err := p.c.Delete(ctx, p.m); client.IgnoreNotFound(err) != nil {
		p.Fatal(err)
	}
}

func (p *pair) untilGone() {
	p.Helper()
	p.until(p.m.Name+" is gone", func() error { return is(p.read(), "it is there: %+v", p.sm.Status.Conditions) })
}

// settle waits until nothing has been written to an object for a while, and returns its version.
func (p *pair) settle() string {
	p.Helper()
	last, since := "", time.Now()
	for deadline := time.Now().Add(rig.Patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		p.read()
		if p.sm.ResourceVersion != last {
			last, since = p.sm.ResourceVersion, time.Now()
		}
		if time.Since(since) > 700*time.Millisecond {
			return last
		}
	}
	p.Fatal("it is written again and again")
	return ""
}

// userData is what cloud-init on the machine's disk was given, decoded.
func (p *pair) userData() string {
	p.Helper()
	text := p.robot().Document("user-data")
	m, err := mail.ReadMessage(strings.NewReader(text))
	if err != nil {
		return text
	}
	_, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil {
		return text
	}
	var all strings.Builder
	parts := multipart.NewReader(m.Body, params["boundary"])
	for {
		part, err := parts.NextRawPart()
		if err != nil {
			return all.String()
		}
		var from io.Reader = part
		if part.Header.Get("Content-Transfer-Encoding") == "base64" {
			from = base64.NewDecoder(base64.StdEncoding, part)
		}
		body, err := io.ReadAll(from)
		if err != nil {
			p.Fatal(err)
		}
		all.Write(body)
		all.WriteString("\n")
	}
}
