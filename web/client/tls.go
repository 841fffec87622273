package client

import (
	"context"
	"net/http"

	"slipway.dev/slipway/web/wire"
)

// TLS shows the certificate of the admin listener.
func (c *Client) TLS(ctx context.Context) (t wire.TLSState, err error) {
	return t, c.call(ctx, http.MethodGet, "tls", nil, nil, &t)
}

// SetTLS gives the admin listener a certificate and its key, both PEM.
func (c *Client) SetTLS(ctx context.Context, certificate, key string) (t wire.TLSState, err error) {
	in := map[string]string{"certificate": certificate, "key": key}
	return t, c.call(ctx, http.MethodPut, "tls", nil, in, &t)
}

// DropTLS takes an uploaded certificate away.
func (c *Client) DropTLS(ctx context.Context) error {
	return c.call(ctx, http.MethodDelete, "tls", nil, nil, nil)
}

// RotateAuthority prepares the next authority of a listener, admin or boot, or puts it in force.
func (c *Client) RotateAuthority(ctx context.Context, door string, isFinish bool) error {
	return c.call(ctx, http.MethodPost, "tls/authority", nil, map[string]any{"door": door, "isFinish": isFinish}, nil)
}
