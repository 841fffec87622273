package client

import (
	"context"
	"io"
	"net/http"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/boot"
	"slipway.dev/slipway/web/wire"
)

// Hosts is the calls on hosts. A host is named by its name, its id or one of its MACs.
type Hosts struct {
	Noun[inventory.Host]
}

// Patch changes some fields of a host.
func (h Hosts) Patch(ctx context.Context, host string, p wire.HostPatch, opts ...Option) (stored inventory.Host, err error) {
	return stored, h.c.call(ctx, http.MethodPatch, h.at(host), nil, p, &stored, opts...)
}

// verb does something to a host that changes its life.
func (h Hosts) verb(ctx context.Context, host, verb string, in any) (stored inventory.Host, err error) {
	return stored, h.c.call(ctx, http.MethodPost, h.at(host)+"/"+verb, nil, in, &stored)
}

// Accept makes a discovered host one of ours.
func (h Hosts) Accept(ctx context.Context, host string) (inventory.Host, error) {
	return h.verb(ctx, host, "accept", nil)
}

// Install pins the profile, unless it is "", and arms the host for it.
func (h Hosts) Install(ctx context.Context, host, profile string) (inventory.Host, error) {
	return h.verb(ctx, host, "install", map[string]string{"profile": profile})
}

// Release takes a host back, or clears its failure.
func (h Hosts) Release(ctx context.Context, host string) (inventory.Host, error) {
	return h.verb(ctx, host, "release", nil)
}

// Maintain puts a host into maintenance or takes it out.
func (h Hosts) Maintain(ctx context.Context, host string, on bool) (inventory.Host, error) {
	return h.verb(ctx, host, "maintain", map[string]bool{"on": on})
}

// Cordon keeps machines from claiming a host, or ends that.
func (h Hosts) Cordon(ctx context.Context, host string, on bool) (inventory.Host, error) {
	return h.verb(ctx, host, "cordon", map[string]bool{"on": on})
}

// Retain leaves the disks of a host as they are when its machine goes, or ends that.
func (h Hosts) Retain(ctx context.Context, host string, on bool) (inventory.Host, error) {
	return h.verb(ctx, host, "retain", map[string]bool{"on": on})
}

// Protect keeps everything destructive away from a host, or ends that.
func (h Hosts) Protect(ctx context.Context, host string, on bool) (inventory.Host, error) {
	return h.verb(ctx, host, "protect", map[string]bool{"on": on})
}

// Explain says what a host would boot if it asked now.
func (h Hosts) Explain(ctx context.Context, host string) (x boot.Explanation, err error) {
	return x, h.c.call(ctx, http.MethodGet, h.at(host)+"/explain", nil, nil, &x)
}

// Script returns the script that a host would get if it asked now.
func (h Hosts) Script(ctx context.Context, host string) (string, error) {
	res, err := h.c.send(ctx, http.MethodGet, h.at(host)+"/script", nil, nil)
	if err != nil {
		return "", err
	}
	defer drain(res.Body)
	b, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	return string(b), err
}

// Bulk does something to many hosts; with isDryRun it only says which it would act on, and why not on the others.
func (h Hosts) Bulk(ctx context.Context, r wire.BulkRequest, isDryRun bool) (out wire.BulkResult, err error) {
	return out, h.c.call(ctx, http.MethodPost, "hosts/bulk", params{"dryRun": isDryRun}.values(), r, &out)
}
