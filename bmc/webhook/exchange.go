package webhook

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/egress"
)

// answerLimit bounds an answer.
const answerLimit = 256 << 10

// make makes a call and returns the answer's body.
func (d *driver) make(ctx context.Context, c *call, words map[string]string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	req, err := d.request(ctx, c, words)
	if err != nil {
		return nil, err
	}
	res, err := d.client.Do(req)
	if err != nil {
		return nil, d.unanswered(ctx, c, err)
	}
	defer res.Body.Close()
	// The body is read before the status is judged, so that the connection can be used again.
	body, err := io.ReadAll(io.LimitReader(res.Body, answerLimit+1))
	if err != nil {
		return nil, d.unanswered(ctx, c, err)
	}
	if err := c.judge(res); err != nil {
		return nil, err
	}
	if len(body) > answerLimit {
		return nil, inventory.Errorf(inventory.Unavailable, "the webhook answers the call %s with more than %d KiB", c.name, answerLimit>>10).
			WithHint("look at what the URL gives with curl")
	}
	return body, nil
}

func (d *driver) request(ctx context.Context, c *call, words map[string]string) (*http.Request, error) {
	escapeURL := func(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") } // right in a path and in a query
	link := strings.TrimSuffix(d.base.String(), "/") + fill(c.path, words, escapeURL)
	// A word must not end the JSON string or the form field that it is put into.
	kind, escape := contentType(c.body)
	req, err := http.NewRequestWithContext(ctx, c.method, link, strings.NewReader(fill(c.body, words, escape)))
	if err != nil {
		return nil, invalid("compare it with the address and the path", "the call %s has no valid URL", c.name)
	}
	if c.body != "" {
		req.Header.Set("Content-Type", kind)
	}
	req.Header.Set("User-Agent", "slipway")
	for name, v := range d.headers {
		v = fill(v, words, func(s string) string { return s })
		// A line end in a header would begin another one. The password is filled in here, after the options were
		// checked.
		if strings.ContainsFunc(v, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
			return nil, invalid("it must be printable", "the value of the header %s cannot be sent", name)
		}
		req.Header.Set(name, v)
	}
	switch d.auth {
	case "basic":
		req.SetBasicAuth(d.t.Username, d.t.Password)
	case "bearer":
		req.Header.Set("Authorization", "Bearer "+d.t.Password)
	}
	return req, nil
}

// fill replaces the words of a template.
func fill(text string, words map[string]string, escape func(string) string) string {
	return wordRE.ReplaceAllStringFunc(text, func(m string) string {
		return escape(words[wordRE.FindStringSubmatch(m)[1]])
	})
}

// contentType guesses what a body is, and how words are escaped in it.
func contentType(body string) (string, func(string) string) {
	switch trimmed := strings.TrimSpace(body); {
	case strings.HasPrefix(trimmed, "{") && !strings.HasPrefix(trimmed, "{{") || strings.HasPrefix(trimmed, "["):
		return "application/json", func(s string) string {
			// A word stands between quotes in the template, so that the quotes of the encoding go.
			b, _ := json.Marshal(s)
			return string(b[1 : len(b)-1])
		}
	case strings.Contains(trimmed, "=") && !strings.ContainsAny(trimmed, " \n<"):
		return "application/x-www-form-urlencoded", url.QueryEscape
	}
	return "text/plain; charset=utf-8", func(s string) string { return s }
}

// judge turns the status of an answer into an error, if it is not as expected.
func (c *call) judge(res *http.Response) error {
	code := res.StatusCode
	if len(c.expect) > 0 && slices.Contains(c.expect, code) || len(c.expect) == 0 && code >= 200 && code < 300 {
		return nil
	}
	say := func(kind inventory.Kind, hint string) error {
		return inventory.Errorf(kind, "the webhook answers the call %s with %d %s", c.name, code, http.StatusText(code)).WithHint("%s", hint)
	}
	switch {
	case code == http.StatusUnauthorized:
		return say(inventory.Unauthorized, "check user, password and the option auth")
	case code == http.StatusForbidden:
		return say(inventory.Forbidden, "the user may not do this")
	case code == http.StatusNotFound || code == http.StatusGone:
		return say(inventory.NotFound, "check the address, the path and the system")
	// The client does not follow redirects: the order would switch another device.
	case code >= 300 && code < 400:
		return say(inventory.Invalid, "redirects are not followed: give the address that it leads to")
	case code == http.StatusRequestTimeout || code == http.StatusConflict || code == http.StatusTooManyRequests || code == http.StatusTooEarly:
		return say(inventory.Unavailable, "Slipway asks it again")
	case code >= 400 && code < 500 || code == http.StatusNotImplemented:
		return say(inventory.Invalid, "compare method, path and body with the device's manual")
	}
	return say(inventory.Unavailable, "look at the log of the device; if this means success, accept it with "+c.name+".expect")
}

// unanswered says why there is no answer. The URL stays out of it: it may hold what is nobody's business.
func (d *driver) unanswered(ctx context.Context, c *call, err error) error {
	var cert *tls.CertificateVerificationError
	if refused := egress.Explain("the webhook is not called", err); refused != nil {
		return refused
	}
	switch {
	case errors.Is(err, errPin):
		return inventory.Errorf(inventory.Unauthorized, "the webhook's certificate is not the one with the given fingerprint").
			WithHint("somebody may be listening in; if the device was given a new one, set its fingerprint")
	case errors.As(err, &cert):
		return inventory.Errorf(inventory.Unauthorized, "the webhook's certificate is not trusted").WithHint("give its fingerprint: openssl s_client -connect HOST:443 | openssl x509 -noout -fingerprint -sha256")
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	return bmc.Silent("the webhook does not answer the call "+c.name, "is "+inventory.Clean(d.base.Host, 80)+" the right address? the option timeout allows a slow device more", err)
}
