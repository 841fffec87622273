package web

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humaecho"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/hardware/acceptance"
	"slipway.dev/slipway/inventory"
)

// apiConfig is the API library without what it adds by itself: schema links in bodies, a documentation page from a
// foreign server, and its form of errors.
func apiConfig(version string) huma.Config {
	return huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title: "Slipway", Version: version,
				Description: "Bare-metal provisioning. Every error is a problem body (RFC 9457) with detail, hint and requestID.",
			},
			Components: &huma.Components{
				Schemas: huma.NewMapRegistry("#/components/schemas/", newSchemaNamer()),
				SecuritySchemes: map[string]*huma.SecurityScheme{"token": {
					Type: "http", Scheme: "bearer",
					Description: "Needed over TCP; the Unix socket in the data directory needs none.",
				}},
			},
			Security: []map[string][]string{{"token": {}}},
		},
		Formats:                      map[string]huma.Format{"application/json": strictJSON, "json": strictJSON},
		DefaultFormat:                "application/json",
		RejectUnknownQueryParameters: true,
		Transformers:                 []huma.Transformer{reshape},
	}
}

// schemaName names a type in the description. Where packages have a word in common, the less usual meaning gets a longer
// name: the parts of an acceptance sheet, and how far an operation is.
func schemaName(t reflect.Type, hint string) string {
	name := huma.DefaultSchemaNamer(t, hint)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[inventory.Progress]():
		return "OperationProgress"
	case t == reflect.TypeFor[bmc.User]():
		return "BMCUser"
	case t == reflect.TypeFor[List[bmc.User]]():
		return "ListBMCUser"
	case t.PkgPath() == reflect.TypeFor[acceptance.Sheet]().PkgPath() && name != "Sheet":
		return "Sheet" + name
	}
	return name
}

// newSchemaNamer returns schemaName for one description. A name that another type has already gets its package before it.
func newSchemaNamer() func(reflect.Type, string) string {
	taken := map[string]reflect.Type{}
	return func(t reflect.Type, hint string) string {
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		name := schemaName(t, hint)
		if other, isTaken := taken[name]; isTaken && other != t {
			whole := t.String() // such as web.List[slipway.dev/slipway/kubernetes/contract.View]
			pkg, _, _ := strings.Cut(whole[strings.LastIndexAny(whole, "/[")+1:], ".")
			if pkg != "" {
				name = strings.ToUpper(pkg[:1]) + pkg[1:] + name
			}
		}
		taken[name] = t
		return name
	}
}

// operation describes one operation as far as it differs from the others.
type operation struct {
	method, path string // path below /api/v1
	id           string // unique, verb-noun
	tag          string // the noun, in plural
	summary      string
	about        string
	errors       []int              // statuses besides those that every operation may give
	status       int                // of success, when not 200 or 204
	dry          bool               // takes dryRun: a success without change is a Diff with status 200
	result       any                // type of the body, where the handler's own type hides it; with dry, it is this or a Diff
	body         int64              // most bytes of the body: 1 MiB
	isLong       bool               // works until it is done, however long that takes
	plain        string             // media type of a body that is not JSON
	within       time.Duration      // for the handler: 30 s
	needs        inventory.UserRole // role of the caller: viewer for a GET, operator for all else
	scope        scope              // of what it speaks, which says where the role is needed: everywhere
	asks         bool               // changes nothing, though it is no GET: the audit leaves it out
	isLogged     bool               // is in the audit, though it is a GET
	anyQuery     bool               // the other side adds parameters of its own to the address
	forClusters  bool               // the token of a cluster is let in: the handler keeps it to what is the cluster's
}

// readFor is how long the body of a request may take to arrive.
const readFor = 2 * time.Minute

// Statuses that any operation may give.
var always = []int{
	http.StatusUnauthorized, http.StatusUnprocessableEntity, http.StatusTooManyRequests,
	http.StatusInternalServerError, http.StatusServiceUnavailable,
}

