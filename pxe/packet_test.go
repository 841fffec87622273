package pxe

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"slipway.dev/slipway/inventory"
)

// readPacket decodes a captured DHCP message from testdata/packets.
func readPacket(t testing.TB, name string) Packet {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "packets", name+".hex"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := hex.DecodeString(strings.ReplaceAll(string(text), "\n", ""))
	if err != nil {
		t.Fatal(err)
	}
	mac, err := inventory.ParseMAC(hex.EncodeToString(b[28:34]))
	if err != nil {
		t.Fatal(err)
	}
	p := Packet{MAC: mac}
	for b = b[240:]; len(b) > 1 && b[0] != 255; {
		if b[0] == 0 {
			b = b[1:]
			continue
		}
		value := b[2 : 2+int(b[1])]
		p.set(b[0], value)
		b = b[2+len(value):]
	}
	return p
}

func (p *Packet) set(code byte, value []byte) {
	switch code {
	case 43:
		p.Vendor43 = value
	case 60:
		p.Class60 = string(value)
	case 61:
		p.ClientID61 = value
	case 77:
		p.UserClass77 = value
	case 93:
		for ; len(value) > 1; value = value[2:] {
			p.Arch93 = append(p.Arch93, binary.BigEndian.Uint16(value))
		}
	case 97:
		p.UUID97 = value
	case 175:
		p.IPXE175 = value
	}
}

