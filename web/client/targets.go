package client

import (
	"context"
	"io"
	"net/http"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/wire"
)

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