// register adds an operation. Errors of the handler become problem bodies.
func register[I, O any](f *Frame, o operation, handler func(*Request, *I) (*O, error)) {
	op := huma.Operation{
		OperationID: o.id, Method: o.method, Path: "/api/v1" + o.path, Tags: []string{o.tag}, Summary: o.summary, Description: o.about,
		DefaultStatus: o.status, SkipValidateParams: o.anyQuery, MaxBodyBytes: o.body, BodyReadTimeout: readFor, Responses: map[string]*huma.Response{},
	}
	if o.within == 0 {
		o.within = 30 * time.Second
	}
	if o.isLong {
		op.Middlewares = huma.Middlewares{unhurried}
	}
	op.Middlewares = append(huma.Middlewares{f.permitted(o)}, op.Middlewares...)
	if (o.method != http.MethodGet || o.isLogged) && !o.asks {
		op.Middlewares = append(huma.Middlewares{f.audited(o)}, op.Middlewares...)
		f.operations[o.id] = o
	}
	f.describe(&op, o)
	huma.Register(f.api, op, func(ctx context.Context, in *I) (*O, error) {
		if !o.isLong {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, o.within)
			defer cancel()
		}
		req := requestOf(ctx)
		req.trail.begin(o, in)
		out, err := handler(req, in)
		if err != nil {
			err = problemOf(req, f.log, err)
		}
		var said any
		if out != nil {
			said = out
		}
		f.finished(req, o, said, err)
		if err != nil {
			return nil, err
		}
		return out, nil
	})
}

// unhurried takes the time limits off a connection. The read limit must go as well: when it passes, the server thinks
// that the client has gone.
func unhurried(ctx huma.Context, next func(huma.Context)) {
	control := http.NewResponseController(humaecho.UnwrapV4(ctx).Response())
	_ = control.SetReadDeadline(time.Time{})
	_ = control.SetWriteDeadline(time.Time{})
	next(ctx)
}

// describe writes down the responses of an operation.
func (f *Frame) describe(op *huma.Operation, o operation) {
	registry := f.api.OpenAPI().Components.Schemas
	schema := func(v any) *huma.Schema { return registry.Schema(typeOf(v), true, "") }
	success := o.status
	if success == 0 {
		success = http.StatusOK
	}
	switch {
	case o.plain != "":
		op.Responses["200"] = &huma.Response{Description: "OK", Content: map[string]*huma.MediaType{o.plain: {Schema: &huma.Schema{Type: huma.TypeString}}}}
	case o.dry && o.result == nil:
		op.Responses["200"] = jsonResponse("What it would do (dry run)", schema(Diff{}))
		op.Responses["204"] = &huma.Response{Description: "Done"}
	case o.dry && success != http.StatusOK:
		op.Responses["200"] = jsonResponse("What it would change (dry run)", schema(Diff{}))
		op.Responses[strconv.Itoa(success)] = jsonResponse(http.StatusText(success), schema(o.result))
	case o.dry:
		op.Responses["200"] = jsonResponse("As stored, or with dryRun what would change", &huma.Schema{OneOf: []*huma.Schema{schema(o.result), schema(Diff{})}})
	case o.result != nil:
		op.Responses[strconv.Itoa(success)] = jsonResponse(http.StatusText(success), schema(o.result))
	}
	problem := schema(Problem{})
	codes := slices.Concat(always, o.errors)
	if o.method != http.MethodGet {
		codes = append(codes, http.StatusBadRequest, http.StatusRequestEntityTooLarge)
	}
	slices.Sort(codes)
	for _, code := range slices.Compact(codes) {
		op.Responses[strconv.Itoa(code)] = &huma.Response{
			Description: http.StatusText(code),
			Content:     map[string]*huma.MediaType{"application/problem+json": {Schema: problem}},
		}
	}
}

