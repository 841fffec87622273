package instances

import (
	"context"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/duty"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/wire"
)

// Config is what a Server needs.
type Config struct {
	Frame       *rest.Frame
	Duties      Keeper  // nil: this server only describes itself
	Invitations Inviter // nil: nobody can become an instance
}

// Inviter lets machines become instances.
type Inviter interface {
	Invite(ctx context.Context, name, by string, life time.Duration) (wire.NewInvitation, error)
	Invitations() []wire.Invitation
	Withdraw(ctx context.Context, id string) (wire.Invitation, error)
}

// Keeper knows the instances of the database, and may change them. *duty.Keeper is one.
type Keeper interface {
	Roster(tx inventory.InstanceTx) (duty.Roster, error)
	Peer(tx inventory.InstanceTx, name string) (duty.Peer, error)
	Drain(tx inventory.Tx, name string, isDrained bool) (before, after inventory.Instance, err error)
	Forget(tx inventory.Tx, name string) (inventory.Instance, error)
}

// Server answers these requests.
type Server struct {
	cfg  Config
	rest *rest.Frame
}

// keeper returns the keeper of duties, if this server has one.
func (s *Server) keeper() (Keeper, error) {
	if s.cfg.Duties == nil {
		return nil, inventory.Errorf(inventory.Unavailable, "this server does not know the instances of its database")
	}
	return s.cfg.Duties, nil
}
