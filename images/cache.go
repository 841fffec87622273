package images

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/egress"
)

// Config holds what a Cache needs. Dir, Store, Catalogue and Now are required; a zero value elsewhere means the
// default that the comment of the field names.
type Config struct {
	Dir       string // artefact folder; it is made when it is missing
	Store     inventory.Store
	Catalogue *Catalogue
	Now       func() time.Time
	Loaders   *Loaders       // that there are; nil: none
	Egress    *egress.Policy // which addresses may be fetched from; nil: all

	// Share gives other instances the files before an image or an upload is registered, and notes what it does. Its error is that of ctx.
	// nil: there are no others.
	Share func(ctx context.Context, files []inventory.Artefact, note func(string, ...any)) error

	HTTP       http.RoundTripper // a transport with proxy settings from the environment and timeouts for each step
	MaxBytes   int64             // largest file: 20 GiB
	StallFor   time.Duration     // a download without a byte for so long is tried again: 60 s
	RetryFor   time.Duration     // wait before the first retry; it doubles: 1 s
	TriesN     int               // attempts without progress before a download fails: 5
	Checkpoint int64             // bytes between the points from which a download is resumed after a crash: 64 MiB
}

// Cache is the artefact folder. Each file lies under its SHA-256 as sha256/<first two digits>/<64 digits>. It is
// complete and never changes once it has that name. Unfinished downloads are in partial/.
//
// Many goroutines may call the methods. A folder belongs to one process: pins and download locks live in memory only.
type Cache struct {
	cfg    Config
	client *http.Client

	mu      sync.Mutex
	pinned  map[inventory.Digest]int // placed by an import that has not registered it yet
	loading map[string]chan struct{} // downloads by partial file; closed when done

	signedMu sync.Mutex
	signed   signatures
}

// New opens the artefact folder, creates what is missing in it, and removes what a killed process left unfinished.
// Partial downloads stay, so that the next import of their address resumes them. An error means that the folder
// cannot be used at all.
func New(cfg Config) (*Cache, error) {
	if cfg.HTTP == nil {
		cfg.HTTP = newTransport(cfg.Egress)
	}
	cfg.MaxBytes = cmp.Or(cfg.MaxBytes, 20<<30)
	cfg.StallFor = cmp.Or(cfg.StallFor, time.Minute)
	cfg.RetryFor = cmp.Or(cfg.RetryFor, time.Second)
	cfg.TriesN = cmp.Or(cfg.TriesN, 5)
	cfg.Checkpoint = cmp.Or(cfg.Checkpoint, 64<<20)
	c := &Cache{cfg: cfg, client: newClient(cfg.HTTP), pinned: map[inventory.Digest]int{}, loading: map[string]chan struct{}{}}
	for _, dir := range []string{filepath.Join(cfg.Dir, "sha256"), c.PartialDir()} {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return nil, fmt.Errorf("make artefact folder: %w", err)
		}
	}
	// What was whole but not in place yet is fetched again; those here belonged to a process that was killed.
	stale, err := filepath.Glob(filepath.Join(c.PartialDir(), tempPrefix+"*"))
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", c.PartialDir(), err)
	}
	for _, name := range stale {
		if err := os.Remove(name); err != nil {
			return nil, fmt.Errorf("remove left-over file: %w", err)
		}
	}
	return c, nil
}

// Open opens an artefact for reading. The file is complete. It stays readable when Prune removes its name meanwhile,
// because an open file keeps its blocks. The Artefact has no Source: only the store knows it, and a boot needs no
// query.
//
// The error is Invalid for a malformed digest and NotFound for a file that the folder lacks. Open does not hash;
// Verify does.
func (c *Cache) Open(d inventory.Digest) (*os.File, inventory.Artefact, error) {
	if _, err := inventory.ParseDigest(string(d)); err != nil {
		return nil, inventory.Artefact{}, err
	}
	f, err := os.Open(c.path(d))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, inventory.Artefact{}, inventory.Errorf(inventory.NotFound, "artefact %s is not in the artefact folder", d).
			WithHint("slipway image verify lists what is missing; importing the image again brings it back")
	}
	if err != nil {
		return nil, inventory.Artefact{}, fmt.Errorf("open artefact %s: %w", d, err)
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, inventory.Artefact{}, fmt.Errorf("read size of artefact %s: %w", d, err)
	}
	return f, inventory.Artefact{Digest: d, SizeBytes: info.Size(), CreatedAt: info.ModTime().UTC()}, nil
}

func (c *Cache) path(d inventory.Digest) string {
	h := d.Hex()
	return filepath.Join(c.cfg.Dir, "sha256", h[:2], h)
}

// PartialDir is the folder of files that are not complete. New removes those whose names begin with temp-.
func (c *Cache) PartialDir() string { return filepath.Join(c.cfg.Dir, "partial") }

