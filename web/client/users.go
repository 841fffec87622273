package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/wire"
)

// TokenWish is what a token is to be.
type TokenWish struct {
	Name   string           `json:"name"`
	User   *string          `json:"user,omitempty"`   // nil: anyone who makes it
	Grants inventory.Grants `json:"grants,omitempty"` // none: all that anyone who makes it may do
	// Cluster is an attached cluster or the UID of any: the token is for its controllers and has no grants.
	Cluster    string    `json:"cluster,omitempty"`
	Namespaces []string  `json:"namespaces,omitempty"` // of the cluster; none means all
	ExpiresAt  time.Time `json:"expiresAt,omitzero"`
}

// NewToken is a token with its secret, which the server tells only once.
type NewToken struct {
	inventory.Token
	Secret string `json:"secret"`
}

// NewToken makes a token. Its secret is in the answer and nowhere else.
func (c *Client) NewToken(ctx context.Context, in TokenWish) (t NewToken, err error) {
	return t, c.call(ctx, http.MethodPost, "tokens", nil, in, &t)
}

// SetPassword sets a user's password, as an admin.
func (c *Client) SetPassword(ctx context.Context, user, password string) error {
	in := map[string]string{"password": password}
	return c.call(ctx, http.MethodPut, "users/"+url.PathEscape(user)+"/password", nil, in, nil)
}

// BeginSecondFactor begins to set up an authenticator app for a user.
func (c *Client) BeginSecondFactor(ctx context.Context, user string) (f wire.SecondFactor, err error) {
	return f, c.call(ctx, http.MethodPost, "users/"+url.PathEscape(user)+"/second-factor", nil, nil, &f)
}

// SetSecondFactor sets it up by its first code, and returns recovery codes.
func (c *Client) SetSecondFactor(ctx context.Context, user, ticket, code string) (codes []string, err error) {
	in := map[string]string{"ticket": ticket, "code": code}
	var out wire.RecoveryCodes
	err = c.call(ctx, http.MethodPut, "users/"+url.PathEscape(user)+"/second-factor", nil, in, &out)
	return out.Codes, err
}

// SecondFactors says which second factors a user has.
func (c *Client) SecondFactors(ctx context.Context, user string) (f wire.SecondFactors, err error) {
	return f, c.call(ctx, http.MethodGet, "users/"+url.PathEscape(user)+"/second-factor", nil, nil, &f)
}

// RemoveSecondFactor takes a user's security key away, or without its name all second factors.
func (c *Client) RemoveSecondFactor(ctx context.Context, user, key string) error {
	return c.call(ctx, http.MethodDelete, "users/"+url.PathEscape(user)+"/second-factor", params{"key": key}.values(), nil, nil)
}

// Me says who the client is.
func (c *Client) Me(ctx context.Context) (me wire.Me, err error) {
	return me, c.call(ctx, http.MethodGet, "me", nil, nil, &me)
}

// DeleteView deletes a view: the user's own, or with isShared the one that all share.
func (c *Client) DeleteView(ctx context.Context, name string, isShared bool) error {
	return c.call(ctx, http.MethodDelete, c.Views.at(name), params{"shared": isShared}.values(), nil, nil)
}
