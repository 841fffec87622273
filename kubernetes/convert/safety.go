package convert

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/v1alpha1"
)

// What keeps a conversion from harming what runs.

// guard keeps a host as it is, whatever it runs: nothing installs or wipes it, and nothing restarts it to look at it. It
// is not accepted, for that would begin an inspection.
func guard(s *source, h *v1alpha1.MetalHost, why string) {
	yes := true
	h.Spec.Protected, h.Spec.Accepted = &yes, nil
	if h.Spec.Maintenance == nil {
		h.Spec.Maintenance = &v1alpha1.HostMaintenance{Reason: "may run a system that Slipway did not install"}
	}
	s.root.at("spec", "accepted").leave()
	s.notes = slices.DeleteFunc(s.notes, func(n string) bool { return strings.HasSuffix(n, isFree) })
	s.say("%s: it is protected and in maintenance, so that nothing wipes or restarts it", why)
	s.say("slipway host adopt takes over what runs on it; if that is nothing, remove protected and maintenance and write accepted: true")
}

const isFree = " says that it is free: it is accepted, and machines may be installed on it"

// release lets a host be used: its status proves that nothing runs on it.
func release(s *source, h *v1alpha1.MetalHost, proof *value) {
	yes := true
	h.Spec.Accepted = &yes
	s.say("%s%s", proof.path, isFree)
}

// tellApart looks for one machine behind two objects. The first with a MAC address has it; no second host is made. If both
// have one controller, switching one switches the other. In both cases none of them counts as free.
func (c *Converter) tellApart(made [][]runtime.Object) {
	type owner struct {
		s *source
		h *v1alpha1.MetalHost
	}
	macs, powers := map[v1alpha1.MAC]owner{}, map[string][]owner{}
	for i, s := range c.sources {
		if s.isTwice || s.twin != nil {
			if len(made[i]) == 1 {
				if h, ok := made[i][0].(*v1alpha1.MetalHost); ok {
					guard(s, h, "another object has its kind and name")
				}
			}
		}
		if len(made[i]) != 1 {
			continue
		}
		h, ok := made[i][0].(*v1alpha1.MetalHost)
		if !ok {
			continue
		}
		if first, mac := firstWith(h.Spec.BootMACs, func(m v1alpha1.MAC) (owner, bool) { o, ok := macs[m]; return o, ok }); first.s != nil {
			guard(first.s, first.h, "another object has its MAC address "+string(mac))
			s.notes = nil
			s.say("%s has its MAC address %s: no second host is made from it", first.s.title(len(c.files)), mac)
			made[i] = nil
			continue
		}
		for _, m := range h.Spec.BootMACs {
			macs[m] = owner{s, h}
		}
		if h.Spec.Power == nil {
			continue
		}
		at, _ := controllerOf(h.Spec.Power)
		if i := slices.IndexFunc(powers[at], func(o owner) bool { return isSameController(o.h.Spec.Power, h.Spec.Power) }); i >= 0 {
			first := powers[at][i]
			guard(first.s, first.h, "another object has its controller")
			guard(s, h, first.s.title(len(c.files))+" has its controller")
		}
		powers[at] = append(powers[at], owner{s, h})
	}
}

func firstWith[T any](macs []v1alpha1.MAC, find func(v1alpha1.MAC) (T, bool)) (found T, mac v1alpha1.MAC) {
	for _, m := range macs {
		if o, ok := find(m); ok {
			return o, m
		}
	}
	return found, ""
}

// bootMACs carries what is a MAC address, once.
func bootMACs(s *source, all ...*value) (macs []v1alpha1.MAC) {
	seen := map[inventory.MAC]bool{}
	for _, v := range all {
		t := v.text()
		if t == "" {
			continue
		}
		mac, err := inventory.ParseMAC(t)
		switch {
		case err != nil:
			s.say("%s is no MAC address: left out", v.path)
		case mac == "00:00:00:00:00:00":
		case seen[mac]:
		case len(macs) == 16:
			s.say("it has more than 16 MAC addresses: the first 16 are here")
			return macs
		default:
			seen[mac] = true
			v.carry()
			macs = append(macs, v1alpha1.MAC(mac))
		}
	}
	return macs
}

// rootDevice is a choice of disk. missing says that a part of the old choice cannot be said: then no disk fits, until a
// person has said which. A choice that lost a part would fit another disk.
func rootDevice(s *source, d v1alpha1.RootDevice, missing bool, path string) *v1alpha1.RootDevice {
	if missing {
		switch {
		case d.Serial == "":
			d.Serial = missingDisk
		case d.WWN == "":
			d.WWN = missingDisk
		default:
			d.DeviceName = missingDisk
		}
		s.say("%s says more than rootDevice can: no disk fits until you replace %s, so that no other disk is overwritten", path, missingDisk)
	}
	if d == (v1alpha1.RootDevice{}) {
		return nil
	}
	return &d
}

// hostTaints carries taints. One that cannot be said would let machines in that it keeps out: such a host is cordoned.
func hostTaints(s *source, h *v1alpha1.MetalHost, taints *value) {
	isLost := false
	for _, t := range taints.list() {
		key, val := t.at("key"), t.at("value")
		if len(h.Spec.Taints) == 16 || !isLabelKey(key.text()) || !isLabelValue(val.text()) {
			isLost = isLost || t.says()
			continue
		}
		key.carry()
		val.carry()
		h.Spec.Taints = append(h.Spec.Taints, v1alpha1.HostTaint{Key: key.text(), Value: val.text()})
	}
	if isLost {
		yes := true
		h.Spec.Cordoned = &yes
		s.say("%s holds what is no taint here: the host is cordoned instead", taints.path)
	}
}

// yesNo carries true or false.
func yesNo(v *value) *bool {
	is := v.isTrue()
	if !is && !v.isFalse() {
		return nil
	}
	v.carry()
	return &is
}

// secretRef is a reference to a Secret; nil when its name is none.
func secretRef(name *value, namespace string) *v1alpha1.SecretReference {
	namespace = cmp.Or(namespace, "default")
	if !isObjectName(name.text()) || !isNamespace(namespace) {
		return nil
	}
	return &v1alpha1.SecretReference{Name: name.text(), Namespace: namespace}
}
