package convert

import (
	"net"
	"net/url"
	"slices"
	"strings"

	"slipway.dev/slipway/kubernetes/v1alpha1"
)

// What other objects of the files say of a host. A status is as old as the file that it is in, and a machine or a node
// that names the host is newer knowledge, or a contradiction. In both cases the host does not count as free.

// claim is an object that names a host as its own.
type claim struct {
	by        *source
	namespace string // of the host; "" when it is not said
}

// claims are those of all files, by the name or UID of a host.
type claims map[string][]claim

// find notes every object that names a host: a Metal3Machine or a Machine of OpenShift by its annotation, a Node or a
// Machine by its provider id, an Agent by its label, a machine of Sidero by its reference. Hosts stand under their names, or
// their UIDs.
func (c claims) find(sources []*source) {
	for _, s := range sources {
		meta, spec := s.root.at("metadata"), s.root.at("spec")
		c.add(s, "", spec.at("providerID").text())
		if namespace, name, ok := strings.Cut(meta.at("annotations", "metal3.io/BareMetalHost").text(), "/"); ok {
			c[name] = append(c[name], claim{s, namespace})
		}
		for _, v := range []*value{meta.at("labels", "agent-install.openshift.io/bmh"), spec.at("serverRef", "name")} {
			c.add(s, s.namespace, v.text())
		}
	}
}

// add notes a name, or a provider id such as metal3://metal3/node-1/web-1, metal3://UID or sidero://UID.
func (c claims) add(s *source, namespace, text string) {
	if scheme, rest, isID := strings.Cut(text, "://"); isID {
		if scheme != "metal3" && scheme != "sidero" && scheme != "baremetalhost" {
			return
		}
		text = strings.Trim(rest, "/")
		if parts := strings.Split(text, "/"); len(parts) > 1 {
			namespace, text = parts[0], parts[1]
		}
	}
	if text != "" {
		c[text] = append(c[text], claim{s, namespace})
	}
}

// of returns the object that names the host of s, nil when none does.
func (c claims) of(s *source) *source {
	uid := s.root.at("metadata", "uid").text()
	for _, cl := range slices.Concat(c[s.name], c[uid]) {
		isSame := cl.namespace == "" || s.namespace == "" || cl.namespace == s.namespace || s.isSidero()
		if cl.by != s && (s.name != "" || uid != "") && isSame {
			return cl.by
		}
	}
	return nil
}

// isSameController reports whether two ways to power a host lead to one machine. One controller speaks IPMI and Redfish, and
// one may have several systems.
func isSameController(a, b *v1alpha1.HostPower) bool {
	hostA, systemA := controllerOf(a)
	hostB, systemB := controllerOf(b)
	return hostA == hostB && (systemA == "" || systemB == "" || systemA == systemB)
}

func controllerOf(p *v1alpha1.HostPower) (host, system string) {
	address, system, _ := strings.Cut(strings.ToLower(p.Address), "#")
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		address = u.Host
	}
	if h, port, err := net.SplitHostPort(address); err == nil {
		if address = h; !slices.Contains([]string{"", "623", "443", "80"}, port) {
			address = net.JoinHostPort(h, port)
		}
	}
	return strings.Trim(address, "[]"), system
}
