package redfish

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"slipway.dev/slipway/inventory"
)

// enter returns the token of the session, or "" for basic authentication and for no user. It logs in when there is no
// session; fresh is then true, and a retry with another login is of no use.
func (c *connection) enter(ctx context.Context) (token string, fresh bool, err error) {
	c.mu.Lock()
	refused := c.refused
	c.mu.Unlock()
	// setPassword and endSession forget the refusal, so that a corrected password is tried at once.
	if refused != nil { // each wrong password brings the account nearer to being locked
		return "", false, refused
	}
	// One call logs in at a time. The others wait here and then use its session.
	if err := acquire(ctx, c.login); err != nil {
		return "", false, c.unreached(ctx, err)
	}
	defer func() { <-c.login }()
	if token, done := c.entered(); done { // there is one, or another call was faster
		return token, false, nil
	}
	if err := c.newSession(ctx); err != nil {
		return "", false, err
	}
	token, _ = c.entered()
	return token, true, nil
}

func (c *connection) entered() (token string, done bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.token, c.token != "" || c.isBasic || c.user == "" || c.auth == "basic"
}

// newSession logs in. It falls back to basic authentication where the service has no sessions, or none is free. It
// does not after a refused password: each wrong try brings the account nearer to being locked. The caller holds
// login, not mu.
func (c *connection) newSession(ctx context.Context) error {
	root, err := c.root(ctx)
	if err != nil {
		return err
	}
	ref := root.Links.Sessions.ID
	switch {
	case ref == "" && c.auth == "":
		c.goBasic() // without trying: it would look like a wrong password
		return nil
	case ref == "":
		ref = rootPath + "SessionService/Sessions"
	}
	c.mu.Lock()
	password := c.password
	c.mu.Unlock()
	body, err := json.Marshal(map[string]string{"UserName": c.user, "Password": password})
	if err != nil {
		return inventory.Errorf(inventory.Invalid, "the BMC's user name and password are no text")
	}
	// Without a token: the service root and this collection are open to all (DSP0266).
	a, err := c.send(ctx, http.MethodPost, ref, body, nil)
	if err != nil {
		return err
	}
	token := a.header.Get("X-Auth-Token")
	switch {
	case a.status < 300 && token != "":
		// The answer has the session's document, whose @odata.id serves where the header is missing (DSP0266, "Session login").
		var l link
		_ = decode(a.body, &l)
		if at := a.header.Get("Location"); at != "" {
			l.ID = at
		}
		c.mu.Lock()
		// Location is where the session ends by DELETE. Some services name it in the body only.
		c.token, c.logout = token, samePath(l.ID)
		c.mu.Unlock()
		return nil
	case says(messages(a.body), noSession...) && c.auth == "":
		c.goBasic()
		return nil
	case c.auth == "" && (a.status < 300 || a.status == http.StatusNotFound || a.status == http.StatusMethodNotAllowed || a.status == http.StatusNotImplemented):
		c.goBasic()
		return nil
	// The password may be right, and only sessions are refused: basic authentication decides.
	case c.auth == "" && isNoLogin(a):
		c.goBasic()
		return nil
	case a.status < 300:
		return c.garbled(ref)
	}
	e := c.fault(a, "open a session")
	if e.Kind != inventory.Unauthorized {
		return e
	}
	if c.auth == "" {
		e = e.WithHint("check the BMC's user name and password; if they are right, the controller may refuse sessions only: set the option auth=basic")
	}
	c.refuse(e)
	return e
}

// samePath drops scheme and host from where a session is: behind an address translation it names an inner host.
func samePath(ref string) string {
	u, err := url.Parse(ref)
	if err != nil {
		return ""
	}
	return u.EscapedPath()
}

// isNoLogin reports whether a session was refused for another reason than its user and password. Such controllers answer 400 or
// 403 without an id of the standard; a busy one has an id of notNow and must not lose its sessions for that.
func isNoLogin(a *answer) bool {
	all := messages(a.body)
	if says(all, badLogin...) || says(all, "PasswordChangeRequired") || says(all, notNow...) {
		return false
	}
	return a.status == http.StatusForbidden || a.status == http.StatusBadRequest
}

// goBasic stays in force until endSession. Asking for a session before each request would double the traffic.
func (c *connection) goBasic() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isBasic = true
}

// forget drops a session that the controller no longer knows.
func (c *connection) forget(token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.guard(token)
	// Another call may have logged in again already. Its new token stays.
	if c.token == token {
		c.token, c.logout = "", ""
	}
}

// authorize adds the session's token, or user and password.
func (c *connection) authorize(h http.Header, token string) {
	if token != "" {
		h.Set("X-Auth-Token", token)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.user != "" {
		h.Set("Authorization", "Basic "+c.basic())
	}
}

// Close ends the session, within five seconds. Controllers have few sessions and keep a forgotten one for half an
// hour.
func (c *connection) Close() (err error) {
	defer c.safe(&err)
	// A context of its own: the caller's has often ended when it closes the driver, and the session would stay open.
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	defer c.http.CloseIdleConnections()
	return c.endSession(ctx)
}

func (c *connection) endSession(ctx context.Context) error {
	c.mu.Lock()
	token, ref := c.token, c.logout
	c.guard(token)
	// Cleared before the request: a call at the same time then logs in by itself and does not use a dying token.
	c.token, c.logout, c.isBasic, c.refused = "", "", false, nil
	c.mu.Unlock()
	if token == "" || ref == "" {
		return nil
	}
	a, err := c.send(ctx, http.MethodDelete, ref, nil, http.Header{"X-Auth-Token": {token}})
	if err != nil {
		return err
	}
	if a.status < 300 || a.status == http.StatusNotFound || a.status == http.StatusUnauthorized { // it ended by itself
		return nil
	}
	return c.fault(a, "end a session")
}
