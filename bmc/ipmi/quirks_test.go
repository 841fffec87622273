package ipmi

import (
	"bytes"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	bmcsim "github.com/bougou/go-ipmi/pkg/bmc"
	"github.com/bougou/go-ipmi/pkg/types"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
)

// control answers Chassis Control with a code.
func control(code byte) answerFunc {
	return func(netFn, cmd byte, _ []byte) (byte, []byte, bool) {
		return code, nil, netFn == netChassis && cmd == cmdChassisControl
	}
}

var quirkTests = map[string]func(t *testing.T){
	"boot-flags-expire": func(t *testing.T) {
		b := newBench(t)
		d := b.open(t)
		if err := d.SetBoot(t.Context(), bmc.Boot{Device: bmc.PXE, Mode: inventory.UEFI}); err != nil {
			t.Fatal(err)
		}
		if sent := b.sent(netChassis, cmdSetBoot); !bytes.Equal(sent[0], []byte{paramValidClear, 0x08}) {
			t.Errorf("the 60 s were not turned off: %x", sent)
		}
		b.answers(func(netFn, cmd byte, data []byte) (byte, []byte, bool) { // an old controller
			return 0x80, nil, netFn == netChassis && cmd == cmdSetBoot && data[0] != paramFlags
		})
		if err := d.SetBoot(t.Context(), bmc.Boot{Device: bmc.Disk, Mode: inventory.UEFI}); err != nil {
			t.Errorf("a controller without parameter 3: %v", err)
		}
	},
	"order-in-wrong-state": func(t *testing.T) {
		for _, code := range []byte{codeState, codeUnspecified} {
			b := newBench(t)
			b.answers(control(code))
			d := b.open(t)
			for _, a := range []bmc.Action{bmc.Off, bmc.Shutdown, bmc.Reset} {
				if err := d.SetPower(t.Context(), a); err != nil {
					t.Errorf("%s while off: %v", a, err)
				}
			}
			b.setOn(true)
			if err := d.SetPower(t.Context(), bmc.On); err != nil {
				t.Errorf("on while on: %v", err)
			}
			// It goes off by itself between the look and the order.
			b.answers(func(netFn, cmd byte, data []byte) (byte, []byte, bool) {
				if netFn == netChassis && cmd == cmdChassisControl {
					b.setOn(false)
				}
				return control(code)(netFn, cmd, data)
			})
			if err := d.SetPower(t.Context(), bmc.Off); err != nil {
				t.Errorf("off while it went off: %v", err)
			}
		}
	},
	"cycle-while-off": func(t *testing.T) {
		b := newBench(t)
		if err := b.open(t).SetPower(t.Context(), bmc.Cycle); err != nil || !b.isOn(t) {
			t.Errorf("a machine that was off is on: %v, %v", b.isOn(t), err)
		}
		if sent := b.sent(netChassis, cmdChassisControl); len(sent) != 1 || sent[0][0] != orders[bmc.On] {
			t.Errorf("orders: %x", sent)
		}
	},
	"reset-while-off": func(t *testing.T) {
		b := newBench(t)
		d := b.open(t)
		if err := d.SetPower(t.Context(), bmc.Reset); err != nil || len(b.sent(netChassis, cmdChassisControl)) != 0 {
			t.Errorf("a machine that is off was sent a reset: %v", err)
		}
	},
	"only-one-cipher": func(t *testing.T) {
		for _, id := range []types.CipherSuiteID{3, 17} {
			b := newBench(t, bmcsim.WithCipherSuites([]types.CipherSuiteID{id}))
			if _, err := b.open(t).Power(t.Context()); err != nil {
				t.Errorf("suite %d: %v", id, err)
			}
		}
	},
	"short-refusal": func(t *testing.T) {
		b := newBench(t, bmcsim.WithCipherSuites([]types.CipherSuiteID{3}))
		cut := func(p []byte, send func([]byte)) bool {
			q, err := parsePacket(p, 0)
			if err != nil || q.payload != payloadOpenResponse || q.body[1] == 0 {
				return false
			}
			send(plain(payloadOpenResponse, q.body[:2]))
			return true
		}
		b.conn.out.Store(&cut)
		d := b.open(t)
		d.tries = 1
		if _, err := d.Power(t.Context()); err != nil {
			t.Error(err)
		}
	},
	"none-is-an-override": func(t *testing.T) {
		b := newBench(t)
		d := b.open(t)
		for _, device := range []bmc.Device{bmc.PXE, bmc.None} {
			if err := d.SetBoot(t.Context(), bmc.Boot{Device: device, Mode: inventory.UEFI, IsPersistent: true}); err != nil {
				t.Fatal(err)
			}
		}
		sent := b.sent(netChassis, cmdSetBoot)
		if last := sent[len(sent)-1]; last[1]&flagValid != 0 {
			t.Errorf("the valid bit is set: %x", last)
		}
	},
	"slots-locked": func(t *testing.T) {
		b := newBench(t)
		b.answers(func(netFn, cmd byte, data []byte) (byte, []byte, bool) {
			return codeField, nil, netFn == netApp && cmd == cmdSetUserName && data[0] < 6
		})
		d := b.open(t)
		if err := d.CreateUser(t.Context(), "helper", canary); err != nil {
			t.Fatal(err)
		}
		if u, err := d.find(t.Context(), "helper"); err != nil || u.id != 6 {
			t.Errorf("%+v, %v", u, err)
		}
	},
	"password-rules": func(t *testing.T) {
		for name, op := range map[string]byte{"refused when it is set": passwordSet, "not kept": passwordTest} {
			b := newBench(t)
			var n atomic.Int64
			b.answers(func(netFn, cmd byte, data []byte) (byte, []byte, bool) {
				if netFn == netApp && cmd == cmdSetPassword && data[1] == op {
					n.Add(1)
					return 0x80, nil, true
				}
				return 0, nil, false
			})
			d := b.open(t)
			err := d.CreateUser(t.Context(), "helper", canary)
			if bmc.KindOf(err) != inventory.Invalid || n.Load() == 0 {
				t.Errorf("%s: %v", name, err)
			}
			noSecret(t, err)
			if users, err := d.Users(t.Context()); err != nil || len(users) != 1 {
				t.Errorf("%s: what was begun is not undone: %+v, %v", name, users, err)
			}
		}
	},
	"uefi-bit": func(t *testing.T) {
		for vendor, want := range map[uint32]byte{ianaSupermicro: 0xa0, 47488: 0xa0, ianaDell: 0x80} {
			b := newBench(t, func(b *bmcsim.BMC) { b.Info.ManufacturerID = vendor })
			if err := b.open(t).SetBoot(t.Context(), bmc.Boot{Device: bmc.PXE}); err != nil {
				t.Fatal(err)
			}
			sent := b.sent(netChassis, cmdSetBoot)
			if got := sent[len(sent)-1][1]; got != want {
				t.Errorf("vendor %d: flags %02x, want %02x", vendor, got, want)
			}
		}
	},
	"valid-bit-hidden": func(t *testing.T) {
		for vendor, want := range map[uint32]bmc.Device{ianaOpenIPMI: bmc.PXE, ianaDell: bmc.None} {
			b := newBench(t, func(b *bmcsim.BMC) { b.Info.ManufacturerID = vendor })
			b.answers(func(netFn, cmd byte, _ []byte) (byte, []byte, bool) {
				return 0, []byte{1, paramFlags, 0, 0x04, 0, 0, 0}, netFn == netChassis && cmd == cmdGetBoot
			})
			if got, err := b.open(t).Boot(t.Context()); err != nil || got.Device != want {
				t.Errorf("vendor %d: %+v, %v", vendor, got, err)
			}
		}
	},
}

func TestShutdownThatIsNotKnownSaysWhatToDo(t *testing.T) {
	b := newBench(t)
	b.setOn(true)
	b.answers(control(codeField))
	err := b.open(t).SetPower(t.Context(), bmc.Shutdown)
	var e *inventory.Error
	if !errors.As(err, &e) || e.Kind != inventory.Invalid || !strings.Contains(e.Hint, "use off") {
		t.Errorf("%v", err)
	}
}

func TestEveryQuirkHasItsTestAndSource(t *testing.T) {
	seen := map[string]bool{}
	for _, q := range quirks {
		seen[q.name] = true
		test, ok := quirkTests[q.name]
		if !ok || q.source == "" || q.symptom == "" {
			t.Errorf("quirk %s lacks a test, a source or a symptom", q.name)
			continue
		}
		if (q.traits != traits{}) != (len(q.vendors) > 0) {
			t.Errorf("quirk %s: vendors and traits go together", q.name)
		}
		t.Run(q.name, test)
	}
	for name := range quirkTests {
		if !seen[name] {
			t.Errorf("there is no quirk %s", name)
		}
	}
}
