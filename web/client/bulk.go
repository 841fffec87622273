package client

import (
	"context"
	"net/http"
	"net/url"

	"slipway.dev/slipway/inventory"
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
	Set     *HostPatch          `json:"set,omitempty"`     // set
}

// BulkResult says what became of each host.
type BulkResult struct {
	IsDryRun bool       `json:"isDryRun"`
	ActsN    int        `json:"actsN"`
	SkipsN   int        `json:"skipsN"`
	Items    []BulkItem `json:"items"`
}

// BulkItem is what became of one host; Reason says why it is skipped.
type BulkItem struct {
	Host   string           `json:"host"`
	ID     inventory.HostID `json:"id,omitempty"`
	Acts   bool             `json:"acts"`
	Does   string           `json:"does,omitempty"` // of a dry run: what would happen, with {hosts} for the host
	Reason string           `json:"reason,omitempty"`
	Hint   string           `json:"hint,omitempty"`
}

// Bulk does something to many hosts; with isDryRun it only says which it would act on, and why not on the others.
func (h Hosts) Bulk(ctx context.Context, r BulkRequest, isDryRun bool) (out BulkResult, err error) {
	q := url.Values{}
	if isDryRun {
		q.Set("dryRun", "true")
	}
	return out, h.c.call(ctx, http.MethodPost, "hosts/bulk", q, r, &out)
}

// View is a view of the hosts with whether all share it.
type View struct {
	inventory.View
	IsShared bool `json:"isShared"`
}

// DeleteView deletes a view: the user's own, or with isShared the one that all share.
func (c *Client) DeleteView(ctx context.Context, name string, isShared bool) error {
	q := url.Values{}
	if isShared {
		q.Set("shared", "true")
	}
	return c.call(ctx, http.MethodDelete, c.Views.at(name), q, nil, nil)
}
