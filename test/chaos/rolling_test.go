package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"slipway.dev/slipway/web/client"
	"slipway.dev/slipway/web/wire"
)

const (
	rollingHosts  = 40
	rollingFor    = 5 * time.Minute
	laterSchema   = "209901010000"
	laterVersion  = "9.9.9"
	rollingSilent = 10 * time.Second // how long machines may wait for an address
	seenReports   = 3                // that show that an instance serves machines
)

// TestARollingUpdateOnPostgreSQLLosesNothing updates three instances one after the other, as docs/instances.md says, while a rack is
// installed and wiped. The new program is this one with one migration more. Machines boot at a new instance while an old one leads, and the
// other way round. An old instance that starts after the migration refuses. Nothing is lost, and DHCP is never silent for long.
func TestARollingUpdateOnPostgreSQLLosesNothing(t *testing.T) {
	needsNetwork(t)
	if os.Getenv("SLIPWAY_LONG") != "1" {
		t.Skip("takes some minutes; run: make test-long RUN=TestARollingUpdate")
	}
	s := newSite(t)
	s.database()
	newer := later(t)
	d := newDrill(t, s, rollingHosts, rollingFor)
	one, two, three := s.servers[0], s.servers[1], s.servers[2]
	u := &update{drill: d, program: newer}
	d.createAll(d.ctx)
	d.await(d.ctx, "every machine runs", d.areUp)
	var work sync.WaitGroup
	working, rest := context.WithCancel(d.ctx)
	t.Cleanup(rest)
	names := d.names
	for w := range drillWorkers {
		work.Go(func() { d.replace(working, names, w) })
	}
	began := time.Now()
	u.until("the first one leads", func() bool { return u.of(one).IsLeader })

	// A new instance serves machines, and asks an old leader.
	u.drain(two)
	u.install(two)
	u.undrain(two)
	u.serves(two, one)

	// Once a new instance leads, the old leader does not start again. The third one runs on, as an old instance that asks a new leader.
	u.drain(three)
	u.order(one)
	u.until("the new one leads", func() bool { return u.of(two).IsLeader })
	u.refuses(one)
	u.undrain(three)
	u.serves(three, two)
	u.install(one)
	u.undrain(one)
	u.drain(three)
	u.install(three)
	u.undrain(three)
	t.Logf("three instances were updated in %s", time.Since(began).Round(time.Second))
	if silent := d.dhcp.longest(began); silent > rollingSilent {
		t.Errorf("nobody gave an address for %s", silent)
	} else {
		t.Logf("the longest time without an address that was given: %s; without the engine: %s", silent, d.engine.longest(began))
	}
	rest()
	work.Wait()
	d.names = names
	d.settle()
	u.undo()
	d.judge()
}

// later builds the program as a later release will be: with a number of its own, and a migration that adds a column.
func later(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	sql := filepath.Join(dir, "later.sql")
	if err := os.WriteFile(sql, []byte("-- +goose Up\nALTER TABLE hosts ADD COLUMN later TEXT NOT NULL DEFAULT '';\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(root, "migrations", "postgres", laterSchema+"_later.sql"): sql,
	}})
	if err != nil {
		t.Fatal(err)
	}
	overlay, out := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "slipway")
	if err := os.WriteFile(overlay, replace, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "build", "-overlay", overlay, "-tags", "netgo osusergo sqlite_omit_load_extension",
		"-ldflags", "-w -X main.version="+laterVersion, "-o", out, "slipway.dev/slipway/cmd/slipway")
	cmd.Dir = root
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the later program: %v\n%s", err, b)
	}
	return out
}

// update is what an admin does with the instances.
type update struct {
	*drill
	program string
}

// of returns an instance as the list shows it.
func (u *update) of(v *server) (is wire.Instance) {
	ctx, cancel := context.WithTimeout(u.ctx, 5*time.Second)
	defer cancel()
	for i, err := range u.api.Instances.All(ctx, client.Query{}) {
		if err != nil {
			return wire.Instance{}
		}
		if i.Name == v.name {
			is = i
		}
	}
	return is
}

