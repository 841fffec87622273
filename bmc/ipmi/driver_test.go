package ipmi

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"runtime"
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

// refuse answers Chassis Control with a code, as often as it is told.
func refuse(code byte, times int64) answerFunc {
	var n atomic.Int64
	return func(netFn, cmd byte, _ []byte) (byte, []byte, bool) {
		return code, nil, netFn == netChassis && cmd == cmdChassisControl && n.Add(1) <= times
	}
}

// lose drops datagrams in a pattern.
func lose(pattern func(n int64) bool) *func([]byte, func([]byte)) bool {
	var n atomic.Int64
	f := func([]byte, func([]byte)) bool { return pattern(n.Add(1)) }
	return &f
}

func TestPowerConvergesOrStopsWithTheReason(t *testing.T) {
	const always = 1 << 30
	cases := map[string]struct {
		fault func(t *testing.T, b *bench, target *bmc.Target)
		kind  inventory.Kind // "" when it converges
		text  string
		// isDone marks faults that keep an order from being confirmed, not from being carried out.
		isDone bool
	}{
		"a healthy controller converges": {},
		"every second answer lost converges": {fault: func(_ *testing.T, b *bench, _ *bmc.Target) {
			b.conn.out.Store(lose(func(n int64) bool { return n%2 == 1 }))
		}},
		"the first six answers lost converges": {fault: func(_ *testing.T, b *bench, _ *bmc.Target) {
			b.conn.out.Store(lose(func(n int64) bool { return n <= 6 }))
		}},
		"a controller that is busy twice":         {fault: func(_ *testing.T, b *bench, _ *bmc.Target) { b.answers(refuse(codeBusy, 2)) }},
		"a controller that is starting":           {fault: func(_ *testing.T, b *bench, _ *bmc.Target) { b.answers(refuse(codeInit, 5)) }},
		"a controller that is busy for ever":      {fault: func(_ *testing.T, b *bench, _ *bmc.Target) { b.answers(refuse(codeBusy, always)) }, kind: inventory.Unavailable, text: "busy (0xC0)"},
		"an order that is ignored":                {fault: func(_ *testing.T, b *bench, _ *bmc.Target) { b.answers(refuse(0, always)) }, kind: inventory.Unavailable, text: "still off"},
		"an order that is ignored once converges": {fault: func(_ *testing.T, b *bench, _ *bmc.Target) { b.answers(refuse(0, 1)) }},
		"an order that is not known":              {fault: func(_ *testing.T, b *bench, _ *bmc.Target) { b.answers(refuse(0xc1, always)) }, kind: inventory.Invalid, text: "does not know"},
		"an order that is not allowed":            {fault: func(_ *testing.T, b *bench, _ *bmc.Target) { b.answers(refuse(codeNotPermitted, always)) }, kind: inventory.Unauthorized, text: "may not"},
		"an order that does not fit the state":    {fault: func(_ *testing.T, b *bench, _ *bmc.Target) { b.answers(refuse(codeState, always)) }, kind: inventory.Unavailable, text: "present state"},
		"a wrong password":                        {fault: func(_ *testing.T, _ *bench, t *bmc.Target) { t.Password = canary[1:] }, kind: inventory.Unauthorized, text: "with another password"},
		"an unknown user":                         {fault: func(_ *testing.T, _ *bench, t *bmc.Target) { t.Username = "nobody" }, kind: inventory.Unauthorized, text: "or not at all"},
		"an address without a controller":         {fault: func(_ *testing.T, _ *bench, t *bmc.Target) { t.Address = "127.0.0.1:1" }, kind: inventory.Unavailable, text: "does not answer"},
		"a controller without answers":            {fault: func(_ *testing.T, b *bench, _ *bmc.Target) { b.conn.out.Store(lose(func(int64) bool { return true })) }, kind: inventory.Unavailable, text: "does not answer"},
		"a short answer": {fault: func(_ *testing.T, b *bench, _ *bmc.Target) {
			b.answers(func(netFn, cmd byte, _ []byte) (byte, []byte, bool) {
				return 0, []byte{1}, netFn == netChassis && cmd == cmdChassisStatus
			})
		}, kind: inventory.Unavailable, text: "too little", isDone: true},
		"a state that cannot be read until it is on": {fault: func(t *testing.T, b *bench, _ *bmc.Target) {
			b.answers(func(netFn, cmd byte, _ []byte) (byte, []byte, bool) {
				return codeUnspecified, nil, netFn == netChassis && cmd == cmdChassisStatus && !b.isOn(t)
			})
		}},
		"a controller that forgets its sessions": {fault: func(_ *testing.T, b *bench, _ *bmc.Target) {
			var once sync.Once
			b.answers(func(netFn, cmd byte, _ []byte) (byte, []byte, bool) {
				if netFn == netChassis && cmd == cmdChassisControl {
					once.Do(func() { go b.forget() })
				}
				return 0, nil, false
			})
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			target := b.target()
			if c.fault != nil {
				c.fault(t, b, &target)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			err := converge(ctx, open(t, target), bmc.On, inventory.PowerOn)
			if c.kind == "" {
				if err != nil || !b.isOn(t) {
					t.Fatalf("did not converge: %v", err)
				}
				return
			}
			if bmc.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.text) {
				t.Fatalf("got %s %v, want %s ... %s", bmc.KindOf(err), err, c.kind, c.text)
			}
			if b.isOn(t) && !c.isDone {
				t.Error("the machine is on all the same")
			}
			noSecret(t, err)
		})
	}
}

