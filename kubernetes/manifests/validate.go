package manifests

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// kind is what an API server makes of a CRD.
type kind struct {
	namespaced bool
	structural *schema.Structural
	schema     validation.SchemaValidator
	rules      *cel.Validator
}

// kinds are read once: compiling the rules takes a while, and the CRDs never change while the program runs.
var kinds = sync.OnceValues(func() (map[runtimeschema.GroupVersionKind]kind, error) {
	crds, err := CRDs()
	if err != nil {
		return nil, err
	}
	out := map[runtimeschema.GroupVersionKind]kind{}
	for _, u := range crds {
		var v1 apiextensionsv1.CustomResourceDefinition
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &v1); err != nil {
			return nil, fmt.Errorf("%s: %w", u.GetName(), err)
		}
		for _, version := range v1.Spec.Versions {
			var props apiextensions.JSONSchemaProps
			err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, &props, nil)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", u.GetName(), err)
			}
			k := kind{namespaced: v1.Spec.Scope == apiextensionsv1.NamespaceScoped}
			if k.structural, err = schema.NewStructural(&props); err != nil {
				return nil, fmt.Errorf("%s: %w", u.GetName(), err)
			}
			if k.schema, _, err = validation.NewSchemaValidator(&props); err != nil {
				return nil, fmt.Errorf("%s: %w", u.GetName(), err)
			}
			k.rules = cel.NewValidator(k.structural, true, celconfig.PerCallLimit)
			out[runtimeschema.GroupVersionKind{Group: v1.Spec.Group, Version: version.Name, Kind: v1.Spec.Names.Kind}] = k
		}
	}
	return out, nil
})

// find returns the kind of an object.
func find(obj *unstructured.Unstructured) (kind, *field.Error) {
	all, err := kinds()
	if err != nil {
		return kind{}, field.InternalError(nil, err)
	}
	k, ok := all[obj.GroupVersionKind()]
	if !ok {
		return kind{}, field.NotFound(field.NewPath("kind"), fmt.Sprintf("%s %s", obj.GetAPIVersion(), obj.GetKind()))
	}
	return k, nil
}

// Default puts in what an API server would: the defaults of the schema.
func Default(obj *unstructured.Unstructured) error {
	k, bad := find(obj)
	if bad != nil {
		return bad
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(obj.Object, k.structural)
	defaulting.Default(obj.Object, k.structural)
	return nil
}

// Validate says what an API server with our CRDs would refuse about a new object, and which fields it does not know. It
// leaves the names of namespaces and general metadata to the server that stores the object.
func Validate(obj *unstructured.Unstructured) field.ErrorList { return ValidateUpdate(obj, nil) }

// ValidateUpdate says what an API server would refuse about an object that replaces old; nil for a new one.
func ValidateUpdate(obj, old *unstructured.Unstructured) field.ErrorList {
	k, bad := find(obj)
	if bad != nil {
		return field.ErrorList{bad}
	}
	var errs field.ErrorList
	meta := field.NewPath("metadata")
	if obj.GetName() == "" && obj.GetGenerateName() == "" {
		errs = append(errs, field.Required(meta.Child("name"), ""))
	} else if obj.GetName() != "" {
		for _, msg := range apivalidation.NameIsDNSSubdomain(obj.GetName(), false) {
			errs = append(errs, field.Invalid(meta.Child("name"), obj.GetName(), msg))
		}
	}
	if !k.namespaced && obj.GetNamespace() != "" {
		errs = append(errs, field.Forbidden(meta.Child("namespace"), "the kind has no namespaces"))
	}
	pruned := runtime.DeepCopyJSON(obj.Object)
	for _, unknown := range pruning.PruneWithOptions(pruned, k.structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}) {
		errs = append(errs, field.Invalid(field.NewPath(unknown), "", "unknown field"))
	}
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, k.structural, obj.Object)...)
	var before any
	if old == nil {
		errs = append(errs, validation.ValidateCustomResource(nil, obj.Object, k.schema)...)
	} else {
		before = old.Object
		errs = append(errs, validation.ValidateCustomResourceUpdate(nil, obj.Object, old.Object, k.schema)...)
	}
	if len(errs) > 0 || k.rules == nil {
		return errs // as an API server does: rules may rely on the schema
	}
	errs, _ = k.rules.Validate(context.Background(), nil, k.structural, obj.Object, before, celconfig.RuntimeCELCostBudget)
	return errs
}
