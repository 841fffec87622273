package rest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humaecho"
	"golang.org/x/time/rate"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/ref"
	"slipway.dev/slipway/provision/ledger"
)

// Trail is what the audit will say of one request. Handlers add to it; an edit is written in the transaction that makes
// it, everything else when the request has its answer.
type Trail struct {
	mu        sync.Mutex
	row       inventory.Audit
	isDryRun  bool
	isWritten bool
	isBegun   bool              // the entry was written before a deed that no transaction holds: only a refusal is one more
	asked     [sha256.Size]byte // what a controller asked for
	success   int               // status of an edit that is made
	last      func(inventory.Tx) error
}

// About says what a request is about, where its address does not.
func (t *Trail) About(noun, name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.row.Noun, t.row.Name = noun, inventory.Clean(name, 255)
}

// Actor names who asked, where a request comes in as nobody.
func (t *Trail) Actor(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.row.Actor = name
}

// Fix says why the edit cannot be undone.
func (t *Trail) Fix(why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.row.Fixed = why
}

// Lastly has fn fill in the entry at the end of the transaction that writes it.
func (t *Trail) Lastly(fn func(inventory.Tx) error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = fn
}

// Succeeds says what the answer will be when all goes well.
func (t *Trail) Succeeds(status int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.success = status
}

// Undoes says which entry the request takes back.
func (t *Trail) Undoes(id int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.row.UndoOf = id
}

// Entry returns the entry as it is now.
func (t *Trail) Entry() inventory.Audit {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.row
}

// Concern names the host that a request concerned.
func (t *Trail) Concern(id inventory.HostID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.row.HostID = id
}

// Say adds the request in words.
func (t *Trail) Say(detail string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.row.Detail = inventory.Clean(detail, 500)
}

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
			if r.Name == "" {
				r.Name = inventory.Clean(hc.Param(param), 255)
			}
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

// refused notes why a request never got to its handler.
func (t *Trail) refused(p *Problem) {
	why := p.Detail
	if len(p.Errors) > 0 {
		why += ": " + strings.Trim(p.Errors[0].Location+": "+p.Errors[0].Message, ": ")
	}
	t.Say(why)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.row.Refs = p.Refs
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

// trails bounds what is written of requests that are refused or repeat themselves.
type trails struct {
	mu     sync.Mutex
	tries  map[string]*rate.Limiter
	unsaid map[string]int               // rows left out since the last one written
	same   map[string][sha256.Size]byte // by noun and name: what a controller asked for last

	strangers *rate.Limiter // of those who did not say who they are, all together
	refusals  *rate.Limiter // of those who did, all together
}

const (
	trailsMax      = 4096             // actors and things remembered; when there are more, all are forgotten
	refusedEvery   = time.Minute      // one refusal for each actor is written per minute,
	refusedBurst   = 200              // and so many at once;
	refusalsEvery  = 30 * time.Second // and fewer of all actors together: anyone who makes a thousand tokens fills no disk
	refusalsBurst  = 2000
	strangeEvery   = 5 * time.Second // of those who did not say who they are, fewer from each address (of IPv6, each /64),
	strangeBurst   = 20
	strangersEvery = 2 * time.Minute // and fewer from all together: anyone who has a million addresses fills none either
	strangersBurst = 500
)

func newTrails() *trails {
	return &trails{
		tries: map[string]*rate.Limiter{}, unsaid: map[string]int{}, same: map[string][sha256.Size]byte{},
		strangers: rate.NewLimiter(rate.Every(strangersEvery), strangersBurst), refusals: rate.NewLimiter(rate.Every(refusalsEvery), refusalsBurst),
	}
}

// admits reports whether a row is to be written. Someone who may not do a thing can ask for it a thousand times a second, and
// a controller that keeps things as they are asks for the same over and over: neither fills the disk.
func (k *trails) admits(r *inventory.Audit, now time.Time, asked [sha256.Size]byte) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.tries)+len(k.same) > trailsMax {
		clear(k.tries)
		clear(k.unsaid)
		clear(k.same)
	}
	if asked != ([sha256.Size]byte{}) && !r.IsRefused() {
		key := r.Operation + " " + r.Name
		if k.same[key] == asked {
			return false
		}
		k.same[key] = asked
	}
	if !r.IsRefused() {
		return true
	}
	who, every, burst := r.Actor, refusedEvery, refusedBurst
	if r.Via == "none" {
		source, _ := netip.ParseAddr(r.Source)
		who, every, burst = SourceKey(source).String(), strangeEvery, strangeBurst
	}
	l := k.tries[who]
	if l == nil {
		l = rate.NewLimiter(rate.Every(every), burst)
		k.tries[who] = l
	}
	all := k.refusals
	if r.Via == "none" {
		all = k.strangers
	}
	if !l.AllowN(now, 1) || !all.AllowN(now, 1) {
		k.unsaid[who]++
		return false
	}
	if n := k.unsaid[who]; n > 0 {
		delete(k.unsaid, who)
		r.Detail = strings.TrimPrefix(r.Detail+"; before it "+strconv.Itoa(n)+" more were refused that are not listed", "; ")
	}
	return true
}

// forget has a controller's next wish for a thing written, now that somebody else has changed it.
func (k *trails) forget(r *inventory.Audit) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for key := range k.same {
		if operation, name, _ := strings.Cut(key, " "); name == r.Name && operation != r.Operation {
			delete(k.same, key)
		}
	}
}

// wish tells a request of a controller from one that asks for something else.
func wish(in any) [sha256.Size]byte {
	b, _ := json.Marshal(in) // what cannot be encoded is like nothing else that cannot
	return sha256.Sum256(b)
}
