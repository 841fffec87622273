package ipmi

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"time"

	"slipway.dev/slipway/inventory"
)

// Found describes a controller as it shows itself to everybody, before any login.
type Found struct {
	Address string // as inventory.BMC.Address wants it
	Vendor  string // "" when it does not tell, as most do not
	UUID    string // of the machine, lower case; "" when it does not tell, or not clearly
	Version string // of IPMI: 1.5 or 2.0
	// IsOpen says that it lets in users without a name, or without a password.
	IsOpen bool
}

// Answer is one datagram of a controller to a question outside of a session. Nothing in it is authentic.
type Answer struct {
	IsPong  bool // says that something speaks RMCP; IsIPMI says whether it is IPMI
	IsIPMI  bool
	HasV2   bool
	IsOpen  bool
	HasCaps bool // whether the controller told HasV2, IsOpen and Vendor
	Vendor  uint32
	HasGUID bool
	GUID    [16]byte
}

// Message numbers of the questions of Probe.
const (
	seqCaps = 1
	seqGUID = 2

	asfIANA = 4542
	cmdCaps = 0x38
)

// ping is an RMCP presence ping (ASF 2.0, 3.2.4.2).
var ping = []byte{0x06, 0x00, 0xff, 0x06, 0x00, 0x00, 0x11, 0xbe, 0x80, 0x00, 0x00, 0x00}

// bare builds an IPMI 1.5 packet outside of any session, the only kind that all controllers answer.
func bare(m []byte) []byte {
	return append(append(slices.Clone(rmcpHeader), 0, 0, 0, 0, 0, 0, 0, 0, 0, byte(len(m))), m...)
}

// questions are what a probe sends: a ping, Get Channel Authentication Capabilities for an administrator on the channel
// that it comes in on, with the bit that asks for IPMI 2.0, and Get System GUID.
func questions() [][]byte {
	return [][]byte{ping, bare(request(netApp, cmdCaps, seqCaps, []byte{0x80 | currentChannel, levelAdministrator})), bare(request(netApp, cmdSystemGUID, seqGUID, nil))}
}

// ParseAnswer reads an answer to a probe. It trusts no length in it, and returns false for a datagram that is no
// answer.
func ParseAnswer(b []byte) (Answer, bool) {
	if len(b) < 12 || b[0] != rmcpHeader[0] {
		return Answer{}, false
	}
	switch b[3] & 0x1f {
	case 0x06: // ASF
		if binary.BigEndian.Uint32(b[4:]) != asfIANA || b[8] != 0x40 || b[11] < 16 || len(b) < 28 {
			return Answer{}, false
		}
		return Answer{IsPong: true, IsIPMI: b[20]&0x80 != 0}, true
	case 0x07: // IPMI
	default:
		return Answer{}, false
	}
	if b[4] != 0 || len(b) < 14 || int(b[13]) > len(b)-14 {
		return Answer{}, false
	}
	m := b[14 : 14+int(b[13])]
	if code, data, ok := response(m, netApp, cmdCaps, seqCaps); ok {
		a := Answer{IsIPMI: true, HasCaps: true}
		if code != 0 || len(data) < 4 {
			return a, true // it is a controller, if a shy one
		}
		a.HasV2 = data[1]&0x80 != 0 && data[3]&0x02 != 0
		a.IsOpen = data[2]&0b011 != 0
		if len(data) >= 7 {
			a.Vendor = uint32(data[4]) | uint32(data[5])<<8 | uint32(data[6])<<16
		}
		return a, true
	}
	if code, data, ok := response(m, netApp, cmdSystemGUID, seqGUID); ok {
		a := Answer{IsIPMI: true, HasGUID: true}
		if code == 0 && len(data) >= 16 {
			a.GUID = [16]byte(data)
		}
		return a, true
	}
	return Answer{}, false
}

// Probe looks for a controller at an address, without a login. It asks twice, and waits for wait each time, or until
// ctx ends. The error is Unavailable if nothing answers, and NotFound if the answer is not IPMI.
func Probe(ctx context.Context, addr netip.AddrPort, wait time.Duration) (Found, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "udp", addr.String())
	if err != nil {
		return Found{}, unfound(addr, err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	var sum Answer
	for range 2 {
		for _, q := range questions() {
			if _, err := conn.Write(q); err != nil {
				return Found{}, unfound(addr, err)
			}
		}
		conn.SetReadDeadline(time.Now().Add(wait))
		err = collect(conn, &sum)
		if sum.HasCaps && sum.HasGUID || err != nil && !errors.Is(err, os.ErrDeadlineExceeded) || ctx.Err() != nil {
			break
		}
	}
	switch {
	case sum.HasCaps || sum.IsPong && sum.IsIPMI:
		return found(addr, sum), nil
	case sum.IsPong:
		return Found{}, inventory.Errorf(inventory.NotFound, "what answers at %s speaks RMCP, but not IPMI", addr)
	}
	return Found{}, unfound(addr, err)
}

// collect adds up answers until all are there, or the deadline. Nonsense is passed over.
func collect(conn net.Conn, sum *Answer) error {
	var buf [maxPacket]byte
	for !sum.HasCaps || !sum.HasGUID {
		n, err := conn.Read(buf[:])
		if err != nil {
			return err
		}
		a, ok := ParseAnswer(buf[:n])
		if !ok {
			continue
		}
		sum.IsPong, sum.IsIPMI = sum.IsPong || a.IsPong, sum.IsIPMI || a.IsIPMI
		if a.HasCaps {
			sum.HasCaps, sum.HasV2, sum.IsOpen, sum.Vendor = true, a.HasV2, a.IsOpen, a.Vendor
		}
		if a.HasGUID {
			sum.HasGUID, sum.GUID = true, a.GUID
		}
	}
	return nil
}

func found(addr netip.AddrPort, a Answer) Found {
	f := Found{Address: addr.String(), Version: "1.5", IsOpen: a.IsOpen}
	if addr.Port() == 623 {
		f.Address = addr.Addr().String()
	}
	if a.HasV2 {
		f.Version = "2.0"
	}
	if a.Vendor != 0 && a.Vendor != asfIANA {
		f.Vendor = vendorName(a.Vendor)
	}
	if a.HasGUID {
		f.UUID = uuidOf(a.GUID[:])
	}
	return f
}

func unfound(addr netip.AddrPort, err error) error {
	return &inventory.Error{Kind: inventory.Unavailable, Msg: "nothing speaks IPMI at " + addr.String(), Err: err}
}
