package client

import (
	"context"
	"net/http"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/wire"
)

// BulkRequest says what to do, and with which hosts: those named, or those that a selector matches.
type BulkRequest struct {
	Verb     string   `json:"verb"`
	Hosts    []string `json:"hosts,omitempty"`
	Selector string   `json:"selector,omitempty"`

	Strangers bool               `json:"strangers,omitempty"` // delete
	SilentFor inventory.Duration `json:"silentFor,omitempty"` // strangers

	On      *bool               `json:"on,omitempty"`      // maintain, protect, cordon, retain, adopt, locate
	Force   bool                `json:"force,omitempty"`   // delete
	Profile string              `json:"profile,omitempty"` // install
	Action  string              `json:"action,omitempty"`  // power
	Mode    inventory.CleanMode `json:"mode,omitempty"`    // clean
	Inspect *InspectRequest     `json:"inspect,omitempty"` // inspect
	Set     *wire.HostPatch     `json:"set,omitempty"`     // set
}

// Bulk does something to many hosts; with isDryRun it only says which it would act on, and why not on the others.
func (h Hosts) Bulk(ctx context.Context, r BulkRequest, isDryRun bool) (out wire.BulkResult, err error) {
	return out, h.c.call(ctx, http.MethodPost, "hosts/bulk", params{"dryRun": isDryRun}.values(), r, &out)
}

// DeleteView deletes a view: the user's own, or with isShared the one that all share.
func (c *Client) DeleteView(ctx context.Context, name string, isShared bool) error {
	return c.call(ctx, http.MethodDelete, c.Views.at(name), params{"shared": isShared}.values(), nil, nil)
}
