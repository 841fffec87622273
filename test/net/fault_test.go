package net_test

import (
	"context"
	"database/sql"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/lab/simulate"
	"slipway.dev/slipway/test/clock"
	"slipway.dev/slipway/web/client"
)

// sufferer is an appliance whose clock goes faster while the test waits for something.
type sufferer struct {
	*appliance
	clock *clock.Clock
	pace  time.Duration // passes in each fifth of a second
}

// takeClock has a pace of the server's clock; a test that cannot is skipped.
func (s *sufferer) takeClock(t *testing.T, pace time.Duration) {
	t.Helper()
	c, err := clock.Take(s.Process.Cmd.Process.Pid)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { c.Close() })
	s.clock, s.pace = c, pace
}

// fault is something that breaks under a running server, and is mended.
type fault struct {
	name        string
	issue       string // its type
	cause, hint string // parts of what the issue says
	isDeaf      bool   // meanwhile no machine at all gets an address
	do          func(s *sufferer) (undo func())
}

// faults come one after the other on the same server.
var faults = []fault{
	{"another process locks the database", inventory.IssueStore, "lock", "fuser", true, (*sufferer).lockDatabase},
	{"the database is read-only", inventory.IssueStore, "cannot be written", "data directory", true, (*sufferer).makeDatabaseImmutable},
	{"the disk is full", inventory.IssueDisk, " MiB free", "free some", false, (*sufferer).fillDisk},
	{"the clock is set ahead", inventory.IssueClock, "2h0m0s", "timedatectl", false, func(s *sufferer) func() { return s.setClock(2 * time.Hour) }},
	{"the clock is set back", inventory.IssueClock, "-26h0m0s", "timedatectl", false, func(s *sufferer) func() { return s.setClock(-26 * time.Hour) }},
	{"the interface is down", inventory.IssueInterface, "is down", "ip link set vs up", false, (*sufferer).linkDown},
	{"its address is another", inventory.IssueInterface, "10.99.0.1/24, which is in no subnet", "slipway subnet create", false, (*sufferer).changeAddress},
	{"it has no address", inventory.IssueInterface, "no IPv4 address", "ip addr add", false, (*sufferer).takeAddress},
	{"it has another name", inventory.IssueInterface, "does not exist", "slipway serve --interface", false, (*sufferer).rename},
	{"it is removed", inventory.IssueInterface, "does not exist", "slipway serve --interface", false, (*sufferer).unplug},
	{"a file of an image is damaged", inventory.IssueArtefact, "is damaged", "import the image again", false, (*sufferer).damage},
	{"a file of an image is gone", inventory.IssueArtefact, "is missing", "import the image again", false, (*sufferer).lose},
}

