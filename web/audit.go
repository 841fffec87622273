package web

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
	"slipway.dev/slipway/provision"
)

// trail is what the audit will say of one request. Handlers add to it; an edit is written in the transaction that makes
// it, everything else when the request has its answer.
type trail struct {
	mu        sync.Mutex
	row       inventory.Audit
	isDryRun  bool
	isWritten bool
	isBegun   bool              // the entry was written before a deed that no transaction holds: only a refusal is one more
	asked     [sha256.Size]byte // what a controller asked for
	success   int               // status of an edit that is made
	last      func(inventory.Tx) error
}

// about says what a request is about, where its address does not.
func (t *trail) about(noun, name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.row.Noun, t.row.Name = noun, inventory.Clean(name, 255)
}

// actor names who asked, where a request comes in as nobody.
func (t *trail) actor(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.row.Actor = name
}

// fix says why the edit cannot be undone.
func (t *trail) fix(why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.row.Fixed = why
}

// lastly has fn fill in the entry at the end of the transaction that writes it.
func (t *trail) lastly(fn func(inventory.Tx) error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = fn
}

// succeeds says what the answer will be when all goes well.
func (t *trail) succeeds(status int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.success = status
}

// undoes says which entry the request takes back.
func (t *trail) undoes(id int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.row.UndoOf = id
}

// entry returns the entry as it is now.
func (t *trail) entry() inventory.Audit {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.row
}

// concern names the host that a request concerned.
func (t *trail) concern(id inventory.HostID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.row.HostID = id
}

// say adds what was asked, in words.
func (t *trail) say(detail string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.row.Detail = inventory.Clean(detail, 500)
}

// edited notes what an edit made of a thing. Before and after are as the API tells the thing to whoever may read it: what is
// hidden there is hidden here. Version is the one that the edit left.
func edited(req *Request, noun, name string, change inventory.AuditChange, before, after any, version int64) {
	t := req.trail
	b, isBeforeCut := auditJSON(before)
	a, isAfterCut := auditJSON(after)
	t.mu.Lock()
	defer t.mu.Unlock()
	r := &t.row
	r.Noun, r.Name, r.Change, r.Before, r.After, r.Version = noun, inventory.Clean(name, 255), change, b, a, version
	if isBeforeCut || isAfterCut {
		r.Fixed = "it is too large to be kept here"
	}
}

