package images

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

// mirror serves one file in a way that the test chooses per request.
type mirror struct {
	*httptest.Server
	content []byte
	etag    string

	mu       sync.Mutex
	requests []*http.Request
	// answer replaces the n-th request's answer (from 0); nil or false leaves it to the honest one.
	answer  func(n int, w http.ResponseWriter, r *http.Request) bool
	servedN atomic.Int64
}

func newMirror(t *testing.T, content []byte) *mirror {
	t.Helper()
	m := &mirror{content: content, etag: `"v1"`}
	m.Server = httptest.NewServer(m)
	t.Cleanup(m.Server.Close)
	return m
}

func (m *mirror) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	n := len(m.requests)
	m.requests = append(m.requests, r)
	m.mu.Unlock()
	if m.answer != nil && m.answer(n, w, r) {
		return
	}
	m.mu.Lock()
	content, etag := m.content, m.etag
	m.mu.Unlock()
	if etag != "" {
		w.Header().Set("ETag", etag)
	}
	http.ServeContent(countingWriter{w, &m.servedN}, r, "", time.Time{}, bytes.NewReader(content))
}

type countingWriter struct {
	http.ResponseWriter
	n *atomic.Int64
}

func (w countingWriter) Write(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p)
	w.n.Add(int64(n))
	return n, err
}

// cutAfter answers honestly but drops the connection after n bytes of the body.
func (m *mirror) cutAfter(w http.ResponseWriter, r *http.Request, n int) {
	first := 0
	if s, ok := strings.CutPrefix(r.Header.Get("Range"), "bytes="); ok {
		first, _ = strconv.Atoi(strings.TrimSuffix(s, "-"))
	}
	h := w.Header()
	h.Set("ETag", m.etag)
	h.Set("Content-Length", strconv.Itoa(len(m.content)-first))
	if first > 0 {
		h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", first, len(m.content)-1, len(m.content)))
		w.WriteHeader(http.StatusPartialContent)
	}
	w.Write(m.content[first:min(first+n, len(m.content))])
	w.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}

// kernelOf asks for the mirror's file as a custom image.
func (m *mirror) kernel(want inventory.Digest) ImportRequest {
	return ImportRequest{Name: "x", IsAdmin: true, Files: []ImportFile{{Role: "kernel", Source: m.URL + "/linux", SHA256: want}}}
}

