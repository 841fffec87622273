package serve

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"slipway.dev/slipway/pxe/dhcp"
	"slipway.dev/slipway/pxe/tap"
	"slipway.dev/slipway/pxe/trace"
)

// newRecord returns the record of what machines say on the wire.
func (a *appliance) newRecord() *trace.Ring {
	var (
		mu   sync.Mutex
		at   time.Time
		ours []netip.Addr
	)
	return trace.NewRing(trace.Config{
		Knows: a.networks.known.hasMAC,
		IsOurs: func(x netip.Addr) bool { // an interface may get another address later
			mu.Lock()
			defer mu.Unlock()
			if now := time.Now(); now.Sub(at) > time.Second {
				at, ours = now, a.ourAddresses()
			}
			return slices.Contains(ours, x)
		},
	})
}

// tapDoor hears the packets of boots for the record.
func (a *appliance) tapDoor() *tap.Server {
	ports := []int{a.cfg.BootPort}
	if a.cfg.BootTLSPort != 0 {
		ports = append(ports, a.cfg.BootTLSPort)
	}
	return tap.New(tap.Config{Interfaces: a.cfg.Interfaces, Ports: ports, Record: a.record.Add, Now: time.Now, Log: a.log})
}

// unanswered keeps why a packet got no answer.
func (a *appliance) unanswered(u dhcp.Unanswered) {
	a.record.Tell(u.MAC, trace.Note{At: u.At, Subnet: u.Subnet, Reason: u.Reason})
}

// ourAddresses are the addresses of the boot interfaces, of both families.
func (a *appliance) ourAddresses() (all []netip.Addr) {
	for _, name := range a.cfg.Interfaces {
		i, err := net.InterfaceByName(name)
		if err != nil {
			continue
		}
		addrs, _ := i.Addrs()
		for _, x := range addrs {
			if p, err := netip.ParsePrefix(x.String()); err == nil {
				all = append(all, p.Addr().Unmap())
			}
		}
	}
	return all
}
