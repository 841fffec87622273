package access

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"golang.org/x/oauth2"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/rest"
)

const (
	providerEvery = 100 * time.Millisecond // one failed login at the provider per source,
	providerBurst = 200                    // and so many at once

	ssoCookie     = "slipway-sso"         // a login that has begun
	refusedCookie = "slipway-sso-refused" // why the last one did not work
	backMax       = 2000
)

type ssoBeginInput struct {
	Back   string `query:"back" doc:"Page of Slipway to go to afterwards, such as /hosts?q=r1"`
	IsHere bool   `query:"here" doc:"Do not go to the external URL first"`
	Accept string `header:"Accept"`
	host   string
}

// Resolve implements huma.Resolver.
func (in *ssoBeginInput) Resolve(ctx huma.Context) []error {
	in.host = ctx.Host()
	return nil
}

type ssoEndInput struct {
	Code   string `query:"code"`
	State  string `query:"state"`
	Error  string `query:"error" doc:"Why the provider does not log somebody in"`
	About  string `query:"error_description"`
	Begun  string `cookie:"slipway-sso"`
	Known  string `cookie:"slipway-known"`
	Accept string `header:"Accept"`
	Agent  string `header:"User-Agent"`
}

type ssoOutput struct {
	Location     string        `header:"Location"`
	CacheControl string        `header:"Cache-Control"`
	SetCookie    []http.Cookie `header:"Set-Cookie"`
}

// oidcOps are the operations with which people log in at the identity provider.
type oidcOps struct {
	frame     *rest.Frame
	store     inventory.Store // the whole
	cookies   *cookies
	rows      *loginRows
	providers *tries[netip.Addr] // logins at the provider that did not work, by address
	sso       *sso               // nil: there is none
}

// add registers the way out to the provider and the way back. Both are for browsers.
func (o *oidcOps) add() {
	rest.Register(o.frame, rest.Operation{
		Method: http.MethodGet, Path: "/logins/oidc", ID: "begin-oidc", Tag: "logins",
		Summary: "Go and log in at the identity provider", Needs: rest.Anybody,
		About:  "Sends a browser to the provider, with code flow and PKCE. Needs no login.",
		Status: http.StatusSeeOther, Errors: []int{http.StatusNotFound}, AnyQuery: true,
	}, o.beginOIDC)
	rest.Register(o.frame, rest.Operation{
		Method: http.MethodGet, Path: "/logins/oidc/callback", ID: "end-oidc", Tag: "logins",
		Summary: "Come back from the identity provider", Needs: rest.Anybody,
		About: "The provider sends browsers here. The user is made or brought up to date, with the roles of the groups, and the answer sets a login's cookie. " +
			"A browser that is refused is sent to the login page, which says why; others get the problem. Needs no login.",
		Status: http.StatusSeeOther, Errors: []int{http.StatusForbidden, http.StatusNotFound, http.StatusConflict}, AnyQuery: true, IsLogged: true,
	}, o.endOIDC)
}

func errNoOIDC() error {
	return inventory.Errorf(inventory.NotFound, "there is no identity provider here").WithHint("oidc in the configuration names one; see docs/sso.md")
}

// cookie is one that comes back from the provider's page: Lax lets it, where a link is followed.
func (p *sso) cookie(req *rest.Request, name, value, path string, seconds int) http.Cookie {
	isSecure := req.Caller.Secure || p.own.Scheme == "https"
	return http.Cookie{Name: name, Value: value, Path: path, MaxAge: seconds, HttpOnly: true, Secure: isSecure, SameSite: http.SameSiteLaxMode}
}

// landing returns a page of the UI, / for all that is none: nobody is sent anywhere else after a login.
func landing(back string) string {
	u, err := url.Parse(back)
	isOdd := strings.ContainsFunc(back, func(r rune) bool { return r <= ' ' || r == '\\' || r == 0x7f })
	if err != nil || isOdd || len(back) > backMax || u.IsAbs() || u.Host != "" || u.User != nil || !strings.HasPrefix(back, "/") || strings.HasPrefix(back, "//") || rest.IsOfAPI(u.Path) {
		return "/"
	}
	return back
}

func (o *oidcOps) beginOIDC(req *rest.Request, in *ssoBeginInput) (*ssoOutput, error) {
	p, back := o.sso, landing(in.Back)
	if p == nil {
		return nil, errNoOIDC()
	}
	// The provider sends browsers back to the external URL, where a cookie from another address is not sent.
	if in.host != p.own.Host && !in.IsHere {
		to := p.own.JoinPath(ssoPath)
		to.RawQuery = url.Values{"back": {back}, "here": {"true"}}.Encode()
		return &ssoOutput{Location: to.String(), CacheControl: "no-store"}, nil
	}
	at, err := p.provider(req)
	if err != nil {
		return o.ssoRefused(req, in.Accept, back, err)
	}
	b := begun{Secret: make([]byte, 32), At: p.now(), Back: back}
	_, _ = rand.Read(b.Secret) // never fails
	to := p.oauth(at).AuthCodeURL(b.part("state"), oauth2.S256ChallengeOption(b.part("verifier")), oauth2.SetAuthURLParam("nonce", b.part("nonce")))
	return &ssoOutput{
		Location: to, CacheControl: "no-store",
		SetCookie: []http.Cookie{p.cookie(req, ssoCookie, p.seal.sign("begun", b), ssoPath, int(ssoFor.Seconds()))},
	}, nil
}

