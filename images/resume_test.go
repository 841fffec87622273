package images

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"slipway.dev/slipway/inventory"
)

func TestAStoppedDownloadGoesOnWhereItStopped(t *testing.T) {
	content := bytesOf(1, 100_000)
	for name, c := range map[string]struct {
		etag string
		want inventory.Digest
	}{
		"by ETag": {etag: `"v1"`}, "by the sum alone": {want: sumOf(content)}, "by both": {etag: `"v1"`, want: sumOf(content)},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMirror(t, content)
			m.etag = c.etag
			isDown := true
			m.answer = func(n int, w http.ResponseWriter, r *http.Request) bool {
				if isDown && n > 0 {
					w.WriteHeader(http.StatusBadGateway)
					return true
				}
				if isDown {
					m.cutAfter(w, r, 60_000)
				}
				return false
			}
			f := newFixture(t)
			_, err := f.Import(t.Context(), m.kernel(c.want), nil)
			wantError(t, err, inventory.Unavailable, "502")
			isDown = false

			// Another process on the same folder.
			f.Cache = openFixture(t, f.dir, f.store)
			var notes []string
			if _, err := f.Import(t.Context(), m.kernel(c.want), func(p Progress) { notes = append(notes, p.Note) }); err != nil {
				t.Fatal(err)
			}
			f.wantArtefact(t, content)
			if n := m.servedN.Load(); n != 40_000 {
				t.Errorf("%d bytes were fetched the second time, want the 40,000 that were missing", n)
			}
			if !strings.Contains(strings.Join(notes, "\n"), "goes on at 60.0 kB") {
				t.Errorf("nobody was told that it was resumed: %q", notes)
			}
		})
	}
}

// TestOnlySyncedBytesAreResumed plays a power failure: the file is as long as it was, but what was not synced is holes.
func TestOnlySyncedBytesAreResumed(t *testing.T) {
	content := bytesOf(1, 100_000)
	m := newMirror(t, content)
	m.answer = func(n int, w http.ResponseWriter, r *http.Request) bool {
		if n < 5 {
			m.cutAfter(w, r, 10_000)
		}
		return false
	}
	f := newFixture(t)
	if _, err := f.Import(t.Context(), m.kernel(""), nil); err == nil {
		t.Fatal("the import succeeded")
	}
	notes, err := filepath.Glob(filepath.Join(f.PartialDir(), "*.json"))
	if err != nil || len(notes) != 1 {
		t.Fatalf("notes: %v %v", notes, err)
	}
	var mark downloadMark
	text, err := os.ReadFile(notes[0])
	if err != nil || json.Unmarshal(text, &mark) != nil || mark.SyncedBytes != 50_000 {
		t.Fatalf("note %s, %v", text, err)
	}
	mark.SyncedBytes = 20_000
	text, err = json.Marshal(mark)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(notes[0], text, 0o640); err != nil {
		t.Fatal(err)
	}
	damage(t, strings.TrimSuffix(notes[0], ".json"), func(b []byte) []byte { clear(b[20_000:]); return b })
	if _, err := f.Import(t.Context(), m.kernel(""), nil); err != nil {
		t.Fatal(err)
	}
	f.wantArtefact(t, content)
}

// TestAnyBrokenNoteIsHarmless leaves what a killed or hostile process could leave beside a partial file.
func TestAnyBrokenNoteIsHarmless(t *testing.T) {
	content := bytesOf(1, 50_000)
	for _, note := range []string{
		"", "{", `{"etag":"\"v1\"","syncedBytes":-5}`,
		`{"etag":"\"v1\"","syncedBytes":999999999}`, `{"syncedBytes":30000}`, `{"etag":"\"old\"","syncedBytes":30000}`,
	} {
		t.Run(note, func(t *testing.T) {
			m := newMirror(t, content)
			m.answer = func(n int, w http.ResponseWriter, r *http.Request) bool {
				if n < 5 {
					w.WriteHeader(http.StatusBadGateway)
				}
				return n < 5
			}
			f := newFixture(t)
			if _, err := f.Import(t.Context(), m.kernel(""), nil); err == nil {
				t.Fatal("the import succeeded")
			}
			notes, err := filepath.Glob(filepath.Join(f.PartialDir(), "*.json"))
			if err != nil || len(notes) != 1 {
				t.Fatalf("notes: %v %v", notes, err)
			}
			if err := os.WriteFile(notes[0], []byte(note), 0o640); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(strings.TrimSuffix(notes[0], ".json"), bytesOf(9, 40_000), 0o640); err != nil {
				t.Fatal(err)
			}
			if _, err := f.Import(t.Context(), m.kernel(""), nil); err != nil {
				t.Fatal(err)
			}
			f.wantArtefact(t, content)
		})
	}
}