// forget ends all sessions, as a restart of the controller does.
func (b *bench) forget() {
	b.ids.Range(func(id, _ any) bool { b.bmc.Sessions.Close(id.(uint32)); return true })
}

// noSecret fails when an error shows a password in any of its spellings.
func noSecret(t *testing.T, err error) {
	t.Helper()
	text := fmt.Sprintf("%v %+v %#v", err, err, err)
	if inner := fmt.Sprintf("%v %+v %#v", login{password: canary}, &driver{login: login{password: canary}}, login{password: canary}); strings.Contains(inner, "canary") {
		t.Errorf("a driver prints its password: %s", inner)
	}
	if e, ok := err.(*inventory.Error); ok {
		text += e.Msg + e.Hint + fmt.Sprintf("%#v", e.Err)
		if e.Kind != inventory.Invalid && e.Kind != inventory.NotFound && e.Hint == "" && !strings.Contains(text, "present state") {
			t.Errorf("no hint: %v", err)
		}
	}
	if strings.Contains(text, "canary") || strings.Contains(text, canary[1:]) {
		t.Errorf("the error shows the password: %s", text)
	}
}

func TestWrongPasswordIsTriedOnceOnly(t *testing.T) {
	b := newBench(t)
	target := b.target()
	target.Password = "wrong"
	err := converge(t.Context(), open(t, target), bmc.On, inventory.PowerOn)
	if bmc.KindOf(err) != inventory.Unauthorized || b.rakp1N.Load() != 1 {
		t.Errorf("%d logins, %v; controllers lock accounts after a few", b.rakp1N.Load(), err)
	}
}

func TestForgedAnswersAreNotBelieved(t *testing.T) {
	b := newBench(t)
	d := b.open(t)
	if _, err := d.Power(t.Context()); err != nil {
		t.Fatal(err)
	}
	var forgedN atomic.Int64
	local := d.s.local
	forge := func(p []byte, send func([]byte)) bool {
		on := append([]byte{addrConsole, (netChassis | 1) << 2, 0, addrBMC, 0, cmdChassisStatus, 0, 1, 0, 0}, 0)
		on[2] = checksum(on[:2])
		for seq := range byte(64) {
			on[4] = seq << 2
			on[10] = checksum(on[3:10])
			send(append(header(payloadIPMI, local, 1, len(on)), on...)) // in the clear
			bare := append(header(payloadIPMI, 0, 0, len(on)), on...)
			send(bare)
			forgedN.Add(2)
		}
		for i := 16; i < len(p); i++ { // the true answer, with one bit turned
			bad := bytes.Clone(p)
			bad[i] ^= 0x01
			send(bad)
		}
		for n := range len(p) {
			send(p[:n])
		}
		return false
	}
	b.conn.out.Store(&forge)
	is, err := d.Power(t.Context())
	if err != nil || is != inventory.PowerOff || forgedN.Load() == 0 {
		t.Errorf("power is %s, %v; a forged answer was believed", is, err)
	}
}

