package kubelet

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/machineconfig"
)

func TestLabelsAKubeletMaySet(t *testing.T) {
	for key, want := range map[string]bool{
		"rack": true, "example.com/rack": true, "node.cluster.x-k8s.io/pool": true, "kubernetes.io/hostname": true,
		"topology.kubernetes.io/zone": true, "node.kubernetes.io/instance-type": true, "a.node.kubernetes.io/b": true,
		"kubelet.kubernetes.io/x": true, "notkubernetes.io/x": true,
		"node-role.kubernetes.io/worker": false, "kubernetes.io/role": false, "x.k8s.io/y": false, "k8s.io/y": false,
		"node-restriction.kubernetes.io/x": false, "topology.kubernetes.io/rack": false,
	} {
		if got := MaySet(key); got != want {
			t.Errorf("%s: %t", key, got)
		}
	}
}

func TestReadSaysANodeInTheKubeletsTerms(t *testing.T) {
	n, err := Read(machineconfig.BootstrapInput{
		Config: &machineconfig.Config{Host: machineconfig.HostIdentity{Hostname: "a"}}, OS: machineconfig.Target{OS: "flatcar"},
		Spec: machineconfig.BootstrapSpec{
			Labels: map[string]string{"z": "", "b": "c", "node-role.kubernetes.io/x": ""}, NodeIP: "10.0.0.1,fd00::1",
			ProviderID: "slipway://s/h/c", KubeletArgs: map[string]string{"v": "4"},
		},
	})
	want := Node{
		Name: "a", Labels: []string{"b=c", "z="}, Refused: []string{"node-role.kubernetes.io/x"},
		Args: map[string]string{
			"v": "4", "node-labels": "b=c,z=", "node-ip": "10.0.0.1,fd00::1", "provider-id": "slipway://s/h/c", "volume-plugin-dir": FlatcarVolumePlugins,
		},
	}
	if d := cmp.Diff(want, n); d != "" || err != nil {
		t.Error(err, d)
	}
}
