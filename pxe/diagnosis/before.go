package diagnosis

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/lease"
	"slipway.dev/slipway/pxe/trace"
)

// decisionRules are about what was decided here: nothing on the wire is at fault.
func decisionRules() []Rule {
	return []Rule{
		{"boot-refused", "this server refuses its boot", "do what the reason says; the machine asks again by itself", bootRefused},
		{"not-accepted", "the host is not accepted, so nothing is booted on it", "accept it: slipway host accept HOST", notAccepted},
		{"parked", "the host is quarantined: until somebody releases it, it boots only a screen with the reason", "repair the reason, then: slipway host release HOST", parked},
		{"sent-to-disk", "Slipway sends this host to its own disk", "see the reason: slipway host explain HOST. To install it: slipway host install HOST", sentToDisk},
		{"no-architecture", "the machine does not say what architecture it is, so it gets no boot loader", "give its subnet or host a quirk that names a loader, or update its firmware", noArchitecture},
		{"unknown-architecture", "there is no boot loader for this kind of machine", "let it boot from its own disk, or put a loader for it into a folder named with --loaders", unknownArchitecture},
	}
}

func bootRefused(s *story) finding {
	if !s.Decision.IsTrap {
		return finding{}
	}
	return finding{weight: certain, sentence: s.Decision.Reason, hint: s.Decision.Hint, evidence: said("decided: %s", s.Decision.Reason)}
}

func notAccepted(s *story) finding {
	if s.Host == nil || s.Host.State != inventory.Discovered || s.Decision.Boot == pxe.BootImage || s.Decision.Boot == pxe.BootAgent || s.Decision.IsTrap {
		return finding{}
	}
	w := strong
	if !s.hasAskedScript() { // it has not come so far that it could matter
		w = possible
	}
	return finding{weight: w, hint: "accept it: slipway host accept " + s.Host.Name, evidence: said("%s is %s", s.Host.Name, s.Host.State)}
}

func parked(s *story) finding {
	if s.Decision.Boot != pxe.BootPark {
		return finding{}
	}
	f := finding{weight: certain, sentence: s.Decision.Reason, hint: s.Decision.Hint, evidence: said("decided: %s", s.Decision.Reason)}
	if s.Host == nil {
		return f
	}
	for _, i := range s.Issues { // anyone who recorded the reason also recorded what to do
		if i.Hint != "" && i.Cause != "" && inventory.Clean(i.Cause, 500) == s.Host.StateReason {
			f.hint = i.Hint
			f.evidence = append(f.evidence, Evidence{At: i.OpenedAt, Text: "issue " + i.Type + ": " + i.Cause})
		}
	}
	if !strings.Contains(f.hint, "host release") && f.hint != "" {
		f.hint += "; then: slipway host release " + s.Host.Name
	}
	return f
}

func sentToDisk(s *story) finding {
	if s.Decision.Boot != pxe.BootDisk && s.Decision.Boot != pxe.BootIgnore || s.Decision.IsTrap || s.Host == nil || s.Host.State == inventory.Discovered || len(s.boot) == 0 {
		return finding{}
	}
	return finding{weight: possible, evidence: said("decided: %s: %s", s.Decision.Boot, s.Decision.Reason)}
}

func noArchitecture(s *story) finding {
	asked := filter(s.discovers, func(p trace.Packet) bool {
		return p.DHCP.Client.Stage == pxe.StageFirmware && !p.DHCP.Client.ArchCode.IsTold() && p.DHCP.Client.Arch == ""
	})
	if len(asked) == 0 {
		return finding{}
	}
	return finding{weight: strong, evidence: seen(asked...)}
}

func unknownArchitecture(s *story) finding {
	asked := filter(s.discovers, func(p trace.Packet) bool {
		c := p.DHCP.Client
		return c.Stage == pxe.StageFirmware && c.ArchCode.IsTold() && (c.Firmware == "" || c.Arch == "")
	})
	if len(asked) == 0 || slices.ContainsFunc(s.offers, func(p trace.Packet) bool { return p.DHCP.File != "" }) {
		return finding{}
	}
	return finding{weight: strong, sentence: fmt.Sprintf("there is no boot loader for this kind of machine (option 93 is %s)", asked[0].DHCP.Client.ArchCode), evidence: seen(asked...)}
}

