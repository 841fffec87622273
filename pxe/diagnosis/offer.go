package diagnosis

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/trace"
)

// offerRules are about offers that machines do not take, and what another server does to them.
func offerRules() []Rule {
	return []Rule{
		{"other-server-won", "the machine took the offer of another DHCP server", "stop the other server on this network, or let this one serve in proxy mode: slipway subnet update SUBNET --mode proxy", otherServerWon},
		{"other-boot-server", "another server on this network offers boot files, too, and firmware may prefer its offer", "stop the boot options (or the proxy) of the other server", otherBootServer},
		{"offer-without-control", "the offer says PXEClient (option 60) without discovery control (option 43.6): firmware throws its boot file away and asks port 4011 instead", "take option 60 out of the other server's answers, or add option 43 with 06 01 08 ff", offerWithoutControl},
		{"proxy-ignored", "this firmware ignores offers of a proxy: it took the other server's address, and did not ask port 4011", "set the subnet's mode to off and let the other server name the boot files (slipway subnet snippet SUBNET), or boot it over UEFI HTTP", proxyIgnored},
		{"pxe-port-closed", "the machine asks port 4011, and nobody answers there", "let UDP 4011 to this server through every firewall; in proxy mode this server must be the one that it asks", pxePortClosed},
		{"proxy-without-server", "the proxy's offer names no server (siaddr is 0), so iPXE does not use it and gets no answer from port 4011", "have the proxy name its own address as next server", proxyWithoutServer},
		{"proxy-wait-off", "the other DHCP server sends iPXE option 175.176 (no proxy DHCP), which makes iPXE ignore our proxy offer", "take option 175.176 out of the other server's answers", proxyWaitOff},
		{"httpclient-missing", "the offer to an HTTP boot client does not say HTTPClient (option 60), so the firmware ignores it", "have the server that gives the boot file send option 60 HTTPClient with it", httpClientMissing},
		{"offer-too-long", "our answer is longer than the machine can take", "give the subnet fewer DNS servers and routes, or the host a shorter name", offerTooLong},
		{"no-way-back", "our answers do not come back to it through its relay", "see that this server has a route to the relay's address, and that no firewall between drops UDP 67", noWayBack},
		{"offer-lost", "our offers do not reach it, or it does not take them", "check for DHCP snooping on its switch port (trust the port of this server), and for a VLAN that differs between the two ways", offerLost},
		{"forbidden", "a firewall or router refuses to pass packets on, and reports it", "let DHCP (UDP 67), TFTP (UDP 69 and from 1024 on) and the boot port pass there", forbidden},
	}
}

func otherServerWon(s *story) finding {
	if s.mode() == inventory.ModeProxy || len(s.acks) > 0 {
		return finding{}
	}
	theirs := filter(s.requests, func(p trace.Packet) bool { return p.DHCP.Server.IsValid() && !s.isOurs(p.DHCP.Server) })
	if len(theirs) == 0 {
		return finding{}
	}
	who := theirs[0].DHCP.Server
	return finding{
		weight: strong, sentence: fmt.Sprintf("the machine took the address of another DHCP server, %s, instead of ours", who),
		hint:     fmt.Sprintf("stop the DHCP server %s on this network, or let this one serve in proxy mode: slipway subnet update %s --mode proxy", who, s.subnetName()),
		evidence: join(seen(s.offers...), seen(s.foreign...), seen(theirs...)),
	}
}

func otherBootServer(s *story) finding {
	theirs := filter(s.foreign, func(p trace.Packet) bool {
		return p.DHCP.File != "" || p.DHCP.HasControl || p.DHCP.HasMenu || p.DHCP.Class != ""
	})
	if len(theirs) == 0 || s.hasAskedScript() {
		return finding{}
	}
	w := likely
	if slices.ContainsFunc(theirs, func(p trace.Packet) bool { return p.DHCP.HasControl || p.DHCP.HasMenu }) {
		w = strong // EDK2 ranks them before a plain offer
	}
	return finding{weight: w, sentence: fmt.Sprintf("another server, %s, offers boot files, too, and firmware may prefer its offer", theirs[0].DHCP.Server), evidence: seen(theirs...)}
}

