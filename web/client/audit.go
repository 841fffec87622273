package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/auditchain"
	"slipway.dev/slipway/web/wire"
)

// AuditQuery narrows the audit; empty fields do not.
type AuditQuery struct {
	After     string
	Limit     int
	Actor     string // user NAME, token NAME
	Noun      string // singular
	Name      string
	Host      string // name, id or MAC
	Operation string
	Outcome   string // change or refused
	Since     time.Time
	Until     time.Time
}

// Audit returns a page of requests to the server, latest first.
func (c *Client) Audit(ctx context.Context, q AuditQuery) (p Page[inventory.Audit], err error) {
	v := params{
		"after": q.After, "limit": max(q.Limit, 0), "actor": q.Actor, "noun": q.Noun, "name": q.Name, "host": q.Host,
		"operation": q.Operation, "outcome": q.Outcome,
	}.values()
	for key, at := range map[string]time.Time{"since": q.Since, "until": q.Until} {
		if !at.IsZero() {
			v.Set(key, at.Format(time.RFC3339))
		}
	}
	return p, c.call(ctx, http.MethodGet, "audit", v, nil, &p)
}

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
	res, err := c.send(ctx, http.MethodGet, "backup", nil, nil)
	if err != nil {
		return err
	}
	defer drain(res.Body)
	if _, err := io.Copy(w, res.Body); err != nil {
		return &inventory.Error{Kind: inventory.Unavailable, Err: err, Msg: "the backup was cut short", Hint: "try it again"}
	}
	return nil
}

// BackupStatus says when the last backup was taken, and what the next one needs.
func (c *Client) BackupStatus(ctx context.Context) (b wire.BackupStatus, err error) {
	return b, c.call(ctx, http.MethodGet, "backup/status", nil, nil, &b)
}
