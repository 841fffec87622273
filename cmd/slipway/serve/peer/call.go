package peer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"

	"slipway.dev/slipway/inventory"
)

// MaxBody bounds a request and an answer in bytes. The largest are the documents of a configuration.
const MaxBody = 32 << 20

// fault is an error on its way between instances.
type fault struct {
	Kind  inventory.Kind  `json:"kind"`
	Msg   string          `json:"msg"`
	Hint  string          `json:"hint,omitempty"`
	Field string          `json:"field,omitempty"`
	Refs  []inventory.Ref `json:"refs,omitempty"`
}

// Handler answers a call: it reads the question from the body, and sends what fn answers.
func Handler[Q, A any](fn func(context.Context, Q) (A, error)) http.Handler {
	return HandlerOf(func(ctx context.Context, _ string, q Q) (A, error) { return fn(ctx, q) })
}

// HandlerOf is Handler for an answer that depends on the instance that asks. Caller is its id, "" if the request has none.
func HandlerOf[Q, A any](fn func(ctx context.Context, caller string, q Q) (A, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q Q
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, MaxBody)).Decode(&q); err != nil {
			SendError(w, inventory.Errorf(inventory.Invalid, "the question of another instance cannot be read: %w", err).
				WithHint("do both instances run the same version?"))
			return
		}
		a, err := fn(r.Context(), r.Header.Get(callerHeader), q)
		if err != nil {
			SendError(w, err)
			return
		}
		body, err := json.Marshal(a)
		if err != nil {
			SendError(w, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body) // an instance that has gone asks again
	})
}

// statusFault is the status of an answer that is an error. The body says which.
const statusFault = http.StatusUnprocessableEntity

// faultHeader is in each answer of SendError. What a handler of people answers has it never, whatever its status is.
const faultHeader = "Slipway-Fault"

// FaultOf returns the error of an answer of SendError, as it was at the other end; nil for any other answer. It reads the answer's body.
func FaultOf(answer *http.Response) error {
	if answer.Header.Get(faultHeader) == "" {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, MaxBody))
	if err != nil {
		return unreachable(answer.Request.URL.Host, err)
	}
	return faultIn(text, answer.Request.URL.Host)
}

// faultIn reads the body of an answer of SendError.
func faultIn(text []byte, host string) error {
	var f fault
	if err := json.Unmarshal(text, &f); err != nil || f.Kind == "" {
		return unreachable(host, fmt.Errorf("an error that cannot be read: %q", inventory.Clean(string(text), 200)))
	}
	if f.Kind == inventory.Internal { // its text may name paths of the other machine, and Msg is for people
		return &inventory.Error{Kind: f.Kind, Msg: "instance " + host + " has failed; its log says why", Err: errors.New(f.Msg)}
	}
	return &inventory.Error{Kind: f.Kind, Msg: f.Msg, Hint: f.Hint, Field: f.Field, Refs: f.Refs}
}

// SendError answers with an error, which Call returns at the other end as it was.
func SendError(w http.ResponseWriter, err error) {
	f := fault{Kind: inventory.Internal, Msg: err.Error()}
	if e, ok := errors.AsType[*inventory.Error](err); ok {
		f = fault{Kind: e.Kind, Msg: e.Msg, Hint: e.Hint, Field: e.Field, Refs: e.Refs}
	}
	body, err := json.Marshal(f)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set(faultHeader, string(f.Kind))
	w.WriteHeader(statusFault)
	_, _ = w.Write(body)
}

// Call asks an instance at a URL. An error of the other end comes as the *inventory.Error that it was there. If no answer comes, the
// error is Unavailable, and the other end may have acted or not.
func Call[A any](ctx context.Context, client *http.Client, url string, question any) (a A, err error) {
	body, err := json.Marshal(question)
	if err != nil {
		return a, fmt.Errorf("ask another instance: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return a, fmt.Errorf("ask another instance: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(r)
	if err != nil {
		return a, unreachable(r.URL.Host, err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, MaxBody+1))
	switch {
	case err != nil:
		return a, unreachable(r.URL.Host, err)
	case len(text) > MaxBody:
		return a, inventory.Errorf(inventory.Unavailable, "instance %s sent over %d bytes", r.URL.Host, MaxBody)
	case answer.StatusCode == statusFault:
		return a, faultIn(text, r.URL.Host)
	case answer.StatusCode != http.StatusOK:
		return a, unreachable(r.URL.Host, errors.New(answer.Status))
	}
	if err := json.Unmarshal(text, &a); err != nil {
		return a, unreachable(r.URL.Host, err)
	}
	return a, nil
}

func unreachable(host string, err error) error {
	return &inventory.Error{
		Kind: inventory.Unavailable, Msg: "instance " + host + " does not answer", Err: err,
		Hint: "slipway instance list shows which instances live; port 8069 must be open between them",
	}
}

// Reason says in a few words why a call failed. Its error names the address several times.
func Reason(err error) string {
	if e, ok := errors.AsType[*net.OpError](err); ok {
		return e.Err.Error()
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err.Error()
	}
	if e, ok := errors.AsType[*inventory.Error](err); ok && e.Err != nil {
		return e.Err.Error()
	}
	return err.Error()
}

// IsNotConnected reports whether a call failed before the other end can have read it.
func IsNotConnected(err error) bool {
	e, ok := errors.AsType[*net.OpError](err)
	return ok && e.Op == "dial"
}
