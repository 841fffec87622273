package serve

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web"
)

// adminTLS has the certificate of the admin door. The pair of files that the settings name wins over one that was uploaded,
// and that over what this site's own authority signs. Files are looked at again every few seconds, so that a renewed
// certificate needs no restart; a pair that does not fit leaves the one before in force, and says why.
type adminTLS struct {
	given, uploaded pair
	site            *authority
	now             func() time.Time
	log             *slog.Logger

	mu      sync.Mutex
	at      time.Time // of the last look
	seen    string    // what the files looked like then
	current *tls.Certificate
	from    string // web.TLSFiles, TLSUploaded or TLSSite
	refused string // why the newest files are not in force
}

// pair names the files of a certificate and its key.
type pair struct{ cert, key string }

const (
	adminCert, adminKey = "admin.crt", "admin.key" // in the data directory, when uploaded
	lookEvery           = 5 * time.Second
)

// openAdminTLS returns what the admin door shows, nil where it speaks without TLS: on loopback, unless files are given.
func (a *appliance) openAdminTLS() (*adminTLS, error) {
	c := a.cfg
	if c.AdminTLSCert == "" && !beyondLoopback(c.AdminListen) {
		return nil, nil
	}
	site, err := openAuthority(c.DataDir, adminCA, time.Now())
	if err != nil {
		return nil, err
	}
	t := &adminTLS{
		given:    pair{c.AdminTLSCert, c.AdminTLSKey},
		uploaded: pair{filepath.Join(c.DataDir, adminCert), filepath.Join(c.DataDir, adminKey)},
		site:     site, now: time.Now, log: a.log,
	}
	t.look()
	if t.given.cert != "" && t.current == nil {
		return nil, inventory.Errorf(inventory.Invalid, "the certificate of the admin listener cannot be used: %s", t.refused).
			WithHint("--admin-tls-cert and --admin-tls-key name PEM files, the certificate with those between it and its authority")
	}
	return t, nil
}

// bootAuthority opens the authority of the boot door, once.
func (a *appliance) bootAuthority() (*authority, error) {
	if a.authority != nil {
		return a.authority, nil
	}
	var err error
	a.authority, err = openAuthority(a.cfg.DataDir, bootCA, time.Now())
	return a.authority, err
}

// beyondLoopback reports whether a listening address can be reached from other machines.
func beyondLoopback(at string) bool {
	if strings.HasPrefix(at, "fd:") {
		return false // whoever opened the listener answers for what is in front of it
	}
	a, err := netip.ParseAddrPort(at)
	return err == nil && !a.Addr().IsLoopback()
}

// tlsKeeper is the admin door's certificate as the API shows it, nil where there is none.
func (a *appliance) tlsKeeper() web.TLSKeeper {
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
	if s.From == web.TLSSite {
		return fmt.Sprintf("https://%s (its authority is %s, SHA-256 %s)", at, filepath.Join(a.cfg.DataDir, adminCA.cert), s.Fingerprint)
	}
	return "https://" + at.String()
}

func (t *adminTLS) config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, GetCertificate: t.certificate}
}

// wrap makes a listener speak TLS.
func (t *adminTLS) wrap(l net.Listener) net.Listener {
	if t == nil {
		return l
	}
	return tls.NewListener(l, t.config())
}

func (t *adminTLS) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	t.mu.Lock()
	t.look()
	c := t.current
	t.mu.Unlock()
	if c != nil {
		return c, nil
	}
	return t.site.certificate(hello)
}

// look reads the files anew when they have changed. The caller holds the lock, or is alone.
func (t *adminTLS) look() {
	now := t.now()
	if !t.at.IsZero() && now.Sub(t.at) < lookEvery {
		return
	}
	t.at = now
	files, from := t.given, web.TLSFiles
	if files.cert == "" {
		files, from = t.uploaded, web.TLSUploaded
	}
	seen := files.stamp()
	if seen == t.seen {
		return
	}
	t.seen = seen
	c, err := files.load(now)
	switch {
	case errors.Is(err, fs.ErrNotExist) && from == web.TLSUploaded:
		t.current, t.from, t.refused = nil, web.TLSSite, ""
	case err != nil:
		t.refused = err.Error()
		t.log.Warn("certificate of the admin listener not taken", "err", err)
	default:
		t.current, t.from, t.refused = c, from, ""
	}
}

// stamp changes when the files do.
func (p pair) stamp() (s string) {
	for _, name := range []string{p.cert, p.key} {
		if i, err := os.Stat(name); err == nil {
			s += fmt.Sprint(i.ModTime().UnixNano(), " ", i.Size(), " ")
		} else {
			s += "- "
		}
	}
	return s
}

