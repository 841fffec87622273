package client

import (
	"context"
	"net/http"

	"slipway.dev/slipway/web/wire"
)

// Stats returns how busy the server was in the last hour, minute by minute.
func (c *Client) Stats(ctx context.Context) (s wire.Stats, err error) {
	return s, c.call(ctx, http.MethodGet, "stats", nil, nil, &s)
}

// About returns what the server is made of.
func (c *Client) About(ctx context.Context) (a wire.About, err error) {
	return a, c.call(ctx, http.MethodGet, "about", nil, nil, &a)
}
