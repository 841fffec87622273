package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

func noWait(context.Context, time.Duration) error { return nil }

// cutter serves content and cuts every connection after some bytes.
type cutter struct {
	content  []byte
	after    int
	ignores  bool // ranges
	etag     func(n int64) string
	requests atomic.Int64
}

func (c *cutter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := c.requests.Add(1)
	w.Header().Set("ETag", c.etag(n))
	if c.ignores {
		r.Header.Del("Range")
	}
	http.ServeContent(&limited{ResponseWriter: w, left: c.after}, r, "", time.Time{}, bytes.NewReader(c.content))
}

type limited struct {
	http.ResponseWriter
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	if len(p) > l.left {
		_, _ = l.ResponseWriter.Write(p[:l.left])
		l.ResponseWriter.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	l.left -= len(p)
	return l.ResponseWriter.Write(p)
}

func stable(int64) string { return `"sha256:abc"` }

func TestAStreamGoesOnWhereItWasCut(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789abcdef"), 40000)
	cases := map[string]*cutter{
		"a server with ranges":       {content: content, after: 100000, etag: stable},
		"a server without validator": {content: content, after: 100000, etag: func(int64) string { return "" }},
		"a server without cuts":      {content: content, after: 1 << 30, etag: stable},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(c)
			defer srv.Close()
			s := &Source{URL: srv.URL, Wait: noWait, Tries: 3}
			st, err := s.Stream(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer st.Close()
			got, err := io.ReadAll(st)
			if err != nil || !bytes.Equal(got, content) || st.Size() != int64(len(content)) {
				t.Errorf("%d of %d bytes, %v", len(got), len(content), err)
			}
		})
	}
}

func TestAServerThatKnowsNoRangesIsReadFromTheStartAgain(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789abcdef"), 40000)
	c := &cutter{content: content, etag: stable, ignores: true}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.after = int(c.requests.Load()+1) * 200000
		c.ServeHTTP(w, r)
	}))
	defer srv.Close()
	st, err := (&Source{URL: srv.URL, Wait: noWait, Tries: 3}).Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(st)
	if err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d of %d bytes, %v", len(got), len(content), err)
	}
}

func TestAFileThatChangesMeanwhileIsNotMixed(t *testing.T) {
	c := &cutter{content: make([]byte, 300000), after: 100000, etag: func(n int64) string { return fmt.Sprintf(`"%d"`, n) }}
	srv := httptest.NewServer(c)
	defer srv.Close()
	st, err := (&Source{URL: srv.URL, Wait: noWait, Name: "the image"}).Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(st); err == nil || !strings.Contains(err.Error(), "the image changed") {
		t.Errorf("%v", err)
	}
}

// A server that refuses, breaks off or is gone is followed by the next. Only when all have refused is that final.
func TestAFileComesFromTheNextServer(t *testing.T) {
	content := strings.Repeat("0123456789", 1000)
	good := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(content))
	}))
	defer good.Close()
	lacks := httptest.NewServer(http.NotFoundHandler())
	defer lacks.Close()
	cut := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(content)))
		_, _ = io.WriteString(w, content[:4000])
	}))
	defer cut.Close()
	for name, urls := range map[string][]string{
		"404": {lacks.URL, good.URL}, "cut": {cut.URL, good.URL}, "gone": {"http://127.0.0.1:1", good.URL},
		"two are bad": {lacks.URL, "http://127.0.0.1:1", good.URL}, "the first is good": {good.URL, lacks.URL},
	} {
		s := &Source{URL: urls[0], Elsewhere: urls[1:], Wait: func(context.Context, time.Duration) error { return nil }}
		st, err := s.Stream(t.Context())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, err := io.ReadAll(st); err != nil || string(got) != content {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		st.Close()
	}
	s := &Source{URL: lacks.URL, Elsewhere: []string{lacks.URL, lacks.URL}, Wait: func(context.Context, time.Duration) error { return nil }}
	if _, err := s.Stream(t.Context()); !inventory.IsKind(err, inventory.NotFound) {
		t.Errorf("all lack it: %v", err)
	}
}

func TestASilentConnectionIsGivenUp(t *testing.T) {
	var n atomic.Int64
	release := make(chan bool)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1) == 1 {
			w.Header().Set("Content-Length", "4")
			_, _ = io.WriteString(w, "ab")
			w.(http.Flusher).Flush()
			select {
			case <-release:
			case <-r.Context().Done():
			}
			return
		}
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader("abcd"))
	}))
	defer srv.Close()
	defer close(release)
	st, err := (&Source{URL: srv.URL, Wait: noWait, StallFor: 50 * time.Millisecond}).Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(st); err != nil || string(got) != "abcd" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestRefusalsSayWhatToDoAndHideTheAddress(t *testing.T) {
	cases := map[string]struct {
		status, requests int
		kind             inventory.Kind
	}{
		"gone":         {http.StatusGone, 1, inventory.NotFound},
		"not allowed":  {http.StatusForbidden, 1, inventory.Forbidden},
		"not now":      {http.StatusServiceUnavailable, 4, inventory.Unavailable},
		"broken":       {http.StatusInternalServerError, 4, inventory.Unavailable},
		"a bad answer": {http.StatusTeapot, 1, inventory.Internal},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var requests int
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests++
				w.Header().Set("Retry-After", "7")
				w.WriteHeader(c.status)
			}))
			defer srv.Close()
			var pauses []time.Duration
			s := &Source{URL: srv.URL + "/s/secret-session/doc", Tries: 4, Wait: func(_ context.Context, d time.Duration) error {
				pauses = append(pauses, d)
				return nil
			}}
			_, err := s.Document(t.Context(), 100)
			var e *inventory.Error
			if !errors.As(err, &e) || e.Kind != c.kind || requests != c.requests || strings.Contains(err.Error(), "secret-session") {
				t.Errorf("%d requests, %v", requests, err)
			}
			for _, p := range pauses {
				if p != 7*time.Second {
					t.Errorf("waited for %v", p)
				}
			}
		})
	}
	s := &Source{URL: "http://127.0.0.1:1/s/secret-session", Tries: 2, Wait: noWait}
	if _, err := s.Document(t.Context(), 100); err == nil || strings.Contains(err.Error(), "secret-session") {
		t.Errorf("%v", err)
	}
}

func TestDocumentsAreBounded(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(make([]byte, 101)) }))
	defer srv.Close()
	if _, err := (&Source{URL: srv.URL, Wait: noWait}).Document(t.Context(), 100); err == nil {
		t.Error("101 bytes were taken where 100 are allowed")
	}
	if b, err := (&Source{URL: srv.URL, Wait: noWait}).Document(t.Context(), 101); err != nil || len(b) != 101 {
		t.Errorf("%d, %v", len(b), err)
	}
}
