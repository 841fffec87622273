package kubeconfig

import (
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/machineconfig/kubeadm"
)

func TestAnIssuedKubeconfigIsOfTheClustersAuthority(t *testing.T) {
	now := time.Date(2026, 11, 23, 4, 0, 0, 0, time.UTC)
	files, err := kubeadm.NewPKI(now, nil)
	if err != nil {
		t.Fatal(err)
	}
	a := Access{Cluster: "lab", Endpoint: "10.0.0.9:6443", CA: files["ca.crt"], Key: files["ca.key"], User: "slipway:ann", Groups: []string{"system:masters"}, For: time.Hour}
	text, err := Issue(a, now)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := Parse("it", text)
	if err != nil || cfg.Host != "https://10.0.0.9:6443" || strings.TrimSpace(string(cfg.CAData)) != strings.TrimSpace(files["ca.crt"]) {
		t.Fatalf("%+v, %v", cfg, err)
	}
	block, _ := pem.Decode(cfg.CertData)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(files["ca.crt"]))
	for _, at := range []time.Time{now.Add(-30 * time.Minute), now.Add(59 * time.Minute)} {
		if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
			t.Errorf("at %s: %v", at, err)
		}
	}
	if cert.NotAfter != now.Add(time.Hour) || cert.Subject.CommonName != "slipway:ann" || len(cert.Subject.Organization) != 1 || cert.Subject.Organization[0] != "system:masters" {
		t.Errorf("until %s for %s", cert.NotAfter, cert.Subject)
	}
	a.For = 100 * 365 * 24 * time.Hour
	if text, err = Issue(a, now); err != nil {
		t.Fatal(err)
	}
	if cfg, err = Parse("it", text); err != nil {
		t.Fatal(err)
	}
	block, _ = pem.Decode(cfg.CertData)
	if cert, err = x509.ParseCertificate(block.Bytes); err != nil || cert.NotAfter.After(now.AddDate(10, 0, 1)) {
		t.Errorf("it outlives the authority: %s, %v", cert.NotAfter, err)
	}
	a.Key = "no key"
	if _, err := Issue(a, now); err == nil {
		t.Error("issued without a key")
	}
}
