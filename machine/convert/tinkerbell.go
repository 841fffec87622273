package convert

import (
	"net"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machine/v1alpha1"
)

// Tinkerbell, tinkerbell.org/v1alpha1: Hardware, and bmc.tinkerbell.org Machine.

// connection is how Tinkerbell reaches a controller.
type connection struct {
	host, port          string
	secret, secretSpace string
	skip                bool
}

func tinkerbellConnection(s *source) connection {
	at := func(k ...string) string { return s.text(append([]string{"spec", "connection"}, k...)...) }
	return connection{
		host: at("host"), port: at("port"), secret: at("authSecretRef", "name"), secretSpace: at("authSecretRef", "namespace"),
		skip: s.flag("spec", "connection", "insecureTLS"),
	}
}

// hardware converts one piece of hardware.
func (c *converter) hardware(s *source) []Object {
	h := &v1alpha1.MetalHost{TypeMeta: typeMeta(v1alpha1.KindMetalHost), ObjectMeta: metaOf(s, c.hostName(s, s.name), "")}
	yes := true
	h.Spec.Accepted = &yes
	var notes, macs []string
	for _, i := range s.list("spec", "interfaces") {
		m, _ := i.(map[string]any)
		dhcp, _ := m["dhcp"].(map[string]any)
		macs = append(macs, scalar(dhcp["mac"]))
		ip, _ := dhcp["ip"].(map[string]any)
		mac, err := inventory.ParseMAC(scalar(dhcp["mac"]))
		if address := net.ParseIP(scalar(ip["address"])); address != nil && err == nil {
			notes = append(notes, "keep its address with: slipway reservation create "+address.String()+" --mac "+string(mac))
		}
		if netboot, _ := m["netboot"].(map[string]any); netboot["allowPXE"] == false {
			h.Spec.Protected = &yes
		}
	}
	if h.Spec.Protected != nil {
		notes = append(notes, "it may not boot from the network (allowPXE: false): it is protected, so that nothing installs it")
	}
	h.Spec.BootMACs, notes = bootMACs(notes, macs...)
	for i, d := range s.list("spec", "disks") {
		m, _ := d.(map[string]any)
		if device := scalar(m["device"]); i == 0 && device != "" {
			h.Spec.RootDevice = &v1alpha1.RootDevice{DeviceName: device}
		}
	}
	h.Spec.FailureDomain = s.text("spec", "metadata", "facility", "facility_code")
	if name := s.text("spec", "bmcRef", "name"); name != "" {
		h.Spec.Power, notes = c.tinkerbellPower(s.namespace+"/"+name, notes)
	}
	s.ignore("spec.bmcRef")
	for path, say := range map[string]string{
		"userData":   "spec.userData: configuration comes from the profile or the MetalMachine",
		"vendorData": "spec.vendorData: configuration comes from the profile or the MetalMachine",
	} {
		if s.get("spec", path) != nil {
			notes = append(notes, say)
		}
	}
	sortTail(notes)
	return s.finish(h, notes)
}

func (c *converter) tinkerbellPower(ref string, notes []string) (*v1alpha1.HostPower, []string) {
	b, ok := c.bmcs[ref]
	if !ok || b.host == "" {
		return nil, append(notes, "its controller (bmc.tinkerbell.org Machine "+ref+") is not in this file: add power by hand")
	}
	p := &v1alpha1.HostPower{Driver: v1alpha1.PowerIPMI, Address: b.host}
	switch b.port {
	case "", "0", "623":
		notes = append(notes, "Tinkerbell tries several protocols: IPMI is taken here; with Redfish write driver: Redfish and address: https://"+b.host)
	case "443", "8443":
		p.Driver, p.Address = v1alpha1.PowerRedfish, "https://"+net.JoinHostPort(b.host, b.port)
	default:
		p.Address = net.JoinHostPort(b.host, b.port)
	}
	if b.skip {
		p.InsecureSkipVerify = &b.skip
	}
	if b.secret != "" {
		p.CredentialsRef = &v1alpha1.SecretReference{Name: b.secret, Namespace: namespaceOr(b.secretSpace)}
	}
	return p, notes
}
