package postgres

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore/database"
	"slipway.dev/slipway/test/postgres"
)

// TestPostgresSaysWhatItCanLose changes the settings of real servers.
func TestPostgresSaysWhatItCanLose(t *testing.T) {
	s := postgres.Start(t, postgres.Options{})
	at := s.Database(t)
	d := open(t, at, nil)
	var h Health
	look := func() *Health {
		t.Helper()
		var err error
		if h, err = d.Health(t.Context()); err != nil {
			t.Fatal(err)
		}
		return &h
	}
	if look(); len(h.Risks(1)) > 0 || h.RoundTrip <= 0 || h.Version == "" || h.Server != s.Address() || h.WaitsFor() != "" {
		t.Errorf("as it was installed: %+v", h)
	}
	ask(t, s, "postgres", `ALTER SYSTEM SET fsync = off`, `ALTER SYSTEM SET full_page_writes = off`, `SELECT pg_reload_conf()`)
	eventually(t, "a crash damages data", func() bool { return len(look().Risks(1)) == 2 && !h.FSync && !h.FullPageWrites })
	ask(t, s, "postgres", `ALTER SYSTEM RESET ALL`, `SELECT pg_reload_conf()`)
	eventually(t, "it does not", func() bool { return len(look().Risks(1)) == 0 })

	standby := s.Standby(t, map[string]string{"cluster_name": "b"})
	eventually(t, "a failover loses commits", func() bool {
		return len(look().Standbys) == 1 && h.Standbys[0].Name == "b" && h.Standbys[0].State == "streaming" && h.Standbys[0].Sync == "async" && len(h.Risks(1)) == 1
	})
	ask(t, s, "postgres", `ALTER SYSTEM SET synchronous_standby_names = 'b'`, `SELECT pg_reload_conf()`)
	eventually(t, "the standby has each commit", func() bool {
		return len(look().Standbys) == 1 && h.Standbys[0].Sync == "sync" && len(h.Risks(2)) == 0 && h.WaitsFor() == ""
	})
	ask(t, s, "postgres", `CREATE ROLE plain LOGIN PASSWORD 'p'`)
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("plain", "p")
	seen, err := Look(Config{URL: u.String()})
	if err != nil || len(seen.Standbys) != 1 || seen.Standbys[0].State != "" || len(seen.Risks(2)) > 0 || seen.WaitsFor() != "" {
		t.Errorf("seen by a user without rights: %+v, %v", seen, err)
	}
	standby.Stop(t, postgres.Immediate)
	eventually(t, "commits wait for it", func() bool { return strings.Contains(look().WaitsFor(), `"b"`) })
}

func TestChangesAreDurableWhereACrashAndAFailoverKeepThem(t *testing.T) {
	well := Health{FSync: true, FullPageWrites: true, SynchronousCommit: "on"}
	copies := []Standby{{Name: "b", State: "streaming", Sync: "async"}}
	for name, tc := range map[string]struct {
		alter   func(*Health)
		serverN int
		want    []string
	}{
		"one server":                      {func(*Health) {}, 1, nil},
		"fsync is off":                    {func(h *Health) { h.FSync = false }, 1, []string{"fsync is off"}},
		"full_page_writes is off":         {func(h *Health) { h.FullPageWrites = false }, 1, []string{"full_page_writes is off"}},
		"synchronous_commit is off":       {func(h *Health) { h.SynchronousCommit, h.StandbyNames = "off", "b" }, 2, []string{"synchronous_commit is off"}},
		"one server and commits to it":    {func(h *Health) { h.SynchronousCommit = "local" }, 1, nil},
		"several servers, none waits":     {func(*Health) {}, 2, []string{"the address names several servers, and none is synchronous"}},
		"a standby that nobody waits for": {func(h *Health) { h.Standbys = copies }, 1, []string{"a standby copies the changes (b), and none is synchronous"}},
		"a standby whose state is hidden": {func(h *Health) { h.Standbys = []Standby{{}} }, 1, []string{"none is synchronous"}},
		"a synchronous standby":           {func(h *Health) { h.StandbyNames = "b" }, 2, nil},
		"one, and it applies":             {func(h *Health) { h.StandbyNames, h.SynchronousCommit = "b", "remote_apply" }, 2, nil},
		"one, and commits do not wait":    {func(h *Health) { h.StandbyNames, h.SynchronousCommit = "b", "local" }, 2, []string{"synchronous_commit is local"}},
		"one, and its disk is not waited for": {
			func(h *Health) { h.StandbyNames, h.SynchronousCommit = "b", "remote_write" }, 2, []string{"remote_write"},
		},
		"all that is wrong": {func(h *Health) { h.FSync, h.FullPageWrites = false, false }, 2, []string{"fsync", "full_page_writes", "none is synchronous"}},
	} {
		h := well
		tc.alter(&h)
		got := h.Risks(tc.serverN)
		if len(got) != len(tc.want) {
			t.Errorf("%s: %+v", name, got)
			continue
		}
		for i, want := range tc.want {
			if !strings.Contains(got[i].Cause, want) || got[i].Name == "" || got[i].Hint == "" {
				t.Errorf("%s: %+v, want %q", name, got[i], want)
			}
		}
	}
}