// until waits until something is so.
func (u *update) until(what string, isSo func() bool) {
	u.t.Helper()
	for end := time.Now().Add(time.Minute); !isSo(); u.pause(200 * time.Millisecond) {
		if time.Now().After(end) || u.ctx.Err() != nil {
			for _, v := range u.site.servers {
				u.t.Logf("%s: %+v", v.name, u.of(v))
			}
			u.t.Fatalf("never: %s", what)
		}
	}
	u.t.Logf("%s %s", time.Now().Format(time.TimeOnly), what)
}

// undo takes the later migration back, so that the program of this test can read the database.
func (u *update) undo() {
	c, err := pgx.Connect(u.t.Context(), u.site.inside)
	if err != nil {
		u.t.Fatal(err)
	}
	defer c.Close(u.t.Context())
	for _, sql := range []string{"ALTER TABLE hosts DROP COLUMN later", "DELETE FROM goose_db_version WHERE version_id = " + laterSchema} {
		if tag, err := c.Exec(u.t.Context(), sql); err != nil {
			u.t.Fatalf("%s: %v (%s)", sql, err, tag)
		}
	}
}

// order drains an instance.
func (u *update) order(v *server) {
	u.insist(u.ctx, "drain "+v.name, func(ctx context.Context) error { _, err := u.api.Instances.Drain(ctx, v.name); return err })
}

// drain drains an instance that does not lead, and waits until it has no duties.
func (u *update) drain(v *server) {
	u.t.Helper()
	u.order(v)
	u.until(v.name+" is drained, alive and without duties", func() bool {
		is := u.of(v)
		return is.IsDrained && is.Life == "alive" && len(is.Duties) == 0
	})
}

func (u *update) undrain(v *server) {
	u.insist(u.ctx, "undrain "+v.name, func(ctx context.Context) error { _, err := u.api.Instances.Undrain(ctx, v.name); return err })
}

// install stops a server, and starts it with the new program.
func (u *update) install(v *server) {
	u.t.Helper()
	v.end()
	v.binary = u.program
	v.keepUp(u.ctx)
	u.until(v.name+" runs the new version", func() bool {
		is := u.of(v)
		return is.Life == "alive" && strings.Contains(is.Version, laterVersion)
	})
}

// refuses waits until a server has refused to start with the old program, after the schema has changed.
func (u *update) refuses(v *server) {
	u.t.Helper()
	u.until("the old program of "+v.name+" refuses", func() bool {
		said := v.said()
		return strings.Contains(said, "was written by a newer Slipway (schema "+laterSchema+"; this one knows 2026")
	})
}

// serves moves the network to a server, and waits until machines have reported there while another one leads.
func (u *update) serves(v, leads *server) {
	u.t.Helper()
	var cut []string
	for _, other := range u.site.servers {
		if other != v {
			cut = append(cut, other.name)
			u.site.ip("-n", u.site.rack, "link", "set", other.name, "down")
		}
	}
	from := time.Now()
	defer func() {
		for _, name := range cut {
			u.site.ip("-n", u.site.rack, "link", "set", name, "up")
		}
	}()
	i := slices.Index(u.site.servers, v)
	u.until(fmt.Sprintf("machines report to %s while %s leads", v.name, leads.name), func() bool {
		return u.of(leads).IsLeader && u.diary.acknowledged(serverAddress(i), from) >= seenReports
	})
	if is, leader := u.of(v), u.of(leads); (is.Version == leader.Version) || is.IsLeader {
		u.t.Errorf("%s has version %q, and leads: %t; the leader has %q", is.Name, is.Version, is.IsLeader, leader.Version)
	}
}

// acknowledged counts the reports that a server has taken since a moment.
func (d *diary) acknowledged(address string, since time.Time) (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, record := range d.by {
		for _, m := range record {
			if host, _, _ := strings.Cut(m.Server, ":"); m.IsAcknowledged() && host == address && m.At.After(since) {
				n++
			}
		}
	}
	return n
}
