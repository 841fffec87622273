package access

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
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
	ssoCookie     = "slipway-sso"         // a login that has begun
	refusedCookie = "slipway-sso-refused" // why the last one did not work
	ssoPath       = "/api/v1/logins/oidc"
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

// addOIDC registers the way out to the provider and the way back. Both are for browsers.
func (a *Access) addOIDC() {
	rest.Register(a.frame, rest.Operation{
		Method: http.MethodGet, Path: "/logins/oidc", ID: "begin-oidc", Tag: "logins",
		Summary: "Go and log in at the identity provider", Needs: rest.Anybody,
		About:  "Sends a browser to the provider, with code flow and PKCE. Needs no login.",
		Status: http.StatusSeeOther, Errors: []int{http.StatusNotFound}, AnyQuery: true,
	}, a.beginOIDC)
	rest.Register(a.frame, rest.Operation{
		Method: http.MethodGet, Path: "/logins/oidc/callback", ID: "end-oidc", Tag: "logins",
		Summary: "Come back from the identity provider", Needs: rest.Anybody,
		About: "The provider sends browsers here. The user is made or brought up to date, with the roles of the groups, and the answer sets a login's cookie. " +
			"A browser that is refused is sent to the login page, which says why; others get the problem. Needs no login.",
		Status: http.StatusSeeOther, Errors: []int{http.StatusForbidden, http.StatusNotFound, http.StatusConflict}, AnyQuery: true, IsLogged: true,
	}, a.endOIDC)
}

func errNoOIDC() error {
	return inventory.Errorf(inventory.NotFound, "there is no identity provider here").WithHint("oidc in the configuration names one; see docs/sso.md")
}

// begun is a login that has begun, as the browser's cookie keeps it. What must not be guessed comes from its secret.
type begun struct {
	Secret []byte    `json:"s"`
	At     time.Time `json:"t"`
	Back   string    `json:"b"`
}

// part is one of the values that belong to a login: state, nonce, verifier.
func (b begun) part(what string) string {
	m := hmac.New(sha256.New, b.Secret)
	m.Write([]byte(what))
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
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

func (a *Access) beginOIDC(req *rest.Request, in *ssoBeginInput) (*ssoOutput, error) {
	p, back := a.sso, landing(in.Back)
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
		return a.ssoRefused(req, in.Accept, back, err)
	}
	b := begun{Secret: make([]byte, 32), At: p.now(), Back: back}
	_, _ = rand.Read(b.Secret) // never fails
	to := p.oauth(at).AuthCodeURL(b.part("state"), oauth2.S256ChallengeOption(b.part("verifier")), oauth2.SetAuthURLParam("nonce", b.part("nonce")))
	return &ssoOutput{
		Location: to, CacheControl: "no-store",
		SetCookie: []http.Cookie{p.cookie(req, ssoCookie, p.seal.sign("begun", b), ssoPath, int(ssoFor.Seconds()))},
	}, nil
}

func (a *Access) endOIDC(req *rest.Request, in *ssoEndInput) (*ssoOutput, error) {
	p, c := a.sso, req.Caller
	if p == nil {
		return nil, errNoOIDC()
	}
	var b begun
	isOurs := p.seal.signed("begun", in.Begun, &b)
	who, u, err := a.comeBack(req, in, b, isOurs)
	if err != nil {
		if inventory.IsKind(err, inventory.Unauthorized) || inventory.IsKind(err, inventory.Invalid) {
			a.keeper.providers.failed(rest.SourceKey(c.Source))
		}
		return a.ssoRefused(req, in.Accept, cmp.Or(b.Back, "/"), err)
	}
	l := inventory.Login{User: u.Name, Agent: inventory.Clean(in.Agent, 200), ExpiresAt: a.now().Add(loginFor).UTC()}
	if c.Source.IsValid() {
		l.Source = c.Source.String()
	}
	secret, err := a.keeper.begin(req, &l)
	if err != nil {
		return nil, err
	}
	req.Trail.Actor("user " + u.Name)
	req.Trail.Say("by " + p.Title + " as " + who.subject + ", with " + u.Grants.String())
	return &ssoOutput{
		Location: landing(b.Back), CacheControl: "no-store",
		SetCookie: []http.Cookie{
			a.keeper.cookieOf(secret, c.Secure, int(loginFor.Seconds())), a.keeper.knownCookie(a.keeper.browser(in.Known), u.Name, c.Secure),
			p.cookie(req, ssoCookie, "", ssoPath, -1), p.cookie(req, refusedCookie, "", ssoPathOfOffers, -1),
		},
	}, nil
}

