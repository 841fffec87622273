package ipmi

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/bougou/go-ipmi/pkg/crypto"
	"github.com/bougou/go-ipmi/pkg/types"

	"slipway.dev/slipway/bmc"
)

func testKeys(id int) keys { return newKeys(suites[id], bytes.Repeat([]byte{7}, 20)) }

func TestSealedPacketsOpenOnlyUnchanged(t *testing.T) {
	for _, id := range []int{3, 17} {
		k := testKeys(id)
		for n := range 70 {
			body := bytes.Repeat([]byte{0xa5}, n)
			p := k.seal(payloadSOL, 42, 7, body)
			payload, got, err := k.open(p, 42)
			if err != nil || payload != payloadSOL || !bytes.Equal(got, body) {
				t.Fatalf("suite %d, %d bytes: %x, %v", id, n, got, err)
			}
			for i := len(rmcpHeader); i < len(p); i++ {
				bad := bytes.Clone(p)
				bad[i] ^= 0x10
				if _, _, err := k.open(bad, 42); err == nil {
					t.Fatalf("suite %d, %d bytes: byte %d was changed, and nobody noticed", id, n, i)
				}
			}
			if _, _, err := k.open(p, 43); err == nil {
				t.Fatal("a packet of another session was opened")
			}
		}
	}
}

// The other implementation derives the same keys and codes.
func TestKeysAreThoseOfTheSpecification(t *testing.T) {
	sik := bytes.Repeat([]byte{7}, 20)
	for id, algs := range map[int][2]byte{3: {1, 1}, 17: {3, 4}} {
		k := testKeys(id)
		k1, err := crypto.DeriveK1(types.AuthAlg(algs[0]), sik)
		if err != nil || !bytes.Equal(k1, k.k1) {
			t.Errorf("suite %d: K1 %x, %v", id, k.k1, err)
		}
		k2, err := crypto.DeriveK2(types.AuthAlg(algs[0]), sik)
		if err != nil || !bytes.Equal(k2, k.k2) {
			t.Errorf("suite %d: K2 %x, %v", id, k.k2, err)
		}
		code, err := crypto.SessionIntegrityAuthCode(types.IntegrityAlg(algs[1]), []byte("abc"), k1, "")
		if err != nil || !bytes.Equal(code, k.mac(k.k1, []byte("abc"))[:k.codeN]) {
			t.Errorf("suite %d: integrity code: %v", id, err)
		}
	}
}

func TestResponseAnswersItsRequestOnly(t *testing.T) {
	m := []byte{addrConsole, (netChassis | 1) << 2, 0, addrBMC, 5 << 2, cmdChassisStatus, 0, 0x21, 0x10, 0x40, 0}
	m[2], m[10] = checksum(m[:2]), checksum(m[3:10])
	code, data, ok := response(m, netChassis, cmdChassisStatus, 5)
	if !ok || code != 0 || !bytes.Equal(data, []byte{0x21, 0x10, 0x40}) {
		t.Fatalf("%x %x %v", code, data, ok)
	}
	for name, f := range map[string]func() bool{
		"another command":  func() bool { _, _, ok := response(m, netChassis, cmdChassisControl, 5); return ok },
		"another number":   func() bool { _, _, ok := response(m, netChassis, cmdChassisStatus, 6); return ok },
		"another function": func() bool { _, _, ok := response(m, netApp, cmdChassisStatus, 5); return ok },
		"a wrong checksum": func() bool {
			_, _, ok := response(append(m[:10:10], m[10]+1), netChassis, cmdChassisStatus, 5)
			return ok
		},
		"a message without a code": func() bool { _, _, ok := response(m[:6], netChassis, cmdChassisStatus, 5); return ok },
	} {
		if f() {
			t.Errorf("%s was taken as the answer", name)
		}
	}
}

func FuzzPacket(f *testing.F) {
	k := testKeys(17)
	f.Add(k.seal(payloadIPMI, 42, 1, []byte{1, 2, 3, 4, 5, 6, 7, 8, 9}))
	f.Add(plain(payloadRAKP2, bytes.Repeat([]byte{0}, 72)))
	if short, err := hex.DecodeString("0600ff070611000000000000000002000004"); err == nil {
		f.Add(short)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, id := range []int{3, 17} {
			testKeys(id).open(b, 42)
			// What a controller that knows the keys may send: any text at all, with any padding.
			k := testKeys(id)
			sealed := k.seal(payloadIPMI, 42, 1, b)
			if _, body, err := k.open(sealed, 42); err == nil {
				response(body, netChassis, cmdChassisStatus, 1)
			} else if len(b) < 60000 {
				t.Errorf("our own packet of %d bytes: %v", len(b), err)
			}
		}
	})
}

