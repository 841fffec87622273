package system

import (
	"context"
	"time"

	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/wire"
)

// Config is what a Server needs.
type Config struct {
	Frame     *rest.Frame
	Version   string
	Instance  string // the name of this one; "" if there can be no other
	SelfCheck func(ctx context.Context) []wire.Check
	// Samples returns how busy the server was, as averages over step; nil: no samples are taken.
	Samples func(step time.Duration) []wire.Sample
	// Database says where the inventory is, and how that database is; nil: nobody asks.
	Database func() wire.Database
	TLS      TLSKeeper // of the certificate of the admin listener; nil: it speaks without TLS
	// RotateAuthority prepares the authority that comes after that of a listener, admin or boot, or puts it in force; nil: there is none.
	RotateAuthority func(ctx context.Context, door string, isFinish bool) error
}

// Server answers these requests.
type Server struct {
	cfg  Config
	rest *rest.Frame
}

// TLSKeeper has the certificate of the admin listener.
type TLSKeeper interface {
	TLSState() wire.TLSState
	// SetTLS checks and stores a certificate and its key, both PEM; they are in force at once.
	SetTLS(ctx context.Context, cert, key []byte) error
	// DropTLS takes what SetTLS stored away.
	DropTLS(ctx context.Context) error
}
