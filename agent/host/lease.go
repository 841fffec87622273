package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv4/nclient4"
	"github.com/vishvananda/netlink"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sleep"
)

// vendorClass tells DHCP servers who asks: an operating system, nothing that network-boots.
const vendorClass = "slipway-agent"

// lease is an address for a port, by DHCP or by hand.
type lease struct {
	port    string
	prefix  netip.Prefix
	gateway netip.Addr
	servers []netip.Addr // of names
	static  []netlink.Route
	from    string        // the DHCP server, or "ip="
	renew   time.Duration // until the next renewal (T1); 0 for an address by hand
	dhcp    *nclient4.Lease
}

// routes returns the routes that belong to the lease: RFC 3442 ones replace the router of option 3.
func (l *lease) routes() []netlink.Route {
	if len(l.static) > 0 {
		return l.static
	}
	if !l.gateway.IsValid() {
		return nil
	}
	return []netlink.Route{{Gw: l.gateway.AsSlice()}}
}

// ask gets a lease by DHCP. It gives up after half a minute, because the port may be the wrong one.
func ask(ctx context.Context, port string, log *slog.Logger) (*lease, error) {
	log.Info("asking for an address (DHCP)", "port", port)
	// The socket gets every packet of the port, an image at full speed too: it is open only while we ask.
	c, err := nclient4.New(port, nclient4.WithTimeout(time.Second), nclient4.WithRetry(5))
	if err != nil {
		return nil, fmt.Errorf("open a DHCP socket: %w", err)
	}
	defer c.Close()
	discover, err := dhcpv4.NewDiscovery(c.InterfaceAddr(), asking()...)
	if err != nil {
		return nil, fmt.Errorf("make a DHCP discover: %w", err)
	}
	// A ProxyDHCP server answers the same DISCOVER with an offer that has no address (PXE 2.1, section 2.2). Taking it would end
	// the search before the real server has answered.
	isOffer := func(p *dhcpv4.DHCPv4) bool {
		return p.MessageType() == dhcpv4.MessageTypeOffer && !p.YourIPAddr.IsUnspecified() && p.ServerIdentifier() != nil
	}
	offer, err := c.SendAndRead(ctx, nclient4.DefaultServers, discover, isOffer)
	if errors.Is(err, nclient4.ErrNoResponse) {
		return nil, inventory.Errorf(inventory.Unavailable, "no DHCP server answers").WithHint("is the port in the provisioning network?")
	} else if err != nil {
		return nil, fmt.Errorf("ask for an offer: %w", err)
	}
	got, err := c.RequestFromOffer(ctx, offer, asking()...)
	if err != nil {
		return nil, fmt.Errorf("ask for the offered address: %w", err)
	}
	return read4(port, got)
}

// asking is what every DHCP message of ours says. RFC 2131 section 3.5 wants the same list of parameters in the REQUEST as in
// the DISCOVER. 1472 bytes fit into one Ethernet frame: larger answers would need fragments, which some switches drop.
func asking() []dhcpv4.Modifier {
	return []dhcpv4.Modifier{
		dhcpv4.WithOption(dhcpv4.OptMaxMessageSize(1472)),
		dhcpv4.WithOption(dhcpv4.OptClassIdentifier(vendorClass)),
		dhcpv4.WithRequestedOptions(dhcpv4.OptionSubnetMask, dhcpv4.OptionRouter, dhcpv4.OptionDomainNameServer, dhcpv4.OptionClasslessStaticRoute),
	}
}

