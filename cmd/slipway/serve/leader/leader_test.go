package leader

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"reflect"
	"sync"
	"testing"
	"time"

	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/cmd/slipway/serve/peer"
	"slipway.dev/slipway/cmd/slipway/serve/peer/peertest"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/trace"
)

// told is an engine and a record that remember what they were asked.
type told struct {
	mu     sync.Mutex
	calls  [][]any
	answer any
	fails  error
}

func (e *told) hear(args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls = append(e.calls, args)
}

func (e *told) heard() [][]any {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.calls
}

func (e *told) Offer(_ context.Context, c pxe.Client, base string) pxe.Reply {
	e.hear("Offer", c, base)
	return e.answer.(pxe.Reply)
}

func (e *told) Ask(_ context.Context, s inventory.SessionID, source netip.Addr, base string) ([]byte, error) {
	e.hear("Ask", s, source, base)
	return e.answer.([]byte), e.fails
}

func (e *told) Script(_ context.Context, s inventory.SessionID, c pxe.Client, base string) ([]byte, error) {
	e.hear("Script", s, c, base)
	return e.answer.([]byte), e.fails
}

func (e *told) Report(_ context.Context, s inventory.SessionID, source netip.Addr, key string, r pxe.Report) error {
	e.hear("Report", s, source, key, r)
	return e.fails
}

func (e *told) Document(_ context.Context, r pxe.ConfigRequest) (pxe.ConfigDocument, error) {
	e.hear("Document", r)
	return e.answer.(pxe.ConfigDocument), e.fails
}

func (e *told) Artefact(
	_ context.Context, s inventory.SessionID, source netip.Addr, d inventory.Digest, name string,
) (inventory.Digest, error) {
	e.hear("Artefact", s, source, d, name)
	return e.answer.(inventory.Digest), e.fails
}

func (e *told) Initrds(_ context.Context, s inventory.SessionID, source netip.Addr) ([]inventory.ImageArtefact, bool, error) {
	e.hear("Initrds", s, source)
	return e.answer.([]inventory.ImageArtefact), true, e.fails
}

func (e *told) AgentTask(
	_ context.Context, s inventory.SessionID, source netip.Addr, key string, version int, base string,
) (wire.Task, error) {
	e.hear("AgentTask", s, source, key, version, base)
	return e.answer.(wire.Task), e.fails
}

func (e *told) AgentReport(_ context.Context, s inventory.SessionID, source netip.Addr, key string, r wire.Report) error {
	e.hear("AgentReport", s, source, key, r)
	return e.fails
}

func (e *told) Note(_ context.Context, c pxe.Client, kind, detail string) {
	e.hear("Note", c, kind, detail)
}

func (e *told) Conflict(a netip.Addr, subnet string, who inventory.MAC, detail string) {
	e.hear("Conflict", a, subnet, who, detail)
}
func (e *told) Exhausted(subnet string)           { e.hear("Exhausted", subnet) }
func (e *told) Beside(c pxe.Client, isHeard bool) { e.hear("Beside", c, isHeard) }
func (e *told) Foreign(f pxe.ForeignServer)       { e.hear("Foreign", f) }
func (e *told) ForeignGone(noticed []pxe.ForeignServer, subnets []string, listened time.Duration) {
	e.hear("ForeignGone", len(noticed), subnets, listened)
}

func (e *told) Transferring(t pxe.Transfer)         { e.hear("Transferring", t) }
func (e *told) Transferred(t pxe.Transfer)          { e.hear("Transferred", t) }
func (e *told) Add(f trace.Frame)                   { e.hear("Add", f) }
func (e *told) Tell(m inventory.MAC, n trace.Note)  { e.hear("Tell", m, n) }
func (e *told) learn(a netip.Addr, m inventory.MAC) { e.hear("learn", a, m) }

func (e *told) Unanswered(c pxe.Client, iface, reason string, isMeant bool) {
	e.hear("Unanswered", c, iface, reason, isMeant)
}

// The clock of the leader runs an hour ahead of that of the front.
var (
	frontNow  = time.Date(2026, 11, 28, 4, 0, 0, 0, time.UTC)
	leaderNow = frontNow.Add(time.Hour)
)

// link starts a leader, and returns what asks it.
func link(t *testing.T, e *told) *Remote {
	t.Helper()
	i := peertest.Identity(t, "k")
	a := Answerer{Engine: e, Record: e, Learn: e.learn, Now: func() time.Time { return leaderNow }, Log: slog.New(slog.DiscardHandler)}
	at := peertest.Serve(t, i, func(s *peer.Server) { a.Register(s) })
	c := peer.NewClient(i, "a")
	t.Cleanup(c.Close)
	return remote(c, at)
}

func remote(c *peer.Client, at ...string) *Remote {
	return New(Config{
		Client: c, Leader: func() []string { return at }, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return frontNow },
		Neighbour: func(netip.Addr) (inventory.MAC, bool) { return "52:54:00:00:00:09", true },
		Heard:     func(error) {},
		Offer:     func(context.Context, pxe.Client, string) pxe.Reply { return pxe.Reply{File: "decided here"} },
	})
}

