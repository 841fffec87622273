package chaos

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore"
	"slipway.dev/slipway/lab/simulate"
)

// diary is what each machine lived through, and which of its reports a server took.
type diary struct {
	mu sync.Mutex
	by map[string][]simulate.Moment // by MAC
}

func (d *diary) add(m simulate.Moment) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.by[m.MAC] = append(d.by[m.MAC], m)
}

// of returns the record of a machine with all that it did.
func (d *diary) of(mac string) []simulate.Moment {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.by[mac])
}

// found is what the database has at the end.
type found struct {
	hosts []inventory.Host
	ops   map[string]inventory.Operation
	ups   map[inventory.SessionID]bool // boots whose system reported up, as the events say
}

// checkAcknowledged looks for reports that a server acknowledged, and that the database knows nothing of. An acknowledged change is lost
// then. It also prints what each machine lived through that is not up at the end.
func (d *drill) checkAcknowledged() {
	f := d.find()
	acknowledged := 0
	for _, h := range f.hosts {
		var lost []string
		for _, mac := range h.MACs() {
			n, some := lostReports(d.diary.of(string(mac)), d.actsOf(string(mac)), f)
			acknowledged += n
			lost = append(lost, some...)
		}
		switch {
		case len(lost) > 0:
			d.t.Errorf("LOST: %s\n%s", strings.Join(lost, "\n"), d.trace(&h, f))
		case h.State == inventory.Installing:
			d.t.Errorf("%s is not up, and none of its acknowledged reports was lost\n%s", h.Name, d.trace(&h, f))
		case h.State == inventory.Failed:
			d.t.Logf("%s has failed: %s", h.Name, h.StateReason)
		}
	}
	d.t.Logf("%d reports of machines were acknowledged", acknowledged)
	if acknowledged < len(d.names) {
		d.t.Errorf("only %d reports were acknowledged: the record of machines is not whole", acknowledged)
	}
}

func (d *drill) actsOf(mac string) []simulate.Act {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.acts[mac])
}

// lostReports compares the acknowledged reports of a machine with what the database says. A report that a system is up has an event, and
// ends its installation. After a report that a disk was written or wiped, the same operation does not do that again.
func lostReports(record []simulate.Moment, acts []simulate.Act, f found) (n int, lost []string) {
	for _, m := range record {
		if !m.IsAcknowledged() {
			continue
		}
		n++
		id, _, _ := strings.Cut(m.Task, ".")
		op := f.ops[id]
		switch m.What {
		case "report up":
			if !f.ups[inventory.SessionID(m.Boot)] {
				lost = append(lost, m.String()+": there is no event of it")
			}
			if op.IsOpen() {
				lost = append(lost, fmt.Sprintf("%s: %s is still at %s", m, op.Kind, op.Step))
			}
		case "report done":
			isOf := func(a simulate.Act) bool { return a.Task == m.Task && (a.What == "write" || a.What == "wipe") }
			i := slices.IndexFunc(acts, isOf)
			if i < 0 {
				continue
			}
			for _, a := range acts {
				if again, _, _ := strings.Cut(a.Task, "."); again == id && a.What == acts[i].What && a.At.After(m.At) {
					lost = append(lost, fmt.Sprintf("%s: %s begins again at %s (task %s)", m, a.What, a.At.Format(time.TimeOnly), a.Task))
				}
			}
		}
	}
	return n, lost
}

