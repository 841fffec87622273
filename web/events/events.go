package events

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humaecho"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/access"
	"slipway.dev/slipway/web/rest"
)

// Query says which events, and in what form.
type Query struct {
	rest.ByHost
	After   string              `query:"after" doc:"Only events with a higher id; a negative number counts back from the newest. Without it a list begins with the oldest, and a stream with the next." pattern:"^-?[0-9]{1,19}$"`
	Before  int64               `query:"before" doc:"Of a list: only events with a lower id, and then the newest first" minimum:"1"`
	Limit   int                 `query:"limit" doc:"Most items of a list" default:"100" minimum:"1" maximum:"1000"`
	Session inventory.SessionID `query:"session" doc:"Only those of this boot session" maxLength:"64"`
	Kind    string              `query:"kind" doc:"Only this kind, or those that begin with it: dhcp, dhcp.ack" pattern:"^[a-z]+([.][a-z]+)?$"`
	Accept  string              `header:"Accept" doc:"text/event-stream for a stream"`
	LastID  string              `header:"Last-Event-ID" doc:"As after, for a stream that was interrupted; it wins" pattern:"^[0-9]{1,19}$"`
}

// IsStream reports whether the request is for a stream of events.
func (q Query) IsStream() bool { return strings.Contains(q.Accept, "text/event-stream") }

// addEvents registers the list and stream of events.
func (s *Server) addEvents() {
	o := rest.Operation{
		Method: http.MethodGet, Path: "/events", ID: "list-events", Scope: rest.OfPools, Tag: "events", Summary: "List or follow events",
		About: "With Accept: text/event-stream the events come as they happen, each with its id: (resume with Last-Event-ID). " +
			"Otherwise it is a list, oldest first.", Result: rest.List[inventory.Event]{}, Errors: []int{http.StatusNotFound}, IsLong: true,
	}
	rest.Register(s.rest, o, func(req *rest.Request, in *Query) (*huma.StreamResponse, error) {
		f, after, err := s.EventStart(req, in)
		if err != nil {
			return nil, err
		}
		if !in.IsStream() {
			f.Before = in.Before
			return s.listEvents(req, f, after, in.Limit)
		}
		mine := ears{s: s, known: map[string]hearing{}}
		return s.Streamed(req, f, after, func(ctx context.Context, e inventory.Event) (inventory.Event, bool) {
			req := req.With(ctx)
			one := []inventory.Event{e}
			ok := mine.hears(req, e) && s.cfg.Conceal(req, one) == nil
			return one[0], ok
		})
	})
	s.rest.Describe(http.MethodGet, "/events", func(op *huma.Operation) {
		op.Responses["200"].Content["text/event-stream"] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}}
	})
}

// hearer says what the caller hears of an event, and whether it hears of it at all.
type hearer func(ctx context.Context, e inventory.Event) (inventory.Event, bool)

// Streamed answers with the events that the caller hears, from an id on.
func (s *Server) Streamed(req *rest.Request, f inventory.EventFilter, after int64, hear hearer) (*huma.StreamResponse, error) {
	back, err := s.streams.Take(req)
	if err != nil {
		return nil, err
	}
	events, cancel, err := s.cfg.Events.Subscribe(after, f)
	if err != nil {
		back()
		return nil, err
	}
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		defer back()
		defer cancel()
		s.stream(ctx, events, after, hear)
	}}, nil
}

// EventStart works out the filter and the id to begin after.
func (s *Server) EventStart(req *rest.Request, in *Query) (f inventory.EventFilter, after int64, err error) {
	text := in.After
	if in.IsStream() && in.LastID != "" {
		text = in.LastID
	}
	if text != "" {
		if after, err = strconv.ParseInt(text, 10, 64); err != nil {
			return f, 0, inventory.Errorf(inventory.Invalid, "%q is not the id of an event", inventory.Clean(text, 40))
		}
	}
	err = s.rest.Store.Read(req, func(tx inventory.Tx) error {
		id, err := in.HostID(tx)
		if err != nil {
			return err
		}
		f = inventory.EventFilter{HostID: id, SessionID: in.Session, Kind: in.Kind}
		last, err := tx.LastEventID()
		if err != nil {
			return err
		}
		switch {
		case text == "" && in.IsStream():
			after = last
		case after < 0:
			after, err = countBack(tx, f, last, -after)
		case in.IsStream():
			after = min(after, last) // an id from the future is that of a database which was replaced
		}
		return err
	})
	return f, after, err
}

