package configuration

import (
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/address"
)

// clashFindings says clashes as findings: errors when they are new, warnings when they were there before.
func clashFindings(clashes []address.Clash, isNew bool) (r machineconfig.Report) {
	for _, c := range clashes {
		say := r.Warnf
		if isNew {
			say = r.Errorf
		}
		f := say(c.Path, c.Code(), "%s: %s", c.Holder, c.Message())
		f.Hint, f.Source, f.Refs = c.Hint, c.Source, c.References()
	}
	return r
}

// clashesOf says as findings that a subject would have too many addresses, or else what others have.
func clashesOf(b *address.Book, s address.Subject, all []inventory.Holding) (machineconfig.Report, error) {
	if no, err := b.TooMany(s, all, all); no != nil || err != nil {
		return tooMany(no), err
	}
	clashes, err := b.Clashes(s, all, nil)
	return clashFindings(clashes, true), err
}

// tooMany says as a finding that there are too many addresses.
func tooMany(no *inventory.Error) (r machineconfig.Report) {
	if no != nil {
		r.Errorf("/network", "too-many-addresses", "%s", no.Msg).Says(no)
	}
	return r
}

// constantAddresses warns of addresses that a layer gives to all its hosts.
func constantAddresses(c *machineconfig.Config) (r machineconfig.Report) {
	for _, a := range address.StaticIn(c) {
		isShared := false
		for _, wide := range []string{"layer global", "layer site/", "layer rack/", "profile "} {
			isShared = isShared || strings.HasPrefix(a.Source, wide)
		}
		if isShared && strings.HasPrefix(a.Path, "/network/") {
			f := r.Warnf(a.Path, "constant-address", "every machine of this layer gets %s: only one may have it", a.Address)
			f.Source, f.Hint = a.Source, "write fromSubnets: [SUBNET] for an address of each machine's own, or the address in the layer of the host or machine"
		}
	}
	return r
}
