package access

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"slipway.dev/slipway/inventory"
)

// Limits of what a provider says, and of a login there.
const (
	ssoPath     = "/api/v1/logins/oidc"
	ssoFor      = 10 * time.Minute // from the click to the way back
	ssoSkew     = 2 * time.Minute  // that the clocks may be apart
	ssoAnswer   = 1 << 20          // bytes of one answer
	ssoAnswerIn = 10 * time.Second
	ssoFresh    = time.Hour       // after which Slipway asks the provider again for its endpoints
	ssoRetry    = 5 * time.Second // before Slipway asks it again after it did not answer
	ssoUsedMax  = 10_000
)

// begun is a login that has begun, as the browser's cookie keeps it. What must not be guessed comes from its secret.
type begun struct {
	Secret []byte    `json:"s"`
	At     time.Time `json:"t"`
	Back   string    `json:"b"`
}

// part is one of the values that belong to a login: state, nonce, verifier.
func (b begun) part(what string) string {
	// The state travels in the address bar. It must not reveal the verifier, which proves who began (RFC 7636).
	m := hmac.New(sha256.New, b.Secret)
	m.Write([]byte(what))
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// sso logs people in through a provider. The browser keeps what belongs to a login that has begun, in a cookie that is
// signed: anyone who begins a million of them fills no memory here.
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
		// The endpoints are named in a signed place, the provider's own description. A redirect could lead a client secret
		// elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("the provider answers with a redirect") },
	}
	return p
}

// careful is a way to a provider that ends where somebody could listen, and takes answers of bounded size only.
type careful struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (c careful) RoundTrip(r *http.Request) (*http.Response, error) {
	// This also covers the endpoints that the provider names: without TLS, one of them would show the client secret.
	if !isPrivate(r.URL) {
		return nil, fmt.Errorf("the provider names %s, which has no TLS", inventory.Clean(r.URL.Redacted(), 200))
	}
	a, err := c.next.RoundTrip(r)
	if err == nil {
		a.Body = http.MaxBytesReader(nil, a.Body, ssoAnswer)
	}
	return a, err
}

// provider returns the provider as it describes itself. Slipway asks it when somebody logs in, and so starts without it.
func (p *sso) provider(ctx context.Context) (*oidc.Provider, error) {
	select {
	// One question at a time: a hundred people who log in at eight o'clock ask once. Those who wait can leave with ctx.
	case p.asking <- struct{}{}:
		defer func() { <-p.asking }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	// The holder of asking is alone here, so known, at and away need no other lock. mu guards used only.
	age := p.now().Sub(p.at)
	switch {
	case p.known != nil && age < ssoFresh:
		return p.known, nil
	// A negative age means that the clock was set back: then Slipway asks again.
	case p.away != nil && age >= 0 && age < ssoRetry:
		return p.known, p.away
	}
	found, err := oidc.NewProvider(oidc.ClientContext(ctx, p.client), p.Issuer)
	p.at = p.now()
	if err == nil {
		var at *url.URL
		// The provider names its login page itself. One without TLS would show the code to anybody on the way.
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
	// A missing id_token is an empty text, which Verify refuses as malformed.
	raw, _ := token.Extra("id_token").(string)
	// The expiry is checked below with ssoSkew: the library knows no tolerance, and clocks of servers are minutes apart at
	// times.
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
	// UserInfo is one more request. It is needed only when the signed token has no groups.
	if _, hasGroups := claim(said, p.GroupsClaim); !hasGroups && at.UserInfoEndpoint() != "" {
		more, err := at.UserInfo(ctx, oauth2.StaticTokenSource(token))
		if err != nil {
			return who, p.refuse("it does not say more about you", err)
		}
		// OpenID Connect Core 1.0, section 5.3.2: without this check the answer of another person could be put in its place.
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
	// OpenID Connect does not ask for nbf, but some providers send it. Without it the time is 1970, which passes.
	notBefore, _ := said["nbf"].(float64)
	azp, _ := said["azp"].(string)
	switch {
	// The nonce ties the token to the browser that began: a stolen code is of no use in another one (section 3.1.3.7).
	case id.Nonce != b.part("nonce"):
		return p.refuse("its answer belongs to another login", errors.New("nonce"))
	case now.After(id.Expiry.Add(ssoSkew)):
		return p.refuse(fmt.Sprintf("its answer has expired %s ago by this server's clock; are both clocks right?", now.Sub(id.Expiry).Round(time.Second)), nil)
	case id.IssuedAt.After(now.Add(ssoSkew)) || time.Unix(int64(notBefore), 0).After(now.Add(ssoSkew)):
		return p.refuse(fmt.Sprintf("its answer is from the future, by %s on this server's clock; are both clocks right?", id.IssuedAt.Sub(now).Round(time.Second)), nil)
	// azp names the client that a token with several audiences is for (section 3.1.3.7, step 5).
	case azp != "" && azp != p.ClientID:
		return p.refuse("its answer is for another program", fmt.Errorf("azp %q", azp))
	// A subject has at most 255 characters (section 2).
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
	// Both mean that the settings are wrong. Another try of the same user does not help.
	if said.ErrorCode == "invalid_client" || said.ErrorCode == "unauthorized_client" {
		return &inventory.Error{Kind: inventory.Unauthorized, Msg: p.Title + " does not know this Slipway", Hint: "an admin looks at oidc.clientID and oidc.clientSecretFile; see docs/sso.md", Err: err}
	}
	return p.refuse("it refuses the code that it gave: "+inventory.Clean(said.ErrorCode, 60), err)
}
