package web

import (
	"bytes"
	"compress/gzip"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"

	"slipway.dev/slipway/web/rest"
)

// page is a file of the UI, as it is sent.
type page struct {
	contentType string
	plain, gzip []byte // gzip is nil when it saves nothing
	isForever   bool   // its name has a hash of its content
}

// pages are the UI's files, compressed once.
type pages map[string]page

// uiPolicy lets the UI load what this server gives it, and nothing else.
const uiPolicy = "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// readPages reads the built UI. Without an index.html there is none.
func readPages(files fs.FS) (pages, error) {
	all := pages{}
	if files == nil {
		return all, nil
	}
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), ".") {
			return err
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		p := page{contentType: mime.TypeByExtension(path.Ext(name)), plain: text, isForever: strings.HasPrefix(name, "assets/")}
		if path.Ext(name) == ".woff2" {
			p.contentType = "font/woff2"
		}
		var small bytes.Buffer
		w, _ := gzip.NewWriterLevel(&small, gzip.BestCompression) // the level exists
		_, _ = w.Write(text)                                      // a buffer takes all
		_ = w.Close()
		if small.Len() < len(text)*9/10 {
			p.gzip = small.Bytes()
		}
		all[name] = p
		return nil
	})
	return all, err
}

// ui answers for the UI, and passes on all else. Its files are no secret: what it shows comes from the API, which asks
// who is there.
func (all pages) ui(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if rest.IsOfAPI(r.URL.Path) || r.Method != http.MethodGet && r.Method != http.MethodHead {
			next.ServeHTTP(w, r)
			return
		}
		index, isBuilt := all["index.html"]
		if !isBuilt {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte("This program was built without the web UI.\nBuild it with: make ui build\nThe API is at /api/v1, the command line is: slipway --help\n"))
			return
		}
		name := strings.TrimPrefix(path.Clean(r.URL.Path), "/")
		p, ok := all[name]
		switch {
		case !ok && strings.HasPrefix(name, "assets/"):
			http.NotFound(w, r) // of another version
			return
		case !ok:
			p = index // a page of the UI
		}
		h := w.Header()
		h.Set("Content-Type", p.contentType)
		h.Set("Content-Security-Policy", uiPolicy)
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Vary", "Accept-Encoding")
		if p.isForever {
			h.Set("Cache-Control", "public, max-age=31536000, immutable")
		} else {
			h.Set("Cache-Control", "no-cache")
		}
		body := p.plain
		if p.gzip != nil && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			h.Set("Content-Encoding", "gzip")
			body = p.gzip
		}
		h.Set("Content-Length", strconv.Itoa(len(body)))
		if r.Method == http.MethodGet {
			_, _ = w.Write(body)
		}
	})
}
