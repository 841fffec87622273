package records

import (
	"net/http"
	"slices"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/wire"
)

type putViewInput struct {
	rest.NameRef
	IfMatch string `header:"If-Match" doc:"Fail with 412 unless this is the version stored; without it the last writer wins" maxLength:"64"`
	Body    wire.KeptView
}

type viewInput struct {
	rest.NameRef
	Shared bool `query:"shared" doc:"The one that all share, where there is one of the user's own by that name"`
}

// viewOps answers the requests about views.
type viewOps struct{ rest *rest.Frame }

// addViews registers the operations on views. A user's own views come before shared ones of the same name.
func addViews(f *rest.Frame) {
	s := viewOps{f}
	rest.Register(f, rest.Operation{
		Method: http.MethodGet, Path: "/views", ID: "list-views", Tag: "views", Scope: rest.OfNobody, Summary: "List views of the hosts",
		AtAny: true,
		About: "The user's own and those that are shared, in order of their names. Of those of pools, the ones where the caller has a role.",
	}, func(req *rest.Request, in *rest.Page) (out *rest.Listed[wire.KeptView], err error) {
		err = s.rest.Store.Read(req, func(tx inventory.Tx) error {
			all, err := tx.ListViews(req.Caller.User)
			rows := []wire.KeptView{}
			for _, v := range all {
				if seesView(req, v) {
					rows = append(rows, viewOf(v))
				}
			}
			out = rest.Cut(rows, *in, func(v wire.KeptView) string { return v.Name + "\x01" + v.Owner })
			return err
		})
		return out, err
	})
	rest.Register(f, rest.Operation{
		Method: http.MethodGet, Path: "/views/{name}", ID: "get-view", AtAny: true, Tag: "views", Scope: rest.OfNobody,
		Summary: "Show a view of the hosts",
		Errors:  []int{http.StatusNotFound},
	}, func(req *rest.Request, in *viewInput) (*rest.One[wire.KeptView], error) {
		v, err := rest.Read(req, s.rest.Store, func(tx inventory.Tx) (inventory.View, error) { return findView(req, tx, in) })
		return &rest.One[wire.KeptView]{ETag: rest.ETag(v.Version), Body: viewOf(v)}, err
	})
	rest.Register(f, rest.Operation{
		Method: http.MethodPut, Path: "/views/{name}", ID: "put-view", Tag: "views", Scope: rest.OfPools, Needs: inventory.Viewer,
		Summary: "Keep a view of the hosts, whether it exists or not", Errors: []int{http.StatusNotFound, http.StatusConflict, http.StatusForbidden, http.StatusPreconditionFailed},
		About: "Every viewer can keep views of their own. Shared ones need the role operator: everywhere for those of all, else in " +
			"each of the pools that they are of. An operator of pools who names none shares it in those. A view that is there keeps its " +
			"pools where none are named; an empty list shares it with all.",
	}, s.putView)
	rest.Register(f, rest.Operation{
		Method: http.MethodDelete, Path: "/views/{name}", ID: "delete-view", Tag: "views", Scope: rest.OfPools, Needs: inventory.Viewer,
		Summary: "Delete a view of the hosts", Status: http.StatusNoContent, Errors: []int{http.StatusNotFound, http.StatusForbidden},
	}, func(req *rest.Request, in *viewInput) (*struct{}, error) {
		return nil, s.rest.Store.Write(req, func(tx inventory.Tx) error {
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

func viewOf(v inventory.View) wire.KeptView { return wire.KeptView{View: v, IsShared: v.Owner == ""} }

// findView finds the caller's own view, else the shared one.
func findView(req *rest.Request, tx inventory.Tx, in *viewInput) (inventory.View, error) {
	if owner := req.Caller.User; owner != "" && !in.Shared {
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
func seesView(req *rest.Request, v inventory.View) bool {
	grants := req.Caller.Grants
	return v.Owner != "" || len(v.Pools) == 0 || grants.Everywhere() != "" ||
		slices.ContainsFunc(v.Pools, func(pool string) bool { return grants.In(pool) != "" })
}

// mayShare refuses changes of shared views by those who are operator neither everywhere nor in all their pools.
func mayShare(req *rest.Request, v inventory.View) error {
	c := req.Caller
	if v.Owner != "" || c.Grants.Everywhere().Allows(inventory.Operator) {
		return nil
	}
	if !c.Role().Allows(inventory.Operator) {
		return inventory.Errorf(inventory.Forbidden, "shared views need the role operator; you have %s", c.Grants).WithHint("keep it for yourself: isShared false")
	}
	for _, pool := range v.Pools {
		if !c.Grants.In(pool).Allows(inventory.Operator) {
			return inventory.Errorf(inventory.Forbidden, "a view of pool %s needs the role operator there; you have %s", pool, c.Grants).
				WithHint("name only pools in which you are operator, or keep it for yourself: isShared false")
		}
	}
	if len(v.Pools) == 0 {
		return inventory.Errorf(inventory.Forbidden, "view %s is shared by all: that needs the role operator everywhere; you have %s", v.Name, c.Grants).
			WithHint("keep it under another name, or for yourself: isShared false")
	}
	return nil
}

// ownPools returns the pools that a new view of the caller's is shared in when it names none: those of an operator of pools,
// and none, which is all, of one everywhere.
func ownPools(req *rest.Request) (pools []string) {
	c := req.Caller
	if c.Grants.Everywhere().Allows(inventory.Operator) {
		return nil
	}
	for _, pool := range c.Grants.Pools() {
		if c.Grants.In(pool).Allows(inventory.Operator) {
			pools = append(pools, pool)
		}
	}
	return pools
}

// viewChanged adds the event for a shared view; a user's own is nobody else's business.
func (s viewOps) viewChanged(req *rest.Request, tx inventory.Tx, v inventory.View, done string) error {
	if v.Owner != "" {
		return nil
	}
	return s.rest.Changed(req, tx, "view/"+v.Name, "view "+v.Name+" "+done)
}

func (s viewOps) putView(req *rest.Request, in *putViewInput) (*rest.One[wire.KeptView], error) {
	if err := rest.SameName("view", &in.Body.Name, in.Name); err != nil {
		return nil, err
	}
	v := in.Body.View
	if v.Owner = req.Caller.User; in.Body.IsShared {
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
	err := s.rest.Store.Write(req, func(tx inventory.Tx) error {
		old, err := tx.FindView(v.Owner, v.Name)
		switch {
		case err == nil && !seesView(req, old):
			return inventory.Errorf(inventory.Conflict, "a shared view %s is kept in a pool in which you have no role", v.Name).WithHint("choose another name")
		case err == nil && mayShare(req, old) != nil:
			return mayShare(req, old)
		case inventory.IsKind(err, inventory.NotFound):
			if err := (rest.WriteOptions{IfMatch: in.IfMatch}).Check("view", v.Name, 0); err != nil {
				return err
			}
			if err := tx.CreateView(&v, s.rest.Now()); err != nil {
				return err
			}
			return s.viewChanged(req, tx, v, "created")
		case err != nil:
			return err
		}
		if err := (rest.WriteOptions{IfMatch: in.IfMatch}).Check("view", v.Name, old.Version); err != nil {
			return err
		}
		v.CreatedAt, v.UpdatedAt, v.Version = old.CreatedAt, old.UpdatedAt, old.Version
		if in.Body.Pools == nil {
			v.Pools = old.Pools // who changes what is searched for has not said that others may read it
		}
		if len(rest.Compare(old, v)) == 0 {
			return nil
		}
		if err := tx.UpdateView(&v, s.rest.Now()); err != nil {
			return err
		}
		return s.viewChanged(req, tx, v, "changed")
	})
	return &rest.One[wire.KeptView]{ETag: rest.ETag(v.Version), Body: viewOf(v)}, err
}
