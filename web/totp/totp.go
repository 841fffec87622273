// Package totp makes and checks the codes of authenticator apps (RFC 6238: HMAC-SHA-1, six digits, 30 seconds). It also has
// recovery codes for a user who has lost the app.
package totp

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

const (
	step        = 30 * time.Second
	digits      = 6
	skew        = 1 // steps that the clock of a telephone may be off, each way
	secretBytes = 20

	// RecoveryN is how many recovery codes there are.
	RecoveryN = 10
)

var base = base32.StdEncoding.WithPadding(base32.NoPadding)

// NewSecret draws a secret.
func NewSecret() string {
	b := make([]byte, secretBytes)
	_, _ = rand.Read(b) // never fails
	return base.EncodeToString(b)
}

// URL is what an app reads from a QR code.
func URL(secret, issuer, user string) string {
	v := url.Values{"secret": {secret}, "issuer": {issuer}, "algorithm": {"SHA1"}, "digits": {fmt.Sprint(digits)}, "period": {fmt.Sprint(int(step.Seconds()))}}
	return (&url.URL{Scheme: "otpauth", Host: "totp", Path: "/" + issuer + ":" + user, RawQuery: strings.ReplaceAll(v.Encode(), "+", "%20")}).String()
}

// code is the code of a step.
func code(key []byte, at int64) string {
	m := hmac.New(sha1.New, key)
	_ = binary.Write(m, binary.BigEndian, at) // a hash takes all
	sum := m.Sum(nil)
	n := binary.BigEndian.Uint32(sum[sum[len(sum)-1]&0xf:]) & 0x7fffffff
	return fmt.Sprintf("%0*d", digits, n%1_000_000)
}

// Check reports whether a code is right now, and the step that it is of. A code of a step up to used was used before, or is older
// than one that was, and counts no more.
func Check(secret, given string, now time.Time, used int64) (at int64, ok bool) {
	key, err := base.DecodeString(strings.ToUpper(secret))
	given = strings.Join(strings.Fields(given), "")
	if err != nil || len(given) != digits {
		return 0, false
	}
	for at := now.Unix()/int64(step.Seconds()) - skew; at <= now.Unix()/int64(step.Seconds())+skew; at++ {
		if subtle.ConstantTimeCompare([]byte(code(key, at)), []byte(given)) == 1 && at > used {
			return at, true
		}
	}
	return 0, false
}

// NewRecovery draws recovery codes of 80 random bits each, and what is kept of them: so many bits need no slow hash.
func NewRecovery() (codes, hashes []string) {
	for range RecoveryN {
		b := make([]byte, 10)
		_, _ = rand.Read(b) // never fails
		text := strings.ToLower(base.EncodeToString(b))
		text = text[:4] + "-" + text[4:8] + "-" + text[8:12] + "-" + text[12:]
		codes, hashes = append(codes, text), append(hashes, recoveryHash(text))
	}
	return codes, hashes
}

func recoveryHash(given string) string {
	plain := strings.ToLower(strings.NewReplacer("-", "", " ", "").Replace(given))
	sum := sha256.Sum256([]byte("recovery " + plain))
	return hex.EncodeToString(sum[:])
}

// UseRecovery takes the code out of those that are left; each is good once.
func UseRecovery(left []string, given string) (rest []string, ok bool) {
	if len(given) > 64 {
		return left, false
	}
	hash := recoveryHash(given)
	i := slices.IndexFunc(left, func(h string) bool { return subtle.ConstantTimeCompare([]byte(h), []byte(hash)) == 1 })
	if i < 0 {
		return left, false
	}
	return slices.Delete(slices.Clone(left), i, i+1), true
}