func (o *oidcOps) endOIDC(req *rest.Request, in *ssoEndInput) (*ssoOutput, error) {
	p, c := o.sso, req.Caller
	if p == nil {
		return nil, errNoOIDC()
	}
	var b begun
	isOurs := p.seal.signed("begun", in.Begun, &b)
	who, u, err := o.comeBack(req, in, b, isOurs)
	if err != nil {
		if inventory.IsKind(err, inventory.Unauthorized) || inventory.IsKind(err, inventory.Invalid) {
			o.providers.failed(rest.SourceKey(c.Source))
		}
		return o.ssoRefused(req, in.Accept, cmp.Or(b.Back, "/"), err)
	}
	l := inventory.Login{User: u.Name, Agent: inventory.Clean(in.Agent, 200), ExpiresAt: o.frame.Now().Add(loginFor).UTC()}
	if c.Source.IsValid() {
		l.Source = c.Source.String()
	}
	secret, err := o.rows.begin(req, &l)
	if err != nil {
		return nil, err
	}
	req.Trail.Actor("user " + u.Name)
	req.Trail.Say("by " + p.Title + " as " + who.subject + ", with " + u.Grants.String())
	return &ssoOutput{
		Location: landing(b.Back), CacheControl: "no-store",
		SetCookie: []http.Cookie{
			o.cookies.ofLogin(secret, c.Secure, int(loginFor.Seconds())), o.cookies.ofBrowser(o.cookies.browser(in.Known), u.Name, c.Secure),
			p.cookie(req, ssoCookie, "", ssoPath, -1), p.cookie(req, refusedCookie, "", ssoPathOfOffers, -1),
		},
	}, nil
}

// comeBack finds out who has come back from the provider, and makes that one's user ready.
func (o *oidcOps) comeBack(req *rest.Request, in *ssoEndInput, b begun, isOurs bool) (who identity, u inventory.User, err error) {
	p := o.sso
	if isNew := o.cookies.browser(in.Known).isNew(); isNew { // a browser in which somebody has logged in before passes
		if err := o.providers.allowed(rest.SourceKey(req.Caller.Source), "too many logins that did not work from this address"); err != nil {
			return who, u, err
		}
	}
	// The cookie proves that this browser began the login, and state that the answer is to that. Without both, somebody could
	// log a victim in as himself (RFC 6749 section 10.12).
	age := p.now().Sub(b.At)
	if !isOurs || !hmac.Equal([]byte(in.State), []byte(b.part("state"))) || age > ssoFor || age < -ssoSkew || p.wasUsed(in.State) {
		return who, u, inventory.Errorf(inventory.Invalid, "this login was not begun in this browser, is already over, or began more than %d minutes ago", int(ssoFor.Minutes())).
			WithHint("log in again; cookies have to be allowed")
	}
	if in.Error != "" {
		return who, u, inventory.Errorf(inventory.Forbidden, "%s did not log you in: %s", p.Title, inventory.Clean(strings.Trim(in.Error+": "+in.About, ": "), 300)).
			WithHint("log in again, or ask who runs %s", p.Title)
	}
	if in.Code == "" || len(in.Code) > 8<<10 {
		return who, u, inventory.Errorf(inventory.Invalid, "%s sent you back without saying who you are", p.Title).WithHint("log in again")
	}
	if who, err = p.identify(req, b, in.Code); err != nil {
		return who, u, err
	}
	// Only after success: a failure on the way to the provider may be tried again with the same address. The code itself is good
	// once, which the provider checks.
	p.use(in.State)
	req.Trail.About("login", who.name)
	u, err = o.external(req, who)
	return who, u, err
}

func (p *sso) wasUsed(state string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.used[state]
	return ok
}

// use notes that a login is done, so that its address is good for nothing any more.
func (p *sso) use(state string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for old, at := range p.used {
		if p.now().Sub(at) > ssoFor || len(p.used) >= ssoUsedMax {
			delete(p.used, old)
		}
	}
	p.used[state] = p.now()
}

