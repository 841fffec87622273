package capi_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/clusterapi"
	infra "slipway.dev/slipway/kubernetes/infra/v1alpha1"
	"slipway.dev/slipway/kubernetes/manifests"
	"slipway.dev/slipway/kubernetes/standalone"
	metalv1 "slipway.dev/slipway/kubernetes/v1alpha1"
	"slipway.dev/slipway/test/kube/capi/stock"
	"slipway.dev/slipway/test/kube/cluster"
	"slipway.dev/slipway/test/kube/rig"
)

// patience is how long a step of stock Cluster API may take: its providers poll, and everything shares two slow cores.
const patience = 6 * time.Minute

// version of Kubernetes that clusters are made with; nothing of it runs.
const version = "v1.36.3"

// stage is a rig under stock Cluster API: a management cluster.
type stage struct {
	*rig.Rig
	Client client.Client // of the management cluster, which is another than the rig's after second
	t      *testing.T
	stack  *stock.Stack
	memory *stock.Memory
	config string   // of clusterctl
	others []*stage // management clusters that objects may be moved to
}

func newStage(t *testing.T, hosts int) *stage {
	t.Helper()
	s := &stage{t: t, Rig: rig.New(t, rig.Options{
		Hosts: hosts, Setup: []rig.Setup{standalone.Setup, clusterapi.Setup}, Schemes: []func(*runtime.Scheme) error{clusterv1.AddToScheme},
		Modes: []inventory.ClusterMode{inventory.ModeStandalone, inventory.ModeCAPI},
	})}
	s.Client = s.Rig.Client
	s.stack = stock.Start(t, s.Cluster) // after our controllers: they wait for its kinds
	s.memory = stock.StartMemory(t)
	s.repository()
	return s
}

// repository writes our files as clusterctl wants them.
func (s *stage) repository() {
	s.t.Helper()
	dir := s.t.TempDir()
	files, err := manifests.Files(manifests.Release{Version: "v0.1.0", Image: "slipway.test/slipway:v0.1.0"})
	s.must(err)
	repository := filepath.Join(dir, manifests.Provider, "v0.1.0")
	s.must(os.MkdirAll(repository, 0o700))
	for name, text := range files {
		s.must(os.WriteFile(filepath.Join(repository, name), text, 0o600))
	}
	s.config = filepath.Join(dir, "clusterctl.yaml")
	s.must(os.WriteFile(s.config, fmt.Appendf(nil, "providers:\n- {name: slipway, type: InfrastructureProvider, url: %q}\n", filepath.Join(repository, "infrastructure-components.yaml")), 0o600))
}

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// clusterctl runs the stock command line on the rig's cluster.
func (s *stage) clusterctl(args ...string) string {
	s.t.Helper()
	return s.clusterctlWith(nil, args...)
}

func (s *stage) clusterctlWith(env []string, args ...string) string {
	s.t.Helper()
	out, err := s.tryClusterctl(env, args...)
	s.must(err)
	return out
}

func (s *stage) tryClusterctl(env []string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*time.Minute)
	defer cancel()
	args = append(args, "--config="+s.config)
	if !slices.Contains(args, "provider") {
		args = append(args, "--kubeconfig="+s.stack.Kubeconfig)
	}
	cmd := exec.CommandContext(ctx, cluster.Part(s.t, "clusterctl"), args...)
	home := s.t.TempDir()
	cmd.Env = append([]string{"HOME=" + home, "XDG_CONFIG_HOME=" + home, "CLUSTERCTL_DISABLE_VERSIONCHECK=true", "GOPROXY=off"}, env...)
	var out, talk strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &talk
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("clusterctl %s: %w\n%s", strings.Join(args, " "), err, talk.String())
	}
	return out.String(), nil
}

func contains(text string, all ...string) bool {
	for _, one := range all {
		if !strings.Contains(text, one) {
			return false
		}
	}
	return true
}

