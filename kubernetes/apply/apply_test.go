package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/backend/backendtest"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/kubernetes/translate"
	"slipway.dev/slipway/kubernetes/v1alpha1"
)

const rack = `
apiVersion: v1
kind: Secret
metadata: {name: bmc, namespace: metal}
stringData: {username: admin, password: CANARY-bmc}
---
apiVersion: v1
kind: Secret
metadata: {name: lab-kubeconfig}
stringData: {value: "CANARY-kubeconfig"}
---
apiVersion: v1
kind: Secret
metadata: {name: motd}
stringData: {text: "CANARY-motd"}
---
apiVersion: metal.slipway.dev/v1alpha1
kind: MetalMachine
metadata:
  name: web-1
  annotations: {pre-drain.hook.metal.slipway.dev/storage: ""}
spec:
  placement: {pool: front, reuse: PreferSame}
  os: {profile: worker, version: debian, variables: {answer: "42"}, kernelArgs: [console=ttyS0]}
  files:
  - {path: /etc/motd, contentFrom: {name: motd, key: text}}
  - {path: /etc/issue, content: "hello\n"}
---
apiVersion: metal.slipway.dev/v1alpha1
kind: MetalMachine
metadata: {name: node-1}
spec:
  os: {profile: worker}
  roles: [Node]
  versions: {kubelet: v1.36.3}
  bootstrap: {join: {targetRef: {name: lab}}}
  node: {labels: {zone: a}, taints: [{key: dedicated, value: db, effect: NoSchedule}]}
---
apiVersion: metal.slipway.dev/v1alpha1
kind: JoinTarget
metadata: {name: lab}
spec: {controlPlaneEndpoint: "10.0.0.9:6443", kubernetesVersion: v1.36.3, kubeconfigSecretRef: {name: lab-kubeconfig, key: value}}
---
apiVersion: metal.slipway.dev/v1alpha1
kind: MetalPool
metadata: {name: front}
spec: {selector: {matchLabels: {zone: a}}, minSpare: 1, cleanPolicy: Full}
---
apiVersion: metal.slipway.dev/v1alpha1
kind: MetalHost
metadata: {name: r1-u01, labels: {zone: a}}
spec:
  bootMACs: ["52:54:00:00:00:01"]
  accepted: true
  cordoned: true
  protected: true
  taints: [{key: gpu}]
  power: {driver: Redfish, address: "https://10.0.0.5", credentialsRef: {name: bmc, namespace: metal}, insecureSkipVerify: true}
`

func applier(r *backendtest.Rig) *Applier {
	return &Applier{Appliance: r.Remote, HasSecret: func(ctx context.Context, name string) (bool, error) {
		_, err := r.API.Secrets.Get(ctx, name)
		if inventory.IsKind(err, inventory.NotFound) {
			return false, nil
		}
		return err == nil, err
	}}
}

