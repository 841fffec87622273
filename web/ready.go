package web

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/wire"
)

// ReadyPart is a listener, or a part that all listeners need, and whether it can do its work.
type ReadyPart struct {
	Name    string `json:"name"`
	IsReady bool   `json:"isReady"`
	Reason  string `json:"reason,omitempty"` // why not
}

// Readiness is whether the server can do its work.
type Readiness struct {
	IsReady bool        `json:"isReady"`
	Parts   []ReadyPart `json:"parts"`
}

// health answers what load balancers and monitoring ask.
type health struct {
	store inventory.Store
	parts func() []ReadyPart // nil: only the admin listener is known
	// database says where the inventory is; nil: nobody knows.
	database func() wire.Database
	log      *slog.Logger
}

// canRead reports whether the database can be read.
func (x health) canRead(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return x.store.Read(ctx, func(tx inventory.Tx) error {
		_, err := tx.LastEventID()
		return err
	})
}

// healthz says whether the process lives and reaches its database: what a restart may mend. Whether it can do its work is for
// readyz to say.
func (x health) healthz(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if err := x.canRead(r.Context()); err != nil {
		// The restart of this process starts no PostgreSQL server. The process answers why nothing works, and goes on by itself.
		if x.database != nil && x.database().Kind == wire.DatabasePostgreSQL {
			_, _ = io.WriteString(w, "ok, but the database server cannot be used\n")
			return
		}
		x.log.Warn("not healthy", "err", err)
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, "the database cannot be read\n")
		return
	}
	_, _ = io.WriteString(w, "ok\n")
}

// readyz says of all doors, or of the one that the path names, whether they can do their work, and why not.
func (x health) readyz(w http.ResponseWriter, r *http.Request) {
	all := []ReadyPart{{Name: "admin", IsReady: true}}
	if x.parts != nil {
		all = x.parts()
	}
	if err := x.canRead(r.Context()); err != nil {
		x.log.Warn("not ready", "err", err)
		const why = "the database cannot be read"
		all = append(all, ReadyPart{Name: "reads", Reason: why})
	}
	_, name, isOne := strings.Cut(strings.TrimPrefix(r.URL.Path, rest.ReadyPath), "/")
	out := Readiness{IsReady: true, Parts: []ReadyPart{}}
	for _, p := range all {
		if !isOne || p.Name == name {
			out.Parts = append(out.Parts, p)
			out.IsReady = out.IsReady && p.IsReady
		}
	}
	if len(out.Parts) == 0 {
		rest.WriteProblem(w, r, x.log, inventory.Errorf(inventory.NotFound, "there is no listener %q", inventory.Clean(name, 40)).WithHint("GET %s lists them", rest.ReadyPath))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if !out.IsReady {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(out) // the client is gone if this fails
}
