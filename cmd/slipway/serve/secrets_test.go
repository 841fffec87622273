package serve

import (
	"bytes"
	"crypto/x509"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"slipway.dev/slipway/cmd/slipway/serve/keys"
)

func TestTheAuthorityOutlivesARestart(t *testing.T) {
	dir := t.TempDir()
	now := time.Now()
	first, err := keys.OpenAuthority(dir, keys.BootCA, now)
	if err != nil {
		t.Fatal(err)
	}
	second, err := keys.OpenAuthority(dir, keys.BootCA, now)
	if err != nil || string(second.Pem) != string(first.Pem) {
		t.Errorf("another authority after a restart: %v", err)
	}
	if _, err := keys.OpenAuthority(dir, keys.BootCA, now.Add(keys.CAFor+time.Hour)); err == nil {
		t.Error("an authority that has ended is used")
	}
}

// TestAnAuthorityIsReplacedWithoutASurprise: clients are told of the one that comes after before it signs anything, and the doors do
// not share one.
func TestAnAuthorityIsReplacedWithoutASurprise(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	admin, err := keys.OpenAuthority(dir, keys.AdminCA, now)
	if err != nil {
		t.Fatal(err)
	}
	boot, err := keys.OpenAuthority(dir, keys.BootCA, now)
	if err != nil || bytes.Equal(boot.Cert.Raw, admin.Cert.Raw) {
		t.Fatalf("the doors share an authority, or %v", err)
	}
	if err := admin.Rotate(now); err == nil {
		t.Error("it is replaced by one that nobody was told of")
	}
	for range 2 { // the second makes no other
		if err := admin.Prepare(now); err != nil {
			t.Fatal(err)
		}
	}
	old, both, isPrepared := admin.Trusted()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(both) || !isPrepared || bytes.Count(both, []byte("BEGIN CERTIFICATE")) != 2 {
		t.Fatalf("clients are told of %s", both)
	}
	signs := func(when string) {
		t.Helper()
		c, err := admin.Issue(netip.MustParseAddr("10.0.0.1"), now)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Leaf.Verify(x509.VerifyOptions{Roots: roots}); err != nil {
			t.Errorf("%s: whoever trusts both does not trust what it signs: %v", when, err)
		}
	}
	signs("before")
	if err := admin.Rotate(now); err != nil {
		t.Fatal(err)
	}
	signs("after")
	fresh, text, isPrepared := admin.Trusted()
	if bytes.Equal(fresh.Raw, old.Raw) || isPrepared || bytes.Count(text, []byte("BEGIN CERTIFICATE")) != 1 {
		t.Error("the old one is still there")
	}
	again, err := keys.OpenAuthority(dir, keys.AdminCA, now)
	if err != nil || !bytes.Equal(again.Cert.Raw, fresh.Raw) {
		t.Errorf("after a restart it is another: %v", err)
	}
	if info, err := os.Stat(filepath.Join(dir, keys.AdminCA.Key)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key: %v, %v", info.Mode(), err)
	}
}
