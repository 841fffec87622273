package kubeconfig

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// slowClock is how much slower than ours a cluster's clock may be.
const slowClock = time.Hour

// Access is whom a kubeconfig lets into which cluster, and for how long.
type Access struct {
	Cluster  string // what it is called in the file
	Endpoint string // host:port of its API server
	CA, Key  string // the cluster's authority and its key, PEM
	User     string // who it is to the cluster, and in its audit log
	Groups   []string
	For      time.Duration
}

// OwnFor is how long Slipway's own kubeconfig of a cluster that it makes is good for: as long as the authorities.
const OwnFor = 10 * 365 * 24 * time.Hour

// Admin is the access of an administrator to a cluster whose authorities Slipway has, as the files of
// /etc/kubernetes/pki.
func Admin(cluster, endpoint string, authorities map[string]string, user string, life time.Duration) Access {
	return Access{
		Cluster: cluster, Endpoint: endpoint, CA: authorities["ca.crt"], Key: authorities["ca.key"], User: user,
		Groups: []string{"system:masters"}, For: life,
	}
}

// Issue makes a key and a certificate for it, signed by the cluster's authority, and returns a kubeconfig with both.
func Issue(a Access, now time.Time) ([]byte, error) {
	authorities, err := certutil.ParseCertsPEM([]byte(a.CA))
	if err != nil {
		return nil, fmt.Errorf("read the authority of the cluster: %w", err)
	}
	ca := authorities[0]
	caKey, err := keyutil.ParsePrivateKeyPEM([]byte(a.Key))
	if err != nil {
		return nil, fmt.Errorf("read the key of the cluster's authority: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 63))
	if err != nil {
		return nil, fmt.Errorf("make a serial number: %w", err)
	}
	until := now.Add(a.For)
	if until.After(ca.NotAfter) {
		until = ca.NotAfter
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial.Add(serial, big.NewInt(1)), Subject: pkix.Name{CommonName: a.User, Organization: a.Groups},
		NotBefore: now.Add(-slowClock).UTC(), NotAfter: until.UTC(),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, ca, key.Public(), caKey)
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, fmt.Errorf("encode a key: %w", err)
	}
	text, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{a.Cluster: {
			Server: "https://" + a.Endpoint, CertificateAuthorityData: bytes.TrimSpace([]byte(a.CA)),
		}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{a.User: {
			ClientCertificateData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
			ClientKeyData:         keyPEM,
		}},
		Contexts:       map[string]*clientcmdapi.Context{a.Cluster: {Cluster: a.Cluster, AuthInfo: a.User}},
		CurrentContext: a.Cluster,
	})
	if err != nil {
		return nil, fmt.Errorf("write the kubeconfig: %w", err)
	}
	return text, nil
}