func TestClassifyCaptures(t *testing.T) {
	const uuid = "4c4c4544-0042-3510-8054-b7c04f333232"
	want := Client{MAC: "52:54:00:aa:00:01", UUID: uuid}
	for _, tt := range []struct {
		name string
		edit func(*Client)
	}{
		{"ovmf-pxe-discover", func(c *Client) {
			c.Stage, c.Arch, c.Firmware, c.ArchCode, c.Class = StageFirmware, inventory.X8664, inventory.UEFI, Arch93(7), "PXEClient:Arch:00007:UNDI:003000"
		}},
		{"ovmf-http-discover", func(c *Client) {
			c.Stage, c.Arch, c.Firmware, c.ArchCode, c.Class = StageFirmware, inventory.X8664, inventory.UEFIHTTP, Arch93(16), "HTTPClient:Arch:00016:UNDI:003000"
		}},
		{"snponly-efi-discover", func(c *Client) {
			c.Stage, c.Arch, c.Firmware, c.ArchCode, c.Class = StageIPXE, inventory.X8664, inventory.UEFI, Arch93(7), "PXEClient:Arch:00007:UNDI:003010"
			c.ClientID, c.UserClass, c.IPXE = "01525400aa0001", "iPXE", IPXE{Version: "1.0.0", HasHTTP: true}
		}},
		{"ipxe-efi-discover", func(c *Client) {
			c.Stage, c.Arch, c.Firmware, c.ArchCode, c.Class = StageIPXE, inventory.X8664, inventory.UEFI, Arch93(7), "PXEClient:Arch:00007:UNDI:003010"
			c.ClientID, c.UserClass, c.IPXE = "01525400aa0001", "iPXE", IPXE{Version: "1.0.0", HasHTTP: true}
		}},
		{"ipxe-rom-bios-discover", func(c *Client) {
			c.Stage, c.Arch, c.Firmware, c.ArchCode, c.Class = StageIPXE, inventory.X8664, inventory.BIOS, Arch93(0), "PXEClient:Arch:00000:UNDI:002001"
			c.ClientID, c.UserClass, c.IPXE = "01525400aa0001", "iPXE", IPXE{Version: "1.0.0", HasHTTP: true}
		}},
	} {
		for _, name := range []string{tt.name, strings.Replace(tt.name, "discover", "request", 1)} {
			if name == "ipxe-efi-request" {
				continue // not captured
			}
			t.Run(name, func(t *testing.T) {
				want := want
				tt.edit(&want)
				if diff := cmp.Diff(want, Classify(readPacket(t, name)), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

func TestClassify(t *testing.T) {
	code := func(n ...uint16) []uint16 { return n }
	for _, tt := range []struct {
		name     string
		p        Packet
		stage    Stage
		firmware inventory.Firmware
		arch     inventory.Arch
		isHTTP   bool
	}{
		{"a plain operating system", Packet{ClientID61: []byte{1, 2}}, StageOS, "", "", false},
		{"a Windows machine with its vendor class", Packet{Class60: "MSFT 5.0"}, StageOS, "", "", false},
		{"PXE firmware without option 93 is known by its class", Packet{Class60: "PXEClient:Arch:00007:UNDI:003016"}, StageFirmware, inventory.UEFI, inventory.X8664, false},
		{"a class without architecture is still PXE", Packet{Class60: "PXEClient"}, StageFirmware, "", "", false},
		{"option 93 alone is a network boot", Packet{Arch93: code(0)}, StageFirmware, inventory.BIOS, inventory.X8664, false},
		{"9 is x86 as well as 7", Packet{Class60: "PXEClient", Arch93: code(9)}, StageFirmware, inventory.UEFI, inventory.X8664, false},
		{"of several architectures the first known one counts", Packet{Class60: "PXEClient", Arch93: code(999, 7)}, StageFirmware, inventory.UEFI, inventory.X8664, false},
		{"an unknown architecture boots nothing", Packet{Class60: "PXEClient", Arch93: code(999)}, StageFirmware, "", "", false},
		{"arm64 UEFI", Packet{Class60: "PXEClient:Arch:00011", Arch93: code(11)}, StageFirmware, inventory.UEFI, inventory.ARM64, false},
		{"arm64 HTTP Boot", Packet{Class60: "HTTPClient:Arch:00019", Arch93: code(19)}, StageFirmware, inventory.UEFIHTTP, inventory.ARM64, true},
		{"an HTTP architecture without a class is HTTP Boot", Packet{Arch93: code(16)}, StageFirmware, inventory.UEFIHTTP, inventory.X8664, true},
		{"the class counts before the architecture", Packet{Class60: "PXEClient", Arch93: code(16)}, StageFirmware, inventory.UEFI, inventory.X8664, false},
		{"HTTP Boot that sends a PXE architecture", Packet{Class60: "HTTPClient", Arch93: code(7)}, StageFirmware, inventory.UEFIHTTP, inventory.X8664, true},
		{"U-Boot is listed and gets nothing", Packet{Class60: "PXEClient:Arch:00022", Arch93: code(22)}, StageFirmware, "", inventory.ARM64, false},
		{"a Raspberry Pi that says BIOS is none", Packet{MAC: "dc:a6:32:01:02:03", Class60: "PXEClient:Arch:00000:UNDI:002001", Arch93: code(0)}, StageFirmware, "", inventory.ARM64, false},
		{"iPXE with its bare user class", Packet{UserClass77: []byte("iPXE")}, StageIPXE, "", "", false},
		{"iPXE with a list of user classes", Packet{UserClass77: []byte("\x03lab\x04iPXE")}, StageIPXE, "", "", false},
		{"iPXE with nothing but option 175", Packet{IPXE175: []byte{0x13, 1, 1}}, StageIPXE, "", "", false},
		{"iPXE is never firmware, whatever its class says", Packet{Class60: "HTTPClient:Arch:00016", UserClass77: []byte("iPXE"), Arch93: code(7)}, StageIPXE, inventory.UEFI, inventory.X8664, false},
		{"a user class that only contains the word is not iPXE", Packet{Class60: "PXEClient", UserClass77: []byte("\x05iPXE2")}, StageFirmware, "", "", false},
		{"a user class cut short is not iPXE", Packet{Class60: "PXEClient", UserClass77: []byte("\x09iPXE")}, StageFirmware, "", "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := Classify(tt.p)
			if c.Stage != tt.stage || c.Firmware != tt.firmware || c.Arch != tt.arch || c.IsHTTP() != tt.isHTTP {
				t.Errorf("got %s %q %q http=%v", c.Stage, c.Firmware, c.Arch, c.IsHTTP())
			}
		})
	}
}

func TestArchitectureTableHasNoGaps(t *testing.T) {
	rows := Architectures()
	if len(rows) != 42 {
		t.Errorf("%d rows, want 0 to 41", len(rows))
	}
	for i, r := range rows {
		if r.Code != i || r.Name == "" {
			t.Errorf("row %d is %+v", i, r)
		}
	}
}

func TestUUIDOfOption97(t *testing.T) {
	raw := func(s string) []byte { b, _ := hex.DecodeString(s); return b }
	for _, tt := range []struct {
		name, hex, want string
	}{
		{"the first three fields are little-endian", "00" + "33221100554477668899aabbccddeeff", "00112233-4455-6677-8899-aabbccddeeff"},
		{"a whole one", "0044454c4c420010358054b7c04f333232", "4c4c4544-0042-3510-8054-b7c04f333232"},
		{"another type than 0", "0144454c4c420010358054b7c04f333232", ""},
		{"all zero", "0000000000000000000000000000000000", ""},
		{"all ones", "00ffffffffffffffffffffffffffffffff", ""},
		{"a vendor's counting default", "00" + "00020003000400050006000700080009", ""},
		{"empty", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Classify(Packet{UUID97: raw(tt.hex)}).UUID; got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func FuzzClassify(f *testing.F) {
	for _, name := range []string{"ovmf-pxe-discover", "ovmf-http-discover", "ipxe-rom-bios-discover"} {
		p := readPacket(f, name)
		f.Add(p.Class60, uint16(7), p.UUID97, p.UserClass77, p.IPXE175, p.ClientID61)
	}
	f.Fuzz(func(t *testing.T, class string, arch uint16, uuid, user, ipxe, id []byte) {
		c := Classify(Packet{MAC: "52:54:00:aa:00:01", Class60: class, Arch93: []uint16{arch}, UUID97: uuid, UserClass77: user, IPXE175: ipxe, ClientID61: id})
		if c.Stage == StageOS {
			t.Error("option 93 was there")
		}
		if c.UUID != "" && c.UUID != cleanUUID(c.UUID) {
			t.Errorf("UUID %q", c.UUID)
		}
		if inventory.CheckText("class", c.Class, 128) != nil {
			t.Errorf("class %q", c.Class)
		}
		d := Decide(c, nil, Plan{Policy: inventory.UnknownWait, Loaders: func(string) bool { return true }}, testNow)
		if r := Answer(c, d, "0123", "http://10.0.0.1"); c.Stage == StageIPXE && !strings.HasPrefix(r.File, "http://10.0.0.1/boot/") {
			t.Errorf("iPXE was told to load %q", r.File)
		}
	})
}

// Small packets as people met them in the field.
func TestClassifyWhatTheFieldSends(t *testing.T) {
	for _, tt := range []struct {
		name  string
		edit  func(*Packet)
		check func(Client) bool
	}{
		{"pi5-discover", nil, func(c Client) bool {
			return c.IsRaspberryPi && c.Firmware == "" && c.machineWords() == "a Raspberry Pi"
		}},
		{"pi5-discover", func(p *Packet) { p.MAC = "00:11:22:33:44:55" }, func(c Client) bool { return c.IsRaspberryPi }},                                                // a newer block: the UUID says it
		{"pi5-discover", func(p *Packet) { p.MAC, p.UUID97 = "00:11:22:33:44:55", nil }, func(c Client) bool { return !c.IsRaspberryPi }},                                // no sign
		{"pi5-discover", func(p *Packet) { p.MAC, p.UUID97, p.Class60 = "00:11:22:33:44:55", nil, "Raspberry Pi Boot" }, func(c Client) bool { return c.IsRaspberryPi }}, // the class says it
		{"pi5-discover", func(p *Packet) { p.Arch93 = []uint16{11} }, func(c Client) bool { return !c.IsRaspberryPi && c.Firmware == inventory.UEFI }},                   // with UEFI of its own
		{"arm64-discover", nil, func(c Client) bool { return c.Arch == inventory.ARM64 && c.machineWords() == "ARM UEFI, 64 bit" }},
		{"ipxe-rom-without-http-discover", nil, func(c Client) bool { return c.Stage == StageFirmware && c.IPXE.IsOld && c.Firmware == inventory.BIOS }},
		{"ipxe-rom-without-http-discover", func(p *Packet) { p.IPXE175 = []byte{0x13, 1, 1} }, func(c Client) bool { return c.Stage == StageIPXE }},
		{"ipxe-rom-without-http-discover", func(p *Packet) { p.IPXE175, p.UserClass77 = []byte{0x13, 1, 1}, []byte("gPXE") }, func(c Client) bool { return c.Stage == StageFirmware }},
	} {
		p := readPacket(t, tt.name)
		if tt.edit != nil {
			tt.edit(&p)
		}
		if c := Classify(p); !tt.check(c) {
			t.Errorf("%s: %+v, %s", tt.name, c, c.machineWords())
		}
	}
}

func TestIPXEWithoutHTTPIsGivenALoaderOverTFTPAndNoURL(t *testing.T) {
	c := Classify(readPacket(t, "ipxe-rom-without-http-discover"))
	d := Decide(c, host(), plan(live), testNow)
	if r := Answer(c, d, "", "http://10.0.0.1"); r.File != "undionly.kpxe" {
		t.Errorf("%+v", r)
	}
}

// The same machine is named the same, by its packet and by what is remembered of it.
func TestAMachineIsNamedTheSameWithoutItsPacket(t *testing.T) {
	for _, row := range Architectures() {
		if row.Firmware == "" {
			continue
		}
		heard := Classify(Packet{MAC: "52:54:00:aa:00:01", Class60: "PXEClient", Arch93: []uint16{uint16(row.Code)}})
		kept := Client{Stage: StageFirmware, Arch: heard.Arch, Firmware: heard.Firmware}
		if row.Code == 9 || row.Code == 17 || row.IsHTTP { // other words for the same machine
			continue
		}
		if got := kept.machineWords(); got != heard.machineWords() {
			t.Errorf("%q without its packet, %q with it", got, heard.machineWords())
		}
	}
	if got := (Client{}).machineWords(); got != "this kind of machine" {
		t.Errorf("of nothing it says %q", got)
	}
}
