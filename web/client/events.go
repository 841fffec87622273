package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"net/http"
	"net/url"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sleep"
)

// EventQuery narrows events; empty fields do not.
type EventQuery struct {
	// After is the id after which to begin: 0 is the oldest event, a negative number counts back from the newest, and
	// FromNow leaves out what has happened.
	After   int64
	Before  int64  // only ids below it, and then newest first; ignored by Follow
	Limit   int    // of a page; ignored by Follow
	Host    string // name, id or MAC
	Session inventory.SessionID
	Kind    string // a kind, or the part before its dot
}

// FromNow as EventQuery.After begins with the next event.
const FromNow = math.MaxInt64

func (q EventQuery) values() url.Values {
	v := params{
		"before": max(q.Before, 0), "limit": max(q.Limit, 0), "host": q.Host, "session": q.Session, "kind": q.Kind,
	}.values()
	v.Set("after", fmt.Sprint(q.After))
	return v
}

// Events returns one page of events, oldest first.
func (c *Client) Events(ctx context.Context, q EventQuery) (p Page[inventory.Event], err error) {
	return p, c.call(ctx, http.MethodGet, "events", q.values(), nil, &p)
}

// How Follow comes back after a broken connection.
const (
	retryFirst = 500 * time.Millisecond
	retryMost  = 15 * time.Second
	// silentFor is how long a stream may be quiet: the server sends a sign of life every 15 s.
	silentFor = 45 * time.Second
)

// Follow returns events as they happen, after those that happened since q.After, without gap or repetition. When the
// connection breaks, it connects again and continues after the last event. It ends when ctx does, or with an error that
// another try would not change.
func (c *Client) Follow(ctx context.Context, q EventQuery) iter.Seq2[inventory.Event, error] {
	return c.follow(ctx, "events", q, EventQuery.values)
}

// follow is Follow on a stream of events with parameters of its own.
func (c *Client) follow(ctx context.Context, path string, q EventQuery, values func(EventQuery) url.Values) iter.Seq2[inventory.Event, error] {
	return func(yield func(inventory.Event, error) bool) {
		wait := retryFirst
		for ctx.Err() == nil {
			heard, err := c.stream(ctx, path, values(q), &q, yield)
			var e *inventory.Error
			switch {
			case errors.Is(err, errStopped) || ctx.Err() != nil:
				return
			case errors.As(err, &e) && e.Kind != inventory.Unavailable:
				yield(inventory.Event{}, err)
				return
			}
			if heard {
				wait = retryFirst
			}
			_ = sleep.For(ctx, wait)
			wait = min(2*wait, retryMost)
		}
	}
}

var errStopped = errors.New("the reader has stopped")

// stream reads one connection until it breaks, and moves q behind what it has read.
func (c *Client) stream(ctx context.Context, path string, values url.Values, q *EventQuery, yield func(inventory.Event, error) bool) (heard bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	silence := time.AfterFunc(silentFor, cancel)
	defer silence.Stop()
	res, err := c.send(ctx, http.MethodGet, path, values, nil, func(r *http.Request) { r.Header.Set("Accept", "text/event-stream") })
	if err != nil {
		return false, err
	}
	defer func() { _ = res.Body.Close() }()
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		return false, inventory.Errorf(inventory.Invalid, "%s sends no event stream", c.where()).WithHint("is a proxy in between?")
	}
	return read(res.Body, func() { silence.Reset(silentFor) }, q, yield)
}

// read takes a stream apart (WHATWG HTML, section 9.2) until it ends; alive is called for each line.
func read(body io.Reader, alive func(), q *EventQuery, yield func(inventory.Event, error) bool) (heard bool, err error) {
	lines := bufio.NewReaderSize(body, 64<<10)
	var (
		data  string
		id    int64
		hasID bool
	)
	for {
		line, err := readLine(lines)
		if err != nil {
			return heard, err
		}
		alive()
		heard = true
		switch field, value, _ := strings.Cut(line, ":"); field {
		case "data":
			if data += strings.TrimPrefix(value, " "); len(data) > maxLine {
				return heard, inventory.Errorf(inventory.Invalid, "an event is longer than %d bytes", maxLine)
			}
		case "id":
			_, err := fmt.Sscan(value, &id)
			hasID = err == nil
		case "":
			if line != "" {
				continue // a comment: the server is alive
			}
			if data == "" {
				if hasID { // where the stream begins
					q.After = id
				}
				continue
			}
			var e inventory.Event
			if err := json.Unmarshal([]byte(data), &e); err != nil {
				return heard, fmt.Errorf("read event: %w", err)
			}
			data, q.After = "", e.ID
			if !yield(e, nil) {
				return heard, errStopped
			}
		}
	}
}

// maxLine bounds one line of a stream.
const maxLine = 1 << 20

func readLine(r *bufio.Reader) (string, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if line = append(line, part...); len(line) > maxLine {
			return "", inventory.Errorf(inventory.Invalid, "a line of the event stream is longer than %d bytes", maxLine)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && len(line) > 0 && errors.Is(err, io.EOF):
			return "", io.ErrUnexpectedEOF
		case err != nil:
			return "", err
		}
		return strings.TrimRight(string(line), "\r\n"), nil
	}
}
