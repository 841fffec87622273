package serve

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"slipway.dev/slipway/cmd/slipway/doctor"
	"slipway.dev/slipway/cmd/slipway/serve/lookup"
	"slipway.dev/slipway/inventory"
)

// subnetMaker makes the subnets of interfaces that have none, and settles the mode of those that it made without an answer.
type subnetMaker struct {
	cfg   *Config
	store inventory.Store
	log   *slog.Logger
	// instances are the addresses of the other instances; nil: there are none.
	instances func() []netip.Addr
}

// unserved returns the interfaces on which a start asks for other DHCP servers, because it decides by itself on the mode of
// their subnet: those without a subnet, and those whose network could not be asked so far. Elsewhere a start does not wait
// for that.
func (m *subnetMaker) unserved(ctx context.Context) (names []string, err error) {
	if m.cfg.Mode != modeAuto {
		return nil, nil
	}
	if names, err = m.withoutSubnet(ctx); err != nil {
		return nil, err
	}
	// A subnet that was made without an answer gets another question: its network may answer now.
	known, err := readUnasked(m.cfg.DataDir)
	if err != nil {
		return nil, err
	}
	err = m.store.Read(ctx, func(tx inventory.Tx) error {
		subnets, err := tx.Subnets().List(inventory.Page{})
		for _, s := range subnets {
			if known.has(s) && slices.Contains(m.cfg.Interfaces, s.Interface) && !slices.Contains(names, s.Interface) {
				names = append(names, s.Interface)
			}
		}
		return err
	})
	return names, err
}

