package pxe

import (
	"cmp"
	"hash/fnv"
	"net/netip"
	"net/url"
	"slices"
	"strconv"

	"slipway.dev/slipway/inventory"
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

// of is who a script is for.
func (in ScriptInput) of() string {
	if in.Host != nil && in.Host.ID != "" {
		return string(in.Host.ID)
	}
	return string(in.Client.MAC)
}

// bases are the URLs of Sources. There is only our own while no other instance is on the network, and over TLS.
func (in ScriptInput) bases() []string { return Bases(in.of(), in.Base, in.Others) }

// Bases returns the boot servers at which a host loads large files, as Sources has them. All instances use the same port.
func Bases(of, base string, others []netip.Addr) (bases []string) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" || len(others) == 0 {
		return []string{base}
	}
	ours, err := netip.ParseAddr(u.Hostname())
	if err != nil {
		return []string{base}
	}
	port := 80
	if p := u.Port(); p != "" {
		if port, err = strconv.Atoi(p); err != nil {
			return []string{base}
		}
	}
	for _, a := range Sources(of, ours, others) {
		if a == ours.Unmap().WithZone("") {
			bases = append(bases, base)
			continue
		}
		bases = append(bases, BaseURL(a, port))
	}
	return bases
}

// Elsewhere returns where else a host fetches a file than at the first of Bases.
func Elsewhere(bases []string, s inventory.SessionID, f inventory.ImageArtefact) (urls []string) {
	for _, b := range bases[1:] {
		urls = append(urls, ArtefactURL(b, s, f))
	}
	return urls
}
