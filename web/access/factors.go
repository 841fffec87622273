package access

import (
	"net/http"
	"slices"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/securitykey"
	"slipway.dev/slipway/web/totp"
	"slipway.dev/slipway/web/wire"
)

type factorBegin struct {
	rest.NameRef
}

type factorConfirm struct {
	rest.NameRef
	Body struct {
		Ticket   string `json:"ticket" maxLength:"2048"`
		Code     string `json:"code" maxLength:"16" doc:"The code that the app shows now"`
		Password string `json:"password,omitempty" maxLength:"1024" doc:"One's own password, for one's own second factor"`
	}
}

type factorRemove struct {
	rest.NameRef
	Code string `query:"code" maxLength:"64" doc:"A code of the app or a recovery code, for one's own"`
	Key  string `query:"key" maxLength:"63" doc:"Only the security key with this name; without it all: the app, each key, and the recovery codes"`
}

// ticket is a secret that waits for its first code. The client keeps it, signed: a stranger fills no memory here.
type ticket struct {
	User   string    `json:"u"`
	Secret string    `json:"s"`
	At     time.Time `json:"t"`
}

const ticketFor = 15 * time.Minute

// factorOps are the operations on second factors.
type factorOps struct {
	frame     *rest.Frame
	store     inventory.Store // the whole
	seconds   *secondFactors
	passwords *passwords
}

// add registers the operations on second factors. A user sets up the own one; an admin may set up and take away anybody's.
func (o *factorOps) add() {
	rest.Register(o.frame, rest.Operation{
		Method: http.MethodGet, Path: "/users/{name}/second-factor", ID: "get-second-factor", Tag: "users", Needs: rest.Anybody,
		Summary: "Say which second factors a user has", Errors: []int{http.StatusForbidden, http.StatusNotFound},
	}, o.getFactors)
	rest.Register(o.frame, rest.Operation{
		Method: http.MethodPost, Path: "/users/{name}/second-factor", ID: "begin-second-factor", Tag: "users", Needs: rest.Anybody,
		Summary: "Begin to set up an authenticator app (TOTP, RFC 6238)", About: "Nothing is stored yet: the first code does that.",
		Errors: []int{http.StatusForbidden, http.StatusNotFound, http.StatusConflict},
	}, o.beginFactor)
	rest.Register(o.frame, rest.Operation{
		Method: http.MethodPut, Path: "/users/{name}/second-factor", ID: "put-second-factor", Tag: "users", Needs: rest.Anybody,
		Summary: "Set up an authenticator app by its first code", About: "Replaces the one before. The answer has recovery codes, once. The user's other logins end.",
		Errors: []int{http.StatusForbidden, http.StatusNotFound, http.StatusConflict},
	}, o.putFactor)
	rest.Register(o.frame, rest.Operation{
		Method: http.MethodDelete, Path: "/users/{name}/second-factor", ID: "delete-second-factor", Tag: "users", Needs: rest.Anybody,
		Summary: "Take a second factor away", About: "One's own needs a code; an admin may take anybody's.", Status: http.StatusNoContent,
		Errors: []int{http.StatusForbidden, http.StatusNotFound},
	}, o.deleteFactor)
}

// ofUser finds the user whose second factor is meant, and whether it is the caller's own.
func (o *factorOps) ofUser(req *rest.Request, name string) (u inventory.User, isOwn bool, err error) {
	// A user's token is not the user: a stolen one must not be enough to change what guards the password.
	c := req.Caller
	isOwn = c.User == name && c.Token == ""
	if !isOwn && c.Grants.Everywhere() != inventory.Admin {
		return u, false, inventory.Errorf(inventory.Forbidden, "only an admin changes the second factor of another").WithHint("log in as %s, with a password", inventory.Clean(name, 63))
	}
	err = o.store.Read(req, func(tx inventory.Tx) error {
		u, err = tx.Users().Find(name)
		return err
	})
	if err == nil && u.IsExternal() {
		err = inventory.Errorf(inventory.Conflict, "user %s logs in elsewhere: %s vouches", u.Name, inventory.Clean(u.Issuer, 80)).WithHint("a second factor is set up there")
	}
	return u, isOwn, err
}

func (o *factorOps) beginFactor(req *rest.Request, in *factorBegin) (*rest.One[wire.SecondFactor], error) {
	u, _, err := o.ofUser(req, in.Name)
	if err != nil {
		return nil, err
	}
	// The ticket is signed and not encrypted. Its client needs the secret in any case, for the app.
	t := ticket{User: u.Name, Secret: totp.NewSecret(), At: o.frame.Now()}
	req.Trail.Fix("nothing is stored yet")
	return &rest.One[wire.SecondFactor]{Body: wire.SecondFactor{Secret: t.Secret, URL: totp.URL(t.Secret, "Slipway", u.Name), Ticket: o.seconds.seal.sign("second factor", t)}}, nil
}