func offerWithoutControl(s *story) finding {
	bad := filter(slices.Concat(s.offers, s.foreign), func(p trace.Packet) bool {
		m := p.DHCP
		return m.Class == "PXEClient" && !m.HasControl && !m.HasMenu && m.Yours.IsValid()
	})
	if len(bad) == 0 || len(s.asks) == 0 || s.client.Stage == pxe.StageIPXE || len(s.reads) > 0 {
		return finding{}
	}
	return finding{weight: certain, evidence: join(seen(bad...), seen(s.asks...))}
}

func proxyIgnored(s *story) finding {
	ours := filter(s.offers, func(p trace.Packet) bool { return p.DHCP.Class == "PXEClient" && !p.DHCP.Yours.IsValid() })
	if len(ours) == 0 || len(s.asks) > 0 || len(s.reads) > 0 || len(s.gets) > 0 || len(s.requests) == 0 || !s.quiet(10*time.Second) || s.stage != pxe.StageFirmware {
		return finding{}
	}
	return finding{weight: strong, evidence: join(seen(ours...), seen(s.requests...), seen(s.otherAcks...))}
}

func pxePortClosed(s *story) finding {
	refused := filter(s.unreachable, func(p trace.Packet) bool { return p.ICMP.Dst.Port() == 4011 })
	if len(s.asks) < 2 && len(refused) == 0 || len(s.told4011) > 0 || len(s.reads) > 0 {
		return finding{}
	}
	w := likely
	if len(refused) > 0 {
		w = strong
	}
	return finding{weight: w, sentence: fmt.Sprintf("the machine asks port 4011 of %s, and nobody answers there", s.asks[0].Dst.Addr()), evidence: join(seen(s.asks...), seen(refused...))}
}

func proxyWithoutServer(s *story) finding {
	bad := filter(slices.Concat(s.offers, s.foreign), func(p trace.Packet) bool {
		m := p.DHCP
		return m.Class == "PXEClient" && !m.Yours.IsValid() && !m.Next.IsValid() && !m.HasMenu
	})
	if len(bad) == 0 || len(s.asks) < 2 || s.stage != pxe.StageIPXE || len(s.gets) > 0 {
		return finding{}
	}
	return finding{weight: certain, evidence: join(seen(bad...), seen(s.asks...))}
}

func proxyWaitOff(s *story) finding {
	theirs := filter(s.foreign, func(p trace.Packet) bool { return p.DHCP.HasNoProxy })
	if s.mode() != inventory.ModeProxy || len(theirs) == 0 || s.stage != pxe.StageIPXE || s.hasAskedScript() {
		return finding{}
	}
	return finding{weight: certain, evidence: seen(theirs...)}
}

func httpClientMissing(s *story) finding {
	if !s.client.IsHTTP() || len(s.gets) > 0 || len(s.syns) > 0 {
		return finding{}
	}
	bad := filter(slices.Concat(s.offers, s.foreign), func(p trace.Packet) bool { return p.DHCP.File != "" && p.DHCP.Class != "HTTPClient" })
	good := slices.ContainsFunc(slices.Concat(s.offers, s.foreign), func(p trace.Packet) bool { return p.DHCP.File != "" && p.DHCP.Class == "HTTPClient" })
	if len(bad) == 0 || good {
		return finding{}
	}
	return finding{weight: strong, evidence: seen(bad...)}
}

func offerTooLong(s *story) finding {
	limit := 576 // RFC 2131 section 2
	for _, p := range s.discovers {
		limit = max(limit, p.DHCP.MaxSize)
	}
	long := filter(s.offers, func(p trace.Packet) bool { return p.DHCP.Size > limit })
	if len(long) == 0 || len(s.requests) > 0 || len(s.discovers) < 2 {
		return finding{}
	}
	return finding{weight: strong, sentence: fmt.Sprintf("our answer has %d bytes, and the machine takes %d", long[0].DHCP.Size, limit), evidence: seen(long...)}
}

func noWayBack(s *story) finding {
	p, isRelayed := s.relay()
	if !isRelayed || !s.isDeaf() {
		return finding{}
	}
	lost := filter(s.unreachable, func(u trace.Packet) bool { return u.ICMP.Dst.Addr() == p.DHCP.Relay })
	return finding{weight: strong, sentence: fmt.Sprintf("our answers do not come back to it through its relay %s", p.DHCP.Relay), evidence: join(seen(s.discovers...), seen(s.offers...), seen(lost...))}
}

