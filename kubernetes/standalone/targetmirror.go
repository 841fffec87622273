package standalone

import (
	"context"
	"fmt"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"slipway.dev/slipway/kubernetes/kubeconfig"
	"slipway.dev/slipway/kubernetes/translate"
	"slipway.dev/slipway/kubernetes/v1alpha1"
	"slipway.dev/slipway/machineconfig/kubeadm"
)

// pkiKey is the key in the Secret of a new cluster that holds its certificate authorities. The target names the key
// of the kubeconfig.
const pkiKey = "pki"

// makePKI makes the certificate authorities of a new cluster and a kubeconfig for it, once. Both are in one Secret
// next to the target, which one Create writes. So a crash leaves both or none, and two processes cannot make two
// sets: the second Create fails.
func (r *targets) makePKI(ctx context.Context, jt *v1alpha1.JoinTarget, owner string) error {
	ref := kubeconfigRef(jt)
	key := types.NamespacedName{Namespace: jt.Namespace, Name: ref.Name}
	pki, s, err := readSecret(ctx, r.client, key, pkiKey)
	if err != nil {
		return err
	}
	if s == nil {
		if pki, err = r.createPKI(ctx, jt, ref); err != nil {
			return err
		}
	}
	if len(pki) == 0 { // a kubeconfig of one's own: the cluster has authorities of its own as well
		return &refused{reasonInvalid, fmt.Sprintf("Secret %s has no key %s: with spec.init Slipway makes the Secret itself", ref.Name, pkiKey)}
	}
	return r.saved(r.env.Appliance.SaveSecret(ctx, translate.PKIName(jt), owner, pki))
}

func (r *targets) createPKI(ctx context.Context, jt *v1alpha1.JoinTarget, ref v1alpha1.SecretKeySelector) ([]byte, error) {
	files, err := kubeadm.NewPKI(r.now(), nil)
	if err != nil {
		return nil, err
	}
	admin, err := kubeconfig.Issue(kubeconfig.Admin(jt.Name, jt.Spec.ControlPlaneEndpoint, files, "slipway", kubeconfig.OwnFor), r.now())
	if err != nil {
		return nil, err
	}
	pki, err := yaml.Marshal(files)
	if err != nil {
		return nil, fmt.Errorf("encode authorities: %w", err)
	}
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: jt.Namespace, Name: ref.Name,
			// The cluster itself deletes the Secret with the target, even when nobody runs these controllers any more.
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(jt, v1alpha1.GroupVersion.WithKind(v1alpha1.KindJoinTarget))},
		},
		Data: map[string][]byte{ref.Key: admin, pkiKey: pki},
	}
	err = r.client.Create(ctx, s, client.FieldOwner(managerTarget))
	if apierrors.IsForbidden(err) {
		return nil, &refused{reasonInvalid, "Slipway may not make the Secret " + ref.Name + ": allow it to create secrets, or make the cluster without spec.init"}
	}
	if err != nil {
		return nil, fmt.Errorf("make Secret %s: %w", ref.Name, err)
	}
	r.events.Eventf(jt, nil, corev1.EventTypeNormal, "AuthoritiesMade", "Reconcile", "the authorities and a kubeconfig of the new cluster are in Secret %s", ref.Name)
	return pki, nil
}
