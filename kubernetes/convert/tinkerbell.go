package convert

import (
	"net"

	"k8s.io/apimachinery/pkg/runtime"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/v1alpha1"
)

// Tinkerbell, tinkerbell.org/v1alpha1: Hardware, and bmc.tinkerbell.org Machine.

// hardware converts one piece of hardware. Nothing in it proves that it is free.
func (c *Converter) hardware(s *source) []runtime.Object {
	h := &v1alpha1.MetalHost{TypeMeta: typeMeta(v1alpha1.KindMetalHost), ObjectMeta: metaOf(s, s.newName, "", true)}
	spec := s.root.at("spec")
	why := "Tinkerbell does not say whether it runs something"
	var macs []*value
	for _, i := range spec.at("interfaces").list() {
		mac, address := i.at("dhcp", "mac"), i.at("dhcp", "ip", "address")
		macs = append(macs, mac)
		parsed, err := inventory.ParseMAC(mac.text())
		if ip := net.ParseIP(address.text()); ip != nil && err == nil {
			s.say("keep its address with: slipway reservation create %s --mac %s", ip, parsed)
		}
		if i.at("netboot", "allowPXE").isFalse() {
			why = "it may not boot from the network (allowPXE: false), so that it runs something"
		}
	}
	h.Spec.BootMACs = bootMACs(s, macs...)
	if len(h.Spec.BootMACs) == 0 {
		s.say("it names no MAC address: add bootMACs, or boot it once and accept it")
	}
	if disks := spec.at("disks").list(); len(disks) > 0 && disks[0].at("device").says() {
		d := v1alpha1.RootDevice{DeviceName: disks[0].at("device").take(isPlain(256))}
		h.Spec.RootDevice = rootDevice(s, d, d.DeviceName == "", disks[0].path)
	}
	h.Spec.FailureDomain = spec.at("metadata", "facility", "facility_code").take(isPlain(256))
	if name := spec.at("bmcRef", "name"); name.says() {
		h.Spec.Power = c.tinkerbellPower(s, name)
	}
	guard(s, h, why)
	for _, field := range []string{"userData", "vendorData"} {
		if v := spec.at(field); v.says() {
			s.say("%s: configuration comes from the profile or the MetalMachine", v.path)
		}
	}
	return []runtime.Object{h}
}

// tinkerbellPower says how a host is powered: as the object says that it refers to.
func (c *Converter) tinkerbellPower(s *source, name *value) *v1alpha1.HostPower {
	b := c.bmcs[s.namespace+"/"+name.text()]
	if b == nil {
		s.say("its controller (bmc.tinkerbell.org Machine %s) is not in the files: add power by hand", shown(s.namespace+"/"+name.text()))
		return nil
	}
	at := b.root.at("spec", "connection")
	host, port, skip := at.at("host"), at.at("port"), at.at("insecureTLS")
	if !isHost(host.text()) || port.text() != "" && !isPort(port.text()) {
		s.say("%s of %s is no address: add power by hand", at.where(b.root.at("spec")), b.title(len(c.files)))
		return nil
	}
	s.lender, s.borrowed = b, []*value{name, s.root.at("spec", "bmcRef", "kind"), s.root.at("spec", "bmcRef", "apiGroup"), host, port}
	p := &v1alpha1.HostPower{Driver: v1alpha1.PowerIPMI, Address: host.text()}
	switch t := port.text(); t {
	case "", "0", "623":
		s.say("Tinkerbell tries several protocols: IPMI is taken here; with Redfish write driver: Redfish and address: https://%s", host.text())
	case "443", "8443":
		p.Driver, p.Address = v1alpha1.PowerRedfish, "https://"+net.JoinHostPort(host.text(), t)
	default:
		p.Address = net.JoinHostPort(host.text(), t)
	}
	if p.Driver == v1alpha1.PowerRedfish && (skip.isTrue() || skip.isFalse()) { // IPMI has no certificates
		is := skip.isTrue()
		p.InsecureSkipVerify, s.borrowed = &is, append(s.borrowed, skip)
	}
	ref := at.at("authSecretRef")
	space := ref.at("namespace").text()
	if ref.says() {
		if p.CredentialsRef = secretRef(ref.at("name"), space); p.CredentialsRef == nil {
			s.say("%s of %s is no name of a Secret: name one in power.credentialsRef", ref.path, b.title(len(c.files)))
		} else {
			s.borrowed = append(s.borrowed, ref.at("name"), ref.at("namespace"))
		}
	}
	return p
}

// tinkerbellMachine says what became of a controller. The hardware that refers to it has it.
func (c *Converter) tinkerbellMachine(s *source) []runtime.Object {
	for _, o := range c.sources {
		isHardware := o.group() == "tinkerbell.org" && o.kind == "Hardware" && o.twin == nil
		if isHardware && o.namespace == s.namespace && o.root.at("spec", "bmcRef", "name").text() == s.name {
			return nil
		}
	}
	s.say("no Hardware in the files refers to it, and a controller alone is no host: write spec.power into the MetalHost that it switches")
	return nil
}
