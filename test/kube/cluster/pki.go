package cluster

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// pki is the certificate authority of a cluster.
type pki struct {
	ca    *x509.Certificate
	key   crypto.Signer
	caPEM []byte
}

// newPKI makes a certificate authority and the server's certificate, and writes what the programs read.
func newPKI(t testing.TB, dir string) *pki {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: serial(t), Subject: pkix.Name{CommonName: "test-ca"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(t, err)
	ca, err := x509.ParseCertificate(der)
	must(t, err)
	p := &pki{ca: ca, key: key, caPEM: encode("CERTIFICATE", der)}
	server, err := rsa.GenerateKey(rand.Reader, 2048) // signs service account tokens too
	must(t, err)
	crt := p.issue(t, &x509.Certificate{
		Subject:  pkix.Name{CommonName: "kube-apiserver"},
		DNSNames: []string{"localhost", "kubernetes.default.svc"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, server.Public())
	for name, text := range map[string][]byte{
		"ca.crt": p.caPEM, "ca.key": encodeKey(t, key), "server.crt": crt, "server.key": encodeKey(t, server),
	} {
		must(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	return p
}

// client returns a certificate and key for a user.
func (p *pki) client(t testing.TB, user string, groups []string) (cert, key []byte) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	cert = p.issue(t, &x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, k.Public())
	return cert, encodeKey(t, k)
}

func (p *pki) issue(t testing.TB, template *x509.Certificate, key crypto.PublicKey) []byte {
	t.Helper()
	template.SerialNumber, template.KeyUsage = serial(t), x509.KeyUsageDigitalSignature|x509.KeyUsageKeyEncipherment
	template.NotBefore, template.NotAfter = p.ca.NotBefore, p.ca.NotAfter
	der, err := x509.CreateCertificate(rand.Reader, template, p.ca, key, p.key)
	must(t, err)
	return encode("CERTIFICATE", der)
}

func serial(t testing.TB) *big.Int {
	t.Helper()
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	must(t, err)
	return n
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func encodeKey(t testing.TB, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	return encode("PRIVATE KEY", der)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
