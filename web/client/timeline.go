package client

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/watch"
	"slipway.dev/slipway/web/wire"
)

// Timeline is what was done with a host, in boots and operations, and what should happen next.
type Timeline struct {
	Expects *watch.Expected `json:"expects,omitempty"` // nil when nothing is under way
	Groups  []TimelineGroup `json:"groups"`            // latest first
	Next    string          `json:"next,omitempty"`
}

// TimelineGroup is one boot or one operation.
type TimelineGroup struct {
	Kind      string         `json:"kind"` // boot or operation
	ID        string         `json:"id"`
	Title     string         `json:"title"`
	State     string         `json:"state"`
	Reason    string         `json:"reason,omitempty"`
	Hint      string         `json:"hint,omitempty"`
	By        string         `json:"by,omitempty"`
	Machine   string         `json:"machine,omitempty"`
	Image     string         `json:"image,omitempty"`
	Operation string         `json:"operation,omitempty"` // that a boot is a step of
	MAC       inventory.MAC  `json:"mac,omitempty"`
	StartedAt time.Time      `json:"startedAt"`
	EndedAt   time.Time      `json:"endedAt,omitzero"`
	Steps     []TimelineStep `json:"steps"`
}

// TimelineStep is one step of a boot or an operation.
type TimelineStep struct {
	Step      string    `json:"step"`
	Title     string    `json:"title"`
	State     string    `json:"state"` // done, running, failed or ahead
	StartedAt time.Time `json:"startedAt,omitzero"`
	EndedAt   time.Time `json:"endedAt,omitzero"`
	Usual     float64   `json:"usualSeconds,omitempty"` // median of the same on the same image and model
	SampleN   int       `json:"sampleN,omitempty"`
	Detail    string    `json:"detail,omitempty"`
	EventID   int64     `json:"eventID,omitempty"`
	TryN      int       `json:"tryN,omitempty"`
}

// Timeline returns the latest boots and operations of a host, or those after a page's Next.
func (h Hosts) Timeline(ctx context.Context, host, after string, limit int) (t Timeline, err error) {
	return t, h.c.call(ctx, http.MethodGet, h.at(host)+"/timeline", params{"after": after, "limit": limit}.values(), nil, &t)
}

// ConsoleLines returns the lines with a text, "" for all, that a host's serial console said from a time on.
func (h Hosts) ConsoleLines(ctx context.Context, host, search string, since time.Time) (l wire.ConsoleLog, err error) {
	q := url.Values{"lines": {"true"}, "search": {search}}
	if !since.IsZero() {
		q.Set("since", since.Format(time.RFC3339Nano))
	}
	return l, h.c.call(ctx, http.MethodGet, h.at(host)+"/console/log", q, nil, &l)
}

// ConsoleLog returns what was recorded of a host's serial console without escape codes, or of it the lines with a text.
func (h Hosts) ConsoleLog(ctx context.Context, host, search string) (l wire.ConsoleLog, err error) {
	q := url.Values{"plain": {"true"}}
	if search != "" {
		q.Set("search", search)
	}
	return l, h.c.call(ctx, http.MethodGet, h.at(host)+"/console/log", q, nil, &l)
}

// Sticker returns a sticker for a host as SVG; base is the address of the web UI that its code leads to.
func (h Hosts) Sticker(ctx context.Context, host, base string) ([]byte, error) {
	res, err := h.c.send(ctx, http.MethodGet, h.at(host)+"/sticker.svg", url.Values{"base": {base}}, nil)
	if err != nil {
		return nil, err
	}
	defer drain(res.Body)
	return io.ReadAll(io.LimitReader(res.Body, 1<<20))
}
