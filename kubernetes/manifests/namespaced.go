package manifests

import (
	"cmp"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// LabelPerNamespace stands on roles that are bound namespace by namespace.
const LabelPerNamespace = "metal.slipway.dev/per-namespace"

// account is the service account, and the name of its roles.
const account = "slipway"

// Namespaced returns the objects for an account with rights in some namespaces only. These are the account, in the first of
// them, and in each a role with its binding. The kinds are not among it; an administrator of the cluster has installed
// them.
func Namespaced(p Profile, namespaces []string) ([]*unstructured.Unstructured, error) {
	all, err := Objects(p)
	if err != nil {
		return nil, err
	}
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}},
	}
	for _, o := range all {
		if !slices.Contains([]string{"slipway-standalone", "slipway-secrets", "slipway-leader", "slipway-capi"}, o.GetName()) {
			continue
		}
		if k := o.GetKind(); k != "ClusterRole" && k != "Role" {
			continue
		}
		var role rbacv1.ClusterRole // a Role has the same rules
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
			return nil, err
		}
		for _, r := range role.Rules {
			r.Resources = slices.DeleteFunc(r.Resources, func(name string) bool {
				return slices.Contains([]string{
					"namespaces", "customresourcedefinitions", "metalhosts", "metalhosts/status", "metalhosts/finalizers", "metalpools", "metalpools/status", "metalpools/finalizers",
				}, name)
			})
			if len(r.Resources) > 0 {
				rules = append(rules, r)
			}
		}
	}
	home := slices.Min(namespaces)
	out := []*unstructured.Unstructured{{Object: map[string]any{
		"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": account, "namespace": home},
	}}}
	add := func(o any) error {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		unstructured.RemoveNestedField(fields, "metadata", "creationTimestamp")
		out = append(out, &unstructured.Unstructured{Object: fields})
		return err
	}
	for _, ns := range slices.Compact(slices.Sorted(slices.Values(namespaces))) {
		role := &rbacv1.Role{TypeMeta: typeOf("Role"), Rules: rules}
		role.Name, role.Namespace = account, ns
		binding := &rbacv1.RoleBinding{
			TypeMeta: typeOf("RoleBinding"),
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: account},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: account, Namespace: home}},
		}
		binding.Name, binding.Namespace = account, ns
		if err := cmp.Or(add(role), add(binding)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func typeOf(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
}
