package serve

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"slipway.dev/slipway/cmd/slipway/doctor"
	"slipway.dev/slipway/cmd/slipway/serve/lookup"
	"slipway.dev/slipway/images"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/dhcp6"
)

// selfCheck says what keeps machines from booting here. A start checks the machine first, and the subnets last. Each request for
// a self-check does both again.
type selfCheck struct {
	cfg     *Config
	store   inventory.Store
	subnets *subnetMaker
	loaders *images.Loaders
	// instances are the addresses of the other instances; nil: there are none.
	instances func() []netip.Addr
	// These are nil until the start has made them.
	networks *lookup.Networks
	dhcp6    *dhcp6.Server
}

// checkSecureBoot counts the hosts whose firmware does not trust the loaders here, or will not trust the next ones.
func (c *selfCheck) checkSecureBoot(ctx context.Context) []Check {
	var hosts []doctor.SecureHost
	err := c.store.Read(ctx, func(tx inventory.Tx) error {
		all, err := tx.ListHosts(inventory.HostFilter{}, inventory.Page{})
		for _, h := range all {
			if h.Facts[inventory.FactSecureBoot] != pxe.SecureBootOn || h.State == inventory.Discovered {
				continue
			}
			s := doctor.SecureHost{Name: h.Name}
			if db := h.Facts[inventory.FactSecureBootDB]; db != "" {
				s.DB = strings.Split(db, "; ")
			}
			hosts = append(hosts, s)
		}
		return err
	})
	if err != nil {
		return []Check{{Name: "Secure Boot", Status: failed, Detail: "hosts cannot be read: " + err.Error()}}
	}
	loaders := map[string][]pxe.Signer{}
	for _, name := range pxe.SignedFirst() {
		if signers := c.loaders.Signers(name); len(signers) > 0 {
			loaders[name] = signers
		}
	}
	return doctor.JudgeSecureBoot(hosts, loaders)
}

// checkMachine checks what commonly stops a boot server. It also asks for other DHCP servers on the interfaces of askOn, and
// returns their answers by interface.
func (c *selfCheck) checkMachine(ctx context.Context, askOn []string) (checks []Check, others map[string]asked) {
	checks = doctor.Judge(c.cfg.facts(nil))
	answers := make([]asked, len(askOn))
	var all sync.WaitGroup
	for i, name := range askOn {
		// All at once: each waits seconds for answers, and a server may have many interfaces.
		all.Go(func() { answers[i] = c.cfg.ask(ctx, name).without(c.instances) })
	}
	all.Wait()
	others = map[string]asked{}
	for i, name := range askOn {
		others[name] = answers[i]
		checks = append(checks, doctor.OtherServers(name, answers[i].servers, answers[i].err))
	}
	return append(checks, doctor.Loaders(c.loaders)...), others
}

// checkSubnets says on which interfaces nobody is answered because no subnet is there. It is part of each self-check, since
// addresses and subnets change while the server runs.
func (c *selfCheck) checkSubnets(ctx context.Context) (checks []Check) {
	names, err := c.subnets.withoutSubnet(ctx)
	if err == nil {
		err = c.store.Read(ctx, func(tx inventory.Tx) error {
			subnets, err := tx.Subnets().List(inventory.Page{})
			checks = sharedNetworks(c.cfg.Interfaces, func(name string) []netip.Addr { return lookup.AddressesOf([]string{name}) }, subnets)
			return err
		})
	}
	if err != nil {
		return []Check{{Name: "subnets", Status: failed, Detail: "cannot be read: " + err.Error()}}
	}
	for _, name := range names {
		if own := lookup.AddressesOf([]string{name}); len(own) > 0 {
			checks = append(checks, Check{
				Name: "subnet of " + name, Status: failed, Detail: "no subnet has its address " + own[0].String() + ": nobody is answered there",
				Hint: "slipway subnet create NAME --cidr CIDR --interface " + name + " --mode full, then: slipway range add",
			})
		}
	}
	return slices.Concat(checks, c.checkSubnets6(), c.checkReservations(ctx), checkRoutes(ctx, c.store, c.cfg.Interfaces))
}

