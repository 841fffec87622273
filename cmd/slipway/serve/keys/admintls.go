package keys

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
	"os"
	"strings"
	"sync"
	"time"

	"github.com/google/renameio/v2"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/system"
	"slipway.dev/slipway/web/wire"
)

// AdminTLS has the certificate of the admin listener. The pair of files that the settings name wins over an uploaded pair,
// and that over what Slipway's own authority signs. It checks the files every few seconds, so that a renewed certificate
// needs no restart. A pair that does not fit leaves the former one in force, and Refused has the reason.
type AdminTLS struct {
	Given, Uploaded Pair
	Site            *Authority
	Now             func() time.Time
	Log             *slog.Logger

	mu      sync.Mutex
	at      time.Time // of the last look
	seen    string    // what the files looked like then
	Current *tls.Certificate
	from    string // system.TLSFiles, TLSUploaded or TLSSite
	Refused string // why the newest files are not in force
}

const (
	AdminCert, AdminKey = "admin.crt", "admin.key" // in the data directory, when uploaded
	lookEvery           = 5 * time.Second
)

func (t *AdminTLS) config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, GetCertificate: t.certificate}
}

// Wrap makes a listener speak TLS.
func (t *AdminTLS) Wrap(l net.Listener) net.Listener {
	if t == nil {
		return l
	}
	return tls.NewListener(l, t.config())
}

// certificate is called in each handshake, by the goroutine of its connection.
func (t *AdminTLS) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	t.mu.Lock()
	t.Look()
	c := t.Current
	t.mu.Unlock()
	if c != nil {
		return c, nil
	}
	return t.Site.certificate(hello)
}

// Look reads the files again when they have changed. The caller holds the lock, or is alone.
func (t *AdminTLS) Look() {
	now := t.Now()
	if !t.at.IsZero() && now.Sub(t.at) < lookEvery {
		return
	}
	t.at = now
	files, from := t.Given, system.TLSFiles
	if files.Cert == "" {
		files, from = t.Uploaded, system.TLSUploaded
	}
	seen := files.stamp()
	// Each change of the files is judged once, so that a bad pair is logged once and not every five seconds.
	if seen == t.seen {
		return
	}
	t.seen = seen
	c, err := files.load(now)
	switch {
	// Nothing was uploaded, or DropTLS has removed it: the authority signs again.
	case errors.Is(err, fs.ErrNotExist) && from == system.TLSUploaded:
		t.Current, t.from, t.Refused = nil, system.TLSSite, ""
	case err != nil:
		t.Refused = err.Error()
		t.Log.Warn("certificate of the admin listener not taken", "err", err)
	default:
		t.Current, t.from, t.Refused = c, from, ""
	}
}

// stamp changes when the files do. It needs no reading: the handshakes wait for it.
func (p Pair) stamp() (s string) {
	for _, name := range []string{p.Cert, p.Key} {
		if i, err := os.Stat(name); err == nil {
			s += fmt.Sprint(i.ModTime().UnixNano(), " ", i.Size(), " ")
		} else {
			s += "- "
		}
	}
	return s
}

// load reads and checks a pair of files.
func (p Pair) load(now time.Time) (*tls.Certificate, error) {
	cert, err := os.ReadFile(p.Cert)
	if err != nil {
		return nil, err
	}
	key, err := os.ReadFile(p.Key)
	if err != nil {
		return nil, err
	}
	return checkPair(cert, key, now)
}

// checkPair checks a certificate and its key before they are in force: browsers show a bad one as an attack.
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

// TLSState implements system.TLSKeeper.
func (t *AdminTLS) TLSState() wire.TLSState {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Look()
	s := wire.TLSState{IsOn: true, From: t.from, Refused: t.Refused}
	// An authority that Prepare has made is shown before it signs anything, so that clients can trust it in time.
	leaf, trusted, isPrepared := t.Site.Trusted()
	s.IsPrepared = isPrepared
	if t.Current != nil {
		leaf = t.Current.Leaf
	} else {
		s.CA = string(trusted)
	}
	// The fingerprint that openssl x509 -fingerprint -sha256 prints.
	sum := sha256.Sum256(leaf.Raw)
	s.Fingerprint = hex.EncodeToString(sum[:])
	s.Subject, s.Issuer, s.NotBefore, s.NotAfter = leaf.Subject.String(), leaf.Issuer.String(), leaf.NotBefore.UTC(), leaf.NotAfter.UTC()
	s.Names = NamesOf(leaf)
	return s
}

// NamesOf returns the DNS names and the IP addresses that a certificate is for.
func NamesOf(c *x509.Certificate) (names []string) {
	names = append(names, c.DNSNames...)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	return names
}

// SetTLS implements system.TLSKeeper.
func (t *AdminTLS) SetTLS(cert, key []byte) error {
	if t.Given.Cert != "" {
		return inventory.Errorf(inventory.Conflict, "the settings name the certificate's files").WithHint("write the new one to %s; it is read within seconds", t.Given.Cert)
	}
	if _, err := checkPair(cert, key, t.Now()); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	// Between the two a pair that does not fit is seen, and the one before stays in force.
	if err := renameio.WriteFile(t.Uploaded.Key, key, 0o600); err != nil {
		return err
	}
	if err := renameio.WriteFile(t.Uploaded.Cert, cert, 0o644); err != nil {
		return err
	}
	t.at, t.seen = time.Time{}, ""
	t.Look()
	return nil
}

// DropTLS implements system.TLSKeeper.
func (t *AdminTLS) DropTLS() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.from != system.TLSUploaded {
		return inventory.Errorf(inventory.NotFound, "no certificate was uploaded").WithHint("slipway tls show says which is in force")
	}
	err := errors.Join(os.Remove(t.Uploaded.Cert), os.Remove(t.Uploaded.Key))
	t.at, t.seen = time.Time{}, ""
	t.Look()
	return err
}

// TlsWarnFor is how long before its end a certificate that nobody renews by itself is complained about.
const TlsWarnFor = 30 * 24 * time.Hour
