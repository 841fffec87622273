package files

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"slipway.dev/slipway/cmd/slipway/doctor"
	"slipway.dev/slipway/images"
	"slipway.dev/slipway/images/copies"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sleep"
)

// WatchConfig is what a Watch needs.
type WatchConfig struct {
	Cache  *images.Cache
	Copies *copies.Copies // nil: there are no other instances
	Store  inventory.Store
	Leads  func() bool   // this instance keeps the issues
	Every  time.Duration // how often it looks
	Within time.Duration // each file is hashed
	Log    *slog.Logger
}

// Watch looks after the files of images on this instance, and knows what is wrong with them.
type Watch struct {
	cfg    WatchConfig
	faults atomic.Pointer[[]images.Fault]
	alone  atomic.Pointer[Alone]
}

// Alone is the files of images that no other instance has, although another lives.
type Alone struct {
	Images []string // that need them
	Reason string   // why the others lack them, as far as that is known
}

// againFor is the time after which missing files are asked for again. At a start this instance does not know yet which others live.
const againFor = 5 * time.Second

// NewWatch returns a Watch.
func NewWatch(cfg WatchConfig) *Watch { return &Watch{cfg: cfg} }

// Faults returns what the last look has found; none before the first has ended.
func (w *Watch) Faults() []images.Fault {
	if faults := w.faults.Load(); faults != nil {
		return *faults
	}
	return nil
}

// Alone returns what the last look has found.
func (w *Watch) Alone() Alone {
	if a := w.alone.Load(); a != nil {
		return *a
	}
	return Alone{}
}

// Serve checks that the files of images are there, hashes each of them within Within, and fetches what is missing or damaged from other
// instances.
func (w *Watch) Serve(ctx context.Context) error {
	watch := w.cfg.Cache.Watch()
	for {
		now := time.Now()
		// Hashing all files at once would read terabytes at each start. Each look takes those whose turn it is.
		faults, err := watch.Look(ctx, now, now.Add(-w.cfg.Within))
		if err == nil && w.cfg.Copies != nil {
			faults = w.cfg.Copies.Mend(ctx, faults)
			err = w.besides(ctx)
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			// The last result stays in force until a look succeeds.
			w.cfg.Log.Warn("artefacts not checked", "err", err)
		default:
			w.faults.Store(&faults)
		}
		again := w.cfg.Every
		if w.cfg.Copies != nil && len(faults) > 0 {
			again = min(again, againFor)
		}
		if sleep.For(ctx, again) != nil {
			return nil
		}
	}
}

// besides does what one instance of several does: it removes what another has pruned. The leader looks for files that it alone has.
func (w *Watch) besides(ctx context.Context) error {
	if err := w.cfg.Cache.TidyUp(ctx); err != nil {
		return err
	}
	if !w.cfg.Leads() {
		return nil
	}
	var all []inventory.Image
	err := w.cfg.Store.Read(ctx, func(tx inventory.Tx) (err error) {
		all, err = tx.Images().List(inventory.Page{})
		return err
	})
	if err != nil {
		return fmt.Errorf("read images: %w", err)
	}
	var digests []inventory.Digest
	for _, i := range all {
		for _, f := range i.Files {
			digests = append(digests, f.Digest)
		}
	}
	slices.Sort(digests)
	lacking, why := w.cfg.Copies.Alone(ctx, slices.Compact(digests))
	a := Alone{}
	for _, i := range all {
		if slices.ContainsFunc(i.Files, func(f inventory.ImageArtefact) bool { return slices.Contains(lacking, f.Digest) }) {
			a.Images = append(a.Images, i.Name)
		}
	}
	if why != nil {
		a.Reason = why.Error()
	}
	w.alone.Store(&a)
	return nil
}

// Check says whether the files of images are there: all that is known to be damaged, and those that went since
// the last check.
func (w *Watch) Check(ctx context.Context) doctor.Check {
	n, bytes, faults, err := w.cfg.Cache.Glance(ctx)
	if err != nil {
		return doctor.Check{Name: "artefacts", Status: doctor.Failed, Detail: "cannot be read: " + err.Error()}
	}
	for _, f := range w.Faults() {
		if !slices.ContainsFunc(faults, func(g images.Fault) bool { return g.Digest == f.Digest }) {
			faults = append(faults, f)
		}
	}
	return doctor.Artefacts(n, bytes, faults)
}
