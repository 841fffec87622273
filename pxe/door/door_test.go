package door

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

type fakeConn struct{ isClosed bool }

func (c *fakeConn) Close() error { c.isClosed = true; return nil }

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

func isOne(a netip.Addr) bool { return a == addr("10.0.0.1") }

// stranger n has an address of its own.
func stranger(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 1, byte(n >> 8), byte(n)}) }

func enter(d *Door, a netip.Addr) (*Place, *fakeConn) {
	c := &fakeConn{}
	return d.Enter(a, c), c
}

func TestNinetyAddressesDoNotCloseTheDoorForAnother(t *testing.T) {
	d := New(Config{All: 1024, PerSource: 128, KnownPart: 4, Knows: isOne})
	for n := range 90 {
		for range 128 {
			enter(d, stranger(n))
		}
	}
	if p, _ := enter(d, addr("10.0.0.1")); p == nil {
		t.Error("a known host is not let in")
	}
	if p, _ := enter(d, addr("10.9.9.9")); p == nil {
		t.Error("a machine that nobody knows is not let in beside the flood")
	}
	if d.Len() > 1024 {
		t.Errorf("%d connections", d.Len())
	}
}

func TestAFloodThatIsBusyDoesNotCloseTheDoorForAKnownHost(t *testing.T) {
	d := New(Config{All: 64, PerSource: 16, KnownPart: 4, Knows: isOne})
	for n := range 200 {
		if p, _ := enter(d, stranger(n)); p != nil { // each has one, all are busy: nobody has more than his part
			p.begin()
		}
	}
	if p, _ := enter(d, stranger(777)); p != nil {
		t.Error("a stranger came in where nobody had to make room")
	}
	for n := range 16 {
		if p, _ := enter(d, addr("10.0.0.1")); p == nil {
			t.Fatalf("connection %d of a known host is refused", n)
		}
	}
	if d.crowds[strangers].n != 48 {
		t.Errorf("%d strangers hold places, want 48 of 64", d.crowds[strangers].n)
	}
}

func TestWhoHasMostMakesRoom(t *testing.T) {
	for name, tc := range map[string]struct {
		fill func(d *Door) (first *fakeConn)
		ok   bool
	}{
		"the longest idle of the heaviest": {func(d *Door) (first *fakeConn) {
			enter(d, stranger(1))
			_, first = enter(d, stranger(2))
			for range 6 {
				enter(d, stranger(2))
			}
			return first
		}, true},
		"an idle one before a busy one": {func(d *Door) (first *fakeConn) {
			for range 7 {
				p, _ := enter(d, stranger(2))
				p.begin()
			}
			_, first = enter(d, stranger(1))
			return first
		}, true},
		"the longest busy of who has far more than a part": {func(d *Door) (first *fakeConn) {
			for n := range 8 {
				p, c := enter(d, stranger(2))
				if p.begin(); n == 0 {
					first = c
				}
			}
			return first
		}, true},
		"nobody, where all are busy and have a part": {func(d *Door) (first *fakeConn) {
			for n := range 8 {
				p, _ := enter(d, stranger(n))
				p.begin()
			}
			return nil
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := New(Config{All: 8})
			first := tc.fill(d)
			p, _ := enter(d, addr("10.9.9.9"))
			if (p != nil) != tc.ok || first != nil && !first.isClosed {
				t.Errorf("let in %t, want %t; made room %+v", p != nil, tc.ok, first)
			}
		})
	}
}

func TestASourceAtItsLimitReplacesItsOwnIdleConnection(t *testing.T) {
	d := New(Config{All: 100, PerSource: 2})
	_, first := enter(d, stranger(1))
	second, _ := enter(d, stranger(1))
	second.begin()
	third, _ := enter(d, stranger(1))
	if third == nil || !first.isClosed {
		t.Fatal("the idle connection of the same source did not make room")
	}
	third.begin()
	if p, _ := enter(d, stranger(1)); p != nil {
		t.Error("a source has more than its limit")
	}
	second.end()
	second.Leave()
	second.Leave()
	if p, _ := enter(d, stranger(1)); p == nil || d.Len() != 2 {
		t.Errorf("%d connections after one left", d.Len())
	}
}

func TestAnIPv6NetworkIsOneSource(t *testing.T) {
	d := New(Config{All: 100, PerSource: 2})
	for n := range 10 {
		enter(d, addr(fmt.Sprintf("2001:db8::%d", n+1)))
	}
	if d.Len() != 2 {
		t.Errorf("%d connections of one network, want 2", d.Len())
	}
}

func TestWhoIsTrustedDoesNotMakeRoomForStrangers(t *testing.T) {
	d := New(Config{All: 8, KnownPart: 4})
	trusted, c := enter(d, stranger(1))
	trusted.Trust()
	trusted.Trust()
	for n := range 100 {
		enter(d, stranger(n))
	}
	if c.isClosed || d.crowds[known].n != 1 || d.crowds[strangers].n != 6 {
		t.Errorf("closed %t; %d known, %d strangers", c.isClosed, d.crowds[known].n, d.crowds[strangers].n)
	}
	trusted.Leave()
	if d.Len() != 6 {
		t.Errorf("%d left", d.Len())
	}
}

