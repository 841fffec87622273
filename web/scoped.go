package web

import (
	"context"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/scoped"
	"slipway.dev/slipway/web/wire"
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

// CheckOIDC says whether the provider of identities answers; ok is false without one.
func (s *Server) CheckOIDC(ctx context.Context) (c wire.Check, ok bool) {
	p, err := s.access.Provider(ctx)
	if p == nil {
		return c, false
	}
	c = wire.Check{Name: "single sign-on", Status: "ok", Detail: p.Title + " answers at " + p.Issuer}
	if err != nil {
		c.Status, c.Detail, c.Hint = "warning", err.Error(), "people can log in with passwords and tokens meanwhile; see docs/sso.md"
	}
	return c, true
}
