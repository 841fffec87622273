package access

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/egress"
)

// OIDC is a provider of identities (OpenID Connect) by which people log in.
type OIDC struct {
	Issuer       string
	ClientID     string
	ClientSecret string   // "" for a public client: PKCE is always used
	Title        string   // names it on the login page
	Scopes       []string // besides openid
	NameClaim    string   // what becomes the user's name; dots go into objects
	GroupsClaim  string   // the groups: a list of texts, or one text
	// Groups are the roles of those in a group. Who is in none of them stays out.
	Groups      map[string]inventory.Grants
	ExternalURL string         // of Slipway, as browsers reach it: https://slipway.example.org
	Egress      *egress.Policy // where the provider may be; nil: anywhere
	CA          []byte         // PEM of who vouches for the provider's certificate; nil: those of the system
}

// Validate checks the settings by themselves.
func (o *OIDC) Validate() error {
	issuer, err := url.Parse(o.Issuer)
	switch {
	case err != nil || issuer.Host == "" || issuer.RawQuery != "" || issuer.Fragment != "" || issuer.User != nil:
		return inventory.Errorf(inventory.Invalid, "oidc: issuer %q is no address of a provider", inventory.Clean(o.Issuer, 200)).WithHint("write it as the provider says it: https://login.example.org")
	case !isPrivate(issuer):
		return inventory.Errorf(inventory.Invalid, "oidc: the issuer %s is reached without TLS", inventory.Clean(o.Issuer, 200)).WithHint("only https:// keeps its answers from being forged")
	case o.ClientID == "":
		return inventory.Errorf(inventory.Invalid, "oidc: clientID is missing").WithHint("the provider gives one when Slipway is registered there")
	}
	own, err := url.Parse(o.ExternalURL)
	switch {
	case o.ExternalURL == "":
		return inventory.Errorf(inventory.Invalid, "oidc needs externalURL, to which the provider sends browsers back").WithHint("externalURL: https://slipway.example.org")
	case err != nil || own.Host == "" || strings.Trim(own.Path, "/") != "" || own.RawQuery != "" || own.Fragment != "" || own.User != nil:
		return inventory.Errorf(inventory.Invalid, "externalURL %q is no address without a path", inventory.Clean(o.ExternalURL, 200)).WithHint("externalURL: https://slipway.example.org")
	case !isPrivate(own):
		return inventory.Errorf(inventory.Invalid, "externalURL %s has no TLS", inventory.Clean(o.ExternalURL, 200)).WithHint("a login over http could be read by anybody on the way; see docs/tls.md")
	}
	if len(o.Groups) == 0 {
		return inventory.Errorf(inventory.Invalid, "oidc: no group has a role, so nobody could log in").WithHint("groups: {slipway-admins: [{role: admin}]}")
	}
	for _, group := range slices.Sorted(maps.Keys(o.Groups)) {
		if err := o.Groups[group].Validate(); err != nil || len(o.Groups[group]) == 0 {
			return inventory.Errorf(inventory.Invalid, "oidc: group %q: %s", inventory.Clean(group, 100), orText(err, "it has no role")).WithHint("roles are viewer, operator and admin: [{role: operator, pool: web}]")
		}
	}
	if o.CA != nil && !x509.NewCertPool().AppendCertsFromPEM(o.CA) {
		return inventory.Errorf(inventory.Invalid, "oidc: caFile holds no certificate").WithHint("it is a PEM file")
	}
	return nil
}

func orText(err error, text string) string {
	if err != nil {
		return err.Error()
	}
	return text
}

// isPrivate reports whether nobody on the way can read or forge what goes to an address.
func isPrivate(u *url.URL) bool {
	if u.Scheme == "https" {
		return true
	}
	a, err := netip.ParseAddr(u.Hostname())
	return u.Scheme == "http" && (u.Hostname() == "localhost" || err == nil && a.IsLoopback())
}

// Limits of what a provider says, and of a login there.
const (
	ssoFor      = 10 * time.Minute // from the click to the way back
	ssoSkew     = 2 * time.Minute  // that the clocks may be apart
	ssoAnswer   = 1 << 20          // bytes of one answer
	ssoAnswerIn = 10 * time.Second
	ssoFresh    = time.Hour       // after which the provider is asked anew where its endpoints are
	ssoRetry    = 5 * time.Second // before Slipway asks it again after it did not answer
	ssoUsedMax  = 10_000
)

