package ipmi

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	bmcsim "github.com/bougou/go-ipmi/pkg/bmc"
	"github.com/bougou/go-ipmi/pkg/hal/mock"
	"github.com/bougou/go-ipmi/pkg/handlers"
	"github.com/bougou/go-ipmi/pkg/server"
	"github.com/bougou/go-ipmi/pkg/types"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sleep"
)

const (
	user   = "slipway"
	canary = "canary-7Q!secret"
)

// answerFunc answers a command in place of the server; ok is false to let it be.
type answerFunc func(netFn, cmd byte, data []byte) (code byte, resp []byte, ok bool)

// bench is go-ipmi's own server on loopback: another implementation of the protocol than the one under test.
type bench struct {
	addr string
	hal  *mock.HAL
	bmc  *bmcsim.BMC
	conn *faulty
	srv  *server.Server

	mu     sync.Mutex
	answer answerFunc
	asked  [][]byte // netFn, cmd and data of all commands
	rakp1N atomic.Int64
	ids    sync.Map // of sessions
}

// faulty is a socket that can lose and add datagrams.
type faulty struct {
	net.PacketConn
	in  atomic.Pointer[func(b []byte) (isLost bool)]
	out atomic.Pointer[func(b []byte, send func([]byte)) (isLost bool)]
}

func (f *faulty) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		n, addr, err := f.PacketConn.ReadFrom(b)
		if in := f.in.Load(); err == nil && in != nil && (*in)(b[:n]) {
			continue
		}
		return n, addr, err
	}
}

func (f *faulty) WriteTo(b []byte, addr net.Addr) (int, error) {
	send := func(p []byte) { f.PacketConn.WriteTo(p, addr) }
	if out := f.out.Load(); out != nil && (*out)(b, send) {
		return len(b), nil
	}
	return f.PacketConn.WriteTo(b, addr)
}

func newBench(t testing.TB, opts ...bmcsim.Option) *bench {
	t.Helper()
	return benchOn(t, "127.0.0.1:0", opts...)
}

func benchOn(t testing.TB, addr string, opts ...bmcsim.Option) *bench {
	t.Helper()
	c, err := net.ListenPacket("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{addr: c.LocalAddr().String(), hal: mock.New(), conn: &faulty{PacketConn: c}}
	info := bmcsim.DeviceInfo{DeviceID: 0x20, FirmwareMajor: 3, FirmwareMinor: 0x45, IPMIVersion: 0x02, ManufacturerID: ianaDell, ProductID: 0x100}
	b.bmc = bmcsim.New(info, [16]byte{0xaa, 1: 0xbb}, b.hal, opts...)
	b.addUser(t, 2, user, canary, bmcsim.PrivilegeLevelAdministrator)
	reg := handlers.NewRegistry()
	reg.Use(b.middleware)
	handlers.RegisterAllHandlers(reg)
	b.srv = server.NewServer(b.bmc, b.conn, server.WithHandlerRegistry(reg))
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	go func() { defer close(done); b.srv.Serve(ctx) }()
	t.Cleanup(func() { cancel(); b.srv.Close(); <-done })
	in := func(p []byte) bool {
		if len(p) > 5 && p[4] == formatRMCPPlus && p[5] == payloadRAKP1 {
			b.rakp1N.Add(1)
		}
		if q, err := parsePacket(p, 0); err == nil && q.session != 0 {
			b.ids.Store(q.session, true)
		}
		return false
	}
	b.conn.in.Store(&in)
	return b
}

func (b *bench) addUser(t testing.TB, id uint8, name, password string, level bmcsim.PrivilegeLevel) {
	t.Helper()
	if _, err := b.bmc.Users.Add(id, name); err != nil {
		t.Fatal(err)
	}
	err := b.bmc.Users.Update(id, func(u *bmcsim.User) error {
		u.SetPassword([]byte(password))
		u.Enabled = true
		u.ChannelAccess[1] = bmcsim.UserChannelAccess{MaxPrivilege: level, Enabled: true}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (b *bench) middleware(next handlers.Handler) handlers.Handler {
	return handlers.HandlerFunc(func(ctx context.Context, h *handlers.HandlerContext, data []byte) ([]byte, types.CompletionCode, error) {
		netFn, cmd := byte(h.Command.NetFn), h.Command.ID
		b.mu.Lock()
		b.asked = append(b.asked, append([]byte{netFn, cmd}, data...))
		answer := b.answer
		b.mu.Unlock()
		if answer != nil {
			if code, resp, ok := answer(netFn, cmd, data); ok {
				return resp, types.CompletionCode(code), nil
			}
		}
		return next.Handle(ctx, h, data)
	})
}

func (b *bench) answers(f answerFunc) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answer = f
}

// sent returns the data of all commands of a kind.
func (b *bench) sent(netFn, cmd byte) (all [][]byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range b.asked {
		if a[0] == netFn && a[1] == cmd {
			all = append(all, a[2:])
		}
	}
	return all
}

func (b *bench) isOn(t testing.TB) bool {
	t.Helper()
	on, err := b.hal.Chassis().PowerState(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return on
}

func (b *bench) setOn(on bool) { b.hal.Chassis().SetPower(context.Background(), on) }

func (b *bench) target() bmc.Target {
	return bmc.Target{BMC: inventory.BMC{Driver: inventory.IPMI, Address: b.addr, Username: user}, Password: canary}
}

// open makes a driver that is as patient as loopback needs.
func open(t testing.TB, target bmc.Target) *driver {
	t.Helper()
	made, err := Open(target)
	if err != nil {
		t.Fatal(err)
	}
	d := made.(*driver)
	d.wait, d.busyWait = 40*time.Millisecond, time.Millisecond
	t.Cleanup(func() { d.Close() })
	return d
}

func (b *bench) open(t testing.TB) *driver {
	t.Helper()
	return open(t, b.target())
}

// hurry is the time of Converge, in which a wait lasts a hundredth.
type hurry struct{ start time.Time }

func (h hurry) Now() time.Time { return h.start.Add(100 * time.Since(h.start)) }

func (h hurry) Sleep(ctx context.Context, d time.Duration) error { return sleep.For(ctx, d/100) }

func converge(ctx context.Context, d bmc.Driver, a bmc.Action, want inventory.PowerState) error {
	return bmc.Converge(ctx, d, a, want, hurry{time.Now()}, bmc.Pace{Every: time.Second, For: 10 * time.Second, Tries: 3, Backoff: time.Second})
}