func TestDownloadsOfAwkwardServers(t *testing.T) {
	old, now := bytesOf(1, 100_000), bytesOf(2, 100_000)
	type test struct {
		answer func(m *mirror, n int, w http.ResponseWriter, r *http.Request) bool
		want   inventory.Digest // given with the request
		result []byte           // nil: it fails
		kind   inventory.Kind
		part   string
	}
	cutFirst := func(m *mirror, n int, w http.ResponseWriter, r *http.Request) bool {
		if n == 0 {
			m.cutAfter(w, r, 60_000)
		}
		return false
	}
	for name, c := range map[string]test{
		"an honest one":         {result: old},
		"one with the sum":      {result: old, want: sumOf(old)},
		"a wrong sum":           {want: sumOf(now), kind: inventory.Invalid, part: "wrong checksum: expected " + sumOf(now).Hex()},
		"cut off once":          {answer: cutFirst, result: old},
		"cut off, with the sum": {answer: cutFirst, result: old, want: sumOf(old)},
		"always cut off at the same byte": {
			kind: inventory.Unavailable, part: "was cut off",
			answer: func(m *mirror, n int, w http.ResponseWriter, r *http.Request) bool { m.cutAfter(w, r, 0); return true },
		},
		"changed between the pieces": {result: now, want: sumOf(now), answer: func(m *mirror, n int, w http.ResponseWriter, r *http.Request) bool {
			if n == 0 {
				defer func() { m.mu.Lock(); m.content, m.etag = now, `"v2"`; m.mu.Unlock() }()
				m.cutAfter(w, r, 60_000)
			}
			return false
		}},
		"changed between the pieces, without any validator": {result: now, want: sumOf(now), answer: func(m *mirror, n int, w http.ResponseWriter, r *http.Request) bool {
			if n == 0 {
				m.etag = ""
				defer func() { m.mu.Lock(); m.content = now; m.mu.Unlock() }()
				m.cutAfter(w, r, 60_000)
			}
			return false
		}},
		"ranges ignored": {result: old, answer: func(m *mirror, n int, w http.ResponseWriter, r *http.Request) bool {
			if n == 0 {
				m.cutAfter(w, r, 60_000)
			}
			w.Header().Set("ETag", m.etag)
			w.Write(m.content)
			return true
		}},
		"another range than asked for": {result: old, answer: func(m *mirror, n int, w http.ResponseWriter, r *http.Request) bool {
			switch n {
			case 0:
				m.cutAfter(w, r, 60_000)
			case 1:
				w.Header().Set("ETag", m.etag)
				w.Header().Set("Content-Range", "bytes 50000-89999/100000")
				w.WriteHeader(http.StatusPartialContent)
				w.Write(m.content[50_000:90_000])
				return true
			}
			return false
		}},
		"less of the range than asked for": {result: old, answer: func(m *mirror, n int, w http.ResponseWriter, r *http.Request) bool {
			switch n {
			case 0:
				m.cutAfter(w, r, 60_000)
			case 1:
				w.Header().Set("ETag", m.etag)
				w.Header().Set("Content-Range", "bytes 60000-79999/100000")
				w.WriteHeader(http.StatusPartialContent)
				w.Write(m.content[60_000:80_000])
				return true
			}
			return false
		}},
		"changed between the pieces, known by its date alone": {result: now, answer: func(m *mirror, n int, w http.ResponseWriter, r *http.Request) bool {
			day := time.Date(2026, 11, 1+min(n, 1), 0, 0, 0, 0, time.UTC)
			w.Header().Set("Last-Modified", day.Format(http.TimeFormat))
			if n == 0 {
				w.Header().Set("Content-Length", "100000")
				w.Write(old[:60_000])
				w.(http.Flusher).Flush()
				panic(http.ErrAbortHandler)
			}
			http.ServeContent(w, r, "", day, bytes.NewReader(now))
			return true
		}},
		"another file's range": {result: now, answer: func(m *mirror, n int, w http.ResponseWriter, r *http.Request) bool {
			switch n {
			case 0:
				m.cutAfter(w, r, 60_000)
			case 1:
				m.mu.Lock()
				m.content, m.etag = now, `"v2"`
				m.mu.Unlock()
				w.Header().Set("ETag", m.etag)
				w.Header().Set("Content-Range", "bytes 60000-99999/100000")
				w.WriteHeader(http.StatusPartialContent)
				w.Write(m.content[60_000:])
				return true
			}
			return false
		}},
		"shorter than before": {result: now[:1000], answer: func(m *mirror, n int, w http.ResponseWriter, r *http.Request) bool {
			switch n {
			case 0:
				m.cutAfter(w, r, 60_000)
			case 1:
				m.mu.Lock()
				m.content = now[:1000]
				m.mu.Unlock()
			}
			return false
		}},
		"less than announced, then closed": {
			kind: inventory.Unavailable, part: "was cut off",
			answer: func(m *mirror, n int, w http.ResponseWriter, r *http.Request) bool {
				w.Header().Set("Content-Length", "100000")
				w.Write(m.content[:10])
				return true
			},
		},
		"no length, chunks cut off once": {result: old, answer: func(m *mirror, n int, w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Transfer-Encoding", "chunked")
			if n == 0 {
				w.Write(m.content[:50_000])
				w.(http.Flusher).Flush()
				panic(http.ErrAbortHandler)
			}
			w.Write(m.content)
			return true
		}},
		"busy, then well": {result: old, answer: func(m *mirror, n int, w http.ResponseWriter, r *http.Request) bool {
			if n < 3 {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			return n < 3
		}},
		"busy for ever": {kind: inventory.Unavailable, part: "503", answer: func(m *mirror, n int, w http.ResponseWriter, r *http.Request) bool {
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}},
		"not there": {kind: inventory.NotFound, part: "there is no linux at http", answer: func(m *mirror, n int, w http.ResponseWriter, r *http.Request) bool {
			http.NotFound(w, r)
			return true
		}},
		"for members only": {kind: inventory.Invalid, part: "401", answer: func(m *mirror, n int, w http.ResponseWriter, r *http.Request) bool {
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}},
		"a redirect": {result: old, answer: func(m *mirror, n int, w http.ResponseWriter, r *http.Request) bool {
			if n == 0 {
				http.Redirect(w, r, "/elsewhere", http.StatusFound)
			}
			return n == 0
		}},
		"a redirect to itself": {kind: inventory.Invalid, part: "in a circle", answer: func(m *mirror, n int, w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, r.URL.Path, http.StatusFound)
			return true
		}},
		"redirects without end": {kind: inventory.Invalid, part: "more than 5 times", answer: func(m *mirror, n int, w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, fmt.Sprintf("/%d", n), http.StatusFound)
			return true
		}},
		"a redirect to a file": {kind: inventory.Invalid, part: "which is less safe", answer: func(m *mirror, n int, w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
			return true
		}},
		"larger than allowed": {kind: inventory.Invalid, part: "larger than 200 kB", answer: func(m *mirror, n int, w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Content-Length", "200001")
			return true
		}},
		"larger than allowed without saying so": {kind: inventory.Invalid, part: "larger than 200 kB", answer: func(m *mirror, n int, w http.ResponseWriter, r *http.Request) bool {
			for range 400 {
				if _, err := w.Write(m.content[:1000]); err != nil {
					break
				}
			}
			return true
		}},
		"silent from the start": {kind: inventory.Unavailable, part: "sends nothing more", answer: func(m *mirror, n int, w http.ResponseWriter, r *http.Request) bool {
			<-r.Context().Done()
			return true
		}},
		"silent in the middle once": {result: old, answer: func(m *mirror, n int, w http.ResponseWriter, r *http.Request) bool {
			if n == 0 {
				w.Header().Set("ETag", m.etag)
				w.Header().Set("Content-Length", "100000")
				w.Write(m.content[:30_000])
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			}
			return n == 0
		}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMirror(t, old)
			if c.answer != nil {
				m.answer = func(n int, w http.ResponseWriter, r *http.Request) bool { return c.answer(m, n, w, r) }
			}
			f := newFixture(t, func(cfg *Config) { cfg.MaxBytes, cfg.StallFor = 200_000, 300*time.Millisecond })
			_, err := f.Import(t.Context(), m.kernel(c.want), nil)
			if c.result == nil {
				wantError(t, err, c.kind, c.part)
				f.wantNothing(t)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			f.wantArtefact(t, c.result)
			if left, err := os.ReadDir(f.PartialDir()); err != nil || len(left) > 0 {
				t.Errorf("left over: %v %v", left, err)
			}
		})
	}
}

