package diagnosis

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe/trace"
)

// identityRules are about machines that are taken for one another.
func identityRules() []Rule {
	return []Rule{
		{"two-ports", "two network ports of this host try to boot at the same time", "switch on network boot for one port only", twoPorts},
		{"shared-identity", "another host says that it has the same UUID or serial", "read the issue and correct the wrong host: slipway issue list", sharedIdentity},
		{"same-mac", "two machines use this MAC: packets with it name two UUIDs", "give one of them another MAC: clones of a virtual machine and some boards in one chassis share theirs", sameMAC},
		{"same-xid", "another machine asks with the same transaction id at the same time, and each may take the other's answers", "switch them on one after the other; update the firmware of their network cards", sameXid},
	}
}

func twoPorts(s *story) finding {
	if len(s.discovers) == 0 {
		return finding{}
	}
	from, to := s.discovers[0].At.Add(-10*time.Second), s.discovers[len(s.discovers)-1].At.Add(10*time.Second)
	for _, p := range s.OtherPorts {
		if p.LastAt.After(from) && p.LastAt.Before(to) {
			return finding{weight: slow, evidence: join(seen(s.discovers[0]), []Evidence{{At: p.LastAt, Text: "a packet of its port " + string(p.MAC)}})}
		}
	}
	return finding{}
}

func sharedIdentity(s *story) finding {
	i := slices.IndexFunc(s.Issues, func(i inventory.Issue) bool { return i.Type == inventory.IssueIdentityConflict })
	if i < 0 {
		return finding{}
	}
	return finding{weight: possible, sentence: s.Issues[i].Cause, hint: s.Issues[i].Hint, evidence: []Evidence{{At: s.Issues[i].OpenedAt, Text: s.Issues[i].Cause}}}
}

// sameMAC compares the UUIDs (option 97) of what asks lately. One machine keeps its own through firmware, boot loader and
// operating system.
func sameMAC(s *story) finding {
	var first trace.Packet
	for _, p := range s.Packets {
		if m := p.DHCP; m == nil || m.IsReply || m.Client.UUID == "" || s.Now.Sub(p.At) > loopWithin {
			continue
		}
		if first.DHCP == nil {
			first = p
		}
		if first.DHCP.Client.UUID != p.DHCP.Client.UUID {
			return finding{
				weight: likely, evidence: seen(first, p),
				sentence: fmt.Sprintf("two machines use this MAC: one has the UUID %s, the other %s", first.DHCP.Client.UUID, p.DHCP.Client.UUID),
			}
		}
	}
	return finding{}
}

func sameXid(s *story) finding {
	for _, n := range slices.Backward(s.Notes) {
		other, ok := strings.CutPrefix(n.Reason, trace.SameXid)
		if !ok || len(s.boot) == 0 || n.At.Before(s.boot[0].At.Add(-time.Minute)) {
			continue
		}
		f := finding{
			weight: slow, evidence: []Evidence{{At: n.At, Text: n.Reason}},
			sentence: fmt.Sprintf("another machine, %s, asks with the same transaction id at the same time: each may take the other's answers", other),
		}
		if s.isDeaf() || len(s.naks) > 0 || len(s.declines) > 0 {
			f.weight = likely
		}
		return f
	}
	return finding{}
}
