package access

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/rest"
)

// Me is who sent the request, and what that one may do.
type Me struct {
	Name            string           `json:"name" doc:"user NAME, token NAME, or NAME (local) for the Unix socket"`
	User            string           `json:"user,omitempty" doc:"The user's name; absent for a token of nobody and for the socket"`
	DisplayName     string           `json:"displayName,omitempty"`
	HasPassword     bool             `json:"hasPassword,omitempty" doc:"The user logs in with a password here"`
	HasSecondFactor bool             `json:"hasSecondFactor,omitempty"`
	MustSetUp       bool             `json:"mustSetUpSecondFactor,omitempty" doc:"Before anything else"`
	Via             string           `json:"via" enum:"login,token,socket"`
	Login           string           `json:"login,omitempty" doc:"Id of this login"`
	Grants          inventory.Grants `json:"grants"`
	Cluster         string           `json:"cluster,omitempty" doc:"UID of the cluster whose controllers the token is for; it is good for nothing else"`
	Namespaces      []string         `json:"namespaces,omitempty" doc:"Those of the cluster that the token speaks for; absent means all"`
	NeedsSetup      bool             `json:"needsSetup" doc:"There is no user yet: make one"`
}

// Offers are the ways to log in.
type Offers struct {
	Password bool       `json:"password" doc:"There are users with passwords"`
	OIDC     *OIDCOffer `json:"oidc,omitempty"`
}

// OIDCOffer is a provider of identities on the login page.
type OIDCOffer struct {
	Title   string   `json:"title"`
	Refused *Refusal `json:"refused,omitempty" doc:"Why this browser's last login there did not work"`
}

type offersInput struct {
	Refused string `cookie:"slipway-sso-refused"`
}

type loginInput struct {
	UserAgent string `header:"User-Agent" maxLength:"4096"`
	Known     string `cookie:"slipway-known"`
	Body      struct {
		User     string `json:"user,omitempty" maxLength:"255"`
		Password string `json:"password,omitempty" maxLength:"1024"`
		Code     string `json:"code,omitempty" maxLength:"64" doc:"Of the authenticator app, or a recovery code, where the user has a second factor"`
		Token    string `json:"token,omitempty" maxLength:"512" doc:"The secret of a token, instead of user and password"`
		// SecurityKey takes the place of the code.
		SecurityKey *KeyAnswer `json:"securityKey,omitempty" doc:"The answer of a security key, instead of a code"`
	}
	Origin string `header:"Origin" maxLength:"512"`
}

type loginOutput struct {
	SetCookie []http.Cookie `header:"Set-Cookie"`
	Body      Me
}

// addLogins registers what lets browsers in. A program sends a token with each request and needs no login.
func (a *Access) addLogins() {
	rest.Register(a.frame, rest.Operation{
		Method: http.MethodGet, Path: "/me", ID: "get-me", Tag: "logins",
		Summary: "Say who I am and what I may do", Needs: rest.Anybody, ForClusters: true,
	}, func(req *rest.Request, _ *struct{}) (*rest.One[Me], error) {
		me, err := a.me(req, req.Caller)
		return &rest.One[Me]{Body: me}, err
	})
	rest.Register(a.frame, rest.Operation{
		Method: http.MethodGet, Path: "/logins/offers", ID: "list-offers", Tag: "logins",
		Summary: "Say how one can log in", Needs: rest.Anybody,
		About: "Needs no login.",
	}, a.offers)
	rest.Register(a.frame, rest.Operation{
		Method: http.MethodPost, Path: "/logins", ID: "create-login", Tag: "logins", Summary: "Log in", Needs: rest.Anybody,
		About: "With user and password, or with a token. The answer sets a cookie, which is good for 12 hours without a request and for 7 days at most. " +
			"Needs no login. An unknown user and a wrong password get the same answer.",
		Status: http.StatusCreated,
	}, a.logIn)
	rest.Register(a.frame, rest.Operation{
		Method: http.MethodGet, Path: "/logins", ID: "list-logins", Tag: "logins",
		Summary: "List where I am logged in", Needs: rest.Anybody,
		About: "An admin may ask for those of another user.", Errors: []int{http.StatusForbidden},
	}, a.listLogins)
	rest.Register(a.frame, rest.Operation{
		Method: http.MethodDelete, Path: "/logins", ID: "delete-logins", Tag: "logins", Summary: "Log out everywhere", Needs: rest.Anybody,
		About: "Ends all logins of the user, this one too unless others is set.", Status: http.StatusNoContent, Errors: []int{http.StatusForbidden},
	}, a.logOutEverywhere)
	rest.Register(a.frame, rest.Operation{
		Method: http.MethodDelete, Path: "/logins/{name}", ID: "delete-login", Tag: "logins", Summary: "Log out", Needs: rest.Anybody,
		About: "The id current is this login.", Status: http.StatusNoContent, Errors: []int{http.StatusNotFound},
	}, a.logOut)
}