func offerLost(s *story) finding {
	_, isRelayed := s.relay()
	isProxyOnly := !slices.ContainsFunc(s.offers, func(p trace.Packet) bool { return p.DHCP.Yours.IsValid() })
	if isRelayed || !s.isDeaf() || isProxyOnly {
		return finding{}
	}
	return finding{weight: likely, evidence: join(seen(s.discovers...), seen(s.offers...))}
}

// prohibited are the ICMP codes of a router that its rules keep from passing a packet on (RFC 1122 section 3.2.2.1, RFC 1812
// section 5.2.7.1).
var prohibited = []uint8{9, 10, 13}

func forbidden(s *story) finding {
	bad := filter(s.unreachable, func(p trace.Packet) bool { return slices.Contains(prohibited, p.ICMP.Code) })
	if len(bad) == 0 {
		return finding{}
	}
	return finding{weight: strong, sentence: fmt.Sprintf("a firewall or router, %s, refuses to pass packets for %s on", bad[0].Src.Addr(), bad[0].ICMP.Dst), evidence: seen(bad...)}
}

// fetchRules are about machines that have an address and do not ask for their boot file here.
func fetchRules() []Rule {
	return []Rule{
		{"no-boot-file", "the answer that it took names no boot file", "see what it would boot and why: slipway host explain HOST; in proxy mode our offer came too late or not at all", noBootFile},
		{"other-next-server", "the machine asks another server for its files, because that server's answer named itself as next server", "take next-server and filename out of the other DHCP server's answers; scripts must hold whole URLs", otherNextServer},
		{"file-garbled", "the machine asks for its boot file by another name than it was given: its firmware cuts the name, or adds to it", "update its firmware, give it a shorter name, or let it boot over UEFI HTTP", fileGarbled},
		{"no-fetch", "the machine has an address and a boot file, and does not fetch it", "see that its answer's server address can be reached from its subnet, and that no firewall drops TFTP (UDP 69) or HTTP", noFetch},
		{"name-in-url", "the URL that it should boot holds a name, and it was given no DNS server", "use an address in the URL, or give the subnet a DNS server", nameInURL},
		{"shim-garbled", "shim used the text of its firmware boot entry as the file name of the second boot loader", "shim 15.8 does this on some Dell and Wyse machines. Slipway sent the second boot loader anyway, but shim stopped. Put another release of shim into a folder of --loaders, let it boot over UEFI HTTP, or switch Secure Boot off", shimGarbled},
		{"file-unknown", "the machine asks for a file that is not here", "see where the name comes from: another DHCP server's option 67, or an old setting in its firmware", fileUnknown},
	}
}

func noBootFile(s *story) finding {
	p, ok := s.grant()
	isMeant := s.Decision.Boot == pxe.BootDisk || s.Decision.Boot == pxe.BootIgnore // firmware without a boot file goes on to the disk
	if !ok || isMeant || p.DHCP.File != "" || len(s.asks) > 0 || len(s.reads) > 0 || len(s.gets) > 0 || !s.quiet(5*time.Second) || s.stage == "" || s.stage == pxe.StageOS {
		return finding{}
	}
	if slices.ContainsFunc(s.offers, func(o trace.Packet) bool { return !o.DHCP.Yours.IsValid() }) {
		return finding{} // a proxy offer of ours names one, if need be on port 4011
	}
	w := likely
	if s.Decision.Boot == pxe.BootImage || s.Decision.Boot == pxe.BootAgent {
		w = strong
	}
	return finding{weight: w, evidence: seen(p)}
}

func otherNextServer(s *story) finding {
	theirs := filter(s.beforeSystem(), func(p trace.Packet) bool {
		isAsk := p.TFTP != nil && p.TFTP.Op == trace.RRQ || p.TCP != nil && p.TCP.IsSYN && !p.TCP.IsACK && (p.Dst.Port() == 80 || int(p.Dst.Port()) == s.BootPort)
		return isAsk && p.Dst.Addr().IsValid() && !s.isOurs(p.Dst.Addr()) && !s.isOurs(p.Src.Addr())
	})
	if len(theirs) == 0 {
		return finding{}
	}
	return finding{weight: certain, sentence: fmt.Sprintf("the machine asks %s for its files, which is not this server", theirs[0].Dst.Addr()), evidence: join(seen(s.foreign...), seen(theirs...))}
}

