// Package proxy finds the client of a request to the admin listener behind proxies. It reads the headers X-Forwarded-For
// and Forwarded (RFC 7239), and the PROXY protocol. It believes only the proxies that the settings name.
package proxy

import (
	"cmp"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
)

// Trusted are the addresses of the proxies that are believed.
type Trusted []netip.Prefix

// hopsMax bounds how many addresses of one request Slipway reads.
const hopsMax = 32

// Parse reads addresses and networks, such as 10.0.0.5 or 10.0.0.0/24.
func Parse(texts []string) (t Trusted, err error) {
	for _, text := range texts {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			a, err := netip.ParseAddr(text)
			if err != nil {
				return nil, inventory.Errorf(inventory.Invalid, "%q is neither an address nor a network of a proxy", inventory.Clean(text, 80)).
					WithHint("write it as 10.0.0.5 or 10.0.0.0/24")
			}
			p = netip.PrefixFrom(a, a.BitLen())
		}
		if p.Bits() == 0 {
			return nil, inventory.Errorf(inventory.Invalid, "%s trusts everybody, so anybody could choose the address that is seen", text).
				WithHint("name the addresses of the proxies")
		}
		if a := p.Addr(); a.Is4In6() && p.Bits() >= 96 {
			p = netip.PrefixFrom(a.Unmap(), p.Bits()-96)
		}
		t = append(t, p.Masked())
	}
	return t, nil
}

// Has reports whether an address is one of a trusted proxy.
func (t Trusted) Has(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	return a.IsValid() && slices.ContainsFunc(t, func(p netip.Prefix) bool { return p.Contains(a) })
}

// Client is the other end of a request.
type Client struct {
	Addr  netip.Addr
	IsTLS bool // the client's own connection is encrypted
}

// Of returns who sent a request. Headers count only when a trusted proxy has sent them, and only as far as trusted proxies
// vouch for them. The client is the last address that no trusted proxy has. When the two kinds of header name different
// clients, one of them is forged: then the proxy itself counts as the client.
func (t Trusted) Of(r *http.Request) Client {
	ap, _ := netip.ParseAddrPort(r.RemoteAddr)
	c := Client{Addr: ap.Addr().Unmap().WithZone(""), IsTLS: r.TLS != nil}
	if !t.Has(c.Addr) {
		return c
	}
	byX, xOK := t.last(split(r.Header["X-Forwarded-For"]), addrOf)
	elements := split(r.Header["Forwarded"])
	byStandard, standardOK := t.last(elements, func(e string) netip.Addr { return addrOf(pair(e, "for")) })
	proto := cmp.Or(lastOf(split(r.Header["X-Forwarded-Proto"])), pair(lastOf(elements), "proto"))
	if proto != "" {
		c.IsTLS = strings.EqualFold(proto, "https")
	}
	switch {
	case xOK && standardOK && byX != byStandard:
	case xOK:
		c.Addr = byX
	case standardOK:
		c.Addr = byStandard
	}
	return c
}

// last walks from the nearest hop to the first that is no trusted proxy. What cannot be read ends the walk: it is not known
// who stands behind it.
func (t Trusted) last(hops []string, read func(string) netip.Addr) (a netip.Addr, ok bool) {
	for i, n := len(hops)-1, 0; i >= 0 && n < hopsMax; i, n = i-1, n+1 {
		hop := read(hops[i])
		if !hop.IsValid() {
			return a, ok
		}
		a, ok = hop, true
		if !t.Has(hop) {
			return a, ok
		}
	}
	return a, ok
}

// split returns the elements of a header that may come in several lines. A quoted text may hold commas.
func split(lines []string) (all []string) {
	for _, line := range lines {
		isQuoted := false
		for _, e := range strings.FieldsFunc(line, func(c rune) bool {
			if c == '"' {
				isQuoted = !isQuoted
			}
			return c == ',' && !isQuoted
		}) {
			all = append(all, strings.TrimSpace(e))
		}
	}
	return all
}

func lastOf(all []string) string {
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1]
}

// pair returns the value of a name in an element of Forwarded: for=192.0.2.1;proto=https.
func pair(element, name string) string {
	for p := range strings.SplitSeq(element, ";") {
		k, v, _ := strings.Cut(p, "=")
		if strings.EqualFold(strings.TrimSpace(k), name) {
			return strings.Trim(strings.TrimSpace(v), `"`)
		}
	}
	return ""
}

// addrOf reads an address, with or without port; the zero address for anything else.
func addrOf(text string) netip.Addr {
	if a, err := netip.ParseAddr(strings.Trim(text, "[]")); err == nil {
		return a.Unmap().WithZone("")
	}
	if ap, err := netip.ParseAddrPort(text); err == nil {
		return ap.Addr().Unmap().WithZone("")
	}
	return netip.Addr{}
}

// HostOf returns the name or address in a Host header, without port, in lower case.
func HostOf(header string) string {
	host := header
	if h, _, err := net.SplitHostPort(header); err == nil {
		host = h
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}
