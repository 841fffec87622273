// Package keys owns the keys and certificates of a site. The key of the secrets is in the data directory of each instance. The two
// authorities and the uploaded certificate of the admin listener are in the database, sealed with it. It never decides about access.
package keys

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
)

// Authority is a certificate authority of Slipway's own for one listener over TLS. Each listener has another one: a stolen key
// of the boot listener signs nothing that clients of the admin listener trust. Keys are RSA, because boot loaders built before
// 2024 know no other kind.
type Authority struct {
	vault *Vault
	of    Listener

	mu     sync.Mutex
	Cert   *x509.Certificate
	key    crypto.Signer
	Pem    []byte
	next   []byte                          // certificate of the authority that Prepare has made, PEM
	issued map[netip.Addr]*tls.Certificate // in memory only: a restart signs new ones, and clients trust the authority
}

// Listener is a listener over TLS, with an authority of its own.
type Listener struct {
	Name  string // of the authority in the database
	title string // in its subject
	Files Pair   // of the certificate for people, and of the pair of an older version
}

// Both listeners. The files of the boot listener's authority were the first, so that their name says less.
var (
	BootCA  = Listener{"boot", "site", Pair{"ca.crt", "ca.key"}}
	AdminCA = Listener{"admin", "admin", Pair{"admin-ca.crt", "admin-ca.key"}}
)

// next is the authority that comes after that of a listener.
func (l Listener) next() Listener {
	return Listener{"next-" + l.Name, l.title, Pair{"next-" + l.Files.Cert, "next-" + l.Files.Key}}
}

const (
	CAFor   = 10 * 365 * 24 * time.Hour // it is built into boot loaders, which nobody replaces often
	certFor = 90 * 24 * time.Hour       // a new one is signed when a third of this is left
	keyBits = 2048                      // the least that clients accept today
)

// OpenAuthority reads the authority of a listener from the database. The first start makes it, or takes that of an older version from the
// data directory.
func OpenAuthority(ctx context.Context, v *Vault, of Listener, now time.Time) (*Authority, error) {
	stored, err := v.load(ctx, of.Name)
	if err == nil && stored.isNone() {
		stored, err = v.first(ctx, of, now)
	}
	if err != nil {
		return nil, fmt.Errorf("open the certificate authority of the %s listener: %w", of.Name, err)
	}
	next, err := v.load(ctx, of.next().Name)
	if err != nil {
		return nil, fmt.Errorf("open the certificate authority of the %s listener: %w", of.Name, err)
	}
	v.setAside(of.Files, stored)
	v.setAside(of.next().Files, next)
	a := &Authority{vault: v, of: of}
	if err := a.take(stored); err != nil {
		return nil, err
	}
	if now.After(a.Cert.NotAfter) {
		// The server starts: only with it can an admin make the next one.
		v.Log.Error("the certificate authority of a listener has ended", "listener", of.Name,
			"ended", a.Cert.NotAfter.Format(time.DateOnly), "hint", "slipway tls rotate --door "+of.Name+", then once more with --finish")
	}
	return a, a.Look(ctx)
}

// first takes an authority from the files of an older version into the database, with the one that was prepared to come after it. Without
// such files it makes an authority.
func (v *Vault) first(ctx context.Context, of Listener, now time.Time) (pairText, error) {
	for _, suffix := range []string{"", taken} {
		old, err := readPair(v.Dir, of.Files.named(suffix))
		if err != nil {
			return old, err
		}
		if old.isNone() {
			continue
		}
		next, err := readPair(v.Dir, of.next().Files.named(suffix))
		if err != nil {
			return next, err
		}
		v.Log.Info("the database takes over an authority from the data directory", "file", of.Files.Cert+suffix)
		stored, err := v.keep(ctx, of.Name, old, now)
		if err == nil && !next.isNone() && bytes.Equal(stored.cert, old.cert) {
			_, err = v.keep(ctx, of.next().Name, next, now)
		}
		return stored, err
	}
	// Clients trust the authority of this certificate. A new one would lock them out.
	path := filepath.Join(v.Dir, of.Files.Cert)
	if _, err := os.Stat(path); err == nil {
		if _, err := os.Stat(filepath.Join(v.Dir, of.Files.Key)); errors.Is(err, fs.ErrNotExist) {
			return pairText{}, inventory.Errorf(inventory.Invalid, "the database has no authority for %s, and %s is not here", path, of.Files.Key).
				WithHint("restore a backup of the database, or put the key there. If you delete %s, clients have to trust a new one", path)
		}
	}
	made, err := makeAuthority(of, now)
	if err != nil {
		return made, fmt.Errorf("make it: %w", err)
	}
	return v.keep(ctx, of.Name, made, now)
}

// take puts an authority in force.
func (a *Authority) take(p pairText) error {
	both, err := tls.X509KeyPair(p.cert, p.key)
	if err != nil {
		return inventory.Errorf(inventory.Invalid, "the authority of the %s listener in the database is damaged: %v", a.of.Name, err).
			WithHint("restore a backup of the database")
	}
	signer, ok := both.PrivateKey.(crypto.Signer)
	if !ok {
		return inventory.Errorf(inventory.Invalid, "the key of the certificate authority of the %s listener signs nothing", a.of.Name).
			WithHint("restore a backup of the database")
	}
	a.Cert, a.key, a.Pem, a.issued = both.Leaf, signer, p.cert, map[netip.Addr]*tls.Certificate{}
	return nil
}

