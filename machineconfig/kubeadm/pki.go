package kubeadm

import (
	"cmp"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
)

// How long authorities live, and how much slower than ours a machine's clock may be.
const (
	yearsOfCA = 10
	slowClock = time.Hour
)

// PKIFiles are the keys of a PKI secret: the files of a kubeadm cluster's authorities, with etcd- for its folder etcd.
func PKIFiles() []string {
	return []string{
		"ca.crt", "ca.key", "etcd-ca.crt", "etcd-ca.key",
		"front-proxy-ca.crt", "front-proxy-ca.key", "sa.key", "sa.pub",
	}
}

// pkiPath is the path of a file below /etc/kubernetes/pki.
func pkiPath(name string) string {
	if rest, ok := strings.CutPrefix(name, "etcd-"); ok {
		return "etcd/" + rest
	}
	return name
}

// NewPKI makes the authorities of a new cluster, valid for ten years: RSA, as every kubeadm makes them, under the keys
// of PKIFiles. random is crypto/rand's Reader when nil.
func NewPKI(now time.Time, random io.Reader) (map[string]string, error) {
	random = cmp.Or(random, rand.Reader)
	out := map[string]string{}
	for file, name := range map[string]string{"ca": "kubernetes", "etcd-ca": "etcd-ca", "front-proxy-ca": "front-proxy-ca"} {
		key, err := rsa.GenerateKey(random, 2048)
		if err != nil {
			return nil, fmt.Errorf("make key of %s: %w", file, err)
		}
		der, err := newCA(name, key, now, random)
		if err != nil {
			return nil, fmt.Errorf("make certificate of %s: %w", file, err)
		}
		out[file+".crt"] = encodePEM("CERTIFICATE", der)
		out[file+".key"] = encodePEM("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key))
	}
	sa, err := rsa.GenerateKey(random, 2048)
	if err != nil {
		return nil, fmt.Errorf("make key of service accounts: %w", err)
	}
	pub, err := x509.MarshalPKIXPublicKey(&sa.PublicKey)
	if err != nil {
		return nil, fmt.Errorf("encode key of service accounts: %w", err)
	}
	out["sa.key"] = encodePEM("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(sa))
	out["sa.pub"] = encodePEM("PUBLIC KEY", pub)
	return out, nil
}

func newCA(name string, key *rsa.PrivateKey, now time.Time, random io.Reader) ([]byte, error) {
	serial, err := rand.Int(random, new(big.Int).Lsh(big.NewInt(1), 63))
	if err != nil {
		return nil, err
	}
	t := &x509.Certificate{
		SerialNumber:          serial.Add(serial, big.NewInt(1)),
		Subject:               pkix.Name{CommonName: name},
		DNSNames:              []string{name},
		NotBefore:             now.Add(-slowClock).UTC(),
		NotAfter:              now.AddDate(yearsOfCA, 0, 0).UTC(),
		KeyUsage:              x509.KeyUsageKeyEncipherment | x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	return x509.CreateCertificate(random, t, t, key.Public(), key)
}

func encodePEM(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// CAHash returns what kubeadm calls the hash of a CA certificate: sha256 over its public key.
func CAHash(certificate string) (string, error) {
	block, _ := pem.Decode([]byte(certificate))
	if block == nil || block.Type != "CERTIFICATE" {
		return "", inventory.Errorf(inventory.Invalid, "the cluster's CA is not a PEM certificate").WithHint("paste /etc/kubernetes/pki/ca.crt of a control plane")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return "", inventory.Errorf(inventory.Invalid, "the cluster's CA cannot be read: %v", err).WithHint("paste /etc/kubernetes/pki/ca.crt of a control plane")
	}
	if !cert.IsCA {
		return "", inventory.Errorf(inventory.Invalid, "the certificate of %s is not one of an authority", inventory.Clean(cert.Subject.CommonName, 60)).
			WithHint("paste /etc/kubernetes/pki/ca.crt of a control plane, not a server's certificate")
	}
	sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}
