package serve

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
)

// unserved returns the interfaces whose network has no subnet yet: on these a first start decides by itself, and has
// to know whether another DHCP server is there. Elsewhere a start does not wait for that.
func (a *appliance) unserved(ctx context.Context) (names []string, err error) {
	if a.cfg.Mode != "auto" {
		return nil, nil
	}
	return a.withoutSubnet(ctx)
}

// withoutSubnet returns the interfaces that have an address or none, but no subnet for it.
func (a *appliance) withoutSubnet(ctx context.Context) (names []string, err error) {
	err = a.store.Read(ctx, func(tx inventory.Tx) error {
		subnets, err := tx.ListSubnets()
		for _, name := range a.cfg.Interfaces {
			isServed := slices.ContainsFunc(addressesOf([]string{name}), func(own netip.Addr) bool {
				return slices.ContainsFunc(subnets, func(s inventory.Subnet) bool { return s.CIDR.Contains(own) })
			})
			if !isServed {
				names = append(names, name)
			}
		}
		return err
	})
	return names, err
}

// firstSubnets writes the subnets of a first start.
func (a *appliance) firstSubnets(ctx context.Context, others map[string][]netip.Addr) (checks []Check, err error) {
	for _, name := range a.cfg.Interfaces {
		made, kept, err := ensureSubnet(ctx, a.store, a.cfg, name, others[name], time.Now())
		if err != nil {
			return nil, err
		}
		if made != nil {
			checks = append(checks, Check{Name: "subnet " + made.Name, Status: ok, Detail: "made: " + describeSubnet(*made)})
		}
		if kept != nil && a.cfg.wantsOther(*kept) {
			checks = append(checks, Check{
				Name: "subnet " + kept.Name, Status: ok, Detail: "stays as it is: " + describeSubnet(*kept),
				Hint: "--mode, --range and --unknown are for the first start; now: slipway subnet update " + kept.Name,
			})
		}
	}
	return checks, nil
}

func describeSubnet(s inventory.Subnet) string {
	line := fmt.Sprintf("%s on %s, mode %s", s.CIDR, s.Interface, s.Mode)
	for _, r := range s.Ranges {
		line += fmt.Sprintf(", leases %s-%s", r.First, r.Last)
	}
	return line + ", unaccepted machines: " + string(s.Unknown)
}

// ensureSubnet writes the subnet of an interface's network when the store has none for it. It returns what it wrote, or
// else the subnet that was there already.
func ensureSubnet(ctx context.Context, store inventory.Store, c Config, iface string, others []netip.Addr, now time.Time) (made, kept *inventory.Subnet, err error) {
	i, err := net.InterfaceByName(iface)
	if err != nil {
		return nil, nil, fmt.Errorf("interface %s: %w", iface, err)
	}
	own, found := firstIPv4(i)
	if !found {
		return nil, nil, nil // the self-check has said so
	}
	err = store.Write(ctx, func(tx inventory.Tx) error {
		subnets, err := tx.ListSubnets()
		if err != nil {
			return err
		}
		for _, s := range subnets {
			if s.CIDR.Overlaps(own) {
				kept = &s
				return nil
			}
		}
		s, err := c.firstSubnet(iface, own, others)
		if err != nil {
			return err
		}
		made = &s
		if err := tx.CreateSubnet(made, now); err != nil {
			return err
		}
		return tx.AddEvent(&inventory.Event{
			At: now, Kind: inventory.EventChanged, Subject: "subnet/" + s.Name, Detail: "subnet " + s.Name + " made for interface " + iface,
		})
	})
	return made, kept, err
}

// wantsOther reports whether the settings for a first start ask for something else than the subnet that is there.
func (c *Config) wantsOther(s inventory.Subnet) bool {
	if c.Mode != "auto" && c.Mode != string(s.Mode) || c.Unknown != string(inventory.UnknownDisk) && c.Unknown != string(s.Unknown) {
		return true
	}
	r, err := parseRange(c.Range)
	return err == nil && !slices.Contains(s.Ranges, r)
}

// checkSubnets says on which interfaces nobody is answered because no subnet is there.
func (a *appliance) checkSubnets(ctx context.Context) (checks []Check) {
	names, err := a.withoutSubnet(ctx)
	if err != nil {
		return []Check{{Name: "subnets", Status: failed, Detail: "cannot be read: " + err.Error()}}
	}
	for _, name := range names {
		if own := addressesOf([]string{name}); len(own) > 0 {
			checks = append(checks, Check{
				Name: "subnet of " + name, Status: failed, Detail: "no subnet has its address " + own[0].String() + ": nobody is answered there",
				Hint: "slipway subnet create NAME --cidr CIDR --interface " + name + " --mode full, then: slipway range add",
			})
		}
	}
	return slices.Concat(checks, a.checkSubnets6(), a.checkReservations(ctx), a.checkWays(ctx))
}

