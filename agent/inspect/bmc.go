package inspect

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"

	"slipway.dev/slipway/inventory"
)

// The IPMI 2.0 network functions and commands that are used, with the tables that define their data.
const (
	netApp, netTransport = 0x06, 0x0c
	cmdDeviceID          = 0x01 // table 20-2
	cmdGetChannelInfo    = 0x42 // table 22-29
	cmdGetLANConfig      = 0x02 // table 23-3
)

// Parameters of a LAN channel (table 23-4).
const (
	lanAddress = 3
	lanSource  = 4
	lanMAC     = 5
	lanVLAN    = 20
)

// bmc asks the machine's BMC for its firmware, vendor and network settings; nil without an answer.
func (s *Source) bmc(ctx context.Context) *inventory.BMCFacts {
	if s.BMC == nil {
		return nil
	}
	id, err := s.BMC.Do(ctx, netApp, cmdDeviceID)
	if err != nil || len(id) < 11 {
		s.Log.Warn("the BMC does not say who it is", "err", err)
		return nil
	}
	f := &inventory.BMCFacts{
		Firmware: fmt.Sprintf("%d.%02x", id[2]&0x7f, id[3]),
		IPMI:     fmt.Sprintf("%d.%d", id[4]&0xf, id[4]>>4),
		Vendor:   enterprise(int(id[6]) | int(id[7])<<8 | int(id[8]&0xf)<<16),
	}
	channel, ok := s.lanChannel(ctx)
	if !ok {
		return f
	}
	if v := s.lanConfig(ctx, channel, lanMAC); len(v) >= 6 {
		f.MAC, _ = inventory.ParseMAC(net.HardwareAddr(v[:6]).String()) // "" when it is all zeroes
	}
	if v := s.lanConfig(ctx, channel, lanAddress); len(v) >= 4 {
		if a, _ := netip.AddrFromSlice(v[:4]); !a.IsUnspecified() {
			f.Address = a.String()
		}
	}
	if v := s.lanConfig(ctx, channel, lanSource); len(v) >= 1 {
		f.IsStatic = v[0]&0xf == 1
	}
	if v := s.lanConfig(ctx, channel, lanVLAN); len(v) >= 2 && v[1]&0x80 != 0 {
		f.VLAN = int(binary.LittleEndian.Uint16(v) & 0xfff)
	}
	return f
}

// lanChannel finds the channel that is an Ethernet port. It is 1 nearly everywhere, and 8 on some. Of several, the
// first with an address counts, else the first.
func (s *Source) lanChannel(ctx context.Context) (channel byte, ok bool) {
	for _, c := range []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11} {
		info, err := s.BMC.Do(ctx, netApp, cmdGetChannelInfo, c)
		if err != nil || len(info) < 2 || info[1]&0x7f != 4 { // 4 is 802.3 LAN (table 6-3)
			continue
		}
		if !ok {
			channel, ok = c, true
		}
		if v := s.lanConfig(ctx, c, lanAddress); len(v) >= 4 && (v[0]|v[1]|v[2]|v[3]) != 0 {
			return c, true
		}
	}
	return channel, ok
}

// lanConfig returns a parameter without its revision; nil when the BMC does not have it.
func (s *Source) lanConfig(ctx context.Context, channel, parameter byte) []byte {
	v, err := s.BMC.Do(ctx, netTransport, cmdGetLANConfig, channel, parameter, 0, 0)
	if err != nil || len(v) < 1 {
		return nil
	}
	return v[1:]
}

// enterprise names the makers of BMCs by their IANA enterprise numbers.
func enterprise(n int) string {
	names := map[int]string{
		2: "IBM", 11: "HP", 42: "Oracle", 343: "Intel", 674: "Dell", 2011: "Huawei", 5771: "Cisco", 7154: "IPMI forum", 7244: "Quanta",
		10368: "Fujitsu", 10876: "Supermicro", 15370: "GIGABYTE", 19046: "Lenovo", 20974: "Lenovo", 24339: "AMI", 27500: "Dell", 37945: "Inspur",
		40092: "Wiwynn", 42817: "OpenPOWER", 47196: "HPE", 47488: "HPE", 49622: "ASRock Rack", 49769: "YADRO", 51974: "Ampere",
	}
	if name, ok := names[n]; ok {
		return name
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("enterprise %d", n)
}