// load reads and checks a pair of files.
func (p pair) load(now time.Time) (*tls.Certificate, error) {
	cert, err := os.ReadFile(p.cert)
	if err != nil {
		return nil, err
	}
	key, err := os.ReadFile(p.key)
	if err != nil {
		return nil, err
	}
	return checkPair(cert, key, now)
}

// checkPair says whether a certificate can be shown with a key.
func checkPair(cert, key []byte, now time.Time) (*tls.Certificate, error) {
	c, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, inventory.Errorf(inventory.Invalid, "%s", strings.TrimPrefix(err.Error(), "tls: "))
	}
	if now.After(c.Leaf.NotAfter) {
		return nil, inventory.Errorf(inventory.Invalid, "the certificate ended on %s", c.Leaf.NotAfter.UTC().Format(time.DateOnly))
	}
	if len(c.Leaf.DNSNames) == 0 && len(c.Leaf.IPAddresses) == 0 {
		return nil, inventory.Errorf(inventory.Invalid, "the certificate names no host; browsers look for a subject alternative name")
	}
	return &c, nil
}

// TLSState implements web.TLSKeeper.
func (t *adminTLS) TLSState() web.TLSState {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.look()
	s := web.TLSState{IsOn: true, From: t.from, Refused: t.refused}
	leaf, trusted, isPrepared := t.site.trusted()
	s.IsPrepared = isPrepared
	if t.current != nil {
		leaf = t.current.Leaf
	} else {
		s.CA = string(trusted)
	}
	sum := sha256.Sum256(leaf.Raw)
	s.Fingerprint = hex.EncodeToString(sum[:])
	s.Subject, s.Issuer, s.NotBefore, s.NotAfter = leaf.Subject.String(), leaf.Issuer.String(), leaf.NotBefore.UTC(), leaf.NotAfter.UTC()
	s.Names = namesOf(leaf)
	return s
}

func namesOf(c *x509.Certificate) (names []string) {
	names = append(names, c.DNSNames...)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	return names
}

// SetTLS implements web.TLSKeeper.
func (t *adminTLS) SetTLS(cert, key []byte) error {
	if t.given.cert != "" {
		return inventory.Errorf(inventory.Conflict, "the settings name the certificate's files").WithHint("write the new one to %s; it is read within seconds", t.given.cert)
	}
	if _, err := checkPair(cert, key, t.now()); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	// Between the two a pair that does not fit is seen, and the one before stays in force.
	if err := writeWhole(t.uploaded.key, key, 0o600); err != nil {
		return err
	}
	if err := writeWhole(t.uploaded.cert, cert, 0o644); err != nil {
		return err
	}
	t.at, t.seen = time.Time{}, ""
	t.look()
	return nil
}

// DropTLS implements web.TLSKeeper.
func (t *adminTLS) DropTLS() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.from != web.TLSUploaded {
		return inventory.Errorf(inventory.NotFound, "no certificate was uploaded").WithHint("slipway tls show says which is in force")
	}
	err := errors.Join(os.Remove(t.uploaded.cert), os.Remove(t.uploaded.key))
	t.at, t.seen = time.Time{}, ""
	t.look()
	return err
}

// writeWhole replaces a file at once.
func writeWhole(path string, b []byte, mode os.FileMode) error {
	next := path + ".new"
	if err := os.WriteFile(next, b, mode); err != nil {
		return err
	}
	return os.Rename(next, path)
}

// tlsWarnFor is how long before its end a certificate that nobody renews by itself is complained about.
const tlsWarnFor = 30 * 24 * time.Hour

// check looks at the certificate of the admin door.
func (t *adminTLS) check() Check {
	s := t.TLSState()
	left := s.NotAfter.Sub(t.now())
	switch {
	case s.Refused != "":
		return Check{Name: "admin TLS", Status: failed, Detail: "the newest certificate is not in force: " + s.Refused, Hint: "give a certificate and the key it was made for"}
	case s.From != web.TLSSite && left < tlsWarnFor:
		return Check{Name: "admin TLS", Status: warning, Detail: fmt.Sprintf("the certificate ends on %s, in %d days", s.NotAfter.Format(time.DateOnly), int(left.Hours()/24)), Hint: "renew it: slipway tls set --cert FILE --key FILE"}
	}
	return Check{Name: "admin TLS", Status: ok, Detail: fmt.Sprintf("certificate of %s, until %s", s.From, s.NotAfter.Format(time.DateOnly))}
}