func TestCallsEndWithTheirContext(t *testing.T) {
	c, err := net.ListenPacket("udp", "127.0.0.1:0") // takes everything and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	before := runtime.NumGoroutine()
	d := open(t, bmc.Target{BMC: inventory.BMC{Address: c.LocalAddr().String(), Username: user}, Password: canary})
	d.wait = time.Hour
	calls := map[string]func(context.Context) error{
		"power":       func(ctx context.Context) error { _, err := d.Power(ctx); return err },
		"set power":   func(ctx context.Context) error { return d.SetPower(ctx, bmc.Off) },
		"set boot":    func(ctx context.Context) error { return d.SetBoot(ctx, bmc.Boot{Device: bmc.PXE}) },
		"boot":        func(ctx context.Context) error { _, err := d.Boot(ctx); return err },
		"locate":      func(ctx context.Context) error { return d.Locate(ctx, true) },
		"sensors":     func(ctx context.Context) error { _, err := d.Sensors(ctx); return err },
		"health":      func(ctx context.Context) error { _, err := d.Health(ctx); return err },
		"log":         func(ctx context.Context) error { _, err := d.Log(ctx, 5); return err },
		"clear log":   func(ctx context.Context) error { return d.ClearLog(ctx) },
		"inventory":   func(ctx context.Context) error { _, err := d.Inventory(ctx); return err },
		"users":       func(ctx context.Context) error { _, err := d.Users(ctx); return err },
		"credentials": func(ctx context.Context) error { return d.CheckCredentials(ctx) },
		"password":    func(ctx context.Context) error { return d.SetPassword(ctx, user, canary) },
		"create user": func(ctx context.Context) error { return d.CreateUser(ctx, "other", canary) },
		"delete user": func(ctx context.Context) error { return d.DeleteUser(ctx, "other") },
		"console":     func(ctx context.Context) error { _, err := d.Console(ctx); return err },
	}
	for name, call := range calls {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		start := time.Now()
		err := call(ctx)
		cancel()
		if took := time.Since(start); bmc.KindOf(err) != inventory.Unavailable || took > 5*time.Second {
			t.Errorf("%s: %v after %s", name, err, took)
		}
		noSecret(t, err)
	}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Power(done); bmc.KindOf(err) != inventory.Unavailable {
		t.Errorf("with a context that is over: %v", err)
	}
	d.Close()
	for end := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before+1; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines more than before", runtime.NumGoroutine()-before)
		}
	}
}

func TestForgottenSessionIsOpenedAnew(t *testing.T) {
	b := newBench(t)
	d := b.open(t)
	for want := range int64(3) {
		if _, err := d.Power(t.Context()); err != nil || d.usedN.Load() != want+1 {
			t.Fatalf("%v, %d sessions", err, d.usedN.Load())
		}
		b.forget() // as a controller that was restarted
		if n := b.bmc.Sessions.Count(); n != 0 {
			t.Fatalf("%d sessions are not forgotten", n)
		}
	}
}

// inSession reports whether a datagram belongs to a session that is open.
func inSession(p []byte) (seq uint32, ok bool) {
	q, err := parsePacket(p, 0)
	if err != nil || q.session == 0 {
		return 0, false
	}
	return binary.LittleEndian.Uint32(p[10:]), true
}

