package wipe

import (
	"encoding/binary"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/inventory"
)

func TestNVMeCommandsAreThoseOfTheSpecification(t *testing.T) {
	namespace := make([]byte, 4096)
	namespace[26], namespace[29] = 0x11, 0x09 // format 1, metadata at the end of the data, protection 1 in its first bytes
	cases := map[string]struct {
		got                nvmeAdmin
		opcode             uint8
		nsid, cdw10, cdw11 uint32
	}{
		"identify the controller":           {identifyCommand(0, cnsController, namespace), 0x06, 0, 0x01, 0},
		"identify a namespace":              {identifyCommand(1, cnsNamespace, namespace), 0x06, 1, 0x00, 0},
		"block erase of everything":         {sanitizeCommand(sanitizeBlock), 0x84, 0, 0x02, 0},
		"overwrite of everything, one pass": {sanitizeCommand(sanitizeOverwrite), 0x84, 0, 0x13, 0},
		"throw away the key":                {sanitizeCommand(sanitizeCrypto), 0x84, 0, 0x04, 0},
		"the log of sanitize, 512 bytes":    {sanitizeLog(namespace[:512]), 0x02, 0xffffffff, 0x007f0081, 0},
		"format with an erase of the data":  {formatCommand(1, namespace, false), 0x80, 1, 0x1 | 1<<4 | 1<<5 | 1<<8 | 1<<9, 0},
		"format with a new key":             {formatCommand(1, make([]byte, 4096), true), 0x80, 1, 2 << 9, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if c.got.Opcode != c.opcode || c.got.NSID != c.nsid || c.got.CDW10 != c.cdw10 || c.got.CDW11 != c.cdw11 {
				t.Errorf("%+v", c.got)
			}
		})
	}
	if n := unsafe.Sizeof(nvmeAdmin{}); n != 72 {
		t.Errorf("the kernel's structure has 72 bytes, this one %d", n)
	}
	if off := unsafe.Offsetof(nvmeAdmin{}.CDW10); off != 40 {
		t.Errorf("command word 10 is at %d", off)
	}
}

func TestNVMeControllersSayWhatTheyCan(t *testing.T) {
	b := make([]byte, 4096)
	b[256], b[524], b[328], b[516] = 2, 5, 3, 1
	want := nvmeAbility{canFormat: true, canCrypto: true, formatsAll: true, sanitizeCrypto: true, sanitizeBlock: true, namespaces: 1}
	if diff := cmp.Diff(want, parseController(b), cmp.AllowUnexported(nvmeAbility{})); diff != "" {
		t.Error(diff)
	}
	for _, c := range []struct{ sanicap, want byte }{{0, 0}, {1, 4}, {2, 2}, {3, 2}, {4, 3}, {7, 2}} {
		b[328] = c.sanicap
		if got := parseController(b).sanitize(); got != uint32(c.want) {
			t.Errorf("of %d the action is %d", c.sanicap, got)
		}
	}
	log := make([]byte, 512)
	binary.LittleEndian.PutUint16(log, 0x8000)
	log[2] = 2
	if part, isRunning, isFailed := sanitizeState(log); part != 0.5 || !isRunning || isFailed {
		t.Errorf("%v, %v, %v", part, isRunning, isFailed)
	}
	log[2] = 3
	if _, isRunning, isFailed := sanitizeState(log); isRunning || !isFailed {
		t.Error("a failed sanitize goes unnoticed")
	}
}

func TestAControllerWithAKeptDiskIsNotErasedAsAWhole(t *testing.T) {
	o := &work{disk: inventory.Disk{Name: "nvme0n2", Serial: "A"}}
	for name, c := range map[string]struct {
		kept inventory.Disk
		want bool
	}{
		"another namespace of it":         {inventory.Disk{Name: "nvme0n1", Serial: "A"}, true},
		"the other path to the same disk": {inventory.Disk{Name: "nvme1n1", Serial: "A"}, true},
		"another controller":              {inventory.Disk{Name: "nvme1n1", Serial: "B"}, false},
		"a number that begins the same":   {inventory.Disk{Name: "nvme01n1", Serial: "B"}, false},
	} {
		if o.mates = []inventory.Disk{c.kept}; o.sharesController() != c.want {
			t.Errorf("%s: %v", name, !c.want)
		}
	}
}