func (o *factorOps) putFactor(req *rest.Request, in *factorConfirm) (*rest.One[wire.RecoveryCodes], error) {
	u, isOwn, err := o.ofUser(req, in.Name)
	if err != nil {
		return nil, err
	}
	var t ticket
	if !o.seconds.seal.signed("second factor", in.Body.Ticket, &t) || t.User != u.Name {
		return nil, inventory.Errorf(inventory.Invalid, "the ticket is not of this user").WithHint("begin again: POST /api/v1/users/%s/second-factor", u.Name)
	}
	// A negative age means that the server's clock was set back. Then nobody knows how old the ticket is.
	if age := o.frame.Now().Sub(t.At); age < 0 || age > ticketFor {
		return nil, inventory.Errorf(inventory.Invalid, "it was begun more than %d minutes ago", int(ticketFor.Minutes())).WithHint("begin again")
	}
	// The password once more, so that an unattended screen is not enough to replace the app. An admin does not know it, and
	// needs none.
	if isOwn && u.HasPassword {
		if err := o.passwords.checkOld(req, u, in.Body.Password); err != nil {
			return nil, err
		}
	}
	at, isRight := totp.Check(t.Secret, in.Body.Code, o.frame.Now(), 0) // the secret is never empty: the ticket is ours
	if !isRight {
		return nil, inventory.Errorf(inventory.Invalid, "the code is not the one that the app should show now").WithHint("compare the clock of the app's device with that of the server: %s", o.frame.Now().UTC().Format(time.TimeOnly+" MST"))
	}
	codes, hashes := totp.NewRecovery()
	c := req.Caller
	err = o.frame.Write(req, false, func(tx inventory.Tx) error {
		// Read again: another request may have changed the factors since ofUser read them outside of this transaction.
		u, f, err := o.seconds.of(tx, u.Name)
		if err != nil {
			return err
		}
		// The first code counts as used, so that somebody who looked over the user's shoulder cannot log in with it.
		f.Secret, f.Used, f.Recovery = t.Secret, at, hashes
		return o.factorSet(req, tx, &u, f, c.Login, "second factor of user "+u.Name+" set up")
	})
	return &rest.One[wire.RecoveryCodes]{Body: wire.RecoveryCodes{Codes: codes}}, err
}

func (o *factorOps) deleteFactor(req *rest.Request, in *factorRemove) (*struct{}, error) {
	u, isOwn, err := o.ofUser(req, in.Name)
	if err != nil {
		return nil, err
	}
	if !u.HasSecondFactor {
		return nil, inventory.Errorf(inventory.NotFound, "user %s has no second factor", u.Name).WithHint("slipway user list shows who has one")
	}
	// Wrong codes count for this login alone, so that they do not close the login page to the user.
	if isOwn {
		if err := o.seconds.useCode(req, u.Name, "login "+req.Caller.Login, in.Code); inventory.IsKind(err, inventory.Unauthorized) {
			return nil, inventory.Errorf(inventory.Forbidden, "the code is wrong, was used before, or is no longer good").WithHint("give the next code of the app, or a recovery code")
		} else if err != nil {
			return nil, err
		}
	}
	return nil, o.frame.Write(req, false, func(tx inventory.Tx) error {
		u, f, err := o.seconds.of(tx, u.Name)
		what := "second factor of user " + u.Name + " taken away"
		switch {
		case err != nil && (isOwn || in.Key != ""): // an admin takes away what cannot be opened, too
			return err
		case in.Key != "":
			n := len(f.Keys)
			f.Keys = slices.DeleteFunc(f.Keys, func(k securitykey.Key) bool { return k.Name == in.Key })
			if len(f.Keys) == n {
				return inventory.Errorf(inventory.NotFound, "user %s has no security key %q", u.Name, inventory.Clean(in.Key, 63))
			}
			what = "security key " + in.Key + " of user " + u.Name + " taken away"
		default:
			f = factors{}
		}
		return o.factorSet(req, tx, &u, f, "", what)
	})
}

// factorSet stores the second factors of a user after a change. With login set, the user's other logins end.
func (o *factorOps) factorSet(req *rest.Request, tx inventory.Tx, u *inventory.User, f factors, login, what string) error {
	if err := o.seconds.save(tx, u.Name, f); err != nil {
		return err
	}
	rest.Edited(req, "user", u.Name, inventory.AuditUpdate, map[string]bool{"hasSecondFactor": u.HasSecondFactor}, map[string]bool{"hasSecondFactor": !f.isNone()}, u.Version)
	req.Trail.Fix("second factors are not kept")
	// The caller's own login stays: that user has just given a code or a password. One of the others may belong to a thief.
	if login != "" {
		if _, err := endLogins(tx, inventory.LoginFilter{User: u.Name}, login, ""); err != nil {
			return err
		}
	}
	return o.frame.Changed(req, tx, "user/"+u.Name, what)
}

func (o *factorOps) getFactors(req *rest.Request, in *factorBegin) (*rest.One[wire.SecondFactors], error) {
	if _, _, err := o.ofUser(req, in.Name); err != nil {
		return nil, err
	}
	// The secret of the app and the hashes of recovery codes never leave the server. Only names, times and a number do.
	out := wire.SecondFactors{SecurityKeys: []wire.SecurityKey{}}
	err := o.store.Read(req, func(tx inventory.Tx) error {
		_, f, err := o.seconds.of(tx, in.Name)
		out.App, out.RecoveryCodes = f.Secret != "", len(f.Recovery)
		for _, k := range f.Keys {
			out.SecurityKeys = append(out.SecurityKeys, wire.SecurityKey{Name: k.Name, Site: k.Site, AddedAt: k.AddedAt, UsedAt: k.UsedAt})
		}
		return err
	})
	return &rest.One[wire.SecondFactors]{Body: out}, err
}
