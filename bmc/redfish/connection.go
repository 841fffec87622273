package redfish

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sleep"
)

const (
	maxBody    = 4 << 20 // bytes of one answer
	maxMembers = 1024    // of one collection, unless it is a log
	maxPages   = 200     // of one collection, unless it is a log
	rootPath   = "/redfish/v1/"
)

var errTooLarge = errors.New("the answer is too large")

// connection is the way to one Redfish service. It logs in, stays on one host, and bounds the size of every answer.
// It sends nothing before the first call.
//
// mu guards the fields below it, and is never held during a request. slots and login bound how much goes on at a
// time.
type connection struct {
	user    string
	auth    string // session, basic, or "" for whatever works
	http    *http.Client
	timeout time.Duration
	slots   chan struct{} // two requests at a time: controllers are small, and a slow sensor must not hold up power
	login   chan struct{} // one login at a time

	mu       sync.Mutex
	base     *url.URL // scheme and host
	password string
	secrets  []string // what else no error may tell
	token    string
	logout   string // the session's own path
	isBasic  bool   // there are no sessions
	refused  error  // why the login was refused: it is not tried again with the same password
	service  *serviceRoot
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   []byte
	path   string
}

func newConnection(base *url.URL, t bmc.Target, timeout time.Duration) (*connection, error) {
	transport, err := newTransport(t)
	if err != nil {
		return nil, err
	}
	c := &connection{
		user: t.Username, http: &http.Client{Transport: transport, CheckRedirect: sameHost}, timeout: timeout,
		slots: make(chan struct{}, 2), login: make(chan struct{}, 1), base: base,
	}
	c.setPassword(t.Password)
	return c, nil
}

// setPassword sets the password of later logins. The old one stays hidden from errors: a controller may still repeat
// it.
func (c *connection) setPassword(password string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.guard(c.password)
	c.password, c.refused = password, nil
}

// guard hides further texts from errors: former passwords and tokens, and passwords of other accounts. It keeps the
// newest 16. The caller holds the lock.
func (c *connection) guard(secrets ...string) {
	for _, s := range secrets {
		if s != "" && !slices.Contains(c.secrets, s) {
			c.secrets = append(c.secrets, s)
		}
	}
	c.secrets = c.secrets[max(len(c.secrets)-16, 0):]
}

// basic is user and password as basic authentication sends them. The caller holds the lock.
func (c *connection) basic() string {
	return base64.StdEncoding.EncodeToString([]byte(c.user + ":" + c.password))
}

// as is another connection to the same service, for another account. It has a session of its own, and shares only the HTTP
// client, whose pool limits both together to two connections.
func (c *connection) as(user, password string) *connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	// It begins without a refusal: what the controller said of one account holds for no other.
	return &connection{
		user: user, password: password, auth: c.auth, http: c.http, timeout: c.timeout, base: c.base, service: c.service, isBasic: c.isBasic,
		slots: make(chan struct{}, 2), login: make(chan struct{}, 1),
	}
}

// start is a document that needs a login.
func (c *connection) start() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.service != nil && c.service.Systems.ID != "" {
		return c.service.Systems.ID
	}
	return rootPath + "Systems"
}

// isRefused reports whether the login was refused, and not only the request that failed.
func (c *connection) isRefused() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refused != nil
}

// host is how errors name the controller.
func (c *connection) host() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return inventory.Clean(c.base.Host, 80)
}

// name is how errors name the account.
func (c *connection) name() string { return fmt.Sprintf("user %q", inventory.Clean(c.user, 40)) }

// resolve turns a reference in a document into a URL on the same host, and refuses any other. Otherwise a faked
// controller could send our requests, with their credentials, to a server of its choice.
func (c *connection) resolve(ref string) (*url.URL, error) {
	c.mu.Lock()
	base := c.base
	c.mu.Unlock()
	u, err := url.Parse(ref)
	if err == nil {
		u = base.ResolveReference(u)
	}
	if err != nil || ref == "" || !strings.HasPrefix(u.Path, "/redfish") || u.Host != base.Host || u.Scheme != base.Scheme || u.User != nil {
		return nil, inventory.Errorf(inventory.Unavailable, "the controller at %s points to %q, which is none of its documents", inventory.Clean(base.Host, 80), clean(ref))
	}
	// A fragment names a part of the document, and never goes to the server (RFC 3986 section 3.5).
	u.Fragment = ""
	return u, nil
}

