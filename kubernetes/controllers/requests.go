package controllers

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Requests fills a list and asks for a Reconcile of each object in it.
func Requests(
	ctx context.Context, r client.Reader, list client.ObjectList, opts ...client.ListOption,
) (all []reconcile.Request, err error) {
	if err := r.List(ctx, list, opts...); err != nil {
		return nil, err
	}
	err = meta.EachListItem(list, func(o runtime.Object) error {
		m, err := meta.Accessor(o)
		if err == nil {
			all = append(all, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: m.GetNamespace(), Name: m.GetName()}})
		}
		return err
	})
	return all, err
}

// Index adds an index of the objects of a kind to the cache of a manager. It leaves out empty values. It must run before the
// informer of the kind starts.
func Index[T client.Object](mgr manager.Manager, kind T, name string, values func(T) []string) error {
	of := func(o client.Object) []string {
		t, ok := o.(T)
		if !ok {
			return nil
		}
		return slices.DeleteFunc(values(t), func(v string) bool { return v == "" })
	}
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), kind, name, of); err != nil {
		return fmt.Errorf("index %T by %s: %w", kind, name, err)
	}
	return nil
}
