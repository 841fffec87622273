package controllers

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