// silenceRules are about machines of which nothing, or too little, is heard.
func silenceRules() []Rule {
	return []Rule{
		{"no-packet", "the machine has sent nothing since it was switched on", "check that network boot is on for this port and first in its boot order, and that its link is up. Its switch port must be in the VLAN of a served subnet, and a router between needs a relay to this server", noPacket},
		{"other-port", "the machine boots from another of its network ports", "cable that port, or make it the boot port: add its MAC to the host (slipway host set HOST)", otherPort},
		{"disk-first", "an operating system came up instead of a network boot", "put the network before the disk in its firmware's boot order, or give it a controller that can choose the boot device", diskFirst},
		{"only-ipv6", "its firmware boots over IPv6 only, and nobody answers its DHCPv6", "switch on PXE over IPv4 in its firmware, or serve an IPv6 subnet there", onlySix},
		{"six-no-url", "DHCPv6 answers it, and names no boot file", "have the DHCPv6 server send option 59 (boot file URL), or serve the IPv6 subnet from here", sixNoURL},
		{"six-refused", "DHCPv6 refuses it an address", "see its timeline and this server's log: slipway host events HOST", sixRefused},
		{"six-not-taken", "the machine does not take the address that DHCPv6 offers it", "see which DHCPv6 servers answer there (slipway subnet probe), and that its switch port passes our answers on", sixNotTaken},
		{"slow-port", "its first packets were lost: the switch port was not forwarding yet when the firmware asked", "set the switch port to edge (portfast), and LACP to fall back to single links; firmware gives up after a minute", slowPort},
		{"packets-dropped", "this server dropped its packets unanswered", "read the counter slipway_dhcp_drops_total, which has them by reason", packetsDropped},
		{"not-supported", "the machine speaks a kind of DHCP that is not supported here", "boot it over an Ethernet port, with firmware that speaks DHCP (PXE or UEFI)", notSupported},
		{"packets-malformed", "its DHCP packets are broken, and were dropped", "update the firmware of its network card, or of the relay between", packetsMalformed},
	}
}

// powerOnWithin is when firmware has asked for an address after it was switched on: large servers test themselves for
// minutes.
const powerOnWithin = 3 * time.Minute

func noPacket(s *story) finding {
	if s.Host == nil && len(s.Packets) == 0 && len(s.Notes) == 0 {
		return finding{weight: strong, sentence: "the machine has sent nothing", evidence: said("no packet of it is in the record")}
	}
	if s.PowerOnAt.IsZero() || s.Now.Sub(s.PowerOnAt) < powerOnWithin || s.last.After(s.PowerOnAt) || len(s.OtherPorts) > 0 {
		return finding{}
	}
	e := []Evidence{{At: s.PowerOnAt, Text: "switched on"}}
	if !s.last.IsZero() {
		e = append(e, Evidence{At: s.last, Text: "the last packet of it came before that"})
	}
	return finding{weight: strong, evidence: join(e)}
}

func otherPort(s *story) finding {
	later := slices.DeleteFunc(slices.Clone(s.OtherPorts), func(p Port) bool {
		return p.LastAt.Before(s.PowerOnAt) || !s.last.IsZero() && !p.LastAt.After(s.last.Add(2*time.Second))
	})
	if len(later) == 0 || !s.WantsNetboot {
		return finding{}
	}
	return finding{weight: likely, sentence: fmt.Sprintf("the machine boots from another of its network ports, %s", later[0].MAC), evidence: []Evidence{{At: later[0].LastAt, Text: "a packet of " + string(later[0].MAC)}}}
}

func diskFirst(s *story) finding {
	systems := since(s.systems, s.PowerOnAt)
	if !s.WantsNetboot || len(systems) == 0 || len(since(s.discovers, s.PowerOnAt)) > 0 || len(s.gets) > 0 {
		return finding{}
	}
	return finding{weight: strong, evidence: seen(systems...)}
}

func onlySix(s *story) finding {
	if len(s.solicits) < 2 || len(s.sixAnswers) > 0 || len(s.discovers) > 0 {
		return finding{}
	}
	w := strong
	if len(s.Notes) > 0 { // which say more
		w = likely
	}
	return finding{weight: w, evidence: seen(s.solicits...)}
}

func sixNoURL(s *story) finding {
	if len(s.solicits) == 0 || len(s.sixAnswers) == 0 || len(s.discovers) > 0 || slices.ContainsFunc(s.sixAnswers, func(p trace.Packet) bool { return p.Six.URL != "" }) {
		return finding{}
	}
	return finding{weight: strong, evidence: join(seen(s.solicits...), seen(s.sixAnswers...))}
}

// sixHints are what to do about a status of DHCPv6.
var sixHints = map[string]string{
	"NoAddrsAvail": "add a range, or free addresses of machines that are gone: slipway range add SUBNET FIRST-LAST",
	"NoBinding":    "it prolongs an address that this server did not give: switch it off and on, so that it asks again",
	"NotOnLink":    "it asks for an address of another network: switch it off and on, and check the VLAN of its port",
	"UseMulticast": "its firmware writes to one server alone, which no server here has allowed: update it",
}