// do sends a request as the target's user and returns the answer when it is a success. what names the purpose in
// errors. do renews a session that has ended once. With an error, the answer is nil if there was none.
func (c *connection) do(ctx context.Context, method, ref string, body any, header http.Header, what string) (*answer, error) {
	a, err := c.try(ctx, method, ref, body, header)
	if err != nil {
		return nil, err
	}
	if a.status >= 300 {
		return a, c.fault(a, what)
	}
	return a, nil
}

// try is do without judging the answer's status.
func (c *connection) try(ctx context.Context, method, ref string, body any, header http.Header) (*answer, error) {
	var raw []byte
	if body != nil {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			return nil, inventory.Errorf(inventory.Internal, "encode a request: %v", err)
		}
	}
	if _, err := c.root(ctx); err != nil { // where the service is, before anything secret is sent
		return nil, err
	}
	// At most two rounds. An order is safe to repeat here, because a controller that answers 401 has not carried it out.
	for isRetry := false; ; isRetry = true {
		// A 401 with an old token means that the session ended: controllers end them after some minutes, and at each
		// restart. With a fresh token, or after one retry, it is the final answer.
		token, fresh, err := c.enter(ctx)
		if err != nil {
			return nil, err
		}
		h := header.Clone()
		if h == nil {
			h = http.Header{}
		}
		c.authorize(h, token)
		a, err := c.patiently(ctx, method, ref, raw, h)
		if err != nil {
			return nil, err
		}
		// With basic authentication a 401 is about the password itself. Remembering it keeps later calls from locking the
		// account.
		if a.status == http.StatusUnauthorized && token == "" && c.user != "" {
			c.refuse(c.fault(a, "log in"))
		}
		if a.status != http.StatusUnauthorized || token == "" || fresh || isRetry {
			return a, nil
		}
		c.forget(token)
	}
}

// root reads the service root once. It needs no login, so that no password goes to an address that is no Redfish
// service. It also follows redirects to the real place: many controllers answer port 80 only to redirect to HTTPS.
func (c *connection) root(ctx context.Context) (*serviceRoot, error) {
	c.mu.Lock()
	known := c.service
	c.mu.Unlock()
	if known != nil {
		return known, nil
	}
	a, err := c.patiently(ctx, http.MethodGet, rootPath, nil, nil)
	if err != nil {
		return nil, err
	}
	if a.status == http.StatusUnauthorized && c.user != "" { // the standard has it open to all; some do not
		h := http.Header{}
		c.authorize(h, "")
		if a, err = c.send(ctx, http.MethodGet, rootPath, nil, h); err != nil {
			return nil, err
		}
		if a.status == http.StatusUnauthorized {
			c.refuse(c.fault(a, "log in"))
		}
	}
	if a.status >= 300 {
		e := c.fault(a, "show its service root")
		if a.status == http.StatusNotFound {
			e = inventory.Errorf(inventory.NotFound, "there is no Redfish service at %s", c.host()).
				WithHint("look whether Redfish is switched on at the controller; older ones speak IPMI only")
		}
		return nil, e
	}
	r := &serviceRoot{}
	if err := decode(a.body, r); err != nil || r.RedfishVersion == "" && r.Systems.ID == "" {
		return nil, c.garbled(rootPath)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.service = r
	return r, nil
}

func (c *connection) garbled(path string) error {
	return inventory.Errorf(inventory.Unavailable, "the controller at %s answers %s with something that is no Redfish document", c.host(), clean(path)).
		WithHint("it may be starting, or not be a Redfish controller; if it stays so, reset it")
}

// send exchanges one request and answer, within the timeout of the target and the places of slots.
func (c *connection) send(ctx context.Context, method, ref string, body []byte, header http.Header) (*answer, error) {
	u, err := c.resolve(ref)
	if err != nil {
		return nil, err
	}
	if err := acquire(ctx, c.slots); err != nil {
		return nil, c.unreached(ctx, err)
	}
	defer func() { <-c.slots }()
	// The time begins with the place: waiting for other requests is not the controller's silence.
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, inventory.Errorf(inventory.Invalid, "%q is not a path", clean(ref))
	}
	if header != nil {
		req.Header = header
	}
	req.Header.Set("Accept", "application/json")
	// Both are headers that DSP0266 names for every request. Without them a service may answer with a page for people.
	req.Header.Set("OData-Version", "4.0")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreached(ctx, err)
	}
	defer resp.Body.Close()
	a := &answer{status: resp.StatusCode, header: resp.Header, path: u.Path}
	// One byte more than allowed tells an answer that is too large from one that fits exactly.
	if a.body, err = io.ReadAll(io.LimitReader(resp.Body, maxBody+1)); err == nil && len(a.body) > maxBody {
		err = errTooLarge
	}
	if err != nil {
		return nil, c.unreached(ctx, err)
	}
	// Later requests go to the new place directly: sameHost lets no order follow a change of scheme.
	if final := resp.Request.URL; final.Host != u.Host || final.Scheme != u.Scheme { // allowed by sameHost
		c.mu.Lock()
		c.base = &url.URL{Scheme: final.Scheme, Host: final.Host}
		c.mu.Unlock()
	}
	return a, nil
}

