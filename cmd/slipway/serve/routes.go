package serve

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/vishvananda/netlink"

	"slipway.dev/slipway/cmd/slipway/doctor"
	"slipway.dev/slipway/cmd/slipway/serve/lookup"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe/dhcp"
)

// checkRoutes says which machines cannot be reached, or reach nothing: those behind relays without a route, and those whose
// gateway is this server while it does not route.
func checkRoutes(ctx context.Context, store inventory.Store, interfaces []string) (checks []Check) {
	own, sysctl := lookup.AddressesOf(interfaces), doctor.ReadSysctl()
	var relayed []inventory.Subnet
	var relays map[string][]netip.Addr
	err := store.Read(ctx, func(tx inventory.Tx) error {
		subnets, err := tx.Subnets().List(inventory.Page{})
		for _, s := range subnets {
			if !s.CIDR.Addr().Is4() || s.Mode == inventory.ModeOff {
				continue
			}
			if k, isNeeded := doctor.JudgeGateway(s.Name, s.Gateway, own, sysctl); isNeeded {
				checks = append(checks, k)
			}
			if s.Interface != "" || slices.ContainsFunc(own, s.CIDR.Contains) {
				continue
			}
			if k, isNeeded := doctor.JudgeRoute(s.Name, s.CIDR, routeTo(s.CIDR.Addr().Next())); isNeeded {
				checks = append(checks, k)
			} else {
				relayed = append(relayed, s)
			}
		}
		if err == nil && len(relayed) > 0 {
			relays, err = relaysOf(tx, relayed)
		}
		return err
	})
	if err != nil {
		checks = append(checks, Check{Name: "routes", Status: failed, Detail: "subnets cannot be read: " + err.Error()})
	}
	return append(checks, askRelays(ctx, relayed, relays)...)
}

// relaysOf returns the relay agents of subnets, by subnet: those that hosts have asked through, and where none has the
// gateway, which most often is one.
func relaysOf(tx inventory.Tx, subnets []inventory.Subnet) (map[string][]netip.Addr, error) {
	out := map[string][]netip.Addr{}
	// Pages of hosts: a transaction that reads all of them in one list would hold the memory of 10,000 hosts.
	for after := ""; ; {
		hosts, err := tx.ListHosts(inventory.HostFilter{}, inventory.Page{After: after, Limit: lookup.KnownPage})
		if err != nil {
			return nil, err
		}
		for _, h := range hosts {
			relay, err := netip.ParseAddr(h.Facts[inventory.FactRelay])
			at := slices.IndexFunc(subnets, func(s inventory.Subnet) bool { return err == nil && s.CIDR.Contains(relay) })
			if at >= 0 && !slices.Contains(out[subnets[at].Name], relay) {
				out[subnets[at].Name] = append(out[subnets[at].Name], relay)
			}
		}
		if len(hosts) < lookup.KnownPage {
			break
		}
		after = hosts[len(hosts)-1].Name
	}
	for _, s := range subnets {
		if len(out[s.Name]) == 0 && s.Gateway.IsValid() {
			out[s.Name] = []netip.Addr{s.Gateway}
		}
	}
	return out, nil
}

// pingFor is how long relay agents have to answer. Some filter ICMP, so that silence is a warning and no error.
const pingFor = time.Second

func askRelays(ctx context.Context, subnets []inventory.Subnet, relays map[string][]netip.Addr) (checks []Check) {
	var all []netip.Addr
	for _, of := range relays {
		all = append(all, of...)
	}
	if len(all) == 0 {
		return nil
	}
	there, err := dhcp.Ping(ctx, all, pingFor)
	if err != nil {
		return []Check{{Name: "relays", Status: warning, Detail: "gave no answer: " + err.Error()}}
	}
	for _, s := range subnets {
		if of := relays[s.Name]; len(of) > 0 {
			answered := slices.DeleteFunc(slices.Clone(of), func(a netip.Addr) bool { return !slices.Contains(there, a) })
			checks = append(checks, doctor.JudgeRelays(s.Name, of, answered))
		}
	}
	return checks
}

// routeTo returns through which interface packets to an address go, "" where there is no route.
func routeTo(a netip.Addr) string {
	// The kernel's own decision, with all its tables and rules. Reading the main table would miss policy routing.
	routes, err := netlink.RouteGet(a.AsSlice())
	if err != nil || len(routes) == 0 {
		return ""
	}
	link, err := netlink.LinkByIndex(routes[0].LinkIndex)
	if err != nil {
		return ""
	}
	return link.Attrs().Name
}