// sso logs people in through a provider. The browser keeps what belongs to a login that has begun, in a cookie that is
// signed: whoever begins a million of them fills no memory here.
type sso struct {
	OIDC
	own    *url.URL // externalURL
	client *http.Client
	now    func() time.Time
	log    *slog.Logger
	seal   *seal // signs cookies, until the next start

	asking chan struct{} // held by the one who asks the provider
	mu     sync.Mutex
	known  *oidc.Provider
	at     time.Time // of the last question
	away   error     // why there was no answer to it

	used map[string]time.Time // states whose login is done, until they would have expired
}

func newSSO(o *OIDC, now func() time.Time, log *slog.Logger) *sso {
	if o == nil {
		return nil
	}
	p := &sso{OIDC: *o, now: now, log: log, seal: newSeal(nil), asking: make(chan struct{}, 1), used: map[string]time.Time{}}
	p.own, _ = url.Parse(o.ExternalURL) // Validate has looked
	transport := &http.Transport{
		ForceAttemptHTTP2: true,
		TLSClientConfig:   &tls.Config{MinVersion: tls.VersionTLS12}, MaxIdleConns: 4, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 64 << 10,
	}
	if o.CA != nil {
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(o.CA)
	}
	p.client = &http.Client{
		Transport: careful{o.Egress.Transport(transport, nil)}, Timeout: ssoAnswerIn,
		CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("the provider answers with a redirect") },
	}
	return p
}

// careful is a way to a provider that ends where somebody could listen, and takes answers of bounded size only.
type careful struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (c careful) RoundTrip(r *http.Request) (*http.Response, error) {
	if !isPrivate(r.URL) {
		return nil, fmt.Errorf("the provider names %s, which has no TLS", inventory.Clean(r.URL.Redacted(), 200))
	}
	a, err := c.next.RoundTrip(r)
	if err == nil {
		a.Body = http.MaxBytesReader(nil, a.Body, ssoAnswer)
	}
	return a, err
}

