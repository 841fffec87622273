package inventory

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"
)

func TestLayerKeysReadAsTheyAreWritten(t *testing.T) {
	for _, l := range []Layer{
		{Scope: ScopeGlobal},
		{Scope: ScopeSite, Name: "fra1"},
		{Scope: ScopeRack, Name: "r1/left"},
		{Scope: ScopeHost, Name: "0193-1"},
	} {
		scope, name, err := ParseLayerKey(l.Key())
		if err != nil || scope != l.Scope || name != l.Name {
			t.Errorf("%s was read as %s %q, %v", l.Key(), scope, name, err)
		}
	}
	for _, key := range []string{"", "global/x", "site", "rack/", "row/1", "host"} {
		_, _, err := ParseLayerKey(key)
		wantKind(t, err, Invalid, "layer")
	}
}

func TestALayerHoldsTextThatParsersMaySee(t *testing.T) {
	for what, text := range map[string]string{
		"bytes of text": strings.Repeat("x", MaxConfigBytes+1), "not UTF-8": "\xff", "NUL": "a\x00b",
	} {
		l := Layer{Scope: ScopeGlobal, Config: text}
		wantKind(t, l.Validate(), Invalid, what)
		p := Profile{Name: "web", Image: "i", Document: &Document{Format: DocButane, Text: text}}
		wantKind(t, p.Validate(), Invalid, what)
		p = Profile{Name: "web", Image: "i", Config: text}
		wantKind(t, p.Validate(), Invalid, what)
	}
	p := Profile{Name: "web", Image: "i", Document: &Document{Format: "word"}}
	wantKind(t, p.Validate(), Invalid, `"word" is not a format`)
	p = Profile{Name: "web", Image: "i", Extends: "web"}
	wantKind(t, p.Validate(), Invalid, "extends itself")
}

func TestJoinTargetsAreChecked(t *testing.T) {
	ca := certificate(t)
	good := func() JoinTarget {
		return JoinTarget{
			Name: "prod", Endpoint: "10.0.0.9:6443", Kubernetes: "1.35.0", CA: ca + "\n" + ca, Kubeconfig: "admin",
			TokenFor: Duration(time.Hour), VIPInterface: "eno1.100", PodCIDR: "10.244.0.0/16,fd00::/56", ServiceCIDR: "10.96.0.0/12",
		}
	}
	for _, change := range []func(*JoinTarget){
		func(*JoinTarget) {},
		func(t *JoinTarget) { t.Endpoint = "[fd00::9]:6443" },
		func(t *JoinTarget) { t.Endpoint, t.CA, t.Kubernetes, t.TokenFor = "k8s.example.com:443", "", "", 0 },
		func(t *JoinTarget) { t.Kubernetes = "1.35.0+k3s1" },
	} {
		j := good()
		change(&j)
		if err := j.Validate(); err != nil {
			t.Errorf("%+v: %v", j, err)
		}
	}
	for words, change := range map[string]func(*JoinTarget){
		"not a name for a target":         func(t *JoinTarget) { t.Name = "Prod" },
		"not an endpoint":                 func(t *JoinTarget) { t.Endpoint = "10.0.0.9" },
		`"https://k:6443" is not`:         func(t *JoinTarget) { t.Endpoint = "https://k:6443" },
		`"k:0" is not`:                    func(t *JoinTarget) { t.Endpoint = "k:0" },
		"not a version":                   func(t *JoinTarget) { t.Kubernetes = "v1.35.0" },
		"not a list of certificates":      func(t *JoinTarget) { t.CA = "-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n" },
		"its CA is not":                   func(t *JoinTarget) { t.CA = ca + "and more" },
		"cannot be read":                  func(t *JoinTarget) { t.CA = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n" },
		"not a name for a secret":         func(t *JoinTarget) { t.PKI = "a b" },
		"lives 48h":                       func(t *JoinTarget) { t.TokenFor = Duration(48 * time.Hour) },
		"lives 1s":                        func(t *JoinTarget) { t.TokenFor = Duration(time.Second) },
		"not a network interface":         func(t *JoinTarget) { t.VIPInterface = "eno1 up" },
		`"10.96.0.0" is not a network`:    func(t *JoinTarget) { t.ServiceCIDR = "10.96.0.0" },
		`"fd00::/56" is not a network`:    func(t *JoinTarget) { t.PodCIDR = "10.0.0.0/8, fd00::/56" },
		"vipImage has a control":          func(t *JoinTarget) { t.VIPImage = "a\x01" },
		"is not a name for a secret":      func(t *JoinTarget) { t.CertificateKey = "-" },
		"\"user@k:6443\" is not an endpo": func(t *JoinTarget) { t.Endpoint = "user@k:6443" },
	} {
		j := good()
		change(&j)
		wantKind(t, j.Validate(), Invalid, words)
	}
}

func certificate(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1)}, &x509.Certificate{SerialNumber: big.NewInt(1)}, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func TestASecretIsNamedAndDescribed(t *testing.T) {
	s := Secret{Name: "db-password", About: "of the database"}
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
	s.Name = "DB"
	wantKind(t, s.Validate(), Invalid, "not a name for a secret")
	s.Name, s.About = "db", "a\x00"
	wantKind(t, s.Validate(), Invalid, "secret db: about")
}