// sixRefused is for servers that answer, and give no address (RFC 8415 section 18.3).
func sixRefused(s *story) finding {
	refused := filter(s.sixAnswers, func(p trace.Packet) bool { return p.Six.Status != 0 })
	if len(refused) == 0 || slices.ContainsFunc(since(s.sixAnswers, final(refused).At), func(p trace.Packet) bool { return p.Six.HasAddress }) {
		return finding{}
	}
	p := final(refused)
	f := finding{weight: strong, hint: sixHints[p.Six.StatusName()], evidence: join(seen(s.solicits...), seen(refused...))}
	who := "the DHCPv6 server " + p.Src.Addr().String()
	if s.isOurs(p.Src.Addr()) {
		f.weight, who = certain, "our DHCPv6"
	} else if p.Six.Status == 2 {
		f.hint = "check the ranges of that server, or serve the IPv6 subnet from here"
	}
	f.sentence = fmt.Sprintf("%s refuses it an address: %s", who, p.Six.StatusName())
	if p.Six.StatusText != "" {
		f.sentence += ", " + p.Six.StatusText
	}
	return f
}

// sixNotTaken is for machines that go on soliciting after they were offered an address.
func sixNotTaken(s *story) finding {
	offered := slices.IndexFunc(s.sixAnswers, func(p trace.Packet) bool { return p.Six.Type == 2 && p.Six.HasAddress })
	isTaken := slices.ContainsFunc(s.solicits, func(p trace.Packet) bool { return p.Six.Type == 3 })
	if offered < 0 || isTaken || len(since(s.solicits, s.sixAnswers[offered].At)) == 0 {
		return finding{}
	}
	return finding{weight: likely, evidence: join(seen(s.solicits...), seen(s.sixAnswers[offered:]...))}
}

// slowPort knows from "secs" of the first packet that came (RFC 2131 section 2): EDK2 counts true seconds, iPXE does not.
func slowPort(s *story) finding {
	if len(s.discovers) == 0 {
		return finding{}
	}
	first := s.discovers[0]
	if first.DHCP.Client.Stage != pxe.StageFirmware || first.DHCP.Secs < 4 || first.DHCP.Secs > 120 {
		return finding{}
	}
	w := slow
	if hasAddress := len(s.acks)+len(s.otherAcks) > 0; !hasAddress && (first.DHCP.Secs >= 12 || s.quiet(20*time.Second)) {
		w = likely
	}
	return finding{
		weight: w, evidence: seen(first),
		sentence: fmt.Sprintf("its first packets were lost: the first that came was sent %d s after the machine began to ask", first.DHCP.Secs),
	}
}

const droppedText = "a packet was dropped: "

// malformed are the drop reasons that are the packet's own fault.
var malformed = []string{"short", "too-long", "op", "hardware", "hops", "cookie", "options", "type", "chaddr", "giaddr"}

// overload are those that are ours.
var overload = []string{"source-limit", "queue-full", "stale", "probe-full", "boot-full", "store-full"}

func dropped(s *story, isMalformed bool) finding {
	n := map[string]int{}
	var e []Evidence
	for _, d := range s.Notes {
		if slices.Contains(malformed, d.Reason) == isMalformed && (isMalformed || slices.Contains(overload, d.Reason)) {
			n[d.Reason]++
			e = append(e, Evidence{At: d.At, Text: droppedText + d.Reason})
		}
	}
	if len(n) == 0 || len(s.acks) > 0 {
		return finding{}
	}
	return finding{weight: strong, evidence: e}
}

// notSupported knows sound packets that nobody here answers, by the reason's own words.
func notSupported(s *story) finding {
	hints := map[string]string{
		pxe.NoInfiniBand: "boot it from an Ethernet port, or switch its InfiniBand port to Ethernet (VPI cards: mlxconfig set LINK_TYPE_P1=2)",
		pxe.NoBOOTP:      "switch its firmware or boot ROM from BOOTP to DHCP or PXE, or boot it with iPXE from a medium",
		pxe.NoEthernet:   "boot it from an Ethernet port",
	}
	for _, n := range slices.Backward(s.Notes) {
		if hint := hints[n.Reason]; hint != "" && len(s.acks) == 0 {
			return finding{weight: certain, sentence: n.Reason, hint: hint, evidence: []Evidence{{At: n.At, Text: droppedText + n.Reason}}}
		}
	}
	return finding{}
}

