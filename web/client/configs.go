package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/web/wire"
)

// Preview is what a host would be given to become; secrets are shown by their references.
type Preview struct {
	Host       string                       `json:"host"`
	Profile    string                       `json:"profile,omitempty"`
	Revision   int                          `json:"revision,omitempty"` // 0 for a draft
	Image      string                       `json:"image,omitempty"`
	OS         string                       `json:"os,omitempty"`
	Release    string                       `json:"release,omitempty"`
	Format     string                       `json:"format,omitempty"`
	Tool       string                       `json:"tool,omitempty"`
	Digest     inventory.Digest             `json:"digest,omitempty"`
	Documents  []inventory.RenderedDocument `json:"documents"`
	Args       []string                     `json:"args,omitempty"`
	Findings   Findings                     `json:"findings"`
	Provenance map[string]string            `json:"provenance,omitempty"`
	References []string                     `json:"references,omitempty"`
	Since      inventory.Digest             `json:"since,omitempty"` // what the host was given last
	Diff       string                       `json:"diff,omitempty"`  // against that
	Config     []machineconfig.Line         `json:"config,omitempty"`
}

// Render returns what a host would be given now.
func (h Hosts) Render(ctx context.Context, host string) (p Preview, err error) {
	return p, h.c.call(ctx, http.MethodGet, h.at(host)+"/render", nil, nil, &p)
}

// RenderDraft returns what a host would be given with a profile that is not stored.
func (h Hosts) RenderDraft(ctx context.Context, host string, draft inventory.Profile) (p Preview, err error) {
	return p, h.c.call(ctx, http.MethodPost, h.at(host)+"/render", nil, draft, &p)
}

// Renderings returns what a host was given, latest first, without the documents; 0 is the usual number of them.
func (h Hosts) Renderings(ctx context.Context, host string, limit int) (p Page[inventory.Rendering], err error) {
	return p, h.c.call(ctx, http.MethodGet, h.at(host)+"/renderings", Query{Limit: limit}.values(), nil, &p)
}

// Configs is the calls on profiles and layers, which have revisions and are tried on hosts before they are saved.
type Configs[T any] struct {
	Noun[T]
}

// Revisions returns one page of revisions, newest first.
func (n Configs[T]) Revisions(ctx context.Context, name string, q Query) (p Page[wire.Revision[T]], err error) {
	return p, n.c.call(ctx, http.MethodGet, n.at(name)+"/revisions", q.values(), nil, &p)
}

// Revision returns one revision.
func (n Configs[T]) Revision(ctx context.Context, name string, number int) (r wire.Revision[T], err error) {
	return r, n.c.call(ctx, http.MethodGet, fmt.Sprintf("%s/revisions/%d", n.at(name), number), nil, nil, &r)
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
func (n Configs[T]) Check(ctx context.Context, name string, item T) (i Impact, err error) {
	return i, n.c.call(ctx, http.MethodPost, n.at(name)+"/check", nil, item, &i)
}