// until is WaitFor with the patience that Cluster API needs.
func (s *stage) until(what string, try func() error) {
	s.t.Helper()
	began := time.Now()
	for {
		err := try()
		if err == nil {
			s.t.Logf("%s: after %s", what, time.Since(began).Round(100*time.Millisecond))
			return
		}
		if time.Since(began) > patience {
			s.t.Fatalf("waited %s until %s: %v\n%s", patience, what, err, s.History(60))
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func (s *stage) object(api, kind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(api)
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

func (s *stage) patch(o client.Object, text string) {
	s.t.Helper()
	s.must(s.Client.Patch(s.t.Context(), o, client.RawPatch(types.MergePatchType, []byte(text))))
}

func (s *stage) scale(o *unstructured.Unstructured, n int) {
	s.t.Helper()
	s.patch(o, fmt.Sprintf(`{"spec":{"replicas":%d}}`, n))
}

// waitReplicas waits until all replicas of a KubeadmControlPlane or MachineDeployment are there, of its newest template,
// ready and available.
func (s *stage) waitReplicas(o *unstructured.Unstructured, n int64) {
	s.t.Helper()
	s.until(fmt.Sprintf("%s %s has %d replicas", o.GetKind(), o.GetName(), n), func() error {
		if err := s.Client.Get(s.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		observed, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
		if observed != o.GetGeneration() {
			return errors.New("the status is about an older spec")
		}
		for _, field := range []string{"replicas", "upToDateReplicas", "readyReplicas", "availableReplicas"} {
			if got, _, _ := unstructured.NestedInt64(o.Object, "status", field); got != n {
				return fmt.Errorf("%s is %d\n%s", field, got, s.trouble(o.GetNamespace()))
			}
		}
		return nil
	})
}

// trouble says what Machines and SlipwayMachines wait for.
func (s *stage) trouble(namespace string) string {
	var out strings.Builder
	var machines clusterv1.MachineList
	var ours infra.SlipwayMachineList
	_ = s.Client.List(s.t.Context(), &machines, client.InNamespace(namespace))
	_ = s.Client.List(s.t.Context(), &ours, client.InNamespace(namespace))
	for _, m := range machines.Items {
		fmt.Fprintf(&out, "Machine %s %s:", m.Name, m.Status.Phase)
		for _, c := range m.Status.Conditions {
			if c.Status != metav1.ConditionTrue && c.Type != "Paused" && c.Type != "Deleting" && c.Type != "Updating" {
				fmt.Fprintf(&out, " %s=%s (%s)", c.Type, c.Reason, c.Message)
			}
		}
		out.WriteString("\n")
	}
	for _, m := range ours.Items {
		c := meta.FindStatusCondition(m.Status.Conditions, metalv1.Ready)
		if c != nil {
			fmt.Fprintf(&out, "SlipwayMachine %s: %s (%s)\n", m.Name, c.Reason, c.Message)
		} else {
			fmt.Fprintf(&out, "SlipwayMachine %s: no condition\n", m.Name)
		}
	}
	return out.String()
}

// workload is a cluster that Cluster API makes.
type workload struct {
	*stage
	name, namespace string
}

// create makes a cluster of our own template, as clusterctl fills it in, with more variables and flags for it.
func (s *stage) create(name string, controlPlanes, workers int, more ...string) *workload {
	s.t.Helper()
	w := &workload{stage: s, name: name, namespace: s.Namespace(s.t)}
	host, port, err := s.memory.AddCluster(s.t.Context(), name)
	s.must(err)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.play(ctx)
	}()
	s.t.Cleanup(func() { stop(); <-done })
	env := []string{"PROFILE=" + rig.DiskProfile, "CONTROL_PLANE_ENDPOINT_HOST=" + host, fmt.Sprintf("CONTROL_PLANE_ENDPOINT_PORT=%d", port)}
	args := []string{
		"generate", "cluster", name, "--infrastructure=slipway:v0.1.0", "--kubernetes-version=" + version, "--target-namespace=" + w.namespace,
		fmt.Sprintf("--control-plane-machine-count=%d", controlPlanes), fmt.Sprintf("--worker-machine-count=%d", workers),
	}
	for _, m := range more {
		if strings.HasPrefix(m, "--") {
			args = append(args, m)
		} else {
			env = append(env, m)
		}
	}
	s.apply(s.clusterctlWith(env, args...))
	return w
}

// apply creates the objects of a YAML stream.
func (s *stage) apply(text string) {
	s.t.Helper()
	for doc := range strings.SplitSeq(text, "\n---\n") {
		o := &unstructured.Unstructured{}
		s.must(yaml.Unmarshal([]byte(doc), &o.Object))
		s.Must(s.t, o)
	}
}

func (w *workload) cluster() *unstructured.Unstructured {
	return w.object("cluster.x-k8s.io/v1beta2", "Cluster", w.namespace, w.name)
}

func (w *workload) controlPlane() *unstructured.Unstructured {
	return w.object("controlplane.cluster.x-k8s.io/v1beta2", "KubeadmControlPlane", w.namespace, w.name+"-control-plane")
}

func (w *workload) workers() *unstructured.Unstructured {
	return w.object("cluster.x-k8s.io/v1beta2", "MachineDeployment", w.namespace, w.name+"-md-0")
}

// being is a Machine with its SlipwayMachine, in the management cluster that has them.
type being struct {
	machine clusterv1.Machine
	ours    infra.SlipwayMachine
	in      client.Client
}

// beings lists the machines of all management clusters. A move makes an object in one before it ends in the other, so that
// who looks at the first one again at the end misses none.
func (w *workload) beings(ctx context.Context) (map[string]being, error) {
	sides := []client.Client{w.Client}
	for _, other := range w.others {
		sides = append(sides, other.Client, w.Client)
	}
	all := map[string]being{}
	for _, c := range sides {
		var machines clusterv1.MachineList
		if err := c.List(ctx, &machines, client.InNamespace(w.namespace)); err != nil {
			return nil, err
		}
		for _, m := range machines.Items {
			b := being{machine: m, in: c}
			err := c.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: m.Spec.InfrastructureRef.Name}, &b.ours)
			if client.IgnoreNotFound(err) != nil {
				return nil, err
			}
			if err == nil {
				all[m.Name] = b
			}
		}
	}
	return all, nil
}

// play is what the machines do once Slipway has started them: join the workload cluster, and be gone when they are off.
func (w *workload) play(ctx context.Context) {
	joined := map[string]string{} // provider ids by node
	for ; ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
		all, err := w.beings(ctx)
		if err != nil {
			continue
		}
		alive := map[string]bool{}
		for _, b := range all {
			m, id := b.machine, b.ours.Spec.ProviderID
			if joined[m.Name] != "" && joined[m.Name] == id { // one that was moved has no status for a moment
				alive[m.Name] = true
				continue
			}
			if p := b.ours.Status.Initialization.Provisioned; p == nil || !*p {
				continue
			}
			alive[m.Name] = true
			if joined[m.Name] != "" {
				continue
			}
			_, isControlPlane := m.Labels[clusterv1.MachineControlPlaneLabel]
			n := stock.Node{ProviderID: id, Version: m.Spec.Version, ControlPlane: isControlPlane}
			if isControlPlane {
				if n.CA, err = w.authority(ctx, b.in, "ca"); err != nil {
					continue
				}
				if n.EtcdCA, err = w.authority(ctx, b.in, "etcd"); err != nil {
					continue
				}
			}
			if err := w.memory.AddNode(ctx, w.name, m.Name, n); err == nil {
				joined[m.Name] = id
			} else if ctx.Err() == nil {
				w.t.Logf("%s does not join: %v", m.Name, err)
			}
		}
		for name := range joined {
			if !alive[name] && w.memory.DropNode(ctx, w.name, name) == nil {
				delete(joined, name)
			}
		}
	}
}

// authority reads a certificate authority that Cluster API made.
func (w *workload) authority(ctx context.Context, in client.Reader, which string) (p stock.Pair, err error) {
	var s corev1.Secret
	err = in.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: w.name + "-" + which}, &s)
	return stock.Pair{Cert: s.Data["tls.crt"], Key: s.Data["tls.key"]}, err
}

