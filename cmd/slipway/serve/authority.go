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
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
)

// authority is this site's own certificate authority: it signs the certificates of the boot door and of the admin
// door over TLS, and nothing else. Keys are RSA: boot loaders built before 2024 know nothing else.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
	pem  []byte

	mu     sync.Mutex
	issued map[netip.Addr]*tls.Certificate
}

const (
	caCert, caKey = "ca.crt", "ca.key" // in the data directory
	caFor         = 10 * 365 * 24 * time.Hour
	certFor       = 90 * 24 * time.Hour
	keyBits       = 2048
)

// openAuthority reads the authority of a data directory, which the first start makes.
func openAuthority(dir string, now time.Time) (*authority, error) {
	certPEM, err := os.ReadFile(filepath.Join(dir, caCert))
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeAuthority(dir, now); err != nil {
			return nil, fmt.Errorf("make the certificate authority: %w", err)
		}
		certPEM, err = os.ReadFile(filepath.Join(dir, caCert))
	}
	if err != nil {
		return nil, fmt.Errorf("read the certificate authority: %w", err)
	}
	keyPEM, err := readKey(filepath.Join(dir, caKey))
	if err != nil {
		return nil, fmt.Errorf("read the certificate authority: %w", err)
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, inventory.Errorf(inventory.Invalid, "%s and %s in %s do not fit together: %v", caCert, caKey, dir, err).
			WithHint("restore both, or delete both: machines that trust the old one then have to be told of the new one")
	}
	if now.After(pair.Leaf.NotAfter) {
		return nil, inventory.Errorf(inventory.Invalid, "the certificate authority in %s ended on %s", dir, pair.Leaf.NotAfter.Format(time.DateOnly)).
			WithHint("delete %s and %s there: the next start makes another, which boot loaders have to be built with", caCert, caKey)
	}
	return &authority{cert: pair.Leaf, key: pair.PrivateKey.(crypto.Signer), pem: certPEM, issued: map[netip.Addr]*tls.Certificate{}}, nil
}

func makeAuthority(dir string, now time.Time) error {
	key, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		return err
	}
	serial, err := newSerial()
	if err != nil {
		return err
	}
	cert := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "Slipway site CA " + now.Format("2006-01-02 15:04")},
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
	if err := os.WriteFile(filepath.Join(dir, caKey), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, caCert), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644)
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
