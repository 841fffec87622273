// Package access finds out who sends a request. It lets people in by passwords, second factors, security keys and an
// identity provider, and programs by tokens. It also has the REST operations on logins, users and tokens.
//
// Start reading at Access.Guard, through which every request over TCP comes, then keeper.admit.
package access

import (
	"context"
	"net/http"
	"net/netip"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe/door"
	"slipway.dev/slipway/web/proxy"
	"slipway.dev/slipway/web/rest"
)

// Config is everything that an Access needs.
type Config struct {
	Frame   *rest.Frame
	Store   inventory.Store // the whole inventory: before a caller is known, no part of it belongs to that caller
	Secrets Sealer          // nil: no second factor can be kept
	Proxies proxy.Trusted   // may say where a request comes from
	OIDC    *OIDC           // nil: people log in with passwords
	// ExternalURL is the address by which browsers reach the admin door; "": not said.
	ExternalURL string
	// FactorFrom is the least role whose users need a second factor in addition to their password, "" for none.
	FactorFrom inventory.UserRole
	Key        []byte // signs cookies that outlive a start; nil: a key that is drawn for this start
}

// Access lets callers in. Its methods may be called from many goroutines.
type Access struct {
	frame     *rest.Frame
	store     inventory.Store
	keeper    *keeper
	passwords *passwords
	seconds   *secondFactors
	cookies   *cookies
	sso       *sso // nil: there is no identity provider
}

// New returns an Access that guards the operations of a frame.
func New(cfg Config) *Access {
	now, log, seal := cfg.Frame.Now, cfg.Frame.Log, newSeal(cfg.Key)
	passwords := newPasswords(cfg.Store, now)
	// Wrong tokens and wrong passwords share one counter by address. Somebody who is refused with the one cannot go on with the
	// other.
	seconds := &secondFactors{store: cfg.Store, box: cfg.Secrets, from: cfg.FactorFrom, names: passwords.names, seal: seal, now: now}
	return &Access{
		frame: cfg.Frame, store: cfg.Store, passwords: passwords, seconds: seconds,
		keeper: &keeper{
			store: cfg.Store, now: now, log: log, origin: http.NewCrossOriginProtection(), where: cfg.Proxies,
			sources: passwords.sources, seconds: seconds,
		},
		cookies: &cookies{seal: seal, now: now, externalURL: cfg.ExternalURL},
		sso:     newSSO(cfg.OIDC, now, log),
	}
}

// Register adds the operations on tokens, users, second factors and logins to the frame.
func (a *Access) Register() {
	f, rows := a.frame, &loginRows{store: a.store, now: a.frame.Now}
	factors := &factorOps{frame: f, store: a.store, seconds: a.seconds, passwords: a.passwords}
	(&tokenOps{f}).add()
	(&userOps{frame: f, store: a.store, passwords: a.passwords}).add()
	factors.add()
	(&keyOps{factors, a.cookies}).add()
	(&loginOps{
		frame: f, store: a.store, keeper: a.keeper, passwords: a.passwords, seconds: a.seconds, cookies: a.cookies, rows: rows, sso: a.sso,
	}).add()
	(&oidcOps{
		frame: f, store: a.store, cookies: a.cookies, rows: rows, sso: a.sso,
		providers: newTries[netip.Addr](f.Now, providerEvery, providerBurst),
	}).add()
}

// Guard passes on the requests of callers that it knows, and of users that want to log in.
func (a *Access) Guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := a.keeper.admit(r)
		if err != nil {
			// A request without a token leaves no row: an open page whose login has ended asks again and again.
			if inventory.IsKind(err, inventory.Unauthorized) && r.Header.Get("Authorization") != "" {
				a.tokenRefused(r, c, err)
			}
			rest.WriteProblem(w, r, a.frame.Log, err)
			return
		}
		if c.Via != "" {
			door.Trust(r.Context()) // strangers do not take its place any more
		}
		rest.EdgeOf(r.Context()).Caller = c
		next.ServeHTTP(w, r)
	})
}

// GuardReads passes on the requests of callers that it knows, and those of all others to the leader. An instance that is not the leader
// lets people read by it. The leader alone counts wrong tokens, and knows what each cluster may read.
func (a *Access) GuardReads(next, leader http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := a.keeper.admit(r)
		if err != nil || c.Via == "" || c.Cluster != "" {
			leader.ServeHTTP(w, r)
			return
		}
		door.Trust(r.Context())
		rest.EdgeOf(r.Context()).Caller = c
		next.ServeHTTP(w, r)
	})
}

// tokenRefused notes that somebody came with a token that is unknown, has expired, or whose user may not come in.
func (a *Access) tokenRefused(r *http.Request, c rest.Caller, err error) {
	req := rest.RequestOf(r.Context())
	// The row names the token and the address. It gets no roles and no user, for the caller did not get in.
	req.Caller = rest.Caller{Name: c.Name, Source: c.Source}
	row := rest.RowOf(req, "use-token", "token")
	row.Name, row.Status = c.Token, http.StatusUnauthorized
	req = req.EnteredAs(row)
	a.frame.Finish(req, row.Status, rest.ProblemOf(req, a.frame.Log, err).Detail)
}

// IsSecure reports whether the browser that sends a request reaches Slipway over https.
func (a *Access) IsSecure(r *http.Request) bool {
	return a.cookies.isOutsideSecure(a.keeper.where.Of(r).IsTLS)
}

// Provider returns the settings of the identity provider, and why it cannot be used now; without a provider they are nil.
func (a *Access) Provider(ctx context.Context) (*OIDC, error) {
	if a.sso == nil {
		return nil, nil
	}
	// The answer may be an hour old. After a failure Slipway waits some seconds before it asks the provider again, however often
	// this is called.
	_, err := a.sso.provider(ctx)
	return &a.sso.OIDC, err
}