// external makes or updates the user of somebody for whom the provider vouches. The roles are those of the groups now: who
// has left all of them has none here any more, in other browsers and with tokens neither.
func (o *oidcOps) external(req *rest.Request, who identity) (u inventory.User, err error) {
	p := o.sso
	var refusal error
	err = o.store.Write(req, func(tx inventory.Tx) error {
		refusal = nil
		// By issuer and subject, which never change. Names do, and providers give an old name to a new person.
		u, err = tx.FindUserBySubject(p.Issuer, who.subject)
		isNew := inventory.IsKind(err, inventory.NotFound)
		if err != nil && !isNew {
			return err
		}
		grants := o.inPools(tx, p.grantsOf(who.groups))
		if len(grants) == 0 {
			refusal = inventory.Errorf(inventory.Forbidden, "%s is in no group that has a role here", who.name).
				WithHint("groups that %s says you are in: %d; an admin gives a group a role with oidc.groups in the configuration", p.Title, len(who.groups))
			if isNew {
				return nil
			}
		}
		if isNew {
			return o.newExternal(req, tx, who, grants, &u)
		}
		// The provider does not know that an admin has disabled the user here, and cannot undo it.
		if u.IsDisabled {
			refusal = errDisabled(u.Name)
		}
		// The usual case: a login that changes nothing writes nothing.
		if slices.Equal(u.Grants, grants) && u.DisplayName == who.displayName {
			return nil
		}
		u.Grants, u.DisplayName = grants, who.displayName
		if err := tx.Users().Update(&u, o.frame.Now()); err != nil {
			return err
		}
		return o.frame.Changed(req, tx, "user/"+u.Name, "user "+u.Name+" is as "+p.Title+" says")
	})
	// The refusal is not the transaction's error. A user who has lost all roles loses them in the store, though this login
	// fails.
	if err == nil {
		err = refusal
	}
	return u, err
}

// newExternal makes a user. A name that somebody else has is not taken over: the provider does not vouch for that one.
func (o *oidcOps) newExternal(req *rest.Request, tx inventory.Tx, who identity, grants inventory.Grants, u *inventory.User) error {
	// Otherwise a person at the provider could choose the name of a local admin, and get the roles of that user.
	if other, err := tx.Users().Find(who.name); err == nil {
		return inventory.Errorf(inventory.Conflict, "there is another user %s already", other.Name).
			WithHint("an admin deletes that one, or ties it to you: issuer %s, subject %s", o.sso.Issuer, who.subject)
	} else if !inventory.IsKind(err, inventory.NotFound) {
		return err
	}
	*u = inventory.User{Name: who.name, DisplayName: who.displayName, Grants: grants, Issuer: o.sso.Issuer, Subject: who.subject}
	if err := u.Validate(); err != nil {
		return err
	}
	if err := tx.Users().Create(u, o.frame.Now()); err != nil {
		return err
	}
	return o.frame.Changed(req, tx, "user/"+u.Name, "user "+u.Name+" made")
}

// inPools leaves out roles in pools that are no more.
func (o *oidcOps) inPools(tx inventory.Tx, all inventory.Grants) inventory.Grants {
	return slices.DeleteFunc(all, func(g inventory.Grant) bool {
		err := checkGrants(tx, inventory.Grants{g})
		if err != nil {
			o.frame.Log.Warn("a role of a group is left out", "role", g.String(), "err", err)
		}
		return err != nil
	})
}

// OIDCOffer is a provider of identities on the login page.
type OIDCOffer struct {
	Title   string   `json:"title"`
	Refused *Refusal `json:"refused,omitempty" doc:"Why this browser's last login there did not work"`
}

// Refusal is why a login at the provider did not work.
type Refusal struct {
	Message   string `json:"message"`
	Hint      string `json:"hint,omitempty"`
	RequestID string `json:"requestID"`
}

const ssoPathOfOffers = "/api/v1/logins/offers" // the only address that needs it

// ssoRefused sends a browser back to the login page, with the reason in a cookie: in an address, anybody could make the page
// say anything. Who is no browser gets the problem.
func (o *oidcOps) ssoRefused(req *rest.Request, accept, back string, err error) (*ssoOutput, error) {
	if !strings.Contains(accept, "text/html") {
		return nil, err
	}
	problem := rest.ProblemOf(req, o.frame.Log, err)
	o.frame.Finish(req, problem.Status, problem.Detail)
	why := Refusal{Message: inventory.Clean(problem.Detail, 600), Hint: inventory.Clean(problem.Hint, 400), RequestID: problem.RequestID}
	// The cookie of the login that failed is deleted. The reason lives for a minute, and only the login page gets it.
	return &ssoOutput{
		Location: landing(back), CacheControl: "no-store",
		SetCookie: []http.Cookie{
			o.sso.cookie(req, ssoCookie, "", ssoPath, -1),
			o.sso.cookie(req, refusedCookie, o.sso.seal.sign("refused", why), ssoPathOfOffers, 60),
		},
	}, nil
}

// offer is the provider on the login page.
func (p *sso) offer(refused string) *OIDCOffer {
	if p == nil {
		return nil
	}
	o := &OIDCOffer{Title: p.Title}
	var why Refusal
	// The signature keeps other sites from choosing the text that our login page shows.
	if p.seal.signed("refused", refused, &why) {
		o.Refused = &why
	}
	return o
}
