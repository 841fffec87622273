package walkthrough

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infra "slipway.dev/slipway/kubernetes/infra/v1alpha1"
	"slipway.dev/slipway/test/kube/capi/stock"
	"slipway.dev/slipway/test/kube/cluster"
)

// TestAClusterOfClusterAPI runs docs/walkthrough-cluster-api.md behind the first steps of docs/walkthrough-standalone.md,
// with stock Cluster API. The cluster that is made is kept in memory by a program of Cluster API's.
func TestAClusterOfClusterAPI(t *testing.T) {
	cluster.Skip(t)
	if os.Getenv(longEnv) == "" {
		t.Skip("takes a minute and a half, and test/kube/capi does the same steps; " + longEnv + "=1 runs it: make test-long RUN=" + t.Name())
	}
	s := newStage(t, 2)
	stock.Start(t, s.kube)
	memory := stock.StartMemory(t)
	host, port, err := memory.AddCluster(s.ctx, "prod")
	s.must(err)
	s.env = append(s.env, "MEMORY_HOST="+host, fmt.Sprintf("MEMORY_PORT=%d", port))
	ctx, stop := context.WithCancel(s.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.playMembers(ctx, memory)
	}()
	t.Cleanup(func() { stop(); <-done })
	s.walk(chapter{page: "walkthrough-standalone.md", until: "## 4."}, chapter{page: "walkthrough-cluster-api.md"})
}

// playMembers is what machines do once they run: they join the cluster, and are gone when they are off.
func (s *stage) playMembers(ctx context.Context, memory *stock.Memory) {
	joined := map[string]bool{}
	for ; ctx.Err() == nil; time.Sleep(200 * time.Millisecond) {
		var all clusterv1.MachineList
		if s.client.List(ctx, &all, client.InNamespace("default")) != nil {
			continue
		}
		alive := map[string]bool{}
		for _, m := range all.Items {
			var ours infra.SlipwayMachine
			if s.client.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: m.Spec.InfrastructureRef.Name}, &ours) != nil {
				continue
			}
			if p := ours.Status.Initialization.Provisioned; p == nil || !*p {
				continue
			}
			alive[m.Name] = true
			_, isControlPlane := m.Labels[clusterv1.MachineControlPlaneLabel]
			n := stock.Node{ProviderID: ours.Spec.ProviderID, Version: m.Spec.Version, ControlPlane: isControlPlane}
			if isControlPlane {
				n.CA, n.EtcdCA = s.authority(ctx, "prod-ca"), s.authority(ctx, "prod-etcd")
			}
			if !joined[m.Name] && memory.AddNode(ctx, "prod", m.Name, n) == nil {
				joined[m.Name] = true
			}
		}
		for name := range joined {
			if !alive[name] && memory.DropNode(ctx, "prod", name) == nil {
				delete(joined, name)
			}
		}
	}
}

// authority reads a certificate authority that Cluster API made; one that is not there yet is refused by who gets it.
func (s *stage) authority(ctx context.Context, name string) stock.Pair {
	var secret corev1.Secret
	_ = s.client.Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, &secret)
	return stock.Pair{Cert: secret.Data["tls.crt"], Key: secret.Data["tls.key"]}
}
