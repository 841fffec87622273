package invite

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"strings"

	"slipway.dev/slipway/inventory"
)

// Code is what an admin carries from a running instance to a new machine. It tells the new machine whom to believe, and an instance what
// the new machine may have.
type Code struct {
	pin    [sha256.Size]byte // of the public key that instances show
	id     [5]byte           // of the invitation, in lists and logs
	secret [16]byte
}

const (
	checkBytes = 3 // at the end of a code, against typing errors
	codeBytes  = sha256.Size + 5 + 16 + checkBytes
)

// letters has no 0, 1, 8 and 9, which look like others, and no character that a shell reads.
var letters = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// newCode draws a code for the instances with a pin (peer.Identity.Pin).
func newCode(pin string) (c Code, err error) {
	raw, err := hex.DecodeString(pin)
	if err != nil || len(raw) != len(c.pin) {
		return c, inventory.Errorf(inventory.Internal, "the pin of the instances is not %d bytes", len(c.pin))
	}
	copy(c.pin[:], raw)
	_, _ = rand.Read(c.id[:]) // never fails
	_, _ = rand.Read(c.secret[:])
	return c, nil
}

// Pin is that of the instances, as peer.NewGuest takes it.
func (c Code) Pin() string { return hex.EncodeToString(c.pin[:]) }

// ID is the name of the invitation, which is no secret.
func (c Code) ID() string { return letters.EncodeToString(c.id[:]) }

// hash is what an instance keeps of the secret. The secret is random, so it needs no salt and no slow hash.
func (c Code) hash() [sha256.Size]byte { return sha256.Sum256(c.secret[:]) }

// String names the code without its secret, for who formats one into a log by mistake.
func (c Code) String() string { return "code of invitation " + c.ID() }

// Text is the code as people copy it.
func (c Code) Text() string {
	all := bytes.Join([][]byte{c.pin[:], c.id[:], c.secret[:]}, nil)
	return letters.EncodeToString(append(all, checkOf(all)...))
}

func checkOf(b []byte) []byte {
	sum := sha256.Sum256(b)
	return sum[:checkBytes]
}

// ParseCode reads a code. The error never quotes it.
func ParseCode(text string) (c Code, err error) {
	text = strings.ToLower(strings.TrimSpace(text))
	if want := letters.EncodedLen(codeBytes); len(text) != want {
		return c, inventory.Errorf(inventory.Invalid, "this is not a whole code: it has %d characters, and a code has %d", len(text), want).
			WithHint("copy the whole code that slipway instance invite has printed below the command")
	}
	all, err := letters.DecodeString(text)
	if err != nil || letters.EncodeToString(all) != text || !bytes.Equal(checkOf(all[:codeBytes-checkBytes]), all[codeBytes-checkBytes:]) {
		return c, inventory.Errorf(inventory.Invalid, "the code has a typing error").
			WithHint("copy the whole code that slipway instance invite has printed below the command")
	}
	rest := all[copy(c.pin[:], all):]
	rest = rest[copy(c.id[:], rest):]
	copy(c.secret[:], rest)
	return c, nil
}
