package net_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
)

// issueOf returns the cause of an open issue of a type about the machine of an instance; "" if there is none.
func (a *appliance) issueOf(t *testing.T, kind, instance string) (cause string) {
	for i, err := range a.API.Issues.All(t.Context(), client.Query{}) {
		if err != nil {
			return err.Error()
		}
		if i.Type == kind && i.Instance == instance {
			cause = i.Cause
		}
	}
	return cause
}

// writeCertificate writes a certificate that ends in some days, and its key.
func writeCertificate(t *testing.T, path string, days int) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"slipway.example.org"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().AddDate(0, 0, days),
	}
	cert, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for end, b := range map[string]*pem.Block{".crt": {Type: "CERTIFICATE", Bytes: cert}, ".key": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(path+end, pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPostgreSQLAnInstanceTellsWhatIsWrongWithItsMachine breaks the machine of an instance that does not lead.
func TestPostgreSQLAnInstanceTellsWhatIsWrongWithItsMachine(t *testing.T) {
	both := newInstances(t, "a", "b")
	a, b := both[0], both[1]
	// A second wire, on which no machine boots: the instances reach each other without the network of machines.
	a.lab.Wire(a.Net.Server, "vp", b.Net.Server, "vp")
	a.lab.In(a.Net.Server, "ip", "addr", "add", "10.78.0.1/24", "dev", "vp")
	b.lab.In(b.Net.Server, "ip", "addr", "add", "10.78.0.2/24", "dev", "vp")
	cert := filepath.Join(a.lab.Dir, "admin")
	writeCertificate(t, cert, 20)
	b.Env = append(b.Env, adminTLSEnv+"="+cert)
	a.Start()
	b.follow(a)

	within(t, 12*time.Second, "the leader says that a certificate of b ends soon", func() (bool, string) {
		said := a.issueOf(t, inventory.IssueCertificate, "b")
		isOfB := strings.HasPrefix(said, "instance b: admin TLS: the certificate ends on ")
		return isOfB && a.issueOf(t, inventory.IssueCertificate, "a") == "", said
	})
	writeCertificate(t, cert, 300)
	says := func(want string) func() (bool, string) {
		return func() (bool, string) {
			said := a.issueOf(t, inventory.IssueInterface, "b")
			return said == want, said
		}
	}
	b.lab.In(b.Net.Server, "ip", "link", "set", "vs", "down")
	within(t, 12*time.Second, "the leader says that an interface of b is down", says("instance b: nobody is answered on interface vs: is down"))
	if said := a.issueOf(t, inventory.IssueInterface, "a"); said != "" {
		t.Errorf("the interface of a is well: %s", said)
	}
	// Whoever asks b reads of b, of the site, and of a.
	said, err := b.API.SelfCheck(t.Context())
	if err != nil {
		t.Error(err)
	}
	checked := func(instance string, isHere bool, name, status, detail string) {
		t.Helper()
		for _, k := range said.Items {
			if k.Instance == instance && k.IsHere == isHere && k.Name == name && k.Status == status && strings.Contains(k.Detail, detail) {
				return
			}
		}
		t.Errorf("no check says %s %s of instance %q: %+v", status, name, instance, said.Items)
	}
	checked("b", true, "interface vs", "error", "down")
	checked("a", false, "interface vs", "ok", "")
	checked("", false, "instances", "ok", "2 of 2 are alive; a has the engine")
	checked("b", true, "engine", "ok", "answers in")
	if about, err := b.API.About(t.Context()); err != nil || about.Instance != "b" {
		t.Errorf("b answers as %q: %v", about.Instance, err)
	}
	// The way of the link goes. The leader knows no better than that the interface is down.
	a.lab.In(a.Net.Server, "ip", "addr", "del", "10.78.0.1/24", "dev", "vp")
	cutOff := func() string {
		for i, err := range a.API.Instances.All(t.Context(), client.Query{}) {
			if err != nil || i.Name == "b" {
				return i.CutOff + errText(err)
			}
		}
		return "b is not listed"
	}
	within(t, 15*time.Second, "the leader says that b is cut off", func() (bool, string) {
		said := a.issueOf(t, inventory.IssueCutOff, "")
		return strings.HasPrefix(said, "instance b gets no answer from the instance with the engine since 2") && cutOff() != "", said + cutOff()
	})
	if ok, said := says("instance b: nobody is answered on interface vs: is down")(); !ok {
		t.Errorf("what was wrong with b is now %q", said)
	}
	// An address that is new tells the way.
	a.lab.In(a.Net.Server, "ip", "addr", "add", "10.78.0.9/24", "dev", "vp")
	within(t, 10*time.Second, "b finds the leader again", func() (bool, string) {
		said := cutOff()
		return said == "", said
	})
	b.lab.In(b.Net.Server, "ip", "link", "set", "vs", "up")
	within(t, 12*time.Second, "all is well", func() (bool, string) {
		said := a.issueOf(t, inventory.IssueInterface, "b") + a.issueOf(t, inventory.IssueCutOff, "") +
			a.issueOf(t, inventory.IssueCertificate, "b")
		return said == "", said
	})
}
