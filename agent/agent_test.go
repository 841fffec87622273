package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/inventory"
)

// door plays the boot door: a real net/http server on pipes, so that it lives in a bubble of synctest with its own time.
type playedDoor struct {
	mu      sync.Mutex
	tasks   []wire.Task // handed out one after the other; the last until it changes
	reports []wire.Report
	asked   []time.Duration // when tasks were asked for
	began   time.Time
	fault   func(w http.ResponseWriter, r *http.Request) bool // true when it has answered

	conns  chan net.Conn
	server *http.Server
}

func newDoorForTest(t *testing.T) *playedDoor {
	d := &playedDoor{began: time.Now()}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /s/1/agent/task", d.task)
	mux.HandleFunc("POST /s/1/agent/report", d.report)
	d.server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.mu.Lock()
		fault := d.fault
		d.mu.Unlock()
		if fault == nil || !fault(w, r) {
			mux.ServeHTTP(w, r)
		}
	})}
	d.listen()
	t.Cleanup(func() { _ = d.server.Close() })
	return d
}

func (d *playedDoor) listen() {
	d.conns = make(chan net.Conn)
	l := &pipes{conns: d.conns, closed: make(chan struct{})}
	go func() { _ = d.server.Serve(l) }()
}

// pipes is a net.Listener without a network.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (d *playedDoor) client() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		here, there := net.Pipe()
		select {
		case d.conns <- there:
			return here, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}}
}

func (d *playedDoor) task(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, time.Since(d.began))
	if r.URL.Query().Get("version") != fmt.Sprint(wire.Version) {
		http.Error(w, "no version", http.StatusBadRequest)
		return
	}
	task := wire.Task{Kind: wire.Wait, AgainSeconds: 5}
	if len(d.tasks) > 0 {
		task = d.tasks[0]
	}
	_ = json.NewEncoder(w).Encode(task)
}

func (d *playedDoor) report(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, wire.MaxReport+1))
	var report wire.Report
	if err != nil || len(body) > wire.MaxReport || json.Unmarshal(body, &report) != nil {
		http.Error(w, "not a report", http.StatusBadRequest)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reports = append(d.reports, report)
	w.WriteHeader(http.StatusNoContent)
}

func (d *playedDoor) set(tasks ...wire.Task) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tasks = tasks
}

func (d *playedDoor) setFault(f func(http.ResponseWriter, *http.Request) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault = f
}

// heard returns state, task, and error of what was reported, but logs and progress.
func (d *playedDoor) heard() (words []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range d.reports {
		if r.State != wire.Log && r.State != wire.Running {
			words = append(words, strings.TrimSpace(fmt.Sprintf("%s %s %s", r.State, r.Task, r.Error)))
		}
	}
	return words
}

// run starts an agent against the door, and returns what stops it.
func run(t *testing.T, d *playedDoor, cfg Config) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cfg.Session, cfg.Client = "http://door/s/1", d.client()
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	done := make(chan error)
	go func() { done <- Run(ctx, cfg) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// after lets the bubble's time pass.
func after(d time.Duration) { time.Sleep(d); synctest.Wait() }

func done(context.Context, wire.Task, Progress) (wire.Report, error) { return wire.Report{}, nil }

func TestATaskIsDoneAndItsResultToldAgainWhenAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, ran := newDoorForTest(t), 0
		d.set(wire.Task{ID: "op.1", Kind: wire.Inspect})
		stop := run(t, d, Config{
			Info: func() wire.AgentInfo { return wire.AgentInfo{Build: "b"} },
			Handlers: map[wire.Kind]Handler{wire.Inspect: func(context.Context, wire.Task, Progress) (wire.Report, error) {
				ran++
				return wire.Report{Hardware: &inventory.Hardware{Source: "agent"}}, nil
			}},
		})
		after(20 * time.Second) // the server forgot the result, and hands the task out again and again
		d.set(wire.Task{ID: "op.2", Kind: wire.Inspect})
		after(10 * time.Second)
		stop()
		heard := d.heard()
		if ran != 2 || heard[0] != "hello" || !slices.Contains(heard, "done op.2") {
			t.Errorf("ran %d times, told %q", ran, heard)
		}
		if n := strings.Count(strings.Join(heard, "\n"), "done op.1"); n < 2 || n > 6 {
			t.Errorf("the result was told %d times in 20 s, want a few", n)
		}
		for _, r := range d.reports {
			if r.Version != wire.Version || r.State == wire.Done && r.Hardware == nil {
				t.Errorf("%+v", r)
			}
		}
	})
}