func jsonResponse(about string, schema *huma.Schema) *huma.Response {
	return &huma.Response{Description: about, Content: map[string]*huma.MediaType{"application/json": {Schema: schema}}}
}

// Page asks for a piece of a list.
type Page struct {
	After string `query:"after" doc:"Only what comes after this key: the next of the page before" maxLength:"255"`
	Limit int    `query:"limit" doc:"Most items in the answer" default:"100" minimum:"1" maximum:"1000"`
}

// List is a piece of a list.
type List[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty" doc:"Ask with this as after for the rest; absent at the end"`
}

// listed is a page as a response.
type listed[T any] struct {
	Body List[T]
}

// pageOf makes a page of up to limit+1 rows, of which the last only says that there is more.
func pageOf[T any](rows []T, limit int, key func(T) string) *listed[T] {
	out := &listed[T]{Body: List[T]{Items: rows}}
	if len(rows) > limit {
		out.Body.Items = rows[:limit]
		out.Body.Next = key(rows[limit-1])
	}
	if out.Body.Items == nil {
		out.Body.Items = []T{}
	}
	return out
}

// more asks the store for the rows of a page and one more.
func (p Page) more() inventory.Page { return inventory.Page{After: p.After, Limit: p.Limit + 1} }

// cut takes a page out of a list that a store gives only whole; it is ordered by key.
func cut[T any](rows []T, p Page, key func(T) string) *listed[T] {
	i := 0
	for p.After != "" && i < len(rows) && key(rows[i]) <= p.After {
		i++
	}
	rows = rows[i:]
	return pageOf(rows[:min(len(rows), p.Limit+1)], p.Limit, key)
}

// one is a single thing as a response.
type one[T any] struct {
	ETag string `header:"ETag" doc:"The version, for If-Match"`
	Body T
}

// written is the response to a write: the thing as stored, or a Diff.
type written struct {
	Status int
	ETag   string `header:"ETag" doc:"The version, for If-Match"`
	Body   any
}

// WriteOptions are the ways a write can be asked for.
type WriteOptions struct {
	DryRun  bool   `query:"dryRun" doc:"Check everything and show what would change, but change nothing"`
	IfMatch string `header:"If-Match" doc:"Fail with 412 unless this is the version stored; without it the last writer wins" maxLength:"64"`
}

func etag(version int64) string {
	if version == 0 {
		return ""
	}
	return strconv.Quote(strconv.FormatInt(version, 10))
}

// check compares the version that the client has seen with the one stored.
func (o WriteOptions) check(noun, name string, version int64) error {
	switch o.IfMatch {
	case "", "*", etag(version):
		return nil
	}
	return &statusError{
		status: http.StatusPreconditionFailed,
		err: inventory.Errorf(inventory.Conflict, "%s %s has changed meanwhile: it has version %d", noun, name, version).
			WithHint("read it again and make your change to that"),
	}
}

// errDryRun ends the transaction of a dry run, so that it leaves no trace.
var errDryRun = errors.New("dry run")

// write runs fn in a transaction, which a dry run rolls back.
func (f *Frame) write(req *Request, isDryRun bool, fn func(inventory.Tx) error) error {
	err := f.store.Write(req, func(tx inventory.Tx) error {
		if err := fn(tx); err != nil {
			return err
		}
		if isDryRun {
			return errDryRun
		}
		return f.enter(req, tx)
	})
	if isDryRun && errors.Is(err, errDryRun) {
		return nil
	}
	if err == nil {
		entered(req)
	}
	return err
}

// changed adds the event that says what an admin changed.
func (f *Frame) changed(req *Request, tx inventory.Tx, subject, detail string) error {
	return tx.AddEvent(&inventory.Event{At: f.now(), Kind: inventory.EventChanged, Subject: subject, Detail: detail + " by " + req.by()})
}

func typeOf(v any) reflect.Type { return reflect.TypeOf(v) }

func compareText(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
