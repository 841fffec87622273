package web

import (
	"context"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/access"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/scoped"
)

// guarded asks for a role on a route that is no operation of the API description. Such routes are read.
func (s *Server) guarded(o rest.Operation, next echo.HandlerFunc) echo.HandlerFunc {
	o.Method = http.MethodGet
	return func(c echo.Context) error {
		req := rest.EdgeOf(c.Request().Context())
		if err := rest.Permit(req, o); err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(c.Request().Context())
		defer cancel()
		if isLasting(c.Request()) {
			defer access.WhileIn(req.With(ctx), s.cfg.HeartbeatFor, cancel)()
		}
		c.SetRequest(c.Request().WithContext(ctx))
		return next(c)
	}
}

// isLasting reports whether a request goes on for as long as both sides like.
func isLasting(r *http.Request) bool { return r.Header.Get("Upgrade") != "" }

// ears decide which events a caller hears on a stream. Where roles are in pools, each host is looked up once and again
// after a while: it may have moved.
type ears struct {
	s     *Server
	known map[string]hearing
}

type hearing struct {
	ok bool
	at time.Time
}

const (
	heardFor = 5 * time.Second
	heardMax = 10_000
)

// hears reports whether the caller of a request hears an event.
func (x *ears) hears(req *rest.Request, e inventory.Event) bool {
	if req.Caller.Grants.Everywhere().Allows(inventory.Viewer) {
		return true
	}
	key := string(e.HostID)
	if key == "" {
		key = e.Subject
	}
	if k, ok := x.known[key]; ok && x.s.cfg.Now().Sub(k.at) < heardFor {
		return k.ok
	}
	ok := false
	err := x.s.rest.Store.Read(req, func(tx inventory.Tx) (err error) {
		if t, isScoped := tx.(*scoped.Tx); isScoped {
			ok, err = t.SeesEvent(e)
		}
		return err
	})
	if err != nil {
		return false
	}
	if len(x.known) >= heardMax {
		clear(x.known)
	}
	x.known[key] = hearing{ok, x.s.cfg.Now()}
	return ok
}
