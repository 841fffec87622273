package pxe

import (
	"cmp"
	"hash/fnv"
	"net/netip"
	"slices"
)

// maxSources bounds the instances that a script names. Each of them repeats the line of a file, with its arguments.
const maxSources = 3

// Sources returns the addresses at which a machine loads the files of its image: ours, and those of other instances on its network. The order differs from host to host, so that instances share the load. A host has the same order each time.
func Sources(of string, ours netip.Addr, others []netip.Addr) []netip.Addr {
	ours = ours.Unmap().WithZone("")
	all := []netip.Addr{ours}
	for _, a := range others {
		if a = a.Unmap().WithZone(""); a.Is4() == ours.Is4() && !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	// Each address gets a number of its own for this host. An instance that comes or goes moves the hosts of that instance, and no others.
	slices.SortFunc(all, func(a, b netip.Addr) int { return cmp.Or(cmp.Compare(weight(of, a), weight(of, b)), a.Compare(b)) })
	if at := slices.Index(all, ours); at >= maxSources { // it always is one of them: it answered a moment ago
		all[maxSources-1] = ours
	}
	return all[:min(len(all), maxSources)]
}

func weight(of string, a netip.Addr) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(append([]byte(of), a.AsSlice()...))
	// FNV mixes its last bytes badly, and addresses of one network differ in them. This is the last step of MurmurHash3.
	x := h.Sum64()
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
