// Package rest is the frame of the REST API: a request with its caller, the shape of operations, pages and errors, and dry
// runs. It also has the audit of requests. The packages of the nouns register their operations on a Frame.
//
// Start reading at Request, then Operation and Register, then Noun and AddNoun (what most nouns share).
package rest

import (
	"log/slog"
	"net/http"
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
	reads      *http.ServeMux       // the reads that it knows, each with whether it answers it; nil: it answers all operations
}

// NewFrame returns a frame without operations.
func NewFrame(api huma.API, store Store, now func() time.Time, log *slog.Logger, vets bool) *Frame {
	return &Frame{API: api, Store: store, Now: now, Log: log, vets: vets, trails: newTrails(), operations: map[string]Operation{}, undoers: map[string]Undoer{}}
}

// NewReadFrame returns a frame that registers operations with AtAny and drops all others.
func NewReadFrame(api huma.API, store Store, now func() time.Time, log *slog.Logger) *Frame {
	f := NewFrame(api, store, now, log, false)
	f.reads = http.NewServeMux()
	return f
}

// isOurs says of a read whether this instance answers it.
type isOurs bool

// ServeHTTP makes a value that http.ServeMux can find. Nobody calls it.
func (isOurs) ServeHTTP(http.ResponseWriter, *http.Request) {}

// Answers reports whether a read frame has the operation for a request.
func (f *Frame) Answers(r *http.Request) bool {
	found, _ := f.reads.Handler(r)
	ours, ok := found.(isOurs)
	return ok && bool(ours)
}

// takes reports whether an operation is to be registered.
func (f *Frame) takes(o Operation) bool {
	if f.reads == nil {
		return true
	}
	if o.Method == http.MethodGet {
		// The others are noted, too: the address of one may look like that of a thing by its name.
		f.reads.Handle(o.Method+" /api/v1"+o.Path, isOurs(o.AtAny))
	}
	return o.AtAny
}

// Describe edits the description of an operation at a path below /api/v1. Of one that a read frame dropped there is none.
func (f *Frame) Describe(method, path string, edit func(op *huma.Operation)) {
	item := f.API.OpenAPI().Paths["/api/v1"+path]
	if item == nil {
		return
	}
	op := map[string]*huma.Operation{
		http.MethodGet: item.Get, http.MethodPost: item.Post, http.MethodPut: item.Put, http.MethodDelete: item.Delete,
	}[method]
	if op != nil {
		edit(op)
	}
}

// Undoer takes back an edit of one noun, through the same checks that the edit itself went through.
type Undoer func(req *Request, a inventory.Audit, isDryRun bool) (*Written, error)

// AddUndoer says how edits of a noun are undone.
func (f *Frame) AddUndoer(noun string, u Undoer) { f.undoers[noun] = u }

// Undoer returns how edits of a noun are undone, nil when nobody can undo them.
func (f *Frame) Undoer(noun string) Undoer { return f.undoers[noun] }
