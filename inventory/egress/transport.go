package egress

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// Transport returns a transport for HTTP that follows the policy. It is like base, but dials by the policy, and uses a
// proxy of the environment only for addresses that it may fetch directly. proxy is http.ProxyFromEnvironment when nil.
//
// The proxy itself is the admin's choice and may be anywhere. Names are resolved here before they go to it; a name that
// only the proxy knows is for the proxy to judge.
func (p *Policy) Transport(base *http.Transport, proxy func(*http.Request) (*url.URL, error)) http.RoundTripper {
	if proxy == nil {
		proxy = http.ProxyFromEnvironment
	}
	direct, proxied := base.Clone(), base.Clone()
	direct.Proxy, direct.DialContext = nil, p.DialContext
	proxied.Proxy, proxied.DialContext = proxy, (*Policy)(nil).DialContext
	return &transport{policy: p, proxy: proxy, direct: direct, proxied: proxied}
}

type transport struct {
	policy          *Policy
	proxy           func(*http.Request) (*url.URL, error)
	direct, proxied *http.Transport
}

// RoundTrip implements http.RoundTripper; a client calls it for every redirect.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	refuse := func(err error) (*http.Response, error) {
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, err
	}
	if r.URL.Scheme != "http" && r.URL.Scheme != "https" {
		return refuse(&Refused{Host: r.URL.Scheme + ":", Why: "only http and https are fetched"})
	}
	if err := t.policy.checkName(r.URL); err != nil {
		return refuse(err)
	}
	via, err := t.proxy(r)
	if err != nil {
		return refuse(fmt.Errorf("read the proxy of the environment: %w", err))
	}
	if via == nil {
		return t.direct.RoundTrip(r)
	}
	if err := t.policy.checkTarget(r.Context(), r.URL); err != nil {
		return refuse(err)
	}
	return t.proxied.RoundTrip(r)
}

// CloseIdleConnections closes what is kept open for the next request.
func (t *transport) CloseIdleConnections() {
	t.direct.CloseIdleConnections()
	t.proxied.CloseIdleConnections()
}

// checkName refuses hosts that are written as a number. 127.1 and 0x7f000001 are names to us and addresses to others, a
// proxy among them.
func (p *Policy) checkName(u *url.URL) error {
	host := strings.TrimSuffix(u.Hostname(), ".")
	if p == nil || host == "" {
		return nil
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return nil
	}
	last := host[strings.LastIndexByte(host, '.')+1:]
	if _, err := strconv.ParseUint(last, 0, 64); err == nil || strings.Trim(last, "0123456789") == "" {
		return &Refused{Host: host, Why: "it is a number that programs read as different addresses"}
	}
	return nil
}

// checkTarget refuses what a proxy would fetch for us.
func (p *Policy) checkTarget(ctx context.Context, u *url.URL) error {
	if p == nil {
		return nil
	}
	port := uint64(80)
	if u.Scheme == "https" {
		port = 443
	}
	if n, err := strconv.ParseUint(u.Port(), 10, 16); err == nil {
		port = n
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if a, err := netip.ParseAddr(host); err == nil {
		return p.Check(netip.AddrPortFrom(a, uint16(port)))
	}
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return p.Check(netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(port)))
	}
	if host == "metadata" || host == "metadata.google.internal" || host == "instance-data" {
		return p.Check(netip.AddrPortFrom(netip.AddrFrom4([4]byte{169, 254, 169, 254}), uint16(port)))
	}
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil // a name that only the proxy knows
	}
	for _, a := range addrs {
		if err := p.Check(netip.AddrPortFrom(a, uint16(port))); err != nil {
			return err
		}
	}
	return nil
}
