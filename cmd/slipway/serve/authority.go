package serve

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

// authority is a certificate authority of this site's own for one door over TLS, and for nothing else: whoever has got hold of
// that of the boot door is not believed at the admin door. Keys are RSA: boot loaders built before 2024 know nothing else.
type authority struct {
	dir   string
	files pair // in it

	mu     sync.Mutex
	cert   *x509.Certificate
	key    crypto.Signer
	pem    []byte
	issued map[netip.Addr]*tls.Certificate
}

// The files of both authorities in the data directory. That of the boot door has its name from when it was the only one.
var (
	bootCA  = pair{"ca.crt", "ca.key"}
	adminCA = pair{"admin-ca.crt", "admin-ca.key"}
)

const (
	caFor   = 10 * 365 * 24 * time.Hour
	certFor = 90 * 24 * time.Hour
	keyBits = 2048
)

// openAuthority reads the authority of a data directory, which the first start makes.
func openAuthority(dir string, files pair, now time.Time) (*authority, error) {
	certPEM, err := os.ReadFile(filepath.Join(dir, files.cert))
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeAuthority(dir, files, now); err != nil {
			return nil, fmt.Errorf("make the certificate authority: %w", err)
		}
		certPEM, err = os.ReadFile(filepath.Join(dir, files.cert))
	}
	if err != nil {
		return nil, fmt.Errorf("read the certificate authority: %w", err)
	}
	keyPEM, err := readKey(filepath.Join(dir, files.key))
	if err != nil {
		return nil, fmt.Errorf("read the certificate authority: %w", err)
	}
	both, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, inventory.Errorf(inventory.Invalid, "%s and %s in %s do not fit together: %v", files.cert, files.key, dir, err).
			WithHint("restore both, or delete both: machines that trust the old one then need the new one")
	}
	if now.After(both.Leaf.NotAfter) {
		return nil, inventory.Errorf(inventory.Invalid, "the certificate authority in %s ended on %s", dir, both.Leaf.NotAfter.Format(time.DateOnly)).
			WithHint("delete %s and %s there: the next start makes another, which clients and boot loaders have to trust", files.cert, files.key)
	}
	return &authority{dir: dir, files: files, cert: both.Leaf, key: both.PrivateKey.(crypto.Signer), pem: certPEM, issued: map[netip.Addr]*tls.Certificate{}}, nil
}

func makeAuthority(dir string, files pair, now time.Time) error {
	key, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		return err
	}
	serial, err := newSerial()
	if err != nil {
		return err
	}
	cert := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "Slipway " + map[bool]string{true: "admin", false: "site"}[strings.Contains(files.cert, "admin")] + " CA " + now.Format("2006-01-02 15:04")},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(caFor), IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
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
	if err := os.WriteFile(filepath.Join(dir, files.key), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, files.cert), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644)
}

func newSerial() (*big.Int, error) {
	return rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
}

// config is what the boot door needs: for each address of ours a certificate, made when it is asked for first.
func (a *authority) config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, GetCertificate: a.certificate}
}

func (a *authority) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	local, err := netip.ParseAddrPort(hello.Conn.LocalAddr().String())
	if err != nil {
		return nil, err
	}
	addr := local.Addr().Unmap().WithZone("")
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.issued[addr]; c != nil && time.Until(c.Leaf.NotAfter) > certFor/3 {
		return c, nil
	}
	c, err := a.issue(addr, time.Now())
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

func (a *authority) issue(addr netip.Addr, now time.Time) (*tls.Certificate, error) {
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
	der, err := x509.CreateCertificate(rand.Reader, cert, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	return &tls.Certificate{Certificate: [][]byte{der, a.cert.Raw}, PrivateKey: key, Leaf: leaf}, err
}

// next are the files of the authority that comes after.
func (a *authority) next() pair { return pair{"next-" + a.files.cert, "next-" + a.files.key} }

// trusted is what clients should trust: the certificate of the authority, and of the one that comes after where there is one.
func (a *authority) trusted() (cert *x509.Certificate, text []byte, isPrepared bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	next, err := os.ReadFile(filepath.Join(a.dir, a.next().cert))
	if err != nil {
		return a.cert, a.pem, false
	}
	return a.cert, append(slices.Clone(a.pem), next...), true
}

// prepare makes the authority that comes after, unless there is one. It signs nothing yet: clients are told of it first.
func (a *authority) prepare(now time.Time) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, err := openAuthority(a.dir, a.next(), now)
	return err
}

// rotate puts the authority that comes after in force. The one before is thrown away with its key.
func (a *authority) rotate(now time.Time) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	files := a.next()
	if _, err := os.Stat(filepath.Join(a.dir, files.cert)); err != nil {
		return inventory.Errorf(inventory.Conflict, "no authority was prepared that could come after").WithHint("slipway tls rotate makes it; tell clients of it, then: slipway tls rotate --finish")
	}
	fresh, err := openAuthority(a.dir, files, now)
	if err != nil {
		return err
	}
	// A stop between the two leaves a key that does not fit, and a start that says what to restore.
	if err := os.Rename(filepath.Join(a.dir, files.key), filepath.Join(a.dir, a.files.key)); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(a.dir, files.cert), filepath.Join(a.dir, a.files.cert)); err != nil {
		return err
	}
	a.cert, a.key, a.pem, a.issued = fresh.cert, fresh.key, fresh.pem, fresh.issued
	return nil
}

// rotateAuthority prepares or puts in force the authority that comes after that of a door.
func (a *appliance) rotateAuthority(door string, isFinish bool) error {
	of := a.authority
	if door == "admin" && a.tls != nil {
		of = a.tls.site
	} else if door == "admin" {
		of = nil
	}
	switch {
	case of == nil:
		return inventory.Errorf(inventory.Conflict, "the %s listener speaks without TLS", door).WithHint("--admin-listen beyond loopback or --boot-tls-port make it speak TLS")
	case isFinish:
		return of.rotate(time.Now())
	}
	return of.prepare(time.Now())
}
