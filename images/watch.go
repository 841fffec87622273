package images

import (
	"context"
	"os"
	"time"

	"slipway.dev/slipway/inventory"
)

// Watch checks the files of artefacts while they are in use. One goroutine uses it.
type Watch struct {
	cache *Cache
	seen  map[inventory.Digest]sighting
}

// sighting is how a file was when it was hashed last.
type sighting struct {
	size     int64 // -1: not there
	at       time.Time
	lookedAt time.Time
	problem  string
}

// isAs reports whether a file still is as it was seen.
func (s sighting) isAs(info os.FileInfo) bool {
	if info == nil {
		return s.size < 0
	}
	return s.size == info.Size() && s.at.Equal(info.ModTime())
}

// Watch returns a watch over the registered artefacts.
func (c *Cache) Watch() *Watch {
	return &Watch{cache: c, seen: map[inventory.Digest]sighting{}}
}

// Glance returns the number of artefacts that the images use, their bytes, and those that are missing or have a wrong
// size. It hashes only those with a wrong size.
func (c *Cache) Glance(ctx context.Context) (n int, bytes int64, faults []Fault, err error) {
	w := c.Watch()
	if faults, err = w.Look(ctx, time.Time{}, time.Time{}); err != nil {
		return 0, 0, nil, err
	}
	for _, s := range w.seen {
		n, bytes = n+1, bytes+max(0, s.size)
	}
	return n, bytes, faults, nil
}

// Look returns the artefacts in use that are missing or damaged. It hashes each file whose size or time has changed
// since its last hash. Of the others it hashes the one with the oldest hash, if that is older than olderThan. So it
// finds bits that a disk lost without a trace, and a call costs at most one file that looks unchanged.
func (w *Watch) Look(ctx context.Context, now, olderThan time.Time) ([]Fault, error) {
	artefacts, users, err := w.cache.registered(ctx)
	if err != nil {
		return nil, err
	}
	var oldest *inventory.Artefact
	seen := map[inventory.Digest]sighting{}
	for i, a := range artefacts {
		if len(users[a.Digest]) == 0 {
			continue
		}
		old, known := w.seen[a.Digest]
		info, _ := os.Stat(w.cache.path(a.Digest)) // why it cannot be read, examine says
		if !known && info != nil && info.Size() == a.SizeBytes {
			old, known = sighting{size: info.Size(), at: info.ModTime()}, true // it was right when it came; its turn comes
		}
		if known && old.isAs(info) {
			seen[a.Digest] = old
			if oldest == nil || old.lookedAt.Before(seen[oldest.Digest].lookedAt) {
				oldest = &artefacts[i]
			}
			continue
		}
		if seen[a.Digest], err = w.hash(ctx, a, now); err != nil {
			return nil, err
		}
	}
	if oldest != nil && seen[oldest.Digest].lookedAt.Before(olderThan) {
		if seen[oldest.Digest], err = w.hash(ctx, *oldest, now); err != nil {
			return nil, err
		}
	}
	w.seen = seen
	return w.faults(artefacts, users), nil
}

// hash looks at one file.
func (w *Watch) hash(ctx context.Context, a inventory.Artefact, now time.Time) (s sighting, err error) {
	s = sighting{size: -1, lookedAt: now}
	if info, err := os.Stat(w.cache.path(a.Digest)); err == nil {
		s.size, s.at = info.Size(), info.ModTime()
	}
	s.problem, err = w.cache.examine(ctx, a)
	return s, err
}

func (w *Watch) faults(artefacts []inventory.Artefact, users map[inventory.Digest][]string) (faults []Fault) {
	for _, a := range artefacts {
		if s := w.seen[a.Digest]; s.problem != "" {
			faults = append(faults, Fault{Digest: a.Digest, Problem: s.problem, Images: users[a.Digest], Hint: "import the image again; it came from " + a.Source})
		}
	}
	return faults
}
