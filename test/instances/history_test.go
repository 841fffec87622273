package instances

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore"
	"slipway.dev/slipway/test/history"
	"slipway.dev/slipway/test/line"
	"slipway.dev/slipway/test/postgres"
)

// trial is several instances with clients, on a primary and its synchronous standby. Faults come while the clients ask.
type trial struct {
	t        *testing.T
	url      string // of the database, without lines
	primary  *postgres.Server
	standby  *postgres.Server
	dir      string // of the journals
	site     site
	members  map[string]*member
	journals []string
}

// member is an instance, and its own lines to the primary and to the standby.
type member struct {
	*exec.Cmd
	name  string
	lines []*line.Line
}

func newTrial(t *testing.T, last time.Duration) *trial {
	x := &trial{t: t, primary: postgres.Start(t, postgres.Options{}), dir: t.TempDir(), members: map[string]*member{}}
	x.url = x.primary.Database(t)
	x.standby = x.primary.Standby(t, nil)
	x.primary.Set(t, "synchronous_standby_names", "*")
	s, err := sqlstore.Open(t.Context(), sqlstore.Config{URL: x.url})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	x.site = site{BeganAt: time.Now(), IsVerbose: testing.Verbose()}
	if x.site.Codes, err = fill(t.Context(), s, last); err != nil {
		t.Fatal(err)
	}
	return x
}

// begin starts an instance. Other processes that have its id are copies of its data directory.
func (x *trial) begin(name string) *member {
	x.t.Helper()
	m := x.members[name]
	if m == nil {
		m = &member{name: name, lines: []*line.Line{line.New(x.t, x.primary.Address()), line.New(x.t, x.standby.Address())}}
		x.members[name] = m
	}
	of := x.site
	of.Name, of.ID, of.URL = name, "id-"+name, line.URL(x.t, x.url, m.lines...)
	of.Journal = filepath.Join(x.dir, fmt.Sprintf("%s-%d", name, len(x.journals)))
	x.journals = append(x.journals, of.Journal)
	m.Cmd = start(x.t, clientsEnv+"="+of.text())
	return m
}

// signal sends a signal to the process of an instance.
func (x *trial) signal(p *exec.Cmd, s syscall.Signal) {
	x.t.Helper()
	if err := p.Process.Signal(s); err != nil {
		x.t.Fatal(err)
	}
}

// holder is the instance that has a duty, and the epoch, once that is later than the one before.
func (x *trial) holder(d string, before int64) (*member, int64) {
	x.t.Helper()
	s, err := sqlstore.Open(x.t.Context(), sqlstore.Config{URL: x.both()})
	if err != nil {
		x.t.Fatal(err)
	}
	defer s.Close()
	for until := time.Now().Add(30 * time.Second); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		all, err := inventory.Read(x.t.Context(), s, func(tx inventory.Tx) ([]inventory.Duty, error) { return tx.ListDuties() })
		for _, row := range all {
			if m := x.members[strings.TrimPrefix(row.Holder, "id-")]; err == nil && row.Name == d && m != nil && row.Epoch > before {
				return m, row.Epoch
			}
		}
	}
	x.t.Fatalf("nobody has duty %s", d)
	return nil, 0
}

// both is the URL of the database on primary and standby.
func (x *trial) both() string {
	u, err := url.Parse(x.url)
	if err != nil {
		x.t.Fatal(err)
	}
	u.Host = x.primary.Address() + "," + x.standby.Address()
	return u.String()
}

// The faults. Each ends with all instances as they were before, so that they can follow each other.

// kill ends the holder of a duty at once, and starts it again.
func (x *trial) kill(d string) {
	m, _ := x.holder(d, 0)
	x.t.Logf("kill -9 of %s, which has %s", m.name, d)
	x.signal(m.Cmd, syscall.SIGKILL)
	_ = m.Wait()
	time.Sleep(time.Second)
	x.begin(m.name)
}

// pause stops the holder of a duty until another instance has it. It wakes up, and does what it was about to do.
func (x *trial) pause(d string) {
	m, epoch := x.holder(d, 0)
	x.t.Logf("pause of %s, which has %s", m.name, d)
	x.signal(m.Cmd, syscall.SIGSTOP)
	x.holder(d, epoch)
	time.Sleep(500 * time.Millisecond)
	x.signal(m.Cmd, syscall.SIGCONT)
	time.Sleep(500 * time.Millisecond)
}

