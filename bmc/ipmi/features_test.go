package ipmi

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	bmcsim "github.com/bougou/go-ipmi/pkg/bmc"
	"github.com/bougou/go-ipmi/pkg/hal/mock"
	"github.com/bougou/go-ipmi/pkg/types"
	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
)

func TestBootDevicesAreSetAndReadBack(t *testing.T) {
	cases := map[string]struct {
		boot  bmc.Boot
		flags []byte // as sent
	}{
		"PXE once by UEFI":         {bmc.Boot{Device: bmc.PXE, Mode: inventory.UEFI}, []byte{0xa0, 0x04}},
		"PXE for ever by BIOS":     {bmc.Boot{Device: bmc.PXE, Mode: inventory.BIOS, IsPersistent: true}, []byte{0xc0, 0x04}},
		"the disk for ever":        {bmc.Boot{Device: bmc.Disk, Mode: inventory.UEFI, IsPersistent: true}, []byte{0xe0, 0x08}},
		"a CD":                     {bmc.Boot{Device: bmc.Virtual, Mode: inventory.BIOS}, []byte{0x80, 0x14}},
		"the setup of the machine": {bmc.Boot{Device: bmc.Setup, Mode: inventory.UEFI}, []byte{0xa0, 0x18}},
		"no override":              {bmc.Boot{Device: bmc.None}, []byte{0x00, 0x00}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			d := b.open(t)
			if err := d.SetBoot(t.Context(), c.boot); err != nil {
				t.Fatal(err)
			}
			sent := b.sent(netChassis, cmdSetBoot)
			if diff := cmp.Diff(append([]byte{paramFlags}, append(c.flags, 0, 0, 0)...), sent[len(sent)-1]); diff != "" {
				t.Errorf("flags: %s", diff)
			}
			got, err := d.Boot(t.Context())
			if diff := cmp.Diff(c.boot, got); err != nil || diff != "" {
				t.Errorf("read back: %v %s", err, diff)
			}
		})
	}
}