// fileGarbled knows firmware that reads the name over its end, or cuts it: one name is then the beginning of the other.
func fileGarbled(s *story) finding {
	p, ok := s.grant()
	if !ok || p.DHCP.File == "" || strings.Contains(p.DHCP.File, "://") {
		return finding{}
	}
	given := p.DHCP.File
	for _, r := range s.reads {
		name := r.TFTP.Name
		isLonger := strings.HasPrefix(name, given) && len(name) > len(given)
		isShorter := strings.HasPrefix(given, name) && len(name) < len(given) && name != ""
		if (isLonger || isShorter) && !pxe.IsLoader(name) {
			return finding{weight: strong, sentence: fmt.Sprintf("the machine was given the boot file %q and asks for %q: its firmware cuts the name, or adds to it", given, name), evidence: seen(p, r)}
		}
	}
	return finding{}
}

func noFetch(s *story) finding {
	p, ok := s.grant()
	if !ok || !s.isOurs(p.DHCP.Server) || p.DHCP.File == "" || len(since(s.asks, p.At)) > 0 || len(since(s.reads, p.At)) > 0 || len(since(s.syns, p.At)) > 0 || len(since(s.gets, p.At)) > 0 || s.Now.Sub(p.At) < 20*time.Second || s.stage != pxe.StageFirmware {
		return finding{}
	}
	f := finding{weight: likely, evidence: seen(p)}
	if p.DHCP.Next.IsValid() && !s.isOurs(p.DHCP.Next) {
		f.weight, f.sentence = certain, fmt.Sprintf("its answer names as server of the boot file %s, which is not this server", p.DHCP.Next)
	}
	return f
}

func nameInURL(s *story) finding {
	p, ok := s.grant()
	if !ok || p.DHCP.HasDNS || len(s.syns) > 0 || !hasName(p.DHCP.File) {
		return finding{}
	}
	return finding{weight: certain, evidence: seen(p)}
}

// shimGarbled knows shim 15.8, which takes what its firmware hands over (the text of the boot entry) for the name of its second
// stage.
func shimGarbled(s *story) finding {
	i := slices.IndexFunc(s.reads, func(p trace.Packet) bool { return isShim(p.TFTP.Name) })
	if i < 0 {
		return finding{}
	}
	odd := filter(s.reads[i+1:], func(p trace.Packet) bool {
		name := strings.TrimLeft(p.TFTP.Name, "/")
		return s.isOurs(p.Dst.Addr()) && !pxe.IsAutoexec(name) && !pxe.IsLoader(name) && !pxe.IsBootFile(name) && !pxe.IsProbe(name)
	})
	if len(odd) == 0 || slices.ContainsFunc(s.reads[i+1:], func(p trace.Packet) bool { return isLoaderFile(p.TFTP.Name) && !isShim(p.TFTP.Name) }) {
		return finding{}
	}
	return finding{
		weight: certain, evidence: seen(s.reads[i], odd[0]),
		sentence: fmt.Sprintf("shim asks for %q instead of the second boot loader: it used the text of its boot entry as the file name", odd[0].TFTP.Name),
	}
}

func fileUnknown(s *story) finding {
	refused := filter(s.tftp, func(p trace.Packet) bool {
		return p.TFTP.Op == trace.Error && p.TFTP.Code == 1 && s.isOurs(p.Src.Addr())
	})
	if len(refused) == 0 || len(s.reads) == 0 {
		return finding{}
	}
	i := slices.IndexFunc(s.reads, func(p trace.Packet) bool {
		return p.Src == refused[0].Dst && !pxe.IsAutoexec(p.TFTP.Name)
	})
	if i < 0 {
		return finding{} // iPXE's question for autoexec.ipxe has its answer elsewhere
	}
	name := s.reads[i].TFTP.Name
	f := finding{weight: strong, sentence: fmt.Sprintf("the machine asks for the file %s, which is not here", name), evidence: join(seen(s.reads[i]), seen(refused[0]))}
	if pxe.IsLoader(name) {
		f.hint = "the loader is missing: install Debian's package ipxe, or put " + name + " into a folder named with --loaders"
	}
	return f
}
