package manager

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sleep"
	"slipway.dev/slipway/kubernetes/manifests"
	metal "slipway.dev/slipway/kubernetes/v1alpha1"
)

const (
	// fieldManager applies what is installed.
	fieldManager = "slipway-attach"
	// installedBy is the version of Slipway that has installed a kind.
	installedBy = "metal.slipway.dev/installed-by"
	// finalizerPrefix begins the finalizers of ours.
	finalizerPrefix = "metal.slipway.dev/"

	establishFor = 60 * time.Second
)

const kindCRD = "CustomResourceDefinition"

func profileOf(modes []inventory.ClusterMode) manifests.Profile {
	if slices.Contains(modes, inventory.ModeCAPI) {
		return manifests.CAPI
	}
	return manifests.Standalone
}

// Install puts the kinds, policies and rights of Slipway into a cluster, and waits up to a minute until the API
// server serves the kinds. It leaves what a newer version has installed. version is that of this program.
//
// Each object is one server-side apply. After an error a part of them is there, and a repetition completes them.
func Install(ctx context.Context, cfg *rest.Config, modes []inventory.ClusterMode, version string) error {
	p, err := newPeer("", cfg)
	if err != nil {
		return err
	}
	defer p.hangUp()
	return install(ctx, p, modes, version)
}

func install(ctx context.Context, p *peer, modes []inventory.ClusterMode, version string) error {
	objects, err := manifests.Objects(profileOf(modes))
	if err != nil {
		return inventory.Errorf(inventory.Internal, "what is installed in clusters cannot be read: %w", err)
	}
	for _, o := range objects {
		if o.GetKind() == kindCRD {
			isNewer, err := p.isNewer(ctx, o, version)
			if err != nil {
				return err
			}
			// An older definition would drop fields of the newer one, and with them what is in stored objects.
			if isNewer {
				continue
			}
			annotations := o.GetAnnotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[installedBy] = version
			o.SetAnnotations(annotations)
		}
		if err := p.apply(ctx, o); err != nil {
			return err
		}
	}
	return p.establish(ctx, objects)
}

func (p *peer) apply(ctx context.Context, o *unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeout(ctx, callFor)
	defer cancel()
	return p.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.FieldOwner(fieldManager), client.ForceOwnership)
}

// isNewer reports whether a cluster has a kind from a version of Slipway after ours.
func (p *peer) isNewer(ctx context.Context, crd *unstructured.Unstructured, ours string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callFor)
	defer cancel()
	there := &metav1.PartialObjectMetadata{}
	there.SetGroupVersionKind(crd.GroupVersionKind())
	switch err := p.client.Get(ctx, client.ObjectKeyFromObject(crd), there); {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, err
	}
	return isAfter(there.GetAnnotations()[installedBy], ours), nil
}

// untagged is what git describe adds to the last version: such a build is no older than that.
var untagged = regexp.MustCompile(`(-\d+-g[0-9a-f]+)?(-dirty)?$`)

// isAfter reports whether theirs is a newer version of Slipway than ours. A text that is no version, such as that of
// a build without one, is neither newer nor older.
func isAfter(theirs, ours string) bool {
	a, err := version.ParseSemantic(untagged.ReplaceAllString(theirs, ""))
	if err != nil {
		return false
	}
	b, err := version.ParseSemantic(untagged.ReplaceAllString(ours, ""))
	return err == nil && b.LessThan(a)
}

// establish waits until an API server serves the kinds among objects.
func (p *peer) establish(ctx context.Context, objects []*unstructured.Unstructured) error {
	// The API server accepts a definition at once, and serves its kind some moments later. A controller that starts in
	// between fails.
	ctx, cancel := context.WithTimeout(ctx, establishFor)
	defer cancel()
	for {
		absent, err := p.notServed(ctx, objects)
		if err != nil || len(absent) == 0 {
			return err
		}
		if sleep.For(ctx, 100*time.Millisecond) != nil {
			return inventory.Errorf(inventory.Unavailable, "cluster %s does not serve %s after %s", p.name, listed(absent), establishFor).
				WithHint("look at their conditions: kubectl describe crd %s", absent[0])
		}
	}
}

// notServed returns the names of the kinds that are not there, or not served yet.
func (p *peer) notServed(ctx context.Context, objects []*unstructured.Unstructured) (names []string, err error) {
	for _, o := range objects {
		if o.GetKind() != kindCRD {
			continue
		}
		there := &unstructured.Unstructured{}
		there.SetGroupVersionKind(o.GroupVersionKind())
		err := p.client.Get(ctx, client.ObjectKeyFromObject(o), there)
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
		if err != nil || !isEstablished(there) {
			names = append(names, o.GetName())
		}
	}
	return names, nil
}

func isEstablished(crd *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool {
		m, ok := c.(map[string]any)
		return ok && m["type"] == "Established" && m["status"] == "True"
	})
}

