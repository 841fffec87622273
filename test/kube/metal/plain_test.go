package metal_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/v1alpha1"
	"slipway.dev/slipway/test/kube/rig"
)

func init() {
	all["a machine of nothing but a profile is installed, and its host is free and clean when it goes"] = func(t *testing.T, r *rig.Rig) {
		s := newStage(t, r, 1)
		s.machine("web")
		mm := s.ready("web")
		if mm.Spec.ClaimID == "" || !strings.HasPrefix(mm.Spec.ProviderID, "slipway://lab/") || !strings.HasSuffix(mm.Spec.ProviderID, "/"+mm.Spec.ClaimID) {
			t.Errorf("claim %q, provider id %q", mm.Spec.ClaimID, mm.Spec.ProviderID)
		}
		st := mm.Status
		if st.Phase != v1alpha1.PhaseRunning || st.HostRef == nil || st.HostRef.Name != s.robots[0].Name() || st.Initialization.Provisioned == nil || st.NodeRef != nil {
			t.Errorf("status %+v", st)
		}
		if len(st.Addresses) < 2 || st.Addresses[0] != (v1alpha1.Address{Type: v1alpha1.AddressHostname, Address: "web"}) {
			t.Errorf("addresses %v", st.Addresses)
		}
		if doc := s.robots[0].Document("user-data") + s.robots[0].Document("meta-data"); !strings.Contains(doc, "web") {
			t.Errorf("the system does not have its host name: %s", doc)
		}
		s.delete("web")
		s.gone("web")
		s.hostIs(s.robots[0].ID(), inventory.Available)
		if n := s.robots[0].Counts(); n.Wipes != 1 || n.Writes != 1 {
			t.Errorf("done to the host: %+v", n)
		}
	}
	all["a machine is ready when it has booted, and not when it was written"] = func(t *testing.T, r *rig.Rig) {
		s := newStage(t, r, 1)
		s.robots[0].Hold(rig.Up)
		s.machine("web")
		s.is("web", v1alpha1.OSInstalled, metav1.ConditionTrue, v1alpha1.ReasonInstalled)
		mm := s.is("web", v1alpha1.Ready, metav1.ConditionFalse, v1alpha1.ReasonWaitingForFirstBoot, "has not reported up")
		if mm.Status.Initialization.Provisioned != nil || mm.Status.Phase != v1alpha1.PhaseBooting {
			t.Errorf("provisioned %v, phase %s", mm.Status.Initialization.Provisioned, mm.Status.Phase)
		}
		s.is("web", v1alpha1.ConfigDelivered, metav1.ConditionFalse, v1alpha1.ReasonWaitingForFirstBoot)
		s.robots[0].Go(rig.Up)
		s.settled("web")
	}
	all["files, users, image, variables and kernel arguments reach the system, and secrets of files do too"] = func(t *testing.T, r *rig.Rig) {
		s := newStage(t, r, 1)
		s.machine("web", func(mm *v1alpha1.MetalMachine) {
			mm.Spec.OS.Version = rig.OtherImage
			mm.Spec.Hostname = "front"
			mm.Spec.Files = []v1alpha1.File{
				{Path: "/etc/motd", Content: ptr("welcome to {{ .Host.Name }}"), Template: ptr(true)},
				{Path: "/etc/key", ContentFrom: &v1alpha1.SecretKeySelector{Name: "keys", Key: "key"}, Permissions: "0600"},
			}
			mm.Spec.Users = []v1alpha1.User{{Name: "ops", Sudo: "ALL=(ALL) NOPASSWD:ALL"}}
		})
		s.is("web", v1alpha1.BootstrapDataAvailable, metav1.ConditionFalse, v1alpha1.ReasonWaitingForBootstrapData, "there is no Secret keys")
		if n := s.robots[0].Counts(); n.Boots != 0 {
			t.Errorf("it booted without the Secret: %+v", n)
		}
		s.secret("keys", "other", "x")
		s.is("web", v1alpha1.BootstrapDataAvailable, metav1.ConditionFalse, v1alpha1.ReasonWaitingForBootstrapData, "Secret keys has no key key")
		s.patchSecret("keys", "key", "a-very-secret-value")
		mm := s.ready("web")
		doc := s.robots[0].Document("user-data")
		for _, words := range []string{"front", "ops", "a-very-secret-value", "welcome to"} {
			if !strings.Contains(doc+s.robots[0].Document("meta-data"), words) && !strings.Contains(doc, b64(words)) {
				t.Errorf("%q is not in the configuration:\n%s", words, doc)
			}
		}
		if v := s.view("web"); v.Image != rig.OtherImage || mm.Status.Versions.OSImage != rig.OtherImage {
			t.Errorf("image %s, told %s", v.Image, mm.Status.Versions.OSImage)
		}
		s.delete("web")
		s.gone("web")
		if left := s.secretsNamed("web-keys"); len(left) > 0 {
			t.Errorf("secrets stay behind: %v", left)
		}
	}
}
