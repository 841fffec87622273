package serve

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"slipway.dev/slipway/cmd/slipway/serve/keys"
	"slipway.dev/slipway/cmd/slipway/serve/lookup"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sleep"
	"slipway.dev/slipway/web/system"
)

// certificates are those of the listeners.
type certificates struct {
	cfg   *Config
	log   *slog.Logger
	boot  *keys.Authority // nil: the boot listener speaks without TLS
	admin *keys.AdminTLS  // nil: the admin listener does

	unread atomic.Pointer[string] // why those of the database cannot be read; nil: they can, or the database does not answer
}

// openCertificates reads the certificates from the database, or makes them at the first start. Any instance may do so, and one wins.
// Later changes go to store, which takes them from the instance that has the duty of the engine.
func openCertificates(ctx context.Context, cfg *Config, v *keys.Vault, store inventory.Store) (*certificates, error) {
	c := &certificates{cfg: cfg, log: v.Log}
	var err error
	if cfg.BootTLSPort != 0 {
		if c.boot, err = keys.OpenAuthority(ctx, v, keys.BootCA, time.Now()); err != nil {
			return nil, err
		}
	}
	c.admin, err = openAdminTLS(ctx, cfg, v)
	v.Store = store
	return c, err
}

// certificatesEvery is how soon an instance sees a certificate that another one has changed.
const certificatesEvery = 5 * time.Second

// follow reads the certificates again until ctx ends, because other instances change them, too.
func (c *certificates) follow(ctx context.Context) error {
	said := ""
	for sleep.For(ctx, certificatesEvery) == nil {
		err := c.look(ctx)
		c.unread.Store(nil)
		if err != nil && !inventory.IsKind(err, inventory.Unavailable) {
			text := inventory.Clean(err.Error(), 200)
			c.unread.Store(&text)
		}
		if err == nil || ctx.Err() != nil {
			said = ""
		} else if now := err.Error(); now != said {
			said = now
			c.log.Warn("certificates not read again; those from before stay in force", "err", err)
		}
	}
	return nil
}

func (c *certificates) look(ctx context.Context) error {
	var errs []error
	if c.boot != nil {
		errs = append(errs, c.boot.Look(ctx))
	}
	if c.admin != nil {
		errs = append(errs, c.admin.Site.Look(ctx), c.admin.Follow(ctx))
	}
	return errors.Join(errs...)
}

// openAdminTLS returns what the admin door shows, nil where it speaks without TLS: on loopback, unless files are given.
func openAdminTLS(ctx context.Context, c *Config, v *keys.Vault) (*keys.AdminTLS, error) {
	// On loopback TLS protects nothing: root can read the memory of both ends, and other users cannot listen in.
	if c.AdminTLSCert == "" && !beyondLoopback(c.AdminListen) {
		return nil, nil
	}
	site, err := keys.OpenAuthority(ctx, v, keys.AdminCA, time.Now())
	if err != nil {
		return nil, err
	}
	t := &keys.AdminTLS{Given: keys.Pair{Cert: c.AdminTLSCert, Key: c.AdminTLSKey}, Vault: v, Site: site, Now: time.Now, Log: v.Log}
	if err := t.Open(ctx); err != nil {
		return nil, err
	}
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
		ca := filepath.Join(c.cfg.DataDir, keys.AdminCA.Files.Cert)
		return fmt.Sprintf("https://%s (its authority is %s, SHA-256 %s)", at, ca, s.Fingerprint)
	}
	return "https://" + at.String()
}

// checks are those of all certificates. The issues about them say the same.
func (c *certificates) checks() (all []Check) {
	if c.boot != nil {
		all = append(all, c.boot.Check(time.Now()))
	}
	if c.admin != nil {
		all = append(all, c.admin.Check(c.askedFor()))
	}
	if said := c.unread.Load(); said != nil {
		all = append(all, Check{
			Name: "certificates in the database", Status: failed, Detail: "cannot be read, those from before stay in force: " + *said,
			Hint: "does this instance have the secret.key of the others? Else restore a backup of the database",
		})
	}
	return all
}

// askedFor are the names by which browsers ask for the admin listener, as far as the settings say. Behind a proxy, they ask that one.
func (c *certificates) askedFor() (names []string) {
	if len(c.cfg.TrustedProxies) > 0 {
		return nil
	}
	if outside, err := url.Parse(c.cfg.ExternalURL); err == nil && outside.Hostname() != "" {
		names = append(names, outside.Hostname())
	}
	return append(names, c.cfg.AdminHosts...)
}

// rotate prepares or puts in force the authority that comes after that of a listener. In between, clients need both:
// prepared early enough, they have the new one before the first certificate is signed by it.
func (c *certificates) rotate(ctx context.Context, door string, isFinish bool) error {
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
		return of.Rotate(ctx, time.Now())
	}
	return of.Prepare(ctx, time.Now())
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