// absent returns the names of the kinds of some modes that a cluster does not serve.
func (p *peer) absent(ctx context.Context, modes []inventory.ClusterMode) ([]string, error) {
	objects, err := manifests.Objects(profileOf(modes))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callFor)
	defer cancel()
	if p.isNarrow {
		return p.unserved(ctx, objects)
	}
	return p.notServed(ctx, objects)
}

// kinds returns all kinds of ours.
func kinds() (all []schema.GroupVersionKind, err error) {
	objects, err := manifests.Objects(manifests.CAPI)
	for _, o := range objects {
		if o.GetKind() != kindCRD {
			continue
		}
		group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")
		versions, _, _ := unstructured.NestedSlice(o.Object, "spec", "versions")
		for _, v := range versions {
			if m, ok := v.(map[string]any); ok && m["storage"] == true {
				name, _ := m["name"].(string)
				all = append(all, schema.GroupVersionKind{Group: group, Version: name, Kind: kind})
			}
		}
	}
	return all, err
}

// letGo removes our finalizers from every object of ours, so that no deletion waits for controllers that have ended.
// With namespaces, it does so only there for kinds that have a namespace.
func (p *peer) letGo(ctx context.Context, namespaces []string) error {
	all, err := kinds()
	if err != nil {
		return err
	}
	for _, kind := range all {
		isCluster := kind.Kind == metal.KindMetalHost || kind.Kind == metal.KindMetalPool
		switch {
		// Such an account may not write them, and its controllers never gave them a finalizer.
		case isCluster && p.isNarrow:
			continue
		case isCluster || len(namespaces) == 0:
			err = p.letGoIn(ctx, kind, "")
		}
		for _, ns := range namespaces {
			if !isCluster && err == nil {
				err = p.letGoIn(ctx, kind, ns)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// letGoIn takes our finalizers off the objects of a kind in a namespace, or in all.
func (p *peer) letGoIn(ctx context.Context, kind schema.GroupVersionKind, namespace string) error {
	for next := ""; ; {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := p.client.List(ctx, list, client.InNamespace(namespace), client.Limit(500), client.Continue(next))
		if apierrors.IsNotFound(err) || apimeta.IsNoMatchError(err) {
			return nil // the cluster does not have that kind
		}
		if err != nil {
			return err
		}
		for i := range list.Items {
			o := &list.Items[i]
			// A list of metadata has no kind in its items, and a patch needs one.
			o.SetGroupVersionKind(kind)
			if err := p.release(ctx, o); err != nil {
				return err
			}
		}
		if next = list.Continue; next == "" {
			return nil
		}
	}
}

// release removes our finalizers from one object. The resource version in the patch makes a change in between a
// conflict, so that it never drops the finalizer of somebody else.
func (p *peer) release(ctx context.Context, o *metav1.PartialObjectMetadata) error {
	for {
		// By the prefix: whichever controller of ours has put it there.
		isOurs := func(f string) bool { return strings.HasPrefix(f, finalizerPrefix) }
		if !slices.ContainsFunc(o.Finalizers, isOurs) {
			return nil
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
			"finalizers": slices.DeleteFunc(slices.Clone(o.Finalizers), isOurs), "resourceVersion": o.ResourceVersion,
		}})
		if err != nil {
			return err
		}
		err = p.client.Patch(ctx, o, client.RawPatch(types.MergePatchType, patch))
		// Somebody else has written to the object. Their finalizers are read and kept.
		if apierrors.IsConflict(err) {
			err = p.client.Get(ctx, client.ObjectKeyFromObject(o), o)
			if err == nil {
				continue
			}
		}
		return client.IgnoreNotFound(err)
	}
}

// purge deletes what install has created, in the reverse order, except for the namespace, which may hold other
// things. The deletion of a kind deletes all its objects.
func (p *peer) purge(ctx context.Context) error {
	objects, err := manifests.Objects(manifests.CAPI)
	if err != nil {
		return err
	}
	for _, o := range slices.Backward(objects) {
		if o.GetKind() == "Namespace" {
			continue
		}
		if err := client.IgnoreNotFound(p.client.Delete(ctx, o)); err != nil {
			return err
		}
	}
	return nil
}

// unserved returns the names of the kinds that an API server does not serve, as discovery says: that needs no rights.
func (p *peer) unserved(ctx context.Context, objects []*unstructured.Unstructured) (names []string, err error) {
	for _, o := range objects {
		if o.GetKind() != kindCRD {
			continue
		}
		group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
		plural, _, _ := unstructured.NestedString(o.Object, "spec", "names", "plural")
		raw, err := p.disco.RESTClient().Get().AbsPath("/apis/" + group + "/" + metal.GroupVersion.Version).Do(ctx).Raw()
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
		if err != nil || !strings.Contains(string(raw), `"name":"`+plural+`"`) {
			names = append(names, o.GetName())
		}
	}
	return names, nil
}