func TestOutOfFilesShedsIdleConnections(t *testing.T) {
	d := New(Config{All: 100})
	busy, c := enter(d, stranger(1))
	busy.begin()
	for n := range 60 {
		enter(d, stranger(n))
	}
	d.NoteAccept(&net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)})
	if c.isClosed || d.Len() != 61-shedN || time.Since(OutOfFilesAt()) > time.Minute {
		t.Errorf("%d left, busy one closed: %t, noted %v", d.Len(), c.isClosed, OutOfFilesAt())
	}
	d.NoteAccept(errors.New("else"))
	if d.Shed(1000) != 60-shedN || d.Len() != 1 {
		t.Errorf("%d left", d.Len())
	}
}

// The counts stay true through whatever happens.
func TestADoorNeverHoldsMoreThanItsLimits(t *testing.T) {
	d := New(Config{All: 50, PerSource: 10, KnownPart: 5, Knows: isOne})
	var all []*Place
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		if len(all) > 0 && r.IntN(2) == 0 {
			p := all[r.IntN(len(all))]
			switch r.IntN(4) {
			case 0:
				p.Leave()
			case 1:
				p.begin()
			case 2:
				if p.requN > 0 {
					p.end()
				}
			case 3:
				p.Trust()
			}
			continue
		}
		a := stranger(r.IntN(12))
		if r.IntN(4) == 0 {
			a = addr("10.0.0.1")
		}
		if p, _ := enter(d, a); p != nil {
			all = append(all, p)
		}
		n := 0
		for c := range d.crowds {
			inIdle := 0
			for _, s := range d.crowds[c].sources {
				n += s.n()
				inIdle = max(inIdle, s.idle.Len())
				if s.n() == 0 {
					t.Fatal("a source without connections is kept")
				}
			}
			if d.crowds[c].byIdle.top != inIdle {
				t.Fatalf("the heaviest has %d, ranked %d", inIdle, d.crowds[c].byIdle.top)
			}
		}
		if n != d.Len() || n > 50 || d.crowds[strangers].n > 50 {
			t.Fatalf("%d connections, counted %d", n, d.Len())
		}
	}
}

func TestTheDoorsLeaveFilesForTheRest(t *testing.T) {
	for _, limit := range []int{256, 1024, 4096, 20_000, 1 << 20} {
		for _, has := range [][2]bool{{false, false}, {true, false}, {false, true}, {true, true}} {
			hasTLS, hasLink := has[0], has[1]
			b := Share(limit, hasTLS, hasLink)
			each, least := 1, 16 // file descriptors of a connection of people
			if hasLink {
				each, least = 2, 8
			}
			if used := 2*(b.Boot+b.BootTLS) + each*(b.Admin+b.Socket) + b.Link; limit >= 1024 && used+b.Reserved > limit {
				t.Errorf("limit %d: %d for doors and %d reserved", limit, used, b.Reserved)
			}
			if b.Boot < 7 || b.Admin < least || b.Socket < least/2 || hasTLS != (b.BootTLS > 0) || hasLink != (b.Link > 0) {
				t.Errorf("limit %d: %+v", limit, b)
			}
		}
	}
	if got := RaiseFiles(); got < 1024 {
		t.Errorf("limit %d", got)
	}
}

func TestOpenFilesAreCounted(t *testing.T) {
	f, err := OpenFiles()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	before, err := f.Count()
	if err != nil || before < 3 {
		t.Fatal(before, err)
	}
	more, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	defer more.Close()
	if after, err := f.Count(); err != nil || after != before+1 {
		t.Errorf("%d after %d, %v", after, before, err)
	}
}

// serve starts a server behind a door on loopback.
func serve(t *testing.T, d *Door, h http.Handler) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: Handler(h), ConnContext: Context, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = srv.Serve(d.Listen(l, TurnAway(5*time.Second))) }()
	t.Cleanup(func() { _ = srv.Close() })
	return l.Addr().String()
}

func dial(t *testing.T, at, say string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := io.WriteString(c, say); err != nil {
		t.Fatal(err)
	}
	return c
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for range 500 {
		if is() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal(what)
}

func TestWhoIsTurnedAwayReadsWhy(t *testing.T) {
	d := New(Config{All: 2})
	hold := make(chan struct{})
	defer close(hold)
	at := serve(t, d, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hold }))
	for range 2 {
		dial(t, at, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	}
	eventually(t, "the door is not busy", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.crowds[strangers].byIdle.top == 0 && d.n() == 2
	})
	c := dial(t, at, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	got, err := io.ReadAll(c)
	if err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 503 ") || !strings.Contains(string(got), "Retry-After: 5\r\n") {
		t.Errorf("%q, %v", got, err)
	}
}

// Who sends a body byte by byte holds no place against others.
func TestASlowBodyMakesRoom(t *testing.T) {
	d := New(Config{All: 1})
	at := serve(t, d, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }))
	slow := dial(t, at, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nx")
	eventually(t, "the slow one is not idle", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.crowds[strangers].byIdle.top == 1
	})
	time.Sleep(50 * time.Millisecond) // its handler runs
	c := dial(t, at, "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")
	if got, err := io.ReadAll(c); err != nil || !strings.HasSuffix(string(got), "ok") {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := slow.Read(make([]byte, 1)); err == nil {
		t.Error("the slow one still has its connection")
	}
}
