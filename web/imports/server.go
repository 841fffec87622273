package imports

import (
	"context"
	"io"

	"slipway.dev/slipway/images"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/rest"
)

// Config is what a Server needs.
type Config struct {
	Frame     *rest.Frame
	Jobs      Jobs
	Artefacts Artefacts
	Catalogue []images.Entry
	Life      context.Context // ends with the server: long waits stop
}

// Server answers these requests.
type Server struct {
	cfg  Config
	rest *rest.Frame
}

// Jobs is the image imports.
type Jobs interface {
	Start(r images.ImportRequest) (images.Job, error)
	List() []images.Job
	Next(ctx context.Context, id string, revision int64) (images.Job, error)
	Cancel(id string) error
	Retry(id string, allowLocal, isAdmin bool) (images.Job, error)
}

// Artefacts looks after the artefact folder.
type Artefacts interface {
	Verify(ctx context.Context) ([]images.Fault, error)
	Prune(ctx context.Context, isDryRun bool) (images.Pruned, error)
	Take(ctx context.Context, in io.Reader, name string, size int64) (inventory.Artefact, error)
}
