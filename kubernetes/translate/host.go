package translate

import (
	"maps"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/v1alpha1"
)

var drivers = map[v1alpha1.PowerDriver]inventory.BMCDriver{
	v1alpha1.PowerRedfish: inventory.Redfish, v1alpha1.PowerIPMI: inventory.IPMI, v1alpha1.PowerLibvirt: inventory.Libvirt,
	v1alpha1.PowerWakeOnLAN: inventory.WoL, v1alpha1.PowerWebhook: inventory.Webhook, v1alpha1.PowerManual: inventory.Manual,
}

// Host returns a host with the fields that a MetalHost sets. Other fields stay as the inventory has them. Flags that are
// set by verbs (accepted, maintenance, protected) are not touched.
func Host(mh *v1alpha1.MetalHost, h inventory.Host) inventory.Host {
	s := &mh.Spec
	h.Labels = maps.Clone(h.Labels)
	for _, k := range slices.Sorted(maps.Keys(mh.Labels)) {
		if isOurs(k) {
			continue
		}
		if h.Labels == nil {
			h.Labels = map[string]string{}
		}
		h.Labels[k] = mh.Labels[k]
	}
	if s.Cordoned != nil {
		h.IsCordoned = *s.Cordoned
	}
	h.Place = inDomain(h.Place, s.FailureDomain)
	if s.Taints != nil {
		h.Taints = nil
		for _, t := range s.Taints {
			h.Taints = append(h.Taints, inventory.Taint{Key: t.Key, Value: t.Value})
		}
	}
	if s.RootDevice != nil {
		h.RootDisk = DiskHint(s.RootDevice)
	}
	return h
}

// isOurs reports whether a label is a tool's, which the inventory does not keep: it mirrors facts or says what was applied.
func isOurs(key string) bool {
	prefix, _, _ := strings.Cut(key, "/")
	return prefix == v1alpha1.Group || strings.HasSuffix(prefix, "kubernetes.io") || strings.HasSuffix(prefix, "k8s.io") || strings.HasSuffix(prefix, "cluster.x-k8s.io")
}

// DeclaredHost is a host that nobody has heard yet, as its MetalHost declares it.
func DeclaredHost(mh *v1alpha1.MetalHost) inventory.Host {
	h := inventory.Host{Name: mh.Name}
	for i, mac := range mh.Spec.BootMACs {
		h.NICs = append(h.NICs, inventory.NIC{MAC: inventory.MAC(mac), IsBoot: i == 0})
	}
	return h
}

// BMC returns how a host is powered; ok is false when the object does not say it. Secrets come from the Secret that
// spec.power.credentialsRef names: see Account. Behind # the address names the system: a libvirt domain, the object's name
// when left out, or one of several systems of a Redfish controller.
func BMC(mh *v1alpha1.MetalHost, id inventory.HostID) (b inventory.BMC, ok bool) {
	p := mh.Spec.Power
	if p == nil {
		return b, false
	}
	b = inventory.BMC{
		HostID: id, Driver: drivers[p.Driver], InsecureSkipVerify: p.InsecureSkipVerify != nil && *p.InsecureSkipVerify, Fingerprint: p.Fingerprint,
	}
	for k, v := range p.Options {
		b.Options = set(b.Options, k, string(v))
	}
	b.Address, b.System, _ = strings.Cut(p.Address, "#")
	if b.Driver == inventory.Libvirt && b.System == "" {
		b.System = mh.Name
	}
	return b, true
}

// Account puts into a controller what a Secret says of it: the user, and options whose values are secret. It returns the
// password, which is needed unless such options are there.
func Account(b *inventory.BMC, secret map[string][]byte) (password string, err error) {
	hasOptions := false
	for k, v := range secret {
		if inventory.IsSecretOption(k) {
			b.Options, hasOptions = set(b.Options, k, strings.TrimRight(string(v), "\r\n")), true
		}
	}
	b.Username = strings.TrimSpace(string(secret["username"]))
	password = strings.TrimRight(string(secret["password"]), "\r\n")
	if password == "" && !hasOptions {
		return "", invalid("spec.power.credentialsRef", "the Secret has no key password")
	}
	return password, nil
}

// inDomain is a place in a failure domain: as it is when it is there already; else the domain is a rack, site/rack or
// site/row/rack.
func inDomain(p inventory.Place, domain string) inventory.Place {
	if domain == "" || p.InDomain(domain) {
		return p
	}
	switch parts := strings.Split(domain, "/"); len(parts) {
	case 1:
		p.Rack = parts[0]
	case 2:
		p.Site, p.Rack = parts[0], parts[1]
	default:
		p.Site, p.Row, p.Rack = parts[0], parts[1], strings.Join(parts[2:], "/")
	}
	return p
}

func set(m map[string]string, k, v string) map[string]string {
	if m == nil {
		m = map[string]string{}
	}
	m[k] = v
	return m
}

// DiskHint is a choice of a disk in the words of the inventory.
func DiskHint(r *v1alpha1.RootDevice) inventory.DiskHint {
	h := inventory.DiskHint{Serial: r.Serial, WWN: r.WWN, IsRotational: r.Rotational}
	switch path := r.DeviceName; {
	case strings.HasPrefix(path, "/dev/disk/by-path/"):
		h.ByPath = strings.TrimPrefix(path, "/dev/disk/by-path/")
	default:
		h.Name = strings.TrimPrefix(path, "/dev/")
	}
	if r.MinSize != nil {
		h.MinBytes = r.MinSize.Value()
	}
	return h
}
