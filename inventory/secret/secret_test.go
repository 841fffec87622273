package secret

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
)

const canary = "correct-horse-battery-staple"

func newBox(t testing.TB) *Box {
	t.Helper()
	text, err := NewKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ParseKey(text + "\n")
	if err != nil {
		t.Fatal(err)
	}
	b, err := NewBox(key)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func seal(t testing.TB, b *Box, name, plain string) []byte {
	t.Helper()
	sealed, err := b.Seal(name, []byte(plain))
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

func wantError(t *testing.T, err error, kind inventory.Kind, words string) {
	t.Helper()
	var e *inventory.Error
	if !errors.As(err, &e) || e.Kind != kind || !strings.Contains(e.Msg, words) {
		t.Errorf("got %v, want %s with %q", err, kind, words)
	}
	if err != nil && strings.Contains(err.Error(), canary) {
		t.Errorf("the error shows the value: %v", err)
	}
}

func TestWhatIsSealedComesBack(t *testing.T) {
	b := newBox(t)
	for _, plain := range []string{"", "x", canary, strings.Repeat("ab\x00", 1000)} {
		sealed := seal(t, b, "db", plain)
		got, err := b.Open("db", sealed)
		if err != nil || string(got) != plain {
			t.Errorf("%d bytes came back as %d, %v", len(plain), len(got), err)
		}
		if plain != "" && len(plain) > 1 && bytes.Contains(sealed, []byte(plain)) {
			t.Error("the value can be read in the sealed form")
		}
	}
	if bytes.Equal(seal(t, b, "db", canary), seal(t, b, "db", canary)) {
		t.Error("sealing twice gave the same text")
	}
	_, err := b.Seal("db", make([]byte, MaxSize+1))
	wantError(t, err, inventory.Invalid, "secret db")
}

func TestOpenTellsWhatIsWrong(t *testing.T) {
	b, other := newBox(t), newBox(t)
	sealed := seal(t, b, "db", canary)
	_, err := other.Open("db", sealed)
	wantError(t, err, inventory.Unavailable, "another key ("+b.KeyID()+"; this one is "+other.KeyID()+")")
	_, err = b.Open("web", sealed)
	wantError(t, err, inventory.Internal, "another name")
	_, err = b.Open("db", nil)
	wantError(t, err, inventory.Internal, "form")
	_, err = b.Open("db", sealed[:overhead-1])
	wantError(t, err, inventory.Internal, "form")
	for i := range sealed {
		broken := bytes.Clone(sealed)
		broken[i] ^= 1
		if plain, err := b.Open("db", broken); err == nil {
			t.Errorf("with byte %d changed it opened as %q", i, plain)
		}
	}
	for n := range sealed {
		if _, err := b.Open("db", sealed[:n]); err == nil {
			t.Errorf("the first %d bytes opened", n)
		}
	}
}

func TestTheKeyIDGivesNothingOfTheKey(t *testing.T) {
	key := bytes.Repeat([]byte{1, 2}, KeySize/2)
	b, err := NewBox(key)
	if err != nil {
		t.Fatal(err)
	}
	if len(b.KeyID()) != 16 || strings.Contains(hex.EncodeToString(key), b.KeyID()) {
		t.Errorf("the key id is %s", b.KeyID())
	}
	if bytes.Contains(seal(t, b, "db", canary), key[:keyIDSize]) {
		t.Error("the sealed form shows the key")
	}
}

func TestParseKey(t *testing.T) {
	const hexKey = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
	const base64Key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
	for _, text := range []string{hexKey, base64Key, " " + base64Key + "\n", strings.ToUpper(hexKey)} {
		key, err := ParseKey(text)
		if err != nil || hex.EncodeToString(key) != hexKey {
			t.Errorf("ParseKey(%q) = %x, %v", text, key, err)
		}
	}
	for _, text := range []string{
		"", "hunter2", base64Key[:40], base64Key + "AAAA", base64Key[:20] + "\n" + base64Key[20:], hexKey[:62], hexKey + "00",
		strings.Repeat("0", 64), strings.Repeat("AAAA", 10) + "AAA=",
	} {
		_, err := ParseKey(text)
		wantError(t, err, inventory.Invalid, "key of secrets")
		if err != nil && text != "" && strings.Contains(err.Error(), text) {
			t.Errorf("the error shows the key: %v", err)
		}
	}
	if _, err := NewBox([]byte("short")); err == nil {
		t.Error("a short key was taken")
	}
	if _, err := NewKey(bytes.NewReader(nil)); err == nil {
		t.Error("a key came out of nothing")
	}
	if _, err := NewKey(bytes.NewReader(make([]byte, 64))); err == nil {
		t.Error("a key of zeroes was taken")
	}
}

func FuzzOpen(f *testing.F) {
	b, err := NewBox(bytes.Repeat([]byte{1, 2}, KeySize/2)) // the same in every process of the fuzzer
	if err != nil {
		f.Fatal(err)
	}
	sealed := seal(f, b, "db", canary)
	f.Add("db", sealed)
	f.Add("web", sealed)
	f.Add("db", sealed[:headSize])
	f.Add("", []byte{})
	f.Fuzz(func(t *testing.T, name string, text []byte) {
		plain, err := b.Open(name, text)
		if err == nil && (name != "db" || string(plain) != canary) {
			t.Errorf("%q opened as %q", text, plain)
		}
		if err != nil && strings.Contains(err.Error(), canary) {
			t.Errorf("the error shows the value: %v", err)
		}
	})
}
