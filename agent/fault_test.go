package agent

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/inventory"
)

// text collects a log.
type text struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (x *text) Write(p []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.b.Write(p)
}

func (x *text) String() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.b.String()
}

func TestAServerInTroubleIsAskedUntilItIsWell(t *testing.T) {
	status := func(code int, header, value string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			if header != "" {
				w.Header().Set(header, value)
			}
			w.WriteHeader(code)
			return true
		}
	}
	body := func(s string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPost {
				return false
			}
			_, _ = io.WriteString(w, s)
			return true
		}
	}
	for _, c := range []struct {
		name  string
		fault func(http.ResponseWriter, *http.Request) bool
		most  int64  // requests in a minute
		says  string // on the console
	}{
		{"it is not ready", status(503, "Retry-After", "20"), 5, "503"},
		{"it is broken", status(500, "", ""), 9, "500"},
		{"it does not know the session", status(404, "", ""), 9, "404"},
		{"it sends us elsewhere", status(302, "Location", "http://evil/"), 9, "302"},
		{"it sends nonsense", body("<html>captive portal</html>"), 12, "no task"},
		{"it sends other JSON", body(`[1,2,3]`), 12, "no task"},
		{"it sends a task without an id", body(`{"kind":"wipe"}`), 12, "without kind or id"},
		{"it sends an id without a kind", body(`{"id":"x"}`), 12, "without kind or id"},
		{"it sends a task without end", body(`{"id":"` + strings.Repeat("x", 3<<20)), 12, "more than"},
		{"it hangs up", func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }, 12, "EOF"},
		{"it never answers", func(_ http.ResponseWriter, r *http.Request) bool {
			_, _ = io.Copy(io.Discard, r.Body) // net/http notices a client that leaves only then
			<-r.Context().Done()
			return true
		}, 4, "deadline"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, log := newDoorForTest(t), &text{}
				var requests atomic.Int64
				d.setFault(func(w http.ResponseWriter, r *http.Request) bool {
					requests.Add(1)
					return c.fault(w, r)
				})
				d.set(wire.Task{ID: "a.1", Kind: wire.Inspect})
				stop := run(t, d, Config{Log: slog.New(slog.NewTextHandler(log, nil)), Handlers: map[wire.Kind]Handler{wire.Inspect: done}})
				after(time.Minute)
				if n := requests.Load(); n > c.most || n < 1 {
					t.Errorf("%d requests in a minute, want 1 to %d", n, c.most)
				}
				d.setFault(nil)
				after(90 * time.Second)
				stop()
				if heard := d.heard(); len(heard) < 2 || heard[1] != "done a.1" {
					t.Errorf("told %q once it was well", heard)
				}
				if !strings.Contains(log.String(), c.says) || strings.Contains(log.String(), "/s/1") {
					t.Errorf("the log must have %q and no session:\n%s", c.says, log)
				}
			})
		})
	}
}

// TestAnotherInstanceIsAskedWhenOneDoesNotAnswer has a session that began at an instance that is gone. The other one knows it.
func TestAnotherInstanceIsAskedWhenOneDoesNotAnswer(t *testing.T) {
	for _, c := range []struct {
		name   string
		others func(there string) []string
		isDone bool
	}{
		{"it is asked", func(there string) []string { return []string{there} }, true},
		{"it is asked after one that is gone, too", func(there string) []string { return []string{"http://127.0.0.1:1", there} }, true},
		{"none is known", func(string) []string { return nil }, false},
		{"one that is no URL is left out", func(string) []string { return []string{"::", "", "https://127.0.0.1:2"} }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/boot/s/key/agent/report" {
					http.NotFound(w, r)
				}
			}))
			defer server.Close()
			// Nothing listens on port 1.
			d := newDoor(Config{Session: "http://127.0.0.1:1/boot/s/key", Others: c.others(server.URL)})
			var said error
			for range 3 {
				if said = d.report(t.Context(), wire.Report{State: wire.Hello}); said == nil {
					break
				}
			}
			if (said == nil) != c.isDone {
				t.Errorf("it was told: %v", said)
			}
			if c.isDone && "http://"+d.host() != server.URL {
				t.Errorf("%s answers, and people read %s", server.URL, d.host())
			}
		})
	}
}

func TestAResultWaitsForARestartOfTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoorForTest(t)
		d.set(wire.Task{ID: "a.1", Kind: wire.Write})
		stop := run(t, d, Config{Handlers: map[wire.Kind]Handler{wire.Write: done}})
		d.setFault(func(_ http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPost && len(d.heard()) > 0 {
				panic(http.ErrAbortHandler) // the hello came through, the result does not
			}
			return false
		})
		after(5 * time.Minute)
		d.setFault(nil)
		after(time.Minute)
		stop()
		if heard := d.heard(); len(heard) < 2 || heard[1] != "done a.1" {
			t.Errorf("told %q", heard)
		}
	})
}

func TestAResultThatIsRefusedForGoodIsLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoorForTest(t)
		d.set(wire.Task{ID: "a.1", Kind: wire.Inspect})
		d.setFault(func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPost && len(d.heard()) == 1 {
				d.set(wire.Task{ID: "b.1", Kind: wire.Write})
				d.setFault(nil)
				w.WriteHeader(http.StatusConflict)
				return true
			}
			return false
		})
		stop := run(t, d, Config{Handlers: map[wire.Kind]Handler{wire.Inspect: done, wire.Write: done}})
		after(20 * time.Second)
		stop()
		if heard := d.heard(); len(heard) < 2 || heard[1] != "done b.1" {
			t.Errorf("told %q: the agent must go on after a refusal", heard)
		}
	})
}

func TestALostSessionIsGivenUpOnceAndOnlyWhenNothingRuns(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		isBusy bool
		want   int
	}{
		{"the server does not know it", http.StatusNotFound, false, 1},
		{"the server says it is over", http.StatusGone, false, 1},
		{"a task is under way", http.StatusNotFound, true, 0},
		{"the server is only down", http.StatusServiceUnavailable, false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, lostN := newDoorForTest(t), 0
				if c.isBusy {
					d.set(wire.Task{ID: "a.1", Kind: wire.Write})
				}
				stop := run(t, d, Config{Lost: func() { lostN++ }, Handlers: map[wire.Kind]Handler{wire.Write: func(ctx context.Context, _ wire.Task, _ Progress) (wire.Report, error) {
					<-ctx.Done()
					return wire.Report{}, ctx.Err()
				}}})
				after(10 * time.Second)
				d.setFault(func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(c.status); return true })
				after(30 * time.Minute)
				stop()
				if lostN != c.want {
					t.Errorf("given up %d times, want %d", lostN, c.want)
				}
			})
		})
	}
}

func TestAWrongSessionIsRefusedAtOnce(t *testing.T) {
	for _, session := range []string{"", "door/s/1", "file:///etc/passwd", "http://"} {
		if err := Run(t.Context(), Config{Session: session}); err == nil {
			t.Errorf("%q is taken", session)
		}
	}
}

func TestLogLinesReachTheServerInBatchesAndBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, lines := newDoorForTest(t), &Lines{}
		var isDown atomic.Bool
		isDown.Store(true)
		d.setFault(func(w http.ResponseWriter, _ *http.Request) bool {
			if isDown.Load() {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			return isDown.Load()
		})
		stop := run(t, d, Config{Lines: lines})
		for range 5000 {
			_, _ = io.WriteString(lines, "a line of some fifty bytes, as a log may well have\x1b[2J\n")
		}
		_, _ = io.WriteString(lines, "the last line\n")
		after(time.Minute)
		isDown.Store(false)
		after(30 * time.Second)
		stop()
		var logs []wire.Report
		for _, r := range d.reports {
			if r.State == wire.Log {
				logs = append(logs, r)
			}
		}
		if len(logs) != 1 {
			t.Fatalf("%d batches, want one", len(logs))
		}
		if got := logs[0].Log; len(got) > maxLines || !strings.HasSuffix(got, "the last line\n") || strings.Contains(got, "\x1b") {
			t.Errorf("%d bytes, ending in %q", len(got), got[len(got)-40:])
		}
	})
}

func TestAReportThatIsTooLargeLosesWhatMachinesHaveThousandsOf(t *testing.T) {
	h := inventory.Hardware{Source: "agent", Disks: []inventory.Disk{{Name: "sda"}}}
	for range 20_000 {
		h.PCI = append(h.PCI, inventory.PCIDevice{Address: "0000:00:00.0", ID: "8086:1572", Vendor: strings.Repeat("x", 100)})
	}
	b, err := encode(wire.Report{State: wire.Done, Task: "a.1", Hardware: &h})
	if err != nil || len(b) > wire.MaxReport || !bytes.Contains(b, []byte(`"sda"`)) {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	h.Disks = make([]inventory.Disk, 50_000)
	b, err = encode(wire.Report{State: wire.Done, Task: "a.1", Hardware: &h})
	if err != nil || !bytes.Contains(b, []byte("has more than 1048576 bytes")) {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}
