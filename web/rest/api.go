package rest

import (
	"cmp"
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

// NewAPI is the API library without three of its additions. These are schema links in bodies, a documentation page from a
// foreign server, and its form of errors.
func NewAPI(version string) huma.Config {
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

// BodyMax bounds the body of every request. Operations set less; only imports of inventory files come near it.
const BodyMax = 32 << 20

// ReadFor is how long the body of a request may take to arrive.
const ReadFor = 2 * time.Minute

// Statuses that any operation may give.
var always = []int{
	http.StatusUnauthorized, http.StatusUnprocessableEntity, http.StatusTooManyRequests,
	http.StatusInternalServerError, http.StatusServiceUnavailable,
}

// Register adds an operation. Errors of the handler become problem bodies.
func Register[I, O any](f *Frame, o Operation, handler func(*Request, *I) (*O, error)) {
	if !f.takes(o) {
		return
	}
	op := huma.Operation{
		OperationID: o.ID, Method: o.Method, Path: "/api/v1" + o.Path, Tags: []string{o.Tag}, Summary: o.Summary, Description: o.About,
		DefaultStatus: o.Status, SkipValidateParams: o.AnyQuery, MaxBodyBytes: o.Body, BodyReadTimeout: ReadFor, Responses: map[string]*huma.Response{},
	}
	o.Within = cmp.Or(o.Within, 30*time.Second)
	if o.IsLong {
		op.Middlewares = huma.Middlewares{unhurried}
	}
	op.Middlewares = append(huma.Middlewares{f.permitted(o)}, op.Middlewares...)
	if (o.Method != http.MethodGet || o.IsLogged) && !o.Asks {
		op.Middlewares = append(huma.Middlewares{f.audited(o)}, op.Middlewares...)
		f.operations[o.ID] = o
	}
	f.describe(&op, o)
	huma.Register(f.API, op, func(ctx context.Context, in *I) (*O, error) {
		if !o.IsLong {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, o.Within)
			defer cancel()
		}
		req := RequestOf(ctx)
		req.Trail.begin(o, in)
		out, err := handler(req, in)
		if err != nil {
			err = ProblemOf(req, f.Log, err)
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
func (f *Frame) describe(op *huma.Operation, o Operation) {
	registry := f.API.OpenAPI().Components.Schemas
	schema := func(v any) *huma.Schema { return registry.Schema(reflect.TypeOf(v), true, "") }
	success := cmp.Or(o.Status, http.StatusOK)
	switch {
	case o.Plain != "":
		op.Responses["200"] = &huma.Response{Description: "OK", Content: map[string]*huma.MediaType{o.Plain: {Schema: &huma.Schema{Type: huma.TypeString}}}}
	case o.Dry && o.Result == nil:
		op.Responses["200"] = jsonResponse("What it would do (dry run)", schema(Diff{}))
		op.Responses["204"] = &huma.Response{Description: "Done"}
	case o.Dry && success != http.StatusOK:
		op.Responses["200"] = jsonResponse("What it would change (dry run)", schema(Diff{}))
		op.Responses[strconv.Itoa(success)] = jsonResponse(http.StatusText(success), schema(o.Result))
	case o.Dry:
		op.Responses["200"] = jsonResponse("As stored, or with dryRun what would change", &huma.Schema{OneOf: []*huma.Schema{schema(o.Result), schema(Diff{})}})
	case o.Result != nil:
		op.Responses[strconv.Itoa(success)] = jsonResponse(http.StatusText(success), schema(o.Result))
	}
	problem := schema(Problem{})
	codes := slices.Concat(always, o.Errors)
	if o.Method != http.MethodGet {
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

// errDryRun ends the transaction of a dry run, so that it leaves no trace.
var errDryRun = errors.New("dry run")

// Write runs fn in a transaction, which a dry run rolls back.
func (f *Frame) Write(req *Request, isDryRun bool, fn func(inventory.Tx) error) error {
	err := f.Store.Write(req, func(tx inventory.Tx) error {
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

// Changed adds the event that says what an admin changed.
func (f *Frame) Changed(req *Request, tx inventory.Tx, subject, detail string) error {
	return tx.AddEvent(&inventory.Event{At: f.Now(), Kind: inventory.EventChanged, Subject: subject, Detail: detail + " by " + req.By()})
}
