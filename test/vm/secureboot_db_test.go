package vm

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/pem"
	"maps"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/images"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/sigdb"
	"slipway.dev/slipway/web/client"
)

// authority is a certificate that firmware may trust, and a key that it has signed.
type authority struct {
	der       []byte
	key, cert string // of who signs, as files
}

// newAuthority makes an authority of ours with the name of Microsoft's.
func newAuthority(t *testing.T, name string) authority {
	t.Helper()
	dir := t.TempDir()
	at := authority{key: filepath.Join(dir, "key.pem"), cert: filepath.Join(dir, "cert.pem")}
	template := func(name string, serial int64, isCA bool) *x509.Certificate {
		return &x509.Certificate{
			SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name}, IsCA: isCA, BasicConstraintsValid: true,
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
		}
	}
	caKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ca := template(name, 1, true)
	if at.der, err = x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey); err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.CreateCertificate(rand.Reader, template("Signer of "+name, 2, false), ca, key.Public(), caKey)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{at.key: {Type: "PRIVATE KEY", Bytes: private}, at.cert: {Type: "CERTIFICATE", Bytes: leaf}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return at
}

func (a authority) sign(t *testing.T, from, to string) {
	t.Helper()
	if out, err := exec.Command("sbsign", "--key", a.key, "--cert", a.cert, "--output", to, from).CombinedOutput(); err != nil {
		t.Fatalf("sign %s: %v: %s", from, err, out)
	}
}

// database is db as firmware keeps it: one list for each certificate (UEFI 32.4.1).
func database(certs ...[]byte) (b []byte) {
	kind := []byte{0xa1, 0x59, 0xc0, 0xa5, 0xe4, 0x94, 0xa7, 0x4a, 0x87, 0xb5, 0xab, 0x15, 0x5c, 0x2b, 0xf0, 0x72}
	for _, c := range certs {
		b = append(b, kind...)
		b = binary.LittleEndian.AppendUint32(b, uint32(28+16+len(c)))
		b = binary.LittleEndian.AppendUint32(b, 0)
		b = binary.LittleEndian.AppendUint32(b, uint32(16+len(c)))
		b = append(append(b, make([]byte, 16)...), c...)
	}
	return b
}

// withDB returns a copy of OVMF's variables with another db: the old one is marked as deleted, the new one comes behind the
// last (EDK2, VariableFormat.h).
func withDB(t *testing.T, vars, to string, db []byte) string {
	t.Helper()
	b, err := os.ReadFile(vars)
	if err != nil {
		t.Skip("needs package ovmf")
	}
	const header, state, nameAt = 60, 2, 36
	name := []byte{'d', 0, 'b', 0, 0, 0}
	at := int(binary.LittleEndian.Uint16(b[48:])) + 28 // behind the headers of volume and store
	var first []byte
	for binary.LittleEndian.Uint16(b[at:]) == 0x55aa {
		n, size := int(binary.LittleEndian.Uint32(b[at+nameAt:])), int(binary.LittleEndian.Uint32(b[at+nameAt+4:]))
		if b[at+state] == 0x3f && bytes.Equal(b[at+header:at+header+n], name) {
			first = slices.Clone(b[at : at+header+n])
			b[at+state] = 0x3d
		}
		at = (at + header + n + size + 3) &^ 3
	}
	if first == nil {
		t.Fatalf("%s has no db", vars)
	}
	binary.LittleEndian.PutUint32(first[nameAt+4:], uint32(len(db)))
	copy(b[at:], append(first, db...))
	if err := os.WriteFile(to, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return to
}

// TestFirmwareStartsTheShimsThatItsCertificatesTrust boots real firmware with each set of certificates, and offers it a shim
// that is signed for one, the other and both: it must do what we say of it before the try.
func TestFirmwareStartsTheShimsThatItsCertificatesTrust(t *testing.T) {
	needLong(t)
	if _, err := exec.LookPath("sbsign"); err != nil {
		t.Skip("needs package sbsigntool; run: tools/deps.sh install test-vm")
	}
	old, young := newAuthority(t, "Microsoft Corporation UEFI CA 2011"), newAuthority(t, "Microsoft UEFI CA 2023")
	const bare = "/usr/lib/shim/shimx64.efi"
	databases := map[string][]byte{"2011": database(old.der), "2023": database(young.der), "both": database(old.der, young.der)}
	for shim, sign := range map[string]func(to string){
		"2011": func(to string) { old.sign(t, bare, to) },
		"2023": func(to string) { young.sign(t, bare, to) },
		"both": func(to string) { old.sign(t, bare, to+".1"); young.sign(t, to+".1", to) },
	} {
		t.Run("shim of "+shim, func(t *testing.T) {
			dir := t.TempDir()
			sign(filepath.Join(dir, "shimx64.efi"))
			loaders, err := images.LoadLoaders([]string{dir})
			if err != nil {
				t.Fatal(err)
			}
			signers := loaders.Signers("shimx64.efi")
			s := newStand(t, "--loaders", dir, "--config", config(t, "quirks: [{firmware: uefi, loader: shimx64.efi, why: test}]\n"))
			for _, name := range slices.Sorted(maps.Keys(databases)) {
				var names []string
				for _, c := range sigdb.Trusted(databases[name], nil) {
					names = append(names, c.Name)
				}
				want := pxe.IsTrustedBy(signers, names)
				if got := s.starts(t, withDB(t, ownVars, filepath.Join(t.TempDir(), "vars.fd"), databases[name])); got != want {
					t.Errorf("firmware with %s starts a shim of %s: %v, and we say %v", name, shim, got, want)
				}
			}
		})
	}
}

// starts boots once and reports whether the firmware starts the shim that it is sent: then that asks for its second stage.
func (s *stand) starts(t *testing.T, vars string) (isStarted bool) {
	t.Helper()
	sentN := func(ctx context.Context, loader string) (n int) {
		page, _ := s.api.Events(ctx, client.EventQuery{Limit: 1000})
		for _, e := range page.Items {
			if e.Kind == inventory.EventLoaderSent && strings.HasPrefix(e.Detail, loader) {
				n++
			}
		}
		return n
	}
	before := sentN(t.Context(), "grubx64.efi")
	cmd, console := s.qemu("qemu-system-x86_64", s.ovmf(ownCode, vars)...)
	s.until("the shim is started or refused", 2*time.Minute, func(ctx context.Context) bool {
		isStarted = sentN(ctx, "grubx64.efi") > before
		b, _ := os.ReadFile(console)
		return isStarted || bytes.Contains(escapes.ReplaceAll(b, nil), []byte("Access Denied"))
	})
	s.stop(cmd)
	return isStarted
}
