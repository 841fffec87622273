package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
)

// Config says where the server is and who asks.
type Config struct {
	// Server is http://HOST:PORT, https://HOST:PORT, or unix:PATH (a path alone is a socket, too).
	Server string
	// Token is the secret that a token was created with; a socket needs none.
	Token string
	// Agent names the program in the server's log; "" is slipway.
	Agent string
	// TLS is for a server with https; nil is the usual one.
	TLS *tls.Config
	// Dial replaces the way connections are made; nil is the usual one.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// connection is the way to one server. It does not connect before the first call.
type connection struct {
	base   string // without trailing slash
	token  string
	agent  string
	socket string
	http   *http.Client
}

func connect(cfg Config) (*connection, error) {
	c := &connection{token: cfg.Token, agent: cfg.Agent}
	c.agent = cmp.Or(c.agent, "slipway")
	transport := &http.Transport{
		MaxIdleConnsPerHost: 8, IdleConnTimeout: time.Minute, ResponseHeaderTimeout: 11 * time.Minute,
		DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext, TLSHandshakeTimeout: 10 * time.Second, TLSClientConfig: cfg.TLS,
	}
	if cfg.Dial != nil {
		transport.DialContext = cfg.Dial
	}
	switch path, isSocket := socketPath(cfg.Server); {
	case isSocket:
		c.base, c.socket = "http://slipway", path
		if cfg.Dial == nil {
			transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
				var d net.Dialer
				return d.DialContext(ctx, "unix", path)
			}
		}
	default:
		u, err := url.Parse(cfg.Server)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.User != nil {
			return nil, inventory.Errorf(inventory.Invalid, "%q is not the address of a server", cfg.Server).
				WithHint("write it as http://127.0.0.1:8067 or as the path of its socket")
		}
		c.base = strings.TrimSuffix(u.String(), "/")
	}
	c.http = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return c, nil
}

// socketPath returns the path of a server that is a Unix socket.
func socketPath(server string) (path string, ok bool) {
	if path, ok = strings.CutPrefix(server, "unix:"); ok {
		return strings.TrimPrefix(path, "//"), true
	}
	return server, strings.HasPrefix(server, "/") || strings.HasPrefix(server, "./")
}

// Option alters one call.
type Option func(*http.Request)

// IfVersion makes a write fail with a Conflict when the thing has another version by now.
func IfVersion(v int64) Option {
	return func(r *http.Request) { r.Header.Set("If-Match", fmt.Sprintf("%q", fmt.Sprint(v))) }
}

// Force makes a host be forgotten that something is under way with.
func Force() Option {
	return func(r *http.Request) {
		q := r.URL.Query()
		q.Set("force", "true")
		r.URL.RawQuery = q.Encode()
	}
}

// call sends in as JSON and reads the answer into out; either may be nil.
func (c *connection) call(ctx context.Context, method, path string, q url.Values, in, out any, opts ...Option) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("encode request: %w", err)
		}
		body = bytes.NewReader(b)
	}
	res, err := c.send(ctx, method, path, q, body, append([]Option{json2json}, opts...)...)
	if err != nil {
		return err
	}
	defer drain(res.Body)
	if out == nil || res.StatusCode == http.StatusNoContent {
		return nil
	}
	return decode(res.Body, out)
}

func decode(body io.Reader, out any) error {
	if err := json.NewDecoder(body).Decode(out); err != nil {
		return &inventory.Error{
			Kind: inventory.Unavailable, Err: err, Msg: "the server's answer was cut short or is not JSON",
			Hint: "check that it is a slipway server of the same version",
		}
	}
	return nil
}

func json2json(r *http.Request) {
	r.Header.Set("Accept", "application/json")
	if r.Body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
}

