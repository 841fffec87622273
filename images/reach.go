package images

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/egress"
)

// unreached is the error for a server that did not answer. plain is for every caller, full for admins and the log.
// Full says whether the server refused, was silent, does not exist or may not be contacted. If every operator saw
// that, an import would be a port scanner of the server's networks.
type unreached struct {
	plain, full *inventory.Error
}

// Error has the whole text, for logs.
func (e *unreached) Error() string { return e.full.Error() }

// Unwrap returns the part for all users.
func (e *unreached) Unwrap() error { return e.plain }

// told returns the error with the details that the caller may see.
func told(err error, isAdmin bool) error {
	var e *unreached
	if isAdmin && errors.As(err, &e) {
		return e.full
	}
	return err
}

// unreachedError says why no answer came. It is worth another attempt unless it is certain.
func unreachedError(u *url.URL, err error, stalled bool) error {
	if mine, ok := errors.AsType[*inventory.Error](err); ok {
		return mine // a redirect that is not followed
	}
	e := &inventory.Error{Kind: inventory.Unavailable, Err: err}
	var dns *net.DNSError
	var inner *url.Error
	var refused *egress.Refused
	if errors.As(err, &inner) {
		err = inner.Err // without the URL, which may hold a password
	}
	switch {
	case errors.As(err, &refused):
		e.Kind, e.Msg, e.Hint = inventory.Forbidden, refused.Error(), egress.AllowHint
	case stalled:
		e.Msg = fmt.Sprintf("%s sends nothing more", redact(u))
		e.Hint = "the server or the way to it is stuck; import again later, it goes on where it stopped"
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		e.Msg = fmt.Sprintf("%s was cut off", redact(u))
		e.Hint = "import again: it goes on where it stopped"
	case errors.As(err, &dns):
		e.Msg = fmt.Sprintf("the name %s cannot be resolved", dns.Name)
		e.Hint = "check the address, the server's DNS, and whether it needs a proxy (HTTPS_PROXY in its environment)"
	default:
		e.Msg = fmt.Sprintf("%s cannot be fetched: %v", redact(u), err)
		e.Hint = "check the address, and whether the server needs a proxy (HTTPS_PROXY in its environment)"
	}
	both := &unreached{full: e, plain: &inventory.Error{
		Kind: inventory.Unavailable, Err: e, Msg: fmt.Sprintf("%s cannot be fetched", redact(u)),
		Hint: "check the address; why no answer comes is in the server's log, and told to admins",
	}}
	if refused != nil {
		return both
	}
	return tryAgain{both}
}

// brokenError says why an answer that had begun did not end.
func brokenError(u *url.URL, err error, stalled bool) error {
	e := &inventory.Error{Kind: inventory.Unavailable, Err: err, Msg: redact(u) + " was cut off", Hint: "import again: it goes on where it stopped"}
	if stalled {
		e.Msg, e.Hint = redact(u)+" sends nothing more", "the server or the way to it is stuck; import again later, it goes on where it stopped"
	}
	return tryAgain{e}
}

// explain puts words in front of an error's message.
func explain(err error, words string) error {
	if both, ok := errors.AsType[*unreached](err); ok {
		full, plain := *both.full, *both.plain
		full.Msg, plain.Msg = words+full.Msg, words+plain.Msg
		return &unreached{full: &full, plain: &plain}
	}
	var e *inventory.Error
	if !errors.As(err, &e) {
		return err
	}
	c := *e
	c.Msg = words + c.Msg
	return &c
}
