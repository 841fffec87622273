package simulate

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"
	"time"
)

// Firmware is what a synthetic machine has built in.
type Firmware string

// The firmware a machine can have.
const (
	FirmwareBIOS     Firmware = "bios"      // a PXE ROM of the network card, as PXE 2.1 describes it
	FirmwareUEFI     Firmware = "uefi"      // EDK2's PXE driver
	FirmwareUEFIHTTP Firmware = "uefi-http" // EDK2's HTTP Boot driver
	FirmwareIPXEROM  Firmware = "ipxe-rom"  // iPXE in the network card, started by a BIOS
)

// Firmwares lists all kinds.
func Firmwares() []Firmware {
	return []Firmware{FirmwareBIOS, FirmwareUEFI, FirmwareUEFIHTTP, FirmwareIPXEROM}
}

// parseFirmware reads a list such as "bios,uefi=3": with a weight, that many of each round have it.
func parseFirmware(list string) ([]Firmware, error) {
	var out []Firmware
	for _, word := range strings.Split(list, ",") {
		name, weight, hasWeight := strings.Cut(strings.TrimSpace(word), "=")
		n := 1
		if hasWeight {
			if _, err := fmt.Sscanf(weight, "%d", &n); err != nil || n < 1 || n > 1000 {
				return nil, fmt.Errorf("%q: a weight is a number from 1 to 1000", word)
			}
		}
		known := false
		for _, f := range Firmwares() {
			known = known || string(f) == name
		}
		if !known {
			return nil, fmt.Errorf("%q is no firmware; there are bios, uefi, uefi-http and ipxe-rom", name)
		}
		for range n {
			out = append(out, Firmware(name))
		}
	}
	return out, nil
}

// dialect is how one program (a firmware driver, iPXE, an operating system) speaks DHCP.
type dialect struct {
	name      string
	broadcast bool   // sets the broadcast flag
	class     string // option 60
	arch      []byte // option 93
	undi      []byte // option 94
	params    []byte // option 55
	ipxe      []byte // option 175; nil for everything but iPXE
	discover  []byte // the order of options in a DISCOVER
	request   []byte // the order of options in a REQUEST
	maxSize   uint16 // option 57
	maxAsk    uint16 // option 57 in a REQUEST when it differs
	secsShift bool   // iPXE writes a counter into secs, not seconds
	minimum   int    // shortest packet
	timers    []time.Duration
	offers    time.Duration // how long it collects offers
	file      fileAsk
	hostname  string // option 12
}

// fileAsk is how a program fetches its loader over TFTP.
type fileAsk struct {
	probe  []string // options of the first request, which asks for the size and is then broken off
	fetch  []string // options of the request that transfers
	window int
}

func seconds(s ...float64) []time.Duration {
	var out []time.Duration
	for _, v := range s {
		out = append(out, time.Duration(v*float64(time.Second)))
	}
	return out
}

func unhex(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err) // a constant of this file
	}
	return b
}

// edk2 is OVMF 2022.11. Its order of options, its sizes and its timers are those of our captures.
func edk2(http bool) dialect {
	d := dialect{
		name: "EDK2 PXE", broadcast: true, class: "PXEClient:Arch:00007:UNDI:003000",
		arch: []byte{0, 7}, undi: []byte{1, 3, 0},
		params:   unhex("0102030405060c0d0f111216171c28292a2b3233363a3b3c4243618081828384858687"),
		discover: []byte{optType, optMaxSize, optParameters, optUUID, optUNDI, optArch, optClass},
		request:  []byte{optType, optServer, optAddress, optMaxSize, optParameters, optUUID, optUNDI, optArch, optClass},
		maxSize:  1472, maxAsk: 65280,
		timers: seconds(4, 8, 16, 32), offers: 3800 * time.Millisecond,
		file: fileAsk{
			probe:  []string{"tsize", "0", "blksize", "1468", "windowsize", "4"},
			fetch:  []string{"blksize", "1468", "windowsize", "4"},
			window: 4,
		},
	}
	if http {
		d.name, d.class, d.arch, d.maxAsk = "EDK2 HTTP Boot", "HTTPClient:Arch:00016:UNDI:003000", []byte{0, 16}, d.maxSize
		d.params = unhex("0102030405060c0d0f111216171c28292a2b3233363a3b3ceb4361")
	}
	return d
}