// do applies a text and returns what became of each object.
func do(t *testing.T, a *Applier, text string) (string, error) {
	t.Helper()
	objects, err := Read("f.yaml", "default", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	err = a.Apply(t.Context(), objects, func(c Change) { got = append(got, fmt.Sprintf("%s: %s", c.Ref(), c.Op)) })
	return strings.Join(got, "\n"), err
}

func TestAnAppliedFileIsInTheInventoryOnce(t *testing.T) {
	r := backendtest.New(t)
	a := applier(r)
	a.DryRun = true
	all := "MetalPool front: %[1]s\nJoinTarget default/lab: %[1]s\nMetalHost r1-u01: %[1]s\nMetalMachine default/web-1: %[1]s\nMetalMachine default/node-1: %[1]s"
	if got, err := do(t, a, rack); err != nil || got != fmt.Sprintf(all, "created") {
		t.Fatalf("dry run: %v\n%s", err, got)
	}
	if pools, err := r.Local.ListPools(t.Context()); err != nil || len(pools) != 0 {
		t.Fatalf("the dry run made %d pools, %v", len(pools), err)
	}
	a.DryRun = false
	for _, op := range []string{"created", "unchanged", "unchanged"} {
		if got, err := do(t, a, rack); err != nil || got != fmt.Sprintf(all, op) {
			t.Fatalf("%v\n%s", err, cmp.Diff(fmt.Sprintf(all, op), got))
		}
	}
	var versions []int64
	var h inventory.Host
	err := r.Store.Read(t.Context(), func(tx inventory.Tx) (err error) {
		for _, name := range []string{"default-web-1", "default-node-1"} {
			m, err := tx.FindMachine(name)
			if err != nil {
				return err
			}
			versions = append(versions, m.Version)
		}
		h, err = tx.FindHostByName("r1-u01")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if !h.IsCordoned || !h.IsProtected || h.State == inventory.Discovered || h.Labels["zone"] != "a" || len(h.Taints) != 1 {
		t.Errorf("the host: %+v", h)
	}
	v, err := r.Local.FindMachine(t.Context(), "local/default/MetalMachine/web-1/file")
	if err != nil {
		t.Fatal(err)
	}
	if m := v.Machine; m.Pool != "front" || m.Image != "debian" || m.Parameters["answer"] != "42" || len(m.Hooks) != 1 || strings.Contains(m.Config, "CANARY") || !strings.Contains(m.Config, "secret://") {
		t.Errorf("the machine: %+v", m)
	}
	shown, err := a.List(t.Context(), "", "")
	if err != nil || len(shown) != 2 || shown[1].Name != "web-1" || shown[1].Phase == "" {
		t.Fatalf("shown: %+v, %v", shown, err)
	}
	mm, ok := shown[0].Object.(*v1alpha1.MetalMachine)
	if !ok || mm.Name != "node-1" || mm.Spec.Bootstrap == nil || mm.Spec.Bootstrap.Join == nil {
		t.Fatalf("shown: %+v", shown[0].Object)
	}
	s := mm.Spec
	if s.Bootstrap.Join.TargetRef.Name != "lab" || len(s.Roles) != 1 || s.Roles[0] != v1alpha1.RoleNode || s.Versions.Kubelet != "v1.36.3" ||
		s.Node.Labels["zone"] != "a" || len(s.Node.Taints) != 1 || s.Node.Taints[0] != (v1alpha1.NodeTaint{Key: "dedicated", Value: "db", Effect: "NoSchedule"}) {
		t.Errorf("what it says of its node: %+v", s)
	}
}

// What is applied without Kubernetes is stored as what a controller makes of the same object, but for its owner.
func TestBothDoorsMeanTheSame(t *testing.T) {
	r := backendtest.New(t)
	if _, err := do(t, applier(r), rack); err != nil {
		t.Fatal(err)
	}
	objects, err := Read("f.yaml", "default", strings.NewReader(rack))
	if err != nil {
		t.Fatal(err)
	}
	targets := map[string]*v1alpha1.JoinTarget{}
	for _, o := range objects {
		if jt, ok := o.object.(*v1alpha1.JoinTarget); ok {
			targets[jt.Name] = jt
		}
	}
	n := 0
	for i := range objects {
		o := &objects[i]
		mm, ok := o.object.(*v1alpha1.MetalMachine)
		if !ok {
			continue
		}
		n++
		options := translate.Options{Owner: o.owner(), ReuseKey: mm.Namespace + "/" + mm.Name}
		if translate.IsNode(mm) {
			options.Target, options.IsHeld = targets[mm.Spec.Bootstrap.Join.TargetRef.Name], true
		}
		wanted, err := translate.MetalMachine(mm, options)
		if err != nil {
			t.Fatal(err)
		}
		v, err := r.Local.FindMachine(t.Context(), o.owner().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, isChanged := translate.Apply(v.Machine, wanted, true); isChanged {
			t.Errorf("%s: stored %+v\nwanted %+v", o.Ref(), v.Machine, wanted)
		}
	}
	if n != 2 {
		t.Errorf("%d machines were compared", n)
	}
}

func TestAChangedFileChangesOnlyWhatItSays(t *testing.T) {
	r := backendtest.New(t)
	a := applier(r)
	if _, err := do(t, a, rack); err != nil {
		t.Fatal(err)
	}
	got, err := do(t, a, strings.ReplaceAll(rack, `answer: "42"`, `answer: "43"`))
	if err != nil || strings.Count(got, ": changed") != 1 || !strings.Contains(got, "web-1: changed") {
		t.Errorf("%v\n%s", err, got)
	}
}

func TestAPausedMachineIsNotMade(t *testing.T) {
	r := backendtest.New(t)
	got, err := do(t, applier(r), `apiVersion: metal.slipway.dev/v1alpha1
kind: MetalMachine
metadata: {name: web-1, annotations: {metal.slipway.dev/paused: "true"}}
spec: {os: {profile: debian12}}
`)
	if err != nil || got != "MetalMachine default/web-1: paused" {
		t.Errorf("got %q, %v", got, err)
	}
	err = r.Store.Read(t.Context(), func(tx inventory.Tx) error {
		machines, err := tx.ListMachines(inventory.MachineFilter{}, inventory.Page{})
		if len(machines) > 0 {
			t.Errorf("%d machines are made", len(machines))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestWhatIsDeletedIsGone(t *testing.T) {
	r := backendtest.New(t)
	a := applier(r)
	if _, err := do(t, a, rack); err != nil {
		t.Fatal(err)
	}
	objects, err := Read("f.yaml", "default", strings.NewReader(rack))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := a.Delete(t.Context(), objects, func(Change) {}); err != nil {
			t.Fatal(err)
		}
	}
	err = r.Store.Read(t.Context(), func(tx inventory.Tx) error {
		machines, err1 := tx.ListMachines(inventory.MachineFilter{}, inventory.Page{})
		secrets, err2 := tx.Secrets().List(inventory.Page{})
		targets, err3 := tx.JoinTargets().List(inventory.Page{})
		pools, err4 := tx.Pools().List(inventory.Page{})
		hosts, err5 := tx.ListHosts(inventory.HostFilter{}, inventory.Page{})
		if len(machines)+len(secrets)+len(targets)+len(pools) != 0 || len(hosts) != 1 {
			t.Errorf("left: %d machines, %d secrets, %d targets, %d pools, %d hosts", len(machines), len(secrets), len(targets), len(pools), len(hosts))
		}
		return errors.Join(err1, err2, err3, err4, err5)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestWhatCannotBeAppliedSaysWhatToDo(t *testing.T) {
	r := backendtest.New(t)
	a := applier(r)
	if _, err := r.Local.CreateMachine(t.Context(), inventory.Machine{Name: "default-taken", Profile: "worker", Owner: contract.Owner{ClusterUID: "c"}.String()}); err != nil {
		t.Fatal(err)
	}
	mm := header + "kind: MetalMachine\nmetadata: {name: a}\nspec:\n  os: {profile: worker}\n"
	for _, tc := range []struct{ name, in, want string }{
		{"a profile that is not there", strings.Replace(mm, "worker", "nope", 1), "f.yaml:1: MetalMachine default/a: "},
		{"an image that is not there", strings.Replace(mm, "worker", "worker, version: nope", 1), "nope"},
		{"a join target that is not there", mm + "  bootstrap: {join: {targetRef: {name: gone}}}\n", "there is no JoinTarget default/gone"},
		{"a Secret that is not there", mm + "  users: [{name: a, passwordHashFrom: {name: s, key: k}}]\n", "Secret default/s is not in the files"},
		{"bootstrap data that are not there", mm + "  bootstrap: {dataSecretName: x}\n", "Secret default/x is not in the files"},
		{"a cluster that is to be made, and has a kubeconfig", header + "kind: JoinTarget\nmetadata: {name: t}\nspec: {controlPlaneEndpoint: \"a:1\", init: true, kubeconfigSecretRef: {name: s, key: k}}\n", "slipway target kubeconfig default-t"},
		{"a host that nobody has heard", header + "kind: MetalHost\nmetadata: {name: h}\nspec: {accepted: true}\n", "there is no host h"},
		{"an object twice", mm + "---\n" + mm, "stands twice, first in f.yaml:1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := do(t, a, tc.in)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q; %s", err, tc.want, got)
			}
		})
	}
	for _, tc := range []struct{ name, in, want string }{
		{"a host name in capitals", mm + "  hostname: WEB\n", "is not a name for a host"},
		{"a kernel argument with a NUL", strings.Replace(mm, "worker", "worker, kernelArgs: [\"a\\0b\"]", 1), "MetalMachine default/a: "},
		{"a profile of two lines", strings.Replace(mm, "worker", "\"work\\ner\"", 1), `spec.os.profile`},
	} {
		for _, isDry := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, dry run %v", tc.name, isDry), func(t *testing.T) {
				a := applier(r)
				a.DryRun = isDry
				objects, err := Read("f.yaml", "default", strings.NewReader(tc.in))
				if err == nil {
					err = a.Apply(t.Context(), objects, func(c Change) { t.Errorf("said to be %s", c.Op) })
				}
				if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
					t.Errorf("got %v, want %q", err, tc.want)
				}
			})
		}
	}
	t.Run("a name that somebody else has", func(t *testing.T) {
		if got, err := do(t, a, strings.Replace(mm, "name: a", "name: taken", 1)); err != nil || !strings.Contains(got, "created") {
			t.Errorf("%v\n%s", err, got)
		}
	})
}

// TestAHostThatNobodyHasNamedIsCalledAsItsObject holds for hosts that were heard before they were declared, as in a cluster.
func TestAHostThatNobodyHasNamedIsCalledAsItsObject(t *testing.T) {
	const object = "apiVersion: metal.slipway.dev/v1alpha1\nkind: MetalHost\nmetadata: {name: r1-u01}\nspec: {bootMACs: [\"52:54:00:00:00:01\"]}\n"
	for was, want := range map[string]string{"host-525400000001": "r1-u01", "db-master": "db-master"} {
		r := backendtest.New(t)
		h, err := r.Local.DeclareHost(t.Context(), inventory.Host{Name: was, NICs: []inventory.NIC{{MAC: "52:54:00:00:00:01", IsBoot: true}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := do(t, applier(r), object); err != nil {
			t.Fatal(err)
		}
		if v, err := r.Local.FindHost(t.Context(), h.ID); err != nil || v.Host.Name != want {
			t.Errorf("%s is called %s, %v", was, v.Host.Name, err)
		}
		if got, err := do(t, applier(r), object); err != nil || got != "MetalHost r1-u01: unchanged" {
			t.Errorf("applied again: %q, %v", got, err)
		}
	}
}