func TestCommitsThatWaitForAStandbyHaveAReason(t *testing.T) {
	on := Health{SynchronousCommit: "on", StandbyNames: "b"}
	for name, tc := range map[string]struct {
		h    Health
		want bool
	}{
		"none is connected":           {on, true},
		"another one":                 {Health{SynchronousCommit: "on", StandbyNames: "b", Standbys: []Standby{{Name: "c", State: "streaming", Sync: "async"}}}, true},
		"it is there":                 {Health{SynchronousCommit: "on", StandbyNames: "b", Standbys: []Standby{{Name: "b", State: "streaming", Sync: "sync"}}}, false},
		"one of several":              {Health{SynchronousCommit: "on", StandbyNames: "ANY 1 (b, c)", Standbys: []Standby{{State: "streaming", Sync: "quorum"}}}, false},
		"nobody may see whether":      {Health{SynchronousCommit: "on", StandbyNames: "b", Standbys: []Standby{{}}}, false},
		"no standby is waited for":    {Health{SynchronousCommit: "on"}, false},
		"commits wait for no standby": {Health{SynchronousCommit: "local", StandbyNames: "b"}, false},
	} {
		if got := tc.h.WaitsFor(); (got != "") != tc.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestPostgresCallersHearWhyWhileACommitIsLookedUp: the writer waits for the server, to learn what became of a commit. Nobody waits with it.
func TestPostgresCallersHearWhyWhileACommitIsLookedUp(t *testing.T) {
	s := postgres.Start(t, postgres.Options{})
	d := open(t, s.Database(t), nil)
	begun, gone := make(chan struct{}), make(chan struct{})
	first := make(chan error, 1)
	go func() {
		first <- d.Write(t.Context(), func(tx *database.Tx) error {
			_, err := tx.Write(insertThing, "first", "1")
			close(begun)
			<-gone
			return err
		})
	}()
	<-begun
	s.Stop(t, postgres.Immediate)
	close(gone)
	for began := time.Now(); time.Since(began) < 4*time.Second; time.Sleep(100 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		asked := time.Now()
		wantError(t, put(ctx, d, "second", "1"), inventory.Unavailable, "the database cannot be reached: connection refused")
		// The first caller may be in the queue already when the connection breaks.
		if took := time.Since(asked); took > 500*time.Millisecond && asked.Sub(began) > time.Second {
			t.Fatalf("the answer took %s", took)
		}
		cancel()
	}
	s.StartAgain(t)
	if err := <-first; err == nil {
		t.Error("a change is acknowledged that is not stored")
	}
	eventually(t, "the next change", func() bool { return put(t.Context(), d, "third", "1") == nil })
	for name, want := range map[string]string{"first": "", "second": "", "third": "1"} {
		if got := get(t, d, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}
