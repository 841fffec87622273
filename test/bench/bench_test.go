package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/test/postgres"
)

// TestBench runs the benchmarks whose name matches SLIPWAY_BENCH and prints their lines. SLIPWAY_BENCH_PEERS=1 measures
// the peers alone, SLIPWAY_BENCH_QUICK=1 takes shorter runs, SLIPWAY_BENCH_BINARY is another program than bin/slipway,
// and SLIPWAY_BENCH_DIR is the folder (and so the disk) to measure on.
func TestBench(t *testing.T) {
	names := os.Getenv("SLIPWAY_BENCH")
	if names == "" {
		t.Skip("benchmarks take minutes and need root; run: make bench")
	}
	pattern, err := regexp.Compile(names)
	if err != nil {
		t.Fatalf("NAME=%s: %v", names, err)
	}
	if os.Geteuid() != 0 {
		t.Fatal("benchmarks make network namespaces: run them as root")
	}
	e := &Env{Dir: scratch(t), Talk: os.Stderr, Quick: os.Getenv("SLIPWAY_BENCH_QUICK") == "1"}
	e.Postgres = func() string {
		t.Setenv(postgres.Env, "1") // a benchmark that was named is not left out
		s := postgres.Shared(named{t})
		at, err := url.Parse(s.Database(t))
		if err != nil {
			t.Fatal(err)
		}
		return s.SocketURL(strings.TrimPrefix(at.Path, "/"))
	}
	e.Instances = func(n int) (float64, error) { return bootFromInstances(t, e, n) }
	if os.Getenv("SLIPWAY_BENCH_PEERS") != "1" {
		e.Slipway = builtSlipway(t)
	}
	n := 0
	for _, b := range All() {
		if !pattern.MatchString(b.Name) {
			continue
		}
		n++
		if missing := b.Missing(); len(missing) > 0 {
			t.Errorf("%s: needs the Debian packages %s", b.Name, strings.Join(missing, " "))
			continue
		}
		e.say("== %s", b.Name)
		f, err := b.Run(context.Background(), e)
		if why := skipped(""); errors.As(err, &why) {
			e.say("%s is skipped: it %s", b.Name, why)
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", b.Name, err)
			continue
		}
		fmt.Println(f.Line())
	}
	if n == 0 {
		t.Errorf("no benchmark matches %q", names)
	}
}

// named has the name that tests with PostgreSQL have.
type named struct{ *testing.T }

func (named) Name() string { return "TestBenchOnPostgreSQL" }

// scratch is where stores are written; a memory file system would flatter everyone who syncs.
func scratch(t *testing.T) string {
	base := os.Getenv("SLIPWAY_BENCH_DIR")
	if base == "" {
		base = "../../build"
	}
	if err := os.MkdirAll(base, 0o755); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(base, "bench-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	abs, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	return abs
}

// builtSlipway is the program that make bench has built.
func builtSlipway(t *testing.T) string {
	path := os.Getenv("SLIPWAY_BENCH_BINARY")
	if path == "" {
		path = "../../bin/slipway"
	}
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%s is missing; run: make build", path)
	}
	return path
}

