package sigdb

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"math/big"
	"strings"
	"testing"
	"time"
)

// authority makes a certificate with a name.
func authority(t testing.TB, name string) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Date(2011, 6, 27, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2026, 6, 27, 0, 0, 0, 0, time.UTC),
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// list writes an EFI_SIGNATURE_LIST of signatures of one size.
func list(kind []byte, sigs ...[]byte) []byte {
	each := len(sigs[0]) + 16
	b := append([]byte{}, kind...)
	b = binary.LittleEndian.AppendUint32(b, uint32(28+each*len(sigs)))
	b = binary.LittleEndian.AppendUint32(b, 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(each))
	for _, s := range sigs {
		b = append(append(b, make([]byte, 16)...), s...)
	}
	return b
}

func TestADatabaseTellsWhomTheFirmwareTrusts(t *testing.T) {
	old, young, windows := authority(t, "Microsoft Corporation UEFI CA 2011"), authority(t, "Microsoft UEFI CA 2023"), authority(t, "Microsoft Windows Production PCA 2011")
	sha256 := list(make([]byte, 16), make([]byte, 32), make([]byte, 32))
	join := func(parts ...[]byte) (b []byte) {
		for _, p := range parts {
			b = append(b, p...)
		}
		return b
	}
	for _, c := range []struct {
		name    string
		db, dbx []byte
		want    string
	}{
		{"both", join(list(certX509, old), sha256, list(certX509, young)), sha256, "Microsoft Corporation UEFI CA 2011, Microsoft UEFI CA 2023"},
		{"one of them revoked", join(list(certX509, old), list(certX509, windows)), list(certX509, windows), "Microsoft Corporation UEFI CA 2011"},
		{"cut short", join(list(certX509, old), list(certX509, young)[:200]), nil, "Microsoft Corporation UEFI CA 2011"},
		{"no certificate", sha256, nil, ""},
		{"not there", nil, nil, ""},
		{"a certificate that is none", list(certX509, []byte("no certificate")), nil, ""},
	} {
		var names []string
		for _, x := range Trusted(c.db, c.dbx) {
			names = append(names, x.Name)
			if x.EndsAt.Year() != 2026 {
				t.Errorf("%s ends %s", x.Name, x.EndsAt)
			}
		}
		if got := strings.Join(names, ", "); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func FuzzCertificates(f *testing.F) {
	f.Add(list(certX509, authority(f, "x")))
	f.Add(list(make([]byte, 16), make([]byte, 32)))
	f.Fuzz(func(t *testing.T, b []byte) {
		if n := len(Certificates(b)); n > maxCertificates {
			t.Fatalf("%d certificates", n)
		}
	})
}
