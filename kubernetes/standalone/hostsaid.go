package standalone

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/kubernetes/controllers"
	"slipway.dev/slipway/kubernetes/translate"
	"slipway.dev/slipway/kubernetes/v1alpha1"
)

// The annotations in which a MetalHost remembers.
const (
	// annotationAgreed holds, as JSON, the values on which object and inventory last agreed. It is the base of a
	// three-way merge. It is in the object, so that a backup of the object holds it too.
	annotationAgreed = v1alpha1.Prefix + "agreed"
	// annotationPower is a digest of spec.power and the version of its Secret: it says whether the inventory has that
	// controller already.
	annotationPower = v1alpha1.Prefix + "power"
)

// agreed returns the values on which object and inventory last agreed.
func agreed(mh *v1alpha1.MetalHost) (s translate.Said) {
	if json.Unmarshal([]byte(mh.Annotations[annotationAgreed]), &s) != nil {
		return translate.Said{} // nothing was ever agreed upon, or somebody has written over it: the object wins where it says something
	}
	return s
}

// hear takes over into the inventory what people changed in the object since both last agreed. It leaves out what the
// inventory changed itself. A refusal is an error of kind Invalid; the caller then treats the object as if nobody had
// changed it.
func (r *hosts) hear(ctx context.Context, mh *v1alpha1.MetalHost, v *contract.HostView) (said translate.Said, err error) {
	if !mh.DeletionTimestamp.IsZero() { // anyone who deletes it has nothing more to say
		return translate.SaidIn(&v.Host, mh.Spec.FailureDomain), nil
	}
	object := translate.SaidOf(mh)
	stored := translate.SaidIn(&v.Host, object.Domain)
	said = translate.Agree(agreed(mh), object, stored)
	var isChanged bool
	// After the first error nothing more is done. The next pass begins with what the inventory then has.
	do := func(is bool, fn func() error) {
		if is && err == nil {
			isChanged, err = true, fn()
		}
	}
	again := func() {
		if isChanged && err == nil {
			// The verbs changed the row. An update with the version of before would be a conflict.
			*v, err = r.env.Appliance.FindHost(ctx, v.Host.ID)
		}
		isChanged = false
	}
	id, a := v.Host.ID, r.env.Appliance
	// A host that is accepted is switched on at once: how that is done has to be known before.
	// An error about the power comes back at the end: a missing Secret must not hide what people changed in the rest of the
	// object.
	isChanged, powerErr := r.power(ctx, mh, id)
	do(said.InMaintenance != stored.InMaintenance, func() error { return a.Maintain(ctx, id, said.InMaintenance) })
	do(said.IsProtected != stored.IsProtected, func() error { return a.Protect(ctx, id, said.IsProtected) })
	// Accepting comes after both: from then on the host is inspected, and may be installed.
	do(mh.Spec.Accepted != nil && *mh.Spec.Accepted && v.Host.State == inventory.Discovered && powerErr == nil, func() error { return a.Accept(ctx, id) })
	again()
	next := said.Into(v.Host)
	do(!reflect.DeepEqual(next, v.Host), func() error {
		_, err := a.UpdateHost(ctx, next)
		return err
	})
	again()
	return said, cmp.Or(err, powerErr)
}

// power saves the management controller of a host when spec.power or the version of its Secret has changed. Only then
// it reads the Secret, once. If the process dies after the save and before write, the next Reconcile saves the same
// again.
func (r *hosts) power(ctx context.Context, mh *v1alpha1.MetalHost, id inventory.HostID) (isChanged bool, _ error) {
	p := mh.Spec.Power
	if p == nil {
		delete(mh.Annotations, annotationPower)
		return false, nil
	}
	version, err := r.versionOf(ctx, p.CredentialsRef)
	if err != nil {
		return false, err
	}
	text, err := json.Marshal(p)
	if err != nil {
		return false, fmt.Errorf("encode spec.power: %w", err)
	}
	// A digest, so that the annotation stays short.
	sum := sha256.Sum256(append(text, version...))
	mark := hex.EncodeToString(sum[:8])
	if mh.Annotations[annotationPower] == mark {
		return false, nil
	}
	if err := r.savePower(ctx, mh, id); err != nil {
		return false, err
	}
	if mh.Annotations == nil {
		mh.Annotations = map[string]string{}
	}
	// Only in memory here. write stores it together with the agreed values, in one patch.
	mh.Annotations[annotationPower] = mark
	return true, nil
}

