package serve

import (
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"time"

	"slipway.dev/slipway/cmd/slipway/serve/keys"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/system"
)

// openAdminTLS returns what the admin door shows, nil where it speaks without TLS: on loopback, unless files are given.
func (a *appliance) openAdminTLS() (*keys.AdminTLS, error) {
	c := a.cfg
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
		Site:     site, Now: time.Now, Log: a.log,
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

// bootAuthority opens the authority of the boot door, once.
func (a *appliance) bootAuthority() (*keys.Authority, error) {
	if a.authority != nil {
		return a.authority, nil
	}
	var err error
	a.authority, err = keys.OpenAuthority(a.cfg.DataDir, keys.BootCA, time.Now())
	return a.authority, err
}

// beyondLoopback reports whether a listening address can be reached from other machines.
func beyondLoopback(at string) bool {
	if strings.HasPrefix(at, "fd:") {
		return false // anyone who opened the listener answers for what is in front of it
	}
	a, err := netip.ParseAddrPort(at)
	return err == nil && !a.Addr().IsLoopback()
}

// tlsKeeper is the admin door's certificate as the API shows it, nil where there is none.
func (a *appliance) tlsKeeper() system.TLSKeeper {
	if a.tls == nil {
		return nil
	}
	return a.tls
}

// adminURL is the address of the admin door for the person at the terminal.
func (a *appliance) adminURL(at net.Addr) string {
	if a.tls == nil {
		return "http://" + at.String()
	}
	s := a.tls.TLSState()
	if s.From == system.TLSSite {
		// No browser knows the site's own authority. The fingerprint lets the person compare it.
		ca := filepath.Join(a.cfg.DataDir, keys.AdminCA.Cert)
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

// rotateAuthority prepares or puts in force the authority that comes after that of a listener. In between, clients need both:
// prepared early enough, they have the new one before the first certificate is signed by it.
func (a *appliance) rotateAuthority(door string, isFinish bool) error {
	of := a.authority
	if door == "admin" && a.tls != nil {
		of = a.tls.Site
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
