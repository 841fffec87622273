package history

import (
	"context"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/watch"
	"slipway.dev/slipway/web/rest"
)

// Config is what a Server needs.
type Config struct {
	Frame  *rest.Frame
	Engine Engine
}

// Server answers these requests.
type Server struct {
	cfg  Config
	rest *rest.Frame
	pace pace
}

// Engine is what the engine knows of operations.
type Engine interface {
	Expects(tx inventory.Tx, h inventory.Host) (*watch.Expected, error)
	CancelOperation(ctx context.Context, id string, who ledger.Asker) (inventory.Operation, error)
}