// TestFaultsAreIssuesAndPassWithoutARestart breaks one running server's surroundings in every way it knows. Each fault is an
// issue that says what to do and a line in the log, goes away by itself once the fault is mended, and the next machine boots.
func TestFaultsAreIssuesAndPassWithoutARestart(t *testing.T) {
	s := &sufferer{appliance: newApplianceOn(t, func(dir string) { mountDisk(t, dir) })}
	ctx := t.Context()
	s.ImportLive()
	if _, err := s.API.Profiles.Create(ctx, inventory.Profile{Name: "live", Image: "live", Selector: "mac"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.API.AcceptRules.Create(ctx, inventory.AcceptRule{Name: "all", Selector: "mac"}); err != nil {
		t.Fatal(err)
	}
	s.takeClock(t, 2*time.Second)
	bootsAll := func() {
		t.Helper()
		s.Good(s.Boot(ctx, simulate.Config{Hosts: 3, Seed: 7, Expect: simulate.StageBooted}))
	}
	bootsAll()
	opened, closed := map[string]int{}, map[string]int{}
	for _, f := range faults {
		ok := t.Run(f.name, func(t *testing.T) {
			undo := f.do(s)
			t.Cleanup(func() { undo() })
			s.awaitIssue(t, &f, true)
			opened[f.issue]++
			s.Process.WaitFor("issue opened ... "+f.issue, opened[f.issue])
			if f.issue == inventory.IssueStore || f.issue == inventory.IssueDisk {
				s.asks(t, f.isDeaf)
			}
			undo()
			undo = func() {}
			s.awaitIssue(t, &f, false)
			closed[f.issue]++
			s.Process.WaitFor("issue closed ... "+f.issue, closed[f.issue])
		})
		if !ok {
			t.Fatalf("the server said at last:\n%s", lastLines(s.Process.Text(), 40))
		}
		bootsAll()
	}
}

// awaitIssue waits until the API has the issue of a fault, or has it no more.
func (s *sufferer) awaitIssue(t *testing.T, f *fault, isOpen bool) {
	t.Helper()
	var seen []string
	for range 200 {
		seen = nil
		found := false
		for i, err := range s.API.Issues.All(t.Context(), client.Query{}) {
			if err != nil {
				t.Fatal(err)
			}
			seen = append(seen, i.Type+": "+i.Cause+" → "+i.Hint)
			if i.Type == f.issue && (!isOpen || strings.Contains(i.Cause, f.cause) && strings.Contains(i.Hint, f.hint)) {
				found = true
			}
		}
		if found == isOpen {
			return
		}
		s.passes(t)
	}
	t.Fatalf("want %s open: %v; there is: %q", f.issue, isOpen, seen)
}

func (s *sufferer) passes(t *testing.T) {
	t.Helper()
	time.Sleep(200 * time.Millisecond)
	if err := s.clock.Pass(s.pace); err != nil {
		t.Fatal(err)
	}
}

// TestARogueServerIsAnIssueUntilItIsGone lets another DHCP server answer on a network that is ours, on which nobody boots.
func TestARogueServerIsAnIssueUntilItIsGone(t *testing.T) {
	s := &sufferer{appliance: newAppliance(t)}
	if _, err := exec.LookPath("dnsmasq"); err != nil {
		t.Skip("needs dnsmasq; run: apt-get install dnsmasq-base")
	}
	s.takeClock(t, time.Minute)
	s.lab.In(s.Net.Client, "ip", "addr", "add", "10.77.0.9/16", "dev", "vc")
	rogue := s.lab.dnsmasq(s.Net.Client, "10.77.0.10,10.77.0.20,255.255.0.0,1h", "")
	f := &fault{issue: inventory.IssueForeignDHCP, cause: "DHCP server 10.77.0.9 (", hint: "slipway subnet update"}
	s.awaitIssue(t, f, true)
	s.Process.Kill(syscall.SIGKILL)
	s.Start()
	s.takeClock(t, time.Minute)
	rogue.Kill(syscall.SIGTERM)
	for range 5 { // five minutes, in which a server that has just started has heard nothing of the other
		s.passes(t)
	}
	s.awaitIssue(t, f, true)
	if said := grep(s.Process.Text(), "issue closed"); said != "" {
		t.Error(said)
	}
	s.awaitIssue(t, f, false)
}

// asks has new machines ask for two seconds. No lease is acknowledged that is not stored: a full disk may still take one
// into room that its log already has, one that takes nothing takes none.
func (s *sufferer) asks(t *testing.T, isNoneTold bool) {
	t.Helper()
	var mu sync.Mutex
	var told []simulate.Lease
	if _, err := simulate.Run(t.Context(), simulate.Config{
		Interface: s.Net.ClientIf, Namespace: s.Net.Client, Hosts: 2, Seed: 8, Firmware: simulate.Firmwares(), Expect: simulate.StageBooted,
		Timeout: 2 * time.Second, Acknowledged: func(l simulate.Lease) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, l)
		},
	}); err != nil {
		t.Fatal(err)
	}
	for _, l := range told {
		kept, err := s.API.Leases.Get(t.Context(), l.Address.String())
		if err != nil || string(kept.MAC) != l.MAC {
			t.Errorf("%s was told that it has %s, which is not stored: %+v %v", l.MAC, l.Address, kept, err)
		}
	}
	if isNoneTold && len(told) > 0 {
		t.Errorf("%d leases were acknowledged", len(told))
	}
}

// mountDisk mounts a small disk, a file, as a folder.
func mountDisk(t *testing.T, dir string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "disk")
	if err := errorsOf(os.WriteFile(file, nil, 0o600), os.Truncate(file, 512<<20), os.Mkdir(dir, 0o750)); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"mkfs.ext4", "-q", "-m", "0", file}, {"mount", "-o", "loop", file, dir}} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Skipf("%q: %v\n%s", args, err, out)
		}
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", dir).CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