func TestFigureLines(t *testing.T) {
	for _, c := range []struct {
		figure Figure
		want   string
	}{
		{
			Figure{Name: "dhcp-kea", Ours: 12500, Peer: 8000, Unit: "exchanges/s", PeerName: "kea"},
			"bench dhcp-kea ours=12500 peer=8000 ratio=1.56 unit=exchanges/s peer_name=kea",
		},
		{
			Figure{Name: "boot-ovmf", Ours: 5, Peer: 25, IsCost: true, Unit: "s", PeerName: "dnsmasq"},
			"bench boot-ovmf ours=5.00 peer=25.00 ratio=5.00 unit=s peer_name=dnsmasq",
		},
		{
			Figure{Name: "ui-10k-heap", Peer: 10, IsCost: true, Unit: "MB", PeerName: "promised"},
			"bench ui-10k-heap ours=0.00 peer=10.00 ratio=1000.00 unit=MB peer_name=promised",
		},
		{Figure{Name: "x", Peer: 25, Unit: "s", PeerName: "y"}, "bench x ours=0.00 peer=25.00 ratio=0.00 unit=s peer_name=y"},
	} {
		if got := c.figure.Line(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

func TestBisectionFindsTheHighestRate(t *testing.T) {
	for _, c := range []struct {
		name            string
		limit, sendable int // of the server and of the load generator
		isFlaky         bool
		least, most     int
	}{
		{"the server is the limit", 8000, 16000, false, 7500, 8000},
		{"the load generator is the limit", 50000, 5000, false, 4500, 5000},
		{"one run in three fails by accident", 8000, 16000, true, 7500, 8000},
		{"nothing passes", 500, 16000, false, 0, 0},
		{"everything passes", 50000, 50000, false, 15500, 16000},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := bisection{low: 1000, high: 16000, step: 500, seconds: 1, repeats: 3, maxLoss: 0.001}
			last, runs := 0, 0
			got, err := b.search(context.Background(), func(_ context.Context, rate int) (point, error) {
				if rate != last {
					last, runs = rate, 0
				}
				runs++
				p := point{offered: rate, sent: float64(min(rate, c.sendable))}
				if rate > c.limit || c.isFlaky && runs == 2 {
					p.lost = 0.2
				}
				return p, nil
			})
			if err != nil || got < c.least || got > c.most {
				t.Errorf("found %d, %v; want %d to %d", got, err, c.least, c.most)
			}
		})
	}
}

func TestPerfdhcpOutputIsRead(t *testing.T) {
	out, err := os.ReadFile("testdata/perfdhcp.txt") // 4 exchanges per second for 2 s, against dnsmasq
	if err != nil {
		t.Fatal(err)
	}
	p, err := parsePerfdhcp(out, 2)
	if err != nil {
		t.Fatal(err)
	}
	if p.sent != 3.5 || p.done != 3.5 || p.lost != 0 || p.offerMS < 1.15 || p.offerMS > 1.17 || p.ackMS < 4.22 || p.ackMS > 4.24 {
		t.Errorf("read %+v", p)
	}
	bare, _, _ := bytes.Cut(out, []byte("***Timestamps"))
	if q, err := parsePerfdhcp(bare, 2); err != nil || q.sent != p.sent || q.done != p.done || q.offerMS != 0 || q.ackMS != 0 {
		t.Errorf("without times read %+v, %v", q, err)
	}
	lost := bytes.Replace(bare, []byte("received packets: 7\ndrops: 0\ndrops ratio: 0.000"), []byte("received packets: 6\ndrops: 1\ndrops ratio: 14.286"), 1)
	if q, err := parsePerfdhcp(lost, 2); err != nil || q.done != 3 || q.lost < 0.14 || q.lost > 0.15 {
		t.Errorf("with a loss read %+v, %v", q, err)
	}
	if _, err := parsePerfdhcp([]byte("perfdhcp: no such interface"), 2); err == nil {
		t.Error("an error message was read as a result")
	}
}

func TestIgnitionIsWrittenAsAPersonWritesButane(t *testing.T) {
	got, err := asButane([]byte(`{"ignition":{"version":"3.3.0"},"passwd":{"users":[{"name":"a","sshAuthorizedKeys":["k"]}]},` +
		`"storage":{"files":[{"path":"/a","contents":{"compression":"","source":"data:,a%20%3C%0A"},"mode":420}]}}`))
	want := `{"passwd":{"users":[{"name":"a","ssh_authorized_keys":["k"]}]},"storage":{"files":[{"contents":{"inline":"a <\n"},"mode":0644,"path":"/a"}]},` +
		`"variant":"flatcar","version":"1.1.0"}` + "\n"
	if err != nil || string(got) != want {
		t.Errorf("%v\ngot  %swant %s", err, got, want)
	}
	for _, doc := range []string{"", "[]", `{"storage":{"files":[{"contents":{"source":"https://example.org/"}}]}}`, `{"a":{"source":"data:;base64,YQ=="}}`} {
		if got, err := asButane([]byte(doc)); err == nil {
			t.Errorf("%s became %s", doc, got)
		}
	}
}

func TestALateClientIsChargedForItsDelay(t *testing.T) {
	turn := time.Now().Add(-time.Second)
	if got := waitFor(turn); !got.Equal(turn) {
		t.Errorf("counts from %s after its turn", got.Sub(turn))
	}
	turn = time.Now().Add(5 * time.Millisecond)
	if got := waitFor(turn); got.Before(turn.Add(-time.Millisecond)) {
		t.Errorf("sent %s before its turn", turn.Sub(got))
	}
}
