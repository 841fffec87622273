package web

import (
	"context"
	"net/http"

	"slipway.dev/slipway/inventory"
)

// KeptView is a view of the hosts with whether all share it.
type KeptView struct {
	inventory.View
	IsShared bool `json:"isShared" doc:"For all, instead of for the user who stores it. Who comes in without being a user has shared views only."`
}

type putViewInput struct {
	NameRef
	IfMatch string `header:"If-Match" doc:"Fail with 412 unless this is the version stored; without it the last writer wins" maxLength:"64"`
	Body    KeptView
}

type viewInput struct {
	NameRef
	Shared bool `query:"shared" doc:"The one that all share, where there is one of the user's own by that name"`
}

// addViews registers the operations on views. A user's own views come before shared ones of the same name.
func (s *Server) addViews() {
	register(s, operation{
		method: http.MethodGet, path: "/views", id: "list-views", tag: "views", scope: ofNobody, summary: "List views of the hosts",
		about: "The user's own, and those that all share, in order of their names.",
	}, func(ctx context.Context, in *Page) (out *listed[KeptView], err error) {
		err = s.cfg.Store.Read(ctx, func(tx inventory.Tx) error {
			all, err := tx.ListViews(callerOf(ctx).user)
			rows := make([]KeptView, len(all))
			for i, v := range all {
				rows[i] = viewOf(v)
			}
			out = cut(rows, *in, func(v KeptView) string { return v.Name + "\x01" + v.Owner })
			return err
		})
		return out, err
	})
	register(s, operation{
		method: http.MethodGet, path: "/views/{name}", id: "get-view", tag: "views", scope: ofNobody, summary: "Show a view of the hosts",
		errors: []int{http.StatusNotFound},
	}, func(ctx context.Context, in *viewInput) (*one[KeptView], error) {
		var v inventory.View
		err := s.cfg.Store.Read(ctx, func(tx inventory.Tx) (err error) {
			v, err = findView(ctx, tx, in)
			return err
		})
		return &one[KeptView]{ETag: etag(v.Version), Body: viewOf(v)}, err
	})
	register(s, operation{
		method: http.MethodPut, path: "/views/{name}", id: "put-view", tag: "views", scope: ofPools, needs: inventory.Viewer,
		summary: "Keep a view of the hosts, whether it exists or not", errors: []int{http.StatusNotFound, http.StatusConflict, http.StatusForbidden, http.StatusPreconditionFailed},
		about: "Whoever may look keeps views of their own; those that all share need the role operator.",
	}, s.putView)
	register(s, operation{
		method: http.MethodDelete, path: "/views/{name}", id: "delete-view", tag: "views", scope: ofPools, needs: inventory.Viewer,
		summary: "Delete a view of the hosts", status: http.StatusNoContent, errors: []int{http.StatusNotFound, http.StatusForbidden},
	}, func(ctx context.Context, in *viewInput) (*struct{}, error) {
		return nil, s.cfg.Store.Write(ctx, func(tx inventory.Tx) error {
			v, err := findView(ctx, tx, in)
			if err != nil {
				return err
			}
			if err := mayShare(ctx, v.Owner); err != nil {
				return err
			}
			if err := tx.DeleteView(v.Owner, v.Name); err != nil {
				return err
			}
			return s.viewChanged(ctx, tx, v, "deleted")
		})
	})
}

func viewOf(v inventory.View) KeptView { return KeptView{View: v, IsShared: v.Owner == ""} }

// findView finds the caller's own view, else the shared one.
func findView(ctx context.Context, tx inventory.Tx, in *viewInput) (inventory.View, error) {
	if owner := callerOf(ctx).user; owner != "" && !in.Shared {
		if v, err := tx.FindView(owner, in.Name); !isKind(err, inventory.NotFound) {
			return v, err
		}
	}
	return tx.FindView("", in.Name)
}

// mayShare refuses changes of shared views by those who only look.
func mayShare(ctx context.Context, owner string) error {
	if owner != "" || callerOf(ctx).role().Allows(inventory.Operator) {
		return nil
	}
	return inventory.Errorf(inventory.Forbidden, "views that all share need the role operator").WithHint("keep it for yourself: isShared false")
}

// viewChanged adds the event for a shared view; a user's own is nobody else's business.
func (s *Server) viewChanged(ctx context.Context, tx inventory.Tx, v inventory.View, done string) error {
	if v.Owner != "" {
		return nil
	}
	return s.changed(ctx, tx, "view/"+v.Name, "view "+v.Name+" "+done)
}

func (s *Server) putView(ctx context.Context, in *putViewInput) (*one[KeptView], error) {
	if err := sameName("view", &in.Body.Name, in.Name); err != nil {
		return nil, err
	}
	v := in.Body.View
	if v.Owner = callerOf(ctx).user; in.Body.IsShared {
		v.Owner = ""
	}
	if err := v.Validate(); err != nil {
		return nil, err
	}
	if err := mayShare(ctx, v.Owner); err != nil {
		return nil, err
	}
	err := s.cfg.Store.Write(ctx, func(tx inventory.Tx) error {
		old, err := tx.FindView(v.Owner, v.Name)
		switch {
		case isKind(err, inventory.NotFound):
			if err := (WriteOptions{IfMatch: in.IfMatch}).check("view", v.Name, 0); err != nil {
				return err
			}
			if err := tx.CreateView(&v, s.cfg.Now()); err != nil {
				return err
			}
			return s.viewChanged(ctx, tx, v, "created")
		case err != nil:
			return err
		}
		if err := (WriteOptions{IfMatch: in.IfMatch}).check("view", v.Name, old.Version); err != nil {
			return err
		}
		v.CreatedAt, v.UpdatedAt, v.Version = old.CreatedAt, old.UpdatedAt, old.Version
		if len(diff(old, v)) == 0 {
			return nil
		}
		if err := tx.UpdateView(&v, s.cfg.Now()); err != nil {
			return err
		}
		return s.viewChanged(ctx, tx, v, "changed")
	})
	return &one[KeptView]{ETag: etag(v.Version), Body: viewOf(v)}, err
}