func (d *drill) find() (f found) {
	d.t.Helper()
	store, err := sqlstore.Open(d.t.Context(), d.store)
	if err != nil {
		d.t.Fatal(err)
	}
	defer store.Close()
	f = found{ops: map[string]inventory.Operation{}, ups: map[inventory.SessionID]bool{}}
	err = store.Read(d.t.Context(), func(tx inventory.Tx) (err error) {
		if f.hosts, err = tx.ListHosts(inventory.HostFilter{}, inventory.Page{}); err != nil {
			return err
		}
		ops, err := tx.ListOperations(inventory.OperationFilter{}, inventory.Page{})
		if err != nil {
			return err
		}
		for _, o := range ops {
			f.ops[o.ID] = o
		}
		events, err := tx.ListEvents(inventory.EventFilter{Kind: inventory.EventReported}, 0, 0)
		for _, e := range events {
			if strings.HasPrefix(e.Detail, "up") {
				f.ups[e.SessionID] = true
			}
		}
		return err
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return f
}

const traceLines = 60 // of each source

// trace is all that is known about a host: the record of its machine, its operations and events, and what the servers' logs say of it.
func (d *drill) trace(h *inventory.Host, f found) string {
	var b strings.Builder
	words := []string{h.Name, string(h.ID)}
	fmt.Fprintf(&b, "%s is %s (%s), claimed by %q\n", h.Name, h.State, h.StateReason, h.Machine)
	for _, o := range f.ops {
		if o.HostID == h.ID && (o.IsOpen() || o.ClaimID == h.ClaimID) {
			fmt.Fprintf(&b, "operation %s: %s is %s at %s since %s, task %s.%d: %s\n", o.ID, o.Kind, o.State, o.Step, o.StepAt.Format(time.TimeOnly), o.Task, o.TaskN, o.Reason)
			words = append(words, o.ID)
		}
	}
	for _, mac := range h.MACs() {
		words = append(words, string(mac))
		var lines []string
		for _, m := range d.diary.of(string(mac)) {
			lines = append(lines, d.site.named(m.String()))
		}
		fmt.Fprintf(&b, "record of the machine %s:\n%s", mac, tail(lines))
	}
	fmt.Fprintf(&b, "events:\n%s", tail(d.eventsOf(h.ID)))
	for _, v := range d.site.servers {
		fmt.Fprintf(&b, "log of %s:\n%s", v.name, tail(linesWith(v.log(), words)))
	}
	return b.String()
}

func tail(lines []string) (text string) {
	for _, l := range lines[max(0, len(lines)-traceLines):] {
		text += "    " + l + "\n"
	}
	return text
}

func (d *drill) eventsOf(id inventory.HostID) (lines []string) {
	store, err := sqlstore.Open(d.t.Context(), d.store)
	if err != nil {
		return []string{err.Error()}
	}
	defer store.Close()
	err = store.Read(d.t.Context(), func(tx inventory.Tx) error {
		events, err := tx.ListEvents(inventory.EventFilter{HostID: id}, 0, 0)
		for _, e := range events {
			lines = append(lines, fmt.Sprintf("%s %s %s (boot %.8s)", e.At.Local().Format("15:04:05.000"), e.Kind, e.Detail, e.SessionID))
		}
		return err
	})
	if err != nil {
		lines = append(lines, err.Error())
	}
	return lines
}

// linesWith returns the lines of a file that have one of some words.
func linesWith(path string, words []string) (lines []string) {
	file, err := os.Open(path)
	if err != nil {
		return []string{err.Error()}
	}
	defer file.Close()
	s := bufio.NewScanner(file)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		if slices.ContainsFunc(words, func(w string) bool { return strings.Contains(s.Text(), w) }) {
			lines = append(lines, s.Text())
		}
	}
	if err := s.Err(); err != nil {
		lines = append(lines, err.Error())
	}
	return lines
}

// What the drill's judgement finds, without a drill.
func TestALostReportIsFound(t *testing.T) {
	at := time.Date(2026, 11, 28, 8, 0, 0, 0, time.UTC)
	up := simulate.Moment{What: "report up", Task: "op.2", Boot: "b", Server: serverAddress(0) + ":80", Status: 200, At: at}
	written := simulate.Moment{What: "report done", Task: "op.2", Boot: "b", Status: 200, At: at}
	write := simulate.Act{What: "write", Task: "op.2", At: at.Add(-time.Second)}
	again := simulate.Act{What: "write", Task: "op.3", At: at.Add(time.Second)}
	refused, other := up, again
	refused.Status, other.Task = 403, "next.3"
	ended := inventory.Operation{ID: "op", Kind: inventory.OpInstall, State: inventory.OpDone, Step: inventory.StepFirstBoot}
	open := ended
	open.State = inventory.OpRunning
	for name, c := range map[string]struct {
		record   []simulate.Moment
		acts     []simulate.Act
		op       inventory.Operation
		hasEvent bool
		n, lostN int
	}{
		"stored":                      {[]simulate.Moment{written, up}, []simulate.Act{write, other}, ended, true, 2, 0},
		"refused":                     {[]simulate.Moment{refused}, nil, open, false, 0, 0},
		"without an event":            {[]simulate.Moment{up}, nil, ended, false, 1, 1},
		"the operation knows nothing": {[]simulate.Moment{up}, nil, open, true, 1, 1},
		"written twice":               {[]simulate.Moment{written}, []simulate.Act{write, again}, ended, true, 1, 1},
		"written again before the answer": {
			[]simulate.Moment{written},
			[]simulate.Act{write, {What: "write", Task: "op.3", At: at.Add(-time.Millisecond)}},
			ended, true, 1, 0,
		},
	} {
		f := found{ops: map[string]inventory.Operation{"op": c.op}, ups: map[inventory.SessionID]bool{"b": c.hasEvent}}
		if n, lost := lostReports(c.record, c.acts, f); n != c.n || len(lost) != c.lostN {
			t.Errorf("%s: %d reports, and lost are %q", name, n, lost)
		}
	}
}