// send returns the response if its status is a success; the caller closes its body.
func (c *connection) send(ctx context.Context, method, path string, q url.Values, body io.Reader, opts ...Option) (*http.Response, error) {
	target := c.base + "/api/v1/" + path
	if len(q) > 0 {
		target += "?" + q.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, target, body)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("User-Agent", c.agent)
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	for _, o := range opts {
		o(req)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	if res.StatusCode/100 == 2 {
		return res, nil
	}
	defer drain(res.Body)
	return nil, c.problem(res)
}

// drain lets the connection be used again.
func drain(body io.ReadCloser) {
	_, _ = io.Copy(io.Discard, io.LimitReader(body, 64<<10))
	_ = body.Close()
}

func (c *connection) where() string {
	return cmp.Or(c.socket, c.base)
}

// unreachable explains why there was no answer at all.
func (c *connection) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if e := c.handshake(err); e != nil {
		return e
	}
	e := &inventory.Error{
		Kind: inventory.Unavailable, Err: err, Msg: "no answer from the server at " + c.where(),
		Hint: "is it running? " + howToStart(usualConfig),
	}
	switch {
	case c.socket != "" && (errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EACCES)):
		e.Kind, e.Msg, e.Hint = inventory.Forbidden, "you may not use the socket "+c.socket, "run it as root (sudo), or use --server with a token"
	case c.socket != "" && errors.Is(err, os.ErrNotExist):
		e.Msg, e.Hint = "no server runs on this machine: there is no "+c.socket,
			howToStart(usualConfig)+"; for a server elsewhere: --server or SLIPWAY_SERVER"
	}
	return e
}

// usualConfig is the configuration file that the unit of systemd uses.
const usualConfig = "/etc/slipway/config.yaml"

// howToStart says how to start a server on this machine, which has a configuration file or not.
func howToStart(config string) string {
	if _, err := os.Stat(config); errors.Is(err, fs.ErrNotExist) {
		return "there is no " + config + ": write it, with a line such as interfaces: [eth1], and then type: " +
			"sudo systemctl enable --now slipway. To try it without: sudo slipway serve --interface eth1"
	}
	return "type: sudo systemctl start slipway; if it ends, see: journalctl -u slipway"
}

// Problem is an error body (RFC 9457) as the server writes it.
type Problem struct {
	Title     string         `json:"title"`
	Status    int            `json:"status"`
	Detail    string         `json:"detail"`
	Kind      inventory.Kind `json:"kind"`
	Hint      string         `json:"hint"`
	RequestID string         `json:"requestID"`
	Errors    []struct {
		Location string `json:"location"`
		Message  string `json:"message"`
	} `json:"errors"`
	Findings Findings `json:"findings"`
}

// problem turns an error response into an *inventory.Error.
func (c *connection) problem(res *http.Response) error {
	b, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	var p Problem
	if res.StatusCode == http.StatusBadRequest && wantsTLS(b) {
		return inventory.Errorf(inventory.Unavailable, "%s speaks TLS only", c.where()).WithHint("write %s", c.asHTTPS())
	}
	if err != nil || json.Unmarshal(b, &p) != nil || p.Detail == "" {
		return inventory.Errorf(inventory.Unavailable, "%s answered %s", c.where(), res.Status).
			WithHint("check that it is a slipway server of the same version")
	}
	p.Kind = cmp.Or(p.Kind, inventory.Internal)
	e := &inventory.Error{Kind: p.Kind, Msg: p.Detail, Hint: p.Hint}
	if len(p.Errors) > 0 {
		var lines []string
		for _, x := range p.Errors {
			if x.Message == p.Detail { // the same once more, with its place in the request
				continue
			}
			lines = append(lines, strings.TrimPrefix(strings.TrimSpace(x.Location+": "+x.Message), ": "))
		}
		if len(lines) > 0 {
			e.Msg += ": " + strings.Join(lines, "; ")
		}
	}
	if len(p.Findings) > 0 {
		e.Err = p.Findings
	}
	if p.Kind == inventory.Internal && p.RequestID != "" {
		e.Hint = strings.TrimPrefix(e.Hint+"; look for request "+p.RequestID+" in the server's log", "; ")
	}
	return e
}

// handshake explains why no connection to a server came about though something answers there; nil for other failures.
func (c *connection) handshake(err error) *inventory.Error {
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
func (c *connection) asHTTPS() string { return "https://" + strings.TrimPrefix(c.base, "http://") }

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

// copy writes the body of an answer to w.
func (c *connection) copy(ctx context.Context, path string, query url.Values, w io.Writer, opts ...Option) error {
	res, err := c.send(ctx, http.MethodGet, path, query, nil, opts...)
	if err != nil {
		return err
	}
	defer drain(res.Body)
	_, err = io.Copy(w, res.Body)
	return err
}

// download is copy for what is of no use in part.
func (c *connection) download(ctx context.Context, what, path string, query url.Values, w io.Writer) error {
	res, err := c.send(ctx, http.MethodGet, path, query, nil)
	if err != nil {
		return err
	}
	defer drain(res.Body)
	if _, err := io.Copy(w, res.Body); err != nil {
		return &inventory.Error{Kind: inventory.Unavailable, Err: err, Msg: "the " + what + " was cut short", Hint: "try it again"}
	}
	return nil
}
