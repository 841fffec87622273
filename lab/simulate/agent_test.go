package simulate

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	agentwire "slipway.dev/slipway/agent/wire"
)

const toySession = "/boot/0123456789abcdef0123456789abcdef"

// toyTasks is a boot door for one agent: it hands out tasks in turn, and takes reports.
type toyTasks struct {
	mu      sync.Mutex
	tasks   []agentwire.Task
	reports []string
	busy    int // answers 502 left
	ups     int
	image   []byte
	cut     bool // the next download breaks off in the middle
	// refused counts how often a configuration was not given; the first time, another task takes the place of the one that asks.
	refused int
	instead []agentwire.Task
	early   int // reports that a system is up which are refused
}

func (s *toyTasks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy > 0 {
		s.busy--
		http.Error(w, "killed", http.StatusBadGateway)
		return
	}
	switch strings.TrimPrefix(r.URL.Path, toySession) {
	case "/agent/task":
		t := agentwire.Task{Kind: agentwire.Wait, AgainSeconds: 1}
		if len(s.tasks) > 0 {
			t = s.tasks[0]
		}
		_ = json.NewEncoder(w).Encode(t)
	case "/agent/report":
		var in agentwire.Report
		if json.NewDecoder(r.Body).Decode(&in) != nil || in.Version != agentwire.Version {
			http.Error(w, "no report", http.StatusBadRequest)
			return
		}
		s.reports = append(s.reports, fmt.Sprintf("%s %s", in.Task, in.State))
		if len(s.tasks) > 0 && in.Task == s.tasks[0].ID {
			s.tasks = s.tasks[1:]
		}
	case "/disk.raw":
		if s.cut && r.Header.Get("Range") == "" {
			w.Header().Set("Content-Length", fmt.Sprint(len(s.image)))
			_, _ = w.Write(s.image[:len(s.image)/2])
			return
		}
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(string(s.image)))
	case "/config/user-data":
		if s.instead != nil || s.refused > 0 {
			if s.refused++; s.refused == 1 {
				s.tasks, s.instead = s.instead, nil
			}
			http.Error(w, "sealed", http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "write_files:\n- {path: /run/report-url, content: \"http://"+r.Host+toySession+"/report/key\"}\n")
	case "/report/key":
		if s.early > 0 {
			s.early--
			http.Error(w, "not yet", http.StatusForbidden)
			return
		}
		if r.URL.Query().Get("step") == "up" {
			s.ups++
		}
	default:
		http.NotFound(w, r)
	}
}

func TestAnAgentDoesItsTasksAndItsSystemReports(t *testing.T) {
	door := &toyTasks{image: []byte(strings.Repeat("disk", 50_000)), cut: true, busy: 2}
	web := httptest.NewServer(door)
	defer web.Close()
	door.tasks = []agentwire.Task{
		{ID: "op.1", Kind: agentwire.Inspect},
		{ID: "op.2", Kind: agentwire.Wipe, Wipe: &agentwire.WipeTask{Mode: "quick"}},
		{ID: "op.3", Kind: agentwire.Write, Write: &agentwire.WriteTask{
			Image: agentwire.ImageFile{URL: web.URL + toySession + "/disk.raw", SizeBytes: 200_000},
			Seed:  agentwire.Seed{Kind: agentwire.SeedNoCloud, Documents: map[string]string{"user-data": web.URL + toySession + "/config/user-data"}},
		}},
		{ID: "op.4", Kind: agentwire.Reboot},
	}
	s := newToyServer(t)
	s.script = strings.Replace(s.script, "quiet", "slipway.session="+web.URL+toySession, 1)
	cfg := toyConfig(1)
	cfg.Download = true
	var acts []string
	cfg.Acted = func(a Act) {
		acts = append(acts, a.What)
		if a.What == "written" { // the next boot is from disk
			s.mu.Lock()
			defer s.mu.Unlock()
			s.script = "#!ipxe\nexit\n"
		}
	}
	r := ran(t, cfg, s)
	if !r.IsGood() || r.Stages[StageBooted] != 1 {
		t.Fatalf("ended as %v: %+v", r.Stages, r.Failures)
	}
	want := []string{" hello", "op.1 done", "op.2 done", "op.3 done", "op.4 done"}
	if !slices.Equal(door.reports, want) || door.ups != 1 {
		t.Errorf("reported %q and up %d times, want %q", door.reports, door.ups, want)
	}
	if want := []string{"inspect", "wipe", "wiped", "write", "written", "reboot", "up"}; !slices.Equal(acts, want) {
		t.Errorf("acts %q, want %q", acts, want)
	}
	if r.Counts["downloads resumed"] != 1 {
		t.Errorf("counts %v: the download was cut, and not resumed", r.Counts)
	}
}

