package invite

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway.dev/slipway/cmd/slipway/serve/peer"
	"slipway.dev/slipway/cmd/slipway/serve/peer/peertest"
	"slipway.dev/slipway/inventory"
)

// serve starts the link of an instance, and returns its address.
func serve(t *testing.T, i peer.Identity, d *Answerer) string {
	t.Helper()
	d.Client = peer.NewClient(i, "test")
	t.Cleanup(d.Client.Close)
	return peertest.Serve(t, i, func(s *peer.Server) { d.Register(s) })
}

// leading starts an instance that leads, and returns its address.
func leading(t *testing.T) (*rig, string) {
	t.Helper()
	r := newRig(t)
	who := peertest.Identity(t, "k")
	r.book.cfg.Pin = who.Pin()
	return r, serve(t, who, &Answerer{Book: func() *Book { return r.book }, Leader: func() (string, bool) { return "", false }})
}

func ask(t *testing.T, c Code, at ...string) (HandOver, string, error) {
	return Ask(t.Context(), at, c, Request{Proof: proof("a"), Name: "node2"})
}

func TestAMachineIsHandedOverByTheLeaderOrThroughAnother(t *testing.T) {
	r, leader := leading(t)
	front := &Answerer{Book: func() *Book { return nil }, Leader: func() (string, bool) { return leader, true }}
	other := serve(t, peertest.Identity(t, "k"), front)
	c := r.invite("")
	h, at, err := ask(t, c, "127.0.0.1:1", other) // nothing answers at the first
	r.given("through another", h, err, "node2")
	if at != other || r.book.Invitations()[0].UsedFrom != netip.MustParseAddr("127.0.0.1") {
		t.Errorf("%s, %+v", at, r.book.Invitations())
	}
	h, _, err = ask(t, c, leader)
	r.given("by the leader", h, err, "node2")
	bad := c
	bad.secret[0] ^= 1
	_, _, err = ask(t, bad, other)
	r.refused("a wrong code through another", err, "no invitation has this code")
	front.Leader = func() (string, bool) { return "", false }
	_, _, err = ask(t, c, other)
	r.refused("without a leader", err, "no instance has the engine at the moment")
	front.Leader = func() (string, bool) { return "127.0.0.1:1", true }
	_, _, err = ask(t, c, other)
	r.refused("with a leader that is gone", err, "does not answer")
	h, _, err = ask(t, c, other, leader)
	r.given("by the next", h, err, "node2")
	_, _, err = ask(t, c, "127.0.0.1:1")
	r.refused("where nobody listens", err, "connection refused")
}

// TestWhoIsInTheMiddleLearnsNothing puts a server with another key where the instance should be. It has to get no byte of a request.
func TestWhoIsInTheMiddleLearnsNothing(t *testing.T) {
	r, leader := leading(t)
	c := r.invite("")
	got := make(chan string, 10)
	note := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got <- r.URL.Path + string(b)
	})
	middle := peer.New(peer.Config{Identity: peertest.Identity(t, "x"), Listen: "127.0.0.1:0", Log: slog.New(slog.DiscardHandler)})
	middle.HandleAll("/", note)
	if err := middle.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() { _ = middle.Serve(ctx) }()
	web := httptest.NewTLSServer(note) // a certificate of the web
	defer web.Close()
	plain := httptest.NewServer(note)
	defer plain.Close()
	_, _, err := ask(t, c, middle.Addr().String())
	r.refused("in the middle", err, "is not an instance that this code is of")
	for _, s := range []*httptest.Server{web, plain} {
		if _, _, err := ask(t, c, s.Listener.Addr().String()); err == nil || inventory.HintOf(err) == "" {
			t.Errorf("%s: %v", s.URL, err)
		}
	}
	select {
	case text := <-got:
		t.Errorf("who is in the middle has got %q", text)
	default:
	}
	h, _, err := ask(t, c, middle.Addr().String(), leader) // the code is as good as before
	r.given("by the leader", h, err, "node2")
}

// post sends a body as a stranger, who looks at no key.
func post(t *testing.T, at, path string, body io.Reader) (int, string) {
	t.Helper()
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, Timeout: 10 * time.Second}
	defer c.CloseIdleConnections()
	a, err := c.Post("https://"+at+path, "application/json", body)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, string(text)
}