// fill sets each field of a value to something that is not zero, so that a field that gets lost shows.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Interface().(type) {
	case netip.Addr:
		v.Set(reflect.ValueOf(netip.AddrFrom4([4]byte{10, 0, byte(*n >> 8), byte(*n)})))
		return
	case time.Time:
		v.Set(reflect.ValueOf(frontNow.Add(time.Duration(*n))))
		return
	case error:
		v.Set(reflect.ValueOf(errors.New("the cable was pulled")))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprint("text ", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(*n % 100))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(*n % 100))
	case reflect.Float64:
		v.SetFloat(float64(*n))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(v.Index(i), n)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.Name == "Err" {
				v.Field(i).Set(reflect.ValueOf(errors.New("the cable was pulled")))
			} else if f.IsExported() {
				fill(v.Field(i), n)
			}
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		k, x := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(k, n)
		fill(x, n)
		v.SetMapIndex(k, x)
	}
}

func filled[T any]() (x T) {
	n := 0
	fill(reflect.ValueOf(&x).Elem(), &n)
	return x
}

func TestNothingOfAQuestionIsLost(t *testing.T) {
	e := &told{}
	r := link(t, e)
	at, who := netip.MustParseAddr("10.0.0.7"), inventory.MAC("52:54:00:00:00:09")
	client := filled[pxe.Client]()
	var _ Engine = r
	for name, q := range map[string]struct {
		answer any
		ask    func() (any, error)
		heard  []any
	}{
		"Offer": {
			filled[pxe.Reply](),
			func() (any, error) { return r.Offer(t.Context(), client, "http://base"), nil },
			[]any{client, "http://base"},
		},
		"Ask": {
			[]byte("#!ipxe"),
			func() (any, error) { return r.Ask(t.Context(), "s", at, "http://base") },
			[]any{inventory.SessionID("s"), at, "http://base"},
		},
		"Script": {
			[]byte("#!ipxe"),
			func() (any, error) { return r.Script(t.Context(), "s", client, "http://base") },
			[]any{inventory.SessionID("s"), client, "http://base"},
		},
		"Report": {
			nil,
			func() (any, error) { return nil, r.Report(t.Context(), "s", at, "key", filled[pxe.Report]()) },
			[]any{inventory.SessionID("s"), at, "key", filled[pxe.Report]()},
		},
		"Document": {
			filled[pxe.ConfigDocument](),
			func() (any, error) { return r.Document(t.Context(), filled[pxe.ConfigRequest]()) },
			[]any{filled[pxe.ConfigRequest]()},
		},
		"Artefact": {
			inventory.Digest("d"),
			func() (any, error) { return r.Artefact(t.Context(), "s", at, "sha", "vmlinuz") },
			[]any{inventory.SessionID("s"), at, inventory.Digest("sha"), "vmlinuz"},
		},
		"Initrds": {filled[[]inventory.ImageArtefact](), func() (any, error) {
			files, hasConfig, err := r.Initrds(t.Context(), "s", at)
			if err == nil && !hasConfig {
				t.Error("the configuration got lost")
			}
			return files, err
		}, []any{inventory.SessionID("s"), at}},
		"AgentTask": {
			filled[wire.Task](),
			func() (any, error) { return r.AgentTask(t.Context(), "s", at, "key", 7, "http://base") },
			[]any{inventory.SessionID("s"), at, "key", 7, "http://base"},
		},
		"AgentReport": {
			nil,
			func() (any, error) { return nil, r.AgentReport(t.Context(), "s", at, "key", filled[wire.Report]()) },
			[]any{inventory.SessionID("s"), at, "key", filled[wire.Report]()},
		},
	} {
		e.calls, e.answer, e.fails = nil, q.answer, nil
		answer, err := q.ask()
		if err != nil || !reflect.DeepEqual(answer, q.answer) {
			t.Errorf("%s answered %+v, %v instead of %+v", name, answer, err, q.answer)
		}
		want := [][]any{append([]any{name}, q.heard...)}
		if name != "Offer" { // a machine that asks DHCP has no address yet
			of := at
			switch name {
			case "Script":
				of = client.Address
			case "Document":
				of = filled[pxe.ConfigRequest]().Source
			}
			want = append([][]any{{"learn", of, who}}, want...)
		}
		if !reflect.DeepEqual(e.heard(), want) {
			t.Errorf("%s: the engine heard %+v\nasked was %+v", name, e.heard(), want)
		}
		if name == "Offer" {
			continue
		}
		e.fails = inventory.Errorf(inventory.Forbidden, "not you").WithHint("ask somebody else")
		if _, err := q.ask(); !inventory.IsKind(err, inventory.Forbidden) || err.Error() != "not you" {
			t.Errorf("%s: the error came as %v", name, err)
		}
	}
}

