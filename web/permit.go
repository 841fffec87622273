package web

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humaecho"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/scoped"
)

// anybody, as what an operation needs, is whoever is logged in, also without any role.
const anybody inventory.UserRole = "anybody"

// scope says of what an operation speaks, which decides whether a role in one pool is enough for it.
type scope int

const (
	// ofAll needs the role everywhere.
	ofAll scope = iota
	// ofPools speaks of hosts, machines, and what belongs to them. A role in one pool is enough: the store shows such a caller
	// what is in its pools, and lets it change no more (see package scoped).
	ofPools
	// ofNobody speaks of what belongs to nobody, such as images: whoever has a role in any pool may read it. Writes need the
	// role everywhere.
	ofNobody
)

// needed returns the role that an operation needs.
func (o operation) needed() inventory.UserRole {
	switch {
	case o.needs != "":
		return o.needs
	case o.method == http.MethodGet:
		return inventory.Viewer
	}
	return inventory.Operator
}

// permit looks whether the caller may do an operation at all, and notes for the store which role it needs.
func permit(req *Request, o operation) error {
	needed, c := o.needed(), req.caller
	req.needed = needed
	if c.cluster != "" {
		if !o.forClusters {
			return errOfCluster(c)
		}
		return nil
	}
	if needed == anybody {
		return nil
	}
	has := c.grants.Everywhere()
	isRead := o.method == http.MethodGet
	if o.scope == ofPools || o.scope == ofNobody && isRead {
		has = c.grants.Highest()
	}
	if has.Allows(needed) {
		return nil
	}
	where := ""
	if o.scope == ofAll || o.scope == ofNobody && !isRead {
		where = " everywhere"
	}
	return refused(c, needed, where, has)
}

// permitted refuses callers whose role is not enough for an operation, before their request is read any further.
func (f *Frame) permitted(o operation) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		if err := permit(edgeOf(ctx.Context()), o); err != nil {
			c := humaecho.UnwrapV4(ctx)
			writeProblem(c.Response(), c.Request(), f.log, err)
			return
		}
		next(ctx)
	}
}

// permits reports why the caller may not do an operation on a host; the host's id may be empty.
func (f *Frame) permits(req *Request, o operation, host inventory.HostID) error {
	req = req.with(req.Context)
	if err := permit(req, o); err != nil || host == "" {
		return err
	}
	return f.store.Read(req, func(tx inventory.Tx) error {
		_, err := tx.FindHost(host)
		return err
	})
}

// refused says which role is missing, and who can give it.
func refused(c caller, needed inventory.UserRole, where string, has inventory.UserRole) error {
	return scoped.Caller{User: c.user, Grants: c.grants, MustSetUp: c.mustSetUp}.Refused(needed, where, has)
}

// errOfCluster refuses the token of a cluster what is not for controllers.
func errOfCluster(c caller) error {
	return inventory.Errorf(inventory.Forbidden, "%s is for the controllers of cluster %s, and for nothing else", c.name, c.cluster).
		WithHint("log in as a user, or make a token with a role: slipway token create NAME --role ROLE")
}
