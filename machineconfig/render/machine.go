package render

import (
	"maps"
	"strings"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/pointer"
)

// Machine is what the machine that has the host adds to its configuration.
type Machine struct {
	// Origin names its own layer, the narrowest of all, and Config is the text of that.
	Origin, Config string
	// SavedByAdmin says that an admin saved the machine.
	SavedByAdmin bool
	// Domain is what follows the short name in its host name; it fills in where no layer gives one.
	Domain string
	// ProviderID, Labels and Zone are what its Kubernetes node gets where no layer says anything else.
	ProviderID string
	Labels     map[string]string
	Zone       string
	// BootstrapFrom says where its bootstrap data come from, "" for a machine whose configuration says it all. Secret is the
	// name under which Input.Secret has them, "" while they are not here; SecretFormat and Digest are theirs.
	BootstrapFrom                string
	Secret, SecretFormat, Digest string
}

const (
	capiSecret = "capi-secret"
	talos      = "talos"
	zoneLabel  = "topology.kubernetes.io/zone"
)

// apply puts in what the machine says of its bootstrap.
func (m *Machine) apply(in *Input, c *machineconfig.Config, report *machineconfig.Report) {
	if c.Host.Domain == "" && m.Domain != "" {
		c.Host.Domain = m.Domain
		if c.Provenance != nil {
			c.Provenance["/host/domain"] = m.Origin
		}
	}
	if m.BootstrapFrom != "" {
		m.applyData(c, report)
	}
	b := c.Bootstrap
	if b == nil || b.Kind == "none" || b.Kind == talos && (b.Secret != "" || isSecretDocument(in)) {
		return
	}
	set := func(path string) {
		if c.Provenance != nil {
			c.Provenance["/bootstrap/"+path] = m.Origin
		}
	}
	if b.ProviderID == "" && m.ProviderID != "" {
		b.ProviderID = m.ProviderID
		set("providerID")
	}
	labels := m.Labels
	if b.Kind == capiSecret { // the bootstrap provider labels its nodes; the zone is for templates
		if labels = nil; m.Zone != "" {
			labels = map[string]string{zoneLabel: m.Zone}
		}
	}
	b.Labels = maps.Clone(b.Labels)
	for k, v := range labels {
		if _, ok := b.Labels[k]; ok {
			continue
		}
		if b.Labels == nil {
			b.Labels = map[string]string{}
		}
		b.Labels[k] = v
		set(pointer.Add("labels", k))
	}
}

// applyData makes the bootstrap one from the machine's data. Until they are here there is none.
func (m *Machine) applyData(c *machineconfig.Config, report *machineconfig.Report) {
	if m.Secret == "" {
		c.Bootstrap = nil
		report.Warnf("/bootstrap", "waiting", "its bootstrap data come from %s when it boots", m.BootstrapFrom)
		return
	}
	old := c.Bootstrap
	switch {
	case old != nil && old.Kind == talos: // the profile says that the document is passed on as it is
		b := *old
		b.Secret = m.Secret
		c.Bootstrap = &b
		return
	case old == nil:
		old = &machineconfig.BootstrapSpec{}
	}
	c.Bootstrap = &machineconfig.BootstrapSpec{
		Kind: capiSecret, Version: old.Version, Install: old.Install, ProviderID: old.ProviderID, Secret: m.Secret, SecretFormat: m.SecretFormat,
	}
	if zone := old.Labels[zoneLabel]; zone != "" {
		c.Bootstrap.Labels = map[string]string{zoneLabel: zone}
	}
	if c.Provenance != nil {
		c.Provenance["/bootstrap/kind"] = m.Origin
	}
}

// isSecretDocument reports whether the profile's own document is not known before it is delivered.
func isSecretDocument(in *Input) bool {
	d := document(in.Profiles)
	return d != nil && strings.Contains(d.Text, "secret")
}
