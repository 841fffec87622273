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

// Revision is what a profile or layer was at one time; Body is nil in lists.
type Revision[T any] struct {
	N         int       `json:"n"`
	CreatedAt time.Time `json:"createdAt"`
	Changed   []string  `json:"changed"` // fields in which it differs from the one before
	Body      *T        `json:"body,omitempty"`
}

// Configs is the calls on profiles and layers, which have revisions and are tried on hosts before they are saved.
type Configs[T any] struct {
	Noun[T]
}

// Revisions returns one page of revisions, newest first.
func (n Configs[T]) Revisions(ctx context.Context, name string, q Query) (p Page[Revision[T]], err error) {
	return p, n.c.call(ctx, http.MethodGet, n.at(name)+"/revisions", q.values(), nil, &p)
}

// Revision returns one revision.
func (n Configs[T]) Revision(ctx context.Context, name string, number int) (r Revision[T], err error) {
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

// SecretInput is what is set of a secret; nil stays as it is.
type SecretInput struct {
	Value *string `json:"value,omitempty"`
	About *string `json:"about,omitempty"`
	// Consumers replace those that it has.
	Consumers *inventory.Consumers `json:"consumers,omitempty"`
}

// SetSecret stores a secret, whether it exists or not. Its value never comes back.
func (c *Client) SetSecret(ctx context.Context, name string, in SecretInput, opts ...Option) (s inventory.Secret, err error) {
	return s, c.call(ctx, http.MethodPut, c.Secrets.at(name), nil, in, &s, opts...)
}

// SecretUses says what keeps a secret from being deleted.
type SecretUses struct {
	Name   string   `json:"name"`
	UsedBy []string `json:"usedBy"` // such as profile web
}

// SecretUses returns what uses a secret.
func (c *Client) SecretUses(ctx context.Context, name string) (u SecretUses, err error) {
	return u, c.call(ctx, http.MethodGet, c.Secrets.at(name)+"/uses", nil, nil, &u)
}

// TargetCheck says whether hosts can join a target.
type TargetCheck struct {
	Target  string        `json:"target"`
	Version string        `json:"version,omitempty"` // of its API server
	IsGood  bool          `json:"isGood"`
	Results []CheckResult `json:"results"`
}

// CheckTarget has the server look whether hosts can join a target.
func (c *Client) CheckTarget(ctx context.Context, name string) (t TargetCheck, err error) {
	return t, c.call(ctx, http.MethodGet, c.Targets.at(name)+"/check", nil, nil, &t)
}

// TargetRBAC returns what the administrator of a target's cluster applies once; with nodes also what is needed to look
// after nodes.
func (c *Client) TargetRBAC(ctx context.Context, name string, nodes bool) ([]byte, error) {
	var q url.Values
	if nodes {
		q = url.Values{"nodes": {"true"}}
	}
	res, err := c.send(ctx, http.MethodGet, c.Targets.at(name)+"/rbac", q, nil)
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

// Kubeconfig lets its reader into a cluster as an administrator.
type Kubeconfig struct {
	Kubeconfig string    `json:"kubeconfig"`
	ExpiresAt  time.Time `json:"expiresAt"`
}

// IssueKubeconfig lets who asks administer the cluster of a target; 0 is a day.
func (c *Client) IssueKubeconfig(ctx context.Context, target string, life time.Duration) (k Kubeconfig, err error) {
	in := struct {
		For inventory.Duration `json:"for,omitempty"`
	}{inventory.Duration(life)}
	return k, c.call(ctx, http.MethodPost, c.Targets.at(target)+"/kubeconfig", nil, in, &k)
}

// JoinTokens returns the bootstrap tokens that were minted for a target, newest first.
func (c *Client) JoinTokens(ctx context.Context, target string) (p Page[inventory.JoinToken], err error) {
	return p, c.call(ctx, http.MethodGet, c.Targets.at(target)+"/tokens", nil, nil, &p)
}

// CapabilityTable says how well each format carries each part of a configuration to a target.
type CapabilityTable struct {
	Target string `json:"target"`
	Fields []struct {
		Path  string `json:"path"`
		About string `json:"about"`
	} `json:"fields"`
	Formats []struct {
		Format string `json:"format"`
		Tool   string `json:"tool,omitempty"`
		IsRead bool   `json:"isRead"`
		Cells  map[string]struct {
			Support string `json:"support"`
			Note    string `json:"note,omitempty"`
		} `json:"cells"`
	} `json:"formats"`
}

// Capabilities returns the capability table of an image, or of an entry of the catalogue and a release.
func (c *Client) Capabilities(ctx context.Context, image, os, release string) (t CapabilityTable, err error) {
	q := url.Values{}
	for key, value := range map[string]string{"image": image, "os": os, "release": release} {
		if value != "" {
			q.Set(key, value)
		}
	}
	return t, c.call(ctx, http.MethodGet, "capabilities", q, nil, &t)
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
