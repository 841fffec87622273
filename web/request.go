package web

import (
	"context"

	"slipway.dev/slipway/inventory"
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

// detached returns the same request as one that goes on when the client goes.
func (r *Request) detached() *Request { return r.with(context.WithoutCancel(r)) }

// needing returns the same request as one that needs another role.
func (r *Request) needing(role inventory.UserRole) *Request {
	other := *r
	other.needed = role
	return &other
}

// by names the caller in the timeline.
func (r *Request) by() string { return r.caller.name }

// requestKey is where the HTTP libraries carry a request from one middleware to the next. Nothing behind the middlewares
// looks there.
type requestKey struct{}

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
