package web

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestLargeJSONIsCompressedAndNothingElse(t *testing.T) {
	big := strings.Repeat(`{"a":"host"},`, 4000)
	for _, tc := range []struct {
		name, method, accept, kind, body string
		status                           int
		want                             bool
	}{
		{"a large answer", "GET", "gzip, br", "application/json", big, 200, true},
		{"a small answer", "GET", "gzip", "application/json", "{}", 200, false},
		{"a client that takes none", "GET", "", "application/json", big, 200, false},
		{"a write", "POST", "gzip", "application/json", big, 200, false},
		{"a stream", "GET", "gzip", "text/event-stream", big, 200, false},
		{"a problem", "GET", "gzip", "application/problem+json", big, 404, false},
		{"no body", "GET", "gzip", "application/json", "", 204, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := compressed(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", tc.kind)
				w.WriteHeader(tc.status)
				for part := range strings.SplitSeq(tc.body, ",") {
					_, _ = io.WriteString(w, part+",")
				}
			}))
			r := httptest.NewRequest(tc.method, "/", nil)
			r.Header.Set("Accept-Encoding", tc.accept)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if got := w.Header().Get("Content-Encoding") == "gzip"; got != tc.want || w.Code != tc.status {
				t.Fatalf("compressed %t, status %d", got, w.Code)
			}
			var body io.Reader = w.Body
			if tc.want {
				if w.Body.Len() > len(tc.body)/4 {
					t.Errorf("%d bytes of %d are left", w.Body.Len(), len(tc.body))
				}
				z, err := gzip.NewReader(w.Body)
				if err != nil {
					t.Fatal(err)
				}
				body = z
			}
			if got, err := io.ReadAll(body); err != nil || string(got) != tc.body+"," {
				t.Errorf("the answer came back as another (%v, %d bytes)", err, len(got))
			}
		})
	}
}

func TestAStreamIsNotHeldBack(t *testing.T) {
	asked := make(chan struct{})
	srv := httptest.NewServer(compressed(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "[1")
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		<-asked
	})))
	defer srv.Close()
	res, err := http.Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b := make([]byte, 2)
	if _, err := io.ReadFull(res.Body, b); err != nil || string(b) != "[1" {
		t.Errorf("%q, %v", b, err)
	}
	close(asked)
}
