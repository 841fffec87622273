package client

import (
	"context"
	"io"
	"net/http"
	"net/url"

	"slipway.dev/slipway/web/wire"
)

// SelfCheck has the server look itself over.
func (c *Client) SelfCheck(ctx context.Context) (p Page[wire.Check], err error) {
	return p, c.call(ctx, http.MethodGet, "selfcheck", nil, nil, &p)
}

// Version returns the server's version.
func (c *Client) Version(ctx context.Context) (v wire.VersionInfo, err error) {
	return v, c.call(ctx, http.MethodGet, "version", nil, nil, &v)
}

// Export writes hosts, subnets, reservations or all (YAML only) as csv or yaml to w.
func (c *Client) Export(ctx context.Context, noun, format string, w io.Writer) error {
	return c.download(ctx, "export", "transfer", url.Values{"noun": {noun}, "format": {format}}, w)
}

// Sheet says what the columns of a CSV file are: by the program that wrote it, and one by one as COLUMN=FIELD.
type Sheet struct {
	Preset string
	Map    []string
}

// ImportFile reads hosts, subnets and reservations from a file in csv or yaml, in one transaction: all of it or
// nothing. The name is for errors, which give the line.
func (c *Client) ImportFile(ctx context.Context, format, name string, file io.Reader, s Sheet, isDryRun bool) (out wire.FileImport, err error) {
	q := params{"format": format, "file": name, "preset": s.Preset, "dryRun": isDryRun}.values()
	q["map"] = s.Map
	res, err := c.send(ctx, http.MethodPost, "transfer", q, file, func(r *http.Request) {
		r.Header.Set("Content-Type", "text/plain; charset=utf-8")
		r.Header.Set("Accept", "application/json")
	})
	if err != nil {
		return out, err
	}
	defer drain(res.Body)
	return out, decode(res.Body, &out)
}

// Stats returns how busy the server was in the last hour, minute by minute.
func (c *Client) Stats(ctx context.Context) (s wire.Stats, err error) {
	return s, c.call(ctx, http.MethodGet, "stats", nil, nil, &s)
}

// Database returns where the inventory of a server is, and how that database is.
func Database(ctx context.Context, c *Client) (d wire.Database, err error) {
	return d, c.call(ctx, http.MethodGet, "database", nil, nil, &d)
}

// About returns what the server is made of.
func (c *Client) About(ctx context.Context) (a wire.About, err error) {
	return a, c.call(ctx, http.MethodGet, "about", nil, nil, &a)
}

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
