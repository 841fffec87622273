// Package securitykey registers and checks security keys and passkeys (WebAuthn Level 3, https://www.w3.org/TR/webauthn-3/) as a
// second factor. A key signs for one site only, so a page of another site gets nothing that is good here.
//
// The package keeps nothing. Its callers store keys, and carry the session of a ceremony to its end where nobody can change it.
package securitykey

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"slipway.dev/slipway/inventory"
)

// KeysMax is how many security keys a user may have.
const KeysMax = 10

// responseMax is how long the answer of a browser may be. One without an attestation is shorter than 2 KiB.
const responseMax = 16 << 10

// Key is a security key of a user, as it is stored.
type Key struct {
	Name       string              `json:"name"`
	Site       string              `json:"site"` // name of the site that it signs for (RP ID)
	AddedAt    time.Time           `json:"addedAt"`
	UsedAt     time.Time           `json:"usedAt,omitzero"`
	Credential webauthn.Credential `json:"credential"`
}

// Site is where a browser has opened Slipway.
type Site struct {
	name   string // RP ID: the host of the origin
	origin string
}

// SiteOf reads the Origin header of a request. Browsers offer security keys only on pages that came encrypted, or from the machine
// itself, and only under a name.
func SiteOf(origin string) (Site, error) {
	u, err := url.Parse(origin)
	// Programs send no Origin. They log in with a token.
	if err != nil || u.Hostname() == "" {
		return Site{}, inventory.Errorf(inventory.Invalid, "the request has no Origin header").WithHint("security keys work in browsers only")
	}
	name := strings.ToLower(u.Hostname())
	if _, err := netip.ParseAddr(name); err == nil {
		return Site{}, inventory.Errorf(inventory.Invalid, "browsers offer no security keys at an address").WithHint("open Slipway by its name instead of %s", name)
	}
	isLocal := name == "localhost" || strings.HasSuffix(name, ".localhost")
	if u.Scheme != "https" && !isLocal {
		return Site{}, inventory.Errorf(inventory.Invalid, "browsers offer no security keys on a page that came without TLS").WithHint("open https://%s; see docs/tls.md", name)
	}
	return Site{name: name, origin: u.Scheme + "://" + strings.ToLower(u.Host)}, nil
}

// Name is the name of the site.
func (s Site) Name() string { return s.name }

// of returns the keys that sign for the site.
func (s Site) of(keys []Key) (here []Key) {
	for _, k := range keys {
		if k.Site == s.name {
			here = append(here, k)
		}
	}
	return here
}

func (s Site) party() (*webauthn.WebAuthn, error) {
	return webauthn.New(&webauthn.Config{
		RPID: s.name, RPDisplayName: "Slipway", RPOrigins: []string{s.origin}, AttestationPreference: protocol.PreferNoAttestation,
		AuthenticatorSelection: protocol.AuthenticatorSelection{
			ResidentKey: protocol.ResidentKeyRequirementDiscouraged, UserVerification: protocol.VerificationDiscouraged, // the password comes first
		},
	})
}

// owner is a user as the library asks for one.
type owner struct {
	name string
	keys []webauthn.Credential
}

func ownerOf(name string, keys []Key) owner {
	o := owner{name: name}
	for _, k := range keys {
		o.keys = append(o.keys, k.Credential)
	}
	return o
}

func (o owner) WebAuthnID() []byte {
	// A fixed length, and no name in clear: some keys store this handle, and show it to anyone who finds them.
	sum := sha256.Sum256([]byte("user:" + o.name))
	return sum[:]
}
func (o owner) WebAuthnName() string                       { return o.name }
func (o owner) WebAuthnDisplayName() string                { return o.name }
func (o owner) WebAuthnCredentials() []webauthn.Credential { return o.keys }

// Session is what the beginning of a ceremony leaves for its end. Only the server that made it may be able to.
type Session = webauthn.SessionData

// Register begins to register a key: options go to navigator.credentials.create.
func (s Site) Register(user string, keys []Key) (options json.RawMessage, session Session, err error) {
	if len(keys) >= KeysMax {
		return nil, session, inventory.Errorf(inventory.Conflict, "user %s has %d security keys; more are not kept", user, len(keys)).WithHint("remove one that is not used any more")
	}
	party, err := s.party()
	if err != nil {
		return nil, session, err
	}
	o := ownerOf(user, s.of(keys))
	// A key that is registered already refuses by itself when it finds its id among the exclusions.
	creation, kept, err := party.BeginRegistration(o, webauthn.WithExclusions(webauthn.Credentials(o.keys).CredentialDescriptors()))
	if err != nil {
		return nil, session, err
	}
	options, err = json.Marshal(creation.Response)
	return options, *kept, err
}

