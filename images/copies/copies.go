// Package copies keeps the files of images on all instances of a database: each instance fetches from the others what it lacks, by digest.
//
// Nobody gets a byte of such a file before all of it is here and its SHA-256 is right. The bytes go to a file in partial/, which package
// images takes in afterwards. Meanwhile the listeners ask machines to wait. Any instance may send any part of a file.
//
// Start reading at Copies.Open, which the listeners call. arrival.go fetches one file. share.go gives a new file to the others, and mend.go
// looks for what is missing here.
package copies

import (
	"cmp"
	"context"
	"os"
	"sync"
	"time"

	"slipway.dev/slipway/images"
	"slipway.dev/slipway/inventory"
)

// Copies fetch files. Many goroutines may use them. Close ends what runs.
type Copies struct {
	cfg   Config
	life  context.Context // of all fetches: they outlive the request that began them
	end   context.CancelFunc
	works sync.WaitGroup
	room  chan struct{} // a place for each fetch that runs

	mu      sync.Mutex
	running map[inventory.Digest]*arrival
	failed  map[inventory.Digest]failure // registered files only, of the last seconds
}

// failure is why a file did not come.
type failure struct {
	at  time.Time
	err error
}

// fetches is how many files come at the same time. Others wait: more at once would make each of them later.
const fetches = 4

// New returns Copies.
func New(cfg Config) *Copies {
	cfg.StallFor = cmp.Or(cfg.StallFor, 20*time.Second)
	cfg.WaitFor = cmp.Or(cfg.WaitFor, 2*time.Second)
	cfg.AgainFor = cmp.Or(cfg.AgainFor, 5*time.Second)
	cfg.GoneFor = cmp.Or(cfg.GoneFor, 10*time.Second)
	c := &Copies{
		cfg: cfg, room: make(chan struct{}, fetches),
		running: map[inventory.Digest]*arrival{}, failed: map[inventory.Digest]failure{},
	}
	c.life, c.end = context.WithCancel(context.Background())
	return c
}

// Close ends all fetches. The next fetch of a file goes on behind the bytes that are here.
func (c *Copies) Close() {
	c.end()
	c.works.Wait()
}

// Open opens a file. One that is not here is fetched from another instance, if the store knows it. Open waits for small files. The error
// is Unavailable while a large one comes.
func (c *Copies) Open(d inventory.Digest) (*os.File, inventory.Artefact, error) {
	f, a, err := c.cfg.Cache.Open(d)
	if !inventory.IsKind(err, inventory.NotFound) {
		return f, a, err
	}
	missing := err
	if err := c.recent(d); err != nil {
		return nil, a, err
	}
	// The file has been given to a boot, so the store knows it. Its size bounds what an instance may send.
	err = c.cfg.Store.Read(c.life, func(tx inventory.Tx) error {
		a, err = tx.FindArtefact(d)
		return err
	})
	if inventory.IsKind(err, inventory.NotFound) {
		return nil, a, missing
	}
	if err != nil {
		return nil, a, err
	}
	x := c.start(File{d, a.SizeBytes}, missing)
	if !x.wait(c.life, c.cfg.WaitFor) {
		return nil, a, inventory.Errorf(inventory.Unavailable, "the file comes from another instance of Slipway: %s of %s are here",
			images.FormatBytes(x.bytes.Load()), images.FormatBytes(a.SizeBytes)).WithHint("it is sent when it is whole and checked")
	}
	if x.err != nil {
		return nil, a, x.err
	}
	return c.cfg.Cache.Open(d)
}

// Bring fetches a file for another instance, which knows its size. It returns when the file is whole, or after WaitFor.
func (c *Copies) Bring(ctx context.Context, f File) (Arrived, error) {
	if err := f.check(); err != nil {
		return Arrived{}, err
	}
	if c.has(f) {
		return Arrived{f.SizeBytes, true}, nil
	}
	if err := c.recent(f.Digest); err != nil {
		return Arrived{}, err
	}
	x := c.start(f, nil)
	if !x.wait(ctx, c.cfg.WaitFor) {
		return Arrived{Bytes: x.bytes.Load()}, ctx.Err()
	}
	return Arrived{x.bytes.Load(), x.err == nil}, x.err
}

// has reports whether a file of that size is here. Its content was checked when it came; package images checks it again now and then.
func (c *Copies) has(f File) bool {
	file, a, err := c.cfg.Cache.Open(f.Digest)
	if err != nil {
		return false
	}
	file.Close()
	return a.SizeBytes == f.SizeBytes
}

// Lacking returns which of these files are not here.
func (c *Copies) Lacking(of []inventory.Digest) (lacking []inventory.Digest) {
	for _, d := range of {
		file, _, err := c.cfg.Cache.Open(d)
		if err != nil {
			lacking = append(lacking, d)
			continue
		}
		file.Close()
	}
	return lacking
}

// recent returns why a file did not come some seconds ago. A machine asks several times a second, and the other instances need not hear
// each time.
func (c *Copies) recent(d inventory.Digest) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for d, f := range c.failed {
		if c.cfg.Now().Sub(f.at) >= c.cfg.AgainFor {
			delete(c.failed, d)
		}
	}
	return c.failed[d].err
}

// start begins to fetch a file, or returns the fetch that runs. missing is the error for a file that no instance has; nil: one of its own.
func (c *Copies) start(f File, missing error) *arrival {
	c.mu.Lock()
	defer c.mu.Unlock()
	if x, ok := c.running[f.Digest]; ok {
		return x
	}
	x := &arrival{cfg: &c.cfg, room: c.room, file: f, missing: missing, done: make(chan struct{})}
	c.running[f.Digest] = x
	c.works.Go(func() {
		x.err = x.run(c.life)
		c.mu.Lock()
		delete(c.running, f.Digest)
		if x.err != nil {
			c.failed[f.Digest] = failure{c.cfg.Now(), x.err}
		}
		c.mu.Unlock()
		close(x.done) // after the fetch has left the table: who wakes up may begin another
	})
	return x
}
