package rest

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humaecho"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/scoped"
)

// Permit looks whether the caller may do an operation at all, and notes for the store which role it needs.
func Permit(req *Request, o Operation) error {
	needed, c := o.needed(), req.Caller
	req.Needed = needed
	if c.Cluster != "" {
		if !o.ForClusters {
			return ErrOfCluster(c)
		}
		return nil
	}
	if needed == Anybody {
		return nil
	}
	has := c.Grants.Everywhere()
	isRead := o.Method == http.MethodGet
	if o.Scope == OfPools || o.Scope == OfNobody && isRead {
		has = c.Grants.Highest()
	}
	if has.Allows(needed) {
		return nil
	}
	where := ""
	if o.Scope == OfAll || o.Scope == OfNobody && !isRead {
		where = " everywhere"
	}
	return Refused(c, needed, where, has)
}

// permitted refuses callers whose role is not enough for an operation, before their request is read any further.
func (f *Frame) permitted(o Operation) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		if err := Permit(EdgeOf(ctx.Context()), o); err != nil {
			c := humaecho.UnwrapV4(ctx)
			WriteProblem(c.Response(), c.Request(), f.Log, err)
			return
		}
		next(ctx)
	}
}

// Permits reports why the caller may not do on a host what an operation changes. The host's id may be empty. Without an operation
// of that id, isKnown is false: nothing was checked.
func (f *Frame) Permits(req *Request, id string, host inventory.HostID) (isKnown bool, err error) {
	o, isKnown := f.operations[id]
	if !isKnown {
		return false, nil
	}
	req = req.With(req.Context)
	if err := Permit(req, o); err != nil || host == "" {
		return true, err
	}
	return true, f.Store.Read(req, func(tx inventory.Tx) error {
		_, err := tx.FindHost(host)
		return err
	})
}

// Refused says which role is missing, and who can give it.
func Refused(c Caller, needed inventory.UserRole, where string, has inventory.UserRole) error {
	return scoped.Caller{User: c.User, Grants: c.Grants, MustSetUp: c.MustSetUp}.Refused(needed, where, has)
}

// ErrOfCluster refuses the token of a cluster what is not for controllers.
func ErrOfCluster(c Caller) error {
	return inventory.Errorf(inventory.Forbidden, "%s is for the controllers of cluster %s, and for nothing else", c.Name, c.Cluster).
		WithHint("log in as a user, or make a token with a role: slipway token create NAME --role ROLE")
}
