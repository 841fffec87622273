package access

import (
	"slices"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/rest"
)

// WhileIn ends something that lasts when its caller has logged out meanwhile, or may do less than before. It asks
// once in every. The function that it returns stops asking.
func WhileIn(req *rest.Request, every time.Duration, end func()) (stop func()) {
	done, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		look := time.NewTicker(every)
		defer look.Stop()
		for {
			select {
			case <-done:
				return
			case <-req.Done():
				return
			case <-look.C:
				if !StillIn(req) {
					end()
					return
				}
			}
		}
	}()
	return func() {
		close(done)
		// The goroutine uses req, which is not good any more after the handler has returned.
		<-gone
	}
}

// StillIn finds out again who the caller is. A failure of the database counts as yes for the moment: a full disk must not cut
// all consoles and streams at once. Any change of the roles ends it; the client asks again with the new ones.
func StillIn(req *rest.Request) bool {
	c := req.Caller
	if c.Again == nil {
		return true
	}
	// Again reads the store: the token, the login or the user may be gone since the request began.
	now, err := c.Again(req)
	if err != nil {
		return !inventory.IsKind(err, inventory.Unauthorized)
	}
	return slices.Equal(now.Grants, c.Grants) && now.Cluster == c.Cluster && slices.Equal(now.Namespaces, c.Namespaces)
}
