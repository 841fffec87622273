package web

import (
	"cmp"
	"context"
	"errors"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig/reference"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/scoped"
)

// scopedStore shows each caller its part of the inventory. Handlers reach the store only through it, so that none of them
// can forget to ask.
type scopedStore struct {
	whole inventory.Store
	met   *scoped.Met
	life  Holder
}

// Read implements rest.Store.
func (s scopedStore) Read(req *rest.Request, fn func(inventory.Tx) error) error {
	return s.whole.Read(req, func(tx inventory.Tx) error {
		return limited(req, authored{Tx: tx, saved: rest.SavedBy(req)}, s.met, fn)
	})
}

// Write implements rest.Store. Its writes may be undone: it remembers nothing.
func (s scopedStore) Write(req *rest.Request, fn func(inventory.Tx) error) error {
	var after []func(context.Context, bool)
	isStored := false
	defer func() {
		for _, f := range after {
			f(req, isStored)
		}
	}()
	err := s.whole.Write(req, func(tx inventory.Tx) error {
		return limited(req, authored{tx, rest.SavedBy(req), s.life, &after}, nil, fn)
	})
	isStored = err == nil
	if err != nil {
		s.noteRefused(req, err)
	}
	return err
}

// noteRefused puts the refusal of a name into the timeline: the transaction that it was in is taken back.
func (s scopedStore) noteRefused(req *rest.Request, err error) {
	var no *reference.Refusal
	if !errors.As(err, &no) {
		return
	}
	c := req.Caller
	_ = s.whole.Write(req.Detached(), func(tx inventory.Tx) error { // the audit has the refusal, too
		return tx.AddEvent(&inventory.Event{
			At: time.Now(), Kind: inventory.EventReferenceRefused, Subject: no.Use.Noun + "/" + no.Use.Name,
			Detail: inventory.Clean("refused to "+cmp.Or(c.Name, "somebody")+": "+no.Err.Msg, 500),
			Data:   map[string]any{"ref": no.Use.Ref, "hint": no.Err.Hint}, Refs: inventory.RefsOf(no.Err),
		})
	})
}

// limited calls fn with what the caller may see and change.
func limited(req *rest.Request, tx authored, met *scoped.Met, fn func(inventory.Tx) error) error {
	if req.Caller.Grants.Everywhere() == inventory.Admin {
		return fn(tx)
	}
	shown, err := scoped.Show(tx, req.Within(), met)
	if err != nil {
		return err
	}
	return fn(shown)
}
