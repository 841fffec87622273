package files

import (
	"context"
	"io"
	"sync"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/rest"
)

// Config is what a Server needs.
type Config struct {
	Frame     *rest.Frame
	Backups   Backups         // nil: no backup can be taken
	Life      context.Context // ends with the server: a backup that is being sent stops
	NewHostID func() inventory.HostID
	Engine    Holder // nil: nobody keeps addresses
}

// Server answers these requests.
type Server struct {
	cfg     Config
	rest    *rest.Frame
	backing sync.Mutex // held while a backup is taken
}

// Holder keeps the addresses and names that a host would have, and refuses those of somebody else.
type Holder interface {
	HoldHost(tx inventory.Tx, id inventory.HostID) error
}

// Backups makes copies of the database while the server works.
type Backups interface {
	// Backup makes one that is ready to be sent. Its Close must be called.
	Backup(ctx context.Context) (Backup, error)
	// BackupSpace returns how large the database is, and how many bytes are free where a copy of it lies while it is sent.
	BackupSpace(ctx context.Context) (databaseBytes, freeBytes int64, err error)
}

// Backup is a backup that is ready to be sent.
type Backup interface {
	Name() string // of the file
	Write(w io.Writer) error
	Close()
}