// A system that has been installed asks for an address, and says that it runs, until it was heard. Its record says what became of that.
func TestASystemOnDiskGoesOnUntilItWasHeard(t *testing.T) {
	t.Parallel()
	door := &toyTasks{image: []byte("disk"), early: 2}
	web := httptest.NewServer(door)
	defer web.Close()
	door.tasks = []agentwire.Task{
		{ID: "op.1", Kind: agentwire.Write, Write: &agentwire.WriteTask{
			Image: agentwire.ImageFile{URL: web.URL + toySession + "/disk.raw", SizeBytes: 4},
			Seed:  agentwire.Seed{Kind: agentwire.SeedNoCloud, Documents: map[string]string{"user-data": web.URL + toySession + "/config/user-data"}},
		}},
		{ID: "op.2", Kind: agentwire.Reboot},
	}
	s := newToyServer(t)
	s.script = strings.Replace(s.script, "quiet", "slipway.session="+web.URL+toySession, 1)
	cfg := toyConfig(1)
	cfg.Acted = func(a Act) {
		if a.What == "written" { // the next boot is from disk
			s.mu.Lock()
			defer s.mu.Unlock()
			s.script, s.deaf = "#!ipxe\nexit\n", 5 // one more than a system asks before it begins anew
		}
	}
	var record []Moment
	cfg.Lived = func(m Moment) { record = append(record, m) }
	r := ran(t, cfg, s)
	if !r.IsGood() || r.Counts["restarts"] != 1 || r.Counts["systems that began to ask for an address again"] != 1 {
		t.Fatalf("%s", summaryOf(t, r))
	}
	var reports []string
	for _, m := range record {
		if m.Status > 0 && m.Boot != strings.TrimPrefix(toySession, "/boot/") {
			t.Errorf("a report with the boot %q: %s", m.Boot, m)
		}
		if m.Status > 0 {
			reports = append(reports, fmt.Sprintf("%s of %s: %d %v %s", m.What, m.Task, m.Status, m.IsAcknowledged(), m.Text))
		}
	}
	want := []string{
		"report hello of : 200 true ", "report done of op.1: 200 true ", "report done of op.2: 200 true ",
		"report up of op.1: 403 false not yet", "report up of op.1: 403 false not yet", "report up of op.1: 200 true ",
	}
	if !slices.Equal(reports, want) {
		t.Errorf("the record has %q, want %q", reports, want)
	}
}

