package access

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/securitykey"
	"slipway.dev/slipway/web/totp"
)

// SecurityKey is a security key or passkey of a user (WebAuthn).
type SecurityKey struct {
	Name    string    `json:"name"`
	Site    string    `json:"site" doc:"The name under which Slipway was open when it was registered: it works there only"`
	AddedAt time.Time `json:"addedAt"`
	UsedAt  time.Time `json:"usedAt,omitzero"`
}

// KeyCeremony is what a browser needs to register or use a security key.
type KeyCeremony struct {
	Options any    `json:"options" doc:"For navigator.credentials, as PublicKeyCredential.parseCreationOptionsFromJSON or parseRequestOptionsFromJSON read it"`
	Ticket  string `json:"ticket" doc:"Goes back with the answer of the key"`
}

// KeyAnswer is what a security key has answered.
type KeyAnswer struct {
	Ticket   string         `json:"ticket" maxLength:"8192"`
	Response map[string]any `json:"response" doc:"What PublicKeyCredential.toJSON gives"`
}

func (a *KeyAnswer) text() []byte {
	text, _ := json.Marshal(a.Response) // it came as JSON
	return text
}

// answered is a challenge that a key has signed. It counts once.
type answered struct {
	Challenge string    `json:"c"`
	At        time.Time `json:"t"`
}

// keyTicket is a ceremony that waits for the answer of a key. The client keeps it, signed.
type keyTicket struct {
	User    string              `json:"u"`
	Session securitykey.Session `json:"s"`
	At      time.Time           `json:"t"`
}

// The purposes of tickets: one for a registration is none for a login.
const (
	forRegistration = "security key"
	forLogin        = "security key login"
)

// keyTicketFor is how long a person has to touch the key.
const keyTicketFor = 5 * time.Minute

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

// addSecurityKeys registers the operations on security keys. Only the user who holds a key can register it.
func (a *Access) addSecurityKeys() {
	rest.Register(a.frame, rest.Operation{
		Method: http.MethodPost, Path: "/users/{name}/security-keys", ID: "begin-security-key", Tag: "users", Needs: rest.Anybody,
		Summary: "Begin to register a security key (WebAuthn)", About: "For one's own user, in a browser. Nothing is stored yet.",
		Errors: []int{http.StatusForbidden, http.StatusNotFound, http.StatusConflict},
	}, a.beginKey)
	rest.Register(a.frame, rest.Operation{
		Method: http.MethodPut, Path: "/users/{name}/security-keys/{key}", ID: "put-security-key", Tag: "users", Needs: rest.Anybody,
		Summary: "Register a security key by its answer", About: "The answer has recovery codes, once, where the user has none left. The user's other logins end.",
		Errors: []int{http.StatusForbidden, http.StatusNotFound, http.StatusConflict},
	}, a.putKey)
	rest.Register(a.frame, rest.Operation{
		Method: http.MethodPost, Path: "/logins/security-key", ID: "begin-security-key-login", Tag: "logins", Needs: rest.Anybody,
		Summary: "Begin a login with a security key", About: "Needs no login, but the user's password. The answer of the key goes to POST /logins, with the password once more.",
		Errors: []int{http.StatusConflict},
	}, a.beginKeyLogin)
}

// ownUser finds the caller's own user; nobody registers a key for another.
func (a *Access) ownUser(req *rest.Request, name string) (inventory.User, error) {
	u, isOwn, err := a.ofUser(req, name)
	if err == nil && !isOwn {
		err = inventory.Errorf(inventory.Forbidden, "only user %s can register a security key of that user", u.Name).WithHint("log in as %s, with a password", u.Name)
	}
	return u, err
}

func (a *Access) beginKey(req *rest.Request, in *keyBegin) (*rest.One[KeyCeremony], error) {
	u, err := a.ownUser(req, in.Name)
	if err != nil {
		return nil, err
	}
	site, err := securitykey.SiteOf(in.Origin)
	if err != nil {
		return nil, err
	}
	var f factors
	if err := a.keeper.store.Read(req, func(tx inventory.Tx) error {
		_, f, err = a.keeper.factorsOf(tx, u.Name)
		return err
	}); err != nil {
		return nil, err
	}
	options, session, err := site.Register(u.Name, f.Keys)
	req.Trail.Fix("nothing is stored yet")
	return a.keeper.ceremony(forRegistration, u.Name, options, session), err
}

