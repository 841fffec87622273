package rest

import (
	"net/url"

	"slipway.dev/slipway/inventory"
)

// ReadHost reads the host that a request names by its name, its id or a MAC.
func (f *Frame) ReadHost(req *Request, ref string) (h inventory.Host, err error) {
	return Read(req, f.Store, func(tx inventory.Tx) (inventory.Host, error) { return FindHost(tx, ref) })
}

// OfHost runs fn on such a host in one snapshot.
func (f *Frame) OfHost(req *Request, ref string, fn func(inventory.Tx, inventory.Host) error) error {
	return f.Store.Read(req, func(tx inventory.Tx) error {
		h, err := FindHost(tx, ref)
		if err != nil {
			return err
		}
		return fn(tx, h)
	})
}

// EventText returns a text out of an event's data.
func EventText(e inventory.Event, key string) string {
	m, _ := e.Data.(map[string]any)
	text, _ := m[key].(string)
	return text
}

// CheckURL refuses what is neither empty nor the address of a file on a web server.
func CheckURL(what, text string) error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
		return inventory.Errorf(inventory.Invalid, "%s is not an http(s) address", what).WithHint("write it as http://10.0.0.1/image.iso, without user and password")
	}
	return nil
}

// Set takes over a value that was given.
func Set[T any](field *T, value *T) {
	if value != nil {
		*field = *value
	}
}
