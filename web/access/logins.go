package access

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/wire"
)

// Offers are the ways to log in.
type Offers struct {
	Password bool       `json:"password" doc:"There are users with passwords"`
	OIDC     *OIDCOffer `json:"oidc,omitempty"`
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
	Body      wire.Me
}

// loginOps are the operations on logins.
type loginOps struct {
	frame     *rest.Frame
	store     inventory.Store // the whole
	keeper    *keeper
	passwords *passwords
	seconds   *secondFactors
	cookies   *cookies
	rows      *loginRows
	sso       *sso // nil: there is no identity provider
}

// add registers what lets browsers in. A program sends a token with each request and needs no login.
func (o *loginOps) add() {
	rest.Register(o.frame, rest.Operation{
		Method: http.MethodGet, Path: "/me", ID: "get-me", Tag: "logins",
		Summary: "Say who I am and what I may do", Needs: rest.Anybody, ForClusters: true,
	}, func(req *rest.Request, _ *struct{}) (*rest.One[wire.Me], error) {
		me, err := o.me(req, req.Caller)
		return &rest.One[wire.Me]{Body: me}, err
	})
	rest.Register(o.frame, rest.Operation{
		Method: http.MethodGet, Path: "/logins/offers", ID: "list-offers", Tag: "logins",
		Summary: "Say how one can log in", Needs: rest.Anybody,
		About: "Needs no login.",
	}, o.offers)
	rest.Register(o.frame, rest.Operation{
		Method: http.MethodPost, Path: "/logins", ID: "create-login", Tag: "logins", Summary: "Log in", Needs: rest.Anybody,
		About: "With user and password, or with a token. The answer sets a cookie, which is good for 12 hours without a request and for 7 days at most. " +
			"Needs no login. An unknown user and a wrong password get the same answer.",
		Status: http.StatusCreated,
	}, o.logIn)
	rest.Register(o.frame, rest.Operation{
		Method: http.MethodGet, Path: "/logins", ID: "list-logins", Tag: "logins",
		Summary: "List where I am logged in", Needs: rest.Anybody,
		About: "An admin may ask for those of another user.", Errors: []int{http.StatusForbidden},
	}, o.listLogins)
	rest.Register(o.frame, rest.Operation{
		Method: http.MethodDelete, Path: "/logins", ID: "delete-logins", Tag: "logins", Summary: "Log out everywhere", Needs: rest.Anybody,
		About: "Ends all logins of the user, this one too unless others is set.", Status: http.StatusNoContent, Errors: []int{http.StatusForbidden},
	}, o.logOutEverywhere)
	rest.Register(o.frame, rest.Operation{
		Method: http.MethodDelete, Path: "/logins/{name}", ID: "delete-login", Tag: "logins", Summary: "Log out", Needs: rest.Anybody,
		About: "The id current is this login.", Status: http.StatusNoContent, Errors: []int{http.StatusNotFound},
	}, o.logOut)
}

