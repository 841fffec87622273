package webhook

import (
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
)

var (
	callNames = []string{"on", "off", "cycle", "reset", "shutdown", "status", "boot"}
	methods   = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
	headerRE  = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)
	wordRE    = regexp.MustCompile(`\{\{\s*\.(\w+)\s*\}\}`)
)

// call is one HTTP call.
type call struct {
	name, method, path, body string
	expect                   []int // empty: any 2xx
}

func invalid(hint, format string, args ...any) error {
	return inventory.Errorf(inventory.Invalid, "bmc: "+format, args...).WithHint("%s", hint)
}

// configure reads a target strictly. A misspelt option must not turn into a call that nobody described.
func configure(t bmc.Target) (*driver, error) {
	base, err := url.Parse(t.Address)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" || base.User != nil || base.RawQuery != "" || base.Fragment != "" {
		return nil, invalid("write it as https://pdu-3.example, without user and question mark", "the address is not the URL of a webhook")
	}
	d := &driver{t: t, base: base, calls: map[string]*call{}, headers: map[string]string{}, timeout: 10 * time.Second, pause: 5 * time.Second}
	// In order, so that a target with several faults always reports the same one.
	for _, key := range slices.Sorted(maps.Keys(t.Options)) {
		if err := d.option(key, t.Options[key]); err != nil {
			return nil, err
		}
	}
	if err := d.check(); err != nil {
		return nil, err
	}
	d.client, err = client(t)
	return d, err
}

// option reads one option.
func (d *driver) option(key, v string) (err error) {
	name, field, isCall := strings.Cut(key, ".")
	switch {
	case key == "auth":
		if d.auth = v; !slices.Contains([]string{"basic", "bearer", "none"}, v) {
			return invalid("use basic, bearer or none", "%q is no way to log in", inventory.Clean(v, 40))
		}
	case key == "timeout":
		d.timeout, err = duration(key, v)
	case key == "pause":
		d.pause, err = duration(key, v)
	case name == "header" && isCall:
		switch {
		case !headerRE.MatchString(field):
			return invalid("use letters, digits and -", "%q is not the name of a header", inventory.Clean(field, 40))
		// A login goes by the option auth. The others belong to the HTTP client.
		case slices.Contains([]string{"Authorization", "Host", "Content-Length", "Transfer-Encoding", "Connection", "Cookie"}, http.CanonicalHeaderKey(field)):
			return invalid("secrets belong into the password, which is kept sealed: {{.Password}} stands for it", "the header %s cannot be an option", inventory.Clean(field, 40))
		}
		d.headers[field] = v
		return words(key, v, "Host", "System", "MAC", "Password")
	case isCall && slices.Contains(callNames, name):
		return d.callOption(name, field, v)
	default:
		return invalid("options are auth, timeout, pause, header.NAME, and "+strings.Join(callNames, ", ")+" with .path, .method, .body or .expect", "webhook has no option %q", inventory.Clean(key, 40))
	}
	return err
}

func (d *driver) callOption(name, field, v string) error {
	key := name + "." + field
	c := d.calls[name]
	if c == nil {
		c = &call{name: name}
		d.calls[name] = c
	}
	known := []string{"Host", "System", "MAC"}
	// Only the call boot has a device to name.
	if name == "boot" {
		known = append(known, "Device", "Mode", "URI", "Persistent")
	}
	switch {
	case field == "path":
		if c.path = v; !strings.HasPrefix(v, "/") || strings.HasPrefix(v, "//") || strings.ContainsAny(v, " #") && !wordRE.MatchString(v) {
			return invalid("it begins with one / and is joined to the address", "option %s is not a path", key)
		}
		return words(key, v, known...)
	case field == "method":
		if c.method = strings.ToUpper(v); !slices.Contains(methods, c.method) {
			return invalid("use one of "+strings.Join(methods, ", "), "%q is not a method", inventory.Clean(v, 40))
		}
	case field == "body":
		c.body = v
		return words(key, v, append(known, "Password")...)
	case field == "expect":
		for one := range strings.SplitSeq(v, ",") {
			n, err := strconv.Atoi(strings.TrimSpace(one))
			if err != nil || n < 100 || n > 599 {
				return invalid("write them as 200,204", "option %s is not a list of status codes", key)
			}
			c.expect = append(c.expect, n)
		}
	case name == "status":
		return d.reading.option(field, v)
	default:
		return invalid("fields are path, method, body and expect", "webhook has no option %q", inventory.Clean(key, 40))
	}
	return nil
}