func TestAnImportStopsWithItsContext(t *testing.T) {
	m := newMirror(t, bytesOf(1, 100_000))
	arrived := make(chan struct{})
	m.answer = func(n int, w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Content-Length", "100000")
		w.Write(m.content[:5000])
		w.(http.Flusher).Flush()
		close(arrived)
		<-r.Context().Done()
		return true
	}
	f := newFixture(t)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-arrived; cancel() }()
	_, err := f.Import(ctx, m.kernel(""), nil)
	wantError(t, err, inventory.Unavailable, "was stopped")
	f.wantNothing(t)
}

func TestSecretsInAddressesAreNotStoredOrShown(t *testing.T) {
	m := newMirror(t, bytesOf(1, 1000))
	f := newFixture(t)
	withSecret := strings.Replace(m.URL, "http://", "http://user:hunter2@", 1) + "/linux?signature=hunter2"
	var shown []string
	_, err := f.Import(t.Context(), ImportRequest{Name: "x", Files: []ImportFile{{Role: "kernel", Source: withSecret}}},
		func(p Progress) { shown = append(shown, p.Source+p.Note) })
	if err != nil {
		t.Fatal(err)
	}
	m.Server.Close()
	_, err = f.Import(t.Context(), ImportRequest{Name: "y", Files: []ImportFile{{Role: "kernel", Source: withSecret + "2"}}}, nil)
	var e *inventory.Error
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	for _, a := range f.store.artefacts {
		shown = append(shown, a.Source)
	}
	if all := strings.Join(append(shown, e.Msg, e.Hint), " "); strings.Contains(all, "hunter2") {
		t.Errorf("the password is in %q", all)
	}
	if left, err := os.ReadDir(f.PartialDir()); err != nil {
		t.Fatal(err)
	} else {
		for _, l := range left {
			text, err := os.ReadFile(filepath.Join(f.PartialDir(), l.Name()))
			if err != nil || bytes.Contains(text, []byte("hunter2")) {
				t.Errorf("the password is in the note %s: %v", text, err)
			}
		}
	}
}

func TestTheCatalogueFindsNamesAndSumsInThePublishersList(t *testing.T) {
	old, iso, kernel := bytesOf(1, 1000), bytesOf(2, 2000), bytesOf(3, 3000)
	dir := folder(t, map[string][]byte{
		"ubuntu-24.04.2-live-server-amd64.iso":  old,
		"ubuntu-24.04.10-live-server-amd64.iso": iso,
		"netboot/amd64/linux":                   kernel,
		"netboot/amd64/initrd":                  bytesOf(4, 100),
		"SHA256SUMS": []byte(sumOf(old).Hex() + " *ubuntu-24.04.2-live-server-amd64.iso\n" +
			sumOf(iso).Hex() + " *ubuntu-24.04.10-live-server-amd64.iso\n"),
	})
	srv := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer srv.Close()
	f := newFixture(t)
	img, err := f.Import(t.Context(), ImportRequest{Name: "ubuntu", OS: "ubuntu", Release: "24.04", From: srv.URL}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if img.Files[2].Name != "installer.iso" || img.Files[2].Digest != sumOf(iso) {
		t.Errorf("got %+v", img.Files)
	}
	f.wantArtefact(t, kernel)
}

func TestAFileThatTheChecksumListLeavesOutIsRefused(t *testing.T) {
	kernel := bytesOf(3, 3000)
	dir := folder(t, map[string][]byte{
		"netboot/debian-installer/amd64/linux": kernel, "netboot/debian-installer/amd64/initrd.gz": kernel,
		"SHA256SUMS": sumsLine("netboot/debian-installer/amd64/linux", kernel),
	})
	srv := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer srv.Close()
	f := newFixture(t)
	r := ImportRequest{Name: "d", OS: "debian", Release: "12", From: srv.URL + "/"}
	_, err := f.Import(t.Context(), r, nil)
	wantError(t, err, inventory.Invalid, "does not name netboot/debian-installer/amd64/initrd.gz")
	f.wantNothing(t)
	if err := os.Remove(filepath.Join(dir, "SHA256SUMS")); err != nil {
		t.Fatal(err)
	}
	_, err = f.Import(t.Context(), r, nil)
	wantError(t, err, inventory.NotFound, "checksum list: ")
	f.wantNothing(t)
}
