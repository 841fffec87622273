package bench

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"slipway.dev/slipway/lab/simulate"
)

// dhcpServer prepares a DHCP server with an empty lease store in dir and returns its command line. Every server has the
// network 10.0.0.0/8 on interface vs, leases 10.1.0.0 to 10.90.255.255, and does not probe addresses.
type dhcpServer struct {
	name  string
	setUp func(dir string) (argv, environment []string, err error)
}

//go:embed kea.json
var keaConfig string

//go:embed dnsmasq.conf
var dnsmasqConfig string

// keaServer is Kea as it is fastest without losing its leases file: one thread, memfile. It does not fsync.
var keaServer = dhcpServer{name: "kea-single-thread-memfile", setUp: func(dir string) ([]string, []string, error) {
	file := filepath.Join(dir, "kea.json")
	err := os.WriteFile(file, []byte(strings.ReplaceAll(keaConfig, "@DIR@", dir)), 0o644)
	return []string{"kea-dhcp4", "-c", file}, []string{"KEA_PIDFILE_DIR=" + dir, "KEA_LOCKFILE_DIR=none"}, err
}}

// dnsmasqServer writes its leases to disk for every change, as it does for everyone.
var dnsmasqServer = dhcpServer{name: "dnsmasq", setUp: func(dir string) ([]string, []string, error) {
	file := filepath.Join(dir, "dnsmasq.conf")
	err := os.WriteFile(file, []byte(strings.ReplaceAll(dnsmasqConfig, "@DIR@", dir)), 0o644)
	return []string{"dnsmasq", "--keep-in-foreground", "--conf-file=" + file}, nil, err
}}

// slipwayServer is the server as it is shipped: every lease is committed to SQLite with a full sync before its ACK.
func slipwayServer(binary string) dhcpServer {
	return dhcpServer{name: "slipway", setUp: func(dir string) ([]string, []string, error) {
		return []string{
			binary, "serve", "--interface", "vs", "--data-dir", filepath.Join(dir, "data"), "--mode", "full",
			"--range", "10.1.0.0-10.90.255.255", "--no-check-conflict", "--log-level", "warn",
		}, nil, nil
	}}
}

// slipwayOnPostgres is slipwayServer with an empty PostgreSQL database for each run, which it reaches by a socket file: that is the same
// file in every network namespace.
func slipwayOnPostgres(e *Env) dhcpServer {
	return dhcpServer{name: "slipway-postgresql", setUp: func(dir string) ([]string, []string, error) {
		database, err := databaseFlags(e.Postgres(), dir)
		if err != nil {
			return nil, nil, err
		}
		args, more, err := slipwayServer(e.Slipway).setUp(dir)
		return append(args, database...), more, err
	}}
}

// databaseFlags are the options of a server for a database, whose address has the password.
func databaseFlags(address, dir string) ([]string, error) {
	at, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	password, _ := at.User.Password()
	at.User = url.User(at.User.Username())
	file := filepath.Join(dir, "database-password")
	return []string{"--database", at.String(), "--database-password-file", file}, os.WriteFile(file, []byte(password), 0o600)
}

// pgDHCP compares the highest rate with PostgreSQL to that with SQLite.
func pgDHCP(ctx context.Context, e *Env) (Figure, error) {
	f := Figure{Name: "pg-dhcp", Unit: "exchanges/s", PeerName: "slipway-sqlite"}
	if e.Slipway == "" {
		return f, nil // there is no other peer than ourselves
	}
	with, err := e.highestRate(ctx, slipwayOnPostgres(e), e.ours())
	if err != nil {
		return f, err
	}
	f.Ours = float64(with)
	return f, e.measureOurs(ctx, &f.Peer)
}

// ours is how our own rate is looked for.
func (e *Env) ours() bisection {
	b := bisection{low: 1000, high: 40000, step: 500, seconds: 6, repeats: 3, maxLoss: 0.001}
	if e.Quick {
		b.seconds, b.repeats, b.step = 3, 1, 1000
	}
	return b
}

