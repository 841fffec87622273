package web

import (
	"context"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"slipway.dev/slipway/web/access"
	"slipway.dev/slipway/web/rest"
)

// guarded asks for a role on a route that is no operation of the API description. Such routes are read. Where the connection
// lasts, it looks every so often whether the caller may still be there.
func guarded(every time.Duration, o rest.Operation, next echo.HandlerFunc) echo.HandlerFunc {
	o.Method = http.MethodGet
	return func(c echo.Context) error {
		req := rest.EdgeOf(c.Request().Context())
		if err := rest.Permit(req, o); err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(c.Request().Context())
		defer cancel()
		if isLasting(c.Request()) {
			defer access.WhileIn(req.With(ctx), every, cancel)()
		}
		c.SetRequest(c.Request().WithContext(ctx))
		return next(c)
	}
}

// isLasting reports whether a request goes on for as long as both sides like.
func isLasting(r *http.Request) bool { return r.Header.Get("Upgrade") != "" }
