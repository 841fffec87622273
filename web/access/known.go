package access

import (
	"maps"
	"net/http"
	"slices"
	"time"
)

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
