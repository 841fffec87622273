package convert

import (
	"net"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machine/v1alpha1"
)

// Metal3, metal3.io/v1alpha1: BareMetalHost.

// bareMetalHost converts a host. One that runs something is protected, so that nothing wipes it.
func (c *converter) bareMetalHost(s *source) []Object {
	h := &v1alpha1.MetalHost{TypeMeta: typeMeta(v1alpha1.KindMetalHost), ObjectMeta: metaOf(s, c.hostName(s, s.name), "")}
	yes := true
	h.Spec.Accepted = &yes
	var notes []string
	h.Spec.BootMACs, notes = bootMACs(notes, s.text("spec", "bootMACAddress"))
	if len(h.Spec.BootMACs) == 0 {
		notes = append(notes, "it has no bootMACAddress: Slipway knows hosts by that; add bootMACs")
	}
	var more []string
	h.Spec.Power, more = metal3Power(s)
	notes = append(notes, more...)
	h.Spec.RootDevice, more = metal3RootDevice(s)
	notes = append(notes, more...)
	for _, t := range s.list("spec", "taints") {
		m, _ := t.(map[string]any)
		if key := scalar(m["key"]); key != "" {
			h.Spec.Taints = append(h.Spec.Taints, v1alpha1.HostTaint{Key: key, Value: scalar(m["value"])})
		}
	}
	if s.text("spec", "automatedCleaningMode") == "disabled" {
		notes = append(notes, "automatedCleaningMode is disabled: the same for a set of hosts is cleanPolicy: None in their MetalPool")
	}
	external, consumer := s.flag("spec", "externallyProvisioned"), s.text("spec", "consumerRef", "name")
	s.ignore("spec.consumerRef", "spec.online", "spec.bootMode", "spec.architecture", "spec.hardwareProfile")
	state := s.text("status", "provisioning", "state")
	if external || consumer != "" || strings.Contains(state, "provisioned") {
		h.Spec.Protected = &yes
		notes = append(notes, "something runs on it: it is protected, so that nothing wipes it; slipway host adopt makes it a machine as it is")
	}
	annotations := s.texts("metadata", "annotations")
	for _, k := range []string{"baremetalhost.metal3.io/paused", "baremetalhost.metal3.io/detached"} {
		if _, ok := annotations[k]; ok {
			h.Spec.Maintenance = &v1alpha1.HostMaintenance{Reason: "was " + strings.TrimPrefix(k, "baremetalhost.metal3.io/") + " in Metal3"}
		}
	}
	for path, say := range map[string]string{
		"image":       "spec.image: what is installed says the profile of a MetalMachine",
		"userData":    "spec.userData: configuration comes from the profile, the MetalMachine or its bootstrap data",
		"networkData": "spec.networkData: addresses are said by slipway reservation create, more by a layer of the host",
	} {
		if s.get("spec", path) != nil {
			notes = append(notes, say)
		}
	}
	sortTail(notes)
	return s.finish(h, notes)
}

// metal3Power translates an address, whose scheme says the driver, as pkg/hardwareutils/bmc of Metal3 reads it.
func metal3Power(s *source) (*v1alpha1.HostPower, []string) {
	address := s.text("spec", "bmc", "address")
	secret := s.text("spec", "bmc", "credentialsName")
	skip := s.flag("spec", "bmc", "disableCertificateVerification")
	if address == "" {
		return nil, []string{"it has no spec.bmc.address: it is powered by hand"}
	}
	if !strings.Contains(address, "://") {
		address = "ipmi://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return nil, []string{"spec.bmc.address cannot be read: add power by hand"}
	}
	p := &v1alpha1.HostPower{}
	var notes []string
	driver, transport, _ := strings.Cut(u.Scheme, "+")
	switch driver {
	case "ipmi":
		p.Driver, p.Address = v1alpha1.PowerIPMI, u.Host
	case "libvirt":
		p.Driver, p.Address = v1alpha1.PowerIPMI, u.Host
		notes = append(notes, "libvirt:// means IPMI of a virtual controller in Metal3")
	case "redfish", "redfish-virtualmedia", "idrac-redfish", "idrac-virtualmedia", "ilo5-redfish", "ilo5-virtualmedia", "redfish-uefihttp":
		if transport == "" {
			transport = "https"
		}
		p.Driver, p.Address = v1alpha1.PowerRedfish, transport+"://"+u.Host
		if _, system, ok := strings.Cut(u.Path, "/Systems/"); ok && system != "" {
			p.Address += "#" + strings.Trim(system, "/")
		}
	case "idrac", "ilo4", "ilo5", "irmc":
		p.Driver, p.Address = v1alpha1.PowerRedfish, "https://"+net.JoinHostPort(u.Hostname(), portOr(u.Port(), "443"))
		notes = append(notes, driver+":// is a vendor's own protocol: Redfish of the same controller is used instead; look whether it is switched on")
	default:
		return nil, []string{"spec.bmc.address has the scheme " + driver + ", which Slipway does not speak: add power by hand"}
	}
	if skip {
		p.InsecureSkipVerify = &skip
	}
	if secret != "" {
		p.CredentialsRef = &v1alpha1.SecretReference{Name: secret, Namespace: namespaceOr(s.namespace)}
	}
	return p, notes
}

func portOr(port, usual string) string {
	if port == "" {
		return usual
	}
	return port
}

func namespaceOr(ns string) string {
	if ns == "" {
		return "default"
	}
	return ns
}

func metal3RootDevice(s *source) (*v1alpha1.RootDevice, []string) {
	if !s.has("spec", "rootDeviceHints") {
		return nil, nil
	}
	at := func(k string) string { return s.text("spec", "rootDeviceHints", k) }
	d := &v1alpha1.RootDevice{DeviceName: at("deviceName"), Serial: at("serialNumber"), WWN: at("wwn")}
	var notes []string
	if n := at("minSizeGigabytes"); n != "" {
		if q, err := resource.ParseQuantity(n + "Gi"); err == nil { // Metal3's gigabyte is 2^30
			d.MinSize = &q
		}
	}
	if r, ok := s.get("spec", "rootDeviceHints", "rotational").(bool); ok {
		d.Rotational = &r
	}
	if d.WWN == "" {
		d.WWN = at("wwnWithExtension")
	}
	if *d == (v1alpha1.RootDevice{}) {
		return nil, append(notes, "rootDevice knows deviceName, serial, wwn, minSize and rotational")
	}
	return d, notes
}

// bootMACs keeps what is a MAC address, once.
func bootMACs(notes []string, texts ...string) (macs []v1alpha1.MAC, _ []string) {
	seen := map[inventory.MAC]bool{}
	for _, t := range texts {
		if t == "" {
			continue
		}
		mac, err := inventory.ParseMAC(t)
		switch {
		case err != nil:
			notes = append(notes, "a MAC address cannot be read: left out")
		case mac == "00:00:00:00:00:00" || seen[mac]:
		case len(macs) == 16:
			notes = append(notes, "it has more than 16 MAC addresses: the first 16 are here")
			return macs, notes
		default:
			seen[mac] = true
			macs = append(macs, v1alpha1.MAC(mac))
		}
	}
	return macs, notes
}
