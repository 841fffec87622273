package access

import (
	"crypto/x509"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strings"

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
	// Sorted, so that one configuration with two faults always gets the same message.
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
	// Nothing on the loopback leaves this machine. A provider on the same server needs no certificate.
	a, err := netip.ParseAddr(u.Hostname())
	return u.Scheme == "http" && (u.Hostname() == "localhost" || err == nil && a.IsLoopback())
}
