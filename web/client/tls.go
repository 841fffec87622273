package client

import (
	"context"
	"net/http"
	"time"
)

// TLS is the certificate of the admin listener.
type TLS struct {
	IsOn        bool      `json:"isOn"`
	From        string    `json:"from,omitempty"` // files, uploaded, or site: this site's own authority
	Subject     string    `json:"subject,omitempty"`
	Issuer      string    `json:"issuer,omitempty"`
	Names       []string  `json:"names,omitempty"`
	NotBefore   time.Time `json:"notBefore,omitzero"`
	NotAfter    time.Time `json:"notAfter,omitzero"`
	Fingerprint string    `json:"fingerprint,omitempty"` // SHA-256 in hex
	CA          string    `json:"ca,omitempty"`          // PEM
	IsPrepared  bool      `json:"isPrepared,omitempty"`  // CA has the authority that comes after, too
	Refused     string    `json:"refused,omitempty"`
}

// TLS shows the certificate of the admin listener.
func (c *Client) TLS(ctx context.Context) (t TLS, err error) {
	return t, c.call(ctx, http.MethodGet, "tls", nil, nil, &t)
}

// SetTLS gives the admin listener a certificate and its key, both PEM.
func (c *Client) SetTLS(ctx context.Context, certificate, key string) (t TLS, err error) {
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
