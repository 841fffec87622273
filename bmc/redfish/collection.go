package redfish

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
)

// links returns where the members of a collection are.
func (c *connection) links(ctx context.Context, ref string) ([]string, error) {
	raw, err := c.pages(ctx, ref)
	if err != nil {
		return nil, err
	}
	var refs []string
	for _, m := range raw {
		var l link
		// A member that is listed twice would be counted twice as a disk or a processor.
		if decode(m, &l) == nil && l.ID != "" && !slices.Contains(refs, l.ID) {
			refs = append(refs, l.ID)
		}
	}
	return refs, nil
}

// members returns the documents of a collection, in one request where the service can expand them. It leaves out
// those that it cannot read, and reports them with bmc.Omit: controllers list parts that they do not have.
func (c *connection) members(ctx context.Context, ref string) ([]json.RawMessage, error) {
	if ref == "" {
		return nil, nil
	}
	root, err := c.root(ctx)
	if err != nil {
		return nil, err
	}
	var raw []json.RawMessage
	if root.ProtocolFeaturesSupported.ExpandQuery.NoLinks && !strings.Contains(ref, "?") {
		raw, _ = c.pages(ctx, ref+"?$expand=.") // what is promised is not always kept
	}
	// The expanded form failed or came back empty: the plain one decides, whose error counts.
	if len(raw) == 0 {
		if raw, err = c.pages(ctx, ref); err != nil {
			return nil, err
		}
	}
	var docs []json.RawMessage
	for _, m := range raw {
		doc, err := c.member(ctx, m)
		if err != nil {
			return nil, err
		}
		if doc != nil {
			docs = append(docs, doc)
		}
	}
	return docs, nil
}

// member returns the document of a member, which may be only a link to it; nil for what cannot be read.
func (c *connection) member(ctx context.Context, m json.RawMessage) (json.RawMessage, error) {
	var keys map[string]json.RawMessage
	if decode(m, &keys) != nil {
		return nil, nil
	}
	// A link has @odata.id alone. Anything more is the document itself, which $expand has brought.
	if len(keys) > 1 {
		return m, nil
	}
	var l link
	_ = decode(m, &l)
	var doc json.RawMessage
	return doc, c.omit(ctx, l.ID, c.read(ctx, l.ID, &doc))
}

// omit reports that a part could not be read. It returns only an error that ends the whole reading: an ended context
// or a refused login.
func (c *connection) omit(ctx context.Context, ref string, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil || bmc.KindOf(err) == inventory.Unauthorized {
		return err
	}
	why := err.Error()
	if e, ok := errors.AsType[*inventory.Error](err); ok {
		why = e.Msg
	}
	bmc.Omit(ctx, "%s: %s", clean(ref), c.hide(why))
	return nil
}

// pages returns the members of a collection from all its pages. A page that was seen before ends it: some firmware
// links the last page to itself.
func (c *connection) pages(ctx context.Context, ref string) ([]json.RawMessage, error) {
	var all []json.RawMessage
	first, count := ref, 0
	// maxPages and maxMembers bound what a hostile controller can make us read.
	for seen := map[string]bool{}; ref != "" && !seen[ref] && len(seen) < maxPages && len(all) < maxMembers; {
		seen[ref] = true
		var page collection
		if err := c.read(ctx, ref, &page); err != nil {
			// An error of the first page means that there is no collection. Later pages only make it shorter.
			if len(seen) > 1 {
				err = c.omit(ctx, ref, err)
			}
			return all, err
		}
		all, ref, count = append(all, page.Members...), page.Next, max(count, int(page.Count))
	}
	// The count that the service states also shows members that it never sent.
	if n := max(count, len(all)); n > min(len(all), maxMembers) {
		bmc.Omit(ctx, "%s: %d of its %d members were not read", clean(first), n-min(len(all), maxMembers), n)
	}
	return all[:min(len(all), maxMembers)], nil
}
