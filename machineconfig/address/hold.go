// Package address owns the rule that no two machines get one address or name. It says what a configuration makes a
// machine hold, who and what holds the same, and which address of a subnet a machine is given.
//
// Start reading at Of, then Book.Clashes, then Book.Give.
package address

import (
	"cmp"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
)

// Subject is a machine, or a host that no machine has, as the rule sees it.
type Subject struct {
	inventory.Holder
	// On is the host that it is on or will be on, nil while nobody knows.
	On *inventory.Host
	// Object is the owner of a machine that is called after it: the cluster keeps such names apart. "" for a chosen name.
	Object string
}

// Of returns what a configuration makes a machine hold: its static addresses, its host name, and the name of its node. Of
// more addresses than a machine may have it returns one too many: see Book.TooMany.
func Of(c *machineconfig.Config, s Subject) (all []inventory.Holding) {
	add := func(h inventory.Holding) {
		h.Holder = s.Holder
		all = append(all, h)
	}
	static := StaticIn(c)
	for _, a := range static[:min(len(static), MaxAddresses+1)] {
		add(inventory.Holding{Kind: inventory.HoldsAddress, Value: a.Address.String(), Path: a.Path, Source: inventory.Clean(a.Source, 200)})
	}
	if c.Host.Hostname == "" {
		return all
	}
	name := Name(c.Host.Hostname, c.Host.Domain)
	name.Path, name.Source = "/host/hostname", c.SourceOf("/host/hostname")
	if name.Domain == "" && name.Source == "inventory" {
		name.Domain = s.Object
	}
	add(name)
	if b := c.Bootstrap; b != nil && b.Target != "" && b.Kind != "none" {
		node := strings.ToLower(cmp.Or(b.NodeName, name.Value))
		path := "/host/hostname"
		if b.NodeName != "" {
			path = "/bootstrap/nodeName"
		}
		add(inventory.Holding{Kind: inventory.HoldsNode, Value: b.Target + "/" + node, Path: path, Source: c.SourceOf(path)})
	}
	return all
}

// Name is the holding of a host name, short or whole.
func Name(host, domain string) inventory.Holding {
	short, tail, _ := strings.Cut(strings.ToLower(strings.TrimSuffix(host, ".")), ".")
	domain = strings.ToLower(strings.Trim(cmp.Or(domain, tail), "."))
	return inventory.Holding{Kind: inventory.HoldsName, Value: short, Domain: domain}
}

// words are those without which a layer or document says nothing of names and addresses.
var words = []string{"ddress", "ADDR", "fromSubnets", "hostname", "domain", "nodeName", "target", "--ip", "{{", `"extends":"`}

// Matters reports whether the text of a profile or layer may say what its machines hold.
func Matters(text string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}
