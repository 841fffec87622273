package convert

import (
	"net"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"slipway.dev/slipway/kubernetes/v1alpha1"
)

// Sidero Metal, metal.sidero.dev/v1alpha1 and v1alpha2: Server. Classes are in class.go.

// sideroServer converts a server.
func (c *Converter) sideroServer(s *source) []runtime.Object {
	h := &v1alpha1.MetalHost{TypeMeta: typeMeta(v1alpha1.KindMetalHost), ObjectMeta: metaOf(s, s.newName, "", true)}
	spec := s.root.at("spec")
	h.Spec.Cordoned = yesNo(spec.at("cordoned"))
	var macs []*value
	for _, i := range spec.at("hardware", "network", "interfaces").list() {
		if !strings.Contains(i.at("flags").text(), "loopback") && !strings.HasPrefix(i.at("name").text(), "lo") {
			macs = append(macs, i.at("mac"))
		}
	}
	h.Spec.BootMACs = bootMACs(s, macs...)
	if len(h.Spec.BootMACs) == 0 {
		s.say("it names no MAC address: add bootMACs, or boot it once and accept it")
	}
	h.Spec.Power = sideroPower(s)
	accepted, status := spec.at("accepted"), s.root.at("status")
	switch {
	case slices.ContainsFunc(c.sources, func(o *source) bool { return o.kind == "ServerBinding" && o.name == s.name }):
		guard(s, h, "something runs on it, says its ServerBinding")
	case c.claims.of(s) != nil:
		guard(s, h, "something runs on it, says "+c.claims.of(s).title(len(c.files)))
	case status.at("inUse").isTrue():
		guard(s, h, "something runs on it, says status.inUse")
	case s.root.at("metadata", "deletionTimestamp").says():
		guard(s, h, "it is being deleted, and may run something")
	case !accepted.isTrue():
		guard(s, h, "Sidero had not accepted it, so that it may run something")
	case !status.at("inUse").isFalse() || !status.at("isClean").isTrue():
		guard(s, h, "its status does not say that it is clean and not in use, so that it may run something")
	default:
		accepted.carry()
		release(s, h, status.at("isClean"))
	}
	if v := spec.at("configPatches"); v.says() {
		s.say("spec.configPatches: put Talos patches into the profile, or into a layer of the host")
	}
	if v := spec.at("environmentRef"); v.says() {
		s.say("spec.environmentRef: kernel and initrd are an image, chosen by a profile")
	}
	return []runtime.Object{h}
}

// sideroPower translates spec.bmc. User and password that stand there are not printed.
func sideroPower(s *source) *v1alpha1.HostPower {
	b := s.root.at("spec", "bmc")
	endpoint, port := b.at("endpoint"), b.at("port")
	switch {
	case endpoint.text() == "":
		s.say("it has no spec.bmc: a person powers it; Slipway does not speak its managementApi")
		return nil
	case !isHost(endpoint.text()) || port.text() != "" && !isPort(port.text()):
		s.say("%s is no address: add power by hand", b.path)
		return nil
	}
	endpoint.carry()
	port.carry()
	p := &v1alpha1.HostPower{Driver: v1alpha1.PowerIPMI, Address: endpoint.text()}
	if t := port.text(); t != "" && t != "0" && t != "623" {
		p.Address = net.JoinHostPort(p.Address, t)
	}
	user, pass := b.at("userFrom", "secretKeyRef"), b.at("passFrom", "secretKeyRef")
	isOne := user.at("name").text() != "" && user.at("name").text() == pass.at("name").text() && user.at("namespace").text() == pass.at("namespace").text()
	if isOne {
		p.CredentialsRef = secretRef(user.at("name"), user.at("namespace").text())
	}
	switch {
	case p.CredentialsRef != nil:
		for _, v := range []*value{user.at("name"), user.at("namespace"), pass.at("name"), pass.at("namespace")} {
			v.carry()
		}
		if user.at("key").text() != "username" || pass.at("key").text() != "password" {
			s.say("Secret %s needs the keys username and password; %s and %s name others", p.CredentialsRef.Name, user.at("key").where(user), pass.at("key").where(pass))
		} else {
			user.at("key").carry()
			pass.at("key").carry()
		}
	case b.at("user").says() || b.at("pass").says() || b.at("userFrom").says() || b.at("passFrom").says():
		s.say("put the account of its controller into a Secret with the keys username and password, and name that in " +
			"power.credentialsRef; the values in the file are not copied")
	}
	return p
}
