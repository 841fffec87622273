package web

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
)

func TestTheUIIsServedWithoutAToken(t *testing.T) {
	files := fstest.MapFS{
		".keep":                {},
		"index.html":           {Data: []byte("<html>" + strings.Repeat("slipway ", 100))},
		"assets/index-1a.js":   {Data: []byte(strings.Repeat("let x = 1;", 100))},
		"assets/font-2b.woff2": {Data: []byte{1, 2, 3}},
	}
	all, err := readPages(files)
	if err != nil {
		t.Fatal(err)
	}
	api := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	for name, c := range map[string]struct {
		method, path, accept string
		built                bool
		status               int
		contentType, cache   string
		contains             string
	}{
		"the start page":                     {path: "/", built: true, status: 200, contentType: "text/html", cache: "no-cache", contains: "slipway"},
		"a page of the UI":                   {path: "/hosts/r1-u04?tab=boot", built: true, status: 200, contentType: "text/html", contains: "slipway"},
		"a script, for ever":                 {path: "/assets/index-1a.js", built: true, status: 200, contentType: "javascript", cache: "immutable", contains: "let x"},
		"compressed":                         {path: "/assets/index-1a.js", accept: "gzip, br", built: true, status: 200, contains: "let x"},
		"a font":                             {path: "/assets/font-2b.woff2", built: true, status: 200, contentType: "font/woff2"},
		"a script of another version":        {path: "/assets/index-0.js", built: true, status: 404},
		"nothing outside of it":              {path: "/../secret", built: true, status: 200, contentType: "text/html"},
		"hidden files are not there":         {path: "/.keep", built: true, status: 200, contentType: "text/html"},
		"the API is not touched":             {path: "/api/v1/hosts", built: true, status: http.StatusTeapot},
		"nor with two slashes":               {path: "//api/v1/hosts", built: true, status: http.StatusTeapot},
		"nor in capitals":                    {path: "/API/v1/hosts", built: true, status: http.StatusTeapot},
		"nor round about":                    {path: "/hosts/../api/v1/hosts", built: true, status: http.StatusTeapot},
		"nor escaped":                        {path: "/%2fapi/v1/hosts", built: true, status: http.StatusTeapot},
		"nor backwards":                      {path: "/%5capi/v1/hosts", built: true, status: http.StatusTeapot},
		"nor readiness":                      {path: "/readyz/dhcp", built: true, status: http.StatusTeapot},
		"nor health":                         {path: "/healthz", built: true, status: http.StatusTeapot},
		"nor what is sent":                   {method: "POST", path: "/", built: true, status: http.StatusTeapot},
		"a program without it says so":       {path: "/", status: 404, contains: "make ui"},
		"and serves the API all the same":    {path: "/api/v1/version", status: http.StatusTeapot},
		"the head of a page has no body":     {method: "HEAD", path: "/", built: true, status: 200, contentType: "text/html"},
		"what is asked for twice is cleaned": {path: "//hosts//", built: true, status: 200, contentType: "text/html"},
	} {
		t.Run(name, func(t *testing.T) {
			served := pages{}
			if c.built {
				served = all
			}
			r := httptest.NewRequest(firstText(c.method, "GET"), "http://slipway"+c.path, nil)
			if c.accept != "" {
				r.Header.Set("Accept-Encoding", c.accept)
			}
			w := httptest.NewRecorder()
			served.ui(api).ServeHTTP(w, r)
			if w.Code != c.status {
				t.Fatalf("status %d, want %d", w.Code, c.status)
			}
			var body io.Reader = w.Body
			if w.Header().Get("Content-Encoding") == "gzip" {
				if c.accept == "" {
					t.Error("compressed for a client that did not ask for it")
				}
				z, err := gzip.NewReader(w.Body)
				if err != nil {
					t.Fatal(err)
				}
				body = z
			} else if c.accept != "" {
				t.Error("not compressed")
			}
			text, err := io.ReadAll(body)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(text), c.contains) || c.method == "HEAD" && len(text) > 0 {
				t.Errorf("body %.80q", text)
			}
			if !strings.Contains(w.Header().Get("Content-Type"), c.contentType) {
				t.Errorf("content type %q", w.Header().Get("Content-Type"))
			}
			if !strings.Contains(w.Header().Get("Cache-Control"), c.cache) {
				t.Errorf("cache control %q", w.Header().Get("Cache-Control"))
			}
			if c.built && w.Code == 200 && !strings.Contains(w.Header().Get("Content-Security-Policy"), "default-src 'self'") {
				t.Error("no policy")
			}
		})
	}
}

func firstText(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
