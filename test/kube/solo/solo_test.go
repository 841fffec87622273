// Package solo_test proves that clusters are made and joined from files alone, without custom resources: the engine, the
// keeper and `slipway apply` are real, robots play the hardware, and the cluster that is made is a real API server.
package solo_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/apply"
	"slipway.dev/slipway/kubernetes/backend"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/kubernetes/translate"
	"slipway.dev/slipway/kubernetes/v1alpha1"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/kubeadm"
	"slipway.dev/slipway/test/kube/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }

const targetOwner = "local/team/JoinTarget/lab/file"

// stage is a rig without controllers of custom resources, and what applies files to it.
type stage struct {
	*rig.Rig
	t *testing.T
	a *apply.Applier
}

func newStage(t *testing.T, hosts int) *stage {
	t.Helper()
	r := rig.New(t, rig.Options{Hosts: hosts})
	s := &stage{Rig: r, t: t, a: &apply.Applier{Appliance: r.Appliance()}}
	s.a.HasSecret = func(_ context.Context, name string) (bool, error) { return slices.Contains(s.secrets(), name), nil }
	return s
}

func (s *stage) secrets() (names []string) {
	s.t.Helper()
	err := s.Store.Read(s.t.Context(), func(tx inventory.Tx) error {
		all, err := tx.Secrets().List(inventory.Page{})
		for _, x := range all {
			names = append(names, x.Name)
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return names
}

// authorities stores those of the test's own API server as those of the cluster that is still to be made.
func (s *stage) authorities() {
	s.t.Helper()
	files, err := kubeadm.NewPKI(time.Now(), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	cert, key := s.Cluster.Authority()
	files["ca.crt"], files["ca.key"] = string(cert), string(key)
	text, err := yaml.Marshal(files)
	if err == nil {
		err = s.Appliance().SaveSecret(s.t.Context(), "team-lab-pki", targetOwner, text)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// try applies files, and returns what became of each object.
func (s *stage) try(text string) (string, error) {
	s.t.Helper()
	objects, err := apply.Read("f.yaml", "team", strings.NewReader(text))
	if err != nil {
		s.t.Fatal(err)
	}
	var all []string
	err = s.a.Apply(s.t.Context(), objects, func(c apply.Change) { all = append(all, c.Name+" "+string(c.Op)+" "+c.Detail) })
	return strings.Join(all, "\n"), err
}

func (s *stage) apply(text string) string {
	s.t.Helper()
	said, err := s.try(text)
	if err != nil {
		s.t.Fatalf("%v\n%s", err, said)
	}
	return said
}

func (s *stage) view(name string) contract.View {
	s.t.Helper()
	v, err := s.Appliance().FindMachine(s.t.Context(), "local/team/MetalMachine/"+name+"/file")
	if err != nil {
		s.t.Fatal(err)
	}
	return v
}

func (s *stage) robot(name string) *rig.Robot {
	s.t.Helper()
	v := s.view(name)
	if v.Host == nil {
		s.t.Fatalf("%s has no host", name)
	}
	return s.Robot(v.Host.Name)
}

func (s *stage) held(name string) error {
	v := s.view(name)
	if v.Machine.HostID == "" || !translate.IsHeld(&v.Machine) || s.Robot(v.Host.Name).IsOn() {
		return fmt.Errorf("%s has host %q, held %v", name, v.Machine.HostID, translate.IsHeld(&v.Machine))
	}
	return nil
}

// next waits until one of the machines is let go, and returns it and the others.
func (s *stage) next(names []string) (string, []string) {
	s.t.Helper()
	var now string
	s.WaitFor(s.t, "one of "+strings.Join(names, ", ")+" waits for its first boot", func() error {
		for _, name := range names {
			v := s.view(name)
			if v.Host != nil && s.Robot(v.Host.Name).IsInstalled() {
				now = name
				return nil
			}
		}
		return errors.New("none does")
	})
	rest := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == now })
	return now, rest
}

// reason is why a machine is not ready, as `slipway get` shows it.
func (s *stage) reason(name string) string {
	s.t.Helper()
	all, err := s.a.List(s.t.Context(), "team", name)
	if err != nil || len(all) != 1 {
		s.t.Fatalf("%d shown, %v", len(all), err)
	}
	return all[0].Reason
}

func (s *stage) target() inventory.JoinTarget {
	s.t.Helper()
	t, err := s.Appliance().FindTarget(s.t.Context(), "team-lab")
	if err != nil {
		s.t.Fatal(err)
	}
	return t
}

const plane = `
---
apiVersion: metal.slipway.dev/v1alpha1
kind: MetalMachine
metadata: {name: %[1]s}
spec:
  os: {profile: debian12}
  roles: [%[2]s]
  bootstrap: {join: {targetRef: {name: lab}}}
`

func (s *stage) rack() string {
	return fmt.Sprintf(`
apiVersion: metal.slipway.dev/v1alpha1
kind: JoinTarget
metadata: {name: lab}
spec:
  controlPlaneEndpoint: "%s"
  kubernetesVersion: v1.36.3
  init: true
  clusterConfiguration: {clusterName: rack, apiServer: {certSANs: [lab.example]}}
`, s.Cluster.Endpoint()) + fmt.Sprintf(plane, "cp1", "ControlPlane") + fmt.Sprintf(plane, "cp2", "ControlPlane") +
		fmt.Sprintf(plane, "cp3", "ControlPlane") + fmt.Sprintf(plane, "w", "Node")
}

func TestAClusterIsMadeFromFilesAlone(t *testing.T) {
	s := newStage(t, 4)
	for i := range 4 {
		s.Machine(i).Hold(rig.Up)
	}
	s.authorities()
	if said := s.apply(s.rack()); !strings.Contains(said, "slipway target kubeconfig team-lab") {
		t.Errorf("nobody says where the kubeconfig is:\n%s", said)
	}
	first, planes := s.next([]string{"cp1", "cp2", "cp3"})
	if doc := s.robot(first).Document("user-data"); !strings.Contains(doc, "ClusterConfiguration") || !strings.Contains(doc, "lab.example") || !strings.Contains(doc, "clusterName: rack") {
		t.Errorf("the first does not make the cluster as it is wanted:\n%s", doc)
	}
	others := append(slices.Clone(planes), "w")
	wait := func() error {
		for _, name := range others {
			if err := s.held(name); err != nil {
				return err
			}
			if got := s.reason(name); got != v1alpha1.ReasonWaitingForControlPlaneInit {
				return fmt.Errorf("%s waits for %q", name, got)
			}
			if got := s.view(name).Machine.Reason; !strings.Contains(got, "control plane is initialized") && !strings.Contains(got, first+" makes the cluster") {
				return fmt.Errorf("%s itself says %q", name, got)
			}
		}
		return nil
	}
	s.WaitFor(t, "the others wait for it", wait)
	s.Restart()
	s.a.Appliance = s.Appliance()
	if said := s.apply(s.rack()); strings.Contains(said, "created") || strings.Contains(said, "changed") && !strings.Contains(said, "unchanged") {
		t.Errorf("applied again:\n%s", said)
	}
	s.robot(first).Go(rig.Up)
	s.WaitFor(t, "the first is up", func() error {
		if !s.view(first).IsUp {
			return errors.New("it is not")
		}
		return nil
	})
	s.Stays(t, 2*time.Second, "a machine joins a cluster that is not there", wait)

	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kubeadm-config"}, Data: map[string]string{"ClusterConfiguration": "kubernetesVersion: v1.36.3\n"}}
	s.Must(t, cm)
	t.Cleanup(func() { _ = s.Client.Delete(context.Background(), cm) })
	second, last := s.next(planes)
	if doc := s.robot(second).Document("user-data"); strings.Contains(doc, "ClusterConfiguration") || !strings.Contains(doc, "JoinConfiguration") {
		t.Errorf("the second does not join:\n%s", doc)
	}
	if s.target().InitializedAt.IsZero() {
		t.Error("nobody noted that the cluster is there")
	}
	if err := s.held(last[0]); err != nil {
		t.Errorf("two control planes join at a time: %v", err)
	}
	if !strings.Contains(s.History(500), "control planes join one at a time") {
		t.Error("the timeline does not say why the third waits")
	}
	s.next([]string{"w"}) // workers join beside control planes
	if c := s.view(first).Machine.Config; translate.RoleOf(c) != machineconfig.ControlPlane {
		t.Errorf("installed anew, the first would make another cluster:\n%s", c)
	}
	s.robot(second).Go(rig.Up)
	s.next(last)
	s.robot(last[0]).Go(rig.Up)
	s.robot("w").Go(rig.Up)
	for _, name := range []string{"cp1", "cp2", "cp3", "w"} {
		s.WaitFor(t, name+" is up", func() error {
			if v := s.view(name); !v.IsUp || v.Machine.Phase != inventory.MachineRunning {
				return fmt.Errorf("it is %s", v.Machine.Phase)
			}
			return nil
		})
	}
	s.kubeconfig()
	s.gone()
}

// kubeconfig is what an administrator is given: a real API server takes it.
func (s *stage) kubeconfig() {
	s.t.Helper()
	text, err := s.Appliance().(*backend.Local).IssueKubeconfig(s.t.Context(), "team-lab", "slipway:ann", time.Hour)
	if err != nil {
		s.t.Fatal(err)
	}
	cfg, err := clientcmd.RESTConfigFromKubeConfig(text)
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := kubernetes.NewForConfigOrDie(cfg).CoreV1().Nodes().List(s.t.Context(), metav1.ListOptions{}); err != nil {
		s.t.Errorf("the cluster does not let the administrator in: %v", err)
	}
	if !strings.Contains(s.History(500), "for 1h was issued to slipway:ann") {
		s.t.Error("nobody wrote down who was let in")
	}
}

// gone deletes everything by the files.
func (s *stage) gone() {
	s.t.Helper()
	objects, err := apply.Read("f.yaml", "team", strings.NewReader(s.rack()))
	if err == nil {
		err = s.a.Delete(s.t.Context(), objects, func(apply.Change) {})
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.WaitFor(s.t, "nothing is left", func() error {
		all, err := s.Appliance().ListMachines(s.t.Context(), contract.LocalCluster+"/")
		if err != nil || len(all) > 0 || len(s.secrets()) > 0 {
			return fmt.Errorf("%d machines, secrets %v, %v", len(all), s.secrets(), err)
		}
		return nil
	})
}

func TestAControlPlaneWaitsForTheMembersOfEtcd(t *testing.T) {
	s := newStage(t, 1)
	s.authorities()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kubeadm-config"}, Data: map[string]string{"ClusterConfiguration": "kubernetesVersion: v1.36.3\n"}}
	etcd := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "etcd-cp1", Labels: map[string]string{"component": "etcd", "tier": "control-plane"}}}
	etcd.Spec.Containers = []corev1.Container{{Name: "etcd", Image: "x"}}
	etcd.Spec.NodeName = "cp1"
	etcd.Spec.HostNetwork = true
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "default"}}
	_ = s.Client.Create(t.Context(), sa) // its controller may be here
	s.Must(t, cm, etcd)
	t.Cleanup(func() {
		_ = s.Client.Delete(context.Background(), cm)
		_ = s.Client.Delete(context.Background(), etcd)
	})
	// The cluster has control planes before cp1 is wanted. Else cp1 could be the first one, which waits for nobody.
	alone, _, _ := strings.Cut(s.rack(), "---")
	s.apply(alone)
	target := s.target()
	target.InitializedAt = time.Now()
	if err := s.Appliance().SaveTarget(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	s.apply(s.rack())
	s.WaitFor(t, "it has a host", func() error { return s.held("cp1") })
	s.Stays(t, 2*time.Second, "a control plane joins while a member of etcd is not well", func() error { return s.held("cp1") })
	etcd.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	if err := s.Client.Status().Update(t.Context(), etcd); err != nil {
		t.Fatal(err)
	}
	s.next([]string{"cp1"})
}

func TestBootstrapDataComeFromAFile(t *testing.T) {
	s := newStage(t, 1)
	const mm = `
apiVersion: metal.slipway.dev/v1alpha1
kind: MetalMachine
metadata: {name: m}
spec:
  os: {profile: debian12}
  bootstrap: {dataSecretName: data}
`
	const value = "#cloud-config\nwrite_files:\n- {path: /etc/canary, content: bootstrap-canary}\nruncmd: [[touch, /run/done]]\n"
	secret := func(format string) string {
		return mm + fmt.Sprintf("---\napiVersion: v1\nkind: Secret\nmetadata: {name: data}\nstringData: {format: %s, value: %q}\n", format, value)
	}
	if _, err := s.try(mm); err == nil || !strings.Contains(err.Error(), "Secret team/data is not in the files") {
		t.Errorf("without the Secret: %v", err)
	}
	if _, err := s.try(secret("cloudbase-init")); err == nil || !strings.Contains(err.Error(), "cloudbase-init") {
		t.Errorf("data of a format that nobody reads: %v", err)
	}
	s.WaitFor(t, "it has a host, and is not switched on", func() error { return s.held("m") })
	s.apply(secret("cloud-config"))
	s.WaitFor(t, "it is up", func() error {
		if v := s.view("m"); !v.IsUp {
			return fmt.Errorf("it is %s: %s", v.Machine.Phase, v.Machine.Reason)
		}
		return nil
	})
	if doc := s.robot("m").Document("user-data"); !strings.Contains(doc, "bootstrap-canary") && !strings.Contains(doc, base64.StdEncoding.EncodeToString([]byte(value))) {
		t.Errorf("the data are not in the configuration:\n%s", doc)
	}
	if strings.Contains(s.History(500), "bootstrap-canary") || strings.Contains(s.view("m").Machine.Config, "bootstrap-canary") {
		t.Error("the data stand in the machine or in an event")
	}
}
