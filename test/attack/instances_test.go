package attack_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/test/netlab"
	"slipway.dev/slipway/test/postgres"
	"slipway.dev/slipway/web/client"
)

const (
	databaseEnv = "SLIPWAY_ATTACK_DATABASE" // the URL of a PostgreSQL database
	instanceEnv = "SLIPWAY_ATTACK_INSTANCE" // the name of the server among those of the database
)

var both = []string{"a", "b"}

// victims are servers of one database. The first leads.
func victims(t *testing.T, names []string, env ...string) []*netlab.Appliance {
	t.Helper()
	l := netlab.New(t, "make test-attack", "curl")
	pg := postgres.Start(t, postgres.Options{})
	u, err := url.Parse(pg.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	all := netlab.NewAppliances(l, names...)
	for i, a := range all {
		a.Env = append([]string{databaseEnv + "=" + pg.SocketURL(strings.TrimPrefix(u.Path, "/")), instanceEnv + "=" + names[i]}, env...)
		if i == 0 {
			a.Start()
			continue
		}
		l.Must("mkdir", "-p", a.Data)
		l.Must("cp", all[0].Data+"/secret.key", a.Data)
		a.Launch()
		a.Process.WaitFor("this one serves on its behalf", 1)
	}
	l.In(all[0].Net.Client, "ip", "addr", "add", "10.77.255.250/16", "dev", all[0].Net.ClientIf)
	return all
}

// TestPostgreSQLAFrontIsNoWeakerThanTheLeader attacks the instance that passes people's requests on to the leader.
func TestPostgreSQLAFrontIsNoWeakerThanTheLeader(t *testing.T) {
	all := victims(t, both)
	a, b := all[0], all[1]
	first, err := os.ReadFile(filepath.Join(a.Data, "admin.token"))
	if err != nil {
		t.Fatal(err)
	}
	t.Run("no request means something else there", func(t *testing.T) { asksBothTheSame(t, a, b, strings.TrimSpace(string(first))) })
	t.Run("many strangers keep nobody out", func(t *testing.T) {
		answered, refused := manyAsk(t, b, 150, 4*time.Second)
		if answered < 1000 || refused > 0 {
			t.Errorf("%d requests without a token were answered with 401, and %d in another way", answered, refused)
		}
	})
}

// asksBothTheSame sends odd requests, byte for byte, to the admin listeners of both, and compares what comes.
func asksBothTheSame(t *testing.T, leader, front *netlab.Appliance, token string) {
	const local = " HTTP/1.1\r\nHost: localhost\r\n"
	with := "Authorization: Bearer " + token + "\r\n\r\n"
	for _, raw := range []string{
		"GET /api/v1/hosts" + local + with, "GET //api/v1/hosts" + local + with, "GET /./api/v1/hosts" + local + with,
		"GET /../socket/api/v1/hosts" + local + "\r\n", "GET /%2e%2e/socket/api/v1/hosts" + local + "\r\n",
		"GET /..%2fsocket/api/v1/hosts" + local + "\r\n", "GET //socket/api/v1/hosts" + local + "\r\n",
		"GET //evil.example/" + local + "\r\n", "GET /socket" + local + "\r\n", "GET /admin/api/v1/hosts" + local + with,
		"CONNECT /../socket/api/v1/hosts" + local + "\r\n", "CONNECT /api/v1/hosts" + local + "\r\n",
		"GET /api/v1/me HTTP/1.1\r\nHost: rebound.example\r\n\r\n",
		"GET /api/v1/hosts" + local + "Slipway-User: root\r\nSlipway-Client: 127.0.0.1:1\r\nSlipway-Target: /api/v1/hosts\r\n\r\n",
		"GET /api/v1/hosts" + local + "Connection: Slipway-Client, Slipway-Scheme, Slipway-User, Slipway-Target\r\n" + with,
		"POST /api/v1/logins" + local + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /api/v1/me" + local + "\r\n",
		"POST /api/v1/logins" + local + "Content-Length: 4\r\nContent-Length: 5\r\n\r\n{}{}",
		"POST /api/v1/logins" + local + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
		"POST /api/v1/acceptrules" + local + "Origin: https://evil.example\r\nSec-Fetch-Site: cross-site\r\nContent-Length: 2\r\n" + with + "{}",
		"GET /api/v1/me" + local + "X: " + strings.Repeat("x", 31<<10) + "\r\n\r\n",
		"GET /api/v1/me" + local + "X: " + strings.Repeat("x", 40<<10) + "\r\n\r\n",
		"GET /api/v1/me" + local + "Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
	} {
		var said []string
		for _, at := range []*netlab.Appliance{leader, front} {
			said = append(said, rawly(t, at, raw))
		}
		if said[0] != said[1] {
			t.Errorf("%.100q\nthe leader answers %s\nthe front %s", raw, said[0], said[1])
		}
	}
}

// rawly sends bytes to the admin listener of a server, and returns the status and the kind of each answer.
func rawly(t *testing.T, at *netlab.Appliance, raw string) string {
	t.Helper()
	c, err := inside(at, at.Net.Server, "")(t.Context(), "tcp", adminDoor)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(requestLimit))
	// The last request has the server close the connection. Behind what cannot be read it is never reached, and the server closes as well.
	if _, err := io.WriteString(c, raw+"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	var said []string
	for in := bufio.NewReader(c); ; {
		r, err := http.ReadResponse(in, nil)
		if err != nil {
			return strings.Join(said, ", then ")
		}
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return strings.Join(append(said, r.Status+" without an end"), ", then ")
		}
		var problem struct{ Kind, Detail string }
		_ = json.Unmarshal(text, &problem) // a page has none
		said = append(said, strings.TrimSpace(r.Status+" "+problem.Kind+" "+problem.Detail+" "+r.Header.Get("Location")))
	}
}