func TestModeStaysWhenNoneIsAsked(t *testing.T) {
	d := newBench(t).open(t)
	for _, mode := range []inventory.Firmware{inventory.UEFI, inventory.BIOS} {
		for _, m := range []inventory.Firmware{mode, ""} {
			if err := d.SetBoot(t.Context(), bmc.Boot{Device: bmc.PXE, Mode: m}); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := d.Boot(t.Context()); err != nil || got.Mode != mode {
			t.Errorf("mode %s became %s, %v", mode, got.Mode, err)
		}
	}
}

func TestHTTPBootIsRefusedWithAdvice(t *testing.T) {
	err := newBench(t).open(t).SetBoot(t.Context(), bmc.Boot{Device: bmc.HTTP, URI: "http://10.0.0.1/boot.efi"})
	e, ok := err.(*inventory.Error)
	if !ok || e.Kind != inventory.Invalid || !strings.Contains(e.Hint, "use pxe") {
		t.Errorf("%#v", err)
	}
}

func TestBootDeviceThatIsNotKeptIsAnError(t *testing.T) {
	b := newBench(t)
	b.answers(func(netFn, cmd byte, data []byte) (byte, []byte, bool) {
		return 0, nil, netFn == netChassis && cmd == cmdSetBoot && data[0] == paramFlags
	})
	b.hal.Chassis().SetBootFlags(t.Context(), &types.BootOptionParam_BootFlags{BootFlagsValid: true, BootDeviceSelector: 2})
	err := b.open(t).SetBoot(t.Context(), bmc.Boot{Device: bmc.PXE, Mode: inventory.UEFI})
	if bmc.KindOf(err) != inventory.Unavailable || !strings.Contains(err.Error(), "did not keep") {
		t.Error(err)
	}
}

func TestIdentifyLight(t *testing.T) {
	b := newBench(t)
	d := b.open(t)
	if err := d.Locate(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	b.answers(func(netFn, cmd byte, data []byte) (byte, []byte, bool) {
		return codeLength, nil, netFn == netChassis && cmd == cmdIdentify && len(data) > 1
	})
	if err := d.Locate(t.Context(), true); err != nil {
		t.Errorf("a controller that does not know 'for ever': %v", err)
	}
	if err := d.Locate(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	want := [][]byte{{0, 1}, {0, 1}, {255}, {0}}
	if diff := cmp.Diff(want, b.sent(netChassis, cmdIdentify)); diff != "" {
		t.Error(diff)
	}
}

func TestUsersLiveTheirLife(t *testing.T) {
	b := newBench(t)
	d := b.open(t)
	ctx := t.Context()
	const long = "Twenty-signs-pass#20"
	for _, password := range []string{"Sixteen-signs-16", long} {
		if err := d.CreateUser(ctx, "helper", password); err != nil {
			t.Fatal(err)
		}
		if err := d.CreateUser(ctx, "helper", password); bmc.KindOf(err) != inventory.Conflict {
			t.Errorf("a second of the same name: %v", err)
		}
		target := b.target()
		target.Username, target.Password = "helper", password
		if err := open(t, target).CheckCredentials(ctx); err != nil {
			t.Error(err)
		}
		users, err := d.Users(ctx)
		want := []bmc.User{{ID: "2", Name: user, Role: "administrator", Enabled: true}, {ID: "3", Name: "helper", Role: "administrator", Enabled: true}}
		if diff := cmp.Diff(want, slices.DeleteFunc(users, func(u bmc.User) bool { return u.Name == "" })); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
		if err := d.DeleteUser(ctx, "helper"); err != nil {
			t.Fatal(err)
		}
		if err := open(t, target).CheckCredentials(ctx); bmc.KindOf(err) != inventory.Unauthorized {
			t.Errorf("a deleted user: %v", err)
		}
	}
	if err := d.SetPassword(ctx, user, long); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Power(ctx); err != nil {
		t.Errorf("after our own password was changed: %v", err)
	}
	for name, err := range map[string]error{
		"our own user":     d.DeleteUser(ctx, user),
		"an unknown user":  d.DeleteUser(ctx, "nobody"),
		"no user":          d.SetPassword(ctx, "", canary),
		"a long password":  d.SetPassword(ctx, user, canary+canary),
		"an empty one":     d.SetPassword(ctx, user, ""),
		"a long name":      d.CreateUser(ctx, strings.Repeat("n", 17), canary),
		"a name in colour": d.CreateUser(ctx, "a\x1b[31m", canary),
	} {
		want := inventory.Invalid
		if strings.HasSuffix(name, "user") && name != "our own user" {
			want = inventory.NotFound
		}
		if bmc.KindOf(err) != want {
			t.Errorf("%s: %v", name, err)
		}
		noSecret(t, err)
	}
}

// shelf is a sensor repository and an event log as a controller keeps them; go-ipmi's server has no sensors and no log.
type shelf struct {
	sdr     [][]byte
	sel     [][]byte
	resetN  atomic.Int64 // reservations that are still to be lost
	cleared atomic.Bool
}

func (s *shelf) answer(netFn, cmd byte, data []byte) (byte, []byte, bool) {
	switch {
	case netFn == netStorage && (cmd == cmdReserveSDR || cmd == cmdReserveSEL):
		return 0, []byte{1, 0}, true
	case netFn == netStorage && cmd == cmdGetSDR:
		return s.getSDR(data)
	case netFn == netStorage && cmd == cmdGetSEL:
		return s.getSEL(int(binary.LittleEndian.Uint16(data[2:])))
	case netFn == netStorage && cmd == cmdClearSEL:
		if s.cleared.Swap(true) {
			return 0, []byte{1}, true
		}
		return 0, []byte{0}, true
	case netFn == netSensor && cmd == cmdSensorReading:
		return 0, []byte{54, 0xc0, 0xc8}, true
	}
	return 0, nil, false
}

func (s *shelf) getSDR(data []byte) (byte, []byte, bool) {
	if s.resetN.Add(-1) >= 0 {
		return codeReservation, nil, true
	}
	id, at, n := int(binary.LittleEndian.Uint16(data[2:])), int(data[4]), int(data[5])
	next := uint16(id + 1)
	if id+1 == len(s.sdr) {
		next = lastRecord
	}
	return 0, append(binary.LittleEndian.AppendUint16(nil, next), s.sdr[id][at:min(at+n, len(s.sdr[id]))]...), true
}

func (s *shelf) getSEL(id int) (byte, []byte, bool) {
	if len(s.sel) == 0 || s.cleared.Load() {
		return codeNotPresent, nil, true
	}
	switch id {
	case 0:
		id = 1
	case lastRecord:
		id = len(s.sel)
	}
	if id > len(s.sel) {
		return codeNotPresent, nil, true
	}
	next := uint16(id + 1)
	if id == len(s.sel) {
		next = lastRecord
	}
	return 0, append(binary.LittleEndian.AppendUint16(nil, next), s.sel[id-1]...), true
}

func TestSensorsSurviveLostReservationsAndNonsense(t *testing.T) {
	s := &shelf{sdr: [][]byte{fullSensor, {2, 0, 0x51, 0xc0, 3, 1, 2, 3}, append(slices.Clone(fullSensor[:4]), 2, 9, 9)}}
	s.resetN.Store(2)
	b := newBench(t)
	b.answers(s.answer)
	d := b.open(t)
	got, err := d.Sensors(t.Context())
	want := []bmc.Sensor{{Name: "CPU1 T", Kind: "temperature", Value: 54, Unit: "°C", Status: "warning"}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if health, err := d.Health(t.Context()); err != nil || health != "warning" {
		t.Errorf("health %q, %v", health, err)
	}
	b.answers(func(netFn, cmd byte, data []byte) (byte, []byte, bool) {
		if netFn == netStorage && cmd == cmdGetSDR {
			return 0, append([]byte{0, 0}, fullSensor[data[4]:][:data[5]]...), true // the first is the next, for ever
		}
		return s.answer(netFn, cmd, data)
	})
	if _, err := d.Sensors(t.Context()); bmc.KindOf(err) != inventory.Unavailable || !strings.Contains(err.Error(), "no end") {
		t.Errorf("a list without an end: %v", err)
	}
}

func TestHealthWithoutSensors(t *testing.T) {
	b := newBench(t)
	b.answers(func(netFn, cmd byte, _ []byte) (byte, []byte, bool) { return 0xc1, nil, netFn == netStorage })
	if health, err := b.open(t).Health(t.Context()); err != nil || health != "" {
		t.Errorf("health %q, %v", health, err)
	}
	b.answers(func(netFn, cmd byte, _ []byte) (byte, []byte, bool) {
		return 0, []byte{1, 0, 0x08}, netFn == netChassis && cmd == cmdChassisStatus
	})
	if health, err := b.open(t).Health(t.Context()); err != nil || health != "critical" {
		t.Errorf("with a cooling fault: health %q, %v", health, err)
	}
}

func TestEventLogIsReadNewestFirst(t *testing.T) {
	s := &shelf{}
	for i := range 30 {
		r := []byte{byte(i + 1), 0, 2, 0x9a + byte(i), 0xc4, 0x65, 0x5f, 0x20, 0, 4, 1, 7, 1, 0x59, 0x70, 0x70}
		s.sel = append(s.sel, r)
	}
	s.sel[29][3], s.sel[29][6] = 5, 0 // before the clock was set
	s.sel[28][12] |= 0x80             // no more
	s.sel[27][2] = 0xe3               // a vendor's own
	b := newBench(t)
	b.answers(s.answer)
	d := b.open(t)
	got, err := d.Log(t.Context(), 4)
	want := []bmc.LogEntry{
		{ID: "30", Severity: "critical"},
		{ID: "29", At: "2020-09-19T08:43:34Z", Severity: "info"},
		{ID: "28", Severity: "info"},
		{ID: "27", At: "2020-09-19T08:43:32Z", Severity: "critical"},
	}
	if err != nil || len(got) != len(want) {
		t.Fatalf("%+v, %v", got, err)
	}
	for i, w := range want {
		w.Message = got[i].Message
		if diff := cmp.Diff(w, got[i]); diff != "" || got[i].Message == "" {
			t.Errorf("%s %q", diff, got[i].Message)
		}
	}
	if !strings.Contains(got[3].Message, "Temperature (sensor 7)") || !strings.Contains(got[1].Message, "no more") || !strings.Contains(got[2].Message, "vendor") {
		t.Errorf("%+v", got)
	}
	if n := len(b.sent(netStorage, cmdGetSEL)); n != 5 {
		t.Errorf("%d records were read for the last 4 of 30", n)
	}
	if err := d.ClearLog(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := d.Log(t.Context(), 4); err != nil || len(got) != 0 {
		t.Errorf("a cleared log: %+v, %v", got, err)
	}
}

func TestInventoryReadsTheLabels(t *testing.T) {
	b := newBench(t)
	raw, err := types.PackFRU(types.FRUPackConfig{
		Chassis: &types.FRUPackChassis{Type: 0x17, Serial: "CH1"},
		Board:   &types.FRUPackBoard{Mfg: "Dell Inc.", Product: "0XYZ", Serial: "CN123"},
		Product: &types.FRUPackProduct{Manufacturer: "Dell Inc.", Name: "PowerEdge R650", Version: "01", Serial: "ABC1234"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.hal.Storage().FRU().Write(t.Context(), 0, raw); err != nil {
		t.Fatal(err)
	}
	got, err := b.open(t).Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := inventory.System{
		Manufacturer: "Dell Inc.", Product: "PowerEdge R650", Version: "01", Serial: "ABC1234", BoardProduct: "0XYZ", BoardSerial: "CN123",
		Chassis: "Rack Mount Chassis",
	}
	if diff := cmp.Diff(want, got.Hardware.System); diff != "" {
		t.Error(diff)
	}
	if got.Vendor != "Dell" || got.Firmware != "3.45" || got.Model != "0x0100" {
		t.Errorf("%s %s %s", got.Vendor, got.Firmware, got.Model)
	}
}

func TestConsoleCarriesBothWays(t *testing.T) {
	serial := &mock.FakeConsoleConn{WriteLimit: 7}
	b := newBench(t, func(b *bmcsim.BMC) { b.HAL().(*mock.HAL).SetConsole(&mock.Console{Conn: serial}) })
	b.conn.out.Store(lose(func(n int64) bool { return n > 10 && n%5 == 0 })) // and a bad line
	var n atomic.Int64
	deaf := func(p []byte) bool { // acknowledgements get lost, too, so that output is sent again
		q, err := parsePacket(p, 0)
		return err == nil && q.session != 0 && q.payload == payloadSOL && n.Add(1)%3 == 0
	}
	b.conn.in.Store(&deaf)
	d := b.open(t)
	first, err := d.Console(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	typed := strings.Repeat("ls -l; ", 12)
	if n, err := first.Write([]byte(typed)); err != nil || n != len(typed) {
		t.Fatalf("%d, %v", n, err)
	}
	if diff := cmp.Diff(typed, serial.TXString()); diff != "" {
		t.Error(diff)
	}
	shown := ""
	for i := range 60 {
		shown += fmt.Sprintf("line %d\r\n", i)
	}
	serial.FeedRX([]byte(shown))
	read(t, first, shown)

	second, err := d.Console(t.Context())
	if err != nil {
		t.Fatalf("a second session: %v", err)
	}
	defer second.Close()
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	if _, err := first.Read(make([]byte, 1)); err == nil {
		t.Error("a closed console still reads")
	}
}

func read(t *testing.T, c interface{ Read([]byte) (int, error) }, want string) {
	t.Helper()
	got := make(chan string, 1)
	go func() {
		var text []byte
		buf := make([]byte, 64)
		for len(text) < len(want) {
			n, err := c.Read(buf)
			if err != nil {
				break
			}
			text = append(text, buf[:n]...)
		}
		got <- string(text)
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 20e9)
	defer cancel()
	select {
	case s := <-got:
		if diff := cmp.Diff(want, s); diff != "" {
			t.Error(diff)
		}
	case <-ctx.Done():
		t.Fatal("the console shows nothing")
	}
}

func TestConsoleThatIsTurnedOff(t *testing.T) {
	b := newBench(t)
	b.answers(func(netFn, cmd byte, _ []byte) (byte, []byte, bool) {
		return 0x81, nil, netFn == netApp && cmd == cmdActivatePayload
	})
	_, err := b.open(t).Console(t.Context())
	if e, ok := err.(*inventory.Error); !ok || e.Kind != inventory.Invalid || !strings.Contains(e.Hint, "Serial over LAN") {
		t.Errorf("%v", err)
	}
}
