package metal_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/v1alpha1"
	"slipway.dev/slipway/machineconfig/kubeadm"
	"slipway.dev/slipway/test/kube/rig"
)

// target makes a JoinTarget whose cluster is the test's own, and waits until it can be reached.
func (s *stage) target(change ...func(*v1alpha1.JoinTarget)) {
	s.t.Helper()
	s.secret("admin", "value", string(s.Kubeconfig))
	jt := &v1alpha1.JoinTarget{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "lab"}}
	jt.Spec.ControlPlaneEndpoint = strings.TrimPrefix(s.Config.Host, "https://")
	jt.Spec.KubeconfigSecretRef = &v1alpha1.SecretKeySelector{Name: "admin", Key: "value"}
	jt.Spec.KubernetesVersion = "v1.36.3"
	for _, c := range change {
		c(jt)
	}
	s.Must(s.t, jt)
}

func (s *stage) targetIs(kind string, status metav1.ConditionStatus, reason string) *v1alpha1.JoinTarget {
	s.t.Helper()
	jt := &v1alpha1.JoinTarget{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "lab"}}
	s.WaitFor(s.t, "the target is "+kind, func() error {
		s.Get(s.t, jt)
		if c := apimeta.FindStatusCondition(jt.Status.Conditions, kind); c == nil || c.Status != status || c.Reason != reason {
			return fmt.Errorf("conditions are %+v", jt.Status.Conditions)
		}
		return nil
	})
	return jt
}

// joins makes a machine a node of the stage's target.
func joins(roles ...v1alpha1.MachineRole) func(*v1alpha1.MetalMachine) {
	return func(mm *v1alpha1.MetalMachine) {
		mm.Spec.Roles = roles
		mm.Spec.Bootstrap = &v1alpha1.Bootstrap{Join: &v1alpha1.Join{TargetRef: v1alpha1.TargetReference{Name: "lab"}}}
	}
}

// hostname is a name for nodes that no other case has.
func (s *stage) hostname(name string) func(*v1alpha1.MetalMachine) {
	return func(mm *v1alpha1.MetalMachine) { mm.Spec.Hostname = s.ns + "-" + name }
}

// kubelet plays the kubelet of a machine: its node appears, and is ready.
func (s *stage) kubelet(name, providerID string) *corev1.Node {
	s.t.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: providerID}}
	s.Must(s.t, n)
	s.t.Cleanup(func() { _ = s.Client.Delete(context.Background(), n) })
	s.WaitFor(s.t, "the kubelet says how its node is", func() error { // controllers may be writing, too
		if err := s.Client.Get(context.Background(), client.ObjectKeyFromObject(n), n); err != nil {
			return err
		}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}}
		n.Status.NodeInfo.KubeletVersion, n.Status.NodeInfo.ContainerRuntimeVersion, n.Status.NodeInfo.OSImage = "v1.36.3", "containerd://2.1.4", "Debian 12"
		return s.Client.Status().Update(context.Background(), n)
	})
	return n
}

func (s *stage) node(name string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	s.Get(s.t, n)
	return n
}

