package pxe

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
)

// ProbeKind is a kind of firmware that a probe of other servers imitates.
type ProbeKind struct {
	Name   string // bios, uefi, uefi-http, uefi-arm64, ipxe
	Class  string // option 60
	Arch   uint16 // option 93
	IsIPXE bool
}

// ProbeKinds returns the kinds in the order in which they are shown.
func ProbeKinds() []ProbeKind {
	return []ProbeKind{
		{Name: "bios", Class: "PXEClient:Arch:00000:UNDI:002001"},
		{Name: "uefi", Class: "PXEClient:Arch:00007:UNDI:003000", Arch: 7},
		{Name: "uefi-http", Class: "HTTPClient:Arch:00016:UNDI:003000", Arch: 16},
		{Name: "uefi-arm64", Class: "PXEClient:Arch:00011:UNDI:003000", Arch: 11},
		{Name: "ipxe", Class: "PXEClient:Arch:00007:UNDI:003010", Arch: 7, IsIPXE: true},
	}
}

// ProbeOffer is what a server offered to a kind of firmware.
type ProbeOffer struct {
	Kind        string     `json:"kind"`
	Server      netip.Addr `json:"server"`           // over IPv6 its link-local address
	Address     netip.Addr `json:"address,omitzero"` // absent from a ProxyDHCP server
	Next        netip.Addr `json:"next,omitzero"`    // next-server (siaddr)
	File        string     `json:"file,omitempty"`   // over IPv6 a URL
	Class       string     `json:"class,omitempty"`  // option 60; over IPv6 the vendor class of enterprise 343
	PXE         []byte     `json:"-"`                // option 43
	NoProxyWait bool       `json:"noProxyWait"`      // option 175.176: iPXE then takes no ProxyDHCP offer
}

// Same reports whether two offers differ in nothing but the address.
func (o *ProbeOffer) Same(p *ProbeOffer) bool {
	return o.Kind == p.Kind && o.Server == p.Server && o.Next == p.Next && o.File == p.File && o.Class == p.Class &&
		o.NoProxyWait == p.NoProxyWait && slices.Equal(o.PXE, p.PXE)
}

// skipsDiscovery reports whether option 43 says to use the boot file as it is named.
func (o *ProbeOffer) skipsDiscovery() bool {
	for b := o.PXE; len(b) >= 2 && b[0] != 0xff && len(b) >= 2+int(b[1]); b = b[2+int(b[1]):] {
		if b[0] == 6 && b[1] == 1 {
			return b[2]&8 != 0
		}
	}
	return false
}

// ProbeLine is the result of a probe for one kind of machine.
type ProbeLine struct {
	Kind    string       `json:"kind"`
	LeadsTo string       `json:"leadsTo" enum:"us,elsewhere,nowhere" doc:"Where machines of this kind end up"`
	Detail  string       `json:"detail"`
	Hint    string       `json:"hint,omitempty"`
	Offers  []ProbeOffer `json:"offers,omitempty"`
}

// The ends that machines of a kind come to.
const (
	LeadsToUs    = "us"
	LeadsAway    = "elsewhere"
	LeadsNowhere = "nowhere"
)

// ProbeSubject is the network of a probe.
type ProbeSubject struct {
	Subnet inventory.Subnet
	Us     []netip.Addr // our addresses there
	Base   string       // our boot door
	Asked  netip.Addr   // the only server that was asked, as its relay agent; invalid: all were
}

// JudgeProbe returns for each kind of firmware whether the offers send it to us, and what to change if they do not. Our
// own answers are not among the offers: the subnet's mode shows what we add.
func JudgeProbe(p ProbeSubject, offers []ProbeOffer) (lines []ProbeLine) {
	kinds, judge := ProbeKinds(), judge
	if p.Subnet.Is6() {
		kinds, judge = ProbeKinds6(), judge6
	}
	for _, k := range kinds {
		line := ProbeLine{Kind: k.Name, Offers: []ProbeOffer{}}
		for _, o := range offers {
			if o.Kind == k.Name {
				line.Offers = append(line.Offers, o)
			}
		}
		line.LeadsTo, line.Detail, line.Hint = judge(p, k, line.Offers)
		lines = append(lines, line)
	}
	return lines
}

// judge decides for one kind.
func judge(p ProbeSubject, k ProbeKind, offers []ProbeOffer) (to, detail, hint string) {
	var gives, boots []ProbeOffer
	for _, o := range offers {
		if o.Address.IsValid() {
			gives = append(gives, o)
		}
		if o.File != "" || o.Class == "PXEClient" {
			boots = append(boots, o)
		}
	}
	if len(offers) == 0 && p.Asked.IsValid() {
		return LeadsNowhere, p.Asked.String() + " does not answer us as a relay agent", "see that it serves " + p.Subnet.CIDR.String() + ", has a route back to us, and that UDP 67 passes both ways"
	}
	switch p.Subnet.Mode {
	case inventory.ModeFull:
		if len(offers) == 0 {
			return LeadsToUs, "no other server answers; ours does", ""
		}
		return judgeRival(p, gives, boots, offers)
	case inventory.ModeProxy:
		return judgeProxy(p, k, gives, boots)
	}
	if len(gives) == 0 {
		return LeadsNowhere, "nobody gives it an address", "start the network's DHCP server, or let ours serve: slipway subnet update " + p.Subnet.Name + " --mode full"
	}
	return judgeForeign(p, k, gives)
}

