// Package metal_test proves the stand-alone kinds on a real API server, a real engine and played hardware: what the user
// writes as a MetalMachine or JoinTarget becomes what it says, and no fault touches a host that it should not.
package metal_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/kubernetes/node"
	"slipway.dev/slipway/kubernetes/standalone"
	"slipway.dev/slipway/kubernetes/v1alpha1"
	"slipway.dev/slipway/machineconfig/kubeadm"
	"slipway.dev/slipway/provision/operation"
	"slipway.dev/slipway/test/kube/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }

func ptr[T any](v T) *T { return &v }

// stage is a namespace with hosts of its own.
type stage struct {
	*rig.Rig
	t      *testing.T
	ns     string
	robots []*rig.Robot
}

// newStage makes a namespace and hosts that only its machines are given.
func newStage(t *testing.T, r *rig.Rig, hosts int, labels ...string) *stage {
	t.Helper()
	s := &stage{Rig: r, t: t, ns: r.Namespace(t, labels...)}
	s.robots = r.AddHosts(hosts, map[string]string{"stage": s.ns})
	return s
}

// machine makes a MetalMachine that takes the stage's hosts.
func (s *stage) machine(name string, change ...func(*v1alpha1.MetalMachine)) *v1alpha1.MetalMachine {
	s.t.Helper()
	mm := &v1alpha1.MetalMachine{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name}}
	mm.Spec.OS.Profile = rig.DiskProfile
	mm.Spec.Placement = &v1alpha1.Placement{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"stage": s.ns}}}
	for _, c := range change {
		c(mm)
	}
	s.Must(s.t, mm)
	return mm
}

// get reads a MetalMachine again.
func (s *stage) get(name string) *v1alpha1.MetalMachine {
	s.t.Helper()
	mm := &v1alpha1.MetalMachine{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name}}
	s.Get(s.t, mm)
	return mm
}

// change changes a MetalMachine until that works.
func (s *stage) change(name string, change func(*v1alpha1.MetalMachine)) {
	s.t.Helper()
	s.WaitFor(s.t, "MetalMachine "+name+" can be changed", func() error {
		mm := s.get(name)
		change(mm)
		return s.Client.Update(context.Background(), mm)
	})
}

func annotate(key, value string) func(*v1alpha1.MetalMachine) {
	return func(mm *v1alpha1.MetalMachine) {
		if mm.Annotations == nil {
			mm.Annotations = map[string]string{}
		}
		if mm.Annotations[key] = value; value == "" {
			delete(mm.Annotations, key)
		}
	}
}

// is waits until a condition has a status and a reason, and returns the object.
func (s *stage) is(name, kind string, status metav1.ConditionStatus, reason string, words ...string) *v1alpha1.MetalMachine {
	s.t.Helper()
	var mm *v1alpha1.MetalMachine
	s.WaitFor(s.t, fmt.Sprintf("%s is %s/%s for %s", kind, status, reason, name), func() error {
		mm = s.get(name)
		c := apimeta.FindStatusCondition(mm.Status.Conditions, kind)
		if c == nil {
			return fmt.Errorf("there is no such condition among %s", conditions(mm))
		}
		if c.Status != status || c.Reason != reason {
			return fmt.Errorf("conditions are %s", conditions(mm))
		}
		if c.ObservedGeneration != mm.Generation && kind != v1alpha1.Paused { // it is about the spec of before
			return fmt.Errorf("generation %d was looked at, and there is %d", c.ObservedGeneration, mm.Generation)
		}
		for _, w := range words {
			if !strings.Contains(c.Message, w) {
				return fmt.Errorf("its message is %q, without %q", c.Message, w)
			}
		}
		return nil
	})
	return mm
}

func conditions(mm *v1alpha1.MetalMachine) string {
	var all []string
	for _, c := range mm.Status.Conditions {
		all = append(all, fmt.Sprintf("%s=%s/%s %q", c.Type, c.Status, c.Reason, c.Message))
	}
	return strings.Join(all, ", ")
}

func (s *stage) ready(name string) *v1alpha1.MetalMachine {
	s.t.Helper()
	return s.is(name, v1alpha1.Ready, metav1.ConditionTrue, v1alpha1.ReasonReady)
}

// settled waits until a machine is ready, its system has reported up, and its object says so: nothing is to come.
func (s *stage) settled(name string) (mm *v1alpha1.MetalMachine) {
	s.t.Helper()
	s.ready(name)
	s.WaitFor(s.t, name+" has settled", func() error {
		mm = s.get(name)
		if h := s.view(name).Host; h == nil || h.State != inventory.Active || mm.Status.Phase != v1alpha1.PhaseRunning {
			return fmt.Errorf("phase %s on %+v", mm.Status.Phase, h)
		}
		return nil
	})
	return mm
}

