package invite

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/netip"
	"time"

	"slipway.dev/slipway/cmd/slipway/serve/peer"
	"slipway.dev/slipway/inventory"
)

const (
	pathJoin = "/join"                  // for new machines
	pathPass = "/invitations/hand-over" // for instances that pass a request on

	mostBody = 4 << 10
	bodyFor  = 5 * time.Second
)

// passed is a request that another instance has received.
type passed struct {
	Source  netip.Addr `json:"source"`
	Request Request    `json:"request"`
}

// Answerer answers new machines at the link. Anybody may ask it, so it bounds what it reads and how many it serves.
type Answerer struct {
	// Book returns the invitations, nil if this instance is not the leader.
	Book func() *Book
	// Leader returns the address of the leader's link.
	Leader func() (link string, ok bool)
	Client *peer.Client

	places places
}

// Register adds the questions to what the link answers.
func (a *Answerer) Register(link interface {
	Handle(string, http.Handler)
	HandleAll(string, http.Handler)
},
) {
	link.HandleAll("POST "+pathJoin, http.HandlerFunc(a.join))
	link.Handle("POST "+pathPass, peer.Handler(func(ctx context.Context, p passed) (HandOver, error) {
		book := a.Book()
		if book == nil {
			return HandOver{}, errNoLeader()
		}
		return book.HandOver(ctx, p.Source, p.Request)
	}))
}

func errNoLeader() error {
	return inventory.Errorf(inventory.Unavailable, "no instance has the engine at the moment").WithHint("try again in some seconds")
}

// join answers a new machine.
func (a *Answerer) join(w http.ResponseWriter, r *http.Request) {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		peer.SendError(w, inventory.Errorf(inventory.Internal, "the connection has no address: %w", err))
		return
	}
	source, c := at.Addr().Unmap(), http.NewResponseController(w)
	busy := inventory.Errorf(inventory.Unavailable, "too many machines ask to become instances").WithHint("try again in some seconds")
	p := a.places.enter(source, func() { _ = c.SetReadDeadline(time.Now()) })
	if p == nil {
		peer.SendError(w, busy)
		return
	}
	defer a.places.leave(p)
	// Without it, a stranger who sends nothing would keep a place for long.
	_ = c.SetReadDeadline(time.Now().Add(bodyFor))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostBody))
	if !a.places.arrived(p) { // another machine has the place
		peer.SendError(w, busy)
		return
	}
	if err != nil {
		peer.SendError(w, inventory.Errorf(inventory.Invalid, "the request cannot be read: %w", err))
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	peer.Handler(func(ctx context.Context, q Request) (HandOver, error) {
		if book := a.Book(); book != nil {
			return book.HandOver(ctx, source, q)
		}
		link, ok := a.Leader()
		if !ok {
			return HandOver{}, errNoLeader()
		}
		return peer.Call[HandOver](ctx, a.Client.HTTP, "https://"+link+pathPass, passed{source, q})
	}).ServeHTTP(w, r)
}
