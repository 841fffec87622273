package access

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"time"
)

// seal makes values that only this server can make. Each purpose has its own.
type seal struct{ key []byte }

func newSeal(key []byte) *seal {
	if key == nil {
		key = make([]byte, sha256.Size)
		_, _ = rand.Read(key) // never fails
	}
	return &seal{key}
}

func (s *seal) mac(what string, text []byte) []byte {
	m := hmac.New(sha256.New, s.key)
	m.Write([]byte(what + "\x00"))
	m.Write(text)
	return m.Sum(nil)
}

// sign makes a value for a cookie.
func (s *seal) sign(what string, v any) string {
	text, _ := json.Marshal(v) // of texts and times
	return base64.RawURLEncoding.EncodeToString(append(s.mac(what, text), text...))
}

// signed reads what sign has made for the same purpose.
func (s *seal) signed(what, value string, v any) bool {
	raw, err := base64.RawURLEncoding.DecodeString(value)
	return err == nil && len(raw) > sha256.Size && hmac.Equal(raw[:sha256.Size], s.mac(what, raw[sha256.Size:])) && json.Unmarshal(raw[sha256.Size:], v) == nil
}

// browser is one in which people have logged in before, as its cookie says. It lets nobody in: it only keeps the wrong passwords
// of strangers from counting against them.
type browser struct {
	ID    string            `json:"i"`
	Users map[string]string `json:"u"` // by name: when, as YYYY-MM-DD
}

const (
	knownCookie   = "slipway-known"
	knownFor      = 365 * 24 * time.Hour
	knownUsersMax = 8
)

// browser reads the cookie of a known browser; without one it is a new one.
func (k *keeper) browser(cookie string) (b browser) {
	if len(cookie) > 2048 || !k.seal.signed("known browser", cookie, &b) || b.ID == "" {
		return browser{}
	}
	for name, day := range b.Users {
		if at, err := time.Parse(time.DateOnly, day); err != nil || k.now().Sub(at) > knownFor {
			delete(b.Users, name)
		}
	}
	return b
}

// knows reports whether a user has logged in there before.
func (b browser) knows(user string) bool { return b.Users[user] != "" }

// isNew reports whether nobody has logged in there before.
func (b browser) isNew() bool { return len(b.Users) == 0 }

// knownCookie remembers that a user has logged in with a browser. The one who did so first is forgotten when there are many.
func (k *keeper) knownCookie(b browser, user string, isSecure bool) http.Cookie {
	if b.ID == "" {
		b = browser{ID: newLoginID(), Users: map[string]string{}}
	}
	b.Users[user] = k.now().UTC().Format(time.DateOnly)
	for len(b.Users) > knownUsersMax {
		oldest := user
		for _, name := range slices.Sorted(maps.Keys(b.Users)) {
			if name != user && (oldest == user || b.Users[name] < b.Users[oldest]) {
				oldest = name
			}
		}
		delete(b.Users, oldest)
	}
	return http.Cookie{
		Name: knownCookie, Value: k.seal.sign("known browser", b), Path: "/api/v1/logins", MaxAge: int(knownFor.Seconds()),
		HttpOnly: true, Secure: k.isOutsideSecure(isSecure), SameSite: http.SameSiteLaxMode,
	}
}
