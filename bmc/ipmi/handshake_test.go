package ipmi

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	bmcsim "github.com/bougou/go-ipmi/pkg/bmc"
	"github.com/bougou/go-ipmi/pkg/types"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
)

// isOpenRefusal returns the body of a refusal to open a session.
func isOpenRefusal(p []byte) ([]byte, bool) {
	q, err := parsePacket(p, 0)
	if err != nil || q.payload != payloadOpenResponse || len(q.body) < 2 || q.body[1] == 0 {
		return nil, false
	}
	return append([]byte(nil), q.body...), true
}

func TestALateRefusalOfOneCipherSuiteIsNotTakenForAnother(t *testing.T) {
	b := newBench(t, bmcsim.WithCipherSuites([]types.CipherSuiteID{3}))
	out := func(p []byte, send func([]byte)) bool {
		body, isRefusal := isOpenRefusal(p)
		copied := append([]byte(nil), p...)
		switch q, err := parsePacket(p, 0); {
		case isRefusal: // as a busy controller does that was asked twice
			short := plain(payloadOpenResponse, body[:2])
			send(short)
			time.AfterFunc(10*time.Millisecond, func() { send(short) })
			return true
		case err == nil && q.payload == payloadOpenResponse:
			time.AfterFunc(25*time.Millisecond, func() { send(copied) })
			return true
		}
		return false
	}
	b.conn.out.Store(&out)
	if _, err := b.open(t).Power(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestARefusalThatPassesIsNotFinal(t *testing.T) {
	refusing := func(b *bench, times int64) {
		var n atomic.Int64
		out := func(p []byte, send func([]byte)) bool {
			q, err := parsePacket(p, 0)
			if err != nil || q.payload != payloadOpenResponse || n.Add(1) > times {
				return false
			}
			send(plain(payloadOpenResponse, []byte{q.body[0], 0x04}))
			return true
		}
		b.conn.out.Store(&out)
	}
	t.Run("both suites are refused once", func(t *testing.T) {
		b := newBench(t)
		refusing(b, 2)
		if _, err := b.open(t).Power(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("what worked before is refused for a while", func(t *testing.T) {
		b := newBench(t)
		if _, err := b.open(t).Power(t.Context()); err != nil {
			t.Fatal(err)
		}
		refusing(b, 4)
		_, err := b.open(t).Power(t.Context())
		if bmc.KindOf(err) != inventory.Unavailable || !strings.Contains(err.Error(), "took before") {
			t.Fatalf("%s %v", bmc.KindOf(err), err)
		}
		if err := converge(t.Context(), b.open(t), bmc.On, inventory.PowerOn); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("what never worked is refused for good", func(t *testing.T) {
		b := newBench(t)
		refusing(b, 1<<30)
		if _, err := b.open(t).Power(t.Context()); bmc.KindOf(err) != inventory.Invalid {
			t.Fatalf("%s %v", bmc.KindOf(err), err)
		}
	})
	t.Run("the privileges cannot be raised while it is busy", func(t *testing.T) {
		for _, code := range []byte{codeBusy, codeInit, codeTimeout} {
			b := newBench(t)
			var n atomic.Int64
			b.answers(func(netFn, cmd byte, _ []byte) (byte, []byte, bool) {
				return code, nil, netFn == netApp && cmd == cmdSetLevel && n.Add(1) <= 2
			})
			if _, err := b.open(t).Power(t.Context()); err != nil {
				t.Errorf("0x%02x: %v", code, err)
			}
		}
	})
	t.Run("the privileges cannot be raised for as long as it is busy", func(t *testing.T) {
		b := newBench(t)
		b.answers(func(netFn, cmd byte, _ []byte) (byte, []byte, bool) {
			return codeBusy, nil, netFn == netApp && cmd == cmdSetLevel
		})
		if _, err := b.open(t).Power(t.Context()); bmc.KindOf(err) != inventory.Unavailable {
			t.Errorf("%s %v", bmc.KindOf(err), err)
		}
	})
	t.Run("the last message of the handshake is lost, and refused when it comes again", func(t *testing.T) {
		b := newBench(t)
		var n atomic.Int64
		out := func(p []byte, send func([]byte)) bool {
			q, err := parsePacket(p, 0)
			if err != nil || q.payload != payloadRAKP4 {
				return false
			}
			switch n.Add(1) {
			case 1:
				return true
			case 2:
				send(plain(payloadRAKP4, []byte{q.body[0], 0x02}))
				return true
			}
			return false
		}
		b.conn.out.Store(&out)
		if _, err := b.open(t).Power(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestEachMessageOfTheHandshakeHasItsOwnTag(t *testing.T) {
	b := newBench(t)
	var mu sync.Mutex
	var tags []byte
	in := func(p []byte) bool {
		if q, err := parsePacket(p, 0); err == nil && q.payload >= payloadOpenRequest && q.payload <= payloadRAKP4 {
			mu.Lock()
			tags = append(tags, q.body[0])
			mu.Unlock()
		}
		return false
	}
	b.conn.in.Store(&in)
	if _, err := b.open(t).Power(t.Context()); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(tags) != 3 || tags[1] != tags[0]+1 || tags[2] != tags[1]+1 {
		t.Errorf("tags %v", tags)
	}
}

func TestTheSuiteThatWorkedIsAskedForFirst(t *testing.T) {
	var m memory
	both := []int{17, 3}
	if order, ok := m.order("a", both); ok || order[0] != 17 {
		t.Error(order, ok)
	}
	m.note("a", 3)
	if order, ok := m.order("a", both); !ok || order[0] != 3 || order[1] != 17 {
		t.Error(order, ok)
	}
	if order, ok := m.order("a", []int{17}); ok || len(order) != 1 { // the admin chose another
		t.Error(order, ok)
	}
	for i := range maxTaken + 10 {
		m.note(string(rune(i+1000)), 17)
	}
	if len(m.suites) > maxTaken {
		t.Errorf("%d controllers are remembered", len(m.suites))
	}
}
