package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/auditchain"
	"slipway.dev/slipway/web/wire"
)

// AuditEntry returns an entry of the audit with what it changed.
func (c *Client) AuditEntry(ctx context.Context, id int64) (e wire.AuditEntry, err error) {
	return e, c.call(ctx, http.MethodGet, fmt.Sprintf("audit/%d", id), nil, nil, &e)
}

// AuditExport returns a page of whole entries, oldest first, those after an id.
func (c *Client) AuditExport(ctx context.Context, after int64) (p Page[inventory.Audit], err error) {
	return p, c.call(ctx, http.MethodGet, "audit/export", url.Values{"after": {fmt.Sprint(after)}}, nil, &p)
}

// AuditChain looks whether an entry of the audit was changed or taken out. Noted is a hash that the chain had before, "" for none.
func (c *Client) AuditChain(ctx context.Context, noted string) (a auditchain.AuditChain, err error) {
	return a, c.call(ctx, http.MethodGet, "audit/chain", params{"noted": noted}.values(), nil, &a)
}

// Undo takes back the edit of an entry, and returns the entry that this is.
func (c *Client) Undo(ctx context.Context, id int64) (a inventory.Audit, err error) {
	return a, c.call(ctx, http.MethodPost, fmt.Sprintf("audit/%d/undo", id), nil, nil, &a)
}

// PreviewUndo asks what an undo would change, and changes nothing.
func (c *Client) PreviewUndo(ctx context.Context, id int64) (d Diff, err error) {
	return d, c.call(ctx, http.MethodPost, fmt.Sprintf("audit/%d/undo", id), url.Values{"dryRun": {"true"}}, nil, &d)
}

// Backup takes a backup and writes it to w. An error means that what was written is no whole backup.
func (c *Client) Backup(ctx context.Context, w io.Writer) error {
	return c.download(ctx, "backup", "backup", nil, w)
}