// judgeRival judges a network that is ours and has another server.
func judgeRival(p ProbeSubject, gives, boots, offers []ProbeOffer) (to, detail, hint string) {
	who := servers(offers)
	switch {
	case len(boots) > 0:
		return LeadsAway, who + " answers here too and names a boot file: machines boot from whoever is faster, or ranks higher", "switch it off, or: slipway subnet update " + p.Subnet.Name + " --mode proxy"
	case len(gives) > 0:
		return LeadsAway, who + " gives addresses here too: a machine that takes its offer boots nothing", "switch it off, or: slipway subnet update " + p.Subnet.Name + " --mode proxy"
	}
	return LeadsToUs, who + " answers too, and offers nothing", ""
}

// judgeProxy judges a network where another server gives addresses and we say what to boot.
func judgeProxy(p ProbeSubject, k ProbeKind, gives, boots []ProbeOffer) (to, detail, hint string) {
	if len(gives) == 0 {
		return LeadsNowhere, "nobody gives it an address, and in mode proxy we do not", "start the network's DHCP server, or: slipway subnet update " + p.Subnet.Name + " --mode full"
	}
	for _, o := range gives {
		if k.IsIPXE && o.NoProxyWait {
			return LeadsAway, o.Server.String() + " tells iPXE to take no proxy's offer (option 175.176)", "take option 175 out of its configuration"
		}
	}
	for _, o := range boots {
		if leads, _ := leadsToUs(p, k, o); leads {
			continue
		}
		if o.skipsDiscovery() || k.IsIPXE || strings.HasPrefix(k.Class, "HTTPClient") {
			return LeadsAway, fmt.Sprintf("%s names a boot file of its own, %q: it may win over ours", o.Server, o.File), "take the boot file (option 67, file name, next-server) out of its configuration"
		}
		return LeadsToUs, fmt.Sprintf("%s gives the address and names %q as well; our offer ranks higher in UEFI, BIOS ROMs differ", o.Server, o.File), "take the boot file out of its configuration"
	}
	return LeadsToUs, servers(gives) + " gives the address, and we what to boot", ""
}

// judgeForeign judges a network where we are silent: anyone who gives an address has to send the machine to us.
func judgeForeign(p ProbeSubject, k ProbeKind, gives []ProbeOffer) (to, detail, hint string) {
	change := "configure it with: slipway subnet snippet " + p.Subnet.Name + " --for dnsmasq|kea|dhcpd|mikrotik|windows"
	for _, o := range gives {
		if leads, why := leadsToUs(p, k, o); !leads {
			if o.File == "" { // dnsmasq names itself as next-server even so
				return LeadsNowhere, why, change
			}
			return LeadsAway, why, change
		}
	}
	return LeadsToUs, servers(gives) + " sends it here", ""
}

// leadsToUs reports whether an offer makes machines of a kind boot from us, and why not.
func leadsToUs(p ProbeSubject, k ProbeKind, o ProbeOffer) (is bool, why string) {
	isHTTP := strings.HasPrefix(k.Class, "HTTPClient")
	switch {
	case o.File == "":
		return false, fmt.Sprintf("%s gives an address and names no boot file", o.Server)
	case k.IsIPXE && !strings.Contains(o.File, "://"):
		return false, fmt.Sprintf("%s gives iPXE the loader %q again, and not the script: it loads itself for ever", o.Server, o.File)
	case k.IsIPXE && strings.HasPrefix(o.File, p.Base+"/"):
		return true, ""
	case isHTTP && o.Class != "HTTPClient":
		return false, fmt.Sprintf("%s leaves out option 60=HTTPClient: firmware ignores its offer", o.Server)
	case isHTTP && strings.HasPrefix(o.File, p.Base+"/"):
		return true, ""
	case k.IsIPXE || isHTTP:
		return false, fmt.Sprintf("%s sends it to %s", o.Server, o.File)
	case o.Class == "PXEClient" && !o.skipsDiscovery():
		return false, fmt.Sprintf("%s sends option 60=PXEClient without 43.6=8: UEFI drops the boot file and asks port 4011 of %s", o.Server, o.Server)
	case !o.Next.IsValid():
		return false, fmt.Sprintf("%s names boot file %q and no next-server: machines ask %s for it", o.Server, o.File, o.Server)
	case !slices.Contains(p.Us, o.Next):
		return false, fmt.Sprintf("%s sends it to %s for %q, and we are %s", o.Server, o.Next, o.File, addrsText(p.Us))
	case !IsLoader(o.File):
		return false, fmt.Sprintf("%s names boot file %q, which is none of ours", o.Server, o.File)
	}
	return true, ""
}

func addrsText(all []netip.Addr) string {
	var out []string
	for _, a := range all {
		out = append(out, a.String())
	}
	return strings.Join(out, ", ")
}

// servers names the servers of offers.
func servers(offers []ProbeOffer) string {
	var all []netip.Addr
	for _, o := range offers {
		if !slices.Contains(all, o.Server) {
			all = append(all, o.Server)
		}
	}
	return addrsText(all)
}
