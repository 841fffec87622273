package access

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// cookies makes and reads the cookies of logins and of known browsers.
type cookies struct {
	seal *seal // signs those of known browsers
	now  func() time.Time
	// externalURL is the address by which browsers reach the admin listener, "" if nobody says.
	externalURL string
}

// browser is one in which people have logged in before, as its cookie says. It lets nobody in: it only keeps the wrong passwords
// of strangers from counting against them.
type browser struct {
	ID    string            `json:"i"`
	Users map[string]string `json:"u"` // by name: when, as YYYY-MM-DD
}

const (
	loginCookie   = "slipway-login"
	knownCookie   = "slipway-known"
	knownFor      = 365 * 24 * time.Hour
	knownUsersMax = 8
)

// browser reads the cookie of a known browser; without one it is a new one.
func (c *cookies) browser(cookie string) (b browser) {
	// Eight users need far less than 2,048 bytes. A longer cookie is not ours, and costs no HMAC.
	if len(cookie) > 2048 || !c.seal.signed("known browser", cookie, &b) || b.ID == "" {
		return browser{}
	}
	// Each user's entry ages by itself, because every login in this browser renews the cookie as a whole.
	for name, day := range b.Users {
		if at, err := time.Parse(time.DateOnly, day); err != nil || c.now().Sub(at) > knownFor {
			delete(b.Users, name)
		}
	}
	return b
}

// knows reports whether a user has logged in there before.
func (b browser) knows(user string) bool { return b.Users[user] != "" }

// isNew reports whether nobody has logged in there before.
func (b browser) isNew() bool { return len(b.Users) == 0 }

// ofBrowser remembers that a user has logged in with a browser. The one who did so first is forgotten when there are many.
func (c *cookies) ofBrowser(b browser, user string, isSecure bool) http.Cookie {
	if b.ID == "" {
		// The id is random, so that two browsers of one user have separate counts of wrong passwords.
		b = browser{ID: newLoginID(), Users: map[string]string{}}
	}
	b.Users[user] = c.now().UTC().Format(time.DateOnly)
	for len(b.Users) > knownUsersMax {
		oldest := user
		// Sorted: of two names with the same day always the same one goes. The user who logs in now never does.
		for _, name := range slices.Sorted(maps.Keys(b.Users)) {
			if name != user && (oldest == user || b.Users[name] < b.Users[oldest]) {
				oldest = name
			}
		}
		delete(b.Users, oldest)
	}
	// The path limits the cookie to requests for logins. No other request shows who uses this browser.
	return http.Cookie{
		Name: knownCookie, Value: c.seal.sign("known browser", b), Path: "/api/v1/logins", MaxAge: int(knownFor.Seconds()),
		HttpOnly: true, Secure: c.isOutsideSecure(isSecure), SameSite: http.SameSiteLaxMode,
	}
}

// ofLogin is the cookie of a login. Lax keeps it from requests that other sites make, and lets links into Slipway work.
func (c *cookies) ofLogin(secret string, isSecure bool, seconds int) http.Cookie {
	return http.Cookie{Name: loginCookie, Value: secret, Path: "/", MaxAge: seconds, HttpOnly: true, Secure: c.isOutsideSecure(isSecure), SameSite: http.SameSiteLaxMode}
}

// isOutsideSecure reports whether a browser reaches Slipway over https: by its own connection, or because the settings say so
// of the address that browsers use.
func (c *cookies) isOutsideSecure(isSecure bool) bool {
	return isSecure || strings.HasPrefix(c.externalURL, "https://")
}
