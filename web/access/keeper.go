package access

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/proxy"
	"slipway.dev/slipway/web/rest"
)

// keeper lets in who brings a token or the cookie of a login, and slows down who tries others.
type keeper struct {
	store   inventory.Store // the whole
	now     func() time.Time
	log     *slog.Logger
	origin  *http.CrossOriginProtection
	where   proxy.Trusted
	sources *tries[netip.Addr] // wrong passwords and tokens, by address
	seconds *secondFactors
}

const (
	touchEvery = time.Minute // how often a last use is written down
	secretMax  = 512         // longest token that is looked up
)

// isOpen reports whether a request needs nobody to be logged in.
func isOpen(r *http.Request) bool {
	// The method counts, too: GET /logins lists logins, and needs one.
	switch r.URL.Path {
	case "/api/v1/logins", "/api/v1/logins/security-key":
		return r.Method == http.MethodPost
	case "/api/v1/logins/offers", ssoPath, ssoPath + "/callback":
		return r.Method == http.MethodGet
	}
	return rest.IsProbe(r.URL.Path)
}

// admit finds out who sent a request.
func (k *keeper) admit(r *http.Request) (c rest.Caller, err error) {
	from := k.where.Of(r)
	switch {
	case isOpen(r):
		// A login must not be made from the page of another site either: its user would work as somebody else.
		err = k.sameOrigin(r)
	// A token wins over a cookie. Browsers never send this header by themselves, so a page of another site cannot use it.
	case r.Header.Get("Authorization") != "":
		c, err = k.admitToken(r, from.Addr)
	default:
		c, err = k.admitCookie(r)
	}
	// Also for a refused caller: the counters and the audit need the address.
	c.Source, c.Secure = from.Addr, from.IsTLS
	return c, err
}

const loginHint = "log in, or send a token as: Authorization: Bearer SECRET; make one on the server with: slipway token create NAME"

// sameOrigin refuses what the page of another site makes a browser send. A console is refused likewise, though it is a GET:
// anyone who has it may type.
func (k *keeper) sameOrigin(r *http.Request) error {
	// The check passes every GET, and an upgrade is one.
	asked := r
	if r.Header.Get("Upgrade") != "" {
		asked = r.Clone(r.Context())
		asked.Method = http.MethodPost
	}
	if err := k.origin.Check(asked); err != nil {
		return inventory.Errorf(inventory.Forbidden, "the request comes from a page of another site").
			WithHint("use Slipway's own page, or send a token instead of a cookie")
	}
	return nil
}

// admitToken looks the token up first: a good one passes, whatever others have tried from its address.
func (k *keeper) admitToken(r *http.Request, source netip.Addr) (c rest.Caller, err error) {
	scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	// Another scheme leads to an empty secret, which counts as a wrong token like any other.
	if !strings.EqualFold(scheme, "Bearer") {
		secret = ""
	}
	c, err = k.byToken(r.Context(), strings.TrimSpace(secret))
	// Consoles and streams last longer than a request. They ask Again, so that a deleted token ends them.
	c.Again = func(ctx context.Context) (rest.Caller, error) { return k.byToken(ctx, strings.TrimSpace(secret)) }
	return c, k.countToken(source, err)
}

// countToken counts a token that is not good, and answers one too many from an address with when to try again.
func (k *keeper) countToken(source netip.Addr, err error) error {
	if !inventory.IsKind(err, inventory.Unauthorized) {
		return err
	}
	// The refusal comes after the look-up: a good token never waits, even next to somebody who guesses. SourceKey is an IPv6
	// network of 64 bits, which one machine can use all of.
	if late := k.sources.allowed(rest.SourceKey(source), "too many wrong tokens and passwords from this address"); late != nil {
		return late
	}
	k.sources.failed(rest.SourceKey(source))
	return err
}

// byToken finds the caller who has a token's secret.
func (k *keeper) byToken(ctx context.Context, secret string) (c rest.Caller, err error) {
	if secret == "" || len(secret) > secretMax {
		return c, inventory.Errorf(inventory.Unauthorized, "the token is not known here").WithHint(loginHint)
	}
	var t inventory.Token
	err = k.store.Read(ctx, func(tx inventory.Tx) error {
		// By hash: the secret itself is in no row, and the time of the comparison reveals no part of it.
		if t, err = tx.FindTokenByHash(HashToken(secret)); err != nil {
			return err
		}
		// The token and its user are read in one snapshot: a user who is being disabled is seen before or after, and never half.
		c, err = k.holder(tx, t)
		return err
	})
	if inventory.IsKind(err, inventory.NotFound) {
		return c, inventory.Errorf(inventory.Unauthorized, "the token is not known here").WithHint(loginHint)
	}
	// At most one write a minute for a token that sends hundreds of requests a second.
	if err == nil && k.isStale(t.LastUsedAt) {
		k.note(ctx, func(tx inventory.Tx) error { return tx.TouchToken(t.Name, k.now()) })
	}
	return c, err
}