func (s *stage) nodeGone(name string) {
	s.t.Helper()
	s.WaitFor(s.t, "node "+name+" is gone", func() error {
		err := s.Client.Get(context.Background(), client.ObjectKey{Name: name}, &corev1.Node{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there, %v", err)
	})
}

func init() {
	all["a machine joins with a kubeconfig, its node carries what it should, and goes with it"] = func(t *testing.T, r *rig.Rig) {
		s := newStage(t, r, 1)
		s.machine("w", joins(v1alpha1.RoleNode), s.hostname("w"), func(mm *v1alpha1.MetalMachine) {
			mm.Spec.Node = v1alpha1.NodeMeta{
				Labels: map[string]string{"tier": "gold"}, Annotations: map[string]string{"example.com/why": "test"},
				Taints: []v1alpha1.NodeTaint{{Key: "ours", Effect: "NoSchedule"}},
			}
			mm.Spec.Deletion.Drain.TimeoutSeconds = ptr(int32(0))
		})
		s.is("w", v1alpha1.BootstrapDataAvailable, metav1.ConditionFalse, v1alpha1.ReasonWaitingForBootstrapData, "there is no JoinTarget lab")
		s.target()
		s.targetIs(v1alpha1.Reachable, metav1.ConditionTrue, "Answers")
		mm := s.is("w", v1alpha1.NodeJoined, metav1.ConditionFalse, v1alpha1.ReasonWaitingForNode)
		s.WaitFor(t, "it waits for its node", func() error {
			if mm = s.get("w"); mm.Status.Phase != v1alpha1.PhaseJoining {
				return fmt.Errorf("it is %s: %s", mm.Status.Phase, conditions(mm))
			}
			return nil
		})
		if mm.Spec.Versions.Kubelet != "v1.36.3" {
			t.Errorf("the version is not written back: %+v", mm.Spec.Versions)
		}
		doc := s.robotOf("w").Document("user-data")
		if !strings.Contains(doc, mm.Spec.ProviderID) || !strings.Contains(doc, "kubeadm") {
			t.Errorf("the kubelet does not get its provider id %s:\n%s", mm.Spec.ProviderID, doc)
		}
		n := s.kubelet(mm.Spec.Hostname, mm.Spec.ProviderID)
		mm = s.ready("w")
		if mm.Status.NodeRef == nil || mm.Status.NodeRef.Name != n.Name || mm.Status.NodeRef.UID != string(n.UID) || mm.Status.Versions.Kubelet != "v1.36.3" ||
			mm.Status.Versions.ContainerRuntime != (v1alpha1.ContainerRuntime{Name: "containerd", Version: "2.1.4"}) {
			t.Errorf("status %+v", mm.Status)
		}
		hasAll := func() error {
			n := s.node(mm.Spec.Hostname)
			if n.Labels["tier"] != "gold" || n.Annotations["example.com/why"] != "test" || n.Labels[v1alpha1.LabelHost] != mm.Status.HostRef.Name ||
				n.Labels[v1alpha1.LabelMachine] != s.view("w").Machine.Name || !slices.Contains(n.Spec.Taints, corev1.Taint{Key: "ours", Effect: "NoSchedule"}) {
				return fmt.Errorf("labels %v, annotations %v, taints %v", n.Labels, n.Annotations, n.Spec.Taints)
			}
			return nil
		}
		s.WaitFor(t, "the node carries what is wanted", hasAll)
		s.WaitFor(t, "somebody takes it away and adds their own", func() error {
			n := s.node(mm.Spec.Hostname)
			delete(n.Labels, "tier")
			n.Spec.Taints = []corev1.Taint{{Key: "theirs", Effect: "NoSchedule"}}
			return s.Client.Update(context.Background(), n)
		})
		s.WaitFor(t, "it is put back", hasAll)
		if n := s.node(mm.Spec.Hostname); !slices.Contains(n.Spec.Taints, corev1.Taint{Key: "theirs", Effect: "NoSchedule"}) {
			t.Errorf("the taint of others is gone: %v", n.Spec.Taints)
		}
		s.blockedByBudget("w", mm.Spec.Hostname)
		s.nodeGone(mm.Spec.Hostname)
		s.hostIs(s.robots[0].ID(), inventory.Available)
	}
	all["a join that fails is told with the end of its log, and tried again"] = func(t *testing.T, r *rig.Rig) {
		s := newStage(t, r, 1)
		s.robots[0].Hold(rig.Up)
		s.robots[0].FailJoin(1, "[preflight] Running pre-flight checks\nerror: the token abcdef.0123456789abcdef is not valid\n")
		s.target()
		s.machine("w", joins(v1alpha1.RoleNode), s.hostname("w"))
		s.WaitFor(t, "the first try is written", func() error {
			if n := s.robots[0].Counts().Writes; n < 1 {
				return fmt.Errorf("%d writes", n)
			}
			return nil
		})
		s.robots[0].Hold(rig.Write) // of the second
		s.robots[0].Go(rig.Up)
		mm := s.is("w", v1alpha1.NodeJoined, metav1.ConditionFalse, v1alpha1.ReasonJoinFailed, "bootstrap kubeadm: status 1", "pre-flight checks", "abcdef.****")
		if b, _ := json.Marshal(mm); strings.Contains(string(b)+s.History(500), "0123456789abcdef") {
			t.Error("a token stands in the object or in an event")
		}
		s.robots[0].Go(rig.Write)
		s.WaitFor(t, "it waits for its node", func() error {
			if mm = s.get("w"); mm.Status.Phase != v1alpha1.PhaseJoining {
				return fmt.Errorf("it is %s: %s", mm.Status.Phase, conditions(mm))
			}
			return nil
		})
		s.kubelet(mm.Spec.Hostname, mm.Spec.ProviderID)
		s.ready("w")
	}
	all["a node with the provider id of another is explained and left alone"] = func(t *testing.T, r *rig.Rig) {
		s := newStage(t, r, 1)
		s.target()
		s.machine("w", joins(v1alpha1.RoleNode), s.hostname("w"))
		s.WaitFor(t, "it waits for its node", func() error {
			if mm := s.get("w"); mm.Status.Phase != v1alpha1.PhaseJoining {
				return fmt.Errorf("it is %s: %s", mm.Status.Phase, conditions(mm))
			}
			return nil
		})
		mm := s.get("w")
		s.kubelet(mm.Spec.Hostname, "slipway://lab/x/y")
		s.is("w", v1alpha1.NodeJoined, metav1.ConditionFalse, v1alpha1.ReasonNodeProviderIDMismatch, "slipway://lab/x/y", mm.Spec.ProviderID)
		if n := s.node(mm.Spec.Hostname); n.Spec.ProviderID != "slipway://lab/x/y" || n.Labels[v1alpha1.LabelMachine] != "" {
			t.Errorf("the node was changed: %+v", n.ObjectMeta)
		}
		s.delete("w")
		s.gone("w")
		if n := s.node(mm.Spec.Hostname); n.DeletionTimestamp != nil {
			t.Error("a node of somebody else was deleted")
		}
	}
	all["a machine joins with a static token, and is ready when it reports up"] = func(t *testing.T, r *rig.Rig) {
		s := newStage(t, r, 1)
		s.secret("token", "token", "abcdef.0123456789abcdef\n")
		s.target(func(jt *v1alpha1.JoinTarget) {
			jt.Spec.KubeconfigSecretRef = nil
			jt.Spec.StaticToken = &v1alpha1.StaticToken{
				TokenSecretRef: v1alpha1.SecretKeySelector{Name: "token", Key: "token"}, CACertHashes: []v1alpha1.CACertHash{v1alpha1.CACertHash("sha256:" + strings.Repeat("ab", 32))},
			}
		})
		s.targetIs(v1alpha1.Reachable, metav1.ConditionUnknown, "NoKubeconfig")
		s.machine("w", joins(v1alpha1.RoleNode))
		mm := s.ready("w")
		if c := apimeta.FindStatusCondition(mm.Status.Conditions, v1alpha1.NodeJoined); c != nil {
			t.Errorf("a node is told that nobody can see: %+v", c)
		}
		doc := s.robots[0].Document("user-data")
		if !strings.Contains(doc, "abcdef.0123456789abcdef") || !strings.Contains(doc, strings.Repeat("ab", 32)) {
			t.Errorf("token or hash are not in the configuration:\n%s", doc)
		}
	}
	all["as many workers join at a time as the target allows"] = func(t *testing.T, r *rig.Rig) {
		s := newStage(t, r, 3)
		s.target(func(jt *v1alpha1.JoinTarget) { jt.Spec.WorkerJoinParallelism = 1 })
		names := []string{"a", "b", "c"}
		for _, name := range names {
			s.machine(name, joins(v1alpha1.RoleNode), s.hostname(name))
		}
		for range names {
			var now string
			s.WaitFor(t, "one of them joins", func() error {
				for _, name := range names {
					if mm := s.get(name); mm.Status.Phase == v1alpha1.PhaseJoining {
						now = name
						return nil
					}
				}
				return fmt.Errorf("none does: %s", conditions(s.get("a")))
			})
			names = slices.DeleteFunc(names, func(n string) bool { return n == now })
			for _, name := range names {
				s.is(name, v1alpha1.OSInstalled, metav1.ConditionFalse, v1alpha1.ReasonWaitingForTurn, "1 workers join at a time")
				if s.robotOf(name).IsOn() {
					t.Errorf("%s is switched on while %s joins", name, now)
				}
			}
			s.kubelet(s.ns+"-"+now, s.get(now).Spec.ProviderID)
			s.ready(now)
		}
	}
	all["the first control plane makes the cluster, the others follow one by one, and workers after it"] = func(t *testing.T, r *rig.Rig) {
		s := newStage(t, r, 4)
		s.access() // the cluster that is made is the test's own: so its kubeconfig is there before
		s.target(func(jt *v1alpha1.JoinTarget) {
			jt.Spec.KubeconfigSecretRef, jt.Spec.Init = nil, ptr(true)
			jt.Spec.ClusterConfiguration = &runtime.RawExtension{Raw: []byte(`{"clusterName":"rack","apiServer":{"certSANs":["lab.example"]}}`)}
		})
		for _, name := range []string{"cp1", "cp2", "cp3"} {
			s.machine(name, joins(v1alpha1.RoleControlPlane), s.hostname(name))
		}
		s.machine("w", joins(v1alpha1.RoleNode), s.hostname("w"))
		s.is("w", v1alpha1.BootstrapDataAvailable, metav1.ConditionFalse, v1alpha1.ReasonWaitingForControlPlaneInit)
		planes := []string{"cp1", "cp2", "cp3"}
		next := func() string {
			var now string
			s.WaitFor(t, "one of the control planes joins", func() error {
				for _, name := range planes {
					if mm := s.get(name); mm.Status.Phase == v1alpha1.PhaseJoining {
						now = name
						return nil
					}
				}
				return fmt.Errorf("none does: %s", conditions(s.get(planes[0])))
			})
			planes = slices.DeleteFunc(planes, func(n string) bool { return n == now })
			return now
		}
		first := next()
		if doc := s.robotOf(first).Document("user-data"); !strings.Contains(doc, "ClusterConfiguration") || !strings.Contains(doc, "clusterName: rack") || !strings.Contains(doc, "lab.example") {
			t.Errorf("the first does not make the cluster:\n%s", doc)
		}
		for _, name := range planes {
			s.is(name, v1alpha1.BootstrapDataAvailable, metav1.ConditionFalse, v1alpha1.ReasonWaitingForControlPlaneInit, first)
		}
		s.WaitFor(t, "the target says who makes the cluster", func() error {
			jt := s.targetIs(v1alpha1.ControlPlaneInitialized, metav1.ConditionFalse, "WaitingForControlPlaneInit")
			if jt.Status.InitHolder != first {
				return fmt.Errorf("it is %q, and %s does", jt.Status.InitHolder, first)
			}
			return nil
		})
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kubeadm-config"}, Data: map[string]string{"ClusterConfiguration": "kubernetesVersion: v1.36.3\n"}}
		s.Must(t, cm)
		t.Cleanup(func() { _ = r.Client.Delete(context.Background(), cm) })
		s.targetIs(v1alpha1.ControlPlaneInitialized, metav1.ConditionTrue, "Initialized")
		s.kubelet(s.ns+"-"+first, s.get(first).Spec.ProviderID)
		s.ready(first)
		second := next()
		s.is(planes[0], v1alpha1.BootstrapDataAvailable, metav1.ConditionFalse, v1alpha1.ReasonWaitingForTurn, "one at a time")
		if doc := s.robotOf(second).Document("user-data"); strings.Contains(doc, "ClusterConfiguration") || !strings.Contains(doc, "JoinConfiguration") {
			t.Errorf("the second does not join:\n%s", doc)
		}
		s.kubelet(s.ns+"-"+second, s.get(second).Spec.ProviderID)
		s.ready(second)
		third := next()
		s.kubelet(s.ns+"-"+third, s.get(third).Spec.ProviderID)
		s.ready(third)
		s.WaitFor(t, "the worker joins", func() error {
			if mm := s.get("w"); mm.Status.Phase != v1alpha1.PhaseJoining {
				return fmt.Errorf("it is %s: %s", mm.Status.Phase, conditions(mm))
			}
			return nil
		})
		s.WaitFor(t, "the first is a control plane like the others from now on", func() error {
			if c := s.view(first).Machine.Config; strings.Contains(c, "role: init") {
				return fmt.Errorf("installed anew it would make another cluster:\n%s", c)
			}
			return nil
		})
		s.cascade([]string{first, second, third, "w"})
	}
	all["a target that makes a cluster keeps its authorities and a kubeconfig in one Secret"] = func(t *testing.T, r *rig.Rig) {
		s := newStage(t, r, 0)
		s.target(func(jt *v1alpha1.JoinTarget) {
			jt.Spec.KubeconfigSecretRef, jt.Spec.Init, jt.Spec.ControlPlaneEndpoint = nil, ptr(true), "127.0.0.1:1"
		})
		s.targetIs(v1alpha1.Reachable, metav1.ConditionFalse, "Unreachable")
		jt := s.targetIs(v1alpha1.ControlPlaneInitialized, metav1.ConditionFalse, "WaitingForControlPlaneInit")
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "lab-kubeconfig"}}
		s.Get(t, secret)
		if o := metav1.GetControllerOf(secret); o == nil || o.UID != jt.UID {
			t.Errorf("it belongs to %+v", o)
		}
		cfg, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["value"])
		if err != nil || cfg.Host != "https://127.0.0.1:1" {
			t.Errorf("kubeconfig for %v, %v", cfg, err)
		}
		var pki map[string]string
		if err := yaml.Unmarshal(secret.Data["pki"], &pki); err != nil || len(pki) != len(kubeadm.PKIFiles()) {
			t.Errorf("authorities: %d files, %v", len(pki), err)
		}
		b, _ := json.Marshal(jt)
		if strings.Contains(string(b), "PRIVATE KEY") {
			t.Error("a key stands in the object")
		}
		if len(s.secretsNamed(s.ns)) != 2 {
			t.Errorf("sealed secrets: %v", s.secretsNamed(s.ns))
		}
		if err := r.Client.Delete(context.Background(), jt); err != nil {
			t.Fatal(err)
		}
		s.WaitFor(t, "nothing is left of it", func() error {
			if left := s.secretsNamed(s.ns); len(left) > 0 {
				return fmt.Errorf("secrets %v", left)
			}
			return nil
		})
	}
	all["a target that cannot be used says why, and its machines wait"] = func(t *testing.T, r *rig.Rig) {
		s := newStage(t, r, 1)
		s.target(func(jt *v1alpha1.JoinTarget) { jt.Spec.KubeconfigSecretRef.Name = "other" })
		s.targetIs(v1alpha1.Ready, metav1.ConditionFalse, "SecretMissing")
		s.machine("w", joins(v1alpha1.RoleNode), s.hostname("w"))
		s.is("w", v1alpha1.BootstrapDataAvailable, metav1.ConditionFalse, v1alpha1.ReasonWaitingForBootstrapData, "other")
		s.secret("other", "value", "not a kubeconfig")
		s.targetIs(v1alpha1.Ready, metav1.ConditionFalse, "InvalidConfiguration")
		s.patchSecret("other", "value", string(s.Kubeconfig))
		s.targetIs(v1alpha1.Ready, metav1.ConditionTrue, v1alpha1.ReasonReady)
		s.WaitFor(t, "the machine goes on", func() error {
			if mm := s.get("w"); mm.Status.Phase != v1alpha1.PhaseJoining {
				return fmt.Errorf("it is %s: %s", mm.Status.Phase, conditions(mm))
			}
			return nil
		})
	}
	all["bootstrap data come from a Secret: they are waited for, looked at first, and handed over once"] = func(t *testing.T, r *rig.Rig) {
		s := newStage(t, r, 1)
		s.machine("w", func(mm *v1alpha1.MetalMachine) {
			mm.Spec.Bootstrap = &v1alpha1.Bootstrap{DataSecretName: "data"}
		})
		s.is("w", v1alpha1.HostClaimed, metav1.ConditionTrue, v1alpha1.ReasonClaimed)
		mm := s.is("w", v1alpha1.BootstrapDataAvailable, metav1.ConditionFalse, v1alpha1.ReasonWaitingForBootstrapData, "there is no Secret data")
		if mm.Status.Phase != v1alpha1.PhaseWaitingForBootstrapData || s.robots[0].IsOn() {
			t.Errorf("phase %s, on %v", mm.Status.Phase, s.robots[0].IsOn())
		}
		s.secret("data", "value", "hello", "format", "cloudbase-init")
		mm = s.is("w", v1alpha1.BootstrapDataAvailable, metav1.ConditionFalse, v1alpha1.ReasonUnsupportedFormat)
		if mm.Status.FailureReason != v1alpha1.FailureInvalidConfiguration || s.robots[0].IsOn() {
			t.Errorf("failure %s, on %v", mm.Status.FailureReason, s.robots[0].IsOn())
		}
		value := "#cloud-config\nwrite_files:\n- path: /etc/canary\n  content: bootstrap-canary\nruncmd:\n- [touch, /run/done]\n"
		body := fmt.Sprintf(`{"stringData":{"format":"cloud-config","value":%q}}`, value)
		o := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "data"}}
		if err := r.Client.Patch(context.Background(), o, client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
			t.Fatal(err)
		}
		mm = s.ready("w")
		doc := s.robots[0].Document("user-data")
		if !strings.Contains(doc, "bootstrap-canary") && !strings.Contains(doc, b64(value)) {
			t.Errorf("the data are not in the configuration:\n%s", doc)
		}
		b, _ := json.Marshal(mm)
		if strings.Contains(string(b)+s.History(500), "bootstrap-canary") {
			t.Error("the data stand in the object or in an event")
		}
	}
}

