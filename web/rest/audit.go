package rest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humaecho"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/ref"
	"slipway.dev/slipway/provision/ledger"
)

// Edited notes what an edit made of a thing. Before and after are as the API shows the thing to its readers: hidden parts
// are hidden here, too. Version is the one that the edit left.
func Edited(req *Request, noun, name string, change inventory.AuditChange, before, after any, version int64) {
	t := req.Trail
	b, isBeforeCut := AuditJSON(before)
	a, isAfterCut := AuditJSON(after)
	t.mu.Lock()
	defer t.mu.Unlock()
	r := &t.row
	r.Noun, r.Name, r.Change, r.Before, r.After, r.Version = noun, inventory.Clean(name, 255), change, b, a, version
	r.Refs = ref.Within([]any{before, after})
	if isBeforeCut || isAfterCut {
		r.Fixed = "it is too large to be kept here"
	}
}

// AuditJSON is a thing as the audit keeps it, without parts that are too large.
func AuditJSON(v any) (text json.RawMessage, isCut bool) {
	if v == nil {
		return nil, false
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, true
	}
	text = bytes.TrimSpace(out.Bytes())
	if len(text) > inventory.AuditMax {
		return nil, true
	}
	return text, false
}

// worded is an input that can say in words what it asks for.
type worded interface{ Asked() string }

// RowOf begins a row with who asks.
func RowOf(req *Request, operation, noun string) inventory.Audit {
	c := req.Caller
	r := inventory.Audit{
		Actor: cmp.Or(c.Name, "somebody"), Role: string(c.Role()), Via: cmp.Or(c.Via, "none"), RequestID: req.ID, Operation: operation, Noun: noun,
	}
	if c.Source.IsValid() {
		r.Source = c.Source.String()
	}
	return r
}

// audited is the first thing around every operation that may change something: it begins the trail, and writes down what
// never gets to the handler.
func (f *Frame) audited(o Operation) func(huma.Context, func(huma.Context)) {
	return func(hc huma.Context, next func(huma.Context)) {
		req, t := EdgeOf(hc.Context()), &Trail{success: cmp.Or(o.Status, http.StatusOK)}
		req.Trail = t
		t.isDryRun, _ = strconv.ParseBool(hc.Query("dryRun"))
		r := &t.row
		*r = RowOf(req, o.ID, strings.TrimSuffix(o.Tag, "s"))
		for _, param := range []string{"host", "name", "id"} {
			r.Name = cmp.Or(r.Name, inventory.Clean(hc.Param(param), 255))
		}
		defer func() {
			if p := recover(); p != nil {
				f.Finish(req, http.StatusInternalServerError, "something went wrong in the server")
				panic(p)
			}
		}()
		next(hc)
		f.Finish(req, cmp.Or(humaecho.UnwrapV4(hc).Response().Status, http.StatusOK), "")
	}
}

// begin notes the request before the handler works.
func (t *Trail) begin(o Operation, in any) {
	if a, ok := in.(worded); ok {
		t.Say(a.Asked())
	}
	if o.Tag == "appliance" && o.Method != http.MethodGet {
		h := wish(in)
		t.mu.Lock()
		t.asked = h
		t.mu.Unlock()
	}
}