func TestAnAgentDropsATaskThatTheServerHasReplaced(t *testing.T) {
	door := &toyTasks{image: []byte("disk"), instead: []agentwire.Task{
		{ID: "release.1", Kind: agentwire.Wipe, Wipe: &agentwire.WipeTask{Mode: "quick"}},
		{ID: "release.2", Kind: agentwire.Reboot},
	}}
	web := httptest.NewServer(door)
	defer web.Close()
	door.tasks = []agentwire.Task{{ID: "install.1", Kind: agentwire.Write, Write: &agentwire.WriteTask{
		Image: agentwire.ImageFile{URL: web.URL + toySession + "/disk.raw", SizeBytes: 4},
		Seed:  agentwire.Seed{Kind: agentwire.SeedNoCloud, Documents: map[string]string{"user-data": web.URL + toySession + "/config/user-data"}},
	}}}
	s := newToyServer(t)
	s.script = strings.Replace(s.script, "quiet", "slipway.session="+web.URL+toySession, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cfg := toyConfig(1)
	cfg.Acted = func(a Act) {
		if a.What == "wiped" { // the next boot is from disk
			s.mu.Lock()
			defer s.mu.Unlock()
			s.script = "#!ipxe\nexit\n"
		}
	}
	_, err := run(ctx, cfg, s, s.tftpPort)
	if err != nil || ctx.Err() != nil {
		t.Fatalf("it stays with a task that nobody wants: %v", err)
	}
	if want := []string{" hello", "release.1 done", "release.2 done"}; !slices.Equal(door.reports, want) {
		t.Errorf("reported %q, want %q", door.reports, want)
	}
}

func TestControllersSwitchMachines(t *testing.T) {
	o := newOutlet(false)
	c := &controllers{byMAC: map[string]*outlet{"02:00:00:00:00:01": o}, stats: newStats()}
	web := httptest.NewServer(c)
	defer web.Close()
	ask := func(method, path string) string {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, web.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, _ := io.ReadAll(res.Body)
		return fmt.Sprintf("%d %s", res.StatusCode, strings.TrimSpace(string(b)))
	}
	for _, step := range []struct{ method, path, want string }{
		{"GET", "/02:00:00:00:00:01/power", `200 {"power":"off"}`},
		{"POST", "/02:00:00:00:00:01/on", "200 "},
		{"GET", "/02:00:00:00:00:01/power", `200 {"power":"on"}`},
		{"POST", "/02:00:00:00:00:01/cycle", "200 "},
		{"POST", "/02:00:00:00:00:01/off", "200 "},
		{"POST", "/02:00:00:00:00:01/off", "200 "},
		{"GET", "/02:00:00:00:00:01/power", `200 {"power":"off"}`},
		{"GET", "/02:00:00:00:00:02/power", "404 404 page not found"},
		{"GET", "/02:00:00:00:00:01/on", "404 404 page not found"},
		{"POST", "/02:00:00:00:00:01/explode", "404 404 page not found"},
	} {
		if got := ask(step.method, step.path); got != step.want {
			t.Errorf("%s %s answers %q, want %q", step.method, step.path, got, step.want)
		}
	}
	if o.turns != 3 {
		t.Errorf("switched %d times, want 3", o.turns)
	}
}

func TestControllersFailAsOftenAsTheyAreTold(t *testing.T) {
	c := &controllers{faults: 0.1, dice: newDice(nil, 1, 1).rand, stats: newStats()}
	kinds := map[int]int{}
	for range 10_000 {
		kinds[c.fault()]++
	}
	if n := 10_000 - kinds[0]; n < 850 || n > 1150 || len(kinds) != 4 {
		t.Errorf("faults %v", kinds)
	}
}

func TestReportURLsAreFoundInDocuments(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"a key behind it", `"content": "https://10.0.0.1/boot/0123456789abcdef0123456789abcdef/report/abc"`, "https://10.0.0.1/boot/0123456789abcdef0123456789abcdef/report/abc"},
		{"in a command with a query", "curl http://s:80/boot/0123456789abcdef0123456789abcdef/report?step=up'", "http://s:80/boot/0123456789abcdef0123456789abcdef/report?step=up"},
		{"another server's", "http://example.org/report", ""},
		{"nothing", "#cloud-config\n", ""},
	} {
		if got := reportIn([]byte(c.text)); got != c.want {
			t.Errorf("%s: found %q, want %q", c.name, got, c.want)
		}
	}
}

func TestAMachineEndsItsBootWhenItIsSwitchedOff(t *testing.T) {
	s := newToyServer(t)
	s.script = "#!ipxe\n:again\nsleep 10\ngoto again\n"
	free, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = free.Close()
	cfg := toyConfig(1)
	cfg.Power = PowerConfig{Listen: free.Addr().String(), IsOn: true}
	ctx, cancel := context.WithCancel(t.Context())
	id := NewIdentity(1, 0)
	hasWaited := false
	cfg.Progress = func(n map[Stage]int) {
		switch {
		case n[StageWaiting] == 1:
			hasWaited = true
			res, err := http.Post("http://"+cfg.Power.Listen+"/"+id.MACText()+"/off", "", nil)
			if err != nil {
				t.Error(err)
				cancel()
				return
			}
			_ = res.Body.Close()
		case hasWaited && n[StageOff] == 1:
			cancel()
		}
	}
	r, err := run(ctx, cfg, s, s.tftpPort)
	if err != nil || !hasWaited || ctx.Err() == nil || r.Stages[StageOff] != 1 {
		t.Errorf("waited %v, ended as %v: %v", hasWaited, r.Stages, err)
	}
}
