package translate

import (
	"encoding/json"
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/api/resource"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/v1alpha1"
)

// Said is what people say of a host, in a MetalHost as well as in the inventory. It is written down whenever both agree,
// so that later it is known which side has changed.
type Said struct {
	Labels        map[string]string  `json:"labels,omitempty"`
	Domain        string             `json:"domain,omitempty"`
	Taints        []inventory.Taint  `json:"taints,omitempty"`
	Root          inventory.DiskHint `json:"root,omitzero"`
	IsCordoned    bool               `json:"cordoned,omitempty"`
	IsProtected   bool               `json:"protected,omitempty"`
	IsRetained    bool               `json:"retained,omitempty"`
	InMaintenance bool               `json:"maintenance,omitempty"`
}

// SaidOf is what a MetalHost says.
func SaidOf(mh *v1alpha1.MetalHost) Said {
	is := func(b *bool) bool { return b != nil && *b }
	s := Said{
		Labels: usersLabels(mh.Labels), Domain: mh.Spec.FailureDomain,
		IsCordoned: is(mh.Spec.Cordoned), IsProtected: is(mh.Spec.Protected), InMaintenance: mh.Spec.Maintenance != nil,
		IsRetained: mh.Spec.ReclaimPolicy == v1alpha1.ReclaimRetain,
	}
	for _, t := range mh.Spec.Taints {
		s.Taints = append(s.Taints, inventory.Taint{Key: t.Key, Value: t.Value})
	}
	if mh.Spec.RootDevice != nil {
		s.Root = DiskHint(mh.Spec.RootDevice)
	}
	return s
}

// SaidIn is what the inventory says. domain is how the host's failure domain was called last, of the names that it has.
func SaidIn(h *inventory.Host, domain string) Said {
	s := Said{
		Labels: usersLabels(h.Labels), Domain: h.Place.Domain(), Taints: h.Taints, Root: shown(h.RootDisk),
		IsCordoned: h.IsCordoned, IsProtected: h.IsProtected, InMaintenance: h.InMaintenance, IsRetained: h.IsRetained,
	}
	if domain != "" && h.Place.InDomain(domain) {
		s.Domain = domain
	}
	return s
}

func usersLabels(labels map[string]string) (users map[string]string) {
	for k, v := range labels {
		if !isOurs(k) {
			users = set(users, k, v)
		}
	}
	return users
}

// Agree merges the fields of both sides, one by one, each label by itself. The side that has changed since the last
// agreement wins, and the object when both have. A field that they never agreed on is the object's, if the object sets it.
func Agree(agreed, object, stored Said) Said {
	out := Said{
		Domain:        pick(agreed.Domain, object.Domain, stored.Domain),
		Taints:        pick(agreed.Taints, object.Taints, stored.Taints),
		Root:          pick(agreed.Root, object.Root, stored.Root),
		IsCordoned:    pick(agreed.IsCordoned, object.IsCordoned, stored.IsCordoned),
		IsProtected:   pick(agreed.IsProtected, object.IsProtected, stored.IsProtected),
		IsRetained:    pick(agreed.IsRetained, object.IsRetained, stored.IsRetained),
		InMaintenance: pick(agreed.InMaintenance, object.InMaintenance, stored.InMaintenance),
	}
	if out.Domain == "" { // a host stands where it stands
		out.Domain = stored.Domain
	}
	keys := maps.Clone(stored.Labels)
	for k, v := range object.Labels {
		keys = set(keys, k, v)
	}
	for k := range keys {
		o, hasO := object.Labels[k]
		s, hasS := stored.Labels[k]
		a, hasA := agreed.Labels[k]
		if hasO != hasA || o != a {
			s, hasS = o, hasO
		}
		if hasS {
			out.Labels = set(out.Labels, k, s)
		}
	}
	return out
}

func pick[T any](agreed, object, stored T) T {
	if isSame(object, agreed) {
		return stored
	}
	return object
}

