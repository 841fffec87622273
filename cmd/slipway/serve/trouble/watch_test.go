package trouble

import (
	"errors"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"slipway.dev/slipway/cmd/slipway/doctor"
	"slipway.dev/slipway/cmd/slipway/serve/files"
	"slipway.dev/slipway/cmd/slipway/serve/instance"
	"slipway.dev/slipway/cmd/slipway/serve/storage"
	"slipway.dev/slipway/images"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore"
	"slipway.dev/slipway/inventory/sqlstore/postgres"
)

func TestConditions(t *testing.T) {
	well := Health{
		Disk:       doctor.Disk{Dir: "/d", FreeBytes: 9 << 30},
		Interfaces: []doctor.Interface{{Name: "eth1", IsThere: true, IsUp: true, HasLink: true, MTU: 1500, Prefixes: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/24")}}},
	}
	at := time.Date(2026, 11, 28, 1, 0, 0, 0, time.UTC)
	six := []inventory.Subnet{{Name: "six", CIDR: netip.MustParsePrefix("fd00:1::/64"), Interface: "eth1"}}
	for name, tc := range map[string]struct {
		alter func(*Health)
		want  string // key, severity, and part of the cause
	}{
		"all is well":                 {func(*Health) {}, ""},
		"the disk has little room":    {func(h *Health) { h.Disk.FreeBytes = 200 << 20 }, "disk-full warning 200 MiB"},
		"there is less than an image": {func(h *Health) { h.Disk.FreeBytes = 500 << 20 }, ""},
		"the disk is full":            {func(h *Health) { h.Disk.FreeBytes = 0 }, "disk-full error 0 MiB"},
		"the disk is read-only":       {func(h *Health) { h.Disk.IsReadOnly = true }, "disk-full error read-only"},
		"the database is locked":      {func(h *Health) { h.Store = ErrLocked }, "store-unwritable error lock"},
		"PostgreSQL does not answer": {func(h *Health) {
			h.Store, h.Database = ErrLocked, &storage.State{At: at, Err: &inventory.Error{Msg: "connection refused", Hint: "look"}}
		}, "database-unreachable error connection refused"},
		"PostgreSQL takes nothing": {func(h *Health) {
			h.Store, h.Database = &inventory.Error{Msg: "the disk is full", Hint: "look"}, &storage.State{At: at}
		}, "store-unwritable error the disk is full"},
		"PostgreSQL is back, and nothing was written yet": {func(h *Health) {
			h.Store, h.Database = ErrLocked, &storage.State{At: at, BackAt: at.Add(-time.Second)}
		}, ""},
		"PostgreSQL is back, and is locked": {func(h *Health) {
			h.Store, h.Database = ErrLocked, &storage.State{At: at, BackAt: at.Add(-time.Minute)}
		}, "store-unwritable error lock"},
		"commits wait for a standby that is gone": {func(h *Health) {
			h.Store = ErrLocked
			h.Database = &storage.State{At: at, Health: postgres.Health{SynchronousCommit: "on", StandbyNames: "b"}}
		}, `store-unwritable error waits for a synchronous standby: synchronous_standby_names is "b"`},
		"PostgreSQL can lose changes": {func(h *Health) {
			h.Database = &storage.State{At: at, Risks: []postgres.Risk{{Name: "fsync", Cause: "fsync is off", Hint: "set it on"}}}
		}, "database-not-durable/fsync warning can be lost: fsync is off"},
		"PostgreSQL has lost changes": {func(h *Health) { h.Database = &storage.State{At: at, LostN: 3, LostAt: at} }, "database-lost-changes error 3 commits"},
		"another instance is silent": {func(h *Health) {
			taken := []instance.Taken{{Duty: "engine", By: "a"}}
			h.Silent = []instance.Silence{{Name: "b", SeenAt: at, Holds: []string{"network/dmz"}, TakenBy: taken}}
		}, "instance-silent/b warning since 2026-11-28T01:00:00Z; instance a took its duty engine; nobody has taken over network/dmz"},
		"another instance is cut off": {func(h *Health) {
			h.CutOff = []instance.CutOff{{Name: "b", SinceAt: at, Reason: "no answer from 10.0.0.1:8069 (i/o timeout)", Answers: []string{"network/dmz"}}}
		}, "instance-cut-off/b error since 2026-11-28T01:00:00Z: no answer from 10.0.0.1:8069 (i/o timeout); machines of network/dmz wait: " +
			"no other instance there reaches it"},
		"files are on one instance": {func(h *Health) {
			h.Alone = files.Alone{Images: []string{"debian-12", "talos"}, Reason: "instance b: it does not answer"}
		}, "image-on-one-instance warning images debian-12, talos: instance b: it does not answer"},
		"the clock is not that of the database": {func(h *Health) {
			h.Leap, h.Database = 2*time.Hour, &storage.State{At: at, Health: postgres.Health{Ahead: 2 * time.Hour}}
		}, "clock-wrong error is 2h ahead of that of the database"},
		"it is behind": {func(h *Health) {
			h.Database = &storage.State{At: at, Health: postgres.Health{Ahead: -2 * time.Hour}}
		}, "clock-wrong error is 2h behind that of the database"},
		"it may agree": {func(h *Health) {
			h.Database = &storage.State{At: at, Health: postgres.Health{Ahead: 62 * time.Second, RoundTrip: 5 * time.Second}}
		}, ""},
		"the clock was set right": {func(h *Health) { h.Leap, h.Database = 2*time.Hour, &storage.State{At: at} }, ""},
		"the clock was set":       {func(h *Health) { h.Leap = -2 * time.Hour }, "clock-jumped warning -2h0m0s"},
		"the interface is gone":   {func(h *Health) { h.Interfaces[0].IsThere = false }, "interface-unserved/eth1 error does not exist"},
		"the interface is down":   {func(h *Health) { h.Interfaces[0].IsUp = false }, "interface-unserved/eth1 error is down"},
		"it has no address":       {func(h *Health) { h.Interfaces[0].Prefixes = nil }, "interface-unserved/eth1 error no IPv4 address"},
		"it has one of no subnet": {func(h *Health) { h.Unserved = []string{"eth1"} }, "interface-unserved/eth1 error 10.0.0.1/24, which is in no subnet"},
		"it serves IPv6 only":     {func(h *Health) { h.Interfaces[0].Prefixes, h.Only6 = nil, map[string]bool{"eth1": true} }, ""},
		"it has no IPv6 address":  {func(h *Health) { h.Missing6 = six }, "interface-unserved/eth1/six error no address in fd00:1::/64"},
		"nor is it up":            {func(h *Health) { h.Missing6, h.Interfaces[0].IsUp = six, false }, "interface-unserved/eth1 error is down"},
		"nor is it there":         {func(h *Health) { h.Missing6, h.Interfaces[0].IsThere = six, false }, "interface-unserved/eth1 error does not exist"},
		"it has no link":          {func(h *Health) { h.Interfaces[0].HasLink = false }, "interface-unserved/eth1 warning no link"},
		"it has jumbo frames":     {func(h *Health) { h.Interfaces[0].MTU = 9000 }, ""},
		"a file of an image is damaged": {func(h *Health) {
			h.Faults = []images.Fault{{Digest: "sha256:ab", Problem: "damaged", Images: []string{"debian"}, Hint: "import"}}
		}, "artefact-damaged/sha256:ab error debian"},
		"certificates are well": {check(inventory.IssueCertificate, doctor.OK, "admin TLS", "until 2027"), ""},
		"a certificate ends soon": {
			check(inventory.IssueCertificate, doctor.Warning, "admin TLS", "ends"),
			"certificate-problem/admin-TLS warning ends",
		},
		"a certificate has ended": {
			check(inventory.IssueCertificate, doctor.Failed, "ca.crt", "has run out"),
			"certificate-problem/ca.crt error has run out",
		},
		"a loader is missing": {
			check(inventory.IssueLoader, doctor.Warning, "loader x", "is missing"),
			"loader-problem/loader-x warning loader x: is missing",
		},
		"the port of DHCPv6 is gone": {
			check(inventory.IssuePort, doctor.Failed, "dhcpv6 eth1", "is taken"),
			"port-taken/dhcpv6-eth1 error is taken",
		},
		"and nobody needs it yet": {check(inventory.IssuePort, doctor.Warning, "dhcpv6 eth1", "UDP port 547 is taken"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := well
			h.Interfaces = slices.Clone(well.Interfaces)
			tc.alter(&h)
			var got []string
			for _, i := range Conditions(&h) {
				got = append(got, i.Key+" "+string(i.Severity)+" "+i.Cause)
				if i.Hint == "" || !slices.Contains(ownIssues, i.Type) {
					t.Errorf("%+v", i)
				}
			}
			head, part, _ := cut2(tc.want)
			if tc.want == "" && len(got) > 0 || tc.want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], head) || !strings.Contains(got[0], part)) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// check has one line of the self-check.
func check(kind, status, name, detail string) func(*Health) {
	return func(h *Health) {
		h.Checks = map[string][]doctor.Check{kind: {{Name: name, Status: status, Detail: detail, Hint: "look"}}}
	}
}

// cut2 splits behind the second word.
func cut2(s string) (head, rest string, ok bool) {
	w := strings.SplitN(s, " ", 3)
	if len(w) < 3 {
		return s, "", false
	}
	return w[0] + " " + w[1], w[2], true
}

func TestManyDamagedArtefactsAreCounted(t *testing.T) {
	all := artefactIssues(make([]images.Fault, faultsAtMost))
	if len(all) != faultsAtMost {
		t.Errorf("%d issues of %d faults", len(all), faultsAtMost)
	}
	all = artefactIssues(make([]images.Fault, faultsAtMost+7))
	if len(all) != faultsAtMost+1 || !strings.Contains(all[0].Cause, "7 more artefacts") {
		t.Errorf("%d issues, the first: %+v", len(all), all[0])
	}
}

func TestAClockThatIsSetIsNoticed(t *testing.T) {
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	var c Clock
	for i, step := range []struct {
		wall, mono, want time.Duration
	}{
		{0, 0, 0},
		{5 * time.Second, 5 * time.Second, 0},
		{70 * time.Second, 10 * time.Second, 0}, // by 60 s is not more than a minute
		{2*time.Hour + 70*time.Second, 10 * time.Second, 2 * time.Hour},
		{2*time.Hour + 90*time.Second, 30 * time.Second, 2 * time.Hour}, // goes on
		{90 * time.Second, 30 * time.Second, 0},                         // set back
		{-time.Hour, 40 * time.Second, -time.Hour - 100*time.Second},
		{0, time.Hour + 40*time.Second, 0}, // long ago
	} {
		if got := c.Look(at.Add(step.wall), step.mono); got != step.want {
			t.Errorf("look %d: %s, want %s", i, got, step.want)
		}
	}
}

func openAlarmed(t *testing.T, dir string) (*sqlstore.Store, Alarmed) {
	t.Helper()
	s, err := sqlstore.Open(t.Context(), sqlstore.Config{Path: filepath.Join(dir, "slipway.db"), Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, Alarmed{s, NewAlarms()}
}

func issuesOf(t *testing.T, s inventory.Store, all bool) (keys []string) {
	t.Helper()
	if err := s.Read(t.Context(), func(tx inventory.Tx) error {
		rows, err := tx.ListIssues(all, "")
		for _, i := range rows {
			keys = append(keys, i.Key)
			if found, err := tx.FindIssue(i.ID); err != nil || found.Key != i.Key {
				t.Errorf("issue %d: %+v %v", i.ID, found, err)
			}
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return keys
}

// TestAFullDiskShowsAsAnIssueAndHeals fills a real file system under a real store.
func TestAFullDiskShowsAsAnIssueAndHeals(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounts a small file system: needs root")
	}
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("no file system can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	store, s := openAlarmed(t, dir)
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	look := func() error {
		s.Alarms.Set(Conditions(&Health{Disk: doctor.Disk{Dir: dir, FreeBytes: doctor.ReadDisk(dir).FreeBytes << 8}, Store: s.Alarms.Trouble()}), at, log)
		return s.Alarms.Settle(t.Context(), store, at)
	}
	if err := look(); err != nil || len(issuesOf(t, s, false)) != 0 {
		t.Fatalf("before: %v, %q", err, issuesOf(t, s, false))
	}
	ballast := filepath.Join(dir, "ballast")
	f, err := os.Create(ballast)
	if err != nil {
		t.Fatal(err)
	}
	for err = nil; err == nil; {
		_, err = f.Write(make([]byte, 64<<10))
	}
	f.Close()
	if err := look(); err == nil {
		t.Fatal("a full disk takes the issue")
	}
	_ = look() // now the store's own trouble is known
	if got := issuesOf(t, s, false); !slices.Contains(got, inventory.IssueDisk) || !slices.Contains(got, inventory.IssueStore) {
		t.Errorf("seen while the disk is full: %q", got)
	}
	if got := issuesOf(t, store, false); len(got) != 0 {
		t.Errorf("stored on a full disk: %q", got)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := look(); err != nil {
			t.Fatal(err)
		}
	}
	if got := issuesOf(t, s, false); len(got) != 0 {
		t.Errorf("open when there is room again: %q", got)
	}
}

func TestIssuesOfTheMachineAreStoredOnceAndCloseAfterARestart(t *testing.T) {
	dir := t.TempDir()
	store, s := openAlarmed(t, dir)
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	bad := &Health{Disk: doctor.Disk{Dir: dir, FreeBytes: 9 << 30}, Leap: time.Hour}
	for range 3 {
		s.Alarms.Set(Conditions(bad), at, log)
		if got := issuesOf(t, s, false); !slices.Equal(got, []string{inventory.IssueClock}) {
			t.Fatalf("seen: %q", got)
		}
		if err := s.Alarms.Settle(t.Context(), store, at); err != nil {
			t.Fatal(err)
		}
	}
	if got := issuesOf(t, store, true); !slices.Equal(got, []string{inventory.IssueClock}) {
		t.Errorf("stored: %q", got)
	}
	if err := store.Write(t.Context(), func(tx inventory.Tx) error { // one of the network's, which others look after
		_, err := tx.OpenIssue(&inventory.Issue{Key: inventory.IssueForeignDHCP, Type: inventory.IssueForeignDHCP, Severity: inventory.SeverityError, Cause: "it answers"}, at)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	again := Alarmed{store, NewAlarms()} // as a new process
	if err := store.Read(t.Context(), again.Alarms.Load); err != nil {
		t.Fatal(err)
	}
	if err := again.Alarms.Settle(t.Context(), store, at); err != nil {
		t.Fatal(err)
	}
	if got := issuesOf(t, again, false); !slices.Equal(got, []string{inventory.IssueForeignDHCP}) {
		t.Errorf("open after a restart: %q", got)
	}
}

func TestLeasesThatCannotBeStoredAreTrouble(t *testing.T) {
	store, s := openAlarmed(t, t.TempDir())
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	s.Alarms.NoteLeases(errors.New("disk I/O error"))
	if err := s.Alarms.Settle(t.Context(), store, at); err != nil || s.Alarms.Trouble() == nil {
		t.Fatalf("%v, trouble %v", err, s.Alarms.Trouble())
	}
	s.Alarms.NoteLeases(nil)
	if err := s.Alarms.Trouble(); err != nil {
		t.Error(err)
	}
}

func TestAnIssueThatComesBackBeforeItsEndIsStoredIsSaidAgain(t *testing.T) {
	store, s := openAlarmed(t, t.TempDir())
	at := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	look := func(s Alarmed, is bool) (said string) {
		var b strings.Builder
		var all []inventory.Issue
		if is {
			all = []inventory.Issue{{Key: "interface-unserved/vs", Type: inventory.IssueInterface, Severity: inventory.SeverityError, Cause: "it is down"}}
		}
		s.Alarms.Set(all, at, slog.New(slog.NewTextHandler(&b, nil)))
		return b.String()
	}
	settle := func(s Alarmed) {
		t.Helper()
		if err := s.Alarms.Settle(t.Context(), store, at); err != nil {
			t.Fatal(err)
		}
	}
	first := look(s, true)
	settle(s)
	ended, again := look(s, false), look(s, true)
	if settle(s); !strings.Contains(first, "issue opened") || !strings.Contains(ended, "issue closed") || !strings.Contains(again, "issue opened") {
		t.Errorf("the log says %q, %q, %q", first, ended, again)
	}
	if got := issuesOf(t, store, false); len(got) != 1 {
		t.Errorf("open in the store: %q", got)
	}
	next := Alarmed{store, NewAlarms()} // as a new process, which says nothing of what its log has already
	if err := store.Read(t.Context(), next.Alarms.Load); err != nil {
		t.Fatal(err)
	}
	if said := look(next, true); said != "" {
		t.Errorf("after a restart: %q", said)
	}
}

func TestAnIssueSaysWhatIsWrongNow(t *testing.T) {
	store, s := openAlarmed(t, t.TempDir())
	var said strings.Builder
	log := slog.New(slog.NewTextHandler(&said, nil))
	at := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	read := func(from inventory.Store) (found inventory.Issue) {
		t.Helper()
		if err := from.Read(t.Context(), func(tx inventory.Tx) error {
			rows, err := tx.ListIssues(true, "")
			if err != nil || len(rows) != 1 {
				t.Fatalf("%v, %d issues: %+v", err, len(rows), rows)
			}
			found, err = tx.FindIssue(rows[0].ID)
			if err == nil && found.Cause != rows[0].Cause {
				t.Errorf("one read says %q, the other %q", found.Cause, rows[0].Cause)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return found
	}
	for _, c := range []struct {
		cause string
		lines int // of the log, in sum
	}{
		{"nobody is answered on interface vs: is down", 1},
		{"nobody is answered on interface vs: is down", 1},
		{"nobody is answered on interface vs: 3 addresses are missing", 2},
		{"nobody is answered on interface vs: 2 addresses are missing", 2},
	} {
		s.Alarms.Set([]inventory.Issue{{Key: "interface-unserved/vs", Type: inventory.IssueInterface, Severity: inventory.SeverityError, Cause: c.cause, Hint: "look"}}, at, log)
		if got := read(s); got.Cause != c.cause {
			t.Errorf("shown: %q, want %q", got.Cause, c.cause)
		}
		if err := s.Alarms.Settle(t.Context(), store, at); err != nil {
			t.Fatal(err)
		}
		if got := read(store); got.Cause != c.cause {
			t.Errorf("stored: %q, want %q", got.Cause, c.cause)
		}
		if got := strings.Count(said.String(), "\n"); got != c.lines {
			t.Errorf("after %q the log has %d lines, want %d:\n%s", c.cause, got, c.lines, said.String())
		}
	}
	if err := store.Read(t.Context(), func(tx inventory.Tx) error {
		events, err := tx.ListEvents(inventory.EventFilter{Kind: inventory.EventIssueOpened}, 0, 0)
		if len(events) != 1 {
			t.Errorf("%d events, want 1: it is the same issue", len(events))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}