// replace starts another process as the instance that has a duty, while that is paused: with a copy of its data directory. The first one
// wakes up when the other has the duty. Only the epoch tells them apart then.
func (x *trial) replace(d string) {
	m, epoch := x.holder(d, 0)
	x.t.Logf("%s, which has %s, is paused, and another process is %s", m.name, d, m.name)
	first := m.Cmd
	for _, all := range x.members { // the others would take the duty
		x.signal(all.Cmd, syscall.SIGSTOP)
	}
	x.begin(m.name)
	x.holder(d, epoch)
	time.Sleep(500 * time.Millisecond)
	x.signal(first, syscall.SIGCONT)
	for _, other := range x.members {
		x.signal(other.Cmd, syscall.SIGCONT)
	}
	time.Sleep(500 * time.Millisecond)
}

// cut ends the connections of an instance, which finds no way to the database for a while.
func (x *trial) cut(d string) {
	m, _ := x.holder(d, 0)
	x.t.Logf("the lines of %s, which has %s, are cut", m.name, d)
	for _, l := range m.lines {
		l.Cut()
	}
	time.Sleep(1500 * time.Millisecond)
	for _, l := range m.lines {
		l.Join(x.t)
	}
}

// swallow loses the answers of the database to an instance: also those to COMMIT.
func (x *trial) swallow(d string) {
	m, _ := x.holder(d, 0)
	x.t.Logf("%s, which has %s, hears no answers of the database", m.name, d)
	for _, l := range m.lines {
		l.Swallow(x.t, line.Answers)
	}
	time.Sleep(2 * time.Second)
	for _, l := range m.lines {
		l.Mend(x.t.Context())
	}
}

// failOver ends the primary as a power cut does, and promotes its standby. Another standby follows that one.
func (x *trial) failOver() {
	x.t.Log("the primary dies, and its standby takes over")
	x.primary.Stop(x.t, postgres.Immediate)
	x.standby.Promote(x.t)
	x.primary, x.standby = x.standby, x.standby.Standby(x.t, nil)
	for _, m := range x.members {
		m.lines[0].Lead(x.t, x.primary.Address())
		m.lines[1].Lead(x.t, x.standby.Address())
	}
	x.primary.Set(x.t, "synchronous_standby_names", "*")
}

// end ends all instances, and says whether what they have answered can be true.
func (x *trial) end() {
	time.Sleep(time.Second)
	for _, m := range x.members {
		x.signal(m.Cmd, syscall.SIGKILL)
		_ = m.Wait()
	}
	h, err := history.Open(x.journals...)
	if err != nil {
		x.t.Fatal(err)
	}
	began := time.Now()
	history.Check(x.t, h)
	x.t.Logf("checked in %s", time.Since(began).Round(time.Millisecond))
	for _, model := range []string{history.Leases, history.Hosts, history.Operations, history.Tokens, history.Duties} {
		n := h.Count(model, history.Done)
		x.t.Logf("%-10s %5d done, %5d refused, %3d failed, %3d without an answer",
			model, n, h.Count(model, history.Refused), h.Count(model, history.Failed), h.Count(model, history.Unknown))
		if n < 25 {
			x.t.Errorf("%d requests to %s prove nothing", n, model)
		}
	}
}

// TestPostgresHistoriesAreLinearisable: whatever fails, three instances have answered as one would.
func TestPostgresHistoriesAreLinearisable(t *testing.T) {
	x := newTrial(t, time.Minute)
	for _, name := range []string{"a", "b", "c"} {
		x.begin(name)
	}
	time.Sleep(time.Second)
	x.pause(rack1)
	x.replace(rack1)
	x.kill(rack1)
	x.cut(rack1)
	x.swallow(rack1)
	x.failOver()
	x.replace(rack1)
	x.end()
}

// TestPostgresLongHistoriesAreLinearisable does that for minutes, with faults in any order.
func TestPostgresLongHistoriesAreLinearisable(t *testing.T) {
	if os.Getenv("SLIPWAY_LONG") == "" {
		t.Skip("takes five minutes; run: make test-long RUN=" + t.Name())
	}
	const last = 5 * time.Minute
	x := newTrial(t, last+time.Minute)
	for _, name := range []string{"a", "b", "c"} {
		x.begin(name)
	}
	time.Sleep(time.Second)
	faults := []func(string){x.kill, x.pause, x.replace, x.cut, x.swallow, func(string) { x.failOver() }}
	for began := time.Now(); time.Since(began) < last; {
		faults[rand.IntN(len(faults))](duties[rand.IntN(len(duties))])
		time.Sleep(time.Duration(rand.IntN(2000)) * time.Millisecond)
	}
	x.end()
}