func TestATACommandsAreThoseOfTheSpecification(t *testing.T) {
	cases := map[string]struct {
		got, want [16]byte
	}{
		"identify":       {ataCommand(ataIdentify, sgFromDevice), [16]byte{0x85, 0x08, 0x0e, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0x40, 0xec, 0}},
		"set a password": {ataCommand(ataSetPassword, sgToDevice), [16]byte{0x85, 0x0a, 0x06, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0x40, 0xf1, 0}},
		"prepare":        {ataCommand(ataErasePrepare, sgNone), [16]byte{0x85, 0x06, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x40, 0xf3, 0}},
		"erase":          {ataCommand(ataEraseUnit, sgToDevice), [16]byte{0x85, 0x0a, 0x06, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0x40, 0xf4, 0}},
	}
	for name, c := range cases {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if b := securityData(true); b[0] != 2 || b[1] != 0 || string(b[2:9]) != "slipway" || b[9] != 0 || len(b) != 512 {
		t.Errorf("% x", b[:16])
	}
	if n := unsafe.Sizeof(sgHeader{}); n != 88 {
		t.Errorf("the kernel's structure has 88 bytes, this one %d", n)
	}
}

func TestATADisksSayWhatTheyCan(t *testing.T) {
	b := make([]byte, 512)
	binary.LittleEndian.PutUint16(b[256:], 0x29)
	binary.LittleEndian.PutUint16(b[178:], 60)
	binary.LittleEndian.PutUint16(b[180:], 0x8000|300)
	want := ataSecurity{isSupported: true, isFrozen: true, canEnhanced: true, erase: 2 * time.Hour, enhanced: 10 * time.Hour}
	if diff := cmp.Diff(want, parseIdentify(b), cmp.AllowUnexported(ataSecurity{})); diff != "" {
		t.Error(diff)
	}
	for state, s := range map[string]ataSecurity{"frozen": {isFrozen: true}, "locked": {isLocked: true, isEnabled: true}, "password": {isEnabled: true}} {
		if err := s.check("sda"); err == nil {
			t.Errorf("%s is no obstacle", state)
		}
	}
	if err := (ataSecurity{isSupported: true}).check("sda"); err != nil {
		t.Error(err)
	}
}

func TestTheOutcomeOfAnATACommandIsRead(t *testing.T) {
	descriptor := func(status, fault byte) []byte {
		s := make([]byte, 64)
		s[0], s[1], s[8], s[9], s[11], s[21] = 0x72, 1, 0x09, 12, fault, status
		return s
	}
	fixed := func(status, fault byte) []byte {
		s := make([]byte, 64)
		s[0], s[2], s[3], s[4], s[13] = 0x70, 1, fault, status, 0x1d
		return s
	}
	cases := map[string]struct {
		status uint8
		host   uint16
		sense  []byte
		isGood bool
	}{
		"good, nothing said":         {0, 0, make([]byte, 64), true},
		"good, with the registers":   {2, 0, descriptor(0x50, 0), true},
		"aborted":                    {2, 0, descriptor(0x51, 4), false},
		"good, in the older form":    {2, 0, fixed(0x50, 0), true},
		"aborted, in the older form": {2, 0, fixed(0x51, 4), false},
		"illegal request":            {2, 0, append([]byte{0x70, 0, 5}, make([]byte, 61)...), false},
		"the adapter gave up":        {0, 3, make([]byte, 64), false},
	}
	for name, c := range cases {
		if err := ataResult(c.status, c.host, 0, c.sense); (err == nil) != c.isGood {
			t.Errorf("%s: %v", name, err)
		}
	}
}
