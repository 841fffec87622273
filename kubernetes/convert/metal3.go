package convert

import (
	"cmp"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"

	"slipway.dev/slipway/kubernetes/v1alpha1"
)

// Metal3, metal3.io/v1alpha1: BareMetalHost.

// bareMetalHost converts a host.
func (c *Converter) bareMetalHost(s *source) []runtime.Object {
	h := &v1alpha1.MetalHost{TypeMeta: typeMeta(v1alpha1.KindMetalHost), ObjectMeta: metaOf(s, s.newName, "", true)}
	spec := s.root.at("spec")
	h.Spec.BootMACs = bootMACs(s, spec.at("bootMACAddress"))
	if len(h.Spec.BootMACs) == 0 {
		s.say("it has no bootMACAddress: Slipway knows hosts by that; add bootMACs")
	}
	h.Spec.Power = metal3Power(s)
	h.Spec.RootDevice = metal3RootDevice(s)
	hostTaints(s, h, spec.at("taints"))
	if spec.at("automatedCleaningMode").text() == "disabled" {
		s.say("automatedCleaningMode is disabled: the same for a set of hosts is cleanPolicy: None in their MetalPool")
	}
	for _, k := range []string{"paused", "detached"} {
		if a := s.root.at("metadata", "annotations", "baremetalhost.metal3.io/"+k); a != nil {
			h.Spec.Maintenance = &v1alpha1.HostMaintenance{Reason: "was " + k + " in Metal3"}
		}
	}
	switch why, proof := metal3Use(s); {
	case proof == nil:
		guard(s, h, why)
	case c.claims.of(s) != nil:
		guard(s, h, "something runs on it, says "+c.claims.of(s).title(len(c.files)))
	default:
		release(s, h, proof)
	}
	for _, x := range []struct{ field, say string }{
		{"image", "what is installed says the profile of a MetalMachine"},
		{"customDeploy", "what is installed says the profile of a MetalMachine"},
		{"userData", "configuration comes from the profile, the MetalMachine or its bootstrap data"},
		{"networkData", "use slipway reservation create for addresses, and a layer of the host for more"},
	} {
		if v := spec.at(x.field); v.says() {
			s.say("%s: %s", v.path, x.say)
		}
	}
	return []runtime.Object{h}
}

// metal3Use says why a host may run something, or which value proves that it does not. In Metal3 an image, a custom deploy
// step and a consumer each mean that it runs that. Without a status nothing is known.
func metal3Use(s *source) (why string, proof *value) {
	spec, status := s.root.at("spec"), s.root.at("status")
	state := status.at("provisioning", "state")
	for _, v := range []*value{
		spec.at("image"), spec.at("customDeploy"), spec.at("consumerRef"),
		status.at("provisioning", "image"), status.at("provisioning", "customDeploy"),
	} {
		if v.says() {
			return "something runs on it, says " + v.path, nil
		}
	}
	meta := s.root.at("metadata")
	annotations := meta.at("annotations")
	for _, v := range []*value{meta.at("ownerReferences"), meta.at("labels", "cluster.x-k8s.io/cluster-name")} {
		if v.says() {
			return "it belongs to something, says " + v.path, nil
		}
	}
	switch e := spec.at("externallyProvisioned"); {
	case e.says() && !e.isFalse():
		return "something runs on it, says " + e.path, nil
	case meta.at("deletionTimestamp").says():
		return "it is being deleted, and may run something", nil
	case annotations.at("baremetalhost.metal3.io/paused") != nil, annotations.at("baremetalhost.metal3.io/detached") != nil,
		status.at("operationalStatus").text() == "detached":
		return "Metal3 does not look after it, so that its status may be old", nil
	case annotations.at("baremetalhost.metal3.io/status") != nil:
		return "it was moved with its status in an annotation, so that the status may be old", nil
	case !slices.Contains([]string{"available", "ready"}, state.text()):
		return "its status does not say that it is available, so that it may run something", nil
	case spec.at("automatedCleaningMode").text() == "disabled" && !status.at("poweredOn").isFalse():
		return "it is not cleaned and not known to be off, so that it may run what is on its disks", nil
	}
	return "", state
}