// me describes a caller.
func (a *Access) me(ctx context.Context, c rest.Caller) (Me, error) {
	me := Me{Name: c.Name, User: c.User, Via: c.Via, Login: c.Login, Grants: c.Grants, Cluster: c.Cluster, Namespaces: c.Namespaces, MustSetUp: c.MustSetUp}
	if me.Grants == nil {
		me.Grants = inventory.Grants{}
	}
	err := a.keeper.store.Read(ctx, func(tx inventory.Tx) error {
		users, err := tx.Users().List(inventory.Page{Limit: 1})
		if err != nil {
			return err
		}
		me.NeedsSetup = len(users) == 0
		if c.User == "" {
			return nil
		}
		u, err := tx.Users().Find(c.User)
		me.DisplayName, me.HasPassword, me.HasSecondFactor = u.DisplayName, u.HasPassword, u.HasSecondFactor
		return err
	})
	return me, err
}

func (a *Access) offers(req *rest.Request, in *offersInput) (*rest.One[Offers], error) {
	out := Offers{OIDC: a.sso.offer(in.Refused)}
	err := a.keeper.store.Read(req, func(tx inventory.Tx) error {
		users, err := tx.Users().List(inventory.Page{})
		out.Password = slices.ContainsFunc(users, func(u inventory.User) bool { return u.HasPassword })
		return err
	})
	return &rest.One[Offers]{Body: out}, err
}

func (a *Access) logIn(req *rest.Request, in *loginInput) (*loginOutput, error) {
	c := req.Caller
	l := inventory.Login{Agent: inventory.Clean(in.UserAgent, 200), ExpiresAt: a.now().Add(loginFor).UTC()}
	if c.Source.IsValid() {
		l.Source = c.Source.String()
	}
	byPassword, byToken := in.Body.User != "" || in.Body.Password != "", in.Body.Token != ""
	if byPassword == byToken {
		return nil, inventory.Errorf(inventory.Invalid, "say who you are in one way").WithHint("give user and password, or a token")
	}
	browser := a.keeper.browser(in.Known)
	var who rest.Caller
	var err error
	if byToken {
		who, err = a.keeper.byToken(req, strings.TrimSpace(in.Body.Token))
		err = a.keeper.countToken(c.Source, err)
		l.Token = who.Token
		if err == nil && who.Cluster != "" {
			err = rest.ErrOfCluster(who)
		}
	} else {
		req.Trail.About("login", inventory.Clean(in.Body.User, 63))
		who, err = a.keeper.byPassword(req, browser, in)
		l.User = who.User
	}
	if err != nil {
		return nil, err
	}
	req.Trail.Actor(who.Name)
	secret, err := a.keeper.begin(req, &l)
	if err != nil {
		return nil, err
	}
	who.Via, who.Login = rest.ViaLogin, l.ID
	me, err := a.me(req, who)
	cookies := []http.Cookie{a.keeper.cookieOf(secret, c.Secure, int(loginFor.Seconds()))}
	if who.User != "" {
		cookies = append(cookies, a.keeper.knownCookie(browser, who.User, c.Secure))
	}
	return &loginOutput{SetCookie: cookies, Body: me}, err
}

// byPassword finds the user with a name, a password, and a second factor where the user has one.
func (k *keeper) byPassword(req *rest.Request, b browser, in *loginInput) (c rest.Caller, err error) {
	u, err := k.withPassword(req, b, in.Body.User, in.Body.Password)
	if err == nil && u.HasSecondFactor {
		err = k.secondFactor(req, b, &u, in)
	}
	if err != nil {
		return c, err
	}
	return k.as(&u), nil
}