// blockedByBudget deletes a machine whose node has a pod that a budget keeps, and lets it go then.
func (s *stage) blockedByBudget(name, node string) {
	s.t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "db", Labels: map[string]string{"app": "db"}}}
	pod.Spec.NodeName = node
	pod.Spec.Containers = []corev1.Container{{Name: "c", Image: "x"}}
	pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	pdb := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "keep"}}
	pdb.Spec = policyv1.PodDisruptionBudgetSpec{MinAvailable: ptrIntstr(1), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}}
	s.serviceAccount()
	s.Must(s.t, pod, pdb)
	s.WaitFor(s.t, "pod and budget are as their controllers would say", func() error { // which may be writing, too
		if err := s.Client.Get(context.Background(), client.ObjectKeyFromObject(pdb), pdb); err != nil {
			return err
		}
		pdb.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: pdb.Generation, CurrentHealthy: 1, DesiredHealthy: 1, ExpectedPods: 1}
		if err := s.Client.Status().Update(context.Background(), pdb); err != nil {
			return err
		}
		if err := s.Client.Get(context.Background(), client.ObjectKeyFromObject(pod), pod); err != nil {
			return err
		}
		pod.Status.Phase = corev1.PodRunning
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		return s.Client.Status().Update(context.Background(), pod)
	})
	s.delete(name)
	mm := s.is(name, v1alpha1.Drained, metav1.ConditionFalse, v1alpha1.ReasonBlockedByPDB, "keep")
	if mm.Status.Phase != v1alpha1.PhaseDraining || mm.Status.Deletion == nil || mm.Status.Deletion.DrainStarted == nil {
		s.t.Errorf("phase %s, deletion %+v", mm.Status.Phase, mm.Status.Deletion)
	}
	if h := s.host(s.robots[0].ID()); h.State != inventory.Releasing || !s.robots[0].IsOn() {
		s.t.Errorf("the host is %s, on %v", h.State, s.robots[0].IsOn())
	}
	if n := s.node(node); !n.Spec.Unschedulable {
		s.t.Error("the node is not cordoned")
	}
	if err := s.Client.Delete(context.Background(), pdb); err != nil {
		s.t.Fatal(err)
	}
	s.WaitFor(s.t, "the pod is evicted, and its kubelet lets it go", func() error {
		err := s.Client.Get(context.Background(), client.ObjectKeyFromObject(pod), pod)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err == nil && pod.DeletionTimestamp != nil {
			return s.Client.Delete(context.Background(), pod, client.GracePeriodSeconds(0))
		}
		return fmt.Errorf("it is there, %v", err)
	})
	s.gone(name)
}

// cascade deletes a target with everything that is in it.
func (s *stage) cascade(names []string) {
	s.t.Helper()
	jt := &v1alpha1.JoinTarget{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "lab"}}
	s.Get(s.t, jt)
	if err := s.Client.Delete(context.Background(), jt); err != nil {
		s.t.Fatal(err)
	}
	s.targetIs(v1alpha1.Ready, metav1.ConditionFalse, "InUse")
	for _, name := range names {
		if mm := s.get(name); mm.DeletionTimestamp != nil {
			s.t.Errorf("%s goes without being asked", name)
		}
	}
	body := []byte(`{"metadata":{"annotations":{"` + v1alpha1.AnnotationCascade + `":"true"}}}`)
	if err := s.Client.Patch(context.Background(), jt, client.RawPatch(types.MergePatchType, body)); err != nil {
		s.t.Fatal(err)
	}
	for _, name := range names {
		s.gone(name)
	}
	s.WaitFor(s.t, "the target is gone", func() error {
		err := s.Client.Get(context.Background(), client.ObjectKeyFromObject(jt), jt)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there: %+v, %v", jt.Status, err)
	})
}
