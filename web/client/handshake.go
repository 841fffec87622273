package client

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"strings"

	"slipway.dev/slipway/inventory"
)

// handshake explains why no connection to a server came about though something answers there; nil for other failures.
func (c *Client) handshake(err error) *inventory.Error {
	var (
		name     x509.HostnameError
		invalid  x509.CertificateInvalidError
		verify   *tls.CertificateVerificationError
		notTLS   tls.RecordHeaderError
		e        = &inventory.Error{Kind: inventory.Unavailable, Err: err}
		trustTip = "on the server, slipway tls show --ca > ca.crt prints its authority; compare the fingerprint, then give it with --ca-file ca.crt"
	)
	switch {
	case errors.As(err, &name):
		e.Msg, e.Hint = "the certificate of "+c.where()+" is for another name", "name the server as its certificate does: slipway tls show, on the server, shows it"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		e.Msg, e.Hint = "the certificate of "+c.where()+" is expired or not yet valid", "compare the clocks of both machines; on the server: slipway tls show"
	case errors.As(err, &verify):
		e.Msg, e.Hint = "the certificate of "+c.where()+" is signed by nobody whom this computer trusts", trustTip
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &notTLS):
		e.Msg, e.Hint = c.where()+" does not speak TLS", "write http:// where the server listens on loopback, or check the port"
	default:
		return nil
	}
	return e
}

// wantsTLS reports whether the body of an answer says that the server speaks TLS alone.
func wantsTLS(body []byte) bool {
	return bytes.Contains(body, []byte("HTTP request to an HTTPS server"))
}

// asHTTPS is the address of the server with https.
func (c *Client) asHTTPS() string { return "https://" + strings.TrimPrefix(c.base, "http://") }
