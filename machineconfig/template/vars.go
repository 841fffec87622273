package template

import (
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
)

// Vars is what templates see: {{ .Host.Name }}, {{ .Parameters.zone }}. It holds data only, so that a template can do
// nothing but read it.
type Vars struct {
	Host HostVars
	// Parameters are the profile's.
	Parameters map[string]string
	Profile    string // its name
	Release    string // of the OS

	addresses machineconfig.AddressOf
}

// HostVars is the host as templates see it.
type HostVars struct {
	ID, Name, UUID, Serial, AssetTag, Manufacturer, Product, Arch string

	MACs    []string
	BootMAC string // of the port that it boots from, "" if that is not known
	Labels  map[string]string
	Facts   map[string]string
	Place   inventory.Place
}

// NewVars returns what templates see of a host. It copies what it takes.
func NewVars(h *inventory.Host, p *inventory.Profile, release string) Vars {
	v := Vars{
		Host: HostVars{
			ID: string(h.ID), Name: h.Name, UUID: h.UUID, Serial: unmarked(h.Serial), AssetTag: unmarked(h.AssetTag),
			Manufacturer: unmarked(h.Manufacturer), Product: unmarked(h.Product), Arch: string(h.Arch),
			BootMAC: string(h.BootMAC()), Labels: copyMap(h.Labels), Facts: copyMap(h.Facts), Place: h.Place,
		},
		Release: release, Parameters: map[string]string{},
	}
	for _, m := range h.MACs() {
		v.Host.MACs = append(v.Host.MACs, string(m))
	}
	if p != nil {
		v.Profile, v.Parameters = p.Name, copyMap(p.Parameters)
	}
	return v
}

func copyMap(m map[string]string) map[string]string {
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[unmarked(k)] = unmarked(v)
	}
	return out
}

// unmarked spoils what looks like the marker of a secret: data must not get at one that the text around it asks for.
func unmarked(s string) string { return strings.ReplaceAll(s, late.Prefix, late.Prefix+"!") }

// WithAddresses lets templates ask for the addresses that are kept for the machine.
func (v Vars) WithAddresses(of machineconfig.AddressOf) Vars {
	v.addresses = of
	return v
}
