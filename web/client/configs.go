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
