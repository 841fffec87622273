package rest

import (
	"net/http"
	"strconv"

	"slipway.dev/slipway/inventory"
)

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

// Listed is a page as a response.
type Listed[T any] struct {
	Body List[T]
}

// PageOf makes a page of up to limit+1 rows, of which the last only says that there is more.
func PageOf[T any](rows []T, limit int, key func(T) string) *Listed[T] {
	out := &Listed[T]{Body: List[T]{Items: rows}}
	if len(rows) > limit {
		out.Body.Items = rows[:limit]
		out.Body.Next = key(rows[limit-1])
	}
	if out.Body.Items == nil {
		out.Body.Items = []T{}
	}
	return out
}

// More asks the store for the rows of a page and one more.
func (p Page) More() inventory.Page { return inventory.Page{After: p.After, Limit: p.Limit + 1} }

// Cut takes a page out of a list that a store gives only whole; it is ordered by key.
func Cut[T any](rows []T, p Page, key func(T) string) *Listed[T] {
	i := 0
	for p.After != "" && i < len(rows) && key(rows[i]) <= p.After {
		i++
	}
	rows = rows[i:]
	return PageOf(rows[:min(len(rows), p.Limit+1)], p.Limit, key)
}

// One is a single thing as a response.
type One[T any] struct {
	ETag string `header:"ETag" doc:"The version, for If-Match"`
	Body T
}

// Written is the response to a write: the thing as stored, or a Diff.
type Written struct {
	Status int
	ETag   string `header:"ETag" doc:"The version, for If-Match"`
	Body   any
}

// WriteOptions are the options of a write.
type WriteOptions struct {
	DryRun  bool   `query:"dryRun" doc:"Check everything and show what would change, but change nothing"`
	IfMatch string `header:"If-Match" doc:"Fail with 412 unless this is the version stored; without it the last writer wins" maxLength:"64"`
}

// ETag is the form of a version in headers, "" for none.
func ETag(version int64) string {
	if version == 0 {
		return ""
	}
	return strconv.Quote(strconv.FormatInt(version, 10))
}

// Check compares the version that the client has seen with the one stored.
func (o WriteOptions) Check(noun, name string, version int64) error {
	switch o.IfMatch {
	case "", "*", ETag(version):
		return nil
	}
	return &StatusError{
		Status: http.StatusPreconditionFailed,
		Err: inventory.Errorf(inventory.Conflict, "%s %s has changed meanwhile: it has version %d", noun, name, version).
			WithHint("read it again and make your change to that"),
	}
}