// withPassword finds the user with a name and a password. Whether there is such a user shows neither in the answer nor in how
// long it takes. Wrong ones are counted by address, and by user and address; a browser in which the user has logged in before is
// counted by itself, so that strangers keep nobody out.
func (k *keeper) withPassword(req *rest.Request, b browser, name, password string) (u inventory.User, err error) {
	name = strings.ToLower(strings.TrimSpace(inventory.Clean(name, 63)))
	source := rest.SourceKey(req.Caller.Source)
	hashes, isKnown, key := k.hashes, b.knows(name), name+" from "+source.String()
	if isKnown {
		hashes, key = k.inner, name+" browser "+b.ID
	} else if err := k.sources.allowed(source, "too many wrong tokens and passwords from this address"); err != nil {
		return u, err
	}
	if err := k.names.allowed(key, "too many wrong passwords for this user"); err != nil {
		return u, err
	}
	err = k.store.Read(req, func(tx inventory.Tx) error {
		u, err = tx.Users().Find(name)
		return err
	})
	if err != nil && !inventory.IsKind(err, inventory.NotFound) {
		return u, err
	}
	isRight, err := hashes.matches(req, u.PasswordHash, password)
	if err != nil {
		return u, err
	}
	if !isRight {
		k.names.failed(key)
		if !isKnown {
			k.sources.failed(source)
		}
		return inventory.User{}, inventory.Errorf(inventory.Unauthorized, "there is no such user, or the password is another").
			WithHint("an admin can set a new password on the server: slipway user password NAME")
	}
	if u.IsDisabled { // who knows the password may know this too
		return u, errDisabled(u.Name)
	}
	return u, nil
}

// secondFactor asks a user who has given the right password for a code, or for the answer of a security key.
func (k *keeper) secondFactor(ctx context.Context, b browser, u *inventory.User, in *loginInput) error {
	from := "from anywhere"
	if b.knows(u.Name) {
		from = "browser " + b.ID
	}
	if in.Body.SecurityKey != nil {
		return k.useKey(ctx, u.Name, from, in.Origin, in.Body.SecurityKey)
	}
	if in.Body.Code == "" {
		e := inventory.Errorf(inventory.Unauthorized, "user %s has a second factor", u.Name).
			WithHint("give the code that the authenticator app shows, or a recovery code, or use the security key in a browser")
		e.Field = "code"
		return e
	}
	return k.useCode(ctx, u.Name, from, in.Body.Code)
}

// loginsMax is how many logins a user or token has; the oldest ends for one more.
const loginsMax = 50

// begin stores a login and returns its cookie's secret.
func (k *keeper) begin(ctx context.Context, l *inventory.Login) (secret string, err error) {
	secret, now := NewSecret(), k.now()
	l.ID, l.Hash = newLoginID(), HashToken(secret)
	return secret, k.store.Write(ctx, func(tx inventory.Tx) error {
		if _, err := tx.ForgetLogins(now, now.Add(-loginIdle), 1000); err != nil {
			return err
		}
		old, err := tx.ListLogins(inventory.LoginFilter{User: l.User, Token: l.Token})
		if err != nil {
			return err
		}
		for i := loginsMax - 1; i < len(old); i++ {
			if err := tx.DeleteLogin(old[i].ID); err != nil {
				return err
			}
		}
		if l.User != "" {
			if err := tx.NoteLogin(l.User, now); err != nil {
				return err
			}
		}
		return tx.CreateLogin(l, now)
	})
}

