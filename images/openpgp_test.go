package images

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"
	"github.com/ProtonMail/go-crypto/openpgp/packet"

	"slipway.dev/slipway/inventory"
)

// publisher has a key, made at a time, that is good for some seconds; 0 is for ever.
func publisher(t testing.TB, at time.Time, seconds uint32) *openpgp.Entity {
	t.Helper()
	e, err := openpgp.NewEntity("Publisher", "", "images@example.org", &packet.Config{
		Algorithm: packet.PubKeyAlgoEdDSA, Time: func() time.Time { return at }, KeyLifetimeSecs: seconds,
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func publicKey(t testing.TB, e *openpgp.Entity) string {
	t.Helper()
	var raw bytes.Buffer
	if err := e.Serialize(&raw); err != nil {
		t.Fatal(err)
	}
	text, err := ArmourKey(raw.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func detached(t testing.TB, e *openpgp.Entity, text []byte) []byte {
	t.Helper()
	var sig bytes.Buffer
	made := &packet.Config{Time: func() time.Time { return e.PrimaryKey.CreationTime.Add(time.Minute) }}
	if err := openpgp.DetachSign(&sig, e, bytes.NewReader(text), made); err != nil {
		t.Fatal(err)
	}
	return sig.Bytes()
}

func armoured(t testing.TB, e *openpgp.Entity, text []byte) []byte {
	t.Helper()
	var sig bytes.Buffer
	if err := openpgp.ArmoredDetachSign(&sig, e, bytes.NewReader(text), nil); err != nil {
		t.Fatal(err)
	}
	return sig.Bytes()
}

func clearText(t testing.TB, e *openpgp.Entity, text []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := clearsign.Encode(&out, e.PrivateKey, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestASignatureThatIsAskedForIsChecked(t *testing.T) {
	us, stranger := publisher(t, time.Now().Add(-time.Hour), 0), publisher(t, time.Now().Add(-time.Hour), 0)
	old := publisher(t, time.Now().AddDate(-2, 0, 0), 86400)
	kernel, initrd := bytesOf(1, 5000), bytesOf(2, 5000)
	sums := append(sumsLine("linux", kernel), sumsLine("initrd.gz", initrd)...)
	forged := append(sumsLine("linux", kernel), sumsLine("initrd.gz", bytesOf(3, 5000))...)
	kernelOnly := sumsLine("linux", kernel)
	for name, c := range map[string]struct {
		files   map[string][]byte
		key     *openpgp.Entity
		refused string
	}{
		"binary, beside the list":         {map[string][]byte{"SHA256SUMS": sums, "SHA256SUMS.gpg": detached(t, us, sums)}, us, ""},
		"armoured, beside the list":       {map[string][]byte{"SHA256SUMS": sums, "SHA256SUMS.sign": armoured(t, us, sums)}, us, ""},
		"in the list":                     {map[string][]byte{"SHA256SUMS": clearText(t, us, sums)}, us, ""},
		"of a key that has expired":       {map[string][]byte{"SHA256SUMS": sums, "SHA256SUMS.gpg": detached(t, old, sums)}, old, "expired"},
		"of another":                      {map[string][]byte{"SHA256SUMS": sums, "SHA256SUMS.gpg": detached(t, stranger, sums)}, us, "another key"},
		"of another, in the list":         {map[string][]byte{"SHA256SUMS": clearText(t, stranger, sums)}, us, "another key"},
		"of another list":                 {map[string][]byte{"SHA256SUMS": forged, "SHA256SUMS.gpg": detached(t, us, sums)}, us, "not what is here"},
		"missing":                         {map[string][]byte{"SHA256SUMS": sums}, us, "no signature at"},
		"empty":                           {map[string][]byte{"SHA256SUMS": sums, "SHA256SUMS.gpg": {}}, us, "no signature in it"},
		"a page":                          {map[string][]byte{"SHA256SUMS": sums, "SHA256SUMS.gpg": []byte("<html>not found</html>")}, us, "not good"},
		"right, but a file is not listed": {map[string][]byte{"SHA256SUMS": kernelOnly, "SHA256SUMS.gpg": detached(t, us, kernelOnly)}, us, "does not name netboot"},
		"lines outside the signed text":   {map[string][]byte{"SHA256SUMS": append(clearText(t, us, kernelOnly), sumsLine("initrd.gz", initrd)...)}, us, "does not name netboot"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			c.files["linux"], c.files["initrd.gz"] = kernel, initrd
			r := debianFrom(folder(t, c.files))
			r.SignatureKey = publicKey(t, c.key)
			var notes []string
			_, err := f.Import(t.Context(), r, func(p Progress) { notes = append(notes, p.Note) })
			if c.refused != "" {
				wantError(t, err, said(err).Kind, c.refused)
				if len(f.store.images) > 0 {
					t.Error("an image was registered")
				}
				return
			}
			if err != nil || !strings.Contains(strings.Join(notes, "\n"), "signed by Publisher <images@example.org>") {
				t.Errorf("%v, notes %q", err, notes)
			}
		})
	}
}

func said(err error) *inventory.Error {
	if e, ok := err.(*inventory.Error); ok {
		return e
	}
	return &inventory.Error{}
}

func TestASignatureOfTheOnlyFileIsChecked(t *testing.T) {
	us := publisher(t, time.Now().Add(-time.Hour), 0)
	disk := bytesOf(1, 70_000)
	dir := folder(t, map[string][]byte{"disk.img": disk, "disk.img.sig": detached(t, us, disk), "other.sig": detached(t, us, bytesOf(2, 70_000))})
	r := ImportRequest{
		Name: "disk", AllowLocal: true, SignatureKey: publicKey(t, us),
		Files: []ImportFile{{Role: inventory.RoleDisk, Source: dir + "/disk.img"}},
	}
	if _, err := newFixture(t).Import(t.Context(), r, nil); err != nil {
		t.Error(err)
	}
	r.Signature = dir + "/other.sig"
	f := newFixture(t)
	_, err := f.Import(t.Context(), r, nil)
	wantError(t, err, inventory.Invalid, "not what is here")
	if len(f.store.images) > 0 {
		t.Error("an image was registered")
	}
}

func TestASignatureThatCannotBeCheckedIsRefusedAtOnce(t *testing.T) {
	us := publisher(t, time.Now(), 0)
	key := publicKey(t, us)
	var private bytes.Buffer
	w, _ := armor.Encode(&private, openpgp.PrivateKeyType, nil)
	if err := us.SerializePrivate(w, nil); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	two := []ImportFile{{Role: inventory.RoleKernel, Source: "/k"}, {Role: inventory.RoleInitrd, Source: "/i"}}
	for want, r := range map[string]ImportRequest{
		"no key to check it with": {Signature: "/s", Files: two},
		"no checksum list":        {SignatureKey: key, Files: two},
		"private key":             {SignatureKey: private.String(), Sums: "/sums", Files: two},
		"is not accepted":         {SignatureKey: "ssh-ed25519 AAAA", Sums: "/sums", Files: two},
		"agents fetch themselves": {SignatureKey: key, Remote: "oci://r.example/d@sha256:" + strings.Repeat("0", 64)},
	} {
		r.Name, r.AllowLocal = "x", true
		catalogue, err := BuiltinCatalogue()
		if err != nil {
			t.Fatal(err)
		}
		wantError(t, catalogue.Check(r), inventory.Invalid, want)
	}
}

func FuzzSignature(f *testing.F) {
	us := publisher(f, time.Now().Add(-time.Hour), 0)
	text := []byte("what is signed")
	keys, err := keysOf(publicKey(f, us))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(detached(f, us, text))
	f.Add(armoured(f, us, text))
	f.Add(clearText(f, us, text))
	other := []byte("what is not signed")
	f.Fuzz(func(t *testing.T, sig []byte) {
		if signer, err := checkSignature(keys, bytes.NewReader(other), dearmoured(sig), time.Now()); err == nil {
			t.Errorf("%q counts as signed by %s", other, signer)
		}
		_, _, _ = clearSigned(sig)
		_, _ = keysOf(string(sig))
	})
}

// The signature in testdata is good, and was made with SHA-1: gpg --digest-algo SHA1.
func TestASignatureThatCanBeForgedIsRefused(t *testing.T) {
	key, err := os.ReadFile("testdata/sha1.key.asc")
	if err != nil {
		t.Fatal(err)
	}
	sig, err := os.ReadFile("testdata/sha1.list.asc")
	if err != nil {
		t.Fatal(err)
	}
	keys, err := keysOf(string(key))
	if err != nil {
		t.Fatal(err)
	}
	_, err = checkSignature(keys, strings.NewReader("a list\n"), dearmoured(sig), time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC))
	wantError(t, err, inventory.Invalid, "made with SHA-1, which can be forged")
}