// holder is the caller with a token: it may what the token may, as far as its user still may.
func (k *keeper) holder(tx inventory.Tx, t inventory.Token) (rest.Caller, error) {
	c := rest.Caller{Name: "token " + t.Name, Via: rest.ViaToken, Token: t.Name, User: t.User, Grants: t.Grants, Cluster: t.Cluster, Namespaces: t.Namespaces}
	if !t.ExpiresAt.IsZero() && !k.now().Before(t.ExpiresAt) {
		return c, inventory.Errorf(inventory.Unauthorized, "token %s has expired", t.Name).
			WithHint("make a new one on the server with: slipway token create NAME")
	}
	if t.Cluster != "" {
		c.User, c.Grants = "", nil // whatever else is in the row
		return c, nil
	}
	if t.User == "" {
		return c, nil
	}
	// The user is read with each request. A role that an admin takes away is gone with the next one.
	u, err := tx.Users().Find(t.User)
	if err != nil {
		return c, err
	}
	if u.IsDisabled {
		return c, errDisabled(u.Name)
	}
	// The token may be older than the roles of its user. A role that the user has lost is lost for the token.
	c.Grants = t.Grants.Within(u.Grants)
	return c, nil
}

func (k *keeper) admitCookie(r *http.Request) (c rest.Caller, err error) {
	cookie, err := r.Cookie(loginCookie)
	if err != nil || cookie.Value == "" {
		return c, inventory.Errorf(inventory.Unauthorized, "this needs a login or a token").WithHint(loginHint)
	}
	// A browser sends the cookie by itself, also for the page of another site. This check needs no look into the store.
	if err := k.sameOrigin(r); err != nil {
		return c, err
	}
	secret := cookie.Value
	c, err = k.byCookie(r.Context(), secret)
	c.Again = func(ctx context.Context) (rest.Caller, error) { return k.byCookie(ctx, secret) }
	return c, err
}

// byCookie finds the caller whose login has a cookie. Wrong ones are not counted: nobody guesses 256 bits, and a page that
// is open when its login ends asks many times.
func (k *keeper) byCookie(ctx context.Context, secret string) (c rest.Caller, err error) {
	ended := inventory.Errorf(inventory.Unauthorized, "your login has ended").WithHint("log in again")
	if len(secret) > secretMax {
		return c, ended
	}
	var l inventory.Login
	err = k.store.Read(ctx, func(tx inventory.Tx) error {
		if l, err = tx.FindLoginByHash(HashToken(secret)); err != nil {
			return err
		}
		// The row may outlive the login: old ones are deleted only when somebody logs in.
		if now := k.now(); !now.Before(l.ExpiresAt) || now.Sub(l.SeenAt) >= loginIdle {
			return ended
		}
		c, err = k.loggedIn(tx, l)
		return err
	})
	if inventory.IsKind(err, inventory.NotFound) {
		return c, ended
	}
	if err == nil && k.isStale(l.SeenAt) {
		k.note(ctx, func(tx inventory.Tx) error { return tx.TouchLogin(l.ID, k.now()) })
	}
	return c, err
}

// loggedIn is the caller of a login: a user, or who has logged in with a token.
func (k *keeper) loggedIn(tx inventory.Tx, l inventory.Login) (c rest.Caller, err error) {
	if l.Token != "" {
		t, err := tx.FindToken(l.Token)
		if err == nil {
			c, err = k.holder(tx, t)
		}
		c.Via, c.Login = rest.ViaLogin, l.ID
		return c, err
	}
	u, err := tx.Users().Find(l.User)
	if err != nil {
		return c, err
	}
	if u.IsDisabled {
		return c, errDisabled(u.Name)
	}
	c = k.as(&u)
	c.Via, c.Login = rest.ViaLogin, l.ID
	return c, nil
}

// as is a user who has come in with a password, or by a provider of identities. One who has to set up a second factor first may
// do nothing else: the roles are empty until then.
func (k *keeper) as(u *inventory.User) rest.Caller {
	c := rest.Caller{Name: "user " + u.Name, User: u.Name, Grants: u.Grants}
	if k.seconds.mustSetUp(u) {
		c.Grants, c.MustSetUp = nil, true
	}
	return c
}

func (k *keeper) isStale(at time.Time) bool { return k.now().Sub(at) >= touchEvery }

// note writes down a use. A failure delays the note and nothing else.
func (k *keeper) note(ctx context.Context, fn func(inventory.Tx) error) {
	if err := k.store.Write(ctx, fn); err != nil {
		k.log.Debug("use not noted", "err", err)
	}
}
