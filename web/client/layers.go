package client

import (
	"context"
	"net/http"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/configuration"
	"slipway.dev/slipway/web/wire"
)

// SetLayer stores the text of a layer, whether it exists or not.
func (c *Client) SetLayer(ctx context.Context, key, config string, opts ...Option) (l inventory.Layer, err error) {
	return l, c.call(ctx, http.MethodPut, c.Layers.at(key), nil, map[string]string{"config": config}, &l, opts...)
}

// CheckLayer says what storing that text would do to the hosts of a layer.
func (c *Client) CheckLayer(ctx context.Context, key, config string) (i configuration.Impact, err error) {
	return i, c.call(ctx, http.MethodPost, c.Layers.at(key)+"/check", nil, map[string]string{"config": config}, &i)
}

// SetSecret stores a secret, whether it exists or not. Its value never comes back.
func (c *Client) SetSecret(ctx context.Context, name string, in wire.SecretInput, opts ...Option) (s inventory.Secret, err error) {
	return s, c.call(ctx, http.MethodPut, c.Secrets.at(name), nil, in, &s, opts...)
}

// SecretUses returns what uses a secret.
func (c *Client) SecretUses(ctx context.Context, name string) (u wire.SecretUses, err error) {
	return u, c.call(ctx, http.MethodGet, c.Secrets.at(name)+"/uses", nil, nil, &u)
}

// Capabilities returns the capability table of an image, or of an entry of the catalogue and a release.
func (c *Client) Capabilities(ctx context.Context, image, os, release string) (t wire.CapabilityTable, err error) {
	q := params{"image": image, "os": os, "release": release}
	return t, c.call(ctx, http.MethodGet, "capabilities", q.values(), nil, &t)
}

// ProfileHosts returns the names of the hosts that a profile is for.
func (c *Client) ProfileHosts(ctx context.Context, profile string) (p Page[string], err error) {
	return p, c.call(ctx, http.MethodGet, c.Profiles.at(profile)+"/hosts", nil, nil, &p)
}