// workloadClient is a client of the workload cluster, with the kubeconfig that Cluster API made.
func (w *workload) workloadClient() (*kubernetes.Clientset, error) {
	var s corev1.Secret
	if err := w.Client.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: w.name + "-kubeconfig"}, &s); err != nil {
		return nil, err
	}
	cfg, err := clientcmd.RESTConfigFromKubeConfig(s.Data["value"])
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(cfg)
}

// node returns a node of the workload cluster, nil when there is none.
func (w *workload) node(name string) *corev1.Node {
	w.t.Helper()
	c, err := w.workloadClient()
	w.must(err)
	n, err := c.CoreV1().Nodes().Get(w.t.Context(), name, metav1.GetOptions{})
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return n
}

// machineView is what Cluster API and we say of one machine.
type machineView struct {
	name, phase, node, host     string
	providerID, infraProviderID string
	domain, infraDomain         string
	version, template           string
	claim                       string
	addresses                   []string
	isControlPlane, isPaused    bool
}

func (w *workload) machines() (out []machineView) {
	w.t.Helper()
	var machines clusterv1.MachineList
	w.must(w.Client.List(w.t.Context(), &machines, client.InNamespace(w.namespace)))
	for _, m := range machines.Items {
		v := machineView{name: m.Name, phase: m.Status.Phase, node: m.Status.NodeRef.Name, providerID: m.Spec.ProviderID, domain: m.Status.FailureDomain, version: m.Spec.Version}
		if v.domain == "" {
			v.domain = m.Spec.FailureDomain
		}
		for _, a := range m.Status.Addresses {
			v.addresses = append(v.addresses, a.Address)
		}
		_, v.isControlPlane = m.Labels[clusterv1.MachineControlPlaneLabel]
		var ours infra.SlipwayMachine
		if w.Client.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: m.Spec.InfrastructureRef.Name}, &ours) == nil {
			v.infraProviderID, v.infraDomain, v.claim = ours.Spec.ProviderID, ours.Status.FailureDomain, ours.Spec.ClaimID
			v.template = ours.Annotations[clusterv1.TemplateClonedFromNameAnnotation]
			v.isPaused = meta.IsStatusConditionTrue(ours.Status.Conditions, metalv1.Paused)
			if ours.Status.HostRef != nil {
				v.host = ours.Status.HostRef.Name
			}
		}
		out = append(out, v)
	}
	return out
}