func TestNotesComeInTheirOrder(t *testing.T) {
	e := &told{}
	r := link(t, e)
	client, transfer := filled[pxe.Client](), filled[pxe.Transfer]()
	foreign, frame, record := filled[pxe.ForeignServer](), filled[trace.Frame](), filled[trace.Note]()
	at := netip.MustParseAddr("10.0.0.7")
	r.Note(t.Context(), client, "kind", "detail")
	r.Conflict(at, "rack1", "52:54:00:00:00:01", "somebody has it")
	r.Exhausted("rack1")
	r.Beside(client, true)
	r.Foreign(foreign)
	r.ForeignGone([]pxe.ForeignServer{foreign}, []string{"rack1"}, time.Minute)
	r.Unanswered(client, "eth0", "because", true)
	r.Transferring(transfer)
	r.Transferred(transfer)
	r.Add(frame)
	r.Tell("52:54:00:00:00:01", record)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Serve(ctx) }()
	foreign.SinceAt, foreign.LastAt = foreign.SinceAt.Add(time.Hour), foreign.LastAt.Add(time.Hour)
	frame.At, record.At = frame.At.Add(time.Hour), record.At.Add(time.Hour)
	learn := []any{"learn", transfer.Source, inventory.MAC("52:54:00:00:00:09")}
	want := [][]any{
		{"Note", client, "kind", "detail"},
		{"Conflict", at, "rack1", inventory.MAC("52:54:00:00:00:01"), "somebody has it"},
		{"Exhausted", "rack1"},
		{"Beside", client, true},
		{"Foreign", foreign},
		{"ForeignGone", 1, []string{"rack1"}, time.Minute},
		{"Unanswered", client, "eth0", "because", true},
		learn,
		{"Transferring", transfer},
		learn,
		{"Transferred", transfer},
		{"Add", frame},
		{"Tell", inventory.MAC("52:54:00:00:00:01"), record},
	}
	for until := time.Now().Add(5 * time.Second); len(e.heard()) < len(want) && time.Now().Before(until); time.Sleep(time.Millisecond) {
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for i, w := range want {
		if h := e.heard(); i >= len(h) || !reflect.DeepEqual(h[i], w) {
			t.Fatalf("call %d of %d is not %+v", i, len(h), w)
		}
	}
}

// Without a leader a machine gets an answer of DHCP within a second, and the others hear that they have to wait.
func TestWithoutALeaderOnlyDHCPDecides(t *testing.T) {
	i := peertest.Identity(t, "k")
	c := peer.NewClient(i, "a")
	defer c.Close()
	for name, r := range map[string]*Remote{"nobody has the engine": remote(c), "its machine is gone": remote(c, "127.0.0.1:1", "[::1]:1")} {
		began := time.Now()
		if got := r.Offer(t.Context(), pxe.Client{}, "http://base"); got.File != "decided here" || time.Since(began) > time.Second {
			t.Errorf("%s: %+v after %s", name, got, time.Since(began))
		}
		if _, err := r.Script(t.Context(), "s", pxe.Client{}, "http://base"); !inventory.IsKind(err, inventory.Unavailable) {
			t.Errorf("%s: script: %v", name, err)
		}
	}
}

func TestNotesThatWaitForALeaderAreBounded(t *testing.T) {
	r := remote(nil)
	for range notesWaiting + 7 {
		r.Exhausted("rack1")
	}
	if len(r.queue) != notesWaiting || r.lost.Load() != 7 {
		t.Errorf("%d wait, %d lost", len(r.queue), r.lost.Load())
	}
}

// TestAFrontHearsWhetherTheLeaderAnswers greets at several links.
func TestAFrontHearsWhetherTheLeaderAnswers(t *testing.T) {
	r := link(t, &told{})
	works := r.cfg.Leader()[0]
	for want, links := range map[string][]string{
		"": {"127.0.0.1:1", works},
		"no answer from 127.0.0.1:1 (connect: connection refused), 127.0.0.1:2 (connect: connection refused)": {"127.0.0.1:2", "127.0.0.1:1"},
		"no instance has the engine at the moment":                                                            nil,
	} {
		r.cfg.Leader = func() []string { return links }
		if got := fmt.Sprint(r.Greet(t.Context())); got != cmp.Or(want, "<nil>") {
			t.Errorf("%q: %s", links, got)
		}
	}
	if last := r.answered.Load(); last == nil || *last != works {
		t.Errorf("the next question goes to %v", last)
	}
	// Notes that wait for a leader do not keep it from being greeted.
	heard := make(chan error, 8)
	r.cfg.Leader, r.cfg.Heard = func() []string { return []string{"127.0.0.1:1"} }, func(err error) { heard <- err }
	r.Exhausted("rack1")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Serve(ctx) }()
	select {
	case err := <-heard:
		if err == nil {
			t.Error("it hears of an answer")
		}
	case <-time.After(10 * time.Second):
		t.Error("it hears nothing")
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
