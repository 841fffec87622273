// Package doors holds what the two doors for custom resources have in common, and the kubectl plugin, on a real API
// server with the real controllers.
package doors

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"slipway.dev/slipway/cmd/slipway/cli/kubectl"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/apply"
	"slipway.dev/slipway/kubernetes/standalone"
	"slipway.dev/slipway/kubernetes/v1alpha1"
	"slipway.dev/slipway/test/kube/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }

// file is a machine that no host fits, so that nothing but what is wanted is in its row.
const file = `apiVersion: metal.slipway.dev/v1alpha1
kind: MetalMachine
metadata:
  name: web-1
  annotations: {pre-drain.hook.metal.slipway.dev/storage: ""}
spec:
  placement: {selector: {matchLabels: {zone: nowhere}}, requirements: {minCPUThreads: 4}, reuse: PreferSame}
  os: {profile: debian12, variables: {answer: "42"}, kernelArgs: [console=ttyS0]}
  hostname: web
  files: [{path: /etc/issue, content: "hello\n", permissions: "0644"}]
  users: [{name: ops, sudo: "ALL=(ALL) NOPASSWD:ALL", groups: [wheel]}]
  deletion: {clean: Full, releaseAfter: Cleaned}
`

// fileSuffix ends the host name of the machine that has no Kubernetes: two machines never get one name.
const fileSuffix = "-file"

// wanted is a machine without what tells owners apart, and without what the engine writes.
func wanted(m inventory.Machine) inventory.Machine {
	m.Hostname = strings.TrimSuffix(m.Hostname, fileSuffix)
	m.Name, m.UID, m.Owner, m.Placement.ReuseKey = "", "", "", strings.TrimPrefix(m.Placement.ReuseKey, strings.SplitN(m.Placement.ReuseKey, "/", 2)[0])
	m.Phase, m.Reason, m.Hint, m.AttemptN, m.NextAt = "", "", "", 0, m.CreatedAt
	m.CreatedAt, m.UpdatedAt, m.NextAt, m.Version = m.DeletedAt, m.DeletedAt, m.DeletedAt, 0
	return m
}

func TestTheDoorsForCustomResources(t *testing.T) {
	r := rig.New(t, rig.Options{Hosts: 1, Setup: []rig.Setup{standalone.Setup}})
	ns := r.Namespace(t)
	objects, err := apply.Read("web.yaml", ns, strings.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	mm := &v1alpha1.MetalMachine{}
	if err := json.Unmarshal(asJSON(t, objects[0].Content()), mm); err != nil {
		t.Fatal(err)
	}
	if objects, err = apply.Read("web.yaml", ns, strings.NewReader(strings.Replace(file, "hostname: web", "hostname: web"+fileSuffix, 1))); err != nil {
		t.Fatal(err)
	}
	r.Must(t, mm)

	t.Run("a file that is applied without Kubernetes gives the row that a controller makes of it", func(t *testing.T) {
		a := &apply.Applier{Appliance: r.Appliance(), HasSecret: func(context.Context, string) (bool, error) { return false, nil }}
		if err := a.Apply(t.Context(), objects, func(apply.Change) {}); err != nil {
			t.Fatal(err)
		}
		here, err := r.Appliance().FindMachine(t.Context(), "local/"+ns+"/MetalMachine/web-1/file")
		if err != nil {
			t.Fatal(err)
		}
		r.WaitFor(t, "both rows say the same", func() error {
			all, err := r.Appliance().ListMachines(t.Context(), "")
			if err != nil {
				return err
			}
			for _, v := range all {
				if strings.HasPrefix(v.Machine.Owner, "local/") || !strings.Contains(v.Machine.Owner, "/"+ns+"/MetalMachine/web-1/") {
					continue
				}
				if d := cmp.Diff(wanted(here.Machine), wanted(v.Machine)); d != "" {
					return fmt.Errorf("without and with Kubernetes: %s", d)
				}
				return nil
			}
			return fmt.Errorf("the controller has made no machine yet")
		})
	})

	t.Run("kubectl slipway says why a machine waits, with no more than rights on the custom resources", func(t *testing.T) {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "viewer-" + ns}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{v1alpha1.Group}, Resources: []string{"*"}, Verbs: []string{"get", "list"}}}}
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role.Name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "viewer"}},
		}
		r.Must(t, role, binding)
		config := filepath.Join(t.TempDir(), "kubeconfig")
		if err := os.WriteFile(config, r.Cluster.Kubeconfig("viewer"), 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := kubectl.New(kubectl.Flags{Kubeconfig: config, Namespace: ns})
		if err != nil {
			t.Fatal(err)
		}
		r.WaitFor(t, "the plugin says that no host fits", func() error {
			w, err := p.Why(t.Context(), "web-1")
			if err != nil {
				return err
			}
			if !strings.HasPrefix(w.Summary, "it waits: ") || w.Hint == "" || len(w.Conditions) == 0 {
				return fmt.Errorf("it says %+v", w)
			}
			return nil
		})
		all, err := p.Machines(t.Context())
		if err != nil || len(all) != 1 || all[0].Name != "web-1" || all[0].IsReady || all[0].Waits == "" {
			t.Errorf("%+v, %v", all, err)
		}
		r.WaitFor(t, "the plugin lists the host", func() error {
			hosts, err := p.Hosts(t.Context())
			if err == nil && len(hosts) != 1 {
				err = fmt.Errorf("%d hosts", len(hosts))
			}
			return err
		})
		if err := p.Cordon(t.Context(), "node-1", true); err == nil || !strings.Contains(err.Error(), "does not allow") {
			t.Errorf("a viewer cordoned a host: %v", err)
		}
		if _, err := p.Why(t.Context(), "nobody"); err == nil {
			t.Error("a machine that is not there was explained")
		}
	})
}

func asJSON(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
