package bench

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"slipway.dev/slipway/inventory/sqlstore"
	"slipway.dev/slipway/lab/simulate"
)

// imageThree compares how fast machines boot an image from three instances, each with its own shaped link, with how fast they do from one.
func imageThree(_ context.Context, e *Env) (f Figure, err error) {
	f = Figure{Name: "image-three", Unit: "MB/s", PeerName: "one-instance"}
	if e.Slipway == "" {
		return f, skipped("compares Slipway with itself")
	}
	if f.Peer, err = e.Instances(1); err != nil {
		return f, err
	}
	f.Ours, err = e.Instances(3)
	return f, err
}

// failedOver is how long machines and people waited after the leader was killed, at most in ten times.
type failedOver struct{ dhcp, engine time.Duration }

// failover measures what a killed leader costs. The benchmarks of a run share the measurement.
func failover(f Figure, pick func(*failedOver) time.Duration) func(context.Context, *Env) (Figure, error) {
	return func(ctx context.Context, e *Env) (Figure, error) {
		if e.Slipway == "" {
			return f, skipped("has no peer")
		}
		if e.failover == nil {
			got, err := e.failOver(ctx)
			if err != nil {
				return f, err
			}
			e.failover = got
		}
		f.Ours = pick(e.failover).Seconds()
		return f, nil
	}
}

// worstRE is the last line of the test.
var worstRE = regexp.MustCompile(`worst of ten: DHCP (\S+), engine (\S+)`)

// failOver runs the test that kills the leader ten times. It is a test because make test-long runs it, too.
func (e *Env) failOver(ctx context.Context) (*failedOver, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-v", "-timeout=20m", "-run=^TestPostgreSQLFailsOverInSeconds$", "../net")
	cmd.Env = append(os.Environ(), "SLIPWAY_NET=1", "SLIPWAY_LONG=1", "SLIPWAY_POSTGRES=1")
	out, err := cmd.CombinedOutput()
	found := worstRE.FindSubmatch(out)
	if err != nil || found == nil {
		return nil, fmt.Errorf("test/net kills a leader ten times: %w: %s", err, out[max(0, len(out)-2000):])
	}
	e.say("%s", found[0])
	got := &failedOver{}
	if got.dhcp, err = time.ParseDuration(string(found[1])); err != nil {
		return nil, err
	}
	got.engine, err = time.ParseDuration(string(found[2]))
	return got, err
}

// moreMemory is by how many megabytes a server may be larger with PostgreSQL than with SQLite.
const moreMemory = 30.0

// databaseFigures compare a server with SQLite and one with PostgreSQL after the same boots.
type databaseFigures struct {
	rate   [2]float64 // scripts per second: with SQLite, with PostgreSQL
	moreMB float64    // of resident memory with PostgreSQL
}

// withDatabases measures boot scripts with both databases. The benchmarks of a run share the measurement.
func withDatabases(f Figure, figure func(d *databaseFigures) (ours, peer float64)) func(context.Context, *Env) (Figure, error) {
	return func(ctx context.Context, e *Env) (Figure, error) {
		if e.Slipway == "" {
			return f, skipped("has no peer")
		}
		if e.databases == nil {
			d, err := e.compareDatabases(ctx)
			if err != nil {
				return f, err
			}
			e.databases = d
		}
		f.Ours, f.Peer = figure(e.databases)
		return f, nil
	}
}

func (e *Env) compareDatabases(ctx context.Context) (*databaseFigures, error) {
	n, err := bootNet(ctx)
	if err != nil {
		return nil, err
	}
	defer n.Close()
	d := &databaseFigures{}
	var memory [2]float64
	for i, name := range []string{"sqlite", "postgresql"} {
		dir, err := e.freshDir("script-" + name)
		if err != nil {
			return nil, err
		}
		at, flags, server := inFolder(dir), []string(nil), 0
		if name == "postgresql" {
			at = sqlstore.Config{URL: e.Postgres()}
			if server, err = postgresPID(at.URL); err != nil {
				return nil, err
			}
			if flags, err = databaseFlags(at.URL, dir); err != nil {
				return nil, err
			}
		}
		if d.rate[i], memory[i], err = e.scriptRate(ctx, n, name, dir, at, server, flags); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	d.moreMB = memory[1] - memory[0]
	return d, nil
}

// postgresPID is the process of the PostgreSQL server with that address, which names the folder of its socket.
func postgresPID(address string) (int, error) {
	u, err := url.Parse(address)
	if err != nil {
		return 0, err
	}
	lock, err := os.ReadFile(filepath.Join(u.Query().Get("host"), ".s.PGSQL."+u.Query().Get("port")+".lock"))
	if err != nil {
		return 0, err
	}
	pid, _, _ := strings.Cut(string(lock), "\n")
	return strconv.Atoi(pid)
}

// scriptRate is the rate that benchmark script measures, with any database, and the memory of the server after it. Database is the process
// of the database, 0 for none.
func (e *Env) scriptRate(
	ctx context.Context, n *simulate.Net, name, dir string, at sqlstore.Config, database int, flags []string,
) (rate, memory float64, err error) {
	known, err := scriptHosts(ctx, dir, at, e.samples(scriptFleet))
	if err != nil {
		return 0, 0, err
	}
	known = known[:min(len(known), e.samples(6000))]
	p, err := e.startBootServer(ctx, n, dir, flags...)
	if err != nil {
		return 0, 0, err
	}
	defer p.stop()
	time.Sleep(scriptSettles)
	r := &scriptRig{env: e, net: n, server: p, database: database}
	if _, err := r.round(ctx, known, scriptClients, 0); err != nil {
		return 0, 0, fmt.Errorf("first boots: %w", err)
	}
	var rates []float64
	for range e.repeats() {
		o, err := r.round(ctx, r.withStrangers(known), scriptClients, 0)
		if err != nil {
			return 0, 0, err
		}
		e.say("%s, a third strangers, %d at a time: %s", name, scriptClients, r.last)
		rates = append(rates, scriptsOfBoot*o.rate())
	}
	time.Sleep(scriptRests)
	e.say("%s: %.1f MB of its own, %.1f MB with what is mapped of its file", name, p.ownMB(), p.residentMB())
	return median(rates), p.residentMB(), nil
}
