package keys

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/system"
)

// instances returns the vaults of n instances with one key.
func instances(t *testing.T, s inventory.Store, n int) (all []*Vault) {
	t.Helper()
	key := started(t, s, t.TempDir())
	for range n {
		all = append(all, &Vault{Store: s, Box: key.Box, Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	}
	return all
}

func authority(t *testing.T, v *Vault, of Listener) *Authority {
	t.Helper()
	a, err := OpenAuthority(t.Context(), v, of, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func content(t *testing.T, v *Vault, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(v.Dir, name))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(text)
}

func put(t *testing.T, v *Vault, files Pair, p pairText) {
	t.Helper()
	for name, text := range map[string][]byte{files.Cert: p.cert, files.Key: p.key} {
		if err := os.WriteFile(filepath.Join(v.Dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func made(t *testing.T, of Listener) pairText {
	t.Helper()
	p, err := makeAuthority(of, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func sameAuthority(t *testing.T, open func(t *testing.T) inventory.Store) {
	s := open(t)
	all := instances(t, s, 3)
	found := make([]*Authority, len(all))
	var wait sync.WaitGroup
	for i, v := range all { // three first starts at once
		wait.Go(func() {
			a, err := OpenAuthority(t.Context(), v, BootCA, time.Now())
			if err != nil {
				t.Error(err)
			}
			found[i] = a
		})
	}
	wait.Wait()
	if t.Failed() {
		t.FailNow()
	}
	for i, a := range found {
		if !bytes.Equal(a.Pem, found[0].Pem) {
			t.Errorf("instance %d has another authority", i)
		}
		if content(t, all[i], "ca.crt") != string(a.Pem) || content(t, all[i], "ca.key") != "" {
			t.Errorf("instance %d has no copy of the certificate, or one of the key", i)
		}
	}
	if admin := authority(t, all[0], AdminCA); bytes.Equal(admin.Cert.Raw, found[0].Cert.Raw) {
		t.Error("the listeners share an authority")
	}
	// The name is in the seal: the key of one listener does not open in the place of another.
	err := s.Write(t.Context(), func(tx inventory.Tx) error {
		k, err := tx.FindSiteKey(AdminCA.Name)
		if err != nil {
			return err
		}
		k.Name = BootCA.Name
		return tx.SaveSiteKey(k)
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenAuthority(t.Context(), all[0], BootCA, time.Now()); !inventory.IsKind(err, inventory.Internal) {
		t.Errorf("the authority of another listener opens: %v", err)
	}
}

// nextAuthority: clients hear of the next authority before it signs anything, on every instance.
func nextAuthority(t *testing.T, open func(t *testing.T) inventory.Store) {
	all, now := instances(t, open(t), 2), time.Now()
	a, b := authority(t, all[0], AdminCA), authority(t, all[1], AdminCA)
	look := func() {
		t.Helper()
		if err := b.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Rotate(t.Context(), now); !inventory.IsKind(err, inventory.Conflict) {
		t.Errorf("it is replaced by one that nobody has heard of: %v", err)
	}
	for range 2 { // the second makes no other
		if err := a.Prepare(t.Context(), now); err != nil {
			t.Fatal(err)
		}
	}
	look()
	old, both, isPrepared := b.Trusted()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(both) || !isPrepared || bytes.Count(both, []byte("BEGIN CERTIFICATE")) != 2 {
		t.Fatalf("clients hear of %s", both)
	}
	if content(t, all[1], "next-admin-ca.crt") == "" || content(t, all[1], "next-admin-ca.key") != "" {
		t.Error("there is no copy of the next certificate, or one of its key")
	}
	signs := func(a *Authority, when string) {
		t.Helper()
		c, err := a.Issue(netip.MustParseAddr("10.0.0.1"), now)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Leaf.Verify(x509.VerifyOptions{Roots: roots}); err != nil {
			t.Errorf("%s: whoever trusts both does not trust what it signs: %v", when, err)
		}
	}
	signs(a, "before")
	if err := b.Rotate(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	if err := a.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	signs(a, "after, on the other instance")
	fresh, text, isPrepared := a.Trusted()
	if bytes.Equal(fresh.Raw, old.Raw) || isPrepared || bytes.Count(text, []byte("BEGIN CERTIFICATE")) != 1 {
		t.Error("the old one is still there")
	}
	if again := authority(t, all[1], AdminCA); !bytes.Equal(again.Cert.Raw, fresh.Raw) {
		t.Error("after a restart it is another")
	}
	if content(t, all[1], "admin-ca.crt") != string(text) || content(t, all[1], "next-admin-ca.crt") != "" {
		t.Error("the copies are old")
	}
}

// oldFiles starts on the files of an older version: those of the first instance become everybody's.
func oldFiles(t *testing.T, open func(t *testing.T) inventory.Store) {
	s := open(t)
	all := instances(t, s, 2)
	first, next, second := made(t, BootCA), made(t, BootCA), made(t, BootCA)
	put(t, all[0], BootCA.Files, first)
	put(t, all[0], BootCA.next().Files, next)
	put(t, all[1], BootCA.Files, second)
	a, b := authority(t, all[0], BootCA), authority(t, all[1], BootCA)
	if !bytes.Equal(a.Pem, first.cert) || !bytes.Equal(b.Pem, first.cert) {
		t.Fatal("the authority of the first instance is not that of both")
	}
	if _, text, isPrepared := b.Trusted(); !isPrepared || !bytes.Contains(text, next.cert) {
		t.Error("the one that comes after is lost")
	}
	for _, c := range []struct {
		v          *Vault
		name, want string
	}{
		{all[0], "ca.key", ""},
		{all[0], "ca.key.moved", string(first.key)},
		{all[0], "ca.crt.moved", string(first.cert)},
		{all[0], "next-ca.key", ""},
		{all[0], "next-ca.key.moved", string(next.key)},
		{all[1], "ca.key", ""},
		{all[1], "ca.key.unused", string(second.key)},
		{all[1], "ca.crt", string(first.cert)},
	} {
		if got := content(t, c.v, c.name); got != c.want {
			t.Errorf("%s has %q", c.name, got)
		}
	}

	// A backup of the older version is restored: its database has no authority.
	err := s.Write(t.Context(), func(tx inventory.Tx) error {
		if err := tx.DeleteSiteKey(BootCA.Name); err != nil {
			return err
		}
		return tx.DeleteSiteKey(BootCA.next().Name)
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = OpenAuthority(t.Context(), all[1], BootCA, time.Now())
	refused(t, err, inventory.Invalid, "the database has no authority for")
	if again := authority(t, all[0], BootCA); !bytes.Equal(again.Pem, first.cert) {
		t.Error("after a restore it is another")
	}
	if err := a.Rotate(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	if content(t, all[0], "ca.key.moved") != "" || content(t, all[0], "next-ca.key.moved") != "" {
		t.Error("the key of the former authority is still there")
	}
}

func damagedAuthority(t *testing.T, open func(t *testing.T) inventory.Store) {
	s := open(t)
	v := instances(t, s, 1)[0]
	p, other := made(t, BootCA), made(t, BootCA)
	put(t, v, BootCA.Files, pairText{p.cert, other.key})
	_, err := OpenAuthority(t.Context(), v, BootCA, time.Now())
	refused(t, err, inventory.Invalid, "do not fit together")
	put(t, v, BootCA.Files, pairText{p.cert, p.key[:100]})
	_, err = OpenAuthority(t.Context(), v, BootCA, time.Now())
	refused(t, err, inventory.Invalid, "do not fit together")
	put(t, v, BootCA.Files, p)
	authority(t, v, BootCA)
	if err := s.Write(t.Context(), func(tx inventory.Tx) error { return v.save(tx, BootCA.Name, pairText{p.cert, other.key}, time.Now()) }); err != nil {
		t.Fatal(err)
	}
	_, err = OpenAuthority(t.Context(), v, BootCA, time.Now())
	refused(t, err, inventory.Invalid, "is damaged")
	// After ten years the server still starts: only then can an admin make another one.
	if err := s.Write(t.Context(), func(tx inventory.Tx) error { return v.save(tx, BootCA.Name, p, time.Now()) }); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenAuthority(t.Context(), v, BootCA, time.Now().Add(CAFor+time.Hour)); err != nil {
		t.Error(err)
	}
}

func sameUpload(t *testing.T, open func(t *testing.T) inventory.Store) {
	all := instances(t, open(t), 2)
	old, fresh := named(t, "old.example"), named(t, "new.example")
	put(t, all[0], oldUpload, old)
	var doors []*AdminTLS
	for _, v := range all {
		d := &AdminTLS{Vault: v, Site: authority(t, v, AdminCA), Now: time.Now, Log: v.Log}
		if err := d.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		doors = append(doors, d)
	}
	want := func(when, from, name string) {
		t.Helper()
		for i, d := range doors {
			if err := d.Follow(t.Context()); err != nil {
				t.Fatal(err)
			}
			if s := d.TLSState(); s.From != from || name != "" && (len(s.Names) != 1 || s.Names[0] != name) {
				t.Errorf("%s, instance %d has %s %v", when, i, s.From, s.Names)
			}
		}
	}
	want("from old files", system.TLSUploaded, "old.example")
	if content(t, all[0], "admin.key") != "" {
		t.Error("the key is still in the data directory")
	}
	if err := doors[1].SetTLS(t.Context(), fresh.cert, fresh.key); err != nil {
		t.Fatal(err)
	}
	want("after an upload", system.TLSUploaded, "new.example")
	if err := doors[0].DropTLS(t.Context()); err != nil {
		t.Fatal(err)
	}
	want("after it was taken away", system.TLSSite, "")
	if content(t, all[0], "admin.key.moved") != "" {
		t.Error("the key of an older version is still there")
	}
}

// named makes a certificate for a name, signed by itself.
func named(t *testing.T, name string) pairText {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(90 * 24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pairText{
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
	}
}
