package web

import (
	"net/http"
	"slices"

	"slipway.dev/slipway/inventory"
)

// KeptView is a view of the hosts with whether all share it.
type KeptView struct {
	inventory.View
	IsShared bool `json:"isShared" doc:"For others too, instead of for the user who stores it. A client without a user has shared views only."`
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
	register(s.rest, operation{
		method: http.MethodGet, path: "/views", id: "list-views", tag: "views", scope: ofNobody, summary: "List views of the hosts",
		about: "The user's own and those that are shared, in order of their names. Of those of pools, the ones where the caller has a role.",
	}, func(req *Request, in *Page) (out *listed[KeptView], err error) {
		err = s.rest.store.Read(req, func(tx inventory.Tx) error {
			all, err := tx.ListViews(req.caller.user)
			rows := []KeptView{}
			for _, v := range all {
				if seesView(req, v) {
					rows = append(rows, viewOf(v))
				}
			}
			out = cut(rows, *in, func(v KeptView) string { return v.Name + "\x01" + v.Owner })
			return err
		})
		return out, err
	})
	register(s.rest, operation{
		method: http.MethodGet, path: "/views/{name}", id: "get-view", tag: "views", scope: ofNobody, summary: "Show a view of the hosts",
		errors: []int{http.StatusNotFound},
	}, func(req *Request, in *viewInput) (*one[KeptView], error) {
		var v inventory.View
		err := s.rest.store.Read(req, func(tx inventory.Tx) (err error) {
			v, err = findView(req, tx, in)
			return err
		})
		return &one[KeptView]{ETag: etag(v.Version), Body: viewOf(v)}, err
	})
	register(s.rest, operation{
		method: http.MethodPut, path: "/views/{name}", id: "put-view", tag: "views", scope: ofPools, needs: inventory.Viewer,
		summary: "Keep a view of the hosts, whether it exists or not", errors: []int{http.StatusNotFound, http.StatusConflict, http.StatusForbidden, http.StatusPreconditionFailed},
		about: "Every viewer can keep views of their own. Shared ones need the role operator: everywhere for those of all, else in " +
			"each of the pools that they are of. An operator of pools who names none shares it in those. A view that is there keeps its " +
			"pools where none are named; an empty list shares it with all.",
	}, s.putView)
	register(s.rest, operation{
		method: http.MethodDelete, path: "/views/{name}", id: "delete-view", tag: "views", scope: ofPools, needs: inventory.Viewer,
		summary: "Delete a view of the hosts", status: http.StatusNoContent, errors: []int{http.StatusNotFound, http.StatusForbidden},
	}, func(req *Request, in *viewInput) (*struct{}, error) {
		return nil, s.rest.store.Write(req, func(tx inventory.Tx) error {
			v, err := findView(req, tx, in)
			if err != nil {
				return err
			}
			if err := mayShare(req, v); err != nil {
				return err
			}
			if err := tx.DeleteView(v.Owner, v.Name); err != nil {
				return err
			}
			return s.viewChanged(req, tx, v, "deleted")
		})
	})
}

func viewOf(v inventory.View) KeptView { return KeptView{View: v, IsShared: v.Owner == ""} }

// findView finds the caller's own view, else the shared one.
func findView(req *Request, tx inventory.Tx, in *viewInput) (inventory.View, error) {
	if owner := req.caller.user; owner != "" && !in.Shared {
		if v, err := tx.FindView(owner, in.Name); !inventory.IsKind(err, inventory.NotFound) {
			return v, err
		}
	}
	v, err := tx.FindView("", in.Name)
	if err == nil && !seesView(req, v) {
		return inventory.View{}, inventory.Errorf(inventory.NotFound, "there is no view %q", inventory.Clean(in.Name, 80)).
			WithHint("or it is of pools in which you have no role")
	}
	return v, err
}

// seesView reports whether a view is the caller's to see: a shared one of pools tells of what is in them.
func seesView(req *Request, v inventory.View) bool {
	grants := req.caller.grants
	return v.Owner != "" || len(v.Pools) == 0 || grants.Everywhere() != "" ||
		slices.ContainsFunc(v.Pools, func(pool string) bool { return grants.In(pool) != "" })
}