// checkReservations names reservations of our own addresses, which are never given to anybody.
func (c *selfCheck) checkReservations(ctx context.Context) (checks []Check) {
	err := c.store.Read(ctx, func(tx inventory.Tx) error {
		for _, own := range lookup.AddressesOf(c.cfg.Interfaces) {
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

// sharedNetworks says which interfaces are in a network that is served on another one: a subnet belongs to one interface,
// and nobody is answered on the rest.
func sharedNetworks(interfaces []string, addrs func(name string) []netip.Addr, subnets []inventory.Subnet) (checks []Check) {
	for _, name := range interfaces {
		for _, own := range addrs(name) {
			at := slices.IndexFunc(subnets, func(s inventory.Subnet) bool { return s.CIDR.Contains(own) })
			if at < 0 || subnets[at].Interface == "" || subnets[at].Interface == name {
				continue
			}
			s := subnets[at]
			checks = append(checks, Check{
				Name: "network of " + name, Status: failed,
				Detail: fmt.Sprintf("its address %s is in subnet %s, which is served on %s: no machine is answered on %s", own, s.Name, s.Interface, name),
				Hint:   fmt.Sprintf("leave --interface %s out, or give %s an address of another network; to serve the subnet there: slipway subnet update %s --interface %s", name, name, s.Name, name),
			})
		}
	}
	return checks
}

// checkSubnets6 says which IPv6 subnets cannot boot anything: a machine fetches its loader from an address of ours.
func (c *selfCheck) checkSubnets6() (checks []Check) {
	checks = c.checkPorts6()
	if c.networks == nil {
		return checks // the server has not opened its networks yet
	}
	checks = append(checks, c.couldServe6()...)
	for _, s := range *c.networks.Six.Load() {
		if s.Interface == "" || s.Mode == inventory.ModeOff ||
			slices.ContainsFunc(lookup.Addresses6Of([]string{s.Interface}), s.CIDR.Contains) {
			continue
		}
		checks = append(checks, Check{
			Name: "subnet " + s.Name, Status: failed, Detail: fmt.Sprintf("%s has no address in %s: machines get addresses there and nothing to boot", s.Interface, s.CIDR),
			Hint: fmt.Sprintf("ip -6 addr add %s/%d dev %s", s.CIDR.Addr().Next(), s.CIDR.Bits(), s.Interface),
		})
	}
	return checks
}

// checkPorts6 says on which interfaces another program has the port of DHCPv6.
func (c *selfCheck) checkPorts6() (checks []Check) {
	if c.dhcp6 == nil || c.networks == nil { // only the listener knows which ports it did not get, and it is made after the first checks
		return nil
	}
	for _, name := range c.dhcp6.Taken() {
		k := Check{
			Name: "dhcpv6 " + name, Status: warning,
			Detail: "UDP port 547 is taken by another program: nobody is answered over DHCPv6 there",
			Hint:   "stop it before you make an IPv6 subnet; find it with: ss -lunp 'sport = :547'",
		}
		isServed := func(s inventory.Subnet) bool { return s.Interface == name && s.Mode != inventory.ModeOff }
		if slices.ContainsFunc(*c.networks.Six.Load(), isServed) {
			k.Status, k.Hint = failed, "stop it; find it with: ss -lunp 'sport = :547'; the port is taken over within seconds"
		}
		checks = append(checks, k)
	}
	return checks
}

// couldServe6 names the networks of the interfaces' IPv6 addresses that have no subnet. None is made by itself: an IPv6
// subnet sends router advertisements, which change every machine on the wire, not only those that boot.
func (c *selfCheck) couldServe6() (checks []Check) {
	for _, name := range c.cfg.Interfaces {
		p, found := lookup.StaticIPv6(name)
		if !found || slices.ContainsFunc(*c.networks.Six.Load(), func(s inventory.Subnet) bool { return s.CIDR.Overlaps(p) }) {
			continue
		}
		checks = append(checks, Check{
			Name: "ipv6 " + name, Status: doctor.OK, Detail: fmt.Sprintf("has %s, and there is no IPv6 subnet: nothing is served over IPv6", p), Hint: lookup.First6(name, p),
		})
	}
	return checks
}