// withoutSubnet returns the interfaces that have an address or none, but no subnet for it.
func (m *subnetMaker) withoutSubnet(ctx context.Context) (names []string, err error) {
	err = m.store.Read(ctx, func(tx inventory.Tx) error {
		subnets, err := tx.Subnets().List(inventory.Page{})
		for _, name := range m.cfg.Interfaces {
			// Any subnet with the address counts here. sharedNetworks says when that is served on another interface.
			isServed := slices.ContainsFunc(lookup.AddressesOf([]string{name}), func(own netip.Addr) bool {
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

// firstSubnets writes the subnets of a first start, and says how it went.
func (m *subnetMaker) firstSubnets(ctx context.Context, others map[string]asked) (checks []Check, err error) {
	// An interface that came up after the check has no answer. Then nobody knows whether there are other servers.
	answer := func(name string) asked {
		if a, wasAsked := others[name]; wasAsked {
			return a
		}
		return notAsked
	}
	missing, err := m.withoutSubnet(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range missing { // one that cannot be made leaves none of the others behind
		// The subnet is made and thrown away here: this shows an error of one interface before any subnet is written.
		if i := doctor.ReadInterface(name); len(i.Prefixes) > 0 {
			if _, err := m.cfg.firstSubnet(name, i.Prefixes[0], answer(name)); err != nil {
				return nil, err
			}
		}
	}
	for _, name := range m.cfg.Interfaces {
		of, err := m.subnetOf(ctx, doctor.ReadInterface(name), answer(name))
		if err != nil {
			return nil, err
		}
		checks = append(checks, of...)
	}
	return checks, nil
}

// subnetOf makes the subnet of an interface where it has none, and settles the mode of one that was made without an answer.
func (m *subnetMaker) subnetOf(ctx context.Context, i doctor.Interface, others asked) (checks []Check, err error) {
	made, kept, err := ensureSubnet(ctx, m.store, *m.cfg, i, others, time.Now())
	switch {
	case err != nil:
		return nil, err
	case made != nil:
		k := Check{Name: "subnet " + made.Name, Status: ok, Detail: "made: " + describeSubnet(*made)}
		// With --mode the admin has decided, and the answer of the network changes nothing.
		if m.cfg.Mode == modeAuto && others.err != nil {
			k.Status = warning
			k.Detail += "; it is not mode full, because the network could not be checked for other DHCP servers: " + others.err.Error()
			k.Hint = "the next start asks again; if there is no other: slipway subnet update " + made.Name + " --mode full, then: slipway range add"
			err = noteUnasked(m.cfg.DataDir, *made, true)
		}
		return append(checks, k), err
	case kept == nil || kept.Interface != i.Name || len(i.Prefixes) == 0:
		return nil, nil
	}
	now, err := m.settleMode(ctx, *kept, i.Prefixes[0], others)
	if err != nil {
		return nil, err
	}
	if now.Mode != kept.Mode {
		checks = append(checks, Check{Name: "subnet " + now.Name, Status: ok, Detail: "a check of its network found no other DHCP server now: " + describeSubnet(now)})
	} else if m.cfg.wantsOther(now) {
		checks = append(checks, Check{
			Name: "subnet " + now.Name, Status: ok, Detail: "stays as it is: " + describeSubnet(now),
			Hint: "--mode, --range and --unknown are for the first start; now: slipway subnet update " + now.Name,
		})
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

// ensureSubnet writes the subnet of an interface's network when the store has none for it and the interface is ready. It
// returns what it wrote, or else the subnet that was there already.
func ensureSubnet(ctx context.Context, store inventory.Store, c Config, i doctor.Interface, others asked, now time.Time) (made, kept *inventory.Subnet, err error) {
	if len(i.Prefixes) == 0 {
		return nil, nil, nil // the self-check has said so
	}
	iface, own := i.Name, i.Prefixes[0]
	// Look and write are one transaction. The API is open while lateSubnets runs, and an admin may make the same subnet.
	err = store.Write(ctx, func(tx inventory.Tx) error {
		subnets, err := tx.Subnets().List(inventory.Page{})
		if err != nil {
			return err
		}
		for _, s := range subnets {
			// An overlap is enough: two subnets must not give one address to two machines.
			if s.CIDR.Overlaps(own) {
				kept = &s
				return nil
			}
		}
		// lateSubnets makes it once the interface is ready.
		if !c.isReady(i) {
			return nil
		}
		s, err := c.firstSubnet(iface, own, others)
		if err != nil {
			return err
		}
		made = &s
		if err := tx.Subnets().Create(made, now); err != nil {
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
	// The defaults ask for nothing. Only a value that somebody has chosen can differ from the subnet.
	if c.Mode != modeAuto && c.Mode != string(s.Mode) || c.Unknown != string(inventory.UnknownDisk) && c.Unknown != string(s.Unknown) {
		return true
	}
	r, err := parseRange(c.Range)
	return err == nil && !slices.Contains(s.Ranges, r)
}

// lateSubnets does what the start does for interfaces that were not ready yet: at boot, the network is often ready after us.
func (m *subnetMaker) lateSubnets(ctx context.Context) error {
	// What is ready now was settled by the start. Later changes of an interface are for the admin to decide.
	waiting := slices.DeleteFunc(slices.Clone(m.cfg.Interfaces), func(name string) bool { return m.cfg.isReady(doctor.ReadInterface(name)) })
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for len(waiting) > 0 {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		// An interface that is settled leaves the list, also after an error.
		waiting = slices.DeleteFunc(waiting, func(name string) bool { return m.lateSubnet(ctx, name) })
	}
	return nil
}

// lateSubnet makes the subnet of an interface once it is ready, and reports whether that is settled.
func (m *subnetMaker) lateSubnet(ctx context.Context, name string) (settled bool) {
	i := doctor.ReadInterface(name)
	if !m.cfg.isReady(i) {
		return false
	}
	answer := notAsked
	// The question takes seconds, so it is asked only where the answer still decides on a mode.
	unserved, err := m.unserved(ctx)
	if err != nil {
		// An error counts like a network without an answer: the subnet gets the safer mode.
		answer.err = err
	} else if slices.Contains(unserved, name) {
		answer = m.cfg.ask(ctx, name).without(m.instances)
	}
	checks, err := m.subnetOf(ctx, i, answer)
	if err != nil {
		m.log.Error("subnet not made", "iface", name, "err", err)
		// The admin has to act, and another try each second would fill the log.
		return true // the self-check goes on saying so
	}
	for _, k := range checks {
		m.log.Info(k.Name, "iface", name, "is", k.Detail, "hint", k.Hint)
	}
	return true
}

// firstSubnet is the subnet that a first start writes for an interface with that address: the upper half of the
// network is the range, unless another server leases addresses there already or nobody knows whether one does.
func (c *Config) firstSubnet(iface string, own netip.Prefix, others asked) (inventory.Subnet, error) {
	// A boot needs its address for minutes. The short lease gives it back to the next machine.
	s := inventory.Subnet{
		Name: lookup.SubnetName(iface), CIDR: own.Masked(), Interface: iface, Mode: c.modeOf(others),
		Unknown:  inventory.UnknownPolicy(c.Unknown),
		LeaseFor: inventory.Duration(24 * time.Hour), BootLeaseFor: inventory.Duration(10 * time.Minute),
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
	// A /30 or smaller has no half that is worth a range.
	if p.Bits() > 29 {
		return inventory.Range{}, false
	}
	b := p.Addr().As4()
	base := uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
	// The lower half stays free for addresses that people give out by hand, as they do from the bottom up.
	size := uint32(1) << (32 - p.Bits())
	first, last := base+size/2, base+size-2
	if at := toUint(own.Addr()); at >= first && at <= last {
		// Our own address splits the half: the larger part remains, since a range has no holes.
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

// settleMode changes a subnet that was made without an answer, now that its network has answered. It returns the subnet as
// it is.
func (m *subnetMaker) settleMode(ctx context.Context, s inventory.Subnet, own netip.Prefix, others asked) (inventory.Subnet, error) {
	known, err := readUnasked(m.cfg.DataDir)
	if err != nil || !known.has(s) || others.err != nil || m.cfg.Mode != modeAuto {
		return s, err
	}
	if len(others.servers) == 0 {
		now, err := m.cfg.firstSubnet(s.Interface, own, others)
		if err != nil {
			return s, err
		}
		was := s
		s.Mode, s.Ranges = now.Mode, now.Ranges
		if err = m.store.Write(ctx, func(tx inventory.Tx) error {
			at := time.Now()
			if err := tx.Subnets().Update(&s, at); err != nil {
				return err
			}
			return tx.AddEvent(&inventory.Event{
				At: at, Kind: inventory.EventChanged, Subject: "subnet/" + s.Name,
				Detail: fmt.Sprintf("subnet %s has mode %s instead of %s: a check of its network found no other DHCP server", s.Name, s.Mode, was.Mode),
			})
		}); err != nil {
			return was, err
		}
	}
	// The note goes after the change is stored. A crash in between finds version 2, for which has is false.
	return s, noteUnasked(m.cfg.DataDir, s, false)
}
