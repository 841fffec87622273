package client

import (
	"context"
	"io"
	"net/http"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/wire"
)

// Clusters is the calls on attached Kubernetes clusters.
type Clusters struct {
	Noun[inventory.Cluster]
}

// Check makes the server check an attached cluster.
func (c Clusters) Check(ctx context.Context, name string) (k wire.ClusterCheck, err error) {
	return k, c.c.call(ctx, http.MethodGet, c.at(name)+"/check", nil, nil, &k)
}

// CheckKubeconfig has the server look whether a cluster could be attached with a kubeconfig. The server does not read the
// secret that it names.
func (c Clusters) CheckKubeconfig(ctx context.Context, want inventory.Cluster, kubeconfig string) (k wire.ClusterCheck, err error) {
	in := struct {
		Name        string                  `json:"name"`
		Kubeconfig  string                  `json:"kubeconfig"`
		Modes       []inventory.ClusterMode `json:"modes,omitempty"`
		Namespaces  []string                `json:"namespaces,omitempty"`
		WatchFilter string                  `json:"watchFilter,omitempty"`
		TakesOver   bool                    `json:"takesOver,omitempty"`
	}{want.Name, kubeconfig, want.Modes, want.Namespaces, want.WatchFilter, want.TakesOver}
	return k, c.c.call(ctx, http.MethodPost, "clusters/check", nil, in, &k)
}

// SetAccess says what a cluster, by its name or UID, may do beyond its own machines.
func (c Clusters) SetAccess(ctx context.Context, name string, a inventory.ClusterAccess) (stored inventory.ClusterAccess, err error) {
	in := map[string][]string{"takesFrom": append([]string{}, a.TakesFrom...), "pools": append([]string{}, a.Pools...)}
	return stored, c.c.call(ctx, http.MethodPut, c.at(name)+"/access", nil, in, &stored)
}

// Detach ends the controllers of a cluster and forgets it; every server runs on. With purge the kinds are taken away as
// well; with force a cluster is forgotten that does not answer.
func (c Clusters) Detach(ctx context.Context, name string, purge, force bool) error {
	return c.c.call(ctx, http.MethodDelete, c.at(name), params{"purge": purge, "force": force}.values(), nil, nil)
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