func TestResumingAtAnyByteGivesTheSameFile(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		size := rapid.IntRange(1, 30_000).Draw(rt, "size") // an empty file is none
		cuts := rapid.SliceOfN(rapid.IntRange(0, 12_000), 0, 4).Draw(rt, "cuts")
		hasTag, hasSum := rapid.Bool().Draw(rt, "etag"), rapid.Bool().Draw(rt, "sum")
		restartAfter := rapid.IntRange(0, 4).Draw(rt, "restart")
		content := bytesOf(uint64(size), size)
		m := &mirror{content: content}
		if hasTag {
			m.etag = `"v1"`
		}
		m.answer = func(n int, w http.ResponseWriter, r *http.Request) bool {
			if n < len(cuts) {
				m.cutAfter(w, r, cuts[n])
			}
			return false
		}
		m.Server = httptest.NewServer(m)
		defer m.Server.Close()
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		f := fixture{store: newMemStore(), dir: dir}
		f.Cache = openFixture(t, dir, f.store, func(c *Config) { c.TriesN = restartAfter + 1; c.Checkpoint = 1000 })
		r := m.kernel("")
		if hasSum {
			r = m.kernel(sumOf(content))
		}
		for range 10 {
			if _, err = f.Import(t.Context(), r, nil); err == nil {
				break
			}
			f.Cache = openFixture(t, dir, f.store, func(c *Config) { c.TriesN = restartAfter + 1; c.Checkpoint = 1000 })
		}
		if err != nil {
			rt.Fatal(err)
		}
		file, _, err := f.Open(sumOf(content))
		if err != nil {
			rt.Fatal(err)
		}
		defer file.Close()
		if got, err := io.ReadAll(file); err != nil || !bytes.Equal(got, content) {
			rt.Fatalf("got %d bytes, %v; want %d", len(got), err, size)
		}
	})
}

func TestAFullOrFailingDiskIsToldApart(t *testing.T) {
	for part, err := range map[string]error{
		"is full":           &os.PathError{Op: "write", Path: "/x", Err: syscall.ENOSPC},
		"cannot be written": &os.PathError{Op: "open", Path: "/x", Err: syscall.EROFS},
		"reports an error":  &os.PathError{Op: "write", Path: "/x", Err: syscall.EIO},
	} {
		wantError(t, DiskError("write", err), inventory.Unavailable, part)
	}
	f := newFixture(t)
	wantError(t, f.CheckSpace(1<<60), inventory.Unavailable, "are needed, and the disk of the artefact folder has")
}

// TestADiskIsNeverFilledToItsEnd needs a file system of its own, and so root.
func TestADiskIsNeverFilledToItsEnd(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=65m"); err != nil {
		t.Skipf("cannot mount a small tmpfs (%v); run as root", err)
	}
	defer syscall.Unmount(dir, 0)
	store := newMemStore()
	f := fixture{store: store, dir: dir, Cache: openFixture(t, dir, store)}
	kernel := bytesOf(1, 4_000_000)
	m := newMirror(t, kernel)
	_, err := f.Import(t.Context(), m.kernel(""), nil)
	wantError(t, err, inventory.Unavailable, "4.00 MB more are needed")
	// Without a length it is noticed on the way.
	endless := newMirror(t, nil)
	endless.answer = func(n int, w http.ResponseWriter, r *http.Request) bool {
		for range 20 {
			if _, err := w.Write(kernel); err != nil {
				break
			}
		}
		return true
	}
	_, err = f.Import(t.Context(), endless.kernel(""), nil)
	wantError(t, err, inventory.Unavailable, "are needed, and the disk of the artefact folder has 67.")
	f.wantNothing(t)
}