// mayShare refuses changes of shared views by those who are operator neither everywhere nor in all their pools.
func mayShare(req *Request, v inventory.View) error {
	c := req.caller
	if v.Owner != "" || c.grants.Everywhere().Allows(inventory.Operator) {
		return nil
	}
	if !c.role().Allows(inventory.Operator) {
		return inventory.Errorf(inventory.Forbidden, "shared views need the role operator; you have %s", c.grants).WithHint("keep it for yourself: isShared false")
	}
	for _, pool := range v.Pools {
		if !c.grants.In(pool).Allows(inventory.Operator) {
			return inventory.Errorf(inventory.Forbidden, "a view of pool %s needs the role operator there; you have %s", pool, c.grants).
				WithHint("name only pools in which you are operator, or keep it for yourself: isShared false")
		}
	}
	if len(v.Pools) == 0 {
		return inventory.Errorf(inventory.Forbidden, "view %s is shared by all: that needs the role operator everywhere; you have %s", v.Name, c.grants).
			WithHint("keep it under another name, or for yourself: isShared false")
	}
	return nil
}

// ownPools returns the pools that a new view of the caller's is shared in when it names none: those of an operator of pools,
// and none, which is all, of one everywhere.
func ownPools(req *Request) (pools []string) {
	c := req.caller
	if c.grants.Everywhere().Allows(inventory.Operator) {
		return nil
	}
	for _, pool := range c.grants.Pools() {
		if c.grants.In(pool).Allows(inventory.Operator) {
			pools = append(pools, pool)
		}
	}
	return pools
}

// viewChanged adds the event for a shared view; a user's own is nobody else's business.
func (s *Server) viewChanged(req *Request, tx inventory.Tx, v inventory.View, done string) error {
	if v.Owner != "" {
		return nil
	}
	return s.rest.changed(req, tx, "view/"+v.Name, "view "+v.Name+" "+done)
}

func (s *Server) putView(req *Request, in *putViewInput) (*one[KeptView], error) {
	if err := sameName("view", &in.Body.Name, in.Name); err != nil {
		return nil, err
	}
	v := in.Body.View
	if v.Owner = req.caller.user; in.Body.IsShared {
		v.Owner = ""
	}
	if slices.Sort(v.Pools); v.Owner == "" && len(v.Pools) == 0 {
		v.Pools = ownPools(req)
	}
	v.Pools = slices.Compact(v.Pools)
	if err := v.Validate(); err != nil {
		return nil, err
	}
	if err := mayShare(req, v); err != nil {
		return nil, err
	}
	err := s.rest.store.Write(req, func(tx inventory.Tx) error {
		old, err := tx.FindView(v.Owner, v.Name)
		switch {
		case err == nil && !seesView(req, old):
			return inventory.Errorf(inventory.Conflict, "a shared view %s is kept in a pool in which you have no role", v.Name).WithHint("choose another name")
		case err == nil && mayShare(req, old) != nil:
			return mayShare(req, old)
		case inventory.IsKind(err, inventory.NotFound):
			if err := (WriteOptions{IfMatch: in.IfMatch}).check("view", v.Name, 0); err != nil {
				return err
			}
			if err := tx.CreateView(&v, s.cfg.Now()); err != nil {
				return err
			}
			return s.viewChanged(req, tx, v, "created")
		case err != nil:
			return err
		}
		if err := (WriteOptions{IfMatch: in.IfMatch}).check("view", v.Name, old.Version); err != nil {
			return err
		}
		v.CreatedAt, v.UpdatedAt, v.Version = old.CreatedAt, old.UpdatedAt, old.Version
		if in.Body.Pools == nil {
			v.Pools = old.Pools // who changes what is searched for has not said that others may read it
		}
		if len(compare(old, v)) == 0 {
			return nil
		}
		if err := tx.UpdateView(&v, s.cfg.Now()); err != nil {
			return err
		}
		return s.viewChanged(req, tx, v, "changed")
	})
	return &one[KeptView]{ETag: etag(v.Version), Body: viewOf(v)}, err
}