// checkReservations names reservations of our own addresses, which are never given to anybody.
func (a *appliance) checkReservations(ctx context.Context) (checks []Check) {
	err := a.store.Read(ctx, func(tx inventory.Tx) error {
		for _, own := range addressesOf(a.cfg.Interfaces) {
			if _, err := tx.FindReservation(own); err == nil {
				checks = append(checks, Check{
					Name: "reservation " + own.String(), Status: failed, Detail: "is an address of this server: the machine gets another one",
					Hint: "slipway reservation delete " + own.String() + ", and reserve another",
				})
			}
		}
		return nil
	})
	if err != nil {
		checks = append(checks, Check{Name: "reservations", Status: failed, Detail: "cannot be read: " + err.Error()})
	}
	return checks
}

// lateSubnets does what the start does for interfaces that had no address yet: at boot, the network is often ready
// after us.
func (a *appliance) lateSubnets(ctx context.Context) error {
	waiting := slices.DeleteFunc(slices.Clone(a.cfg.Interfaces), func(name string) bool { return len(addressesOf([]string{name})) > 0 })
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for len(waiting) > 0 {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		waiting = slices.DeleteFunc(waiting, func(name string) bool { return a.lateSubnet(ctx, name) })
	}
	return nil
}

// lateSubnet makes the subnet of an interface once it has an address, and reports whether that is settled.
func (a *appliance) lateSubnet(ctx context.Context, name string) (settled bool) {
	if len(addressesOf([]string{name})) == 0 {
		return false
	}
	var heard []netip.Addr
	if unserved, err := a.unserved(ctx); err == nil && slices.Contains(unserved, name) {
		_, heard = a.listen(ctx, name)
	}
	made, _, err := ensureSubnet(ctx, a.store, a.cfg, name, heard, time.Now())
	if err != nil {
		a.log.Error("subnet not made", "iface", name, "err", err)
		return true // the self-check goes on saying so
	}
	if made != nil {
		a.log.Info("subnet made", "iface", name, "subnet", describeSubnet(*made))
	}
	return true
}

// firstSubnet is the subnet that a first start writes for an interface with that address: the upper half of the
// network is the range, unless another server leases addresses there already.
func (c *Config) firstSubnet(iface string, own netip.Prefix, others []netip.Addr) (inventory.Subnet, error) {
	s := inventory.Subnet{
		Name: subnetName(iface), CIDR: own.Masked(), Interface: iface, Mode: inventory.SubnetMode(c.Mode), Unknown: inventory.UnknownPolicy(c.Unknown),
		LeaseFor: inventory.Duration(24 * time.Hour), BootLeaseFor: inventory.Duration(10 * time.Minute),
	}
	if c.Mode == "auto" {
		s.Mode = inventory.ModeFull
		if len(others) > 0 {
			s.Mode = inventory.ModeReservations
		}
	}
	if s.Mode != inventory.ModeFull {
		return s, s.Validate()
	}
	if c.Range != "" {
		r, err := parseRange(c.Range)
		if err != nil {
			return s, err
		}
		s.Ranges = []inventory.Range{r}
	} else if r, ok := upperHalf(own); ok {
		s.Ranges = []inventory.Range{r}
	}
	return s, s.Validate()
}

// upperHalf is the upper half of a network without the broadcast address and without our own.
func upperHalf(own netip.Prefix) (inventory.Range, bool) {
	p := own.Masked()
	if p.Bits() > 29 {
		return inventory.Range{}, false
	}
	b := p.Addr().As4()
	base := uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
	size := uint32(1) << (32 - p.Bits())
	first, last := base+size/2, base+size-2
	if at := toUint(own.Addr()); at >= first && at <= last {
		if at-first >= last-at {
			last = at - 1
		} else {
			first = at + 1
		}
	}
	return inventory.Range{First: fromUint(first), Last: fromUint(last)}, first <= last
}

func toUint(a netip.Addr) uint32 {
	b := a.As4()
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
}

func fromUint(n uint32) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
}

// subnetName makes a name out of that of an interface, which may have dots (VLANs), upper case and underscores.
func subnetName(iface string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, iface)
	if clean = strings.Trim(clean, "-"); clean == "" {
		return "boot"
	}
	return clean
}