func errorsOf(all ...error) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}

// must stops the test when a fault cannot be made or mended.
func (s *sufferer) must(err error) {
	s.lab.T.Helper()
	if err != nil {
		s.lab.T.Fatal(err)
	}
}

func (s *sufferer) lockDatabase() func() {
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(s.Data, "slipway.db")+"?_busy_timeout=5000")
	s.must(err)
	conn, err := db.Conn(context.Background())
	s.must(err)
	_, err = conn.ExecContext(context.Background(), "BEGIN EXCLUSIVE")
	s.must(err)
	return func() {
		_, err := conn.ExecContext(context.Background(), "ROLLBACK")
		s.must(errorsOf(err, conn.Close(), db.Close()))
	}
}

func (s *sufferer) makeDatabaseImmutable() func() {
	files, err := filepath.Glob(filepath.Join(s.Data, "slipway.db*"))
	s.must(err)
	s.lab.Must("chattr", append([]string{"+i"}, files...)...)
	return func() { s.lab.Must("chattr", append([]string{"-i"}, files...)...) }
}

func (s *sufferer) fillDisk() func() {
	ballast := filepath.Join(s.Data, "ballast")
	f, err := os.Create(ballast)
	s.must(err)
	for b := make([]byte, 16<<20); err == nil; { // to the last byte: fallocate(1) leaves some
		_, err = f.Write(b)
	}
	s.must(f.Close())
	return func() { s.must(os.Remove(ballast)) }
}

func (s *sufferer) setClock(by time.Duration) func() {
	s.must(s.clock.Set(by))
	return func() { s.must(s.clock.Set(-by)) }
}

func (s *sufferer) ip(args ...string) { s.lab.In(s.Net.Server, append([]string{"ip"}, args...)...) }

func (s *sufferer) linkDown() func() {
	s.ip("link", "set", "vs", "down")
	return func() { s.ip("link", "set", "vs", "up") }
}

func (s *sufferer) changeAddress() func() {
	undo := s.takeAddress()
	s.ip("addr", "add", "10.99.0.1/24", "dev", "vs")
	return func() { s.ip("addr", "del", "10.99.0.1/24", "dev", "vs"); undo() }
}

func (s *sufferer) takeAddress() func() {
	s.ip("addr", "del", "10.77.0.1/16", "dev", "vs")
	return func() { s.ip("addr", "add", "10.77.0.1/16", "dev", "vs") }
}

func (s *sufferer) rename() func() {
	s.ip("link", "set", "vs", "down")
	s.ip("link", "set", "vs", "name", "other0")
	s.ip("link", "set", "other0", "up")
	return func() {
		s.ip("link", "set", "other0", "down")
		s.ip("link", "set", "other0", "name", "vs")
		s.ip("link", "set", "vs", "up")
	}
}

func (s *sufferer) unplug() func() {
	s.ip("link", "del", "vs")
	return func() {
		s.lab.Wire(s.Net.Server, "vs", s.Net.Client, "vc")
		s.ip("addr", "add", "10.77.0.1/16", "dev", "vs")
		s.lab.In(s.Net.Client, "ip", "route", "add", "10.77.0.0/16", "dev", "vc")
	}
}

// artefact is the largest file of the image.
func (s *sufferer) artefact() (path string, content []byte) {
	files, err := filepath.Glob(filepath.Join(s.Data, "artefacts", "sha256", "*", "*"))
	s.must(err)
	for _, f := range files {
		b, err := os.ReadFile(f)
		s.must(err)
		if len(b) > len(content) {
			path, content = f, b
		}
	}
	return path, content
}

func (s *sufferer) damage() func() {
	path, good := s.artefact()
	bad := append([]byte(nil), good...)
	bad[len(bad)/2] ^= 1
	s.must(s.write(path, bad))
	return func() { s.must(s.write(path, good)) }
}

func (s *sufferer) write(path string, b []byte) error {
	_ = os.Chmod(path, 0o644)
	return os.WriteFile(path, b, 0o644)
}

func (s *sufferer) lose() func() {
	path, good := s.artefact()
	s.must(os.Remove(path))
	return func() { s.must(s.write(path, good)) }
}
