package images

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
)

// Fault is an artefact that differs from its record in the store.
type Fault struct {
	Digest inventory.Digest `json:"digest"`
	// Problem is missing, damaged or unreadable.
	Problem string   `json:"problem"`
	Images  []string `json:"images,omitempty"` // that use it
	Hint    string   `json:"hint"`
}

// Verify hashes every registered artefact again and returns the missing and damaged ones, by digest. It reads the
// whole folder, which takes minutes; Watch spreads that over time. An error means that the store or ctx ended it.
func (c *Cache) Verify(ctx context.Context) ([]Fault, error) {
	artefacts, users, err := c.registered(ctx)
	if err != nil {
		return nil, err
	}
	var faults []Fault
	for _, a := range artefacts {
		problem, err := c.examine(ctx, a)
		if err != nil {
			return nil, err
		}
		if problem != "" {
			faults = append(faults, Fault{
				Digest: a.Digest, Problem: problem, Images: users[a.Digest],
				Hint: "import the image again; it came from " + a.Source,
			})
		}
	}
	return faults, nil
}

// examine returns what is wrong with an artefact, "" for nothing.
func (c *Cache) examine(ctx context.Context, a inventory.Artefact) (string, error) {
	f, found, err := c.Open(a.Digest)
	if isNotFound(err) {
		return "missing", nil
	}
	if err != nil {
		return "unreadable", nil
	}
	defer f.Close()
	if found.SizeBytes != a.SizeBytes {
		return "damaged", nil
	}
	got, _, err := hashAll(ctx, f, func(int64) {})
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
		return "unreadable", nil
	case got != a.Digest:
		return "damaged", nil
	}
	return "", nil
}

// registered returns all artefacts and the names of the images that use each.
func (c *Cache) registered(ctx context.Context) (artefacts []inventory.Artefact, users map[inventory.Digest][]string, err error) {
	err = c.cfg.Store.Read(ctx, func(tx inventory.Tx) error {
		users = map[inventory.Digest][]string{}
		if artefacts, err = tx.ListArtefacts(inventory.Page{}); err != nil {
			return err
		}
		images, err := tx.Images().List(inventory.Page{})
		if err != nil {
			return err
		}
		for _, img := range images {
			for _, f := range img.Files {
				if !slices.Contains(users[f.Digest], img.Name) {
					users[f.Digest] = append(users[f.Digest], img.Name)
				}
			}
		}
		return nil
	})
	return artefacts, users, err
}

// Pruned reports what Prune removed and kept.
type Pruned struct {
	Removed    []inventory.Digest `json:"removed"`
	FreedBytes int64              `json:"freedBytes"`
	// Kept are files without a use for less than an hour: a machine may still boot them.
	Kept []inventory.Digest `json:"kept,omitempty"`
	// IsDryRun says that nothing was removed.
	IsDryRun bool `json:"isDryRun,omitempty"`
}

const (
	pruneAfter   = time.Hour
	partialAfter = 7 * 24 * time.Hour
)

// Prune removes three kinds of files:
//
//   - artefacts that no image has used for an hour,
//   - files that nobody registered within an hour,
//   - downloads that nobody resumed for a week.
//
// It never removes what an import is using. A dry run only reports what it would remove. After an error, Pruned holds
// what Prune removed before it.
func (c *Cache) Prune(ctx context.Context, isDryRun bool) (Pruned, error) {
	artefacts, users, err := c.registered(ctx)
	if err != nil {
		return Pruned{}, err
	}
	candidates := map[inventory.Digest]bool{}
	for _, a := range artefacts {
		candidates[a.Digest] = true
	}
	onDisk, err := c.onDisk()
	if err != nil {
		return Pruned{}, err
	}
	for _, d := range onDisk {
		candidates[d] = true
	}
	out := Pruned{IsDryRun: isDryRun}
	for d := range candidates {
		// An image may take the artefact up between the list and this point. DeleteArtefact then answers Conflict.
		if len(users[d]) == 0 {
			if err := c.pruneOne(ctx, d, &out); err != nil {
				return out, err
			}
		}
	}
	slices.Sort(out.Removed)
	slices.Sort(out.Kept)
	return out, c.prunePartial(&out)
}

