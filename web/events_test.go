package web

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/access"
	"slipway.dev/slipway/web/rest"
)

// serve runs the rig's server on a loopback port and returns its address and what stops it.
func (r *rig) serve() (base string, stop func()) {
	r.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- r.srv.Serve(ctx, l, nil) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-served; err != nil {
			r.t.Errorf("Serve: %v", err)
		}
	}
	r.t.Cleanup(stop)
	return "http://" + l.Addr().String(), stop
}

// token makes a token and returns its secret.
func (r *rig) token() string {
	r.t.Helper()
	var made access.NewToken
	r.must(201, &made, "POST", "/api/v1/tokens", `{"name":"test"}`)
	return made.Secret
}

// commit adds n events of a kind.
func (r *rig) commit(kind string, n int) {
	r.t.Helper()
	err := r.store.Write(r.t.Context(), func(tx inventory.Tx) error {
		for i := range n {
			if err := tx.AddEvent(&inventory.Event{At: testStart, Kind: kind, Detail: fmt.Sprint("line\nbreak ", i), Data: map[string]any{"n": i}}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

// streamOf opens a stream.
func (r *rig) streamOf(base, secret, query string, headers ...string) *bufio.Reader {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, base+"/api/v1/events"+query, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+secret)
	req.Header.Set("Accept", "text/event-stream")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = res.Body.Close() })
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" {
		r.t.Fatalf("status %d as %s", res.StatusCode, res.Header.Get("Content-Type"))
	}
	return bufio.NewReader(res.Body)
}

// next reads n events of a stream and returns their ids; each event's id line must agree with its data.
func next(t *testing.T, s *bufio.Reader, n int) (ids []int64) {
	t.Helper()
	id := int64(0)
	for len(ids) < n {
		line, err := s.ReadString('\n')
		if err != nil {
			t.Fatalf("after %d of %d events: %v", len(ids), n, err)
		}
		if text, ok := strings.CutPrefix(line, "id: "); ok {
			id, _ = strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			var e inventory.Event
			if err := json.Unmarshal([]byte(data), &e); err != nil {
				t.Fatalf("%v in %s", err, data)
			}
			if e.ID != id {
				t.Errorf("id: %d with the data of event %d", id, e.ID)
			}
			ids = append(ids, e.ID)
		}
	}
	return ids
}

func upto(from, to int64) (ids []int64) {
	for i := from; i <= to; i++ {
		ids = append(ids, i)
	}
	return ids
}

func TestAStreamResumesWhereItWasInterrupted(t *testing.T) {
	r := newRig(t, nil)
	base, _ := r.serve()
	secret := r.token() // event 1
	r.commit("boot.decided", 10)
	if got := next(t, r.streamOf(base, secret, "?after=0"), 4); !cmp.Equal(got, upto(1, 4)) {
		t.Errorf("from the beginning: %v", got)
	}
	resumed := r.streamOf(base, secret, "?after=0", "Last-Event-ID", "4")
	if got := next(t, resumed, 7); !cmp.Equal(got, upto(5, 11)) {
		t.Errorf("resumed after 4, whatever the address says: %v", got)
	}
	fresh := r.streamOf(base, secret, "")
	back := r.streamOf(base, secret, "?after=-3")
	r.commit("boot.decided", 5)
	for name, tc := range map[string]struct {
		s    *bufio.Reader
		want []int64
	}{
		"what comes next": {resumed, upto(12, 16)}, "only what is new": {fresh, upto(12, 16)}, "three back": {back, upto(9, 16)},
		"an id from the future": {r.streamOf(base, secret, "?after=15", "Last-Event-ID", "15"), upto(16, 16)},
	} {
		if got := next(t, tc.s, len(tc.want)); !cmp.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

func TestAStreamIsFiltered(t *testing.T) {
	r := newRig(t, nil)
	base, _ := r.serve()
	secret := r.token()
	r.seed()
	stream := r.streamOf(base, secret, "?after=0&kind=dhcp")
	host := r.streamOf(base, secret, "?after=0&host=r1-u01")
	r.commit("dhcp.ack", 2)
	r.commit("boot.decided", 2)
	r.commit("dhcp.offer", 1)
	ids := next(t, stream, 3)
	if ids[2]-ids[1] != 3 {
		t.Errorf("ids of dhcp events: %v", ids)
	}
	r.must(200, nil, "PATCH", "/api/v1/hosts/r1-u01", `{"serial":"7"}`)
	next(t, host, 2)
}

func TestAQuietStreamShowsThatItIsAlive(t *testing.T) {
	r := newRig(t, func(c *Config) { c.HeartbeatFor = 5 * time.Millisecond })
	base, _ := r.serve()
	stream := r.streamOf(base, r.token(), "")
	for range 5 {
		line, err := stream.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(line, ": ") {
			return
		}
	}
	t.Error("no comment in the first five lines of a quiet stream")
}

func TestAStreamEndsWithTheServer(t *testing.T) {
	r := newRig(t, nil)
	base, stop := r.serve()
	stream := r.streamOf(base, r.token(), "")
	began := time.Now()
	stop()
	if _, err := io.ReadAll(stream); err != nil {
		t.Errorf("the stream broke instead of ending: %v", err)
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("stopping took %v with an open stream", took)
	}
}

func TestAClientThatReadsNothingIsCut(t *testing.T) {
	r := newRig(t, func(c *Config) { c.WriteFor = 50 * time.Millisecond })
	base, _ := r.serve()
	c, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.(*net.TCPConn).SetReadBuffer(4096)
	if _, err := fmt.Fprintf(c, "GET /api/v1/events?after=0 HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nAuthorization: Bearer %s\r\n\r\n", r.token()); err != nil {
		t.Fatal(err)
	}
	for range 50 {
		r.commit("boot."+strings.Repeat("x", 2000), 100)
	}
	deadline := time.Now().Add(10 * time.Second)
	for !strings.Contains(r.logged(), "event stream cut") {
		if time.Now().After(deadline) {
			t.Fatal("the client is still served")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestTheListOfEventsSharesItsFilters(t *testing.T) {
	r := newRig(t, nil)
	r.commit("dhcp.ack", 3)
	r.commit("boot.decided", 4)
	for query, want := range map[string]int{
		"": 7, "?kind=dhcp": 3, "?kind=dhcp.ack": 3, "?kind=dhcp.nak": 0, "?after=2": 5, "?after=-3": 3, "?after=99": 0,
		"?kind=dhcp&after=-2": 2, "?kind=dhcp&after=-100": 3, "?kind=tftp&after=-3": 0, // counted among those that match
		"?session=none": 0, "?limit=2": 2,
	} {
		var page rest.List[inventory.Event]
		r.must(200, &page, "GET", "/api/v1/events"+query, "")
		if len(page.Items) != want {
			t.Errorf("%s: %d events, want %d", query, len(page.Items), want)
		}
	}
}

func TestAListOfEventsReadsInTheOrderTheyHappened(t *testing.T) {
	r := newRig(t, nil)
	err := r.store.Write(t.Context(), func(tx inventory.Tx) error {
		for _, ev := range []inventory.Event{
			{At: testStart.Add(2 * time.Second), Kind: inventory.EventScriptAsked},
			{At: testStart.Add(time.Second), Kind: inventory.EventDHCPAck}, // noted behind the packet, so later
			{At: testStart.Add(3 * time.Second), Kind: inventory.EventBootDecided},
		} {
			if err := tx.AddEvent(&ev); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var page rest.List[inventory.Event]
	r.must(200, &page, "GET", "/api/v1/events?limit=2", "")
	more := rest.List[inventory.Event]{}
	r.must(200, &more, "GET", "/api/v1/events?limit=2&after="+page.Next, "")
	var kinds []string
	for _, ev := range append(page.Items, more.Items...) {
		kinds = append(kinds, ev.Kind)
	}
	if diff := cmp.Diff([]string{inventory.EventDHCPAck, inventory.EventScriptAsked, inventory.EventBootDecided}, kinds); diff != "" {
		t.Error(diff)
	}
}
