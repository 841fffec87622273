package chaos

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
)

// tried is slipway try, as somebody who tries Slipway has it.
type tried struct {
	*watcher
	ctx context.Context
}

const (
	triedFor  = 3 * time.Minute
	triedN    = 12 // hosts of slipway try
	machinesN = 8  // that are installed on them
	lookEvery = 400 * time.Millisecond
	// restFor is longer than the server repeats an answer to a machine whose power went: TCP gives up later, but each repeat
	// takes twice as long.
	restFor = 15 * time.Second
	breath  = 5 * time.Second
)

// TestAHealthyRackHasNoCauseAndNoIssue lives with the rack of slipway try: it is heard, accepted, inspected and switched off,
// installed, restarted, wiped and switched off again. Nothing fails, and at no moment does the server say that anything has.
func TestAHealthyRackHasNoCauseAndNoIssue(t *testing.T) {
	t.Parallel() // this test and the next mostly wait
	r := try(t)
	r.await("all machines are heard", func(hosts []inventory.Host) bool {
		return len(hosts) == triedN && !slices.ContainsFunc(hosts, func(h inventory.Host) bool { return h.Place.Unit == 0 })
	})
	r.rest(breath) // they wait for somebody
	r.each(r.hosts(), func(h inventory.Host) error { _, err := r.api.Hosts.Accept(r.ctx, string(h.ID)); return err })
	r.await("all are inspected", r.areFree)
	r.rest(restFor) // they are off
	for i := range machinesN {
		name := fmt.Sprintf("m%d", i)
		if _, err := r.api.Machines.Create(r.ctx, inventory.Machine{Name: name, Profile: "try-debian"}); err != nil {
			t.Fatal(err)
		}
	}
	isActive := func(h inventory.Host) bool { return h.State == inventory.Active }
	r.await("all machines run", func(hosts []inventory.Host) bool {
		return len(slices.DeleteFunc(hosts, func(h inventory.Host) bool { return !isActive(h) })) == machinesN
	})
	r.each(slices.DeleteFunc(r.hosts(), func(h inventory.Host) bool { return !isActive(h) }), func(h inventory.Host) error {
		_, err := r.api.Hosts.Power(r.ctx, string(h.ID), "cycle")
		return err
	})
	r.rest(restFor)
	for i := range machinesN {
		if _, _, err := r.api.Machines.Remove(r.ctx, fmt.Sprintf("m%d", i), false); err != nil {
			t.Fatal(err)
		}
	}
	r.await("all hosts are free again", r.areFree)
	r.rest(breath)
	if r.looks < 50 {
		t.Errorf("only %d looks: the test proves too little", r.looks)
	}
}

// try starts slipway try and waits until it answers.
func try(t *testing.T) *tried {
	t.Helper()
	needsNetwork(t)
	ctx, cancel := context.WithTimeout(t.Context(), triedFor)
	t.Cleanup(cancel)
	cmd := exec.Command(build(t), "try", "--name", "slipway-well", "--listen", "127.0.0.1:0", "--hosts", fmt.Sprint(triedN))
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	socket := make(chan string, 1)
	go func() {
		is := regexp.MustCompile(`SLIPWAY_SERVER=(\S+)`)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if m := is.FindStringSubmatch(lines.Text()); m != nil {
				socket <- m[1]
			}
		}
	}()
	r := &tried{watcher: &watcher{t: t, said: map[string]int{}}, ctx: ctx}
	select {
	case path := <-socket:
		if r.api, err = client.New(client.Config{Server: "unix:" + path}); err != nil {
			t.Fatal(err)
		}
	case <-ctx.Done():
		t.Fatal("slipway try did not say where it is")
	}
	t.Cleanup(func() { r.api.Close(); r.judge() })
	return r
}

func needsNetwork(t *testing.T) {
	t.Helper()
	if os.Getenv("SLIPWAY_NET") != "1" {
		t.Skip("needs root and makes network namespaces; run: make test-net")
	}
	if _, err := os.Stat("/usr/lib/ipxe/snponly.efi"); err != nil {
		t.Skip("needs the boot loaders; run: apt-get install ipxe")
	}
}

// areFree reports whether all hosts can be claimed, and nothing is being done with them.
func (r *tried) areFree(hosts []inventory.Host) bool {
	if slices.ContainsFunc(hosts, func(h inventory.Host) bool { return h.State != inventory.Available }) {
		return false
	}
	for o, err := range r.api.Operations.All(r.ctx, client.Query{}) {
		if err != nil || o.IsOpen() {
			return false
		}
	}
	return true
}

func (r *tried) hosts() (all []inventory.Host) {
	for h, err := range r.api.Hosts.All(r.ctx, client.Query{}) {
		if err != nil {
			r.t.Fatal(err)
		}
		all = append(all, h)
	}
	return all
}

func (r *tried) each(hosts []inventory.Host, do func(inventory.Host) error) {
	r.t.Helper()
	for _, h := range hosts {
		if err := do(h); err != nil {
			r.t.Fatalf("%s: %v", h.Name, err)
		}
	}
}

