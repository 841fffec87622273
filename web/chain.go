package web

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/imports"
	"slipway.dev/slipway/web/rest"
)

// answerFor is how long a request may last until its answer has been taken; streams and artefact checks set their own limit.
const answerFor = 2 * time.Minute

// chain puts around a handler what every request needs: an id, a limit on time and size, an answer even after a panic,
// and a line in the log.
func chain(log *slog.Logger, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		id := newRequestID()
		r = r.WithContext(rest.Begin(r.Context(), id))
		h := w.Header()
		h.Set("X-Request-ID", id)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		control := http.NewResponseController(w)
		_ = control.SetReadDeadline(began.Add(rest.ReadFor)) // not every connection has deadlines; real ones do
		_ = control.SetWriteDeadline(began.Add(answerFor))
		if r.Method != http.MethodPost || r.URL.Path != "/api/v1"+imports.UploadPath { // a file is bounded by what receives it
			r.Body = http.MaxBytesReader(w, r.Body, rest.BodyMax)
		}
		out := &statusWriter{ResponseWriter: w}
		defer func() {
			if p := recover(); p != nil {
				if p == http.ErrAbortHandler {
					panic(p)
				}
				log.Error("request panicked", "op", id, "err", fmt.Sprint(p), "stack", string(debug.Stack()))
				if out.status == 0 {
					rest.WriteProblem(out, r, log, inventory.Errorf(inventory.Internal, "panic"))
				}
			}
			log.Debug("request", "op", id, "method", r.Method, "path", r.URL.Path, "status", out.status, "took", time.Since(began), "addr", r.RemoteAddr)
		}()
		next.ServeHTTP(out, r)
	})
}

func newRequestID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// statusWriter remembers the status for the log.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (w *statusWriter) WriteHeader(status int) {
	w.status = cmp.Or(w.status, status)
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *statusWriter) Write(b []byte) (int, error) {
	w.status = cmp.Or(w.status, http.StatusOK)
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