func packetsMalformed(s *story) finding { return dropped(s, true) }

func packetsDropped(s *story) finding {
	f := dropped(s, false)
	if f.weight == 0 {
		return f
	}
	switch reason := f.evidence[len(f.evidence)-1].Text[len(droppedText):]; reason {
	case "source-limit":
		f.sentence, f.hint = "the machine sends more packets than one machine may, and they are dropped", "its firmware or a loop in the network repeats packets: look for a loop between switch ports"
	case "store-full":
		f.sentence, f.hint = "leases wait for the disk, so packets are dropped", "check the disk of this server: slow, full, or failing"
	default:
		f.hint = "too many machines boot at once, or this server is too slow; they ask again: slipway_dhcp_drops_total counts reason " + reason
	}
	return f
}

// addressRules are about DISCOVERs that we do not answer.
func addressRules() []Rule {
	return []Rule{
		{"no-subnet", "no subnet is known where it asks, so it gets no address", "add the subnet: slipway subnet create", noSubnet},
		{"relay-unknown", "its relay's address is in no known subnet, so it gets no address", "add the subnet behind that relay: slipway subnet create", relayUnknown},
		{"link-selection", "its relay asks for an address of another network than its own (link selection, option 82.5)", "set the relay's link selection to the network that the machine is in, or add that subnet: slipway subnet create", linkSelection},
		{"subnet-off", "its subnet's mode is off: nothing is answered there", "set another mode, full, reservations or proxy: slipway subnet update SUBNET --mode full", subnetOff},
		{"no-reservation", "its subnet serves reservations only, and it has none", "give it a reservation (slipway reservation create), or set the subnet's mode to full or proxy", noReservation},
		{"no-free-address", "its subnet has no free address left", "add a range: slipway range add SUBNET FIRST-LAST", noFreeAddress},
		{"kept-for-known", "the machine gets no address because its host is not accepted: the free addresses are kept for accepted hosts and reservations", "accept the host (slipway host accept HOST), give its MAC a reservation (slipway reservation create), or add a range (slipway range add SUBNET FIRST-LAST)", keptForKnown},
		{"reserved-taken", "the address that is reserved for it is still in use by another machine", "free the address, or reserve another: slipway reservation list", reservedTaken},
		{"unanswered", "its questions for an address get no answer from here", "see its timeline and this server's log: slipway host events HOST", unanswered},
		{"no-address-server", "nobody gives it an address: in proxy mode another DHCP server has to, and none answers", "start the other DHCP server, or set this subnet's mode to full", noAddressServer},
		{"ack-missing", "the machine took our offer, and got no ACK: this server cannot store leases", "check this server's log and disk: slipway doctor", ackMissing},
		{"nak-repeats", "the machine asks for an address that it may not have, again and again", "delete its lease (slipway lease delete), or let its operating system forget the address", nakRepeats},
		{"address-in-use", "the machine refused the address because another machine uses it", "find the other machine; the address is set aside for now", addressInUse},
	}
}

// notAnswered is what rules find that know a reason of the lease book.
func notAnswered(s *story, reasons ...lease.Reason) finding {
	n, ok := s.why(reasons...)
	if !ok || len(s.acks) > 0 || len(s.offers) > 0 && s.offers[len(s.offers)-1].At.After(n.At) {
		return finding{}
	}
	if slices.ContainsFunc(since(s.sixAnswers, n.At), func(p trace.Packet) bool { return p.Six.HasAddress }) {
		return finding{}
	}
	e := []Evidence{{At: n.At, Text: "not answered: " + n.Reason}}
	return finding{weight: certain, evidence: join(seen(s.discovers...), seen(s.solicits...), e)}
}

func noSubnet(s *story) finding {
	if _, isRelayed := s.relay(); isRelayed {
		return finding{}
	}
	return notAnswered(s, lease.NoSubnet)
}

func relayUnknown(s *story) finding {
	p, isRelayed := s.relay()
	if !isRelayed {
		return finding{}
	}
	f := notAnswered(s, lease.NoSubnet)
	if p.DHCP.Link.IsValid() {
		return finding{} // not the relay's address is looked at
	}
	f.sentence = fmt.Sprintf("its relay's address %s is in no known subnet, so it gets no address", p.DHCP.Relay)
	return f
}

