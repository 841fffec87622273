package consoles

import (
	"context"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/power"
	"slipway.dev/slipway/web/rest"
)

// Config is what a Server needs.
type Config struct {
	Frame       *rest.Frame
	Store       inventory.Store // the whole: the server records consoles for itself
	Power       *power.Server
	Events      Events          // nil: nothing is recorded
	Life        context.Context // ends with the server
	IsRecording bool            // consoles are kept open while something is done with their hosts

	HeartbeatFor time.Duration // sign of life of a quiet console
	WriteFor     time.Duration // a client that takes no bytes for so long is cut
}

// Consoles that are open at the same time, of all callers and of each.
const (
	consolesMax  = 64
	consolesEach = 24
)

// Server answers these requests.
type Server struct {
	cfg    Config
	rest   *rest.Frame
	shares *rest.Shares
	lines  *lines
}

// Forget drops what was recorded of a host.
func (s *Server) Forget(id inventory.HostID) { s.lines.forget(id) }

// Wait returns when no console is open any more. They end with Life.
func (s *Server) Wait() { s.lines.running.Wait() }

// Events is the stream of committed events.
type Events interface {
	Subscribe(after int64, f inventory.EventFilter) (<-chan inventory.Event, func(), error)
}

// Open is how many callers look at consoles.
func (s *Server) Open() int { return s.shares.Len() }
