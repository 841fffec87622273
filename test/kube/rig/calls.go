package rig

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"k8s.io/client-go/transport"
)

// Call is a kind of call to the API server.
type Call struct {
	Verb     string // get, list, watch, create, update, patch, delete
	Resource string // such as metalhosts or metalhosts/status
}

// Calls counts calls to the API server.
type Calls map[Call]int

// Sub returns what came since before.
func (c Calls) Sub(before Calls) Calls {
	out := Calls{}
	for k, n := range c {
		if d := n - before[k]; d != 0 {
			out[k] = d
		}
	}
	return out
}

// Writes returns how many of them change something in the cluster; events and leases count too.
func (c Calls) Writes() (n int) {
	for k, m := range c {
		if !slices.Contains([]string{"get", "list", "watch"}, k.Verb) {
			n += m
		}
	}
	return n
}

// Sum returns how many there are but for watches, which come again by themselves.
func (c Calls) Sum() (n int) {
	for k, m := range c {
		if k.Verb != "watch" {
			n += m
		}
	}
	return n
}

// String lists them, in order.
func (c Calls) String() string {
	var lines []string
	for _, k := range slices.SortedFunc(maps.Keys(c), func(a, b Call) int { return strings.Compare(a.Resource+a.Verb, b.Resource+b.Verb) }) {
		lines = append(lines, fmt.Sprintf("%s %s: %d", k.Verb, k.Resource, c[k]))
	}
	return strings.Join(lines, ", ")
}

// counter counts what goes through it.
type counter struct {
	mu    sync.Mutex
	calls Calls
	after func(Call, *http.Request)
}

func (c *counter) read() Calls {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.calls)
}

func (c *counter) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper{next, c}
}

type roundTripper struct {
	http.RoundTripper
	counter *counter
}

var _ transport.WrapperFunc = (*counter)(nil).wrap

// WrappedRoundTripper lets client-go find the connections, to close them.
func (r roundTripper) WrappedRoundTripper() http.RoundTripper { return r.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (r roundTripper) RoundTrip(q *http.Request) (*http.Response, error) {
	k, ok := callOf(q)
	if !ok {
		return r.RoundTripper.RoundTrip(q)
	}
	r.counter.mu.Lock()
	if r.counter.calls == nil {
		r.counter.calls = Calls{}
	}
	r.counter.calls[k]++
	after := r.counter.after
	r.counter.mu.Unlock()
	answer, err := r.RoundTripper.RoundTrip(q)
	if after != nil {
		after(k, q)
	}
	return answer, err
}

// callOf reads /api/v1/..., /apis/group/version/[namespaces/name/]resource[/name[/subresource]]; ok is false for what is
// about no resource.
func callOf(q *http.Request) (k Call, ok bool) {
	parts := strings.Split(strings.Trim(q.URL.Path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		parts = parts[3:]
	default:
		return k, false
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	k.Resource = parts[0]
	if len(parts) > 2 {
		k.Resource += "/" + parts[2]
	}
	switch q.Method {
	case http.MethodGet:
		k.Verb = "list"
		if len(parts) > 1 {
			k.Verb = "get"
		}
		if q.URL.Query().Get("watch") == "true" {
			k.Verb = "watch"
		}
	case http.MethodPost:
		k.Verb = "create"
	case http.MethodPut:
		k.Verb = "update"
	default:
		k.Verb = strings.ToLower(q.Method)
	}
	return k, true
}
