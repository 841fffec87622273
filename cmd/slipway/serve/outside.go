package serve

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/egress"
	"slipway.dev/slipway/web/proxy"
)

// Egress says which addresses the server connects to on behalf of others, as the file has it.
type Egress struct {
	Allow []string `yaml:"allow"` // networks that are refused otherwise, such as 127.0.0.0/8
}

// egressPolicy is what imports, controllers, webhooks, scans, the provider of identities and clusters connect through.
// The ports of our own doors stay closed to them whatever is allowed.
func (a *appliance) egressPolicy() (*egress.Policy, error) {
	allow, err := egress.ParseAllow(a.cfg.Egress.Allow)
	if err != nil {
		return nil, err
	}
	return egress.New(egress.Config{Allow: allow, Doors: func() (ports []uint16) {
		for _, port := range []int{a.cfg.BootPort, a.cfg.BootTLSPort, int(a.adminPort.Load())} {
			if port > 0 {
				ports = append(ports, uint16(port))
			}
		}
		return ports
	}}), nil
}

// badOutside checks what the settings say of the way from browsers to the admin door.
func (c *Config) badOutside() (key string, row int, err error) {
	for i, text := range c.TrustedProxies {
		if _, err := proxy.Parse([]string{text}); err != nil {
			return "trustedProxies", i, err
		}
	}
	if c.AdminProxyProtocol && len(c.TrustedProxies) == 0 {
		return "adminProxyProtocol", 0, inventory.Errorf(inventory.Invalid, "adminProxyProtocol needs trustedProxies: from everybody else no header is read").
			WithHint("trustedProxies: [10.0.0.5]")
	}
	for i, name := range c.AdminHosts {
		if err := inventory.CheckName("name of the admin listener", strings.TrimPrefix(name, "*.")); err != nil {
			return "adminHosts", i, err
		}
	}
	if c.ExternalURL == "" {
		return "", 0, nil
	}
	own, err := url.Parse(c.ExternalURL)
	if err != nil || own.Host == "" || own.Scheme != "https" && own.Scheme != "http" || strings.Trim(own.Path, "/") != "" || own.RawQuery != "" || own.Fragment != "" || own.User != nil {
		return "externalURL", 0, inventory.Errorf(inventory.Invalid, "externalURL %q is no address without a path", inventory.Clean(c.ExternalURL, 200)).WithHint("externalURL: https://slipway.example.org")
	}
	return "", 0, nil
}

// behindProxy makes the admin listener read the headers of the PROXY protocol, where the settings ask for it.
func (c *Config) behindProxy(l net.Listener) net.Listener {
	if !c.AdminProxyProtocol {
		return l
	}
	return proxy.Listen(l, c.proxies())
}

// proxies are the trusted ones; the settings have been checked.
func (c *Config) proxies() proxy.Trusted {
	t, _ := proxy.Parse(c.TrustedProxies)
	return t
}

// knowsHost reports whether a name is one of the admin door's: this machine's own, that of the external URL, one of adminHosts,
// or one that its certificate is for.
func (a *appliance) knowsHost(name string) bool {
	own, _ := os.Hostname()
	outside, _ := url.Parse(a.cfg.ExternalURL)
	for _, known := range append([]string{own, outside.Hostname()}, a.cfg.AdminHosts...) {
		// A name that nobody has configured is refused: a page of another site could else reach the API by a name of its own
		// that resolves to this machine (DNS rebinding).
		if known = strings.ToLower(known); known != "" && isNamed(known, name) {
			return true
		}
	}
	if a.tls == nil {
		return false
	}
	return slices.ContainsFunc(a.tls.TLSState().Names, func(known string) bool { return isNamed(strings.ToLower(known), name) })
}

// isNamed compares a name with one that may begin with *. and then stands for one label more, as in certificates.
func isNamed(pattern, name string) bool {
	return (&x509.Certificate{DNSNames: []string{pattern}}).VerifyHostname(name) == nil
}

// keyFor derives a key for one purpose from one that is kept.
func keyFor(purpose string, key []byte) []byte {
	// Keys for different purposes must not be derivable from each other, and one stored key serves them all.
	m := hmac.New(sha256.New, key)
	m.Write([]byte(purpose))
	return m.Sum(nil)
}
