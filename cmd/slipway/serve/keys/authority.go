// Package keys owns the keys and certificates of the data directory. These are the key of the secrets, the two authorities
// of this Slipway, and the certificate of the admin listener. It never decides about access.
package keys

import (
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
	"strings"
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
)

// Authority is a certificate authority of Slipway's own for one listener over TLS. Each listener has another one: a stolen key
// of the boot listener signs nothing that clients of the admin listener trust. Keys are RSA, because boot loaders built before
// 2024 know no other kind.
type Authority struct {
	dir   string
	files Pair // in it

	mu     sync.Mutex
	Cert   *x509.Certificate
	key    crypto.Signer
	Pem    []byte
	issued map[netip.Addr]*tls.Certificate // in memory only: a restart signs new ones, and clients trust the authority
}

// The files of both authorities in the data directory. That of the boot listener was the first, so that its name says less.
var (
	BootCA  = Pair{"ca.crt", "ca.key"}
	AdminCA = Pair{"admin-ca.crt", "admin-ca.key"}
)

const (
	CAFor   = 10 * 365 * 24 * time.Hour // it is built into boot loaders, which nobody replaces often
	certFor = 90 * 24 * time.Hour       // a new one is signed when a third of this is left
	keyBits = 2048                      // the least that clients accept today
)

// OpenAuthority reads the authority of a data directory, which the first start makes.
func OpenAuthority(dir string, files Pair, now time.Time) (*Authority, error) {
	certPEM, err := os.ReadFile(filepath.Join(dir, files.Cert))
	if errors.Is(err, fs.ErrNotExist) {
		// Only a missing certificate makes a new one. A damaged one is an error below: a new authority would lock all
		// clients out.
		if err := makeAuthority(dir, files, now); err != nil {
			return nil, fmt.Errorf("make the certificate authority: %w", err)
		}
		certPEM, err = os.ReadFile(filepath.Join(dir, files.Cert))
	}
	if err != nil {
		return nil, fmt.Errorf("read the certificate authority: %w", err)
	}
	keyPEM, err := readKey(filepath.Join(dir, files.Key))
	if err != nil {
		return nil, fmt.Errorf("read the certificate authority: %w", err)
	}
	// This also finds a file that a crash or a full disk has cut short.
	both, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, inventory.Errorf(inventory.Invalid, "%s and %s in %s do not fit together: %v", files.Cert, files.Key, dir, err).
			WithHint("restore both, or delete both: machines that trust the old one then need the new one")
	}
	if now.After(both.Leaf.NotAfter) {
		return nil, inventory.Errorf(inventory.Invalid, "the certificate authority in %s ended on %s", dir, both.Leaf.NotAfter.Format(time.DateOnly)).
			WithHint("delete %s and %s there: the next start makes another, which clients and boot loaders have to trust", files.Cert, files.Key)
	}
	return &Authority{
		dir: dir, files: files, Cert: both.Leaf, key: both.PrivateKey.(crypto.Signer), Pem: certPEM,
		issued: map[netip.Addr]*tls.Certificate{},
	}, nil
}

func makeAuthority(dir string, files Pair, now time.Time) error {
	key, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		return err
	}
	serial, err := newSerial()
	if err != nil {
		return err
	}
	cert := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "Slipway " + map[bool]string{true: "admin", false: "site"}[strings.Contains(files.Cert, "admin")] + " CA " + now.Format("2006-01-02 15:04")},
		// An hour in the past, because the clocks of machines that boot often run behind.
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(CAFor), IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, key.Public(), key)
	if err != nil {
		return err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	// The key first: a start that was interrupted between the two makes both again.
	if err := os.WriteFile(filepath.Join(dir, files.Key), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, files.Cert), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644)
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

// next are the files of the authority that Prepare has made.
func (a *Authority) next() Pair { return Pair{"next-" + a.files.Cert, "next-" + a.files.Key} }

// Trusted returns what clients should trust: the certificate of the authority, and that of the next one if it is prepared.
func (a *Authority) Trusted() (cert *x509.Certificate, text []byte, isPrepared bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	next, err := os.ReadFile(filepath.Join(a.dir, a.next().Cert))
	if err != nil {
		return a.Cert, a.Pem, false
	}
	return a.Cert, append(slices.Clone(a.Pem), next...), true
}

// Prepare makes the next authority, unless there is one. It signs nothing yet: the admin first gives it to the clients.
func (a *Authority) Prepare(now time.Time) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, err := OpenAuthority(a.dir, a.next(), now)
	return err
}

// Rotate puts the next authority in force, and deletes the former one with its key.
func (a *Authority) Rotate(now time.Time) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	files := a.next()
	if _, err := os.Stat(filepath.Join(a.dir, files.Cert)); err != nil {
		return inventory.Errorf(inventory.Conflict, "no authority was prepared that could come after").WithHint("slipway tls rotate makes it; tell clients of it, then: slipway tls rotate --finish")
	}
	fresh, err := OpenAuthority(a.dir, files, now)
	if err != nil {
		return err
	}
	// A stop between the two leaves a key that does not fit, and a start that says what to restore.
	if err := os.Rename(filepath.Join(a.dir, files.Key), filepath.Join(a.dir, a.files.Key)); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(a.dir, files.Cert), filepath.Join(a.dir, a.files.Cert)); err != nil {
		return err
	}
	a.Cert, a.key, a.Pem, a.issued = fresh.Cert, fresh.key, fresh.Pem, fresh.issued
	return nil
}

// Pair names the files of a certificate and its key.
type Pair struct{ Cert, Key string }
