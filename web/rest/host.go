package rest

import "slipway.dev/slipway/inventory"

// ReadHost reads the host that a request names by its name, its id or a MAC.
func (f *Frame) ReadHost(req *Request, ref string) (h inventory.Host, err error) {
	err = f.Store.Read(req, func(tx inventory.Tx) error {
		h, err = FindHost(tx, ref)
		return err
	})
	return h, err
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

// TargetCheckResult is one checked thing of a cluster or a controller.
type TargetCheckResult struct {
	Name   string `json:"name"`
	IsGood bool   `json:"isGood"`
	Detail string `json:"detail"`
	Hint   string `json:"hint,omitempty"`
}