// place moves a complete file into the folder under its digest, or drops it when a healthy one is there. The artefact
// is pinned, so that Prune leaves it alone, until unpin.
func (c *Cache) place(ctx context.Context, temp string, d inventory.Digest, size int64) error {
	c.pin(d)
	err := c.placePinned(ctx, temp, d, size)
	if err != nil {
		c.unpin(d)
	}
	return err
}

// Keep takes in a complete file of another instance, whose content the caller has checked and synced.
func (c *Cache) Keep(ctx context.Context, temp string, d inventory.Digest, size int64) error {
	if err := c.place(ctx, temp, d, size); err != nil {
		return err
	}
	c.unpin(d)
	return nil
}

func (c *Cache) placePinned(ctx context.Context, temp string, d inventory.Digest, size int64) error {
	// The caller has synced temp. The order is mode, rename, sync of the folders. A name below sha256/ therefore
	// never leads to a file with missing bytes, also after a power failure. If the process dies before the rename,
	// New removes temp.
	target := c.path(d)
	// Hashing the old file costs its read time once for each import. In return an import repairs a file that the disk
	// damaged.
	if c.isHealthy(ctx, d, size) {
		return os.Remove(temp)
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o750); err != nil {
		return DiskError("make artefact folder", err)
	}
	if err := os.Chmod(temp, 0o440); err != nil {
		return DiskError("finish artefact", err)
	}
	if err := os.Rename(temp, target); err != nil {
		return DiskError("finish artefact", err)
	}
	// The rename is on disk when both folders are: the new name, and the new two-digit folder in its parent.
	for _, dir := range []string{filepath.Dir(target), filepath.Join(c.cfg.Dir, "sha256")} {
		if err := syncDir(dir); err != nil {
			return DiskError("finish artefact", err)
		}
	}
	return nil
}

// isHealthy reports whether the artefact is here with the right content; a size of 0 is not compared.
func (c *Cache) isHealthy(ctx context.Context, d inventory.Digest, size int64) bool {
	f, a, err := c.Open(d)
	if err != nil {
		return false
	}
	defer f.Close()
	if size > 0 && a.SizeBytes != size {
		return false
	}
	got, _, err := hashAll(ctx, f, func(int64) {})
	return err == nil && got == d
}

func (c *Cache) pin(d inventory.Digest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// It is a counter, because two imports may bring the same file at the same time. The first to end must not unpin
	// it for the other.
	c.pinned[d]++
}

func (c *Cache) unpin(d inventory.Digest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pinned[d]--; c.pinned[d] == 0 {
		delete(c.pinned, d)
	}
}

// hashAll reads r to its end.
func hashAll(ctx context.Context, r io.Reader, read func(int64)) (inventory.Digest, int64, error) {
	h, buf, total := sha256.New(), make([]byte, copyBytes), int64(0)
	for {
		if err := ctx.Err(); err != nil {
			return "", total, err
		}
		n, err := r.Read(buf)
		h.Write(buf[:n])
		total += int64(n)
		read(int64(n))
		if err == io.EOF {
			return digestOf(h.Sum(nil)), total, nil
		}
		if err != nil {
			return "", total, err
		}
	}
}

const (
	copyBytes = 256 << 10
	// tempPrefix begins the names of files in partial/ that are not resumed.
	tempPrefix = "temp-"
)

func digestOf(sum []byte) inventory.Digest {
	return inventory.Digest("sha256:" + hex.EncodeToString(sum))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// DiskError says what a full or failing disk means to the person whose file is stored.
func DiskError(doing string, err error) error {
	e := &inventory.Error{Kind: inventory.Unavailable, Err: err}
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		e.Msg = "the disk of the artefact folder is full"
		e.Hint = "free some space, for example with slipway image prune, and import again: it goes on where it stopped"
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		e.Msg = "the artefact folder cannot be written"
		e.Hint = "the server must be able to write to its data directory"
	default:
		e.Msg = doing + ": the disk of the artefact folder reports an error"
		e.Hint = "see the server's log, and the kernel's, for the disk's own words"
	}
	return e
}

// CheckSpace refuses a file of so many bytes that cannot fit, before it fills the disk that leases are written to.
func (c *Cache) CheckSpace(need int64) error {
	var st syscall.Statfs_t
	if err := syscall.Statfs(c.cfg.Dir, &st); err != nil {
		return DiskError("read free space", err)
	}
	if free := int64(st.Bavail) * st.Bsize; need > free-reserveBytes {
		e := inventory.Errorf(inventory.Unavailable, "%s more are needed, and the disk of the artefact folder has %s free",
			FormatBytes(need), FormatBytes(free))
		return e.WithHint("free some space, for example with slipway image prune; %s are kept for leases and events", FormatBytes(reserveBytes))
	}
	return nil
}

// reserveBytes stay free for the database on the same disk, so that an import that fills the disk does not stop DHCP.
const reserveBytes = 64 << 20