func TestStrangersGetNothing(t *testing.T) {
	r, leader := leading(t)
	c := r.invite("")
	right, err := json.Marshal(passed{near, Request{ID: c.ID(), Secret: c.secret[:], Proof: proof("a"), Name: "node2"}})
	if err != nil {
		t.Fatal(err)
	}
	for path, body := range map[string]string{pathPass: string(right), pathJoin: "{", pathJoin + "x": "{}", "/engine/offer": "{}"} {
		if status, text := post(t, leader, path, strings.NewReader(body)); status == http.StatusOK || strings.Contains(text, "the key") {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	large := strings.NewReader(`{"id":"` + strings.Repeat("x", mostBody) + `"}`)
	if status, text := post(t, leader, pathJoin, large); status != 422 || !strings.Contains(text, "too large") {
		t.Errorf("a large body: %d %s", status, text)
	}
	if got := r.book.Invitations()[0]; got.State != "open" {
		t.Errorf("%+v", got)
	}
}

// TestOneAddressLeavesPlacesForOthers lets addresses send nothing, slowly.
func TestOneAddressLeavesPlacesForOthers(t *testing.T) {
	var p places
	var mine []*place
	none := func() {}
	for range mostOfSource {
		mine = append(mine, p.enter(far, none))
	}
	if slices.Contains(mine, nil) || p.enter(far, none) != nil {
		t.Errorf("one address has not its places, or more: %v", mine)
	}
	var gone []int
	for n := range mostAtOnce - mostOfSource { // four of one address, and one of each other
		p.enter(netip.AddrFrom4([4]byte{10, 0, 1, byte(n)}), func() { gone = append(gone, n) })
	}
	ended := 0
	mine[0].give = func() { ended++ }
	fresh := p.enter(near, none)
	if fresh == nil || ended != 1 || p.arrived(mine[0]) || len(gone) > 0 {
		t.Errorf("a newcomer has no place, or the place of another: %v, %d, %v", fresh, ended, gone)
	}
	if p.leave(mine[0]); len(p.all) != mostAtOnce {
		t.Errorf("%d places", len(p.all))
	}
	for _, is := range mine[1:] {
		if !p.arrived(is) {
			t.Error("a place was lost for nothing")
		}
	}
	if p.arrived(fresh); p.enter(netip.MustParseAddr("fd00::1"), none) == nil || !slices.Equal(gone, []int{0}) {
		t.Errorf("the oldest of those that wait makes room, and not %v", gone)
	}
	for _, is := range p.all {
		p.arrived(is)
	}
	if p.enter(netip.MustParseAddr("fd00:1::1"), none) != nil {
		t.Error("a request that has its body makes room")
	}
	for len(p.all) > 0 {
		p.leave(p.all[0])
	}
	if len(p.here) != 0 {
		t.Errorf("%+v", p.here)
	}
}

// TestStrangersDoNotKeepANewMachineOut takes all places from 16 addresses, which send their bodies never.
func TestStrangersDoNotKeepANewMachineOut(t *testing.T) {
	r, leader := leading(t)
	c := r.invite("")
	var slow sync.WaitGroup
	defer slow.Wait()
	for n := range mostAtOnce {
		to := &http.Client{Transport: &http.Transport{
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
			DialContext:     (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+n/mostOfSource))}}).DialContext,
		}}
		body, more := io.Pipe()
		defer more.Close()
		slow.Go(func() {
			if a, err := to.Post("https://"+leader+pathJoin, "application/json", body); err == nil {
				_ = a.Body.Close()
			}
			to.CloseIdleConnections()
		})
	}
	time.Sleep(time.Second)
	began := time.Now()
	h, _, err := ask(t, c, leader)
	r.given("while strangers have all places", h, err, "node2")
	if took := time.Since(began); took > bodyFor/2 {
		t.Errorf("it waited for %s", took)
	}
}

func FuzzJoin(f *testing.F) {
	var log bytes.Buffer
	c := draw(f)
	book := NewBook(Config{Now: time.Now, Log: slog.New(slog.NewTextHandler(&log, nil))})
	i := &invitation{id: c.ID(), hash: c.hash(), expiresAt: time.Now().Add(time.Hour)}
	book.all = []*invitation{i}
	d := &Answerer{Book: func() *Book { return book }}
	good, err := json.Marshal(Request{ID: c.ID(), Secret: c.secret[:], Proof: proof("a"), Name: "node2"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(bytes.Replace(good, []byte(`"secret":"`), []byte(`"secret":"AA`), 1))
	f.Add([]byte(`{"id":null,"secret":[1],"proof":{}}`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var q Request
		if json.Unmarshal(body, &q) == nil && bytes.Equal(q.Secret, c.secret[:]) {
			t.Skip("the fuzzer knows the secret from the seed")
		}
		log.Reset()
		book.tries, i.wrongN = tries{}, 0
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, pathJoin, bytes.NewReader(body))
		d.join(w, r)
		if w.Code == http.StatusOK || i.isBusy || i.isUsed() || len(d.places.all) != 0 {
			t.Errorf("%q: %d %s", body, w.Code, w.Body)
		}
		if len(q.ID) > 3 && q.ID != i.id && strings.Contains(log.String(), q.ID) {
			t.Errorf("the log has what a stranger sent: %s", log.String())
		}
	})
}