// measureOurs measures our rate with SQLite, once for all figures of a run.
func (e *Env) measureOurs(ctx context.Context, to *float64) (err error) {
	if e.ourRate == 0 {
		if e.ourRate, err = e.highestRate(ctx, slipwayServer(e.Slipway), e.ours()); err != nil {
			return fmt.Errorf("slipway: %w", err)
		}
	}
	*to = float64(e.ourRate)
	return nil
}

// bisection finds the highest rate that a server keeps with less than maxLoss of the exchanges lost.
type bisection struct {
	low, high, step int
	seconds         int
	repeats         int // odd; the median decides
	maxLoss         float64
}

// measure runs one point and tells how it went.
type measure func(ctx context.Context, rate int) (point, error)

// search returns the highest passing rate; 0 when even the lowest fails.
func (b bisection) search(ctx context.Context, m measure) (int, error) {
	best, low, high := 0, b.low, b.high
	ok, err := b.passes(ctx, m, low)
	if err != nil || !ok {
		return 0, err
	}
	best = low
	for high-low > b.step {
		mid := (low + high) / 2 / 10 * 10
		ok, err := b.passes(ctx, m, mid)
		switch {
		case err != nil:
			return best, err
		case ok:
			best, low = mid, mid
		default:
			high = mid
		}
	}
	return best, nil
}

// slowRunsMax is how many runs of a point may be thrown away because perfdhcp fell behind.
const slowRunsMax = 3

// passes repeats a point until the majority is clear. A run in which the load fell behind without losses says nothing
// about the server and is repeated, a few times.
func (b bisection) passes(ctx context.Context, m measure, rate int) (bool, error) {
	good, bad, slow := 0, 0, 0
	for good <= b.repeats/2 && bad <= b.repeats/2 {
		p, err := m(ctx, rate)
		switch {
		case err != nil:
			return false, err
		case p.lost >= b.maxLoss:
			bad++
		case !p.isClientLimited():
			good++
		default:
			if slow++; slow > slowRunsMax {
				return false, nil
			}
		}
	}
	return good > bad, nil
}

// dhcpBenchmark compares the highest rates of full, durable exchanges, relayed, on one processor.
func dhcpBenchmark(name string, peer dhcpServer, low, high, step int) func(context.Context, *Env) (Figure, error) {
	return func(ctx context.Context, e *Env) (Figure, error) {
		f := Figure{Name: name, Unit: "exchanges/s", PeerName: peer.name}
		b := bisection{low: low, high: high, step: step, seconds: 6, repeats: 3, maxLoss: 0.001}
		if e.Quick {
			b.seconds, b.repeats, b.step = 3, 1, 2*step
		}
		top, err := e.highestRate(ctx, peer, b)
		if err != nil {
			return f, fmt.Errorf("%s: %w", peer.name, err)
		}
		f.Peer = float64(top)
		if e.Slipway == "" {
			return f, nil
		}
		return f, e.measureOurs(ctx, &f.Ours)
	}
}

func (e *Env) highestRate(ctx context.Context, s dhcpServer, b bisection) (int, error) {
	n, err := dhcpNet(ctx)
	if err != nil {
		return 0, err
	}
	defer n.Close()
	return b.search(ctx, func(ctx context.Context, rate int) (point, error) {
		p, err := e.point(ctx, n, s, rate, b.seconds, false)
		if err == nil {
			note := ""
			if p.isClientLimited() {
				note = " (perfdhcp fell behind)"
			}
			e.say("%s: %s%s", s.name, p, note)
		}
		return p, err
	})
}

// point starts a server with an empty store, runs the load, and stops the server.
func (e *Env) point(ctx context.Context, n *simulate.Net, s dhcpServer, rate, seconds int, isTimed bool) (point, error) {
	p, err := e.begin(ctx, n, s)
	if err != nil {
		return point{}, err
	}
	defer p.stop()
	before := p.cpuTime()
	got, err := perfdhcp(ctx, n.Client, rate, seconds, isTimed)
	if err != nil {
		return point{}, errors.Join(err, errors.New(p.tail()))
	}
	if acks := got.done * float64(seconds); acks > 0 {
		got.cpuUS = float64((p.cpuTime()-before)/time.Microsecond) / acks
	}
	return got, nil
}