// enter writes an edit into the transaction that makes it. It is called last in it, and once it is committed the trail
// counts as written.
func (f *Frame) enter(req *Request, tx inventory.Tx) error {
	t := req.Trail
	t.mu.Lock()
	last, isWritten := t.last, t.isWritten
	t.mu.Unlock()
	if isWritten {
		return nil
	}
	if last != nil {
		if err := last(tx); err != nil {
			return err
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.row.Status = t.success
	return f.Add(tx, &t.row)
}

// witness writes the entry of a request to the engine into the engine's transaction.
type witness struct {
	f   *Frame
	req *Request
}

// Enter implements ledger.Witness.
func (w witness) Enter(_ context.Context, tx inventory.Tx) error { return w.f.enter(w.req, tx) }

// Entered implements ledger.Witness.
func (w witness) Entered(context.Context) { entered(w.req) }

// Asker is the caller, as the engine knows askers: the engine's transaction holds the entry of what it does for the caller.
func (f *Frame) Asker(req *Request) ledger.Asker {
	return ledger.Asker{By: req.By(), Witness: witness{f, req}}
}

// Begun writes the entry of a deed that cannot be undone and is in no transaction, such as a command to a controller. It
// writes it before the deed. Nothing is done without its entry in the audit. A failure afterwards adds another entry, which
// says why.
func (f *Frame) Begun(req *Request) error {
	t := req.Trail
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.isWritten || t.isBegun || t.isDryRun {
		return nil
	}
	t.row.Status = t.success
	err := f.Store.Write(req.Detached().needing(inventory.Viewer), func(tx inventory.Tx) error { return f.Add(tx, &t.row) })
	t.isBegun = err == nil
	return err
}

// entered says that a transaction with enter in it is committed.
func entered(req *Request) {
	t := req.Trail
	t.mu.Lock()
	defer t.mu.Unlock()
	t.isWritten = true
}

// Add fills in what the inventory knows of the subject, and stores a row.
func (f *Frame) Add(tx inventory.Tx, r *inventory.Audit) error {
	r.At = f.Now()
	if r.HostID == "" && r.Name != "" {
		switch r.Noun {
		case "host", "bmc":
			if h, err := FindHost(tx, r.Name); err == nil {
				r.HostID, r.Name = h.ID, h.Name
			}
		case "machine":
			if m, err := tx.FindMachine(r.Name); err == nil {
				r.HostID = m.HostID
			}
		case "operation":
			if o, err := tx.FindOperation(r.Name); err == nil {
				r.HostID = o.HostID
			}
		}
	}
	f.trails.forget(r)
	return tx.AddAudit(r)
}

// Finish writes the row of a request that has its answer, unless it is written, was a dry run, or is one too many. refs is what
// refused names.
func (f *Frame) Finish(req *Request, status int, refused string, refs ...inventory.Ref) {
	t := req.Trail
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.isWritten {
		return
	}
	t.isWritten = true
	if t.isBegun && status < http.StatusBadRequest {
		return
	}
	r := &t.row
	if r.Status = status; r.IsRefused() {
		r.Change, r.Before, r.After, r.Version, r.Fixed = "", nil, nil, 0, ""
		r.Detail = strings.Trim(r.Detail+"; "+inventory.Clean(refused, 500), "; ")
		r.Refs = append(r.Refs, refs...)
	}
	if t.isDryRun || !f.trails.admits(r, f.Now(), t.asked) {
		return
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(req), 5*time.Second)
	defer cancel()
	if err := f.Store.Write(req.With(late).needing(inventory.Viewer), func(tx inventory.Tx) error { return f.Add(tx, r) }); err != nil {
		f.Log.Error("not in the audit", "op", r.RequestID, "operation", r.Operation, "actor", r.Actor, "name", r.Name, "status", r.Status, "err", err)
	}
}

// finished is finish with the outcome of a handler.
func (f *Frame) finished(req *Request, o Operation, out any, err error) {
	if err != nil {
		p := ProblemOf(req, f.Log, err)
		f.Finish(req, p.Status, p.Detail, p.Refs...)
		return
	}
	if _, ok := out.(*huma.StreamResponse); ok {
		return // it is still to be sent
	}
	status := cmp.Or(o.Status, http.StatusOK)
	if out == nil {
		status = cmp.Or(o.Status, http.StatusNoContent)
	}
	if w, ok := out.(*Written); ok && w != nil {
		status = cmp.Or(w.Status, status)
	}
	f.Finish(req, status, "")
}

// wish tells a request of a controller from one that asks for something else.
func wish(in any) [sha256.Size]byte {
	b, _ := json.Marshal(in) // what cannot be encoded is like nothing else that cannot
	return sha256.Sum256(b)
}