func TestWhatFailsIsToldWithReasonAndHint(t *testing.T) {
	for _, c := range []struct {
		name    string
		kind    wire.Kind
		handler Handler
		want    wire.Report
	}{
		{
			"an error for people", wire.Write,
			func(context.Context, wire.Task, Progress) (wire.Report, error) {
				return wire.Report{}, inventory.Errorf(inventory.Invalid, "the disk is too small").WithHint("use a larger one")
			},
			wire.Report{Error: "the disk is too small", Hint: "use a larger one", IsLasting: true},
		},
		{
			"an error that may go away, with half a result", wire.Write,
			func(context.Context, wire.Task, Progress) (wire.Report, error) {
				return wire.Report{Write: &wire.WriteResult{ReadBytes: 7}}, errors.New("broken\npipe\x1b[2J")
			},
			wire.Report{Error: "broken; pipe [2J", Write: &wire.WriteResult{ReadBytes: 7}},
		},
		{
			"a handler that breaks", wire.Write,
			func(context.Context, wire.Task, Progress) (wire.Report, error) { panic("index out of range") },
			wire.Report{Error: "the agent broke at this task: index out of range", Hint: "the log of the host has the place; please report it"},
		},
		{
			"a task of tomorrow", "levitate", nil,
			wire.Report{Error: `this agent cannot do a task of kind "levitate"`, Hint: "build a newer agent image: slipway agent-image build", IsLasting: true},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDoorForTest(t)
				d.set(wire.Task{ID: "x.1", Kind: c.kind})
				stop := run(t, d, Config{Handlers: map[wire.Kind]Handler{wire.Write: c.handler}})
				after(3 * time.Second)
				stop()
				c.want.Version, c.want.Task, c.want.State = wire.Version, "x.1", wire.Failed
				if diff := cmp.Diff(c.want, d.reports[1]); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

func TestANewTaskStopsTheRunningOneBeforeItStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoorForTest(t)
		d.set(wire.Task{ID: "a.1", Kind: wire.Write})
		var steps []string
		stop := run(t, d, Config{Handlers: map[wire.Kind]Handler{
			wire.Write: func(ctx context.Context, task wire.Task, _ Progress) (wire.Report, error) {
				<-ctx.Done()
				time.Sleep(3 * time.Second) // a disk takes its time
				steps = append(steps, "write ended")
				return wire.Report{}, ctx.Err()
			},
			wire.Wipe: func(context.Context, wire.Task, Progress) (wire.Report, error) {
				steps = append(steps, "wipe began")
				return wire.Report{}, nil
			},
		}})
		after(12 * time.Second)
		d.set(wire.Task{ID: "b.1", Kind: wire.Wipe})
		after(12 * time.Second)
		stop()
		if diff := cmp.Diff([]string{"write ended", "wipe began"}, steps); diff != "" {
			t.Error(diff)
		}
		if got := d.heard()[:2]; !slices.Equal(got, []string{"hello", "done b.1"}) {
			t.Errorf("%q: of the stopped task nothing is told", got)
		}
		if n := len(d.asked); n > 12 {
			t.Errorf("asked %d times in 24 s", n)
		}
	})
}

func TestAWithdrawnTaskStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoorForTest(t)
		d.set(wire.Task{ID: "a.1", Kind: wire.Write})
		stopped := false
		stop := run(t, d, Config{Handlers: map[wire.Kind]Handler{wire.Write: func(ctx context.Context, _ wire.Task, _ Progress) (wire.Report, error) {
			<-ctx.Done()
			stopped = true
			return wire.Report{}, ctx.Err()
		}}})
		after(3 * time.Second)
		d.set()
		after(8 * time.Second)
		if !stopped {
			t.Error("the task goes on after the server has withdrawn it")
		}
		stop()
	})
}

func TestProgressIsToldSparingly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoorForTest(t)
		d.set(wire.Task{ID: "a.1", Kind: wire.Write})
		stop := run(t, d, Config{Handlers: map[wire.Kind]Handler{wire.Write: func(_ context.Context, _ wire.Task, say Progress) (wire.Report, error) {
			for i := range 10_000 {
				say("writing\x07 sda", wire.Progress{Bytes: int64(i)})
				time.Sleep(time.Millisecond)
			}
			return wire.Report{}, nil
		}}})
		after(11 * time.Second)
		stop()
		n, last := 0, wire.Report{}
		for _, r := range d.reports {
			if r.State == wire.Done && r.Task == last.Task {
				break
			}
			if r.State == wire.Running {
				n, last = n+1, r
			}
		}
		if n < 4 || n > 5 || last.Detail != "writing  sda" || last.Progress.Bytes < 7000 {
			t.Errorf("%d reports in 10 s, the last %+v", n, last)
		}
	})
}

func TestAMachineLeavesOnlyAfterTheServerKnows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoorForTest(t)
		d.set(wire.Task{ID: "r.1", Kind: wire.Reboot})
		var heard []string
		stop := run(t, d, Config{Leave: map[wire.Kind]func() error{wire.Reboot: func() error {
			heard = d.heard()
			return errors.New("the firmware does not restart")
		}}})
		after(3 * time.Second)
		stop()
		if diff := cmp.Diff([]string{"hello", "done r.1"}, heard); diff != "" {
			t.Error(diff)
		}
		if got := d.heard(); len(got) < 3 || got[2] != "failed r.1 the firmware does not restart" {
			t.Errorf("%q", got)
		}
	})
}
