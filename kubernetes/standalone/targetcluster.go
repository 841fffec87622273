package standalone

import (
	"context"
	"errors"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"slipway.dev/slipway/kubernetes/controllers"
	"slipway.dev/slipway/kubernetes/node"
	"slipway.dev/slipway/kubernetes/v1alpha1"
)

// conditionMirrored is the condition that the inventory has the target, with all Secrets that it names.
const conditionMirrored = v1alpha1.Ready

// unreachableAgain is how often the controllers look at a cluster that does not answer.
const unreachableAgain = 30 * time.Second

// kubeconfigRef returns where the kubeconfig of a target is. For a new cluster Slipway writes it there itself.
func kubeconfigRef(t *v1alpha1.JoinTarget) v1alpha1.SecretKeySelector {
	if ref := t.Spec.KubeconfigSecretRef; ref != nil {
		return *ref
	}
	return v1alpha1.SecretKeySelector{Name: t.Name + "-kubeconfig", Key: "value"}
}

// targetKey names a target in the Set and in turns; splitKey is its inverse.
func targetKey(t *v1alpha1.JoinTarget) string { return t.Namespace + "/" + t.Name }

func splitKey(key string) (types.NamespacedName, bool) {
	ns, name, ok := strings.Cut(key, "/")
	return types.NamespacedName{Namespace: ns, Name: name}, ok
}

func isTrue(t *v1alpha1.JoinTarget, kind string) bool {
	return t != nil && apimeta.IsStatusConditionTrue(t.Status.Conditions, kind)
}

var errNoKubeconfig = errors.New("its kubeconfig is not there yet")

// clusterOf returns the workload cluster of a join target. The Set reuses a client while the version of the
// kubeconfig stays.
func clusterOf(ctx context.Context, c client.Client, reach *controllers.Reach, nodes *node.Set, t *v1alpha1.JoinTarget) (*node.Cluster, error) {
	ref := kubeconfigRef(t)
	key := types.NamespacedName{Namespace: t.Namespace, Name: ref.Name}
	version, err := secretVersion(ctx, c, reach, key)
	if err != nil {
		return nil, err
	}
	if version == "" {
		return nil, errNoKubeconfig
	}
	// The value is read only for a new version. The credentials are then in the connections of the client, and nowhere else.
	return nodes.Cluster(ctx, targetKey(t), version, func(ctx context.Context) ([]byte, error) {
		value, s, err := readSecret(ctx, c, key, ref.Key)
		if err == nil && (s == nil || value == nil) {
			err = errNoKubeconfig
		}
		return value, err
	})
}
