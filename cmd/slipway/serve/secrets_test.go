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
	"slipway.dev/slipway/inventory/secret"
)

func TestTheKeyOfTheSecretsIsKeptAndGuarded(t *testing.T) {
	dir := t.TempDir()
	box, reports, err := keys.OpenBox(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, keys.KeyFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the key file: %v %v", info, err)
	}
	sealed, err := box.Seal("x", []byte("value"))
	if err != nil {
		t.Fatal(err)
	}
	opens := func(b *secret.Box) bool {
		plain, err := b.Open("x", sealed)
		return err == nil && string(plain) == "value"
	}
	again, sameReports, err := keys.OpenBox(dir, 1)
	if err != nil || !opens(again) || string(sameReports) != string(reports) {
		t.Errorf("the next start: %v", err)
	}
	credentials := t.TempDir()
	text, err := os.ReadFile(filepath.Join(dir, keys.KeyFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(credentials, keys.KeyCred), text, 0o400); err != nil {
		t.Fatal(err)
	}
	t.Run("as a systemd credential", func(t *testing.T) {
		t.Setenv("CREDENTIALS_DIRECTORY", credentials)
		other := t.TempDir()
		if b, _, err := keys.OpenBox(other, 1); err != nil || !opens(b) {
			t.Errorf("%v", err)
		}
		if _, err := os.Stat(filepath.Join(other, keys.KeyFile)); err == nil {
			t.Error("a key file was made beside it")
		}
	})
	for name, spoil := range map[string]func(path string) error{
		"missing, with secrets stored": os.Remove,
		"readable by others":           func(path string) error { return os.Chmod(path, 0o640) },
		"no key":                       func(path string) error { return os.WriteFile(path, []byte("no key"), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, keys.KeyFile)
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := spoil(path); err != nil {
				t.Fatal(err)
			}
			if _, _, err := keys.OpenBox(dir, 1); err == nil {
				t.Error("it starts all the same")
			}
		})
	}
}

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
