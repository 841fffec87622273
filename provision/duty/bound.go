package duty

import "context"

// bound is the duty that work belongs to, in the epoch in which it was begun. It travels in the context, because the functions between the
// start of a work and its writes know nothing of duties.
type bound struct {
	duty  string
	epoch int64
}

// boundKey is the key of a bound in a context.
type boundKey struct{}

func bind(ctx context.Context, b bound) context.Context { return context.WithValue(ctx, boundKey{}, b) }

func boundOf(ctx context.Context) (b bound, ok bool) {
	b, ok = ctx.Value(boundKey{}).(bound)
	return b, ok
}