// pruneOne removes an unused artefact. It holds the lock on pins, so that no import takes the file up meanwhile.
func (c *Cache) pruneOne(ctx context.Context, d inventory.Digest, out *Pruned) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	// The lock stays held over the removal below. An import that pins the file now waits, and then finds it missing.
	if c.pinned[d] > 0 {
		return nil
	}
	info, statErr := os.Stat(c.path(d))
	if statErr == nil && c.cfg.Now().Sub(info.ModTime()) < pruneAfter {
		out.Kept = append(out.Kept, d)
		return nil
	}
	if out.IsDryRun {
		out.Removed = append(out.Removed, d)
		if statErr == nil {
			out.FreedBytes += info.Size()
		}
		return nil
	}
	// First the record, then the file. If the process dies between both, the file is one that nobody registered, and
	// the next Prune finds it with onDisk. The other order would leave an artefact in the store without a file.
	err := c.cfg.Store.Write(ctx, func(tx inventory.Tx) error { return tx.DeleteArtefact(d) })
	if e, ok := errors.AsType[*inventory.Error](err); ok && e.Kind == inventory.Conflict {
		return nil // an image took it up since we looked
	}
	if err != nil && !isNotFound(err) {
		return err
	}
	if statErr == nil {
		if err := ignoreMissing(os.Remove(c.path(d))); err != nil {
			return fmt.Errorf("remove artefact %s: %w", d, err)
		}
		out.FreedBytes += info.Size()
	}
	out.Removed = append(out.Removed, d)
	return nil
}

// TidyUp removes files that another instance has pruned: the store does not know them, and they came over an hour ago. It removes old
// partial downloads, too. It changes nothing in the store.
func (c *Cache) TidyUp(ctx context.Context) error {
	artefacts, _, err := c.registered(ctx)
	if err != nil {
		return err
	}
	known := map[inventory.Digest]bool{}
	for _, a := range artefacts {
		known[a.Digest] = true
	}
	onDisk, err := c.onDisk()
	if err != nil {
		return err
	}
	for _, d := range onDisk {
		if known[d] {
			continue
		}
		if err := c.removeUnknown(d); err != nil {
			return err
		}
	}
	return c.prunePartial(&Pruned{})
}

// removeUnknown removes a file that the store does not know. It holds the lock on pins, as pruneOne does.
func (c *Cache) removeUnknown(d inventory.Digest) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	info, err := os.Stat(c.path(d))
	if err != nil || c.pinned[d] > 0 || c.cfg.Now().Sub(info.ModTime()) < pruneAfter {
		return ignoreMissing(err)
	}
	if err := ignoreMissing(os.Remove(c.path(d))); err != nil {
		return fmt.Errorf("remove artefact %s: %w", d, err)
	}
	return nil
}

// onDisk returns the digests of the files in the folder.
func (c *Cache) onDisk() ([]inventory.Digest, error) {
	var found []inventory.Digest
	err := filepath.WalkDir(filepath.Join(c.cfg.Dir, "sha256"), func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		if d, err := inventory.ParseDigest(e.Name()); err == nil {
			found = append(found, d)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list artefact folder: %w", err)
	}
	return found, nil
}

// prunePartial removes downloads that were given up.
func (c *Cache) prunePartial(out *Pruned) error {
	entries, err := os.ReadDir(c.PartialDir())
	if err != nil {
		return fmt.Errorf("list partial downloads: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range entries {
		name := filepath.Join(c.PartialDir(), e.Name())
		info, err := e.Info()
		// The note goes with its file: a resumed download writes both often, so that both are old only when nobody
		// resumes it.
		_, busy := c.loading[strings.TrimSuffix(name, ".json")]
		if err != nil || busy || c.cfg.Now().Sub(info.ModTime()) < partialAfter {
			continue
		}
		if out.IsDryRun {
			out.FreedBytes += info.Size()
			continue
		}
		if err := ignoreMissing(os.Remove(name)); err != nil {
			return fmt.Errorf("remove partial download: %w", err)
		}
		out.FreedBytes += info.Size()
	}
	return nil
}