// words checks that a template uses only known words. It runs when the options are saved: an unknown word in a URL
// would else be sent to the device as text.
func words(key, v string, known ...string) error {
	for _, m := range wordRE.FindAllStringSubmatch(v, -1) {
		if !slices.Contains(known, m[1]) {
			return invalid("known are {{."+strings.Join(known, "}}, {{.")+"}}", "option %s asks for {{.%s}}", inventory.Clean(key, 40), inventory.Clean(m[1], 40))
		}
	}
	if rest := wordRE.ReplaceAllString(v, ""); strings.Contains(rest, "{{.") {
		return invalid("known are {{."+strings.Join(known, "}}, {{.")+"}}", "option %s has a {{ that is not closed", inventory.Clean(key, 40))
	}
	return nil
}

func duration(key, v string) (time.Duration, error) {
	d, err := time.ParseDuration(v)
	if err != nil || d <= 0 || d > time.Minute {
		return 0, invalid("write it as 500ms or 10s; at most 1m", "%q is not a value for the option %s", inventory.Clean(v, 40), key)
	}
	return d, nil
}

// check tests what one option alone cannot show: a call without a path, a body in a GET, a token that is missing.
func (d *driver) check() error {
	for _, c := range d.calls {
		if c.path == "" {
			return invalid("give "+c.name+".path", "the call %s has no path", c.name)
		}
		if c.method == "" {
			c.method = http.MethodPost
			if c.name == "status" {
				c.method = http.MethodGet
			}
		}
		if c.method == http.MethodGet && c.body != "" {
			return invalid("give "+c.name+".method", "the call %s has a body and is a GET", c.name)
		}
	}
	if d.calls["on"] == nil && d.calls["off"] == nil && d.calls["cycle"] == nil {
		return invalid("give at least on.path and off.path", "the webhook has no call that changes the power")
	}
	if d.calls["status"] != nil {
		if err := d.reading.check(); err != nil {
			return err
		}
	}
	switch {
	case d.auth == "" && d.t.Username != "":
		d.auth = "basic"
	case d.auth == "" && d.t.Password != "":
		d.auth = "bearer"
	case d.auth == "bearer" && d.t.Password == "":
		return invalid("give the token as password", "it asks for a bearer token, and there is none")
	}
	return nil
}

var errPin = errors.New("the certificate is not the one that is pinned")

// client makes an HTTP client with the certificate rules of the target. It follows no redirects, because a redirected
// call would switch another device, and uses no proxy, because controllers are near.
func client(t bmc.Target) (*http.Client, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: t.InsecureSkipVerify} //nolint:gosec // the administrator's choice
	if t.Fingerprint != "" {
		pin, err := hex.DecodeString(strings.ReplaceAll(t.Fingerprint, ":", ""))
		if err != nil || len(pin) != sha256.Size {
			return nil, invalid("64 hex digits: openssl x509 -fingerprint -sha256", "the fingerprint is not a SHA-256")
		}
		// The pin replaces the check of the chain: most devices have a certificate that they signed themselves.
		conf.InsecureSkipVerify = true
		conf.VerifyConnection = func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) > 0 {
				if sum := sha256.Sum256(s.PeerCertificates[0].Raw); subtle.ConstantTimeCompare(sum[:], pin) == 1 {
					return nil
				}
			}
			return errPin
		}
	}
	return &http.Client{
		Transport: &http.Transport{
			DialContext:     t.Egress.DialContext,
			TLSClientConfig: conf, MaxIdleConns: 1, IdleConnTimeout: 10 * time.Second, MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}
