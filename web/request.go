package web

import (
	"context"
	"net/http"
	"net/netip"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/scoped"
)

// Request is one request: who sent it, which role its operation needs, and what the audit will say about it. Handlers and all
// that they call get it as an argument. It is a context as well: whatever only has to stop when the client goes gets it as one.
type Request struct {
	context.Context
	id     string // names it in its answer and in the log
	caller caller
	needed inventory.UserRole // by the operation; "" until it is known
	trail  *trail             // never nil; what only reads has one that nobody writes
}

// caller is who sent a request.
type caller struct {
	name    string // "user NAME", "token NAME", or "USER (local)"
	isLocal bool   // came through the Unix socket
	via     string // viaLogin, viaToken or viaSocket
	user    string // the user's name; "" for a token without owner and for the socket
	token   string // the token's name; "" without one
	login   string // the login's id; "" without one
	grants  inventory.Grants
	// cluster is the UID of the cluster whose controllers ask, and namespaces those that they speak for; such a caller has no
	// grants, and is let in by operations that are forClusters only.
	cluster    string
	namespaces []string
	// mustSetUp: a second factor comes before anything else; until then there are no grants.
	mustSetUp bool
	source    netip.Addr // zero for the socket
	secure    bool       // the client's own connection is encrypted
	// again asks anew who it is, for what goes on for long; nil where nothing can change.
	again func(ctx context.Context) (caller, error)
}

// The ways to come in.
const (
	viaLogin  = "login"
	viaToken  = "token"
	viaSocket = "socket"
)

// role is the most that the caller may do anywhere.
func (c caller) role() inventory.UserRole { return c.grants.Highest() }

// newRequest returns a request from nobody.
func newRequest(ctx context.Context, id string) *Request {
	return &Request{Context: ctx, id: id, trail: &trail{isWritten: true}}
}

// with returns the same request with another context: another time limit, or none.
func (r *Request) with(ctx context.Context) *Request {
	other := *r
	other.Context = ctx
	return &other
}

// enteredAs returns the same request with an entry of its own in the audit.
func (r *Request) enteredAs(row inventory.Audit) *Request {
	other := *r
	other.trail = &trail{row: row, success: http.StatusOK}
	return &other
}

// detached returns the same request as one that goes on when the client goes.
func (r *Request) detached() *Request { return r.with(context.WithoutCancel(r)) }

// needing returns the same request as one that needs another role.
func (r *Request) needing(role inventory.UserRole) *Request {
	other := *r
	other.needed = role
	return &other
}

// within is the caller as the inventory is shown to it, in an operation.
func (r *Request) within() scoped.Caller {
	c, needed := r.caller, r.needed
	if needed == "" || needed == anybody {
		needed = inventory.Viewer
	}
	return scoped.Caller{User: c.user, Grants: c.grants, MustSetUp: c.mustSetUp, Needed: needed}
}

// by names the caller in the timeline.
func (r *Request) by() string { return r.caller.name }

// requestKey is where the HTTP libraries carry a request from one middleware to the next. Nothing behind the middlewares
// looks there.
type requestKey struct{}

// begin returns a context of the HTTP libraries that carries a request from nobody.
func begin(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestKey{}, newRequest(ctx, id))
}

// edgeOf returns the request that a context of the HTTP libraries carries, for a middleware to fill in.
func edgeOf(ctx context.Context) *Request {
	if r, ok := ctx.Value(requestKey{}).(*Request); ok {
		return r
	}
	return newRequest(ctx, "")
}

// requestOf returns the request that a context of the HTTP libraries carries, as one with that context.
func requestOf(ctx context.Context) *Request { return edgeOf(ctx).with(ctx) }

// requestStore shows each request its part of the inventory.
type requestStore interface {
	Read(req *Request, fn func(inventory.Tx) error) error
	Write(req *Request, fn func(inventory.Tx) error) error
}

// savedBy says who saves something now.
func savedBy(req *Request) inventory.Saved {
	c := req.caller
	return inventory.Saved{SavedBy: c.name, SavedByAdmin: c.grants.Everywhere() == inventory.Admin}
}

func isAdminEverywhere(req *Request) bool {
	return req.caller.grants.Everywhere().Allows(inventory.Admin)
}

// sourceKey counts an IPv6 network as one source.
func sourceKey(a netip.Addr) netip.Addr {
	if a.Is6() {
		if p, err := a.Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return a
}
