package rest

import (
	"context"
	"net/http"
	"net/netip"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/ref"
	"slipway.dev/slipway/web/scoped"
)

// Request is one request: who sent it, which role its operation needs, and what the audit will say about it. Handlers and
// all that they call get it as an argument. It is a context as well: a function that only has to stop when the client goes
// takes it as one.
type Request struct {
	context.Context
	ID     string // names it in its answer and in the log
	Caller Caller
	Needed inventory.UserRole // by the operation; "" until it is known
	Trail  *Trail             // never nil; what only reads has one that nobody writes
	Named  *ref.Book          // what the texts name that the answer may be made of
}

// Caller is who sent a request.
type Caller struct {
	Name    string // "user NAME", "token NAME", or "USER (local)"
	IsLocal bool   // came through the Unix socket
	Via     string // ViaLogin, ViaToken or ViaSocket
	User    string // the user's name; "" for a token without owner and for the socket
	Token   string // the token's name; "" without one
	Login   string // the login's id; "" without one
	Grants  inventory.Grants
	// Cluster is the UID of the cluster whose controllers ask, and Namespaces those that they speak for; such a caller has no
	// grants, and is let in by operations that are ForClusters only.
	Cluster    string
	Namespaces []string
	// MustSetUp: a second factor comes before anything else; until then there are no grants.
	MustSetUp bool
	Source    netip.Addr // zero for the socket
	Secure    bool       // the client's own connection is encrypted
	// Again finds the caller once more, for what lasts long; nil where nothing can change.
	Again func(ctx context.Context) (Caller, error)
}

// Anybody, as what an operation needs, is anyone who is logged in, also without any role.
const Anybody inventory.UserRole = "anybody"

// The ways to come in.
const (
	ViaLogin  = "login"
	ViaToken  = "token"
	ViaSocket = "socket"
)

// Role is the most that the caller may do anywhere.
func (c Caller) Role() inventory.UserRole { return c.Grants.Highest() }

// NewRequest returns a request from nobody.
func NewRequest(ctx context.Context, id string) *Request {
	return &Request{Context: ctx, ID: id, Trail: &Trail{isWritten: true}, Named: &ref.Book{}}
}

// With returns the same request with another context: another time limit, or none.
func (r *Request) With(ctx context.Context) *Request {
	other := *r
	other.Context = ctx
	return &other
}

// EnteredAs returns the same request with an entry of its own in the audit.
func (r *Request) EnteredAs(row inventory.Audit) *Request {
	other := *r
	other.Trail = &Trail{row: row, success: http.StatusOK}
	return &other
}

// Detached returns the same request as one that goes on when the client goes.
func (r *Request) Detached() *Request { return r.With(context.WithoutCancel(r)) }

// needing returns the same request as one that needs another role.
func (r *Request) needing(role inventory.UserRole) *Request {
	other := *r
	other.Needed = role
	return &other
}

// Within is the caller as the inventory is shown to it, in an operation.
func (r *Request) Within() scoped.Caller {
	c, needed := r.Caller, r.Needed
	if needed == "" || needed == Anybody {
		needed = inventory.Viewer
	}
	return scoped.Caller{User: c.User, Grants: c.Grants, MustSetUp: c.MustSetUp, Needed: needed, Named: r.Named}
}

// By names the caller in the timeline.
func (r *Request) By() string { return r.Caller.Name }

// requestKey is where the HTTP libraries carry a request from one middleware to the next. Nothing behind the middlewares
// looks there.
type requestKey struct{}

// Begin returns a context of the HTTP libraries that carries a request from nobody.
func Begin(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestKey{}, NewRequest(ctx, id))
}

// EdgeOf returns the request that a context of the HTTP libraries carries, for a middleware to fill in.
func EdgeOf(ctx context.Context) *Request {
	if r, ok := ctx.Value(requestKey{}).(*Request); ok {
		return r
	}
	return NewRequest(ctx, "")
}

// RequestOf returns the request that a context of the HTTP libraries carries, as one with that context.
func RequestOf(ctx context.Context) *Request { return EdgeOf(ctx).With(ctx) }

// Store shows each request its part of the inventory.
type Store interface {
	Read(req *Request, fn func(inventory.Tx) error) error
	Write(req *Request, fn func(inventory.Tx) error) error
}

// Read returns what fn finds on a snapshot of a store.
func Read[T any](req *Request, s Store, fn func(inventory.Tx) (T, error)) (found T, err error) {
	err = s.Read(req, func(tx inventory.Tx) error {
		found, err = fn(tx)
		return err
	})
	return found, err
}

// SavedBy says who saves something now.
func SavedBy(req *Request) inventory.Saved {
	c := req.Caller
	return inventory.Saved{SavedBy: c.Name, SavedByAdmin: c.Grants.Everywhere() == inventory.Admin}
}

// IsAdminEverywhere reports whether the caller is an admin of everything.
func IsAdminEverywhere(req *Request) bool {
	return req.Caller.Grants.Everywhere().Allows(inventory.Admin)
}