func newLoginID() string {
	var b [10]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// OneLogin is a login as its user sees it.
type OneLogin struct {
	inventory.Login
	IsCurrent bool `json:"isCurrent" doc:"The one that asks"`
}

type loginsInput struct {
	User string `query:"user" doc:"Those of this user, for an admin; without it one's own" maxLength:"63"`
}

// loginsOf returns the filter for a caller's own logins, or those of a user whom an admin names.
func loginsOf(req *rest.Request, user string) (f inventory.LoginFilter, err error) {
	c := req.Caller
	switch {
	case user != "" && user != c.User:
		if c.Grants.Everywhere() != inventory.Admin {
			return f, rest.Refused(c, inventory.Admin, " everywhere", c.Grants.Everywhere())
		}
		return inventory.LoginFilter{User: user}, nil
	case c.User != "":
		return inventory.LoginFilter{User: c.User}, nil
	case c.Token != "":
		return inventory.LoginFilter{Token: c.Token}, nil
	}
	return f, inventory.Errorf(inventory.Invalid, "a client of the Unix socket has no logins").WithHint("name a user: ?user=NAME")
}

func (a *Access) listLogins(req *rest.Request, in *loginsInput) (*rest.Listed[OneLogin], error) {
	f, err := loginsOf(req, in.User)
	if err != nil {
		return nil, err
	}
	out := &rest.Listed[OneLogin]{Body: rest.List[OneLogin]{Items: []OneLogin{}}}
	now := a.now()
	err = a.keeper.store.Read(req, func(tx inventory.Tx) error {
		all, err := tx.ListLogins(f)
		for _, l := range all {
			if now.Before(l.ExpiresAt) && now.Sub(l.SeenAt) < loginIdle {
				out.Body.Items = append(out.Body.Items, OneLogin{Login: l, IsCurrent: l.ID == req.Caller.Login})
			}
		}
		return err
	})
	return out, err
}

type logOutOutput struct {
	SetCookie []http.Cookie `header:"Set-Cookie"`
}

// ended is the answer after a login has ended: the browser forgets its cookie if that was its own.
func (a *Access) ended(req *rest.Request, isOwn bool) *logOutOutput {
	if !isOwn {
		return &logOutOutput{}
	}
	return &logOutOutput{SetCookie: []http.Cookie{a.keeper.cookieOf("", req.Caller.Secure, -1)}}
}

func (a *Access) logOut(req *rest.Request, in *rest.NameInput) (*logOutOutput, error) {
	c, id := req.Caller, in.Name
	if id == "current" {
		if c.Login == "" {
			return nil, inventory.Errorf(inventory.NotFound, "this request came without a login").WithHint("a token ends when it is deleted: slipway token delete NAME")
		}
		id = c.Login
	}
	err := a.keeper.store.Write(req, func(tx inventory.Tx) error {
		all, err := tx.ListLogins(inventory.LoginFilter{})
		if err != nil {
			return err
		}
		i := slices.IndexFunc(all, func(l inventory.Login) bool { return l.ID == id })
		if i < 0 || !ownsLogin(c, all[i]) {
			return inventory.Errorf(inventory.NotFound, "there is no login %q", inventory.Clean(id, 40)).WithHint("GET /api/v1/logins lists yours")
		}
		return tx.DeleteLogin(id)
	})
	if err != nil {
		return nil, err
	}
	return a.ended(req, id == c.Login), nil
}

func ownsLogin(c rest.Caller, l inventory.Login) bool {
	return c.Grants.Everywhere() == inventory.Admin || l.ID == c.Login || c.User != "" && l.User == c.User
}

type logOutInput struct {
	User   string `query:"user" doc:"Those of this user, for an admin; without it one's own" maxLength:"63"`
	Others bool   `query:"others" doc:"All but this one"`
}

func (a *Access) logOutEverywhere(req *rest.Request, in *logOutInput) (*logOutOutput, error) {
	f, err := loginsOf(req, in.User)
	if err != nil {
		return nil, err
	}
	keep, isOwn := "", false
	if in.Others {
		keep = req.Caller.Login
	}
	err = a.keeper.store.Write(req, func(tx inventory.Tx) error {
		isOwn, err = endLogins(tx, f, keep, req.Caller.Login)
		return err
	})
	if err != nil {
		return nil, err
	}
	return a.ended(req, isOwn), nil
}

// endLogins ends logins, but the one to keep; hit is whether that with the id own was among them.
func endLogins(tx inventory.Tx, f inventory.LoginFilter, keep, own string) (hit bool, err error) {
	all, err := tx.ListLogins(f)
	for _, l := range all {
		if l.ID == keep {
			continue
		}
		if err := tx.DeleteLogin(l.ID); err != nil {
			return hit, err
		}
		hit = hit || l.ID == own
	}
	return hit, err
}