// ceremony is the answer to the beginning of one.
func (k *keeper) ceremony(purpose, user string, options json.RawMessage, session securitykey.Session) *rest.One[KeyCeremony] {
	return &rest.One[KeyCeremony]{Body: KeyCeremony{Options: options, Ticket: k.seal.sign(purpose, keyTicket{User: user, Session: session, At: k.now()})}}
}

// ticketOf reads a ticket of a user.
func (k *keeper) ticketOf(purpose, user, given string) (t keyTicket, err error) {
	if !k.seal.signed(purpose, given, &t) || t.User != user {
		return t, inventory.Errorf(inventory.Invalid, "the ticket is not of this user").WithHint("begin again")
	}
	if age := k.now().Sub(t.At); age < 0 || age > keyTicketFor {
		return t, inventory.Errorf(inventory.Invalid, "it was begun more than %d minutes ago", int(keyTicketFor.Minutes())).WithHint("begin again")
	}
	return t, nil
}

func (a *Access) putKey(req *rest.Request, in *keyPut) (*rest.One[RecoveryCodes], error) {
	u, err := a.ownUser(req, in.Name)
	if err != nil {
		return nil, err
	}
	t, err := a.keeper.ticketOf(forRegistration, u.Name, in.Body.Ticket)
	if err != nil {
		return nil, err
	}
	site, err := securitykey.SiteOf(in.Origin)
	if err != nil {
		return nil, err
	}
	if err := a.keeper.checkOld(req, u, in.Body.Password); err != nil {
		return nil, err
	}
	out := &rest.One[RecoveryCodes]{Body: RecoveryCodes{Codes: []string{}}}
	err = a.frame.Write(req, false, func(tx inventory.Tx) error {
		u, f, err := a.keeper.factorsOf(tx, u.Name)
		if err != nil {
			return err
		}
		key, err := site.Registered(u.Name, in.Key, &t.Session, in.Body.text(), f.Keys, a.now())
		if err != nil {
			return err
		}
		if f.Keys = append(f.Keys, key); len(f.Recovery) == 0 {
			out.Body.Codes, f.Recovery = totp.NewRecovery()
		}
		return a.factorSet(req, tx, &u, f, req.Caller.Login, "security key "+key.Name+" of user "+u.Name+" registered")
	})
	return out, err
}

func (a *Access) beginKeyLogin(req *rest.Request, in *keyLogin) (*rest.One[KeyCeremony], error) {
	req.Trail.About("login", inventory.Clean(in.Body.User, 63))
	site, err := securitykey.SiteOf(in.Origin)
	if err != nil {
		return nil, err
	}
	u, err := a.keeper.withPassword(req, a.keeper.browser(in.Known), in.Body.User, in.Body.Password)
	if err != nil {
		return nil, err
	}
	var f factors
	if err := a.keeper.store.Read(req, func(tx inventory.Tx) error {
		_, f, err = a.keeper.factorsOf(tx, u.Name)
		return err
	}); err != nil {
		return nil, err
	}
	options, session, err := site.Ask(u.Name, f.Keys)
	return a.keeper.ceremony(forLogin, u.Name, options, session), err
}

// useKey checks the answer of a security key. A challenge is good for one login.
func (k *keeper) useKey(ctx context.Context, user, from, origin string, a *KeyAnswer) error {
	site, err := securitykey.SiteOf(origin)
	if err != nil {
		return err
	}
	t, err := k.ticketOf(forLogin, user, a.Ticket)
	if err != nil {
		return err
	}
	return k.useFactor(ctx, user, from, func(f *factors) error {
		f.Answered = slices.DeleteFunc(f.Answered, func(x answered) bool { return k.now().Sub(x.At) > keyTicketFor })
		challenge := securitykey.ChallengeOf(&t.Session)
		if slices.ContainsFunc(f.Answered, func(x answered) bool { return x.Challenge == challenge }) {
			return inventory.Errorf(inventory.Unauthorized, "this answer of the security key was used before").WithHint("log in again")
		}
		keys, err := site.Answered(user, &t.Session, a.text(), f.Keys, k.now())
		if err != nil {
			return err
		}
		f.Keys, f.Answered = keys, append(f.Answered, answered{Challenge: challenge, At: t.At})
		return nil
	})
}
