// Package peer is the link between the instances of one database: HTTP over TLS 1.3, in which both ends show the same certificate. Its key
// comes from secret.key: every process with that key is an instance, and no other. Each instance listens, and connects to others.
//
// The package carries requests and knows none of them. Package leader has the requests.
package peer

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// Identity is what all instances of one database show each other.
type Identity struct {
	certificate tls.Certificate
	pin         [sha256.Size]byte // of the public key
}

// NewIdentity makes the identity of a key of 32 bytes. The same key makes the same identity.
func NewIdentity(key []byte) (Identity, error) {
	if len(key) != ed25519.SeedSize {
		return Identity{}, fmt.Errorf("the key of the instances has %d bytes, and needs %d", len(key), ed25519.SeedSize)
	}
	private := ed25519.NewKeyFromSeed(key)
	// The peer compares the public key alone. So the certificate has no name, and no end: clocks of instances may be an hour apart.
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "instance of slipway"},
		NotBefore: time.Unix(0, 0).UTC(), NotAfter: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return Identity{}, fmt.Errorf("make the certificate of the instances: %w", err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return Identity{}, fmt.Errorf("make the certificate of the instances: %w", err)
	}
	return Identity{tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private, Leaf: leaf}, pinOf(leaf)}, nil
}

// Pin is the SHA-256 of the public key in hex, by which a machine without the key recognises an instance.
func (i Identity) Pin() string { return hex.EncodeToString(i.pin[:]) }

func pinOf(c *x509.Certificate) [sha256.Size]byte { return sha256.Sum256(c.RawSubjectPublicKeyInfo) }

// errStranger is why a handshake fails with anybody else.
var errStranger = errors.New("the other end has another key: secret.key must be the same on all instances")

// errGuestHTTP2 is why a handshake without a certificate fails. One connection of HTTP/2 has thousands of requests, and its other end says
// how much of each answer it takes. Whoever takes nothing would fill our memory with answers. The limits of package door are for
// connections, so strangers get one request at a time on each.
var errGuestHTTP2 = errors.New("only instances speak HTTP/2 here")

// IsStranger reports whether a call failed because somebody without the key has answered. Such a caller has sent nothing.
func IsStranger(err error) bool { return errors.Is(err, errStranger) }

// check accepts a connection whose other end has shown the key with this pin, and has proved that it has it: TLS 1.3 does that.
func check(pin [sha256.Size]byte, s tls.ConnectionState) error {
	if len(s.PeerCertificates) == 0 {
		return errStranger
	}
	theirs := pinOf(s.PeerCertificates[0])
	if subtle.ConstantTimeCompare(theirs[:], pin[:]) != 1 {
		return errStranger
	}
	return nil
}

// serverTLS is the side that listens. It also takes connections without a certificate: Server answers few of their requests.
func (i Identity) serverTLS() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{i.certificate}, ClientAuth: tls.RequestClientCert,
		NextProtos: []string{"h2", "http/1.1"},
		VerifyConnection: func(s tls.ConnectionState) error {
			switch {
			case len(s.PeerCertificates) > 0:
				return check(i.pin, s)
			case s.NegotiatedProtocol == "h2":
				return errGuestHTTP2
			}
			return nil
		},
	}
}

// clientTLS is the side that connects. It shows the certificate to nobody but an instance: TLS 1.3 sends it after the server's was checked.
func (i Identity) clientTLS() *tls.Config {
	c := pinnedTLS(i.pin)
	c.Certificates = []tls.Certificate{i.certificate}
	return c
}

// pinnedTLS checks nothing but the public key. A certificate of an authority would say less.
func pinnedTLS(pin [sha256.Size]byte) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, InsecureSkipVerify: true, //nolint:gosec // VerifyConnection checks the key
		VerifyConnection: func(s tls.ConnectionState) error { return check(pin, s) },
	}
}
