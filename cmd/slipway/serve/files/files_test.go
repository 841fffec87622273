package files

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/cmd/slipway/serve/peer"
	"slipway.dev/slipway/cmd/slipway/serve/peer/peertest"
	"slipway.dev/slipway/images"
	"slipway.dev/slipway/images/copies"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore"
	"slipway.dev/slipway/provision/duty"
)

// instance is a cache with its link.
type instance struct {
	cache  *images.Cache
	copies *copies.Copies
	link   string
}

// pair starts instances a and b over one database.
func pair(t *testing.T) map[string]*instance {
	t.Helper()
	store, err := sqlstore.Open(t.Context(), sqlstore.Config{Path: filepath.Join(t.TempDir(), "slipway.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	who := peertest.Identity(t, "k")
	log := slog.New(slog.DiscardHandler)
	all := map[string]*instance{}
	for _, name := range []string{"a", "b"} {
		i := &instance{}
		if i.cache, err = images.New(images.Config{Dir: t.TempDir(), Store: store, Now: time.Now}); err != nil {
			t.Fatal(err)
		}
		client := peer.NewClient(who, "a")
		t.Cleanup(client.Close)
		// The first link of each instance is of an interface that the others do not reach.
		others := NewOthers(client, func() (seen []duty.Peer, isKnown bool) {
			for n, o := range all {
				if n != name {
					links := []string{"127.0.0.1:1", o.link}
					row := inventory.Instance{ID: n, Name: n, Links: links}
					seen = append(seen, duty.Peer{Instance: row, Sight: duty.Sight{Life: duty.Alive}})
				}
			}
			return seen, true
		})
		i.copies = copies.New(copies.Config{
			Cache: i.cache, Store: store, Peers: others, Now: time.Now, Log: log, GoneFor: 500 * time.Millisecond,
		})
		t.Cleanup(i.copies.Close)
		i.link = peertest.Serve(t, who, func(s *peer.Server) { Register(s, i.cache, i.copies) })
		all[name] = i
	}
	return all
}

func read(t *testing.T, c interface {
	Open(d inventory.Digest) (*os.File, inventory.Artefact, error)
}, d inventory.Digest,
) string {
	t.Helper()
	f, _, err := c.Open(d)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(all)
}

// An upload on one instance is there on the other: as soon as it is shared, and when a machine asks.
func TestFilesGoOverTheLink(t *testing.T) {
	all := pair(t)
	a, b := all["a"], all["b"]
	content := bytes.Repeat([]byte("0123456789abcdef"), 200_000)
	up, err := a.cache.Take(t.Context(), bytes.NewReader(content), "disk.img", -1)
	if err != nil {
		t.Fatal(err)
	}
	if lacks := b.copies.Lacking([]inventory.Digest{up.Digest}); len(lacks) != 1 {
		t.Errorf("b lacks %v", lacks)
	}
	only := []inventory.Digest{up.Digest}
	if alone, err := a.copies.Alone(t.Context(), only); err != nil || !slices.Equal(alone, only) {
		t.Errorf("alone: %v, %v", alone, err)
	}
	// What a run before has left is half of it.
	half := filepath.Join(b.cache.PartialDir(), "copy-"+up.Digest.Hex())
	if err := os.WriteFile(half, content[:len(content)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	if got := read(t, b.copies, up.Digest); got != string(content) {
		t.Errorf("b has %d bytes", len(got))
	}
	next, err := b.cache.Take(t.Context(), strings.NewReader("a kernel"), "vmlinuz", -1)
	if err != nil {
		t.Fatal(err)
	}
	var notes []string
	note := func(text string, args ...any) { notes = append(notes, fmt.Sprintf(text, args...)) }
	if err := b.copies.Share(t.Context(), []inventory.Artefact{up, next}, note); err != nil {
		t.Fatal(err)
	}
	if got := read(t, a.cache, next.Digest); got != "a kernel" {
		t.Errorf("a has %q; notes: %v", got, notes)
	}
	if alone, err := a.copies.Alone(t.Context(), []inventory.Digest{up.Digest, next.Digest}); err != nil || len(alone) > 0 {
		t.Errorf("alone: %v, %v", alone, err)
	}
}

// A file that no instance has is not found, and neither side hangs.
func TestAFileThatIsNowhere(t *testing.T) {
	b := pair(t)["b"]
	sum := sha256.Sum256([]byte("gone"))
	f := copies.File{Digest: inventory.Digest(fmt.Sprintf("sha256:%x", sum)), SizeBytes: 4}
	if got, err := b.copies.Bring(t.Context(), f); !inventory.IsKind(err, inventory.NotFound) {
		t.Errorf("%+v, %v", got, err)
	}
}

// Without the key of the instances nobody gets a file.
func TestOnlyInstancesGetFiles(t *testing.T) {
	a := pair(t)["a"]
	up, err := a.cache.Take(t.Context(), strings.NewReader("secret"), "disk.img", -1)
	if err != nil {
		t.Fatal(err)
	}
	stranger := peertest.Identity(t, "x")
	c := peer.NewClient(stranger, "a")
	defer c.Close()
	_, port, _ := net.SplitHostPort(a.link)
	r, err := c.HTTP.Get("https://127.0.0.1:" + port + content + up.Digest.Hex())
	if err == nil {
		r.Body.Close()
		t.Errorf("it is answered with %s", r.Status)
	}
	guest := &http.Client{Transport: c.Upgrade}
	if r, err := guest.Get("https://127.0.0.1:" + port + content + up.Digest.Hex()); err == nil {
		r.Body.Close()
		t.Errorf("it is answered with %s", r.Status)
	}
}