// versionOf returns the version of a Secret from the cache of metadata, which costs no request. A missing or forbidden Secret
// is translate.Invalid.
func (r *hosts) versionOf(ctx context.Context, ref *v1alpha1.SecretReference) (string, error) {
	if ref == nil {
		return "", nil
	}
	const field = "spec.power.credentialsRef"
	if !r.env.Watches(ref.Namespace) {
		return "", &translate.Invalid{Field: field, Msg: "Slipway does not look into namespace " + ref.Namespace + " of this cluster"}
	}
	version, err := secretVersion(ctx, r.cache, r.env.Reach, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name})
	switch {
	case inventory.IsKind(err, inventory.Forbidden):
		return "", &translate.Invalid{Field: field, Msg: controllers.Explain(err)}
	case err == nil && version == "":
		return "", &translate.Invalid{Field: field, Msg: fmt.Sprintf("there is no Secret %s/%s", ref.Namespace, ref.Name)}
	}
	return version, err
}

func (r *hosts) savePower(ctx context.Context, mh *v1alpha1.MetalHost, id inventory.HostID) error {
	b, _ := translate.BMC(mh, id)
	ref := mh.Spec.Power.CredentialsRef
	if ref == nil {
		return r.env.Appliance.SaveBMC(ctx, b, "")
	}
	var secret corev1.Secret
	if err := r.client.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, &secret); err != nil {
		return fmt.Errorf("read Secret %s/%s: %w", ref.Namespace, ref.Name, err)
	}
	password, err := translate.Account(&b, secret.Data)
	if err != nil {
		return err
	}
	return r.env.Appliance.SaveBMC(ctx, b, password)
}

// write puts into the object the agreed values, the facts as labels, and the finalizer. It does nothing when the
// object changed since Reconcile read it: that change brings a new Reconcile.
func (r *hosts) write(ctx context.Context, mh *v1alpha1.MetalHost, h *inventory.Host, said *translate.Said) error {
	var was v1alpha1.MetalHost
	if err := r.client.Get(ctx, client.ObjectKeyFromObject(mh), &was); err != nil {
		return client.IgnoreNotFound(err)
	}
	if was.ResourceVersion != mh.ResourceVersion {
		return nil // it has changed since: that change brings us back
	}
	r.dress(mh, h, said)
	if equality.Semantic.DeepEqual(was.ObjectMeta, mh.ObjectMeta) && equality.Semantic.DeepEqual(was.Spec, mh.Spec) {
		return nil
	}
	return r.patch(ctx, &was, mh)
}

// dress sets labels, annotations and finalizer of an object. Without said it leaves the values of people alone,
// because the inventory refused them. A host with a claim keeps the finalizer, so that kubectl delete cannot hide a
// host in use.
func (r *hosts) dress(mh *v1alpha1.MetalHost, h *inventory.Host, said *translate.Said) {
	facts := factsOf(h)
	for _, key := range append(v1alpha1.Facts(), v1alpha1.LabelFailureDomain) {
		// A fact that the host does not have any more must not stay in its labels: selectors would still match it.
		if facts[key] == "" {
			delete(mh.Labels, key)
		}
	}
	if mh.Labels == nil {
		mh.Labels = map[string]string{}
	}
	maps.Copy(mh.Labels, facts)
	if said != nil {
		said.Show(mh)
		if mh.Annotations == nil {
			mh.Annotations = map[string]string{}
		}
		// In the same patch as the values that were agreed. If this process dies, both are stored or neither.
		mh.Annotations[annotationAgreed] = said.String()
	}
	if h.ClaimID == "" {
		controllerutil.RemoveFinalizer(mh, v1alpha1.FinalizerHost)
	} else if mh.DeletionTimestamp.IsZero() {
		controllerutil.AddFinalizer(mh, v1alpha1.FinalizerHost)
	}
}

// factsOf returns the facts of a host that labels mirror, and its failure domain.
func factsOf(h *inventory.Host) map[string]string {
	facts := map[string]string{}
	for key, value := range map[string]string{
		v1alpha1.LabelSite: h.Place.Site, v1alpha1.LabelRow: h.Place.Row, v1alpha1.LabelRack: h.Place.Rack,
		v1alpha1.LabelVendor: h.Manufacturer, v1alpha1.LabelModel: h.Product, v1alpha1.LabelArch: architecture(h.Arch),
		v1alpha1.LabelFailureDomain: h.Place.Domain(),
	} {
		if value = labelValue(value); value != "" {
			facts[key] = value
		}
	}
	if h.Place.Unit > 0 {
		facts[v1alpha1.LabelUnit] = strconv.Itoa(h.Place.Unit)
	}
	return facts
}

var notInLabels = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// labelValue turns a text into a valid value of a label: at most 63 characters of letters, digits, "-", "_" and ".".
func labelValue(s string) string {
	s = notInLabels.ReplaceAllString(s, "-")
	return strings.Trim(s[:min(len(s), 63)], "-_.")
}
