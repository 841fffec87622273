package standalone

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/kubernetes/controllers"
	"slipway.dev/slipway/kubernetes/kubeconfig"
	"slipway.dev/slipway/kubernetes/node"
	"slipway.dev/slipway/kubernetes/translate"
	"slipway.dev/slipway/kubernetes/v1alpha1"
	"slipway.dev/slipway/machineconfig/kubeadm"
)

// managerTarget is the field manager of JoinTargets.
const managerTarget = "slipway-jointarget"

// targets reconciles JoinTargets: it copies them into the inventory, and reports whether their clusters answer.
type targets struct {
	env    controllers.Env
	client client.Client
	events events.EventRecorder
	log    *slog.Logger
	nodes  *node.Set
	now    func() time.Time
}

// targetPass is one Reconcile of one JoinTarget. Only its goroutine uses it.
type targetPass struct {
	jt    *v1alpha1.JoinTarget
	owner contract.Owner
	told  []metav1.Condition
	again time.Duration
}

func (p *targetPass) tell(kind string, status metav1.ConditionStatus, reason, message string) {
	p.told = append(p.told, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message})
}

// refused is the reason why a target cannot be used, in the words of its condition. It is no error of Reconcile: a
// retry would not help.
type refused struct{ reason, message string }

func (e *refused) Error() string { return e.message }

// Reasons of a JoinTarget's conditions.
const (
	reasonSecretMissing = "SecretMissing"
	reasonInvalid       = "InvalidConfiguration"
	reasonNameTaken     = "NameTaken"
	reasonAnswers       = "Answers"
	reasonUnreachable   = "Unreachable"
	reasonNotAsked      = "NoKubeconfig" // nobody can look into the cluster
	reasonInitialized   = "Initialized"
	reasonWaitingInit   = "WaitingForControlPlaneInit"
	reasonAssumed       = "Assumed"
	reasonInUse         = "InUse"
)

// mirror copies a target and its secrets into the inventory: the secrets first, then the target that names them. A
// call with the same values changes nothing.
func (r *targets) mirror(ctx context.Context, p *targetPass) error {
	t, err := translate.JoinTarget(p.jt, p.owner)
	if err != nil {
		return &refused{reasonInvalid, err.Error()}
	}
	owner := p.owner.String()
	if err := r.env.Reach.MaySecrets(p.jt.Namespace); err != nil {
		p.again = unreachableAgain
		return &refused{reasonSecretMissing, controllers.Explain(err)}
	}
	// Before the Secrets are copied: makePKI makes the Secret with the kubeconfig, which is one of them.
	if translate.IsInit(p.jt) {
		if err := r.makePKI(ctx, p.jt, owner); err != nil {
			return err
		}
	}
	for _, u := range r.secrets(p.jt) {
		value, _, err := readSecret(ctx, r.client, types.NamespacedName{Namespace: u.Namespace, Name: u.Secret}, u.Key)
		if err != nil {
			return err
		}
		if len(value) == 0 {
			return &refused{reasonSecretMissing, fmt.Sprintf("%s: there is no Secret %s with a key %s", u.Field, u.Secret, u.Key)}
		}
		if u.Name == t.Kubeconfig {
			cfg, err := kubeconfig.Parse("JoinTarget "+p.jt.Name+": Secret "+u.Secret, value)
			if err != nil {
				return &refused{reasonInvalid, controllers.Explain(err)}
			}
			// Nodes trust the authority that Slipway trusts: nobody has to write it a second time.
			t.CA = string(cfg.CAData)
		} else {
			value = []byte(strings.TrimSpace(string(value))) // a token
		}
		if err := r.saved(r.env.Appliance.SaveSecret(ctx, u.Name, owner, value)); err != nil {
			return err
		}
	}
	// The target comes last. Machines can name it only when everything that it names is stored.
	return r.saved(r.env.Appliance.SaveTarget(ctx, t))
}

// secrets returns the Secrets to copy, with the kubeconfig of a cluster that Slipway makes.
func (r *targets) secrets(jt *v1alpha1.JoinTarget) []translate.SecretUse {
	uses := translate.TargetSecrets(jt)
	if translate.IsInit(jt) && jt.Spec.KubeconfigSecretRef == nil {
		ref := kubeconfigRef(jt)
		uses = append(uses, translate.SecretUse{Name: translate.KubeconfigName(jt), Namespace: jt.Namespace, Secret: ref.Name, Key: ref.Key, Field: "spec.init"})
	}
	return uses
}

// saved turns a lasting refusal of the inventory into *refused. It returns other errors as they are, so that
// Reconcile repeats the call.
func (r *targets) saved(err error) error {
	switch {
	case inventory.IsKind(err, inventory.Conflict):
		return &refused{reasonNameTaken, controllers.Explain(err)}
	case inventory.IsKind(err, inventory.Invalid):
		return &refused{reasonInvalid, controllers.Explain(err)}
	}
	return err
}

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

// createPKI makes the Secret. Its error is *refused when the account may not create Secrets.
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
