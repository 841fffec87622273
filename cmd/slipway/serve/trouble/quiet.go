package trouble

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
)

const (
	quietFor = time.Minute
	// quietN bounds how many different records are remembered.
	quietN = 256
)

// Quiet passes log records on. While the database is away, parts of the server warn several times a second that they cannot work. Quiet
// passes the first of such warnings, and then one a minute with the number of those that it left out.
func Quiet(to slog.Handler) slog.Handler {
	return quiet{to, &said{last: map[string]*saying{}, now: time.Now}}
}

type quiet struct {
	slog.Handler
	said *said
}

// said remembers what was said in the last minute.
type said struct {
	mu   sync.Mutex
	last map[string]*saying
	now  func() time.Time
}

type saying struct {
	at   time.Time
	left int // out since then
}

// Handle implements slog.Handler.
func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	key := ""
	r.Attrs(func(a slog.Attr) bool {
		if err, ok := a.Value.Any().(error); ok && inventory.IsKind(err, inventory.Unavailable) {
			key = r.Message + "\n" + err.Error()
		}
		return key == ""
	})
	if key == "" || r.Level != slog.LevelWarn {
		return q.Handler.Handle(ctx, r)
	}
	leftN, passes := q.said.again(key)
	if !passes {
		return nil
	}
	if leftN > 0 {
		r.AddAttrs(slog.Int("repeated", leftN))
	}
	return q.Handler.Handle(ctx, r)
}

// again reports whether a record passes, and how many of its kind were left out before.
func (s *said) again(key string) (leftN int, passes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	was, isKnown := s.last[key]
	if isKnown && now.Sub(was.at) < quietFor {
		was.left++
		return 0, false
	}
	if isKnown {
		leftN = was.left
	} else if len(s.last) >= quietN {
		clear(s.last)
	}
	s.last[key] = &saying{at: now}
	return leftN, true
}

// WithAttrs implements slog.Handler.
func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quiet{q.Handler.WithAttrs(attrs), q.said}
}

// WithGroup implements slog.Handler.
func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.Handler.WithGroup(name), q.said} }
