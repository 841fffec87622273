package installer

import (
	"net"
	"slices"
	"strings"

	"slipway.dev/slipway/machineconfig"
)

// own are the rows of the capability table that are added to a profile's own document.
var own = []string{"/host/hostname", "/host/domain", "/phoneHome"}

// Ignored returns the values of a configuration that are not added to a profile's own document, as JSON pointers.
func Ignored(c *machineconfig.Config) []string {
	var out []string
	for _, u := range machineconfig.Uses(c) {
		if !slices.Contains(own, u.Field) && !slices.Contains(out, u.Path) {
			out = append(out, u.Path)
		}
	}
	return out
}

// Cut shortens what a document says, for messages.
func Cut(s string) string {
	if r := []rune(s); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return s
}

// Netmask is the mask of an IPv4 network by the length of its prefix.
func Netmask(bits int) string { return net.IP(net.CIDRMask(bits, 32)).String() }

// Safe makes a name of letters, digits, - and _.
func Safe(ref string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, ref)
}