// patiently is send, and sends a GET once more when the controller asks for up to ten seconds of patience
// (Retry-After, RFC 9110 section 10.2.3). It never repeats an order: a 503 does not tell whether the controller
// carried it out.
func (c *connection) patiently(ctx context.Context, method, ref string, body []byte, header http.Header) (*answer, error) {
	a, err := c.send(ctx, method, ref, body, header.Clone())
	if err != nil || method != http.MethodGet || a.status != http.StatusTooManyRequests && a.status != http.StatusServiceUnavailable {
		return a, err
	}
	n, convErr := strconv.Atoi(a.header.Get("Retry-After"))
	// A controller without a free session answers 503 as well. Waiting would not free one; newSession takes basic instead.
	if convErr != nil || n < 0 || n > 10 || says(messages(a.body), noSession...) {
		return a, nil
	}
	if err := sleep.For(ctx, time.Duration(n)*time.Second); err != nil {
		return a, nil
	}
	return c.send(ctx, method, ref, body, header)
}

// refuse remembers that the login was refused.
func (c *connection) refuse(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused = why
}

// acquire takes a place, or gives up with ctx.
func acquire(ctx context.Context, places chan struct{}) error {
	// select picks at random when both are ready. An ended call must not take a place from a live one.
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// read gets a document.
func (c *connection) read(ctx context.Context, ref string, into any) error {
	_, err := c.readTag(ctx, ref, into)
	return err
}

// readTag gets a document and its entity tag.
func (c *connection) readTag(ctx context.Context, ref string, into any) (string, error) {
	a, err := c.do(ctx, http.MethodGet, ref, nil, nil, "show "+clean(ref))
	if err != nil {
		return "", err
	}
	if err := decode(a.body, into); err != nil {
		return "", c.garbled(ref)
	}
	tag := a.header.Get("ETag")
	if tag == "" {
		var doc struct {
			Tag string `json:"@odata.etag"`
		}
		_ = decode(a.body, &doc)
		tag = doc.Tag
	}
	return tag, nil
}

// post calls an action. Actions are never sent with If-Match: iDRAC refuses that.
func (c *connection) post(ctx context.Context, ref string, body any, what string) (*answer, error) {
	return c.do(ctx, http.MethodPost, ref, body, nil, what)
}

// patch changes a document that it reads just before. It sends If-Match where the document has a tag. When somebody
// else changed the document (412), or the controller demands a tag (428), patch reads and sends once more.
func (c *connection) patch(ctx context.Context, ref string, body any, what string) error {
	var doc struct{}
	tag, err := c.readTag(ctx, ref, &doc)
	if err != nil {
		return err
	}
	send := tag
	for isRetry := false; ; isRetry = true {
		h := http.Header{}
		if send != "" {
			h.Set("If-Match", send)
		}
		a, err := c.do(ctx, http.MethodPatch, ref, body, h, what)
		if err == nil || isRetry || a == nil || a.status != http.StatusPreconditionFailed && a.status != http.StatusPreconditionRequired {
			return err
		}
		// The tag tells which it was: a document that changed meanwhile has a new one, and a broken comparison the same.
		again, err := c.readTag(ctx, ref, &doc)
		if err != nil {
			return err
		}
		if send = again; again == tag {
			send = other(tag) // it is the controller's comparison that is broken, not the document that changed
		}
	}
}

// other returns the next best If-Match after a refusal of a tag that is still current:
//
//   - "*" where there is no tag,
//   - a weak tag as a strong one, because RFC 9110 section 13.1.1 compares strongly, and some MegaRAC refuse the weak tags
//     that they give out (github.com/ansible-collections/community.general/pull/6434),
//   - nothing in place of a strong one.
func other(tag string) string {
	if tag == "" {
		return "*"
	}
	if strong, ok := strings.CutPrefix(tag, "W/"); ok {
		return strong
	}
	return ""
}
