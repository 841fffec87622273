package web

import (
	"log/slog"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// Frame is what all operations of the REST API share: their description, the inventory as a request sees it, and the audit.
type Frame struct {
	api        huma.API
	store      requestStore
	now        func() time.Time
	log        *slog.Logger
	vets       bool // configurations are looked at before they are saved
	trails     *trails
	operations map[string]operation // what may change something, by id
	undoers    map[string]undoer    // how edits of a noun are undone, by its singular
}

// newFrame returns a frame without operations.
func newFrame(api huma.API, store requestStore, now func() time.Time, log *slog.Logger, vets bool) *Frame {
	return &Frame{api: api, store: store, now: now, log: log, vets: vets, trails: newTrails(), operations: map[string]operation{}, undoers: map[string]undoer{}}
}