// wait waits until the machines are as they should be, and returns them.
func (w *workload) wait(what string, try func([]machineView) error) (all []machineView) {
	w.t.Helper()
	w.until(what, func() error {
		all = w.machines()
		if err := try(all); err != nil {
			return fmt.Errorf("%w\n%s", err, w.trouble(w.namespace))
		}
		return nil
	})
	return all
}

func (w *workload) waitPaused(paused bool) {
	w.t.Helper()
	w.wait(fmt.Sprintf("paused is %v on all SlipwayMachines", paused), func(all []machineView) error {
		for _, m := range all {
			if m.isPaused != paused {
				return fmt.Errorf("%s: paused %v", m.name, m.isPaused)
			}
		}
		return nil
	})
}

// waitGone waits until nothing of the cluster is left.
func (w *workload) waitGone() {
	w.t.Helper()
	w.until(w.name+" is gone", func() error {
		for _, kind := range []string{"Cluster", "Machine", "MachineSet", "MachineDeployment"} {
			if err := w.none("cluster.x-k8s.io/v1beta2", kind); err != nil {
				return err
			}
		}
		for _, kind := range []string{infra.KindSlipwayCluster, infra.KindSlipwayMachine} {
			if err := w.none(infra.GroupVersion.String(), kind); err != nil {
				return err
			}
		}
		return nil
	})
}

func (w *workload) none(api, kind string) error {
	var list unstructured.UnstructuredList
	list.SetAPIVersion(api)
	list.SetKind(kind + "List")
	if err := w.Client.List(w.t.Context(), &list, client.InNamespace(w.namespace)); err != nil {
		return err
	}
	if len(list.Items) > 0 {
		return fmt.Errorf("%d of kind %s are left, such as %s\n%s", len(list.Items), kind, list.Items[0].GetName(), w.trouble(w.namespace))
	}
	return nil
}
