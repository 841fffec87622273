package events

import (
	"cmp"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/scoped"
)

// ears decide which events a caller hears on a stream. Where roles are in pools, a stream looks each host up once and again
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
	key := cmp.Or(string(e.HostID), e.Subject)
	if k, ok := x.known[key]; ok && x.s.rest.Now().Sub(k.at) < heardFor {
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
	x.known[key] = hearing{ok, x.s.rest.Now()}
	return ok
}
