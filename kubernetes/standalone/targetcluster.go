package standalone

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"slipway.dev/slipway/kubernetes/controllers"
	"slipway.dev/slipway/kubernetes/node"
	"slipway.dev/slipway/kubernetes/v1alpha1"
)

// secretVersion returns UID and version of a Secret from the cache of metadata, or "" when there is none. The error
// is Forbidden where the account may not read Secrets.
func secretVersion(ctx context.Context, c client.Client, reach *controllers.Reach, key types.NamespacedName) (string, error) {
	if err := reach.MaySecrets(key.Namespace); err != nil {
		return "", err
	}
	meta := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}}
	err := c.Get(ctx, key, meta)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("look for Secret %s: %w", key.Name, err)
	}
	return string(meta.UID) + "/" + meta.ResourceVersion, nil
}

// readSecret reads one key of a Secret from the API server, and keeps no copy. s is nil without the Secret, and value
// nil without the key.
func readSecret(ctx context.Context, c client.Client, key types.NamespacedName, name string) (value []byte, s *corev1.Secret, err error) {
	s = &corev1.Secret{}
	err = c.Get(ctx, key, s)
	if apierrors.IsNotFound(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read Secret %s: %w", key.Name, err)
	}
	return s.Data[name], s, nil
}

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
