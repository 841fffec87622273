package consoles

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humaecho"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/power"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/wire"
)

type consoleLogInput struct {
	rest.HostRef
	Plain  bool   `query:"plain" doc:"Without escape codes"`
	Search string `query:"search" doc:"Only the lines with this text, without escape codes; upper and lower case are the same" maxLength:"256"`
	Lines  bool   `query:"lines" doc:"Lines with their times instead of the text; the newest 10000"`

	Since time.Time `query:"since" doc:"Of lines those from this time on"`
	Until time.Time `query:"until" doc:"Of lines those until this time"`
}

type typeInput struct {
	rest.HostRef
	Body struct {
		Text string `json:"text" doc:"As it is typed; Enter is \\r" minLength:"1" maxLength:"4096"`
	}
}

// addConsoles registers the operations on serial consoles: for browsers, and their recordings.
func (s *Server) addConsoles() {
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/hosts/{host}/console/stream", ID: "follow-console", Needs: inventory.Operator, Scope: rest.OfPools, Tag: "hosts", Plain: "text/event-stream", IsLong: true,
		Summary: "Follow the serial console of a host", Errors: []int{http.StatusNotFound, http.StatusConflict},
		About: "A stream of events whose data is base64 of what the console says, beginning with the end of what was recorded. " +
			"The console is shared: it is open for as long as anybody follows it. Type with POST /hosts/{host}/console/type.",
	}, s.followConsole)
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodPost, Path: "/hosts/{host}/console/type", ID: "type-into-console", Asks: true, Scope: rest.OfPools, Tag: "hosts", Status: http.StatusNoContent,
		Summary: "Type into the serial console of a host that is open", Errors: []int{http.StatusNotFound, http.StatusConflict},
	},
		func(req *rest.Request, in *typeInput) (*struct{}, error) {
			h, err := s.rest.ReadHost(req, in.Host)
			if err != nil {
				return nil, err
			}
			return nil, s.lines.typeInto(h, []byte(in.Body.Text))
		})
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/hosts/{host}/console/log", ID: "get-console-log", Needs: inventory.Operator, Scope: rest.OfPools, Tag: "hosts",
		Summary: "Show what was recorded of the serial console of a host", Errors: []int{http.StatusNotFound},
		About: "The last 256 KiB of its output while it was open, for a reader or an operation. " +
			"It is kept in memory, and ends with the server.",
	}, s.consoleLog)
}

func (s *Server) consoleLog(req *rest.Request, in *consoleLogInput) (*rest.One[wire.ConsoleLog], error) {
	h, err := s.rest.ReadHost(req, in.Host)
	if err != nil {
		return nil, err
	}
	r, isOpen := s.lines.recorded(h.ID)
	// The text begins somewhere in what the console has said. Begin tells a reader how much is missing before it.
	out := wire.ConsoleLog{Begin: r.end - int64(len(r.text)), End: r.end, At: r.at, IsOpen: isOpen}
	switch {
	case in.Lines:
		for _, l := range r.lines() {
			isIn := !l.At.Before(in.Since) && (in.Until.IsZero() || !l.At.After(in.Until))
			if isIn && strings.Contains(strings.ToLower(l.Text), strings.ToLower(in.Search)) {
				out.Lines = append(out.Lines, l)
			}
		}
	case in.Search != "":
		var found []string
		// Escape codes go before the search: a code in the middle of a word would hide it.
		for line := range strings.SplitSeq(plainText(r.text), "\n") {
			if strings.Contains(strings.ToLower(line), strings.ToLower(in.Search)) {
				found = append(found, line)
			}
		}
		out.Text = strings.Join(found, "\n")
	case in.Plain:
		out.Text = plainText(r.text)
	default:
		out.Text = strings.ToValidUTF8(string(r.text), "\ufffd")
	}
	return &rest.One[wire.ConsoleLog]{Body: out}, nil
}

// historyBytes is how much of the recording a stream begins with.
const historyBytes = 32 << 10

// followConsole gives a browser the serial console of a host, until either of them goes or the server stops.
func (s *Server) followConsole(req *rest.Request, in *rest.HostRef) (*huma.StreamResponse, error) {
	h, err := s.rest.ReadHost(req, in.Host)
	if err != nil {
		return nil, err
	}
	back, err := s.shares.Take(req)
	if err != nil {
		return nil, err
	}
	// The recording is copied before the line is joined. What an open console says in between is in neither. In the other order
	// it would come twice, and a reader takes a missing line for quiet and a double one for a fault of the machine.
	past, _ := s.lines.recorded(h.ID)
	opening, cancel := context.WithTimeout(req, power.ControllerFor)
	defer cancel()
	line, err := s.lines.join(opening, h)
	if err == nil {
		if err = s.consoleOpened(req, h); err == nil {
			err = s.cfg.Power.Note(req, h, "serial console opened")
		}
		if err != nil {
			_ = line.Close()
		}
	}
	if err != nil {
		back()
		return nil, err
	}
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		defer back()
		defer func() { _ = line.Close() }()
		s.streamConsole(hc, past.text[max(0, len(past.text)-historyBytes):], line)
	}}, nil
}