func (s *stage) delete(name string) {
	s.t.Helper()
	mm := &v1alpha1.MetalMachine{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name}}
	if err := s.Client.Delete(context.Background(), mm); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) gone(name string) {
	s.t.Helper()
	s.WaitFor(s.t, "MetalMachine "+name+" is gone", func() error {
		mm := &v1alpha1.MetalMachine{}
		err := s.Client.Get(context.Background(), client.ObjectKey{Namespace: s.ns, Name: name}, mm)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there: %v, %s", mm.Status.Phase, conditions(mm))
	})
}

// view is what the appliance has for an object.
func (s *stage) view(name string) contract.View {
	s.t.Helper()
	mm := s.get(name)
	views, err := s.Appliance().ListMachines(context.Background(), "")
	if err != nil {
		s.t.Fatal(err)
	}
	for _, v := range views {
		if strings.HasSuffix(v.Machine.Owner, "/"+s.ns+"/MetalMachine/"+name+"/"+string(mm.UID)) {
			return v
		}
	}
	s.t.Fatalf("the appliance has no machine for %s", name)
	return contract.View{}
}

func (s *stage) host(id inventory.HostID) inventory.Host {
	s.t.Helper()
	v, err := s.Appliance().FindHost(context.Background(), id)
	if err != nil {
		s.t.Fatal(err)
	}
	return v.Host
}

// hostIs waits until a host is in a state.
func (s *stage) hostIs(id inventory.HostID, state inventory.State) {
	s.t.Helper()
	s.WaitFor(s.t, "host is "+string(state), func() error {
		if h := s.host(id); h.State != state {
			return fmt.Errorf("it is %s: %s", h.State, h.StateReason)
		}
		return nil
	})
}

// robotOf is the robot that a machine has.
func (s *stage) robotOf(name string) *rig.Robot {
	s.t.Helper()
	return s.Robot(s.get(name).Status.HostRef.Name)
}

// secret makes a Secret.
func (s *stage) secret(name string, pairs ...string) {
	s.t.Helper()
	o := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name}, StringData: map[string]string{}}
	for i := 0; i < len(pairs); i += 2 {
		o.StringData[pairs[i]] = pairs[i+1]
	}
	s.Must(s.t, o)
}

// drains empties nodes with the kubeconfigs of join targets, as the server does.
func drains(r *rig.Rig) operation.Nodes {
	return node.New(node.Config{Store: r.Store, Secrets: r.Secrets(), Site: "lab", Now: r.Now})
}

// all are the cases that share one rig.
var all = map[string]func(*testing.T, *rig.Rig){}

func TestStandAlone(t *testing.T) {
	r := rig.New(t, rig.Options{Setup: []rig.Setup{standalone.Setup}, Nodes: drains})
	for name, run := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, r)
		})
	}
}

func b64(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

func (s *stage) patchSecret(name, key, value string) {
	s.t.Helper()
	o := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name}}
	body := fmt.Sprintf(`{"stringData":{%q:%q}}`, key, value)
	if err := s.Client.Patch(context.Background(), o, client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
		s.t.Fatal(err)
	}
}

// access makes the Secret by which the test's own cluster is joined, with authorities.
func (s *stage) access() {
	s.t.Helper()
	pki, err := kubeadm.NewPKI(time.Now(), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	text, err := yaml.Marshal(pki)
	if err != nil {
		s.t.Fatal(err)
	}
	s.secret("lab-kubeconfig", "value", string(s.Kubeconfig), "pki", string(text))
}

// secretsNamed are the inventory's secrets of this stage whose names begin so.
func (s *stage) secretsNamed(prefix string) (names []string) {
	s.t.Helper()
	err := s.Store.Read(context.Background(), func(tx inventory.Tx) error {
		all, err := tx.Secrets().List(inventory.Page{})
		for _, x := range all {
			if strings.HasPrefix(x.Name, prefix) && strings.Contains(x.Owner, "/"+s.ns+"/") {
				names = append(names, x.Name)
			}
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return names
}

func ptrIntstr(n int32) *intstr.IntOrString {
	v := intstr.FromInt32(n)
	return &v
}

// serviceAccount makes the account that pods of the namespace have: there is no controller here that does.
func (s *stage) serviceAccount() {
	s.t.Helper()
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "default"}}
	if err := s.Client.Create(context.Background(), sa); err != nil && !apierrors.IsAlreadyExists(err) {
		s.t.Fatal(err)
	}
}