// isSame takes an empty list for none.
func isSame[T any](a, b T) bool {
	x, y := reflect.ValueOf(&a).Elem(), reflect.ValueOf(&b).Elem()
	if x.Kind() == reflect.Slice && x.Len() == 0 && y.Len() == 0 {
		return true
	}
	return reflect.DeepEqual(a, b)
}

// String is what both sides said, to be written down.
func (s Said) String() string {
	text, err := json.Marshal(s)
	if err != nil {
		return "" // it is made of texts, numbers and booleans
	}
	return string(text)
}

// Into puts the object's fields into a host of the inventory, but for two with verbs of their own: protection and
// maintenance. Labels that tools keep stay.
func (s Said) Into(h inventory.Host) inventory.Host {
	var labels map[string]string
	for k, v := range h.Labels {
		if isOurs(k) {
			labels = set(labels, k, v)
		}
	}
	for k, v := range s.Labels {
		labels = set(labels, k, v)
	}
	if len(labels)+len(h.Labels) > 0 {
		h.Labels = labels
	}
	h.IsCordoned, h.IsRetained, h.Place = s.IsCordoned, s.IsRetained, inDomain(h.Place, s.Domain)
	if !isSame(shown(h.RootDisk), s.Root) {
		h.RootDisk = s.Root
	}
	if !isSame(h.Taints, s.Taints) {
		h.Taints = s.Taints
	}
	return h
}

// MaintenanceReason is what a MetalHost says when maintenance was switched on elsewhere.
const MaintenanceReason = "switched on in Slipway"

// Show puts the fields of a host into its MetalHost. An existing field with the same value stays as it is written.
func (s Said) Show(mh *v1alpha1.MetalHost) {
	now := SaidOf(mh)
	for k := range now.Labels {
		if _, ok := s.Labels[k]; !ok {
			delete(mh.Labels, k)
		}
	}
	for k, v := range s.Labels {
		mh.Labels = set(mh.Labels, k, v)
	}
	show := func(field **bool, is, was bool) {
		if is != was {
			*field = &is
		}
	}
	show(&mh.Spec.Cordoned, s.IsCordoned, now.IsCordoned)
	show(&mh.Spec.Protected, s.IsProtected, now.IsProtected)
	if s.IsRetained != now.IsRetained {
		mh.Spec.ReclaimPolicy = v1alpha1.ReclaimRecycle
		if s.IsRetained {
			mh.Spec.ReclaimPolicy = v1alpha1.ReclaimRetain
		}
	}
	mh.Spec.FailureDomain = s.Domain
	if !isSame(now.Taints, s.Taints) {
		mh.Spec.Taints = nil
		for _, t := range s.Taints {
			mh.Spec.Taints = append(mh.Spec.Taints, v1alpha1.HostTaint{Key: t.Key, Value: t.Value})
		}
	}
	if !isSame(now.Root, s.Root) {
		mh.Spec.RootDevice = rootDevice(s.Root)
	}
	switch {
	case !s.InMaintenance:
		mh.Spec.Maintenance = nil
	case mh.Spec.Maintenance == nil:
		mh.Spec.Maintenance = &v1alpha1.HostMaintenance{Reason: MaintenanceReason}
	}
}

// shown is as much of a choice of a disk as a MetalHost has words for.
func shown(h inventory.DiskHint) inventory.DiskHint {
	if r := rootDevice(h); r != nil {
		return DiskHint(r)
	}
	return inventory.DiskHint{}
}

// rootDevice is a choice of a disk in the words of a MetalHost, nil when it has no words for it.
func rootDevice(h inventory.DiskHint) *v1alpha1.RootDevice {
	r := &v1alpha1.RootDevice{Serial: h.Serial, WWN: h.WWN, Rotational: h.IsRotational}
	switch {
	case h.ByPath != "":
		r.DeviceName = "/dev/disk/by-path/" + h.ByPath
	case h.Name != "":
		r.DeviceName = "/dev/" + h.Name
	}
	if h.MinBytes > 0 {
		r.MinSize = resource.NewQuantity(h.MinBytes, resource.BinarySI)
	}
	if *r == (v1alpha1.RootDevice{}) {
		return nil
	}
	return r
}
