package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/web/wire"
)

// Findings are what an error has to say about a configuration; they are its cause.
type Findings []machineconfig.Finding

// Error lists them, one per line.
func (f Findings) Error() string {
	lines := make([]string, len(f))
	for i, x := range f {
		lines[i] = x.Source + ": " + string(x.Severity) + ": " + x.Path + ": " + x.Message
	}
	return strings.Join(lines, "\n")
}

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

// Impact is what saving a profile or layer would do to the hosts that use it.
type Impact struct {
	HostN    int          `json:"hostN"`
	ChangedN int          `json:"changedN"`
	FailedN  int          `json:"failedN"`
	Hosts    []HostImpact `json:"hosts"`
	Findings Findings     `json:"findings"`
}

// HostImpact is what an edit would do to one host.
type HostImpact struct {
	Host     string   `json:"host"`
	Diff     string   `json:"diff,omitempty"`
	Findings Findings `json:"findings,omitempty"`
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

// Rendering returns what a host was given.
func (c *Client) Rendering(ctx context.Context, d inventory.Digest) (r inventory.Rendering, err error) {
	return r, c.call(ctx, http.MethodGet, "renderings/"+url.PathEscape(string(d)), nil, nil, &r)
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

// SetSecret stores a secret, whether it exists or not. Its value never comes back.
func (c *Client) SetSecret(ctx context.Context, name string, in wire.SecretInput, opts ...Option) (s inventory.Secret, err error) {
	return s, c.call(ctx, http.MethodPut, c.Secrets.at(name), nil, in, &s, opts...)
}

// SecretUses returns what uses a secret.
func (c *Client) SecretUses(ctx context.Context, name string) (u wire.SecretUses, err error) {
	return u, c.call(ctx, http.MethodGet, c.Secrets.at(name)+"/uses", nil, nil, &u)
}

// CheckTarget has the server look whether hosts can join a target.
func (c *Client) CheckTarget(ctx context.Context, name string) (t wire.TargetCheck, err error) {
	return t, c.call(ctx, http.MethodGet, c.Targets.at(name)+"/check", nil, nil, &t)
}

// TargetRBAC returns what the administrator of a target's cluster applies once; with nodes also what is needed to look
// after nodes.
func (c *Client) TargetRBAC(ctx context.Context, name string, nodes bool) ([]byte, error) {
	res, err := c.send(ctx, http.MethodGet, c.Targets.at(name)+"/rbac", params{"nodes": nodes}.values(), nil)
	if err != nil {
		return nil, err
	}
	defer drain(res.Body)
	b, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		return nil, &inventory.Error{Kind: inventory.Unavailable, Err: err, Msg: "the server's answer was cut short", Hint: "try it again"}
	}
	return b, nil
}

// IssueKubeconfig lets who asks administer the cluster of a target; 0 is a day.
func (c *Client) IssueKubeconfig(ctx context.Context, target string, life time.Duration) (k wire.Kubeconfig, err error) {
	in := struct {
		For inventory.Duration `json:"for,omitempty"`
	}{inventory.Duration(life)}
	return k, c.call(ctx, http.MethodPost, c.Targets.at(target)+"/kubeconfig", nil, in, &k)
}

// JoinTokens returns the bootstrap tokens that were minted for a target, newest first.
func (c *Client) JoinTokens(ctx context.Context, target string) (p Page[inventory.JoinToken], err error) {
	return p, c.call(ctx, http.MethodGet, c.Targets.at(target)+"/tokens", nil, nil, &p)
}

// Capabilities returns the capability table of an image, or of an entry of the catalogue and a release.
func (c *Client) Capabilities(ctx context.Context, image, os, release string) (t wire.CapabilityTable, err error) {
	q := params{"image": image, "os": os, "release": release}
	return t, c.call(ctx, http.MethodGet, "capabilities", q.values(), nil, &t)
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
func (c *Client) CheckLayer(ctx context.Context, key, config string) (i Impact, err error) {
	return i, c.call(ctx, http.MethodPost, c.Layers.at(key)+"/check", nil, layerInput{config}, &i)
}
