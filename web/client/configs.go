package client

import (
	"context"
	"net/http"
	"net/url"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/configuration"
	"slipway.dev/slipway/web/wire"
)

// Render returns what a host would be given now.
func (h Hosts) Render(ctx context.Context, host string) (p configuration.Preview, err error) {
	return p, h.c.call(ctx, http.MethodGet, h.at(host)+"/render", nil, nil, &p)
}

// RenderDraft returns what a host would be given with a profile that is not stored.
func (h Hosts) RenderDraft(ctx context.Context, host string, draft inventory.Profile) (p configuration.Preview, err error) {
	return p, h.c.call(ctx, http.MethodPost, h.at(host)+"/render", nil, draft, &p)
}

// Configs is the calls on profiles and layers, which have revisions and are tried on hosts before they are saved.
type Configs[T any] struct {
	Noun[T]
}

// Revisions is the calls for its revisions, which are listed newest first. The name of one is its number.
func (n Configs[T]) Revisions(name string) Noun[wire.Revision[T]] {
	return Noun[wire.Revision[T]]{n.c, n.at(name) + "/revisions"}
}

// Rollback makes it what it was at a revision.
func (n Configs[T]) Rollback(ctx context.Context, name string, number int, opts ...Option) (stored T, err error) {
	return stored, n.c.call(ctx, http.MethodPost, n.at(name)+"/rollback", nil, map[string]int{"revision": number}, &stored, opts...)
}

// PreviewRollback says what a rollback would change.
func (n Configs[T]) PreviewRollback(ctx context.Context, name string, number int) (d Diff, err error) {
	return d, n.c.call(ctx, http.MethodPost, n.at(name)+"/rollback", url.Values{"dryRun": {"true"}}, map[string]int{"revision": number}, &d)
}

// Check says what saving it would do to its hosts. The answer has its faults.
func (n Configs[T]) Check(ctx context.Context, name string, item T) (i configuration.Impact, err error) {
	return i, n.c.call(ctx, http.MethodPost, n.at(name)+"/check", nil, item, &i)
}

// layerInput is a layer without the key, which the address says.
type layerInput struct {
	Config string `json:"config"`
}

// SetLayer stores the text of a layer, whether it exists or not.
func (c *Client) SetLayer(ctx context.Context, key, config string, opts ...Option) (l inventory.Layer, err error) {
	return l, c.call(ctx, http.MethodPut, c.Layers.at(key), nil, layerInput{config}, &l, opts...)
}

// CheckLayer says what storing that text would do to the hosts of a layer.
func (c *Client) CheckLayer(ctx context.Context, key, config string) (i configuration.Impact, err error) {
	return i, c.call(ctx, http.MethodPost, c.Layers.at(key)+"/check", nil, layerInput{config}, &i)
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
