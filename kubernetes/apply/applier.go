package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/kubernetes/translate"
	"slipway.dev/slipway/kubernetes/v1alpha1"
)

// Op says what became of an object.
type Op string

// The values of Op.
const (
	Created   Op = "created"
	Changed   Op = "changed"
	Unchanged Op = "unchanged"
	Deleting  Op = "deleting" // its host is being fenced or wiped
	Deleted   Op = "deleted"
	Absent    Op = "absent" // it was not there
	Kept      Op = "kept"   // it is not for us to delete
	Paused    Op = "paused" // an annotation of it forbids to do anything
)

// Change is what became of one object, or with a dry run what would.
type Change struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Op        Op     `json:"op"`
	Detail    string `json:"detail,omitempty"`
}

// Ref names the object as people do.
func (c *Change) Ref() string {
	return (&Object{Kind: c.Kind, Namespace: c.Namespace, Name: c.Name}).Ref()
}

// Applier applies objects.
// It keeps nothing between two calls: each reads from the inventory what earlier ones applied.
type Applier struct {
	Appliance contract.Appliance
	// HasSecret says whether the inventory has a secret, for Secrets that are not in the files.
	HasSecret func(ctx context.Context, name string) (bool, error)
	DryRun    bool
}

// run is one apply or delete.
type run struct {
	*Applier
	// Both are collected before the first object is applied: an object may name one that comes after it in the files.
	secrets map[string]*Object              // by namespace/name
	targets map[string]*v1alpha1.JoinTarget // by namespace/name
}

// owner is whose things an object's are. A file has no UID: the same object applied again is the same owner.
func (o *Object) owner() contract.Owner {
	return contract.Owner{ClusterUID: contract.LocalCluster, Namespace: o.Namespace, Kind: o.Kind, Name: o.Name, UID: "file"}
}

// sorted returns objects in the order in which they are applied; one that stands twice is an error.
func sorted(objects []Object) ([]Object, error) {
	seen := map[string]*Object{}
	var bad Errors
	for i := range objects {
		o := &objects[i]
		if first, ok := seen[o.Ref()]; ok {
			// Refused and not merged: nobody can say which of the two counts.
			bad = append(bad, fmt.Sprintf("%s:%d: %s stands twice, first in %s:%d", o.File, o.Line, o.Ref(), first.File, first.Line))
			continue
		}
		seen[o.Ref()] = o
	}
	if len(bad) > 0 {
		return nil, bad
	}
	out := slices.Clone(objects)
	// Stable: machines of one file are made in its order, and the first of a cluster becomes its first control plane.
	slices.SortStableFunc(out, func(a, b Object) int { return slices.Index(order, a.Kind) - slices.Index(order, b.Kind) })
	return out, nil
}

func (a *Applier) start(objects []Object) (*run, []Object, error) {
	all, err := sorted(objects)
	if err != nil {
		return nil, nil, err
	}
	r := &run{Applier: a, secrets: map[string]*Object{}, targets: map[string]*v1alpha1.JoinTarget{}}
	for i := range all {
		key := all[i].Namespace + "/" + all[i].Name
		switch o := all[i].object.(type) {
		case nil:
			r.secrets[key] = &all[i]
		case *v1alpha1.JoinTarget:
			r.targets[key] = o
		}
	}
	return r, all, nil
}

// failed says where the object stands that an error is about.
func (o *Object) failed(err error) error {
	where := fmt.Sprintf("%s:%d: %s: ", o.File, o.Line, o.Ref())
	// The kind and the hint stay. Callers decide by the kind, and people read the hint.
	if e, ok := errors.AsType[*inventory.Error](err); ok {
		return &inventory.Error{Kind: e.Kind, Msg: where + e.Msg, Hint: e.Hint, Err: err}
	}
	if translate.IsInvalid(err) {
		return inventory.Errorf(inventory.Invalid, "%s%v", where, err)
	}
	return fmt.Errorf("%s%w", where, err)
}

func joined(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}

// seal stores the Secrets that an object names, from the files. One that is not in the files has to be stored already.
func (r *run) seal(ctx context.Context, o *Object, uses []translate.SecretUse, c *Change) error {
	var sealed []string
	for _, u := range uses {
		from := r.secrets[u.Namespace+"/"+u.Secret]
		if from == nil {
			// People keep Secrets out of the files in their repository. Then the value that was stored before stays in use.
			has, err := r.HasSecret(ctx, u.Name)
			if err != nil {
				return err
			}
			if !has {
				return inventory.Errorf(inventory.Invalid, "%s: Secret %s/%s is not in the files", u.Field, u.Namespace, u.Secret).
					WithHint("add the Secret object to the files, or store its key %s with: slipway secret set %s", u.Key, u.Name)
			}
			continue
		}
		value, ok := from.data[u.Key]
		if !ok {
			return inventory.Errorf(inventory.Invalid, "%s: Secret %s/%s (%s:%d) has no key %q", u.Field, u.Namespace, u.Secret, from.File, from.Line, inventory.Clean(u.Key, 80))
		}
		plain, err := u.Value(value)
		if err != nil {
			return err
		}
		// A dry run comes as far as this, so that it finds a Secret or a key that is missing.
		if sealed = append(sealed, u.Secret); r.DryRun {
			continue
		}
		// The owner is stored with the value: another object with the same name of a Secret cannot overwrite it.
		if err := r.Appliance.SaveSecret(ctx, u.Name, o.owner().String(), plain); err != nil {
			return err
		}
	}
	if len(sealed) > 0 {
		c.Detail = joined(c.Detail, "Secret "+strings.Join(slices.Compact(sealed), ", ")+" sealed")
	}
	return nil
}
