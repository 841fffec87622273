package host

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sleep"
)

const (
	portFor = 30 * time.Second // how long the port it booted from may take to turn up, before others are tried
	linkFor = 20 * time.Second // how long it may take to have a link
	lookGap = 50 * time.Millisecond
	sayGap  = 5 * time.Second
)

// Network gives the machine one address: at the port it booted from, or else at the first that gets one.
type Network struct {
	BootMAC   inventory.MAC
	Addresses []string // values of ip=
	Log       *slog.Logger
	Sys       string // /sys
	Etc       string // /etc, where resolv.conf goes
	lease     *lease
}

// Up returns when the machine has an address. It tries until ctx ends: without a network the agent has nobody to report to.
func (n *Network) Up(ctx context.Context) error {
	isAny := n.BootMAC == ""
	if isAny {
		n.Log.Warn("the kernel arguments do not name the port it booted from (BOOTIF); trying all ports")
	}
	for ctx.Err() == nil {
		ports, err := n.find(ctx, isAny)
		if err != nil {
			return err
		}
		for _, port := range ports {
			if err := n.upPort(ctx, port); err != nil {
				n.Log.Warn("no address", "port", port.Attrs().Name, "err", err)
				continue
			}
			n.upOthers()
			return nil
		}
		// A cable may be in another port than firmware said, or its port has another MAC under Linux.
		isAny = true
	}
	return ctx.Err()
}

// find waits for the port that the machine booted from, or, when any will do, for ports with a link.
func (n *Network) find(ctx context.Context, isAny bool) ([]netlink.Link, error) {
	began, said := time.Now(), time.Now()
	for {
		ports, err := n.ports()
		if err != nil {
			return nil, err
		}
		if linked := n.usable(ports, isAny); linked != nil {
			return linked, nil
		}
		if time.Since(began) > portFor && !isAny {
			n.Log.Warn("the port it booted from does not turn up; trying all ports", "mac", string(n.BootMAC), "ports", names(ports))
			isAny = true
		}
		if time.Since(said) > sayGap {
			said = time.Now()
			n.Log.Info("waiting for a network port: is its driver in the image, is the cable in?", "mac", string(n.BootMAC), "ports", names(ports))
		}
		if err := sleep.For(ctx, lookGap); err != nil {
			return nil, err
		}
	}
}

// usable returns the boot port, whatever its link; or all ports that have a link.
func (n *Network) usable(ports []netlink.Link, isAny bool) (use []netlink.Link) {
	for _, p := range ports {
		switch a := p.Attrs(); {
		case isAny:
			_ = netlink.LinkSetUp(p) // a port that is down never shows a link
			if a.RawFlags&unix.IFF_RUNNING != 0 {
				use = append(use, p)
			}
		case a.HardwareAddr.String() == string(n.BootMAC) || a.PermHWAddr.String() == string(n.BootMAC):
			return []netlink.Link{p}
		}
	}
	return use
}

// ports returns the ports that are hardware, and veth, in which tests run. Bridges, tunnels and loopback have no device.
func (n *Network) ports() (ports []netlink.Link, err error) {
	all, err := netlink.LinkList()
	if err != nil {
		return nil, fmt.Errorf("list network ports: %w", err)
	}
	for _, l := range all {
		if _, err := os.Stat(filepath.Join(n.Sys, "class/net", l.Attrs().Name, "device")); err == nil || l.Type() == "veth" {
			ports = append(ports, l)
		}
	}
	return ports, nil
}

// upPort brings one port up and gives it an address.
func (n *Network) upPort(ctx context.Context, port netlink.Link) error {
	name := port.Attrs().Name
	if err := netlink.LinkSetUp(port); err != nil {
		return fmt.Errorf("bring it up: %w", err)
	}
	began, said := time.Now(), time.Now()
	for {
		now, err := netlink.LinkByName(name)
		if err != nil {
			return fmt.Errorf("the port has gone: %w", err)
		}
		if now.Attrs().RawFlags&unix.IFF_RUNNING != 0 {
			break
		}
		if time.Since(began) > linkFor {
			return inventory.Errorf(inventory.Unavailable, "no link in %s", linkFor).WithHint("look at the cable and at the switch port")
		}
		if time.Since(said) > sayGap {
			said = time.Now()
			n.Log.Info("waiting for a link", "port", name)
		}
		if err := sleep.For(ctx, lookGap); err != nil {
			return err
		}
	}
	if l := staticLease(n.Addresses, name); l != nil {
		n.lease = l
		return n.apply(port, nil, l)
	}
	l, err := ask(ctx, name, n.Log)
	if err != nil {
		return err
	}
	n.lease = l
	return n.apply(port, nil, l)
}

// upOthers brings the other ports up, so that their links and neighbours can be seen. None of them gets an address.
func (n *Network) upOthers() {
	ports, err := n.ports()
	if err != nil {
		return
	}
	for _, p := range ports {
		if err := netlink.LinkSetUp(p); err != nil {
			n.Log.Debug("a port does not come up", "port", p.Attrs().Name, "err", err)
		}
	}
}

// apply sets a lease's address, routes and name servers. It sets the new address before it removes the old one, so that the
// port is never without.
func (n *Network) apply(port netlink.Link, old, l *lease) error {
	address := &netlink.Addr{IPNet: ipNet(l.prefix)}
	if err := netlink.AddrReplace(port, address); err != nil {
		return fmt.Errorf("set the address %s: %w", l.prefix, err)
	}
	if old != nil && old.prefix != l.prefix {
		_ = netlink.AddrDel(port, &netlink.Addr{IPNet: ipNet(old.prefix)})
	}
	// A route that cannot be set is logged and no more: the server may be on the same network.
	for _, r := range l.routes() {
		r.LinkIndex = port.Attrs().Index
		if err := netlink.RouteReplace(&r); err != nil {
			n.Log.Warn("a route cannot be set", "to", fmt.Sprint(r.Dst), "gateway", r.Gw.String(), "err", err)
		}
	}
	if len(l.servers) > 0 {
		var text strings.Builder
		for _, s := range l.servers {
			fmt.Fprintf(&text, "nameserver %s\n", s)
		}
		err := os.MkdirAll(n.Etc, 0o755)
		if err == nil {
			err = os.WriteFile(filepath.Join(n.Etc, "resolv.conf"), []byte(text.String()), 0o644)
		}
		if err != nil {
			n.Log.Warn("name servers cannot be set", "err", err)
		}
	}
	gateway := ""
	if l.gateway.IsValid() {
		gateway = l.gateway.String()
	}
	n.Log.Info("network", "port", l.port, "mac", port.Attrs().HardwareAddr.String(), "address", l.prefix.String(), "gateway", gateway, "from", l.from)
	return nil
}

func names(ports []netlink.Link) string {
	if len(ports) == 0 {
		return "none"
	}
	var words []string
	for _, p := range ports {
		words = append(words, p.Attrs().Name+" "+p.Attrs().HardwareAddr.String())
	}
	return strings.Join(words, ", ")
}
