package peer

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

func identity(t *testing.T, seed string) Identity {
	t.Helper()
	i, err := NewIdentity([]byte(strings.Repeat(seed, 32)))
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// serve starts an instance with some paths, and returns its address.
func serve(t *testing.T, i Identity) string {
	t.Helper()
	return serveTo(t, i, nil)
}

// serveTo is serve for an instance that refuses some others.
func serveTo(t *testing.T, i Identity, admit func(id string) error) string {
	t.Helper()
	s := New(Config{Identity: i, Listen: "127.0.0.1:0", Admit: admit, Log: slog.New(slog.DiscardHandler)})
	s.Handle("POST /double", Handler(func(_ context.Context, n int) (int, error) {
		if n < 0 {
			return 0, inventory.Errorf(inventory.NotFound, "nothing below zero").WithHint("count up")
		}
		return 2 * n, nil
	}))
	s.Handle("POST /broken", Handler(func(context.Context, int) (int, error) { return 0, errors.New("a wheel came off") }))
	s.HandleAll("POST /join", Handler(func(context.Context, int) (string, error) { return "come in", nil }))
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

func TestInstancesOfOneKeyUnderstandEachOther(t *testing.T) {
	at := serve(t, identity(t, "k"))
	c := NewClient(identity(t, "k"), "a")
	defer c.Close()
	if n, err := Call[int](t.Context(), c.HTTP, "https://"+at+"/double", 21); err != nil || n != 42 {
		t.Errorf("answer %d: %v", n, err)
	}
	_, err := Call[int](t.Context(), c.HTTP, "https://"+at+"/double", -1)
	e, ok := errors.AsType[*inventory.Error](err)
	if !ok || e.Kind != inventory.NotFound || e.Msg != "nothing below zero" || e.Hint != "count up" {
		t.Errorf("the error came as %#v", err)
	}
	_, err = Call[int](t.Context(), c.HTTP, "https://"+at+"/broken", 1)
	if e, ok := errors.AsType[*inventory.Error](err); !ok || e.Kind != inventory.Internal || strings.Contains(e.Msg, "wheel") {
		t.Errorf("a fault of the other end came as %#v, and people read its text", err)
	}
	if _, err := Call[int](t.Context(), c.HTTP, "https://"+at+"/nothing", 1); !inventory.IsKind(err, inventory.Unavailable) {
		t.Errorf("an unknown question: %v", err)
	}
	if _, err := Call[string](t.Context(), c.HTTP, "https://"+at+"/join", 1); err != nil {
		t.Errorf("an instance may ask what everybody may: %v", err)
	}
}

func TestStrangersGetNothing(t *testing.T) {
	at := serve(t, identity(t, "k"))
	other := NewClient(identity(t, "x"), "a")
	defer other.Close()
	for _, path := range []string{"/double", "/join"} {
		_, err := Call[int](t.Context(), other.HTTP, "https://"+at+path, 1)
		if !inventory.IsKind(err, inventory.Unavailable) || !strings.Contains(err.Error(), "another key") {
			t.Errorf("%s with another key: %v", path, err)
		}
	}
	// A program that does not look at the server's key, and shows one of its own.
	forged := identity(t, "x").clientTLS()
	forged.VerifyConnection = nil
	for name, config := range map[string]*tls.Config{"a forged key": forged, "no key": {InsecureSkipVerify: true}} {
		c := &http.Client{Transport: transport(config)}
		if n, err := Call[int](t.Context(), c, "https://"+at+"/double", 21); err == nil || n != 0 {
			t.Errorf("%s: %d, %v", name, n, err)
		}
	}
}

func TestAMachineWithoutAKeyMayAskOnlyWhatAllMay(t *testing.T) {
	ours := identity(t, "k")
	at := serve(t, ours)
	guest, err := NewGuest(ours.Pin())
	if err != nil {
		t.Fatal(err)
	}
	if text, err := Call[string](t.Context(), guest, "https://"+at+"/join", 1); err != nil || text != "come in" {
		t.Errorf("join: %q, %v", text, err)
	}
	if _, err := Call[int](t.Context(), guest, "https://"+at+"/double", 21); !inventory.IsKind(err, inventory.Forbidden) {
		t.Errorf("a question of instances: %v", err)
	}
	wrong, err := NewGuest(identity(t, "x").Pin())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Call[string](t.Context(), wrong, "https://"+at+"/join", 1); !inventory.IsKind(err, inventory.Unavailable) {
		t.Errorf("with another pin: %v", err)
	}
	if _, err := NewGuest("1234"); !inventory.IsKind(err, inventory.Invalid) {
		t.Errorf("a short pin: %v", err)
	}
}

// One connection of HTTP/2 carries thousands of requests. Strangers get none.
func TestStrangersSpeakNoHTTP2(t *testing.T) {
	ours := identity(t, "k")
	at := serve(t, ours)
	for name, c := range map[string]struct {
		tls    *tls.Config
		speaks bool
	}{"an instance": {ours.clientTLS(), true}, "a stranger": {pinnedTLS(ours.pin), false}} {
		over := transport(c.tls)
		over.Protocols = new(http.Protocols)
		over.Protocols.SetHTTP2(true)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+at+"/join", strings.NewReader("1"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(versionHeader, strconv.Itoa(Version))
		answer, err := over.RoundTrip(r)
		if speaks := err == nil && answer.ProtoMajor == 2; speaks != c.speaks {
			t.Errorf("%s over HTTP/2: %v", name, err)
		}
		if err == nil {
			_ = answer.Body.Close()
		}
		over.CloseIdleConnections()
	}
}

// While instances are updated, an old one and a new one may speak different versions of the link.
func TestAnotherVersionOfTheLinkIsRefusedWithTheReason(t *testing.T) {
	at := serve(t, identity(t, "k"))
	for theirs, want := range map[string]string{"2": "version 2", "": "version 0", "1": ""} {
		c := &http.Client{Transport: inVersion{transport(identity(t, "k").clientTLS()), theirs}}
		for _, path := range []string{"/double", "/join", "/nothing"} {
			_, err := Call[any](t.Context(), c, "https://"+at+path, 21)
			if want == "" && path != "/nothing" {
				if err != nil {
					t.Errorf("%s in our version: %v", path, err)
				}
				continue
			}
			if !inventory.IsKind(err, inventory.Unavailable) || !strings.Contains(err.Error(), cmp.Or(want, "does not have the engine at the moment")) ||
				want != "" && !strings.Contains(inventory.HintOf(err), "install the same one on all instances") {
				t.Errorf("%s in version %q: %v (%s)", path, theirs, err, inventory.HintOf(err))
			}
		}
		c.CloseIdleConnections()
	}
}

// inVersion asks in some version of the link.
type inVersion struct {
	*http.Transport
	version string
}

func (v inVersion) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(versionHeader, v.version)
	return v.Transport.RoundTrip(r)
}

// A peer whose machine has lost power says nothing any more: the connection stands, and nobody answers.
func TestASilentPeerIsNoticed(t *testing.T) {
	at := serve(t, identity(t, "k"))
	line, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer line.Close()
	cut := make(chan struct{})
	go func() {
		for {
			c, err := line.Accept()
			if err != nil {
				return
			}
			up, err := net.Dial("tcp", at)
			if err != nil {
				return
			}
			go pass(up, c, cut)
			go pass(c, up, cut)
		}
	}()
	c := NewClient(identity(t, "k"), "a")
	defer c.Close()
	url := "https://" + line.Addr().String() + "/double"
	if _, err := Call[int](t.Context(), c.HTTP, url, 1); err != nil {
		t.Fatal(err)
	}
	close(cut)
	began := time.Now()
	_, err = Call[int](t.Context(), c.HTTP, url, 1)
	if took := time.Since(began); !inventory.IsKind(err, inventory.Unavailable) || took > 3*(pingAfter+pingFor) {
		t.Errorf("after %s: %v", took, err)
	}
}

// pass copies bytes until cut closes; from then on it drops them.
func pass(to, from net.Conn, cut chan struct{}) {
	buffer := make([]byte, 4096)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			if !errors.Is(err, io.EOF) {
				_ = to.Close()
			}
			return
		}
		select {
		case <-cut:
		default:
			_, _ = to.Write(buffer[:n])
		}
	}
}

// TestADeletedInstanceIsRefused: it has the key, and may ask no more than a machine that joins.
func TestADeletedInstanceIsRefused(t *testing.T) {
	at := serveTo(t, identity(t, "k"), func(id string) error {
		if id == "a" {
			return nil
		}
		return inventory.Errorf(inventory.Unavailable, "%q was deleted", id).WithHint("start it anew")
	})
	for id, want := range map[string]string{"a": "", "b": `"b" was deleted`, "": `"" was deleted`} {
		c := NewClient(identity(t, "k"), id)
		defer c.Close()
		n, err := Call[int](t.Context(), c.HTTP, "https://"+at+"/double", 21)
		if want == "" && (err != nil || n != 42) || want != "" && (!inventory.IsKind(err, inventory.Unavailable) || err.Error() != want) {
			t.Errorf("%q: %d, %v", id, n, err)
		}
		if text, err := Call[string](t.Context(), c.HTTP, "https://"+at+"/join", 1); err != nil || text != "come in" {
			t.Errorf("%q: what all may ask: %q, %v", id, text, err)
		}
	}
}