// Look reads the authority again. Another instance may have put the next one in force. After an error, the former one stays.
func (a *Authority) Look(ctx context.Context) error {
	var now, next pairText
	err := a.vault.Store.Read(ctx, func(tx inventory.Tx) (err error) {
		if now, err = a.vault.find(tx, a.of.Name); err != nil {
			return err
		}
		next, err = a.vault.find(tx, a.of.next().Name)
		return err
	})
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if now.isNone() {
		return inventory.Errorf(inventory.Internal, "the certificate authority of the %s listener is gone from the database", a.of.Name)
	}
	if !bytes.Equal(now.cert, a.Pem) {
		if err := a.take(now); err != nil {
			return err
		}
		a.vault.Log.Info("another authority signs", "listener", a.of.Name)
	}
	a.next = next.cert
	a.vault.copyOut(a.of.Files.Cert, a.Pem)
	a.vault.copyOut(a.of.next().Files.Cert, a.next)
	return nil
}

func makeAuthority(of Listener, now time.Time) (p pairText, err error) {
	key, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		return p, err
	}
	serial, err := newSerial()
	if err != nil {
		return p, err
	}
	cert := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "Slipway " + of.title + " CA " + now.Format("2006-01-02 15:04")},
		// An hour in the past, because the clocks of machines that boot often run behind.
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(CAFor), IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, key.Public(), key)
	if err != nil {
		return p, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	return pairText{
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
	}, err
}

// newSerial draws 120 bits: RFC 5280 section 4.1.2.2 allows 20 octets, and nobody may guess the next one.
func newSerial() (*big.Int, error) {
	return rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
}

// Config returns the TLS settings of the boot listener. The first connection to an address has its certificate signed.
func (a *Authority) Config() *tls.Config {
	// No HTTP/2: boot loaders do not speak it.
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, GetCertificate: a.certificate}
}

func (a *Authority) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	local, err := netip.ParseAddrPort(hello.Conn.LocalAddr().String())
	if err != nil {
		return nil, err
	}
	// The address that the client connected to: boot loaders send no name (SNI) for an address.
	addr := local.Addr().Unmap().WithZone("")
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.issued[addr]; c != nil && time.Until(c.Leaf.NotAfter) > certFor/3 {
		return c, nil
	}
	// Under the lock: a key takes a moment to make, and a rack that boots must not make one for each machine.
	c, err := a.Issue(addr, time.Now())
	if err != nil {
		return nil, fmt.Errorf("issue a certificate for %s: %w", addr, err)
	}
	a.issued[addr] = c
	return c, nil
}

// hostNames are the names of this machine, by which people ask for the admin door.
func hostNames() []string {
	name, err := os.Hostname()
	if err != nil || inventory.CheckName("host", name) != nil {
		return nil
	}
	return []string{name}
}

// Issue signs a certificate for an address of ours, with a new key. It is valid from now on.
func (a *Authority) Issue(addr netip.Addr, now time.Time) (*tls.Certificate, error) {
	key, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		return nil, err
	}
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	cert := &x509.Certificate{
		// Boot loaders that know no address in a certificate compare the common name.
		SerialNumber: serial, Subject: pkix.Name{CommonName: addr.String()}, IPAddresses: []net.IP{addr.AsSlice()}, DNSNames: hostNames(),
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(certFor), BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, a.Cert, key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	return &tls.Certificate{Certificate: [][]byte{der, a.Cert.Raw}, PrivateKey: key, Leaf: leaf}, err
}

// Trusted returns what clients should trust: the certificate of the authority, and that of the next one if it is prepared.
func (a *Authority) Trusted() (cert *x509.Certificate, text []byte, isPrepared bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.Cert, slices.Concat(a.Pem, a.next), len(a.next) > 0
}

// CA returns the certificate of the authority in PEM.
func (a *Authority) CA() []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.Pem
}

// Prepare makes the next authority, unless there is one. It signs nothing yet: the admin first gives it to the clients.
func (a *Authority) Prepare(ctx context.Context, now time.Time) error {
	next := a.of.next()
	stored, err := a.vault.load(ctx, next.Name)
	if err == nil && stored.isNone() {
		var made pairText
		// It takes a moment, and so comes before the transaction.
		if made, err = makeAuthority(next, now); err == nil {
			_, err = a.vault.keep(ctx, next.Name, made, now)
		}
	}
	if err != nil {
		return err
	}
	return a.Look(ctx)
}

// Rotate puts the next authority in force, and deletes the former one with its key.
func (a *Authority) Rotate(ctx context.Context, now time.Time) error {
	err := a.vault.Store.Write(ctx, func(tx inventory.Tx) error {
		next := a.of.next().Name
		fresh, err := a.vault.find(tx, next)
		if err != nil {
			return err
		}
		if fresh.isNone() {
			return inventory.Errorf(inventory.Conflict, "no authority was prepared that could come after").
				WithHint("slipway tls rotate makes it; tell clients of it, then: slipway tls rotate --finish")
		}
		if err := a.vault.save(tx, a.of.Name, fresh, now); err != nil { // its key is sealed again, under the other name
			return err
		}
		return tx.DeleteSiteKey(next)
	})
	if err != nil {
		return err
	}
	a.vault.forget(a.of.Files)
	a.vault.forget(a.of.next().Files)
	return a.Look(ctx)
}