// manyAsk has clients ask the admin listener of a server at the same time who they are. It counts the 401, and all else.
func manyAsk(t *testing.T, at *netlab.Appliance, clients int, during time.Duration) (refused, other int64) {
	t.Helper()
	var is, isNot atomic.Int64
	var all sync.WaitGroup
	until := time.Now().Add(during)
	for range clients {
		all.Go(func() {
			c := http.Client{Timeout: requestLimit, Transport: &http.Transport{DialContext: inside(at, at.Net.Server, "")}}
			defer c.CloseIdleConnections()
			for time.Now().Before(until) {
				r, err := c.Get("http://" + adminDoor + "/api/v1/me")
				if err != nil {
					isNot.Add(1)
					continue
				}
				_, _ = io.Copy(io.Discard, r.Body)
				_ = r.Body.Close()
				if r.StatusCode == http.StatusUnauthorized {
					is.Add(1)
				} else {
					isNot.Add(1)
				}
			}
		})
	}
	all.Wait()
	return is.Load(), isNot.Load()
}

// TestPostgreSQLAFloodOfTheLinkHarmsNobody keeps more connections to the port of instances open than the server may have files.
func TestPostgreSQLAFloodOfTheLinkHarmsNobody(t *testing.T) {
	all := victims(t, both, fewEnv)
	a, b := all[0], all[1]
	var from []string
	for n := range 90 {
		ip := fmt.Sprintf("10.77.200.%d", n+10)
		a.Lab.In(a.Net.Client, "ip", "address", "add", ip+"/16", "dev", a.Net.ClientIf)
		from = append(from, ip)
	}
	ctx, stop := context.WithCancel(t.Context())
	var floods sync.WaitGroup
	defer floods.Wait()
	defer stop()
	var opened atomic.Int64
	floods.Go(func() {
		a.Lab.Inside(a.Net.Client, func() error {
			var open []net.Conn
			for n := 0; ctx.Err() == nil; n++ {
				d := net.Dialer{Timeout: time.Second, LocalAddr: &net.TCPAddr{IP: net.ParseIP(from[n%len(from)])}}
				c, err := d.Dial("tcp", "10.77.0.1:8069")
				if err != nil {
					continue
				}
				opened.Add(1)
				if open = append(open, c); len(open) > 2000 {
					_ = open[0].Close()
					open = open[1:]
				}
				time.Sleep(2 * time.Millisecond)
			}
			for _, c := range open {
				_ = c.Close()
			}
			return nil
		})
	})
	for seed, until := uint64(1), time.Now().Add(12*time.Second); time.Now().Before(until); seed++ {
		boots(a, seed)
		if _, err := b.API.Users.List(t.Context(), client.Query{Limit: 1}); err != nil {
			t.Errorf("the other instance: %v", err)
		}
	}
	if opened.Load() < 1000 {
		t.Errorf("only %d connections were made: this test attacks nothing", opened.Load())
	}
	if said(a, inventory.IssueFiles, "") {
		t.Error("the flood used up the files that the server may open")
	}
}