// comeBack finds out who has come back from the provider, and makes that one's user ready.
func (a *Access) comeBack(req *rest.Request, in *ssoEndInput, b begun, isOurs bool) (who identity, u inventory.User, err error) {
	p := a.sso
	if isNew := a.keeper.browser(in.Known).isNew(); isNew { // a browser in which somebody has logged in before passes
		if err := a.keeper.providers.allowed(rest.SourceKey(req.Caller.Source), "too many logins that did not work from this address"); err != nil {
			return who, u, err
		}
	}
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
	p.use(in.State)
	req.Trail.About("login", who.name)
	u, err = a.external(req, who)
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
func (a *Access) external(req *rest.Request, who identity) (u inventory.User, err error) {
	p := a.sso
	var refusal error
	err = a.keeper.store.Write(req, func(tx inventory.Tx) error {
		refusal = nil
		u, err = tx.FindUserBySubject(p.Issuer, who.subject)
		isNew := inventory.IsKind(err, inventory.NotFound)
		if err != nil && !isNew {
			return err
		}
		grants := a.inPools(tx, p.grantsOf(who.groups))
		if len(grants) == 0 {
			refusal = inventory.Errorf(inventory.Forbidden, "%s is in no group that has a role here", who.name).
				WithHint("groups that %s says you are in: %d; an admin gives a group a role with oidc.groups in the configuration", p.Title, len(who.groups))
			if isNew {
				return nil
			}
		}
		if isNew {
			return a.newExternal(req, tx, who, grants, &u)
		}
		if u.IsDisabled {
			refusal = errDisabled(u.Name)
		}
		if slices.Equal(u.Grants, grants) && u.DisplayName == who.displayName {
			return nil
		}
		u.Grants, u.DisplayName = grants, who.displayName
		if err := tx.Users().Update(&u, a.now()); err != nil {
			return err
		}
		return a.frame.Changed(req, tx, "user/"+u.Name, "user "+u.Name+" is as "+p.Title+" says")
	})
	if err == nil {
		err = refusal
	}
	return u, err
}

// newExternal makes a user. A name that somebody else has is not taken over: the provider does not vouch for that one.
func (a *Access) newExternal(req *rest.Request, tx inventory.Tx, who identity, grants inventory.Grants, u *inventory.User) error {
	if other, err := tx.Users().Find(who.name); err == nil {
		return inventory.Errorf(inventory.Conflict, "there is another user %s already", other.Name).
			WithHint("an admin deletes that one, or ties it to you: issuer %s, subject %s", a.sso.Issuer, who.subject)
	} else if !inventory.IsKind(err, inventory.NotFound) {
		return err
	}
	*u = inventory.User{Name: who.name, DisplayName: who.displayName, Grants: grants, Issuer: a.sso.Issuer, Subject: who.subject}
	if err := u.Validate(); err != nil {
		return err
	}
	if err := tx.Users().Create(u, a.now()); err != nil {
		return err
	}
	return a.frame.Changed(req, tx, "user/"+u.Name, "user "+u.Name+" made")
}

// inPools leaves out roles in pools that are no more.
func (a *Access) inPools(tx inventory.Tx, all inventory.Grants) inventory.Grants {
	return slices.DeleteFunc(all, func(g inventory.Grant) bool {
		err := checkGrants(tx, inventory.Grants{g})
		if err != nil {
			a.log.Warn("a role of a group is left out", "role", g.String(), "err", err)
		}
		return err != nil
	})
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
func (a *Access) ssoRefused(req *rest.Request, accept, back string, err error) (*ssoOutput, error) {
	if !strings.Contains(accept, "text/html") {
		return nil, err
	}
	problem := rest.ProblemOf(req, a.log, err)
	a.frame.Finish(req, problem.Status, problem.Detail)
	why := Refusal{Message: inventory.Clean(problem.Detail, 600), Hint: inventory.Clean(problem.Hint, 400), RequestID: problem.RequestID}
	return &ssoOutput{
		Location: landing(back), CacheControl: "no-store",
		SetCookie: []http.Cookie{
			a.sso.cookie(req, ssoCookie, "", ssoPath, -1),
			a.sso.cookie(req, refusedCookie, a.sso.seal.sign("refused", why), ssoPathOfOffers, 60),
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
	if p.seal.signed("refused", refused, &why) {
		o.Refused = &why
	}
	return o
}
