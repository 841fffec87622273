package events

import (
	"context"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/rest"
)

// Config is what a Server needs.
type Config struct {
	Frame  *rest.Frame
	Events Events
	Logs   Logs            // of machines; nil: they are in the events
	Life   context.Context // ends with the server: streams stop
	// Conceal takes the names that the caller may not know out of events.
	Conceal func(req *rest.Request, rows []inventory.Event) error

	HeartbeatFor time.Duration // sign of life on a quiet stream
	WriteFor     time.Duration // a client that takes no bytes for so long is cut
}

// Server answers these requests.
type Server struct {
	cfg     Config
	rest    *rest.Frame
	streams *rest.Shares
}

// Events is the stream of committed events.
type Events interface {
	Subscribe(after int64, f inventory.EventFilter) (<-chan inventory.Event, func(), error)
}

// Logs are what machines logged, by what an event says of it.
type Logs interface {
	// Text returns a log. If it is not found, away names instances that may have it, and do not answer; "" if there are none.
	Text(ctx context.Context, ref string) (text, away string, ok bool)
}

// Event streams that are open at the same time, of all callers and of each. The hub has room for more: the server listens, too.
const (
	streamsMax  = 512
	streamsEach = 64
)