// Registered ends the registration of a key with what navigator.credentials.create returned.
func (s Site) Registered(user, name string, session *Session, response []byte, keys []Key, now time.Time) (Key, error) {
	party, err := s.party()
	if err != nil {
		return Key{}, err
	}
	if len(response) > responseMax {
		return Key{}, inventory.Errorf(inventory.Invalid, "the answer of the security key has %d bytes; at most %d are read", len(response), responseMax)
	}
	parsed, err := protocol.ParseCredentialCreationResponseBytes(response)
	if err != nil {
		return Key{}, notAccepted(err)
	}
	made, err := party.CreateCredential(ownerOf(user, s.of(keys)), *session, parsed)
	if err != nil {
		return Key{}, notAccepted(err)
	}
	if slices.ContainsFunc(keys, func(k Key) bool { return slices.Equal(k.Credential.ID, made.ID) }) {
		return Key{}, inventory.Errorf(inventory.Conflict, "this security key is registered already")
	}
	if slices.ContainsFunc(keys, func(k Key) bool { return k.Name == name }) {
		return Key{}, inventory.Errorf(inventory.Conflict, "user %s has a security key named %s already", user, name).WithHint("give another name")
	}
	made.Attestation = webauthn.CredentialAttestation{} // none was asked for
	return Key{Name: name, Site: s.name, AddedAt: now.UTC(), Credential: *made}, nil
}

// Ask begins a login: options go to navigator.credentials.get.
func (s Site) Ask(user string, keys []Key) (options json.RawMessage, session Session, err error) {
	here := s.of(keys)
	if len(here) == 0 {
		e := inventory.Errorf(inventory.Conflict, "user %s has no security key for %s", user, s.name)
		if len(keys) > 0 {
			return nil, session, e.WithHint("a key is registered for %s: open Slipway there, or give a code", keys[0].Site)
		}
		return nil, session, e.WithHint("give the code of the authenticator app, or a recovery code")
	}
	party, err := s.party()
	if err != nil {
		return nil, session, err
	}
	assertion, kept, err := party.BeginLogin(ownerOf(user, here))
	if err != nil {
		return nil, session, err
	}
	options, err = json.Marshal(assertion.Response)
	return options, *kept, err
}

// Answered ends a login with what navigator.credentials.get returned, and gives back the keys with the one that signed as it is now.
func (s Site) Answered(user string, session *Session, response []byte, keys []Key, now time.Time) ([]Key, error) {
	party, err := s.party()
	if err != nil {
		return nil, err
	}
	if len(response) > responseMax {
		return nil, inventory.Errorf(inventory.Unauthorized, "the answer of the security key has %d bytes; at most %d are read", len(response), responseMax)
	}
	parsed, err := protocol.ParseCredentialRequestResponseBytes(response)
	if err != nil {
		return nil, wrong(err)
	}
	used, err := party.ValidateLogin(ownerOf(user, s.of(keys)), *session, parsed)
	if err != nil {
		return nil, wrong(err)
	}
	// WebAuthn section 6.1.1. Keys without a counter always send 0 and never get here.
	if used.Authenticator.CloneWarning {
		return nil, inventory.Errorf(inventory.Unauthorized, "the counter of the security key went back: there may be a copy of it").
			WithHint("log in with a recovery code, remove the key, and register it again")
	}
	keys = slices.Clone(keys)
	i := slices.IndexFunc(keys, func(k Key) bool { return slices.Equal(k.Credential.ID, used.ID) })
	keys[i].Credential, keys[i].UsedAt = *used, now.UTC()
	return keys, nil
}

// ChallengeOf returns the challenge of a session; each is good for one login.
func ChallengeOf(session *Session) string {
	sum := sha256.Sum256([]byte(session.Challenge))
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}

func notAccepted(err error) error {
	return inventory.Errorf(inventory.Invalid, "the answer of the security key is not accepted: %s", reason(err)).WithHint("try it again, or with another key")
}

func wrong(err error) error {
	return inventory.Errorf(inventory.Unauthorized, "the answer of the security key is not right: %s", reason(err)).WithHint("try it again, or give a recovery code")
}

// reason is what the library says. Parts of it may come from the browser.
func reason(err error) string {
	text := err.Error()
	if e := (*protocol.Error)(nil); errors.As(err, &e) && e.Details != "" {
		text = e.Details
	}
	return inventory.Clean(text, 160)
}
