package access

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
)

// NewSecret draws the secret of a token: 256 random bits behind a prefix by which secret scanners know it.
func NewSecret() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	return "slipway_" + hex.EncodeToString(b[:])
}

// HashToken returns what a store keeps of a token's secret, and of a login's cookie: its SHA-256 in hex. Both have 256
// random bits, so they need no salt and no slow hash.
func HashToken(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

func newLoginID() string {
	var b [10]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
