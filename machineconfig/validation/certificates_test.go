package validation

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/machineconfig"
)

// certificate returns a new certificate in PEM.
func certificate(t *testing.T, isCA bool) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: isCA, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func TestValidateReadsCertificates(t *testing.T) {
	ca := certificate(t, true)
	for _, c := range []struct{ name, text, want string }{
		{"an authority", ca, ""},
		{"a bundle", ca + certificate(t, true), ""},
		{"an authority with text after it", ca + "hello\n", "other text"},
		{"a server's certificate", certificate(t, false), "not the certificate of an authority"},
		{"nothing", "", "not a certificate"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Validate(&machineconfig.Config{Trust: machineconfig.Trust{CAs: []string{c.text}}})
			if c.want == "" && len(r) > 0 || c.want != "" && (len(r) != 1 || !strings.Contains(r[0].Message, c.want)) {
				t.Errorf("findings %v; want %q", r, c.want)
			}
		})
	}
}

func TestValidateWantsWholeSSHKeys(t *testing.T) {
	blob, err := base64.StdEncoding.DecodeString(strings.Fields(keyED)[1])
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range [][]byte{blob[:50], append(blob[:51:51], 0)} {
		c := &machineconfig.Config{Users: []machineconfig.User{{Name: "a", SSHKeys: []string{"ssh-ed25519 " + base64.StdEncoding.EncodeToString(b)}}}}
		if r := Validate(c); len(r) != 1 || !strings.Contains(r[0].Message, "not a complete") {
			t.Errorf("a key of %d bytes: findings %v", len(b), r)
		}
	}
}
