package contract

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "slipway.dev/slipway/kubernetes/infra/v1alpha1"
	metalv1 "slipway.dev/slipway/kubernetes/v1alpha1"
)

// extra makes a machine with configuration of one's own, in a Secret.
func extra(format infrav1.ConfigFormat) func(*clusterv1.Machine, *infrav1.SlipwayMachine) {
	return func(_ *clusterv1.Machine, sm *infrav1.SlipwayMachine) {
		sm.Spec.ExtraConfig = []infrav1.ExtraConfig{{Format: format, SecretRef: metalv1.SecretName{Name: "extra"}}}
	}
}

func (s *stage) secret(name, value string) {
	s.Helper()
	s.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name}, Data: map[string][]byte{"value": []byte(value)}})
}

var bootstrapRows = []row{
	{name: "bootstrap Secret: one that is named before it exists is waited for", hosts: 1, run: func(s *stage) {
		p := s.add("m", nil)
		s.edit(p.m, func() { p.m.Spec.Bootstrap.DataSecretName = ptr("m-data") }, false)
		p.untilIs(metalv1.BootstrapDataAvailable, metav1.ConditionFalse, metalv1.ReasonWaitingForBootstrapData)
		p.untilClaimed() // the condition may come first
		if p.robot().IsOn() {
			s.Error("it was switched on")
		}
		s.secret("m-data", bootstrapData)
		p.untilProvisioned()
	}},
	{name: "bootstrap Secret: an unknown format is refused before anything is switched on", hosts: 1, run: func(s *stage) {
		p := s.add("m", nil)
		p.bootstrap(func(s *corev1.Secret) { s.Data["format"] = []byte("tarball") })
		p.untilIs(metalv1.BootstrapDataAvailable, metav1.ConditionFalse, metalv1.ReasonUnsupportedFormat)
		p.untilIs(metalv1.Stalled, metav1.ConditionTrue, string(metalv1.FailureInvalidConfiguration))
		if p.robot().IsOn() || p.robot().Counts().Writes > 0 {
			s.Error("its host was touched")
		}
		if strings.Contains(p.condition(metalv1.BootstrapDataAvailable).Message, "canary") {
			s.Error("the condition quotes the data")
		}
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "m-data"}}
		s.edit(secret, func() { secret.Data["format"] = []byte("cloud-config") }, false)
		p.untilProvisioned()
	}},
	{name: "bootstrap Secret: without a format it is a cloud-config", hosts: 1, run: func(s *stage) {
		p := s.add("m", nil)
		p.bootstrap(func(s *corev1.Secret) { delete(s.Data, "format") })
		p.untilProvisioned()
		if !strings.Contains(p.userData(), "canary-of-the-contract") {
			s.Errorf("its disk has other bootstrap data: %s", p.userData())
		}
	}},
	{name: "extraConfig: comes before the bootstrap data", hosts: 1, run: func(s *stage) {
		s.secret("extra", "#cloud-config\nwrite_files:\n- {path: /etc/mine, content: here-is-mine}\nruncmd:\n- echo mine-first\n")
		p := s.whole("m", extra(infrav1.FormatCloudConfig))
		text := p.userData()
		mine, theirs := strings.Index(text, "echo mine-first"), strings.Index(text, "kubeadm join --config")
		if mine < 0 || theirs < 0 || mine > theirs || !strings.Contains(text, "here-is-mine") || !strings.Contains(text, "canary-of-the-contract") {
			s.Errorf("mine at %d, the join at %d: %s", mine, theirs, text)
		}
	}},
	{name: "extraConfig: one that cannot be merged, or is not there, is said", hosts: 2, run: func(s *stage) {
		p := s.add("m", extra(infrav1.FormatIgnition))
		p.bootstrap(nil)
		p.untilIs(metalv1.BootstrapDataAvailable, metav1.ConditionFalse, metalv1.ReasonWaitingForBootstrapData)
		s.secret("extra", `{"ignition":{"version":"3.4.0"}}`)
		p.untilIs(metalv1.BootstrapDataAvailable, metav1.ConditionFalse, metalv1.ReasonUnsupportedFormat)
		if p.robot().IsOn() {
			s.Error("it was switched on")
		}
	}},
}
