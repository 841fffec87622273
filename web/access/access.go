// Package access finds out who sends a request. It lets people in by passwords, second factors, security keys and an
// identity provider, and programs by tokens. It also has the REST operations on logins, users and tokens.
//
// Start reading at Access.Guard, through which every request over TCP comes, then keeper.admit.
package access

import (
	"log/slog"
	"net/http"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe/door"
	"slipway.dev/slipway/web/proxy"
	"slipway.dev/slipway/web/rest"
)

// Sealer seals the second factors of users; it opens them again if it is an Opener too.
type Sealer interface {
	Seal(name string, plain []byte) ([]byte, error)
}

// Opener opens what a Sealer has sealed.
type Opener interface {
	Open(name string, sealed []byte) ([]byte, error)
}

// Config is everything that an Access needs.
type Config struct {
	Frame   *rest.Frame
	Store   inventory.Store // the whole inventory: before a caller is known, no part of it belongs to that caller
	Secrets Sealer          // nil: no second factor can be kept
	Proxies proxy.Trusted   // may say where a request comes from
	OIDC    *OIDC           // nil: people log in with passwords
	// ExternalURL is the address by which browsers reach the admin door; "": not said.
	ExternalURL string
	// FactorFrom is the least role whose users need a second factor beside their password, "" for none.
	FactorFrom inventory.UserRole
	Key        []byte // signs cookies that outlive a start; nil: a key that is drawn for this start
	Now        func() time.Time
	Log        *slog.Logger
}

// Access lets callers in. Its methods may be called from many goroutines.
type Access struct {
	frame  *rest.Frame
	keeper *keeper
	sso    *sso // nil: there is no identity provider
	now    func() time.Time
	log    *slog.Logger
}

// New returns an Access that guards the operations of a frame.
func New(cfg Config) *Access {
	return &Access{frame: cfg.Frame, keeper: newKeeper(cfg), sso: newSSO(cfg.OIDC, cfg.Now, cfg.Log), now: cfg.Now, log: cfg.Log}
}

// Register adds the operations on tokens, users, second factors and logins to the frame.
func (a *Access) Register() {
	a.addTokens()
	a.addUsers()
	a.addFactors()
	a.addLogins()
	a.addOIDC()
}

// Guard passes on the requests of callers that it knows, and of users that want to log in.
func (a *Access) Guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := a.keeper.admit(r)
		if err != nil {
			if inventory.IsKind(err, inventory.Unauthorized) && r.Header.Get("Authorization") != "" {
				a.tokenRefused(r, c, err)
			}
			rest.WriteProblem(w, r, a.log, err)
			return
		}
		if c.Via != "" {
			door.Trust(r.Context()) // strangers do not take its place any more
		}
		rest.EdgeOf(r.Context()).Caller = c
		next.ServeHTTP(w, r)
	})
}

// tokenRefused notes that somebody came with a token that is unknown, has expired, or whose user may not come in.
func (a *Access) tokenRefused(r *http.Request, c rest.Caller, err error) {
	req := rest.RequestOf(r.Context())
	req.Caller = rest.Caller{Name: c.Name, Source: c.Source}
	row := rest.RowOf(req, "use-token", "token")
	row.Name, row.Status = c.Token, http.StatusUnauthorized
	req = req.EnteredAs(row)
	a.frame.Finish(req, row.Status, rest.ProblemOf(req, a.log, err).Detail)
}

// IsSecure reports whether the browser that sends a request reaches Slipway over https.
func (a *Access) IsSecure(r *http.Request) bool {
	return a.keeper.isOutsideSecure(a.keeper.where.Of(r).IsTLS)
}
