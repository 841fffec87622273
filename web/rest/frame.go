// Package rest is the frame of the REST API: a request with its caller, the shape of operations, pages and errors, and dry
// runs. It also has the audit of requests. The packages of the nouns register their operations on a Frame.
//
// Start reading at Request, then Operation and Register, then Noun and AddNoun (what most nouns share).
package rest

import (
	"log/slog"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"slipway.dev/slipway/inventory"
)

// Frame is what all operations of the REST API share: their description, the inventory as a request sees it, and the audit.
type Frame struct {
	API        huma.API
	Store      Store
	Now        func() time.Time
	Log        *slog.Logger
	vets       bool // configurations are looked at before they are saved
	trails     *trails
	operations map[string]Operation // what may change something, by id
	undoers    map[string]Undoer    // how edits of a noun are undone, by its singular
}

// NewFrame returns a frame without operations.
func NewFrame(api huma.API, store Store, now func() time.Time, log *slog.Logger, vets bool) *Frame {
	return &Frame{API: api, Store: store, Now: now, Log: log, vets: vets, trails: newTrails(), operations: map[string]Operation{}, undoers: map[string]Undoer{}}
}

// Undoer takes back an edit of one noun, through the same checks that the edit itself went through.
type Undoer func(req *Request, a inventory.Audit, isDryRun bool) (*Written, error)

// AddUndoer says how edits of a noun are undone.
func (f *Frame) AddUndoer(noun string, u Undoer) { f.undoers[noun] = u }

// Undoer returns how edits of a noun are undone, nil when nobody can undo them.
func (f *Frame) Undoer(noun string) Undoer { return f.undoers[noun] }
