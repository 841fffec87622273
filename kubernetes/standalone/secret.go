package standalone

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"slipway.dev/slipway/kubernetes/controllers"
)

// secretVersion returns UID and version of a Secret, or "" when there is none. It reads metadata only, so that no value comes
// into memory. The error is Forbidden where the account may not read Secrets.
func secretVersion(ctx context.Context, c client.Reader, reach *controllers.Reach, key types.NamespacedName) (string, error) {
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
func readSecret(ctx context.Context, c client.Reader, key types.NamespacedName, name string) (value []byte, s *corev1.Secret, err error) {
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
