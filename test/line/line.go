// Package line owns faulty lines between an instance and its database: slow, cut, or silent. It knows nothing of what goes over them. The
// faults are those of github.com/Shopify/toxiproxy, in the process of the test.
package line

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// Line forwards connections to a server. Each instance may have its own.
type Line struct{ proxy *toxiproxy.Proxy }

// New makes a line without a fault to host and port of a server. It ends with the test.
func New(t testing.TB, to string) *Line {
	t.Helper()
	zerolog.SetGlobalLevel(zerolog.Disabled) // some faults log beside the logger that they are given
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	l := &Line{toxiproxy.NewProxy(server, t.Name(), "127.0.0.1:0", to)}
	if err := l.proxy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.proxy.Stop)
	return l
}

// Address returns host and port that an instance uses in place of those of the server.
func (l *Line) Address() string { return l.proxy.Listen }

// URL puts lines in place of the servers of a URL.
func URL(t testing.TB, of string, lines ...*Line) string {
	t.Helper()
	u, err := url.Parse(of)
	if err != nil {
		t.Fatal(err)
	}
	hosts := make([]string, 0, len(lines))
	for _, l := range lines {
		hosts = append(hosts, l.Address())
	}
	u.Host = strings.Join(hosts, ",")
	return u.String()
}

// socketPort names the socket, as a server of PostgreSQL names its own by its port.
const socketPort = "5432"

// SocketURL is URL for an instance in a network namespace of its own, which the line reaches by a Unix socket only.
func (l *Line) SocketURL(t testing.TB, of string) string {
	t.Helper()
	u, err := url.Parse(of)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "slipway-line-") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket, err := net.Listen("unix", filepath.Join(dir, ".s.PGSQL."+socketPort))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	go func() {
		for {
			c, err := socket.Accept()
			if err != nil {
				return
			}
			go l.pass(c)
		}
	}()
	u.Host, u.RawQuery = "", url.Values{"host": {dir}, "port": {socketPort}}.Encode()
	return u.String()
}

// pass forwards a connection to the line, until one end is closed.
func (l *Line) pass(from net.Conn) {
	to, err := net.Dial("tcp", l.Address())
	if err != nil { // the line is cut
		from.Close()
		return
	}
	forward := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		to.Close()
		from.Close()
	}
	go forward(from, to)
	forward(to, from)
}

// Direction is the way that a fault is in.
type Direction string

// The directions.
const (
	Questions Direction = "upstream"
	Answers   Direction = "downstream"
)

// Slow delays each piece of data of all connections, also of those that are open.
func (l *Line) Slow(t testing.TB, d Direction, by, jitter time.Duration) {
	t.Helper()
	l.add(t, "latency", d, map[string]any{"latency": by.Milliseconds(), "jitter": jitter.Milliseconds()})
}

// Narrow lets through that many kilobytes each second.
func (l *Line) Narrow(t testing.TB, d Direction, kilobytes int) {
	t.Helper()
	l.add(t, "bandwidth", d, map[string]any{"rate": kilobytes})
}

// Crumble cuts the data into pieces of a few bytes, with a pause after each.
func (l *Line) Crumble(t testing.TB, d Direction, bytes int, pause time.Duration) {
	t.Helper()
	l.add(t, "slicer", d, map[string]any{"average_size": bytes, "size_variation": bytes / 2, "delay": pause.Microseconds()})
}

// Swallow takes data and forwards none. Neither side hears of it: the line is half open.
func (l *Line) Swallow(t testing.TB, d Direction) {
	t.Helper()
	l.add(t, "timeout", d, map[string]any{"timeout": 0})
}

// Reset ends each connection with a RST as soon as data come.
func (l *Line) Reset(t testing.TB, d Direction) {
	t.Helper()
	l.add(t, "reset_peer", d, map[string]any{"timeout": 0})
}

// StopAfter ends each connection after so many bytes: in the middle of a message.
func (l *Line) StopAfter(t testing.TB, d Direction, bytes int) {
	t.Helper()
	l.add(t, "limit_data", d, map[string]any{"bytes": bytes})
}

func (l *Line) add(t testing.TB, kind string, d Direction, attributes map[string]any) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"type": kind, "stream": d, "attributes": attributes})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.proxy.Toxics.AddToxicJson(strings.NewReader(string(text))); err != nil {
		t.Fatalf("%s: %v", kind, err)
	}
}

// Mend takes all faults away. Data that a fault has swallowed never arrive.
func (l *Line) Mend(ctx context.Context) { l.proxy.Toxics.ResetToxics(ctx) }

// Cut ends all connections. Nobody listens until Join.
func (l *Line) Cut() { l.proxy.Stop() }

// Join lets connections through again, at the same address.
func (l *Line) Join(t testing.TB) {
	t.Helper()
	if err := l.proxy.Start(); err != nil {
		t.Fatal(err)
	}
}

// Lead sends new connections to another server, and ends those that there are: a virtual address moves.
func (l *Line) Lead(t testing.TB, to string) {
	t.Helper()
	if err := l.proxy.Update(&toxiproxy.Proxy{Listen: l.proxy.Listen, Upstream: to, Enabled: true}); err != nil {
		t.Fatal(err)
	}
}