// linkSelection is for relays whose link selection names a network that is not known, or not the one that the machine is
// in: it cannot use the address then.
func linkSelection(s *story) finding {
	p, isRelayed := s.relay()
	if !isRelayed || !p.DHCP.Link.IsValid() {
		return finding{}
	}
	if f := notAnswered(s, lease.NoSubnet); f.weight > 0 {
		f.sentence = fmt.Sprintf("its relay %s asks for an address of %s (link selection), which is in no known subnet", p.DHCP.Relay, p.DHCP.Link)
		return f
	}
	if !s.isDeaf() && len(s.declines) == 0 || s.Subnet == nil || s.Subnet.CIDR.Contains(p.DHCP.Relay) {
		return finding{}
	}
	return finding{
		weight: likely, evidence: join(seen(s.discovers...), seen(s.offers...)),
		sentence: fmt.Sprintf("its relay %s asks for an address of %s (link selection), another network than its own, and the machine does not take it", p.DHCP.Relay, p.DHCP.Link),
	}
}

func subnetOff(s *story) finding { return notAnswered(s, lease.IsOff) }

func noReservation(s *story) finding { return notAnswered(s, lease.NoReservation) }

func noFreeAddress(s *story) finding { return notAnswered(s, lease.Exhausted) }

func keptForKnown(s *story) finding { return notAnswered(s, lease.KeptForKnown, lease.PortFull) }

func reservedTaken(s *story) finding { return notAnswered(s, lease.ReservedTaken) }

// unanswered is for what no other rule knows: nothing of ours came back, and nobody said why.
func unanswered(s *story) finding {
	asked := slices.Concat(s.discovers, s.solicits)
	isAsked := len(asked) >= 2 || len(asked) == 1 && s.quiet(5*time.Second)
	if !isAsked || len(s.offers) > 0 || len(s.acks) > 0 || len(s.sixAnswers) > 0 {
		return finding{}
	}
	f := finding{weight: possible, evidence: seen(asked...)}
	for _, n := range slices.Backward(s.Notes) {
		isTold := slices.Contains(malformed, n.Reason) || slices.Contains(overload, n.Reason) || slices.Contains(answeredElsewhere, lease.Reason(n.Reason))
		if isTold {
			return finding{}
		}
		if strings.HasPrefix(n.Reason, trace.SameXid) {
			continue
		}
		f.weight, f.sentence = strong, "its questions for an address get no answer from here: "+n.Reason
		f.evidence = append(f.evidence, Evidence{At: n.At, Text: "not answered: " + n.Reason})
		return f
	}
	if len(s.discovers) == 0 {
		return finding{} // nobody answers there over IPv6, and that is a rule of its own
	}
	return f
}

// answeredElsewhere are the reasons that have rules of their own, and that of a network on which another instance answers: only its record
// shows what it said.
var answeredElsewhere = []lease.Reason{lease.NoSubnet, lease.IsOff, lease.NoReservation, lease.Exhausted, lease.KeptForKnown, lease.PortFull, lease.ReservedTaken, lease.Elsewhere}

func noAddressServer(s *story) finding {
	hasAddress := func(p trace.Packet) bool { return p.DHCP.Yours.IsValid() }
	if s.mode() != inventory.ModeProxy || len(s.discovers) < 2 && !s.quiet(10*time.Second) || len(s.offers) == 0 ||
		slices.ContainsFunc(s.foreign, hasAddress) || slices.ContainsFunc(s.offers, hasAddress) || len(s.requests) > 0 || len(s.asks) > 0 {
		return finding{}
	}
	return finding{weight: likely, evidence: join(seen(s.discovers...), seen(s.offers...))}
}

func ackMissing(s *story) finding {
	ours := filter(s.requests, func(p trace.Packet) bool { return s.isOurs(p.DHCP.Server) })
	if len(ours) < 2 && !(len(ours) == 1 && s.quiet(5*time.Second)) || len(s.acks) > 0 || len(s.naks) > 0 {
		return finding{}
	}
	f := finding{weight: strong, evidence: seen(ours...)}
	if len(s.offers) > 0 && !slices.ContainsFunc(s.offers, func(p trace.Packet) bool { return p.DHCP.Yours.IsValid() }) {
		f.sentence = "the machine takes our offer of a boot file for one of an address: its firmware does not know a proxy"
		f.hint = "set the subnet's mode to full, or to off with a snippet for the other server (slipway subnet snippet)"
		f.evidence = join(seen(s.offers...), f.evidence)
	}
	return f
}

func nakRepeats(s *story) finding {
	if len(s.naks) < 2 || len(s.acks) > 0 {
		return finding{}
	}
	return finding{weight: strong, evidence: seen(s.naks...)}
}

func addressInUse(s *story) finding {
	if len(s.declines) == 0 {
		return finding{}
	}
	return finding{weight: strong, evidence: seen(s.declines...)}
}
