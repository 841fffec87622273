package images

import (
	"context"
	"crypto/sha256"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

// memStore keeps artefacts and images in memory, with the promises of inventory.Store that imports rely on.
type memStore struct {
	mu        sync.Mutex
	artefacts map[inventory.Digest]inventory.Artefact
	images    map[string]inventory.Image
	fail      error // what the next commit fails with
	writesN   int
}

func newMemStore() *memStore {
	return &memStore{artefacts: map[inventory.Digest]inventory.Artefact{}, images: map[string]inventory.Image{}}
}

func (s *memStore) Read(_ context.Context, fn func(inventory.Tx) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fn(&memTx{s: s})
}

func (s *memStore) Write(_ context.Context, fn func(inventory.Tx) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	artefacts, images := maps.Clone(s.artefacts), maps.Clone(s.images)
	err := fn(&memTx{s: s})
	if err == nil {
		err, s.fail = s.fail, nil
	}
	if err != nil {
		s.artefacts, s.images = artefacts, images
	}
	s.writesN++
	return err
}

// memTx panics through its nil interface on whatever imports have no business with.
type memTx struct {
	inventory.Tx
	s *memStore
}

func (t *memTx) FindArtefact(d inventory.Digest) (inventory.Artefact, error) {
	if a, ok := t.s.artefacts[d]; ok {
		return a, nil
	}
	return inventory.Artefact{}, inventory.Errorf(inventory.NotFound, "no artefact %s", d)
}

func (t *memTx) ListArtefacts(inventory.Page) ([]inventory.Artefact, error) {
	return slices.Collect(maps.Values(t.s.artefacts)), nil
}

func (t *memTx) SaveArtefact(a inventory.Artefact) error {
	t.s.artefacts[a.Digest] = a
	return nil
}

func (t *memTx) DeleteArtefact(d inventory.Digest) error {
	for _, i := range t.s.images {
		for _, f := range i.Files {
			if f.Digest == d {
				return inventory.Errorf(inventory.Conflict, "image %s uses it", i.Name)
			}
		}
	}
	if _, ok := t.s.artefacts[d]; !ok {
		return inventory.Errorf(inventory.NotFound, "no artefact %s", d)
	}
	delete(t.s.artefacts, d)
	return nil
}

// memImages are the images of a memTx.
type memImages struct {
	inventory.Records[inventory.Image]
	*memTx
}

func (t *memTx) Images() inventory.Records[inventory.Image] { return memImages{memTx: t} }

func (t memImages) Find(name string) (inventory.Image, error) {
	if i, ok := t.s.images[name]; ok {
		return i, nil
	}
	return inventory.Image{}, inventory.Errorf(inventory.NotFound, "no image %s", name)
}

func (t memImages) List(inventory.Page) ([]inventory.Image, error) {
	return slices.Collect(maps.Values(t.s.images)), nil
}

func (t memImages) Create(i *inventory.Image, now time.Time) error {
	i.CreatedAt, i.UpdatedAt, i.Version = now, now, 1
	return t.put(i)
}

func (t memImages) Update(i *inventory.Image, now time.Time) error {
	if t.s.images[i.Name].Version != i.Version {
		return inventory.Errorf(inventory.Conflict, "image %s has changed", i.Name)
	}
	i.UpdatedAt = now
	i.Version++
	return t.put(i)
}

func (t *memTx) put(i *inventory.Image) error {
	for _, f := range i.Files {
		if _, ok := t.s.artefacts[f.Digest]; !ok {
			return inventory.Errorf(inventory.Invalid, "image %s: %s is not stored", i.Name, f.Digest)
		}
	}
	t.s.images[i.Name] = *i
	return i.Validate()
}

// fixture is a cache in a folder of its own.
type fixture struct {
	*Cache
	store *memStore
	dir   string
}

// newFixture opens a cache that retries at once and gives up a silent server soon.
func newFixture(t *testing.T, alter ...func(*Config)) fixture {
	t.Helper()
	f := fixture{store: newMemStore(), dir: filepath.Join(t.TempDir(), "artefacts")}
	f.Cache = openFixture(t, f.dir, f.store, alter...)
	return f
}

func openFixture(t *testing.T, dir string, store inventory.Store, alter ...func(*Config)) *Cache {
	t.Helper()
	catalogue, err := BuiltinCatalogue()
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Dir: dir, Store: store, Catalogue: catalogue, Now: time.Now, RetryFor: time.Microsecond, StallFor: 5 * time.Second, Checkpoint: 4096}
	for _, a := range alter {
		a(&cfg)
	}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// bytesOf returns n bytes that depend on the seed alone.
func bytesOf(seed uint64, n int) []byte {
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	b := make([]byte, n)
	if _, err := r.Read(b); err != nil {
		panic(err)
	}
	return b
}

func sumOf(b []byte) inventory.Digest {
	s := sha256.Sum256(b)
	return digestOf(s[:])
}

// wantError checks kind, a part of the message, and that there is a hint.
func wantError(t *testing.T, err error, kind inventory.Kind, part string) *inventory.Error {
	t.Helper()
	var e *inventory.Error
	if !errors.As(err, &e) {
		t.Fatalf("got error %v, want an inventory.Error about %q", err, part)
	}
	if e.Kind != kind || !strings.Contains(e.Msg, part) || e.Hint == "" {
		t.Fatalf("got %s %q with hint %q, want kind %s, a message with %q and a hint", e.Kind, e.Msg, e.Hint, kind, part)
	}
	return e
}

// wantNothing checks that neither store nor folder has anything.
func (f fixture) wantNothing(t *testing.T) {
	t.Helper()
	if len(f.store.artefacts)+len(f.store.images) > 0 {
		t.Errorf("registered in spite of the failure: %v %v", f.store.artefacts, f.store.images)
	}
	found, err := f.onDisk()
	if err != nil || len(found) > 0 {
		t.Errorf("in the folder in spite of the failure: %v %v", found, err)
	}
}

// wantArtefact checks that the folder holds exactly this content under its digest.
func (f fixture) wantArtefact(t *testing.T, content []byte) {
	t.Helper()
	file, a, err := f.Open(sumOf(content))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	got, err := os.ReadFile(file.Name())
	if err != nil || string(got) != string(content) || a.SizeBytes != int64(len(content)) {
		t.Fatalf("artefact has %d bytes (%v), want the %d that were published", len(got), err, len(content))
	}
	if _, ok := f.store.artefacts[a.Digest]; !ok {
		t.Errorf("artefact %s is not registered", a.Digest)
	}
}
