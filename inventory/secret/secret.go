// Package secret owns the sealed form of secrets. It encrypts a value under its name with the key of this Slipway. On
// opening, it distinguishes a damaged text from another name or another key. It never reads a file, and no error of it
// holds a key or a value.
package secret

import (
	"bytes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"golang.org/x/crypto/chacha20poly1305"

	"slipway.dev/slipway/inventory"
)

// KeySize is the length of a key in bytes.
const KeySize = chacha20poly1305.KeySize

// MaxSize is the longest value that is sealed: a machine configuration with its certificates is a tenth of it.
const MaxSize = 1 << 20

// The sealed form is one byte of version, eight that name the key, the nonce, and the value encrypted with
// XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha), whose nonces are long enough to be drawn at random.
const (
	version   = 1
	keyIDSize = 8
	headSize  = 1 + keyIDSize
	overhead  = headSize + chacha20poly1305.NonceSizeX + chacha20poly1305.Overhead
)

// Box seals and opens values with one key. It may be used from many goroutines.
type Box struct {
	aead  cipher.AEAD
	keyID [keyIDSize]byte
}

// NewBox returns a Box for a key that NewKey drew and ParseKey read.
func NewBox(key []byte) (*Box, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	aead, err := chacha20poly1305.NewX(key)
	if err != nil {
		return nil, fmt.Errorf("prepare the cipher: %w", err)
	}
	b := &Box{aead: aead}
	sum := sha256.Sum256(append([]byte("slipway key id\x00"), key...))
	copy(b.keyID[:], sum[:])
	return b, nil
}

// KeyID names the key without giving it away.
func (b *Box) KeyID() string { return hex.EncodeToString(b.keyID[:]) }

// Seal encrypts a value under a name. Sealing twice gives two different texts.
func (b *Box) Seal(name string, plain []byte) ([]byte, error) {
	if len(plain) > MaxSize {
		return nil, inventory.Errorf(inventory.Invalid, "%s has %d bytes; at most %d are kept", what(name), len(plain), MaxSize)
	}
	sealed := make([]byte, headSize+chacha20poly1305.NonceSizeX, overhead+len(plain))
	sealed[0] = version
	copy(sealed[1:], b.keyID[:])
	nonce := sealed[headSize:]
	if _, err := rand.Read(nonce); err != nil {
		return nil, fmt.Errorf("draw a nonce: %w", err)
	}
	return b.aead.Seal(sealed, nonce, plain, b.bound(name)), nil
}

// Open returns the value that was sealed under that name. A text of another key is Unavailable, as restoring the right
// key helps; one that is damaged or was sealed under another name is Internal.
func (b *Box) Open(name string, sealed []byte) ([]byte, error) {
	switch {
	case len(sealed) < overhead || sealed[0] != version:
		return nil, inventory.Errorf(inventory.Internal, "%s is not stored in a form that is known here", what(name)).
			WithHint("set it again, or run the Slipway that stored it")
	case !bytes.Equal(sealed[1:headSize], b.keyID[:]):
		return nil, inventory.Errorf(inventory.Unavailable, "%s was stored with another key (%s; this one is %s)",
			what(name), hex.EncodeToString(sealed[1:headSize]), b.KeyID()).WithHint("restore the key file that belongs to this database, or set the secret again")
	}
	nonce, text := sealed[headSize:headSize+chacha20poly1305.NonceSizeX], sealed[headSize+chacha20poly1305.NonceSizeX:]
	plain, err := b.aead.Open(nil, nonce, text, b.bound(name))
	if err != nil {
		return nil, inventory.Errorf(inventory.Internal, "%s is damaged, or was stored under another name", what(name)).
			WithHint("set it again, or restore a backup of the database")
	}
	return plain, nil
}

// bound is what the sealed text is bound to besides the key: its form and its name.
func (b *Box) bound(name string) []byte {
	return append(append([]byte{version}, b.keyID[:]...), name...)
}

func what(name string) string { return "secret " + inventory.Clean(name, 80) }

// NewKey draws a key and returns it as ParseKey reads it.
func NewKey(random io.Reader) (string, error) {
	key := make([]byte, KeySize)
	if _, err := io.ReadFull(random, key); err != nil {
		return "", fmt.Errorf("draw a key: %w", err)
	}
	if err := checkKey(key); err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(key), nil
}

// ParseKey reads a key: 32 bytes in base64, or in hex, with white space around it.
func ParseKey(text string) ([]byte, error) {
	text = strings.TrimSpace(text)
	key, err := base64.StdEncoding.Strict().DecodeString(text)
	if len(text) == 2*KeySize {
		key, err = hex.DecodeString(text)
	}
	if err != nil || strings.ContainsAny(text, "\r\n") || len(key) != KeySize {
		return nil, inventory.Errorf(inventory.Invalid, "this is not a key of secrets").
			WithHint("it is %d random bytes in base64: openssl rand -base64 %d", KeySize, KeySize)
	}
	return key, checkKey(key)
}

// checkKey refuses what cannot have been drawn at random.
func checkKey(key []byte) error {
	if len(key) != KeySize {
		return inventory.Errorf(inventory.Invalid, "a key of secrets has %d bytes, not %d", KeySize, len(key))
	}
	if bytes.Count(key, key[:1]) == len(key) {
		return inventory.Errorf(inventory.Invalid, "a key of secrets is drawn at random, not one byte again and again").
			WithHint("openssl rand -base64 %d", KeySize)
	}
	return nil
}