// FuzzRecords feeds the decoders of what a controller stores.
func FuzzRecords(f *testing.F) {
	if fru, err := types.PackFRU(types.FRUPackConfig{Product: &types.FRUPackProduct{Manufacturer: "Dell", Name: "R650", Serial: "S"}}); err == nil {
		f.Add(fru)
	}
	f.Add(fullSensor)
	f.Add([]byte{1, 0, 2, 0, 0x9a, 0xc4, 0x65, 0x20, 0, 4, 1, 1, 1, 0x57, 0x70, 0x70})
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := decode(func() (*types.FRU, error) { return types.ParseFRU(b) }); err == nil {
			systemOf(r)
		}
		if r, err := decode(func() (*types.SDR, error) { return types.ParseSDR(b, 0) }); err == nil {
			if p, err := decode(func() (probe, error) { return probeOf(r) }); err == nil {
				if s := p.sensor(b); len(s.Name) > 32 || s.Status == "" {
					t.Errorf("%+v", s)
				}
			}
		}
		uuidOf(b)
		if len(b) >= selRecordN {
			if e := logEntry(b[:selRecordN]); e.Message == "" || len(e.Message) > 256 || e.Severity == "" {
				t.Errorf("%+v", e)
			}
		}
	})
}

// fullSensor is a record of type 1: a temperature of one degree for each count, two's complement.
var fullSensor = append([]byte{
	0x01, 0x00, 0x51, 0x01, 0x31, 0x20, 0x00, 0x01, 0x07, 0x01, 0x67, 0x68, 0x01, 0x01,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x80, 0x01, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x7f, 0x80, 0xa0, 0x90, 0x70, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0xc6,
}, "CPU1 T"...)

func TestSensorReadings(t *testing.T) {
	r, err := types.ParseSDR(fullSensor, lastRecord)
	if err != nil {
		t.Fatal(err)
	}
	p, err := probeOf(r)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		got  []byte
		want bmc.Sensor
	}{
		"a reading within limits":            {[]byte{54, 0xc0, 0xc0}, bmc.Sensor{Value: 54, Unit: "°C", Status: "ok"}},
		"a reading below zero":               {[]byte{0xf6, 0xc0, 0xc0}, bmc.Sensor{Value: -10, Unit: "°C", Status: "ok"}},
		"above the upper warning":            {[]byte{80, 0xc0, 0xc8}, bmc.Sensor{Value: 80, Unit: "°C", Status: "warning"}},
		"above the upper critical limit":     {[]byte{99, 0xc0, 0xd8}, bmc.Sensor{Value: 99, Unit: "°C", Status: "critical"}},
		"below the lower critical limit":     {[]byte{1, 0xc0, 0xc2}, bmc.Sensor{Value: 1, Unit: "°C", Status: "critical"}},
		"a reading that is not available":    {[]byte{0, 0xe0, 0xc0}, bmc.Sensor{Status: "absent"}},
		"a sensor that is not being scanned": {[]byte{0, 0x80, 0xc0}, bmc.Sensor{Status: "absent"}},
		"a sensor that could not be read":    {nil, bmc.Sensor{Status: "absent"}},
	} {
		c.want.Name, c.want.Kind = "CPU1 T", "temperature"
		if got := p.sensor(c.got); got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}

func TestUUIDs(t *testing.T) {
	const uuid = "30d4f5a6-9c1b-4fe0-9f3c-7cd30ad1f2b4"
	asWritten, _ := hex.DecodeString("30d4f5a69c1b4fe09f3c7cd30ad1f2b4")
	asSMBIOS, _ := hex.DecodeString("a6f5d4301b9ce04f9f3c7cd30ad1f2b4")
	dell, _ := hex.DecodeString("44454c4c3300104d8051b4c04f4e3232")
	reversed := make([]byte, 16)
	for i, b := range asWritten {
		reversed[15-i] = b
	}
	for name, c := range map[string]struct {
		guid []byte
		want string
	}{
		"stored as SMBIOS does": {asSMBIOS, uuid},
		"stored as IPMI wants":  {reversed, uuid},
		"stored as written":     {asWritten, uuid},
		"one that could be two": {dell, ""},
		"all zero":              {make([]byte, 16), ""},
		"too short":             {asWritten[:15], ""},
	} {
		if got := uuidOf(c.guid); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
