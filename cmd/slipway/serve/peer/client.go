package peer

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"net"
	"net/http"
	"strconv"
	"time"

	"slipway.dev/slipway/inventory"
)

// Instances share a data center: an answer within a second, or the peer counts as gone.
const (
	dialFor   = 2 * time.Second
	pingAfter = time.Second // without a sign of the peer
	pingFor   = 2 * time.Second
)

// Client asks other instances. Many goroutines may use it.
type Client struct {
	// HTTP sends many requests over one connection (HTTP/2). A URL is https://HOST:PORT/..., with the address of an instance.
	HTTP *http.Client
	// Upgrade sends each request over a connection of its own, if need be, so that a request may become a WebSocket.
	Upgrade http.RoundTripper

	all []*http.Transport
}

// callerHeader says which instance asks. The key does not: all instances have the same.
const callerHeader = "Slipway-Instance"

// signed sends requests in the name of an instance.
type signed struct {
	*http.Transport
	id string
}

// RoundTrip implements http.RoundTripper.
func (s signed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context()) // a RoundTripper changes no request
	r.Header.Set(callerHeader, s.id)
	r.Header.Set(versionHeader, strconv.Itoa(Version))
	return s.Transport.RoundTrip(r)
}

// NewClient returns a Client of the instance with an id. It speaks to instances with that identity only.
func NewClient(i Identity, id string) *Client {
	many := transport(i.clientTLS())
	many.Protocols = new(http.Protocols)
	many.Protocols.SetHTTP2(true)
	many.HTTP2 = &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingFor}
	each := transport(i.clientTLS())
	return &Client{
		HTTP: &http.Client{Transport: signed{many, id}, CheckRedirect: noRedirect}, Upgrade: signed{each, id}, all: []*http.Transport{many, each},
	}
}

// NewGuest returns a client for a machine that has no key yet, and knows the pin of one.
func NewGuest(pin string) (*http.Client, error) {
	raw, err := hex.DecodeString(pin)
	if err != nil || len(raw) != sha256.Size {
		return nil, inventory.Errorf(inventory.Invalid, "the pin of an instance is not 64 hexadecimal digits")
	}
	return &http.Client{Transport: transport(pinnedTLS([sha256.Size]byte(raw))), CheckRedirect: noRedirect}, nil
}

// noRedirect keeps a request with the instance that was asked.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func transport(c *tls.Config) *http.Transport {
	dialer := &net.Dialer{Timeout: dialFor, KeepAlive: 5 * time.Second}
	return &http.Transport{
		TLSClientConfig: c, TLSHandshakeTimeout: dialFor, MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute, DisableCompression: true,
		// No proxy: the connection carries secrets, and its other end is on a network of ours.
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, addr)
		},
	}
}

// Close ends connections that nobody uses.
func (c *Client) Close() {
	for _, t := range c.all {
		t.CloseIdleConnections()
	}
}
