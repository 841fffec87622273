package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"slipway.dev/slipway/inventory"
)

// TokenWish is what a token is to be.
type TokenWish struct {
	Name      string           `json:"name"`
	User      *string          `json:"user,omitempty"`   // nil: whoever makes it
	Grants    inventory.Grants `json:"grants,omitempty"` // none: all that whoever makes it may do
	ExpiresAt time.Time        `json:"expiresAt,omitzero"`
}

// NewToken makes a token. Its secret is in the answer and nowhere else.
func (c *Client) NewToken(ctx context.Context, in TokenWish) (t NewToken, err error) {
	return t, c.call(ctx, http.MethodPost, "tokens", nil, in, &t)
}

// SetPassword sets a user's password, as an admin.
func (c *Client) SetPassword(ctx context.Context, user, password string) error {
	in := struct {
		Password string `json:"password"`
	}{password}
	return c.call(ctx, http.MethodPut, "users/"+url.PathEscape(user)+"/password", nil, in, nil)
}

// Me is who the client is, and what that one may do.
type Me struct {
	Name       string           `json:"name"`
	User       string           `json:"user,omitempty"`
	Via        string           `json:"via"`
	Grants     inventory.Grants `json:"grants"`
	NeedsSetup bool             `json:"needsSetup"`
}

// Me says who the client is.
func (c *Client) Me(ctx context.Context) (me Me, err error) {
	return me, c.call(ctx, http.MethodGet, "me", nil, nil, &me)
}