// streamConsole writes what a console says as events until it ends, or the client goes.
func (s *Server) streamConsole(hc huma.Context, past []byte, line *listener) {
	// huma has no way to flush or to set deadlines, so this writes past it.
	w := humaecho.UnwrapV4(hc).Response()
	control := http.NewResponseController(w)
	hc.SetHeader("Content-Type", "text/event-stream")
	// nginx would hold events back until its buffer is full.
	hc.SetHeader("X-Accel-Buffering", "no")
	var buf bytes.Buffer
	say := func(b []byte) { fmt.Fprintf(&buf, "data: %s\n\n", base64.StdEncoding.EncodeToString(b)) }
	say(past)
	heartbeat := time.NewTicker(s.cfg.HeartbeatFor)
	defer heartbeat.Stop()
	for isOver := false; ; {
		if control.SetWriteDeadline(time.Now().Add(s.cfg.WriteFor)) != nil {
			return
		}
		// The first round sends what was recorded, before anything new.
		if _, err := io.Copy(w, &buf); err != nil || control.Flush() != nil || isOver {
			return
		}
		select {
		case <-hc.Context().Done():
			return
		// The context of a stream outlives the call of Shutdown, which waits for requests to end.
		case <-s.cfg.Life.Done():
			return
		case <-heartbeat.C:
			buf.WriteString(": alive\n\n")
		// said is closed at the end of the console, and when this client was too slow. Both end the stream with an event, so
		// that a browser opens it again only when somebody asks.
		case b, ok := <-line.said:
			if !ok {
				buf.WriteString("event: end\ndata:\n\n")
				isOver = true
				continue
			}
			say(b)
		}
	}
}

// Record keeps consoles open while something is done with their hosts, so that what the machine said is there when it
// fails. Slipway asks a controller without a console once for each operation.
func (s *Server) Record(ctx context.Context) error {
	if s.cfg.Events == nil || !s.cfg.IsRecording {
		return nil
	}
	last, err := inventory.Read(ctx, s.cfg.Store, func(tx inventory.Tx) (int64, error) { return tx.LastEventID() })
	if err != nil {
		return err
	}
	open := map[inventory.HostID]*listener{}
	tried := map[string]bool{}
	defer func() {
		for _, l := range open {
			_ = l.Close()
		}
	}()
	// The hub ends a subscription that falls behind. The next one begins after the last event that was handled here.
	for ctx.Err() == nil {
		events, cancel, err := s.cfg.Events.Subscribe(last, inventory.EventFilter{Kind: inventory.EventOperation})
		if err != nil {
			return err
		}
		last = s.recordWhile(ctx, events, last, open, tried)
		cancel()
	}
	return nil
}

// recordWhile opens and closes consoles as operations begin and end, until the events end; it returns the last one's id.
func (s *Server) recordWhile(ctx context.Context, events <-chan inventory.Event, last int64, open map[inventory.HostID]*listener, tried map[string]bool) int64 {
	for {
		select {
		case <-ctx.Done():
			return last
		case e, ok := <-events:
			if !ok {
				return last
			}
			last = e.ID
			state := inventory.OperationState(rest.EventText(e, "state"))
			isOpen := state == inventory.OpRunning || state == inventory.OpWaiting
			if l := open[e.HostID]; l != nil && !isOpen {
				_ = l.Close()
				delete(open, e.HostID)
			}
			// An operation of kind power uses the controller for a moment only; a console would be in its way.
			id := rest.EventText(e, "operation")
			if !isOpen || open[e.HostID] != nil || tried[id] || len(open) >= consolesMax || rest.EventText(e, "kind") == string(inventory.OpPower) {
				continue
			}
			// Forgetting costs one more question to a controller without a console.
			if len(tried) > recordingsMax {
				clear(tried)
			}
			tried[id] = true
			if l := s.recordOne(ctx, e.HostID); l != nil {
				open[e.HostID] = l
			}
		}
	}
}

// recordOne opens the console of a host to record it; nil when it has none.
func (s *Server) recordOne(ctx context.Context, id inventory.HostID) *listener {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	h, err := inventory.Read(ctx, s.cfg.Store, func(tx inventory.Tx) (inventory.Host, error) { return tx.FindHost(id) })
	if err != nil {
		return nil
	}
	// Opening may take its 20 seconds here while other events wait. They are stored, and none is lost.
	l, err := s.lines.join(ctx, h)
	if err != nil {
		s.rest.Log.Debug("console not recorded", "host", h.Name, "err", err)
		return nil
	}
	go func() { _, _ = io.Copy(io.Discard, l) }() // ends with the listener
	return l
}
