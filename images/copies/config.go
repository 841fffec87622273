package copies

import (
	"context"
	"io"
	"log/slog"
	"os"
	"time"

	"slipway.dev/slipway/inventory"
)

// Peers are the other instances of the database, by their names.
type Peers interface {
	// Live returns those that live.
	Live(ctx context.Context) ([]string, error)
	// Fetch returns the content of a file from offset on; the caller closes it. NotFound says that the instance lacks the file.
	Fetch(ctx context.Context, name string, d inventory.Digest, offset int64) (io.ReadCloser, error)
	// Bring has an instance fetch a file. It returns within seconds, with what is there by then.
	Bring(ctx context.Context, name string, f File) (Arrived, error)
	// Lacking returns which of these files an instance lacks.
	Lacking(ctx context.Context, name string, of []inventory.Digest) ([]inventory.Digest, error)
}

// File is a file by its content.
type File struct {
	Digest    inventory.Digest `json:"digest"`
	SizeBytes int64            `json:"sizeBytes"`
}

// Arrived is how much of a file an instance has.
type Arrived struct {
	Bytes   int64 `json:"bytes"`
	IsWhole bool  `json:"isWhole"` // and checked
}

// Cache is the folder of this instance: images.Cache.
type Cache interface {
	Open(d inventory.Digest) (*os.File, inventory.Artefact, error)
	PartialDir() string
	CheckSpace(need int64) error
	Keep(ctx context.Context, temp string, d inventory.Digest, size int64) error
}

// Config holds what Copies need. Cache, Store, Peers, Now and Log are required.
type Config struct {
	Cache Cache
	Store inventory.Store
	Peers Peers
	Now   func() time.Time
	Log   *slog.Logger

	StallFor time.Duration // an instance that sends less than 256 KiB in this time is left for the next: 20 s
	WaitFor  time.Duration // Open and Bring wait so long for a file that comes: 2 s
	AgainFor time.Duration // after a failure, Open and Bring do not ask the others again for so long: 5 s
	GoneFor  time.Duration // Share gives an instance up that does not answer for so long: 10 s
}

func (f File) check() error {
	if _, err := inventory.ParseDigest(string(f.Digest)); err != nil {
		return err
	}
	if f.SizeBytes <= 0 {
		return inventory.Errorf(inventory.Invalid, "a file of %d bytes cannot be fetched", f.SizeBytes)
	}
	return nil
}
