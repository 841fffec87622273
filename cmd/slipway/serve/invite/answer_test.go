package invite

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/cmd/slipway/serve/peer"
	"slipway.dev/slipway/inventory"
)

func identity(t testing.TB, seed string) peer.Identity {
	t.Helper()
	i, err := peer.NewIdentity([]byte(strings.Repeat(seed, 32)))
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// serve starts the link of an instance, and returns its address.
func serve(t *testing.T, i peer.Identity, d *Answerer) string {
	t.Helper()
	s := peer.New(peer.Config{Identity: i, Listen: "127.0.0.1:0", Log: slog.New(slog.DiscardHandler)})
	d.Client = peer.NewClient(i, "test")
	t.Cleanup(d.Client.Close)
	d.Register(s)
	if err := s.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s.Addr().String()
}

// leading starts an instance that leads, and returns its address.
func leading(t *testing.T) (*rig, string) {
	t.Helper()
	r := newRig(t)
	who := identity(t, "k")
	r.book.cfg.Pin = who.Pin()
	return r, serve(t, who, &Answerer{Book: func() *Book { return r.book }, Leader: func() (string, bool) { return "", false }})
}

func ask(t *testing.T, c Code, at ...string) (HandOver, string, error) {
	return Ask(t.Context(), at, c, Request{Proof: proof("a"), Name: "node2"})
}

func TestAMachineIsHandedOverByTheLeaderOrThroughAnother(t *testing.T) {
	r, leader := leading(t)
	front := &Answerer{Book: func() *Book { return nil }, Leader: func() (string, bool) { return leader, true }}
	other := serve(t, identity(t, "k"), front)
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
	middle := peer.New(peer.Config{Identity: identity(t, "x"), Listen: "127.0.0.1:0", Log: slog.New(slog.DiscardHandler)})
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

// TestOneAddressLeavesPlacesForOthers lets one address send nothing, slowly.
func TestOneAddressLeavesPlacesForOthers(t *testing.T) {
	d := &Answerer{}
	for range mostOfSource {
		if !d.enter(far) {
			t.Fatal("no place")
		}
	}
	if d.enter(far) || !d.enter(near) {
		t.Error("one address takes the places of another")
	}
	for range mostOfSource {
		d.leave(far)
	}
	d.leave(near)
	if len(d.here) != 0 || d.allN != 0 || !d.enter(far) {
		t.Errorf("%+v", d.here)
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
		if w.Code == http.StatusOK || i.isBusy || i.isUsed() || d.allN != 0 {
			t.Errorf("%q: %d %s", body, w.Code, w.Body)
		}
		if len(q.ID) > 3 && q.ID != i.id && strings.Contains(log.String(), q.ID) {
			t.Errorf("the log has what a stranger sent: %s", log.String())
		}
	})
}