// rest lets the server say what it has to say while nothing happens. SLIPWAY_LONG=1 makes all rests long.
func (r *tried) rest(by time.Duration) {
	if os.Getenv("SLIPWAY_LONG") == "1" {
		by = restFor
	}
	end := time.Now().Add(by)
	r.await("some time is over", func([]inventory.Host) bool { return time.Now().After(end) })
}

// await looks at all hosts until something is so.
func (r *tried) await(what string, isSo func([]inventory.Host) bool) {
	r.t.Helper()
	for r.ctx.Err() == nil {
		hosts := r.hosts()
		r.look(r.ctx, hosts)
		if isSo(hosts) {
			return
		}
		time.Sleep(lookEvery)
	}
	for _, h := range r.hosts() {
		r.t.Logf("%s is %s: %s", h.Name, h.State, h.StateReason)
	}
	r.t.Fatalf("never: %s", what)
}

// watcher looks for complaints of the server about hosts to which nothing happens.
type watcher struct {
	t     *testing.T
	api   *client.Client
	mu    sync.Mutex
	said  map[string]int // complaints, with how often each was made
	looks int
}

// look asks about each host as its page does, and for open issues.
func (w *watcher) look(ctx context.Context, hosts []inventory.Host) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looks++
	for _, h := range hosts {
		d, err := w.api.Hosts.Diagnose(ctx, string(h.ID), "")
		for _, c := range d.Causes {
			w.said[fmt.Sprintf("a host that is %s has the cause %s (%d): %s; seen: %v", h.State, c.Code, c.Weight, c.Sentence, c.Evidence[:min(len(c.Evidence), 2)])]++
		}
		if d.Trouble != "" {
			w.said[fmt.Sprintf("a host that is %s is in trouble: %s", h.State, d.Trouble)]++
		}
		if err == nil && d.IsLate {
			w.said[fmt.Sprintf("a host that is %s is late at %s: %s", h.State, d.Step, d.Expects)]++
		}
	}
	for i, err := range w.api.Issues.All(ctx, client.Query{}) {
		if err == nil {
			w.said[fmt.Sprintf("issue %s: %s", i.Type, i.Cause)]++
		}
	}
}

func (w *watcher) judge() {
	for _, what := range slices.Sorted(maps.Keys(w.said)) {
		w.t.Errorf("%d times: %s", w.said[what], what)
	}
	w.t.Logf("%d looks", w.looks)
}

// TestADayWithoutAFaultHasNoCauseAndNoIssue lives a day with a rack to which nothing bad happens: machines are replaced and
// restarted, people look at pages, and time passes. SLIPWAY_LONG=1 is the whole day; else it is half an hour without restarts,
// since a boot through which half an hour passes is an issue for an hour, two minutes of ours. What time limits
// of the server end because half an hour passes in two seconds is waited for: it is over before the next half hour.
func TestADayWithoutAFaultHasNoCauseAndNoIssue(t *testing.T) {
	t.Parallel()
	needsNetwork(t)
	began := time.Now()
	d := newDay(t)
	w := &watcher{t: t, api: d.api, said: map[string]int{}}
	d.createAll(d.ctx)
	d.next = len(d.names)
	d.await(d.ctx, "every machine runs", d.areUp)
	t.Logf("every machine runs after %s", time.Since(began).Round(time.Millisecond))
	n := 1
	if os.Getenv("SLIPWAY_LONG") == "1" {
		n = halfHours
	}
	for i := 0; i < n && len(w.said) == 0 && !t.Failed(); i++ {
		d.issuesAreClosed()
		t.Logf("no issue is open after %s", time.Since(began).Round(time.Millisecond))
		deeds := map[string]func(context.Context, int) error{"machines": d.replaceMachine, "pages": d.lookAtPages}
		if n > 1 {
			deeds["power"] = d.cyclePower
		}
		for what, deed := range deeds {
			if err := deed(d.ctx, i); err != nil {
				t.Errorf("half hour %d, %s: %v", i, what, err)
			}
			d.watch(w, "every machine runs", d.areUp)
		}
		t.Logf("half hour %d is over after %s", i, time.Since(began).Round(time.Millisecond))
		d.api.Close() // the server gives up idle connections while time passes
		d.glide(30 * time.Minute)
	}
	d.issuesAreClosed()
	d.watch(w, "every machine runs", d.areUp)
	w.judge()
	if t.Failed() {
		t.Logf("the server said at last:\n%s", d.victim.said())
	}
}

// watch looks at all hosts, but for the strangers that the server's own questions make while time passes, until something is so.
func (d *day) watch(w *watcher, what string, isSo func(context.Context) (string, error)) {
	d.t.Helper()
	d.await(d.ctx, what, func(ctx context.Context) (string, error) {
		var hosts []inventory.Host
		for h, err := range d.api.Hosts.All(ctx, client.Query{Limit: 500}) {
			if err != nil {
				return "", err
			}
			hosts = append(hosts, h)
		}
		w.look(ctx, slices.DeleteFunc(hosts, func(h inventory.Host) bool { return strings.HasPrefix(h.Name, "host-") }))
		return isSo(ctx)
	})
}
