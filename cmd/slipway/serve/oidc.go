package serve

import (
	"errors"
	"io"
	"os"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/access"
)

// OIDC is the provider of identities as the file has it.
type OIDC struct {
	Issuer           string                      `yaml:"issuer"`
	ClientID         string                      `yaml:"clientID"`
	ClientSecretFile string                      `yaml:"clientSecretFile"` // empty: a public client
	Title            string                      `yaml:"title"`            // on the login page; empty: single sign-on
	Scopes           []string                    `yaml:"scopes"`           // besides openid; empty: profile and email
	NameClaim        string                      `yaml:"nameClaim"`        // empty: preferred_username
	GroupsClaim      string                      `yaml:"groupsClaim"`      // empty: groups
	Groups           map[string]inventory.Grants `yaml:"groups"`           // roles of each group
	CAFile           string                      `yaml:"caFile"`           // who vouches for the provider's certificate; empty: the system's
}

// web returns the provider as the admin door uses it; its files are read.
func (o *OIDC) web(externalURL string) (*access.OIDC, error) {
	out := &access.OIDC{
		Issuer: o.Issuer, ClientID: o.ClientID, Title: o.Title, Scopes: o.Scopes, NameClaim: o.NameClaim, GroupsClaim: o.GroupsClaim,
		Groups: o.Groups, ExternalURL: strings.TrimRight(externalURL, "/"),
	}
	for _, d := range []struct {
		to *string
		is string
	}{{&out.Title, "single sign-on"}, {&out.NameClaim, "preferred_username"}, {&out.GroupsClaim, "groups"}} {
		if *d.to == "" {
			*d.to = d.is
		}
	}
	if out.Scopes == nil {
		out.Scopes = []string{"profile", "email"}
	}
	if err := inventory.CheckText("oidc: title", out.Title, 60); err != nil {
		return nil, err
	}
	if o.ClientSecretFile != "" {
		text, err := readSmall(o.ClientSecretFile)
		if err != nil {
			return nil, inventory.Errorf(inventory.Invalid, "oidc: clientSecretFile: %s", err).WithHint("write the secret that the provider gave to a file that only Slipway's user can read")
		}
		out.ClientSecret = strings.TrimSpace(string(text))
	}
	if o.CAFile != "" {
		text, err := readSmall(o.CAFile)
		if err != nil {
			return nil, inventory.Errorf(inventory.Invalid, "oidc: caFile: %s", err).WithHint("it is a PEM file")
		}
		out.CA = text
	}
	return out, out.Validate()
}

// readSmall reads a file of at most 64 KiB that is not empty.
func readSmall(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 64<<10+1))
	switch {
	case err != nil:
		return nil, err
	// A file that does not end, such as a device, must not fill the memory of a start.
	case len(text) > 64<<10:
		return nil, errors.New(path + " is over 64 KiB long")
	case strings.TrimSpace(string(text)) == "":
		return nil, errors.New(path + " is empty")
	}
	return text, nil
}
