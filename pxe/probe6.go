package pxe

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
)

// ProbeKinds6 returns the kinds of firmware that a DHCPv6 probe imitates: all that boot over IPv6.
func ProbeKinds6() []ProbeKind {
	return slices.DeleteFunc(ProbeKinds(), func(k ProbeKind) bool { return k.Arch == 0 })
}

// judge6 decides for one kind on an IPv6 network.
func judge6(p ProbeSubject, k ProbeKind, offers []ProbeOffer) (to, detail, hint string) {
	var gives, boots []ProbeOffer
	for _, o := range offers {
		if o.Address.IsValid() {
			gives = append(gives, o)
		}
		if o.File != "" {
			boots = append(boots, o)
		}
	}
	if p.Subnet.Mode == inventory.ModeFull {
		switch who := servers(offers); {
		case len(boots) > 0:
			return LeadsAway, who + " answers here too and names a boot file: ours has preference 255, which not every firmware heeds", "switch it off"
		case len(gives) > 0:
			return LeadsAway, who + " gives addresses here too: a machine that takes its answer boots nothing", "switch it off, or let it give them alone: slipway subnet update " + p.Subnet.Name + " --mode off"
		case len(offers) > 0:
			return LeadsToUs, who + " answers too, and offers nothing", ""
		}
		return LeadsToUs, "no other server answers; ours does", ""
	}
	if len(gives) == 0 {
		return LeadsNowhere, "nobody gives it an address", "start the network's DHCPv6 server, or let ours serve: slipway subnet update " + p.Subnet.Name + " --mode full"
	}
	for _, o := range gives {
		if leads, why, change := leadsToUs6(p, k, o); !leads {
			if o.File == "" {
				return LeadsNowhere, why, change
			}
			return LeadsAway, why, change
		}
	}
	return LeadsToUs, servers(gives) + " sends it here", ""
}

// leadsToUs6 reports whether a DHCPv6 answer makes machines of a kind boot from us, else why not and what to name instead.
func leadsToUs6(p ProbeSubject, k ProbeKind, o ProbeOffer) (is bool, why, change string) {
	isHTTP := strings.HasPrefix(k.Class, "HTTPClient")
	us := "[ADDRESS]"
	if len(p.Us) > 0 {
		us = "[" + p.Us[0].String() + "]"
	}
	loader := "snponly.efi"
	if k.Arch == 11 {
		loader = "grubaa64.efi"
	}
	want := "tftp://" + us + "/" + loader
	if isHTTP || k.IsIPXE {
		want = URL(p.Base, "", loader)
	}
	if k.IsIPXE {
		want = URL(p.Base, "", "ask")
	}
	change = "let it name option 59 (bootfile-url) " + want
	if isHTTP {
		change += " and send option 16 (vendor class) of enterprise 343 with HTTPClient"
	}
	u, err := url.Parse(o.File)
	switch {
	case o.File == "":
		return false, fmt.Sprintf("%s gives an address and names no boot file", o.Server), change
	case err != nil:
		return false, fmt.Sprintf("%s names %q, which is no URL", o.Server, o.File), change
	case k.IsIPXE && u.Scheme == "tftp" && IsLoader(strings.TrimPrefix(u.Path, "/")):
		return false, fmt.Sprintf("%s gives iPXE the loader %q again, and not the script: it loads itself for ever", o.Server, o.File), change
	case isHTTP && o.Class != "HTTPClient":
		return false, fmt.Sprintf("%s leaves out the vendor class HTTPClient: firmware ignores its answer", o.Server), change
	case k.IsIPXE || isHTTP:
		return strings.HasPrefix(o.File, p.Base+"/"), fmt.Sprintf("%s sends it to %s", o.Server, o.File), change
	}
	at, _ := netip.ParseAddr(u.Hostname())
	switch {
	case u.Scheme != "tftp":
		return false, fmt.Sprintf("%s names %s: PXE over IPv6 fetches by tftp:// only", o.Server, o.File), change
	case !slices.Contains(p.Us, at):
		return false, fmt.Sprintf("%s sends it to %s, and we are %s", o.Server, o.File, addrsText(p.Us)), change
	case !IsLoader(strings.TrimPrefix(u.Path, "/")):
		return false, fmt.Sprintf("%s names boot file %q, which is none of ours", o.Server, o.File), change
	}
	return true, "", ""
}
