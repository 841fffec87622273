package clusterapi

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/kubernetes/controllers"
	"slipway.dev/slipway/kubernetes/translate"
	metalv1 "slipway.dev/slipway/kubernetes/v1alpha1"
)

// bootstrap checks whether the bootstrap data of a machine exist and can be used, and then lets the machine boot.
// Until then its host stays off. When the host asks for the data, bootstrap hands them over.
func (r *machines) bootstrap(ctx context.Context, p *pass) error {
	b := &p.facts.Bootstrap
	b.IsWanted = true
	// After the delivery nobody needs the data any more. A Secret that is deleted then changes nothing.
	if p.view == nil || p.view.Delivered {
		b.IsReady = p.view != nil
		r.boots.Answered(client.ObjectKeyFromObject(p.sm))
		if p.view == nil {
			r.explain(p, b)
		}
		return nil
	}
	name := p.Machine.Spec.Bootstrap.DataSecretName
	if name == nil {
		r.explain(p, b)
		return nil
	}
	version, missing, err := r.versionOf(ctx, p)
	if inventory.IsKind(err, inventory.Forbidden) {
		// No event says that somebody has granted the right to read Secrets.
		p.again = controllers.TakeAgain
		b.Reason, b.Message = metalv1.ReasonWaitingForBootstrapData, controllers.Explain(err)
		return nil
	}
	if err != nil {
		return err
	}
	if missing != "" {
		b.Reason, b.Message = metalv1.ReasonWaitingForBootstrapData, "secret "+missing+" does not exist, or has no key "+keyValue
		return nil
	}
	b.IsReady, b.Message = true, "secret "+*name
	// The data are checked for the host that the machine gets.
	if p.view.Claim == nil {
		return nil
	}
	if translate.IsHeld(&p.view.Machine) {
		return r.letBoot(ctx, p, version)
	}
	return r.answer(ctx, p)
}

// explain records what the bootstrap data wait for.
func (r *machines) explain(p *pass, b *translate.BootstrapFacts) {
	b.Reason, b.Message = metalv1.ReasonWaitingForBootstrapData, "the bootstrap provider has not written them yet"
	if p.Machine == nil || p.Cluster == nil {
		return
	}
	up := p.Cluster.Status.Initialization.ControlPlaneInitialized
	if p.Machine.Spec.Bootstrap.DataSecretName == nil && !isControlPlane(p.Machine) && (up == nil || !*up) {
		b.Reason, b.Message = metalv1.ReasonWaitingForControlPlaneInit, "the control plane of cluster "+p.Cluster.Name+" is not initialized"
	}
}

// letBoot checks bootstrap data once, and acknowledges the hook that holds the machine. It checks again when a
// Secret, the image or the claim changes. If the process dies after the check, the next one checks again: passed is
// only a cache.
func (r *machines) letBoot(ctx context.Context, p *pass, version string) error {
	b := &p.facts.Bootstrap
	// The image and the claim are part of it: another image may not be able to use the same data.
	version += "\x00" + p.view.Image + "\x00" + string(p.view.Machine.ClaimID)
	object := client.ObjectKeyFromObject(p.sm)
	if !r.boots.HasPassed(object, p.owner, version) {
		data, why, err := r.dataOf(ctx, p)
		if err != nil {
			return err
		}
		if why == nil {
			why = r.env.Appliance.GiveBootstrap(ctx, p.view.Machine.Name, data, true)
		}
		if why != nil {
			return r.refuse(b, why)
		}
		// After the check has succeeded. A check that failed is repeated at each pass, because the reason must stay in the
		// status.
		r.boots.Pass(object, p.owner, version)
	}
	if _, err := r.env.Appliance.AckHook(ctx, p.view.Machine.Name, inventory.PreBoot, translate.HoldOwner); err != nil {
		return fmt.Errorf("let machine %s boot: %w", p.view.Machine.Name, err)
	}
	return r.look(ctx, p)
}

// refuse records why bootstrap data cannot be used. It returns an error that has another cause.
func (r *machines) refuse(b *translate.BootstrapFacts, why error) error {
	reason := contract.BootstrapReason(why)
	if reason == "" {
		return fmt.Errorf("hand over bootstrap data: %w", why)
	}
	if reason != metalv1.ReasonUnsupportedDirective {
		reason = metalv1.ReasonUnsupportedFormat
	}
	b.IsReady, b.Reason, b.Message = false, reason, why.Error()
	return nil
}

// answer hands bootstrap data to a host that has asked for them. It does nothing before the host asks, so the data
// stay in their Secret as long as possible.
func (r *machines) answer(ctx context.Context, p *pass) error {
	if !r.boots.IsAsked(client.ObjectKeyFromObject(p.sm)) {
		return nil
	}
	data, why, err := r.dataOf(ctx, p)
	if err != nil {
		return err
	}
	if why == nil {
		why = r.env.Appliance.GiveBootstrap(ctx, p.view.Machine.Name, data, false)
	}
	if why != nil {
		return r.refuse(&p.facts.Bootstrap, why)
	}
	r.boots.Answered(client.ObjectKeyFromObject(p.sm))
	return nil
}

// secretsOf returns the names of all Secrets that a machine boots with, its bootstrap data first.
func secretsOf(p *pass) []string {
	names := []string{*p.Machine.Spec.Bootstrap.DataSecretName}
	for _, x := range p.sm.Spec.ExtraConfig {
		names = append(names, x.SecretRef.Name)
	}
	return names
}

// versionOf returns the versions of the Secrets of a machine from the cache of metadata; missing is the name of one
// that does not exist. The error is Forbidden where the account may not read Secrets.
func (r *machines) versionOf(ctx context.Context, p *pass) (version, missing string, err error) {
	var all []string
	if err := r.env.Reach.MaySecrets(p.sm.Namespace); err != nil {
		return "", "", err
	}
	for _, name := range secretsOf(p) {
		meta := &metav1.PartialObjectMetadata{}
		meta.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
		if meta, err = find(ctx, r.cache, p.sm.Namespace, name, meta); err != nil {
			return "", "", err
		}
		if meta == nil {
			return "", name, nil
		}
		// The UID too: a Secret that was deleted and made again can have any version.
		all = append(all, string(meta.UID)+"@"+meta.ResourceVersion)
	}
	return strings.Join(all, " "), "", nil
}

// dataOf reads bootstrap data from the API server, with one GET for each Secret, and keeps no copy. why says why they
// cannot be used; err is a failure to read, which a retry may mend.
func (r *machines) dataOf(ctx context.Context, p *pass) (data contract.Bootstrap, why, err error) {
	if p.Machine.Spec.Bootstrap.DataSecretName == nil {
		return data, refusal("Machine %s names no bootstrap Secret", p.Machine.Name), nil
	}
	var extra []part
	// Read from the API server, so that the values are in no cache of this process.
	for i, name := range secretsOf(p) {
		s, err := find(ctx, r.direct, p.sm.Namespace, name, &corev1.Secret{})
		if err != nil {
			return data, nil, err
		}
		if s == nil || len(s.Data[keyValue]) == 0 {
			return data, refusal("secret %s does not exist, or has no key %s", name, keyValue), nil
		}
		if i == 0 {
			data = contract.Bootstrap{Value: s.Data[keyValue], Format: string(s.Data[keyFormat])}
			continue
		}
		extra = append(extra, part{name: name, format: p.sm.Spec.ExtraConfig[i-1].Format, text: s.Data[keyValue]})
	}
	data, why = merge(data, extra)
	return data, why, nil
}
