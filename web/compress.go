package web

import (
	"compress/gzip"
	"net/http"
	"strings"
	"sync"
)

// compressFrom is the size from which an answer is worth compressing: below it the packets are as many.
const compressFrom = 16 << 10

var gzips = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is one that there is
	return w
}}

// compressed compresses large JSON answers to reads for clients that take it: ten thousand hosts are a tenth of their size
// then. Everything else passes untouched, streams above all.
func compressed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			next.ServeHTTP(w, r)
			return
		}
		z := &gzipWriter{ResponseWriter: w}
		defer z.end()
		next.ServeHTTP(z, r)
	})
}

// gzipWriter holds an answer back until it is clear whether it is large.
type gzipWriter struct {
	http.ResponseWriter
	status   int
	held     []byte
	isPlain  bool // nothing is held back any more
	z        *gzip.Writer
	isJSON   bool
	isHeaded bool
}

// WriteHeader implements http.ResponseWriter.
func (w *gzipWriter) WriteHeader(status int) {
	if w.isHeaded {
		return
	}
	w.isHeaded, w.status = true, status
	h := w.Header()
	w.isJSON = status == http.StatusOK && strings.HasPrefix(h.Get("Content-Type"), "application/json") && h.Get("Content-Encoding") == ""
	if !w.isJSON {
		w.isPlain = true
		w.ResponseWriter.WriteHeader(status)
		return
	}
	h.Add("Vary", "Accept-Encoding")
}

// Write implements http.ResponseWriter.
func (w *gzipWriter) Write(b []byte) (int, error) {
	if !w.isHeaded {
		w.WriteHeader(http.StatusOK)
	}
	switch {
	case w.z != nil:
		return w.z.Write(b)
	case w.isPlain:
		return w.ResponseWriter.Write(b)
	}
	if w.held = append(w.held, b...); len(w.held) < compressFrom {
		return len(b), nil
	}
	w.Header().Set("Content-Encoding", "gzip")
	w.Header().Del("Content-Length")
	w.ResponseWriter.WriteHeader(w.status)
	w.z = gzips.Get().(*gzip.Writer)
	w.z.Reset(w.ResponseWriter)
	_, err := w.z.Write(w.held)
	w.held = nil
	return len(b), err
}

// release gives out what is held back, as it is.
func (w *gzipWriter) release() {
	if w.isPlain || w.z != nil || !w.isHeaded {
		return
	}
	w.isPlain = true
	w.ResponseWriter.WriteHeader(w.status)
	_, _ = w.ResponseWriter.Write(w.held)
	w.held = nil
}

// end finishes the answer.
func (w *gzipWriter) end() {
	if w.z == nil {
		w.release()
		return
	}
	_ = w.z.Close()
	w.z.Reset(nil)
	gzips.Put(w.z)
	w.z = nil
}

// FlushError lets streams through.
func (w *gzipWriter) FlushError() error {
	w.release()
	if w.z != nil {
		if err := w.z.Flush(); err != nil {
			return err
		}
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Unwrap lets http.ResponseController reach the connection.
func (w *gzipWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