// read4 reads an acknowledged lease.
func read4(port string, got *nclient4.Lease) (*lease, error) {
	ack := got.ACK
	address, ok := netip.AddrFromSlice(ack.YourIPAddr.To4())
	if !ok || address.IsUnspecified() {
		return nil, inventory.Errorf(inventory.Unavailable, "the DHCP server gave no address")
	}
	bits, size := ack.SubnetMask().Size()
	if size != 32 || bits == 0 {
		bits = 24 // a server without option 1 is broken; most such networks are small
	}
	l := &lease{port: port, prefix: netip.PrefixFrom(address, bits), dhcp: got, from: fmt.Sprint(ack.ServerIdentifier())}
	if r := ack.Router(); len(r) > 0 {
		l.gateway, _ = netip.AddrFromSlice(r[0].To4())
	}
	for _, s := range ack.DNS()[:min(len(ack.DNS()), 3)] {
		if a, ok := netip.AddrFromSlice(s.To4()); ok {
			l.servers = append(l.servers, a)
		}
	}
	for _, r := range ack.ClasslessStaticRoute()[:min(len(ack.ClasslessStaticRoute()), 64)] {
		route := netlink.Route{Dst: r.Dest, Gw: r.Router}
		if r.Router.IsUnspecified() { // RFC 3442: on the link itself
			route.Gw, route.Scope = nil, netlink.SCOPE_LINK
		}
		// Option 121 replaces option 3 completely (RFC 3442, "DHCP Client Behavior"); routes does that.
		l.static = append(l.static, route)
	}
	// Half of the lease where the server names no T1 (RFC 2131 section 4.4.5). The bounds are against a broken server.
	l.renew = ack.IPAddressRenewalTime(ack.IPAddressLeaseTime(time.Hour) / 2)
	l.renew = min(max(l.renew, 10*time.Second), 24*time.Hour)
	return l, nil
}

// Keep renews the lease until ctx ends. It keeps an address whose lease ran out. Only its server could give it away, and a
// RAM disk without its address is lost.
func (n *Network) Keep(ctx context.Context) {
	// An address by hand has no server that could take it back.
	if n.lease == nil || n.lease.renew == 0 {
		return
	}
	wait := n.lease.renew
	for sleep.For(ctx, wait) == nil {
		l, err := again(ctx, n.lease)
		// After a DHCPNAK the client must not use the address any more and begins with a DISCOVER (RFC 2131, section 3.2). Any
		// other error means only that no server answered.
		if _, ok := errors.AsType[*nclient4.ErrNak](err); ok {
			n.Log.Warn("the DHCP server takes the address back", "address", n.lease.prefix.String())
			l, err = ask(ctx, n.lease.port, n.Log)
		}
		if err != nil {
			n.Log.Warn("the lease is not renewed; trying again", "address", n.lease.prefix.String(), "err", err)
			// RFC 2131 waits half of what is left of the lease. The agent asks more often: it works for minutes or hours, and a
			// server that restarts should find its clients again.
			wait = min(max(wait/2, 10*time.Second), time.Minute)
			continue
		}
		port, err := netlink.LinkByName(l.port)
		if err == nil && (l.prefix != n.lease.prefix || l.gateway != n.lease.gateway) {
			err = n.apply(port, n.lease, l)
		}
		if err != nil {
			n.Log.Error("the renewed lease cannot be used", "err", err)
		}
		n.lease, wait = l, l.renew
	}
}

// again renews a lease.
func again(ctx context.Context, l *lease) (*lease, error) {
	c, err := nclient4.New(l.port, nclient4.WithTimeout(2*time.Second), nclient4.WithRetry(3))
	if err != nil {
		return nil, fmt.Errorf("open a DHCP socket: %w", err)
	}
	defer c.Close()
	got, err := c.Renew(ctx, l.dhcp, asking()...)
	if err != nil {
		return nil, err
	}
	return read4(l.port, got)
}

// staticLease reads the kernel's ip=<address>:<server>:<gateway>:<netmask>:<name>:<port>:<how>:<dns>... (its nfsroot.txt);
// nil when none is for this port, or it only says to use DHCP.
func staticLease(values []string, port string) *lease {
	for _, v := range values {
		f := strings.Split(v, ":")
		for len(f) < 9 {
			f = append(f, "")
		}
		address, err := netip.ParseAddr(f[0])
		// Field 5 names the port that the address is for; without it, the address fits any.
		if err != nil || !address.Is4() || f[5] != "" && f[5] != port {
			continue
		}
		bits := 24
		if mask := net.ParseIP(f[3]).To4(); mask != nil {
			if ones, size := net.IPMask(mask).Size(); size == 32 {
				bits = ones
			}
		}
		l := &lease{port: port, prefix: netip.PrefixFrom(address, bits), from: "ip="}
		l.gateway, _ = netip.ParseAddr(f[2])
		// Fields 7 and 8 are name servers. A ninth, an NTP server, is of no use here.
		for _, s := range f[7:9] {
			if a, err := netip.ParseAddr(s); err == nil {
				l.servers = append(l.servers, a)
			}
		}
		return l
	}
	return nil
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
