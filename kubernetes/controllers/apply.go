package controllers

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

const (
	// TakeAgain is how often a controller repeats a refused claim: an admin may have granted it.
	TakeAgain = 30 * time.Second
	// UnseenAgain is how often a controller looks for a sign of life of a system that sends no reports.
	UnseenAgain = 30 * time.Second
)

// ApplySpec writes the fields of one field manager into the spec of an object by server-side apply. It returns the new
// generation of the object. Fields of other managers stay.
func ApplySpec(ctx context.Context, c client.Client, o client.Object, kind schema.GroupVersionKind, manager string, spec map[string]any) (generation int64, err error) {
	u := applied(o, kind, "spec", spec)
	err = c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(manager), client.ForceOwnership)
	return u.GetGeneration(), err
}

// ApplyStatus writes the whole status of an object by server-side apply. A field that the last status had and this one
// has not is removed.
func ApplyStatus(ctx context.Context, c client.Client, o client.Object, kind schema.GroupVersionKind, manager string, status any) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err != nil {
		return fmt.Errorf("encode the status of %s %s: %w", kind.Kind, o.GetName(), err)
	}
	ac := client.ApplyConfigurationFromUnstructured(applied(o, kind, "status", fields))
	if err := c.Status().Apply(ctx, ac, client.FieldOwner(manager), client.ForceOwnership); err != nil {
		return fmt.Errorf("write the status of %s %s: %w", kind.Kind, o.GetName(), err)
	}
	return nil
}

// applied is what is applied of an object. The UID makes it a conflict when somebody made the object again under the same
// name: without it the API server would make an object out of nothing but these fields.
func applied(o client.Object, kind schema.GroupVersionKind, part string, fields map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{part: fields}}
	u.SetGroupVersionKind(kind)
	u.SetNamespace(o.GetNamespace())
	u.SetName(o.GetName())
	u.SetUID(o.GetUID())
	return u
}

// AddFinalizer writes a finalizer into an object that does not have it. The list of finalizers is one field: without the lock of
// the patch, this could remove the finalizer of somebody else.
func AddFinalizer(ctx context.Context, c client.Client, o client.Object, finalizer, manager string) error {
	before, _ := o.DeepCopyObject().(client.Object)
	if !controllerutil.AddFinalizer(o, finalizer) {
		return nil
	}
	if err := c.Patch(ctx, o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(manager)); err != nil {
		return fmt.Errorf("add the finalizer: %w", err)
	}
	return nil
}

// RemoveFinalizer takes a finalizer off an object, which may be gone.
func RemoveFinalizer(ctx context.Context, c client.Client, o client.Object, finalizer, manager string) error {
	before, _ := o.DeepCopyObject().(client.Object)
	controllerutil.RemoveFinalizer(o, finalizer)
	err := c.Patch(ctx, o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(manager))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove the finalizer: %w", err)
	}
	return nil
}