// me describes a caller.
func (o *loginOps) me(ctx context.Context, c rest.Caller) (wire.Me, error) {
	me := wire.Me{Name: c.Name, User: c.User, Via: c.Via, Login: c.Login, Grants: c.Grants, Cluster: c.Cluster, Namespaces: c.Namespaces, MustSetUp: c.MustSetUp}
	if me.Grants == nil {
		me.Grants = inventory.Grants{}
	}
	err := o.store.Read(ctx, func(tx inventory.Tx) error {
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

func (o *loginOps) offers(req *rest.Request, in *offersInput) (*rest.One[Offers], error) {
	out := Offers{OIDC: o.sso.offer(in.Refused)}
	err := o.store.Read(req, func(tx inventory.Tx) error {
		// Anybody may ask this before a login. The answer shows that passwords are in use, and not whose.
		users, err := tx.Users().List(inventory.Page{})
		out.Password = slices.ContainsFunc(users, func(u inventory.User) bool { return u.HasPassword })
		return err
	})
	return &rest.One[Offers]{Body: out}, err
}

func (o *loginOps) logIn(req *rest.Request, in *loginInput) (*loginOutput, error) {
	c := req.Caller
	l := inventory.Login{Agent: inventory.Clean(in.UserAgent, 200), ExpiresAt: o.frame.Now().Add(loginFor).UTC()}
	if c.Source.IsValid() {
		l.Source = c.Source.String()
	}
	// With both ways in one request nobody could say which failure counts, and whose login it is.
	byPassword, byToken := in.Body.User != "" || in.Body.Password != "", in.Body.Token != ""
	if byPassword == byToken {
		return nil, inventory.Errorf(inventory.Invalid, "say who you are in one way").WithHint("give user and password, or a token")
	}
	browser := o.cookies.browser(in.Known)
	var who rest.Caller
	var err error
	if byToken {
		who, err = o.keeper.byToken(req, strings.TrimSpace(in.Body.Token))
		err = o.keeper.countToken(c.Source, err)
		l.Token = who.Token
		// The token of a cluster has no roles. A login with it could open no page.
		if err == nil && who.Cluster != "" {
			err = rest.ErrOfCluster(who)
		}
	} else {
		// Noted before the check, so that the audit also names the user of a login that failed.
		req.Trail.About("login", inventory.Clean(in.Body.User, 63))
		who, err = o.byPassword(req, browser, in)
		l.User = who.User
	}
	if err != nil {
		return nil, err
	}
	req.Trail.Actor(who.Name)
	secret, err := o.rows.begin(req, &l)
	if err != nil {
		return nil, err
	}
	who.Via, who.Login = rest.ViaLogin, l.ID
	me, err := o.me(req, who)
	cookies := []http.Cookie{o.cookies.ofLogin(secret, c.Secure, int(loginFor.Seconds()))}
	// A token says nothing about the person at the browser. Only a user makes a browser a known one.
	if who.User != "" {
		cookies = append(cookies, o.cookies.ofBrowser(browser, who.User, c.Secure))
	}
	return &loginOutput{SetCookie: cookies, Body: me}, err
}

// byPassword finds the user with a name, a password, and a second factor where the user has one.
func (o *loginOps) byPassword(req *rest.Request, b browser, in *loginInput) (c rest.Caller, err error) {
	u, err := o.passwords.withPassword(req, b, in.Body.User, in.Body.Password)
	// The password comes first: the question for a code would otherwise show who has a second factor.
	if err == nil && u.HasSecondFactor {
		err = o.secondFactor(req, b, &u, in)
	}
	if err != nil {
		return c, err
	}
	return o.keeper.as(&u), nil
}

// secondFactor asks a user who has given the right password for a code, or for the answer of a security key.
func (o *loginOps) secondFactor(ctx context.Context, b browser, u *inventory.User, in *loginInput) error {
	// A known browser has its own count of wrong codes. Somebody who knows only the password cannot lock its user out there.
	from := "from anywhere"
	if b.knows(u.Name) {
		from = "browser " + b.ID
	}
	if in.Body.SecurityKey != nil {
		return o.seconds.useKey(ctx, u.Name, from, in.Origin, in.Body.SecurityKey)
	}
	if in.Body.Code == "" {
		e := inventory.Errorf(inventory.Unauthorized, "user %s has a second factor", u.Name).
			WithHint("give the code that the authenticator app shows, or a recovery code, or use the security key in a browser")
		e.Field = "code"
		return e
	}
	return o.seconds.useCode(ctx, u.Name, from, in.Body.Code)
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
		// An admin of one pool is none here, because logins belong to no pool.
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

func (o *loginOps) listLogins(req *rest.Request, in *loginsInput) (*rest.Listed[OneLogin], error) {
	f, err := loginsOf(req, in.User)
	if err != nil {
		return nil, err
	}
	out := &rest.Listed[OneLogin]{Body: rest.List[OneLogin]{Items: []OneLogin{}}}
	now := o.frame.Now()
	err = o.store.Read(req, func(tx inventory.Tx) error {
		all, err := tx.ListLogins(f)
		for _, l := range all {
			// Logins that have ended stay in the store until the next user logs in.
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
func (o *loginOps) ended(req *rest.Request, isOwn bool) *logOutOutput {
	if !isOwn {
		return &logOutOutput{}
	}
	// A negative age makes the browser delete its cookie (RFC 6265 section 5.2.2).
	return &logOutOutput{SetCookie: []http.Cookie{o.cookies.ofLogin("", req.Caller.Secure, -1)}}
}

func (o *loginOps) logOut(req *rest.Request, in *rest.NameInput) (*logOutOutput, error) {
	c, id := req.Caller, in.Name
	if id == "current" {
		if c.Login == "" {
			return nil, inventory.Errorf(inventory.NotFound, "this request came without a login").WithHint("a token ends when it is deleted: slipway token delete NAME")
		}
		id = c.Login
	}
	err := o.store.Write(req, func(tx inventory.Tx) error {
		// All of them, because an admin may end the logins of others. Whether the caller owns it is checked below.
		all, err := tx.ListLogins(inventory.LoginFilter{})
		if err != nil {
			return err
		}
		// Another's login is answered like one that does not exist.
		i := slices.IndexFunc(all, func(l inventory.Login) bool { return l.ID == id })
		if i < 0 || !ownsLogin(c, all[i]) {
			return inventory.Errorf(inventory.NotFound, "there is no login %q", inventory.Clean(id, 40)).WithHint("GET /api/v1/logins lists yours")
		}
		return tx.DeleteLogin(id)
	})
	if err != nil {
		return nil, err
	}
	return o.ended(req, id == c.Login), nil
}

func ownsLogin(c rest.Caller, l inventory.Login) bool {
	return c.Grants.Everywhere() == inventory.Admin || l.ID == c.Login || c.User != "" && l.User == c.User
}

type logOutInput struct {
	User   string `query:"user" doc:"Those of this user, for an admin; without it one's own" maxLength:"63"`
	Others bool   `query:"others" doc:"All but this one"`
}

func (o *loginOps) logOutEverywhere(req *rest.Request, in *logOutInput) (*logOutOutput, error) {
	f, err := loginsOf(req, in.User)
	if err != nil {
		return nil, err
	}
	keep, isOwn := "", false
	if in.Others {
		keep = req.Caller.Login
	}
	err = o.store.Write(req, func(tx inventory.Tx) error {
		isOwn, err = endLogins(tx, f, keep, req.Caller.Login)
		return err
	})
	if err != nil {
		return nil, err
	}
	return o.ended(req, isOwn), nil
}