// countBack returns the id behind which the newest n events of a filter stand. More than a page is counted by ids.
func countBack(tx inventory.Tx, f inventory.EventFilter, last, n int64) (after int64, err error) {
	if n < 0 || n > 1000 { // the least number has no positive one
		return max(0, last-max(n, 0)), nil
	}
	f.Before = math.MaxInt64
	newest, err := tx.ListEvents(f, 0, int(n))
	if err != nil || len(newest) == 0 {
		return last, err
	}
	return newest[len(newest)-1].ID - 1, nil
}

func (s *Server) listEvents(req *rest.Request, f inventory.EventFilter, after int64, limit int) (*huma.StreamResponse, error) {
	rows, err := rest.Read(req, s.rest.Store, func(tx inventory.Tx) ([]inventory.Event, error) {
		return tx.ListEvents(f, after, limit+1)
	})
	if err == nil {
		err = s.cfg.Conceal(req, rows)
	}
	if err != nil {
		return nil, err
	}
	s.fillLogs(req, rows)
	page := rest.PageOf(rows, limit, func(e inventory.Event) string { return strconv.FormatInt(e.ID, 10) })
	// Packets are noted behind their answers, so ids may lag by a moment; a page reads in the order it happened.
	slices.SortStableFunc(page.Body.Items, func(a, b inventory.Event) int {
		if f.Before > 0 {
			a, b = b, a
		}
		return a.At.Compare(b.At)
	})
	b, err := json.Marshal(page.Body)
	if err != nil {
		return nil, fmt.Errorf("encode events: %w", err)
	}
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		ctx.SetHeader("Content-Type", "application/json")
		_, _ = ctx.BodyWriter().Write(b)
	}}, nil
}

// logsAtMost bounds the logs in one page of events; the rest of them is had with a smaller page.
const logsAtMost = 4 << 20

// logsWithin bounds the time for the logs in one page of events. Other instances may have them.
const logsWithin = 3 * time.Second

// fillLogs puts the logs that events refer to into them.
func (s *Server) fillLogs(ctx context.Context, rows []inventory.Event) {
	if s.cfg.Logs == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, logsWithin)
	defer cancel()
	for i, room := 0, logsAtMost; i < len(rows) && room > 0; i++ {
		data, _ := rows[i].Data.(map[string]any)
		ref, _ := data["logRef"].(string)
		if ref == "" {
			continue
		}
		switch text, away, ok := s.cfg.Logs.Text(ctx, ref); {
		case ok:
			data["log"] = text
			room -= len(text)
		case away != "":
			data["logAway"] = away
		default:
			data["logGone"] = true // newer ones have taken its room
		}
	}
}

// stream sends events until the client goes, is too slow, or the server stops. A cut client comes back with the last
// id it has seen.
func (s *Server) stream(ctx huma.Context, events <-chan inventory.Event, after int64, hears hearer) {
	w, req := humaecho.UnwrapV4(ctx).Response(), rest.RequestOf(ctx.Context())
	control := http.NewResponseController(w)
	ctx.SetHeader("Content-Type", "text/event-stream")
	ctx.SetHeader("X-Accel-Buffering", "no") // a proxy must not hold events back
	var buf bytes.Buffer
	fmt.Fprintf(&buf, "retry: 1000\nid: %d\n\n", after)
	hear := func(e inventory.Event) {
		if e, ok := hears(req, e); ok {
			writeEvent(&buf, e)
		}
	}
	flush := func() error {
		if err := control.SetWriteDeadline(time.Now().Add(s.cfg.WriteFor)); err != nil {
			return err
		}
		if _, err := io.Copy(w, &buf); err != nil {
			return err
		}
		return control.Flush()
	}
	heartbeat := time.NewTicker(s.cfg.HeartbeatFor)
	defer heartbeat.Stop()
	for {
		if err := flush(); err != nil {
			s.rest.Log.Debug("event stream cut", "op", req.ID, "err", err)
			return
		}
		select {
		case <-ctx.Context().Done():
			return
		case <-s.cfg.Life.Done():
			return
		case <-heartbeat.C:
			if !access.StillIn(req) {
				return
			}
			buf.WriteString(": alive\n\n")
		case e, ok := <-events:
			if !ok {
				return
			}
			hear(e)
			for range len(events) { // what waits already goes out with it
				if e, ok = <-events; ok {
					hear(e)
				}
			}
		}
	}
}

// writeEvent writes one event in the form of a stream (WHATWG HTML, section 9.2). JSON has no line ends in it.
func writeEvent(buf *bytes.Buffer, e inventory.Event) {
	b, err := json.Marshal(e)
	if err != nil {
		e.Data = nil // only that can be beyond JSON
		b, _ = json.Marshal(e)
	}
	fmt.Fprintf(buf, "id: %d\ndata: %s\n\n", e.ID, b)
}