func TestQuestionsAreSentAgainUnderNewNumbers(t *testing.T) {
	b := newBench(t)
	d := b.open(t)
	if _, err := d.Power(t.Context()); err != nil {
		t.Fatal(err)
	}
	seen := map[uint32]bool{}
	strict := func(p []byte) bool { // as controllers are, by IPMI 2.0, 6.12.13
		seq, ok := inSession(p)
		isOld := seen[seq]
		seen[seq] = true
		return ok && isOld
	}
	b.conn.in.Store(&strict)
	b.conn.out.Store(lose(func(n int64) bool { return n == 1 }))
	if _, err := d.Power(t.Context()); err != nil || d.usedN.Load() != 1 {
		t.Errorf("one answer was lost: %v, %d sessions", err, d.usedN.Load())
	}
}

func TestCallsEndWithTheirContextInsideASession(t *testing.T) {
	for name, letThrough := range map[string]int64{"at the first question": 1, "at the second": 2} {
		b := newBench(t)
		var n atomic.Int64
		mute := func(p []byte, _ func([]byte)) bool {
			_, ok := inSession(p)
			return ok && n.Add(1) > letThrough // the first answer is to the handshake's last question
		}
		b.conn.out.Store(&mute)
		d := b.open(t)
		d.wait = time.Hour
		if letThrough > 1 {
			if _, err := d.Power(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		done := make(chan error, 1)
		go func() { _, err := d.Power(ctx); done <- err }()
		select {
		case err := <-done:
			if bmc.KindOf(err) != inventory.Unavailable {
				t.Errorf("%s: %v", name, err)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: the call outlives its context", name)
		}
		cancel()
	}
}

func TestDeadControllerCostsOnlyItsOwnGoroutine(t *testing.T) {
	dead, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer dead.Close()
	ctx, cancel := context.WithCancel(t.Context())
	stuck := make(chan error, 1)
	d := open(t, bmc.Target{BMC: inventory.BMC{Address: dead.LocalAddr().String()}})
	d.wait = time.Hour
	go func() { _, err := d.Power(ctx); stuck <- err }()
	var wg sync.WaitGroup
	for range 16 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if err := converge(t.Context(), newBench(t).open(t), bmc.On, inventory.PowerOn); err != nil {
				t.Error(err)
			}
		}()
	}
	wg.Wait()
	select {
	case err := <-stuck:
		t.Errorf("the dead one answered: %v", err)
	default:
	}
	cancel()
	if err := <-stuck; bmc.KindOf(err) != inventory.Unavailable {
		t.Error(err)
	}
}

func TestSessionIsKeptThenClosed(t *testing.T) {
	b := newBench(t)
	d := b.open(t)
	d.keep = 100 * time.Millisecond
	for range 5 {
		if _, err := d.Power(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := d.usedN.Load(); n != 1 {
		t.Errorf("%d sessions for five calls", n)
	}
	until(t, "the idle session is closed", func() bool { return b.bmc.Sessions.Count() == 0 })
	if _, err := d.Power(t.Context()); err != nil || d.usedN.Load() != 2 {
		t.Errorf("after a pause: %v, %d sessions", err, d.usedN.Load())
	}
	d.Close()
	until(t, "Close ends the session", func() bool { return b.bmc.Sessions.Count() == 0 })
	if _, err := d.Power(t.Context()); err == nil {
		t.Error("a closed driver still works")
	}
}

// until waits for something that another goroutine brings about.
func until(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

func TestOpenChecksWhatItIsGiven(t *testing.T) {
	long := strings.Repeat("x", 21)
	cases := map[string]struct {
		target  bmc.Target
		address string // "" when it is refused
	}{
		"a bare IPv4 address":         {bmc.Target{BMC: inventory.BMC{Address: "10.0.0.5"}}, "10.0.0.5:623"},
		"an address with a port":      {bmc.Target{BMC: inventory.BMC{Address: "10.0.0.5:6230"}}, "10.0.0.5:6230"},
		"a bare IPv6 address":         {bmc.Target{BMC: inventory.BMC{Address: "fd00::5"}}, "[fd00::5]:623"},
		"an IPv6 address with a port": {bmc.Target{BMC: inventory.BMC{Address: "[fd00::5]:99"}}, "[fd00::5]:99"},
		"a name":                      {bmc.Target{BMC: inventory.BMC{Address: "bmc-1.rack"}}, "bmc-1.rack:623"},
		"the option port":             {bmc.Target{BMC: inventory.BMC{Address: "10.0.0.5", Options: map[string]string{"port": "7"}}}, "10.0.0.5:7"},
		"all options":                 {bmc.Target{BMC: inventory.BMC{Address: "h", Options: map[string]string{"cipher": "3", "privilege": "operator"}}}, "h:623"},
		"no address":                  {bmc.Target{}, ""},
		"a URL":                       {bmc.Target{BMC: inventory.BMC{Address: "https://10.0.0.5"}}, ""},
		"a port of words":             {bmc.Target{BMC: inventory.BMC{Address: "h:ipmi"}}, ""},
		"a port of 0":                 {bmc.Target{BMC: inventory.BMC{Address: "h", Options: map[string]string{"port": "0"}}}, ""},
		"a cipher without keys":       {bmc.Target{BMC: inventory.BMC{Address: "h", Options: map[string]string{"cipher": "0"}}}, ""},
		"an unknown option":           {bmc.Target{BMC: inventory.BMC{Address: "h", Options: map[string]string{"chiper": "3"}}}, ""},
		"a password of 21 signs":      {bmc.Target{BMC: inventory.BMC{Address: "h"}, Password: long}, ""},
		"a user of 17 signs":          {bmc.Target{BMC: inventory.BMC{Address: "h", Username: long[:17]}}, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			made, err := Open(c.target)
			if c.address == "" {
				if bmc.KindOf(err) != inventory.Invalid || strings.Contains(fmt.Sprintf("%+v", err), long) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil || made.(*driver).address != c.address {
				t.Errorf("got %v, %v", made, err)
			}
		})
	}
}

func TestOperatorMaySwitchPowerWhenToldSo(t *testing.T) {
	b := newBench(t)
	b.addUser(t, 3, "oper", canary, bmcsim.PrivilegeLevelOperator)
	target := b.target()
	target.Username = "oper"
	if err := converge(t.Context(), open(t, target), bmc.On, inventory.PowerOn); bmc.KindOf(err) != inventory.Unauthorized {
		t.Errorf("as administrator: %v", err)
	}
	target.Options = map[string]string{"privilege": "operator"}
	d := open(t, target)
	if err := converge(t.Context(), d, bmc.On, inventory.PowerOn); err != nil {
		t.Errorf("as operator: %v", err)
	}
	if err := d.CheckCredentials(t.Context()); bmc.KindOf(err) != inventory.Unauthorized {
		t.Errorf("an operator passes as administrator: %v", err)
	}
}

func TestCiphers(t *testing.T) {
	for name, c := range map[string]struct {
		has    types.CipherSuiteID
		option string
		ok     bool
	}{
		"17 is taken where it is all there is": {17, "", true},
		"3 is taken where it is all there is":  {3, "", true},
		"17 can be demanded":                   {3, "17", false},
		"3 can be demanded":                    {17, "3", false},
		"no encryption is not accepted":        {2, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			target := newBench(t, bmcsim.WithCipherSuites([]types.CipherSuiteID{c.has})).target()
			if c.option != "" {
				target.Options = map[string]string{"cipher": c.option}
			}
			_, err := open(t, target).Power(t.Context())
			if c.ok && err != nil || !c.ok && bmc.KindOf(err) != inventory.Invalid {
				t.Error(err)
			}
		})
	}
}

func BenchmarkPower(b *testing.B) {
	d := newBench(b).open(b)
	d.wait = time.Second
	for b.Loop() {
		if _, err := d.Power(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLoginAndPower(b *testing.B) {
	d := newBench(b).open(b)
	d.wait = time.Second
	for b.Loop() {
		if _, err := d.Power(b.Context()); err != nil {
			b.Fatal(err)
		}
		d.drop()
	}
}
