package kubeconfig

import (
	"errors"
	"net"
	"net/url"

	"slipway.dev/slipway/inventory"
)

// Cause is the address of an API server and what the network said: " at https://10.0.0.1:6443: connection refused". It
// stays the same while the trouble is. "" when the error does not tell.
func Cause(err error) string {
	var (
		at   *url.Error
		name *net.DNSError
		op   *net.OpError
	)
	text := Place(err)
	switch {
	case errors.As(err, &name):
		return text + ": no address is known for the name " + inventory.Clean(name.Name, 120)
	case errors.As(err, &op):
		inner := op.Err
		for next := errors.Unwrap(inner); next != nil; next = errors.Unwrap(inner) {
			inner = next
		}
		return text + ": " + inventory.Clean(inner.Error(), 120)
	case errors.As(err, &at):
		return text + ": " + inventory.Clean(at.Err.Error(), 200)
	}
	return text
}

// Place is the address of an API server: " at https://10.0.0.1:6443".
func Place(err error) string {
	if at, ok := errors.AsType[*url.Error](err); ok {
		if u, e := url.Parse(at.URL); e == nil && u.Host != "" {
			return " at " + u.Scheme + "://" + u.Host
		}
	}
	return ""
}