// systemInPath is one system of several that a controller has.
var systemInPath = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,128}$`)

// metal3Power translates an address, whose scheme says the driver, as pkg/hardwareutils/bmc of Metal3 reads it.
func metal3Power(s *source) *v1alpha1.HostPower {
	bmc := s.root.at("spec", "bmc")
	v := bmc.at("address")
	address := v.text()
	if address == "" {
		s.say("it has no spec.bmc.address: it is powered by hand")
		return nil
	}
	if !strings.Contains(address, "://") {
		address = "ipmi://" + address
	}
	u, err := url.Parse(address)
	if err != nil || !isHost(u.Hostname()) || u.Port() != "" && !isPort(u.Port()) {
		s.say("%s cannot be read: add power by hand", v.path)
		return nil
	}
	p := &v1alpha1.HostPower{}
	driver, transport, _ := strings.Cut(u.Scheme, "+")
	switch driver {
	case "ipmi", "libvirt":
		p.Driver, p.Address = v1alpha1.PowerIPMI, u.Host
		if driver == "libvirt" {
			s.say("libvirt:// means IPMI of a virtual controller in Metal3")
		}
	case "redfish", "redfish-virtualmedia", "idrac-redfish", "idrac-virtualmedia", "ilo5-redfish", "ilo5-virtualmedia", "redfish-uefihttp":
		if transport != "http" {
			transport = "https"
		}
		p.Driver, p.Address = v1alpha1.PowerRedfish, transport+"://"+u.Host
		if _, system, ok := strings.Cut(u.Path, "/Systems/"); ok && strings.Trim(system, "/") != "" {
			system = strings.Trim(system, "/")
			if !systemInPath.MatchString(system) || looksSecret(system) {
				s.say("%s names a system that cannot be read: add power by hand", v.path)
				return nil
			}
			p.Address += "#" + system
		}
	case "idrac", "ilo4", "ilo5", "irmc":
		p.Driver, p.Address = v1alpha1.PowerRedfish, "https://"+net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "443"))
		s.say("%s:// is a vendor's own protocol: Redfish of the same controller is used instead; look whether it is switched on", driver)
	default:
		s.say("spec.bmc.address has the scheme %s, which Slipway does not speak: add power by hand", short(driver))
		return nil
	}
	v.carry()
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		s.say("%s holds an account or a query: these are not copied; put the account into the Secret that power.credentialsRef names", v.path)
	}
	if p.Driver == v1alpha1.PowerRedfish { // IPMI has no certificates
		p.InsecureSkipVerify = yesNo(bmc.at("disableCertificateVerification"))
	}
	if name := bmc.at("credentialsName"); name.says() {
		if p.CredentialsRef = secretRef(name, s.namespace); p.CredentialsRef == nil {
			s.say("%s is no name of a Secret: name one in power.credentialsRef", name.path)
		} else {
			name.carry()
			s.root.at("metadata", "namespace").carry()
		}
	}
	return p
}

// metal3RootDevice carries the hints for the root disk.
func metal3RootDevice(s *source) *v1alpha1.RootDevice {
	hints := s.root.at("spec", "rootDeviceHints")
	if !hints.says() {
		return nil
	}
	d := v1alpha1.RootDevice{
		DeviceName: hints.at("deviceName").take(isPlain(256)), Serial: hints.at("serialNumber").take(isPlain(256)), WWN: hints.at("wwn").take(isPlain(256)),
	}
	if n := hints.at("minSizeGigabytes"); n.text() != "" && len(n.text()) < 9 && strings.Trim(n.text(), "0123456789") == "" {
		if q, err := resource.ParseQuantity(n.text() + "Gi"); err == nil { // Metal3's gigabyte is 2^30
			d.MinSize = &q
			n.carry()
		}
	}
	d.Rotational = yesNo(hints.at("rotational"))
	if d.WWN == "" {
		d.WWN = hints.at("wwnWithExtension").take(isPlain(256))
	}
	missing := slices.ContainsFunc(hints.leaves(), func(l *value) bool {
		isExtension := d.WWN != "" && strings.HasPrefix(l.key, "wwn") // says no more than which disk has the WWN
		return !l.isCarried && l.text() != "" && !isExtension
	})
	if missing && d.Serial != "" && d.WWN != "" {
		hints.at("deviceName").leave() // its place is needed
	}
	return rootDevice(s, d, missing, hints.path)
}
