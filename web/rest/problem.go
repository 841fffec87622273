package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
)

// Problem is the body of every error (RFC 9457). Detail and Hint are for people, Kind is for programs.
type Problem struct {
	Title     string         `json:"title" doc:"What the status means" example:"Conflict"`
	Status    int            `json:"status" doc:"The HTTP status again" example:"409"`
	Detail    string         `json:"detail" doc:"What is wrong" example:"MAC 52:54:00:aa:00:01 belongs to host r1-u04"`
	Kind      inventory.Kind `json:"kind" doc:"What sort of failure it is"`
	Hint      string         `json:"hint,omitempty" doc:"What to do next"`
	RequestID string         `json:"requestID" doc:"Names this request in the server's log"`
	Errors    []FieldError   `json:"errors,omitempty" doc:"Which parts of the request are wrong"`

	Findings machineconfig.Report `json:"findings,omitempty" doc:"What is wrong with a configuration, and where"`

	// Refs are what Detail, Hint and Errors name besides what the caller has named.
	Refs []inventory.Ref `json:"-"`

	retryAfter time.Duration
}

// FieldError is one wrong part of a request.
type FieldError struct {
	Location string `json:"location,omitempty" doc:"Where it stands" example:"body.cidr"`
	Message  string `json:"message" example:"expected string"`
}

// Error implements error.
func (p *Problem) Error() string { return p.Detail }

// GetStatus implements huma.StatusError.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders implements huma.HeadersError.
func (p *Problem) GetHeaders() http.Header {
	h := http.Header{}
	if p.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(p.retryAfter/time.Second)))
	}
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="slipway"`)
	}
	return h
}

// ContentType implements huma.ContentTypeFilter.
func (p *Problem) ContentType(string) string { return "application/problem+json" }

// StatusOf is the one place that says which HTTP status a kind of failure has.
func StatusOf(k inventory.Kind) int {
	switch k {
	case inventory.Invalid:
		return http.StatusUnprocessableEntity
	case inventory.NotFound:
		return http.StatusNotFound
	case inventory.Conflict:
		return http.StatusConflict
	case inventory.Unauthorized:
		return http.StatusUnauthorized
	case inventory.Forbidden:
		return http.StatusForbidden
	case inventory.Unavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// KindOf is the way back, for the statuses that the libraries below choose.
func KindOf(status int) inventory.Kind {
	switch {
	case status == http.StatusNotFound:
		return inventory.NotFound
	case status == http.StatusConflict || status == http.StatusPreconditionFailed:
		return inventory.Conflict
	case status == http.StatusUnauthorized:
		return inventory.Unauthorized
	case status == http.StatusForbidden:
		return inventory.Forbidden
	case status == http.StatusServiceUnavailable || status == http.StatusRequestTimeout || status == http.StatusTooManyRequests:
		return inventory.Unavailable
	case status >= 500:
		return inventory.Internal
	}
	return inventory.Invalid
}

// StatusError gives an error a status that its kind alone does not tell.
type StatusError struct {
	Status     int
	RetryAfter time.Duration
	Err        *inventory.Error
}

func (e *StatusError) Error() string { return e.Err.Error() }

// Unwrap returns the error whose status it is.
func (e *StatusError) Unwrap() error { return e.Err }

// FindingsError lists what is wrong with a configuration besides saying that something is.
type FindingsError struct {
	Err      *inventory.Error
	Findings machineconfig.Report
}

func (e *FindingsError) Error() string { return e.Err.Error() }

// Unwrap returns the error without its findings.
func (e *FindingsError) Unwrap() error { return e.Err }

// ProblemOf turns any error into a body. An error that is not an *inventory.Error, or is internal, goes to the log and not
// to the client.
func ProblemOf(req *Request, log *slog.Logger, err error) *Problem {
	// Already made, for example by reshape.
	if ready, ok := errors.AsType[*Problem](err); ok {
		return ready
	}
	id := req.ID
	var said *inventory.Error
	if !errors.As(err, &said) {
		said = &inventory.Error{Kind: inventory.Internal, Msg: err.Error(), Err: err}
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			said = &inventory.Error{Kind: inventory.Unavailable, Msg: "it took too long", Hint: "try it again", Err: err}
		}
	}
	p := &Problem{Status: StatusOf(said.Kind), Detail: said.Msg, Kind: said.Kind, Hint: said.Hint, RequestID: id, Refs: said.Refs}
	if said.Field != "" {
		p.Errors = []FieldError{{Location: "body." + said.Field, Message: said.Msg}}
	}
	if said.Kind == inventory.Unavailable {
		p.retryAfter = time.Second
	}
	if said.Kind == inventory.Internal {
		log.Error("request failed", "op", id, "err", err)
		p.Detail, p.Hint = "something went wrong in the server", "look for request "+id+" in its log"
	} else if said.Err != nil {
		log.Info("request failed", "op", id, "err", err)
	}
	if with, ok := errors.AsType[*StatusError](err); ok {
		p.Status, p.retryAfter = with.Status, with.RetryAfter
	}
	if found, ok := errors.AsType[*FindingsError](err); ok {
		p.Findings = found.Findings
	}
	p.Title = http.StatusText(p.Status)
	return p
}

// WriteProblem answers a request that does not reach its operation.
func WriteProblem(w http.ResponseWriter, r *http.Request, log *slog.Logger, err error) {
	p := ProblemOf(EdgeOf(r.Context()), log, err)
	for k, v := range p.GetHeaders() {
		w.Header()[k] = v
	}
	w.Header().Set("Content-Type", p.ContentType(""))
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the client is gone if this fails
}

// RouteError answers a request that the router has no operation for.
func RouteError(w http.ResponseWriter, r *http.Request, log *slog.Logger, err error) {
	var h *echo.HTTPError
	if !errors.As(err, &h) {
		WriteProblem(w, r, log, err)
		return
	}
	e := inventory.Errorf(KindOf(h.Code), "there is nothing at %s", inventory.Clean(r.URL.Path, 200)).WithHint("GET /api/v1/openapi.yaml lists what there is")
	if h.Code == http.StatusMethodNotAllowed {
		e.Msg = fmt.Sprintf("%s is not possible at %s", inventory.Clean(r.Method, 20), inventory.Clean(r.URL.Path, 200))
	}
	WriteProblem(w, r, log, &StatusError{Status: h.Code, Err: e})
}

// reshape turns the error bodies of the API library into ours.
func reshape(ctx huma.Context, _ string, v any) (any, error) {
	m, ok := v.(*huma.ErrorModel)
	if !ok {
		return v, nil
	}
	p := &Problem{
		Title: m.Title, Status: m.Status, Detail: m.Detail, Kind: KindOf(m.Status), RequestID: EdgeOf(ctx.Context()).ID,
		Hint: "the request is described at /api/v1/openapi.yaml",
	}
	if m.Status == http.StatusInternalServerError {
		p.Detail, p.Hint = "something went wrong in the server", "look for request "+p.RequestID+" in its log"
		return p, nil
	}
	for i, e := range m.Errors {
		if i == 20 {
			p.Errors = append(p.Errors, FieldError{Message: fmt.Sprintf("and %d more", len(m.Errors)-i)})
			break
		}
		// What the client sent is not echoed: it may be long, and may be a secret.
		p.Errors = append(p.Errors, FieldError{Location: inventory.Clean(e.Location, 200), Message: inventory.Clean(e.Message, 300)})
	}
	if p.Detail == "validation failed" {
		p.Detail = "the request is not valid"
	}
	EdgeOf(ctx.Context()).Trail.refused(p)
	return p, nil
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