// pxeROM is a PXE 2.1 boot ROM of a BIOS machine, after the specification and RFC 4578; packets are 548 bytes long.
func pxeROM() dialect {
	return dialect{
		name: "PXE ROM", broadcast: true, class: "PXEClient:Arch:00000:UNDI:002001",
		arch: []byte{0, 0}, undi: []byte{1, 2, 1},
		params:   unhex("0102030506" + "0b0c0d0f10111216171c28292a2b3233363a3b3c4243618081828384858687"),
		discover: []byte{optType, optParameters, optMaxSize, optUUID, optArch, optUNDI, optClass},
		request:  []byte{optType, optAddress, optParameters, optMaxSize, optServer, optUUID, optArch, optUNDI, optClass},
		maxSize:  1260, maxAsk: 1260, minimum: 548,
		timers: seconds(4, 8, 16, 32), offers: 0,
		file: fileAsk{probe: []string{"tsize", "0"}, fetch: []string{"blksize", "1456"}, window: 1},
	}
}

// ipxe is Debian 12's iPXE 1.0.0+git-20190125, as a BIOS or a UEFI build.
func ipxe(efi bool) dialect {
	d := dialect{
		name: "iPXE BIOS", class: "PXEClient:Arch:00000:UNDI:002001", arch: []byte{0, 0}, undi: []byte{1, 2, 1},
		params: unhex("010306070c0f111a2b3c4243778081828384858687afcb"),
		ipxe: unhex("b105011af41000eb03010000170101220101130101110101270101190101290101100102210101" +
			"150101180101120101"),
		discover: []byte{optType, optMaxSize, optArch, optUNDI, optClass, optUserClass, optParameters, optIPXE, optClientID, optUUID},
		request: []byte{
			optType, optMaxSize, optArch, optUNDI, optClass, optUserClass, optParameters, optIPXE, optClientID, optUUID,
			optServer, optAddress,
		},
		maxSize: 1472, maxAsk: 1472, secsShift: true,
		timers: seconds(1, 2, 4, 8, 10), offers: 3 * time.Second,
	}
	if efi {
		d.name, d.class, d.arch, d.undi = "iPXE UEFI", "PXEClient:Arch:00007:UNDI:003010", []byte{0, 7}, []byte{1, 3, 10}
		d.ipxe = unhex("b105011af41000eb03010000170101240101130101110101270101290101150101120101")
	}
	return d
}

// system is the DHCP client of a booted Linux.
func system() dialect {
	return dialect{
		name: "OS", class: "udhcp 1.36.1", params: unhex("0103060c0f1c2a79"),
		discover: []byte{optType, optClientID, optMaxSize, optClass, optHostname, optParameters},
		request:  []byte{optType, optClientID, optAddress, optServer, optMaxSize, optClass, optHostname, optParameters},
		maxSize:  576, maxAsk: 576, minimum: 300,
		timers: seconds(3, 3, 3, 10), offers: 0,
	}
}

// ask says what a packet is about besides the machine and the dialect.
type ask struct {
	kind    byte
	xid     uint32
	secs    uint16
	address netip.Addr // wanted
	server  netip.Addr
	current netip.Addr // ciaddr
}

// packet writes a DISCOVER or REQUEST of this dialect.
func (d *dialect) packet(id Identity, a ask) *message {
	m := &message{op: 1, xid: a.xid, secs: a.secs, ciaddr: a.current, chaddr: id.MAC, minimum: d.minimum}
	if d.broadcast {
		m.flags = flagBroadcast
	}
	order, size := d.discover, d.maxSize
	if a.kind == typeRequest {
		order, size = d.request, d.maxAsk
	}
	for _, code := range order {
		if v := d.value(code, id, a, size); v != nil {
			m.options = append(m.options, option{code, v})
		}
	}
	return m
}

func (d *dialect) value(code byte, id Identity, a ask, size uint16) []byte {
	switch code {
	case optType:
		return []byte{a.kind}
	case optMaxSize:
		return []byte{byte(size >> 8), byte(size)}
	case optParameters:
		return d.params
	case optUUID:
		return uuidOption(id.UUID)
	case optUNDI:
		return d.undi
	case optArch:
		return d.arch
	case optClass:
		return []byte(d.class)
	case optUserClass:
		return []byte("iPXE") // raw, without the length that RFC 3004 wants
	case optIPXE:
		return d.ipxe
	case optClientID:
		return append([]byte{1}, id.MAC[:]...)
	case optServer:
		return addrBytes(a.server)
	case optAddress:
		return addrBytes(a.address)
	case optHostname:
		if d.hostname != "" {
			return []byte(d.hostname)
		}
	}
	return nil
}

func addrBytes(a netip.Addr) []byte {
	if !a.Is4() {
		return nil
	}
	v := a.As4()
	return v[:]
}
