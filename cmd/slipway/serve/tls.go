package serve

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/cmd/slipway/serve/keys"
	"slipway.dev/slipway/cmd/slipway/serve/lookup"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/system"
)

// certificates are those of the listeners.
type certificates struct {
	cfg   *Config
	boot  *keys.Authority // nil: the boot listener speaks without TLS
	admin *keys.AdminTLS  // nil: the admin listener does
}

// openCertificates reads the certificates, or makes them at the first start.
func openCertificates(cfg *Config, log *slog.Logger) (*certificates, error) {
	c := &certificates{cfg: cfg}
	var err error
	if cfg.BootTLSPort != 0 {
		if c.boot, err = keys.OpenAuthority(cfg.DataDir, keys.BootCA, time.Now()); err != nil {
			return nil, err
		}
	}
	c.admin, err = openAdminTLS(cfg, log)
	return c, err
}

// openAdminTLS returns what the admin door shows, nil where it speaks without TLS: on loopback, unless files are given.
func openAdminTLS(c *Config, log *slog.Logger) (*keys.AdminTLS, error) {
	// On loopback TLS protects nothing: root can read the memory of both ends, and other users cannot listen in.
	if c.AdminTLSCert == "" && !beyondLoopback(c.AdminListen) {
		return nil, nil
	}
	site, err := keys.OpenAuthority(c.DataDir, keys.AdminCA, time.Now())
	if err != nil {
		return nil, err
	}
	t := &keys.AdminTLS{
		Given:    keys.Pair{Cert: c.AdminTLSCert, Key: c.AdminTLSKey},
		Uploaded: keys.Pair{Cert: filepath.Join(c.DataDir, keys.AdminCert), Key: filepath.Join(c.DataDir, keys.AdminKey)},
		Site:     site, Now: time.Now, Log: log,
	}
	// Read at once, so that a wrong file stops the start and not the first browser.
	t.Look()
	// Files that were given must work: a silent fallback to the site's own authority would look like an attack to browsers.
	if t.Given.Cert != "" && t.Current == nil {
		return nil, inventory.Errorf(inventory.Invalid, "the certificate of the admin listener cannot be used: %s", t.Refused).
			WithHint("--admin-tls-cert and --admin-tls-key name PEM files, the certificate with those between it and its authority")
	}
	return t, nil
}

// beyondLoopback reports whether a listening address can be reached from other machines.
func beyondLoopback(at string) bool {
	if strings.HasPrefix(at, "fd:") {
		return false // anyone who opened the listener answers for what is in front of it
	}
	a, err := netip.ParseAddrPort(at)
	return err == nil && !a.Addr().IsLoopback()
}

// keeper is the admin door's certificate as the API shows it, nil where there is none.
func (c *certificates) keeper() system.TLSKeeper {
	if c.admin == nil {
		return nil
	}
	return c.admin
}

// adminURL is the address of the admin door for the person at the terminal.
func (c *certificates) adminURL(at net.Addr) string {
	if c.admin == nil {
		return "http://" + at.String()
	}
	s := c.admin.TLSState()
	if s.From == system.TLSSite {
		// No browser knows the site's own authority. The fingerprint lets the person compare it.
		ca := filepath.Join(c.cfg.DataDir, keys.AdminCA.Cert)
		return fmt.Sprintf("https://%s (its authority is %s, SHA-256 %s)", at, ca, s.Fingerprint)
	}
	return "https://" + at.String()
}

// checkTLS looks at the certificate of the admin door.
func checkTLS(t *keys.AdminTLS) Check {
	s := t.TLSState()
	left := s.NotAfter.Sub(t.Now())
	// A refused file comes first, because an admin believes that it is in force.
	switch {
	case s.Refused != "":
		return Check{Name: "admin TLS", Status: failed, Detail: "the newest certificate is not in force: " + s.Refused, Hint: "give a certificate and the key it was made for"}
	case s.From != system.TLSSite && left < keys.TlsWarnFor:
		return Check{Name: "admin TLS", Status: warning, Detail: fmt.Sprintf("the certificate ends on %s, in %d days", s.NotAfter.Format(time.DateOnly), int(left.Hours()/24)), Hint: "renew it: slipway tls set --cert FILE --key FILE"}
	}
	return Check{Name: "admin TLS", Status: ok, Detail: fmt.Sprintf("certificate of %s, until %s", s.From, s.NotAfter.Format(time.DateOnly))}
}

// rotate prepares or puts in force the authority that comes after that of a listener. In between, clients need both:
// prepared early enough, they have the new one before the first certificate is signed by it.
func (c *certificates) rotate(door string, isFinish bool) error {
	of := c.boot
	if door == "admin" && c.admin != nil {
		of = c.admin.Site
	} else if door == "admin" {
		of = nil
	}
	switch {
	case of == nil:
		return inventory.Errorf(inventory.Conflict, "the %s listener speaks without TLS", door).WithHint("--admin-listen beyond loopback or --boot-tls-port make it speak TLS")
	case isFinish:
		return of.Rotate(time.Now())
	}
	return of.Prepare(time.Now())
}

// knowsHost reports whether a name is one of the admin door's: this machine's own, that of the external URL, one of adminHosts,
// or one that its certificate is for.
func (c *certificates) knowsHost(name string) bool {
	own, _ := os.Hostname()
	outside, _ := url.Parse(c.cfg.ExternalURL)
	for _, known := range append([]string{own, outside.Hostname()}, c.cfg.AdminHosts...) {
		// A name that nobody has configured is refused: a page of another site could else reach the API by a name of its own
		// that resolves to this machine (DNS rebinding).
		if known = strings.ToLower(known); known != "" && isNamed(known, name) {
			return true
		}
	}
	if c.admin == nil {
		return false
	}
	return slices.ContainsFunc(c.admin.TLSState().Names, func(known string) bool { return isNamed(strings.ToLower(known), name) })
}

// isNamed compares a name with one that may begin with *. and then stands for one label more, as in certificates.
func isNamed(pattern, name string) bool {
	return (&x509.Certificate{DNSNames: []string{pattern}}).VerifyHostname(name) == nil
}

// bootListen is where the boot door speaks TLS; nowhere unless the configuration names a port.
func (c *certificates) bootListen() []netip.AddrPort {
	if c.cfg.BootTLSPort == 0 {
		return nil
	}
	return lookup.Everywhere(c.cfg.BootTLSPort)
}

// bootConfig is how the boot door speaks TLS, nil where it does not.
func (c *certificates) bootConfig() *tls.Config {
	if c.cfg.BootTLSPort == 0 {
		return nil
	}
	return c.boot.Config()
}