// provider returns the provider as it describes itself, which is asked when somebody logs in: Slipway starts without it.
func (p *sso) provider(ctx context.Context) (*oidc.Provider, error) {
	select {
	case p.asking <- struct{}{}:
		defer func() { <-p.asking }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	age := p.now().Sub(p.at)
	switch {
	case p.known != nil && age < ssoFresh:
		return p.known, nil
	case p.away != nil && age >= 0 && age < ssoRetry:
		return p.known, p.away
	}
	found, err := oidc.NewProvider(oidc.ClientContext(ctx, p.client), p.Issuer)
	p.at = p.now()
	if err == nil {
		var at *url.URL
		if at, err = url.Parse(found.Endpoint().AuthURL); err == nil && !isPrivate(at) {
			err = fmt.Errorf("its login page %s has no TLS", inventory.Clean(at.Redacted(), 200))
		}
	}
	switch {
	case err == nil:
		p.known, p.away = found, nil
	case p.known != nil: // what it said an hour ago will do
		p.log.Warn("the identity provider does not answer", "issuer", p.Issuer, "err", err)
	default:
		p.away = &inventory.Error{
			Kind: inventory.Unavailable, Msg: p.Title + " cannot be used now: " + inventory.Clean(err.Error(), 300),
			Hint: "try it again later, or log in with a password or a token of Slipway itself", Err: err,
		}
		return nil, p.away
	}
	return p.known, nil
}

// oauth is the client that Slipway is at the provider.
func (p *sso) oauth(at *oidc.Provider) *oauth2.Config {
	return &oauth2.Config{
		ClientID: p.ClientID, ClientSecret: p.ClientSecret, Endpoint: at.Endpoint(),
		RedirectURL: p.own.JoinPath("/api/v1/logins/oidc/callback").String(), Scopes: append([]string{oidc.ScopeOpenID}, p.Scopes...),
	}
}

// identity is who the provider says somebody is.
type identity struct {
	subject, name, displayName string
	groups                     []string
}

// identify takes the code with which a browser came back to the provider, and learns who that is.
func (p *sso) identify(ctx context.Context, b begun, code string) (who identity, err error) {
	at, err := p.provider(ctx)
	if err != nil {
		return who, err
	}
	ctx = oidc.ClientContext(ctx, p.client)
	token, err := p.oauth(at).Exchange(ctx, code, oauth2.VerifierOption(b.part("verifier")))
	if err != nil {
		return who, p.exchangeFailed(err)
	}
	raw, _ := token.Extra("id_token").(string)
	id, err := at.Verifier(&oidc.Config{ClientID: p.ClientID, SkipExpiryCheck: true, Now: p.now}).Verify(ctx, raw)
	if err != nil {
		return who, p.refuse("what it says of you is not signed as it should be", err)
	}
	said := map[string]any{}
	if err := id.Claims(&said); err != nil {
		return who, p.refuse("what it says of you cannot be read", err)
	}
	if err := p.checkToken(id, said, b); err != nil {
		return who, err
	}
	if _, hasGroups := claim(said, p.GroupsClaim); !hasGroups && at.UserInfoEndpoint() != "" {
		more, err := at.UserInfo(ctx, oauth2.StaticTokenSource(token))
		if err != nil {
			return who, p.refuse("it does not say more about you", err)
		}
		if more.Subject != id.Subject {
			return who, p.refuse("it speaks of two people", fmt.Errorf("subjects %q and %q", id.Subject, more.Subject))
		}
		rest := map[string]any{}
		if err := more.Claims(&rest); err != nil {
			return who, p.refuse("what it says of you cannot be read", err)
		}
		for k, v := range said { // what is signed wins
			rest[k] = v
		}
		said = rest
	}
	return identityOf(p.OIDC, id.Subject, said)
}

// checkToken looks at what makes a token one for this login, now.
func (p *sso) checkToken(id *oidc.IDToken, said map[string]any, b begun) error {
	now := p.now()
	notBefore, _ := said["nbf"].(float64)
	azp, _ := said["azp"].(string)
	switch {
	case id.Nonce != b.part("nonce"):
		return p.refuse("its answer belongs to another login", errors.New("nonce"))
	case now.After(id.Expiry.Add(ssoSkew)):
		return p.refuse(fmt.Sprintf("its answer has expired %s ago by this server's clock; are both clocks right?", now.Sub(id.Expiry).Round(time.Second)), nil)
	case id.IssuedAt.After(now.Add(ssoSkew)) || time.Unix(int64(notBefore), 0).After(now.Add(ssoSkew)):
		return p.refuse(fmt.Sprintf("its answer is from the future, by %s on this server's clock; are both clocks right?", id.IssuedAt.Sub(now).Round(time.Second)), nil)
	case azp != "" && azp != p.ClientID:
		return p.refuse("its answer is for another program", fmt.Errorf("azp %q", azp))
	case id.Subject == "" || len(id.Subject) > 255:
		return p.refuse("it gives you no usable identifier", errors.New("sub"))
	}
	return nil
}

// refuse says why what the provider says is not believed.
func (p *sso) refuse(why string, err error) error {
	return &inventory.Error{Kind: inventory.Unauthorized, Msg: "the login at " + p.Title + " did not work: " + why, Hint: "log in again; if that does not help, show this to who runs Slipway", Err: err}
}

func (p *sso) exchangeFailed(err error) error {
	var said *oauth2.RetrieveError
	if !errors.As(err, &said) {
		return &inventory.Error{Kind: inventory.Unavailable, Msg: p.Title + " does not answer", Hint: "try it again later, or log in with a password or a token of Slipway itself", Err: err}
	}
	if said.ErrorCode == "invalid_client" || said.ErrorCode == "unauthorized_client" {
		return &inventory.Error{Kind: inventory.Unauthorized, Msg: p.Title + " does not know this Slipway", Hint: "an admin looks at oidc.clientID and oidc.clientSecretFile; see docs/sso.md", Err: err}
	}
	return p.refuse("it refuses the code that it gave: "+inventory.Clean(said.ErrorCode, 60), err)
}

// Provider returns the settings of the identity provider, and why it cannot be used now; without a provider they are nil.
func (a *Access) Provider(ctx context.Context) (*OIDC, error) {
	if a.sso == nil {
		return nil, nil
	}
	_, err := a.sso.provider(ctx)
	return &a.sso.OIDC, err
}
