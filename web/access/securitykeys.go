package access

import (
	"net/http"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/securitykey"
	"slipway.dev/slipway/web/totp"
	"slipway.dev/slipway/web/wire"
)

type keyBegin struct {
	rest.NameRef
	Origin string `header:"Origin" maxLength:"512"`
}

type keyPut struct {
	rest.NameRef
	Origin string `header:"Origin" maxLength:"512"`
	Key    string `path:"key" maxLength:"63" pattern:"^[A-Za-z0-9][A-Za-z0-9 ._-]*$"`
	Body   struct {
		KeyAnswer
		Password string `json:"password" maxLength:"1024" doc:"The user's own"`
	}
}

type keyLogin struct {
	Known  string `cookie:"slipway-known"`
	Origin string `header:"Origin" maxLength:"512"`
	Body   struct {
		User     string `json:"user" maxLength:"255"`
		Password string `json:"password" maxLength:"1024"`
	}
}

// keyOps are the operations on security keys.
type keyOps struct {
	*factorOps
	cookies *cookies
}

// add registers the operations on security keys. Only the user who holds a key can register it.
func (o *keyOps) add() {
	rest.Register(o.frame, rest.Operation{
		Method: http.MethodPost, Path: "/users/{name}/security-keys", ID: "begin-security-key", Tag: "users", Needs: rest.Anybody,
		Summary: "Begin to register a security key (WebAuthn)", About: "For one's own user, in a browser. Nothing is stored yet.",
		Errors: []int{http.StatusForbidden, http.StatusNotFound, http.StatusConflict},
	}, o.beginKey)
	rest.Register(o.frame, rest.Operation{
		Method: http.MethodPut, Path: "/users/{name}/security-keys/{key}", ID: "put-security-key", Tag: "users", Needs: rest.Anybody,
		Summary: "Register a security key by its answer", About: "The answer has recovery codes, once, where the user has none left. The user's other logins end.",
		Errors: []int{http.StatusForbidden, http.StatusNotFound, http.StatusConflict},
	}, o.putKey)
	rest.Register(o.frame, rest.Operation{
		Method: http.MethodPost, Path: "/logins/security-key", ID: "begin-security-key-login", Tag: "logins", Needs: rest.Anybody,
		Summary: "Begin a login with a security key", About: "Needs no login, but the user's password. The answer of the key goes to POST /logins, with the password once more.",
		Errors: []int{http.StatusConflict},
	}, o.beginKeyLogin)
}

// ownUser finds the caller's own user; nobody registers a key for another.
func (o *keyOps) ownUser(req *rest.Request, name string) (inventory.User, error) {
	u, isOwn, err := o.ofUser(req, name)
	if err == nil && !isOwn {
		err = inventory.Errorf(inventory.Forbidden, "only user %s can register a security key of that user", u.Name).WithHint("log in as %s, with a password", u.Name)
	}
	return u, err
}

// factors reads what a user has besides the password.
func (o *keyOps) factors(req *rest.Request, user string) (f factors, err error) {
	err = o.store.Read(req, func(tx inventory.Tx) error {
		_, f, err = o.seconds.of(tx, user)
		return err
	})
	return f, err
}

func (o *keyOps) beginKey(req *rest.Request, in *keyBegin) (*rest.One[KeyCeremony], error) {
	u, err := o.ownUser(req, in.Name)
	if err != nil {
		return nil, err
	}
	site, err := securitykey.SiteOf(in.Origin)
	if err != nil {
		return nil, err
	}
	// Register tells the browser which keys the user has, so that nobody registers one twice.
	f, err := o.factors(req, u.Name)
	if err != nil {
		return nil, err
	}
	options, session, err := site.Register(u.Name, f.Keys)
	req.Trail.Fix("nothing is stored yet")
	return o.seconds.ceremony(forRegistration, u.Name, options, session), err
}

func (o *keyOps) putKey(req *rest.Request, in *keyPut) (*rest.One[wire.RecoveryCodes], error) {
	u, err := o.ownUser(req, in.Name)
	if err != nil {
		return nil, err
	}
	t, err := o.seconds.ticketOf(forRegistration, u.Name, in.Body.Ticket)
	if err != nil {
		return nil, err
	}
	site, err := securitykey.SiteOf(in.Origin)
	if err != nil {
		return nil, err
	}
	// The password once more: an unattended browser must not be enough to add somebody else's key.
	if err := o.passwords.checkOld(req, u, in.Body.Password); err != nil {
		return nil, err
	}
	out := &rest.One[wire.RecoveryCodes]{Body: wire.RecoveryCodes{Codes: []string{}}}
	err = o.frame.Write(req, false, func(tx inventory.Tx) error {
		u, f, err := o.seconds.of(tx, u.Name)
		if err != nil {
			return err
		}
		key, err := site.Registered(u.Name, in.Key, &t.Session, in.Body.text(), f.Keys, o.frame.Now())
		if err != nil {
			return err
		}
		if f.Keys = append(f.Keys, key); len(f.Recovery) == 0 {
			out.Body.Codes, f.Recovery = totp.NewRecovery()
		}
		return o.factorSet(req, tx, &u, f, req.Caller.Login, "security key "+key.Name+" of user "+u.Name+" registered")
	})
	return out, err
}

func (o *keyOps) beginKeyLogin(req *rest.Request, in *keyLogin) (*rest.One[KeyCeremony], error) {
	req.Trail.About("login", inventory.Clean(in.Body.User, 63))
	site, err := securitykey.SiteOf(in.Origin)
	if err != nil {
		return nil, err
	}
	// The password comes first. Otherwise anybody could learn which keys a user has.
	u, err := o.passwords.withPassword(req, o.cookies.browser(in.Known), in.Body.User, in.Body.Password)
	if err != nil {
		return nil, err
	}
	f, err := o.factors(req, u.Name)
	if err != nil {
		return nil, err
	}
	options, session, err := site.Ask(u.Name, f.Keys)
	return o.seconds.ceremony(forLogin, u.Name, options, session), err
}
