package keys

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/system"
	"slipway.dev/slipway/web/wire"
)

// AdminTLS has the certificate of the admin listener. The pair of files that the settings name wins over an uploaded pair in the database,
// and that over what Slipway's own authority signs. It checks the files every few seconds, so that a renewed certificate
// needs no restart. A pair that does not fit leaves the former one in force, and Refused has the reason.
type AdminTLS struct {
	Given Pair
	Vault *Vault
	Site  *Authority
	Now   func() time.Time
	Log   *slog.Logger

	mu      sync.Mutex
	at      time.Time // of the last look
	seen    string    // what the files looked like then, or the uploaded certificate
	Current *tls.Certificate
	from    string // system.TLSFiles, TLSUploaded or TLSSite
	Refused string // why the newest files are not in force
}

// uploaded is the name of the uploaded pair in the database.
const uploaded = "uploaded"

// oldUpload are its files in the data directory of an older version.
var oldUpload = Pair{"admin.crt", "admin.key"}

const lookEvery = 5 * time.Second

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

// Look reads the given files again when they have changed. The caller holds the lock, or is alone.
func (t *AdminTLS) Look() {
	now := t.Now()
	if t.Given.Cert == "" || !t.at.IsZero() && now.Sub(t.at).Abs() < lookEvery { // somebody may have set the clock back
		return
	}
	t.at = now
	t.judge(t.Given.stamp(), system.TLSFiles, func() (*tls.Certificate, error) { return t.Given.load(now) })
}

// Follow reads the uploaded pair again, which another instance may have changed. After an error, the former one stays in force.
func (t *AdminTLS) Follow(ctx context.Context) error {
	if t.Given.Cert != "" {
		return nil
	}
	p, err := t.Vault.load(ctx, uploaded)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.isNone() { // nothing was uploaded, or DropTLS has removed it: the authority signs again
		t.Current, t.from, t.Refused, t.seen = nil, system.TLSSite, "", ""
		return nil
	}
	t.judge(string(p.cert), system.TLSUploaded, func() (*tls.Certificate, error) { return checkPair(p.cert, p.key, t.Now()) })
	return nil
}

// judge checks each new pair once, so that a bad one is logged once and not every five seconds.
func (t *AdminTLS) judge(seen, from string, load func() (*tls.Certificate, error)) {
	if seen == t.seen {
		return
	}
	t.seen = seen
	c, err := load()
	if err != nil {
		t.Refused = err.Error()
		t.Log.Warn("certificate of the admin listener not taken", "err", err)
		return
	}
	t.Current, t.from, t.Refused = c, from, ""
}

// Open reads the uploaded pair. The first start takes that of an older version from the data directory.
func (t *AdminTLS) Open(ctx context.Context) error {
	old, err := readPair(t.Vault.Dir, oldUpload)
	if err != nil {
		return err
	}
	if !old.isNone() {
		stored, err := t.Vault.keep(ctx, uploaded, old, t.Now())
		if err != nil {
			return err
		}
		t.Vault.setAside(oldUpload, stored)
	}
	t.from = system.TLSSite
	// Read at once, so that a wrong file stops the start and not the first browser.
	t.Look()
	return t.Follow(ctx)
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
func (t *AdminTLS) SetTLS(ctx context.Context, cert, key []byte) error {
	if t.Given.Cert != "" {
		return inventory.Errorf(inventory.Conflict, "the settings name the certificate's files").WithHint("write the new one to %s; it is read within seconds", t.Given.Cert)
	}
	if _, err := checkPair(cert, key, t.Now()); err != nil {
		return err
	}
	err := t.Vault.Store.Write(ctx, func(tx inventory.Tx) error { return t.Vault.save(tx, uploaded, pairText{cert, key}, t.Now()) })
	if err != nil {
		return err
	}
	t.Vault.forget(oldUpload)
	return t.Follow(ctx)
}

// DropTLS implements system.TLSKeeper.
func (t *AdminTLS) DropTLS(ctx context.Context) error {
	err := t.Vault.Store.Write(ctx, func(tx inventory.Tx) error { return tx.DeleteSiteKey(uploaded) })
	if inventory.IsKind(err, inventory.NotFound) {
		return inventory.Errorf(inventory.NotFound, "no certificate was uploaded").WithHint("slipway tls show says which is in force")
	}
	if err != nil {
		return err
	}
	t.Vault.forget(oldUpload)
	return t.Follow(ctx)
}