// auditJSON is a thing as the audit keeps it; what is too large is left out.
func auditJSON(v any) (text json.RawMessage, isCut bool) {
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

// rowOf begins a row with who asks.
func rowOf(req *Request, operation, noun string) inventory.Audit {
	c := req.caller
	r := inventory.Audit{
		Actor: cmp.Or(c.name, "somebody"), Role: string(c.role()), Via: cmp.Or(c.via, "none"), RequestID: req.id, Operation: operation, Noun: noun,
	}
	if c.source.IsValid() {
		r.Source = c.source.String()
	}
	return r
}

// audited is the first thing around every operation that may change something: it begins the trail, and writes down what
// never gets to the handler.
func (f *Frame) audited(o operation) func(huma.Context, func(huma.Context)) {
	return func(hc huma.Context, next func(huma.Context)) {
		req, t := edgeOf(hc.Context()), &trail{success: cmp.Or(o.status, http.StatusOK)}
		req.trail = t
		t.isDryRun, _ = strconv.ParseBool(hc.Query("dryRun"))
		r := &t.row
		*r = rowOf(req, o.id, strings.TrimSuffix(o.tag, "s"))
		for _, param := range []string{"host", "name", "id"} {
			if r.Name == "" {
				r.Name = inventory.Clean(hc.Param(param), 255)
			}
		}
		defer func() {
			if p := recover(); p != nil {
				f.finish(req, http.StatusInternalServerError, "something went wrong in the server")
				panic(p)
			}
		}()
		next(hc)
		f.finish(req, cmp.Or(humaecho.UnwrapV4(hc).Response().Status, http.StatusOK), "")
	}
}

// refused notes why a request never got to its handler.
func (t *trail) refused(p *Problem) {
	why := p.Detail
	if len(p.Errors) > 0 {
		why += ": " + strings.Trim(p.Errors[0].Location+": "+p.Errors[0].Message, ": ")
	}
	t.say(why)
}

// begin notes what the handler is asked for, before it works.
func (t *trail) begin(o operation, in any) {
	if a, ok := in.(worded); ok {
		t.say(a.Asked())
	}
	if o.tag == "appliance" && o.method != http.MethodGet {
		h := wish(in)
		t.mu.Lock()
		t.asked = h
		t.mu.Unlock()
	}
}

// enter writes an edit into the transaction that makes it. It is called last in it, and once it is committed the trail
// counts as written.
func (f *Frame) enter(req *Request, tx inventory.Tx) error {
	t := req.trail
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
	return f.add(tx, &t.row)
}

// witness writes the entry of what the engine is asked for into the engine's transaction.
type witness struct {
	f   *Frame
	req *Request
}

// Enter implements provision.Witness.
func (w witness) Enter(_ context.Context, tx inventory.Tx) error { return w.f.enter(w.req, tx) }

// Entered implements provision.Witness.
func (w witness) Entered(context.Context) { entered(w.req) }

// asker is the caller, as the engine knows askers: the engine's transaction holds the entry of what it does for the caller.
func (f *Frame) asker(req *Request) provision.Asker {
	return provision.Asker{By: req.by(), Witness: witness{f, req}}
}

// begun writes the entry of what cannot be taken back and is in no transaction, such as a command to a controller, before
// it is done. What is not in the audit is not done; what then fails leaves an entry more, which says why.
func (f *Frame) begun(req *Request) error {
	t := req.trail
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.isWritten || t.isBegun || t.isDryRun {
		return nil
	}
	t.row.Status = t.success
	err := f.store.Write(req.detached().needing(inventory.Viewer), func(tx inventory.Tx) error { return f.add(tx, &t.row) })
	t.isBegun = err == nil
	return err
}

// entered says that a transaction with enter in it is committed.
func entered(req *Request) {
	t := req.trail
	t.mu.Lock()
	defer t.mu.Unlock()
	t.isWritten = true
}

// add fills in what the inventory knows of the subject, and stores a row.
func (f *Frame) add(tx inventory.Tx, r *inventory.Audit) error {
	r.At = f.now()
	if r.HostID == "" && r.Name != "" {
		switch r.Noun {
		case "host", "bmc":
			if h, err := findHost(tx, r.Name); err == nil {
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

// finish writes the row of a request that has its answer, unless it is written, was a dry run, or is one too many.
func (f *Frame) finish(req *Request, status int, refused string) {
	t := req.trail
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
	}
	if t.isDryRun || !f.trails.admits(r, f.now(), t.asked) {
		return
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(req), 5*time.Second)
	defer cancel()
	if err := f.store.Write(req.with(late).needing(inventory.Viewer), func(tx inventory.Tx) error { return f.add(tx, r) }); err != nil {
		f.log.Error("not in the audit", "op", r.RequestID, "operation", r.Operation, "actor", r.Actor, "name", r.Name, "status", r.Status, "err", err)
	}
}

// finished is finish with the outcome of a handler.
func (f *Frame) finished(req *Request, o operation, out any, err error) {
	if err != nil {
		p := problemOf(req, f.log, err)
		f.finish(req, p.Status, p.Detail)
		return
	}
	if _, ok := out.(*huma.StreamResponse); ok {
		return // it is still to be sent
	}
	status := cmp.Or(o.status, http.StatusOK)
	if out == nil {
		status = cmp.Or(o.status, http.StatusNoContent)
	}
	if w, ok := out.(*written); ok && w != nil {
		status = cmp.Or(w.Status, status)
	}
	f.finish(req, status, "")
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
	refusalsEvery  = 30 * time.Second // and fewer of all actors together: whoever makes a thousand tokens fills no disk
	refusalsBurst  = 2000
	strangeEvery   = 5 * time.Second // of those who did not say who they are, fewer from each address (of IPv6, each /64),
	strangeBurst   = 20
	strangersEvery = 2 * time.Minute // and fewer from all together: whoever has a million addresses fills none either
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
		who, every, burst = sourceKey(source).String(), strangeEvery, strangeBurst
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
