package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"reflect"
	"time"

	"slipway.dev/slipway/provision/configuration"
	"slipway.dev/slipway/web/wire"
)

// Noun is the calls that every noun of the API has in common. Names are escaped.
type Noun[T any] struct {
	c    *connection
	path string
}

// Page is a piece of a list; Next is what to ask with as After for the rest, "" at the end.
type Page[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next"`
}

// Query narrows a list; empty fields do not, and a noun ignores none: asking by what it does not know is an error.
type Query struct {
	After    string
	Limit    int
	State    string // hosts
	Rack     string // hosts
	Label    string // hosts: key or key=value
	Search   string // hosts
	Selector string // hosts
	Subnet   string // reservations, leases, addresses
	Machine  string // addresses
	Pool     string
	Phase    string
	Profile  string
	Host     string // sessions, issues, operations, audit: name, id or MAC
	Kind     string // operations
	All      bool   // issues: closed ones as well
	Open     bool   // operations: only those that go on

	// These are for the audit.
	Actor     string // user NAME, token NAME
	Noun      string // singular
	Name      string
	Operation string
	Outcome   string // change or refused
	Since     time.Time
}

func (q Query) values() url.Values {
	return params{
		"after": q.After, "limit": max(q.Limit, 0),
		"state": q.State, "rack": q.Rack, "label": q.Label, "search": q.Search, "selector": q.Selector,
		"subnet": q.Subnet, "machine": q.Machine, "pool": q.Pool, "phase": q.Phase, "profile": q.Profile, "host": q.Host,
		"kind": q.Kind, "all": q.All, "open": q.Open,
		"actor": q.Actor, "noun": q.Noun, "name": q.Name, "operation": q.Operation, "outcome": q.Outcome, "since": q.Since,
	}.values()
}

// params are the parameters of a request by name. Empty ones are left out.
type params map[string]any

func (p params) values() url.Values {
	v := url.Values{}
	for name, value := range p {
		if at, isTime := value.(time.Time); isTime && !at.IsZero() {
			value = at.Format(time.RFC3339)
		}
		if !reflect.ValueOf(value).IsZero() {
			v.Set(name, fmt.Sprint(value))
		}
	}
	return v
}

// List returns one page.
func (n Noun[T]) List(ctx context.Context, q Query) (p Page[T], err error) {
	return p, n.c.call(ctx, http.MethodGet, n.path, q.values(), nil, &p)
}

// All goes through a whole list, page by page. An error ends it.
func (n Noun[T]) All(ctx context.Context, q Query) iter.Seq2[T, error] {
	return each[T](ctx, n.c, n.path, q.values())
}

// each goes through the whole list at a path.
func each[T any](ctx context.Context, c *connection, path string, q url.Values) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for {
			var p Page[T]
			if err := c.call(ctx, http.MethodGet, path, q, nil, &p); err != nil {
				var zero T
				yield(zero, err)
				return
			}
			for _, item := range p.Items {
				if !yield(item, nil) {
					return
				}
			}
			if q.Set("after", p.Next); p.Next == "" {
				return
			}
		}
	}
}

// Get returns one by name.
func (n Noun[T]) Get(ctx context.Context, name string) (item T, err error) {
	return item, n.c.call(ctx, http.MethodGet, n.at(name), nil, nil, &item)
}

// Create adds one that does not exist yet.
func (n Noun[T]) Create(ctx context.Context, item T) (stored T, err error) {
	return stored, n.c.call(ctx, http.MethodPost, n.path, nil, item, &stored)
}

// Put makes the named one as given, whether it exists or not.
func (n Noun[T]) Put(ctx context.Context, name string, item T, opts ...Option) (stored T, err error) {
	return stored, n.c.call(ctx, http.MethodPut, n.at(name), nil, item, &stored, opts...)
}

// Delete removes one.
func (n Noun[T]) Delete(ctx context.Context, name string, opts ...Option) error {
	return n.c.call(ctx, http.MethodDelete, n.at(name), nil, nil, nil, opts...)
}

// Diff is what a write would change.
type Diff struct {
	IsDryRun bool                  `json:"isDryRun"`
	Changes  []wire.Difference     `json:"changes"`
	Result   json.RawMessage       `json:"result,omitempty"` // the thing as it would be
	Does     string                `json:"does,omitempty"`   // what it would do besides that
	Impact   *configuration.Impact `json:"impact,omitempty"` // of a profile or layer, on its hosts
}

// Preview asks what a write would change, and changes nothing. The method is that of the write: POST (name is ""),
// PUT, PATCH or DELETE (item is nil).
func (n Noun[T]) Preview(ctx context.Context, method, name string, item any, opts ...Option) (d Diff, err error) {
	path := n.path
	if name != "" {
		path = n.at(name)
	}
	return d, n.c.call(ctx, method, path, url.Values{"dryRun": {"true"}}, item, &d, opts...)
}

func (n Noun[T]) at(name string) string { return n.path + "/" + url.PathEscape(name) }
