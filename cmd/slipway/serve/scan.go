package serve

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"time"

	"slipway.dev/slipway/bmc/redfish"
	"slipway.dev/slipway/bmc/scan"
	"slipway.dev/slipway/cmd/slipway/serve/lookup"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/egress"
	"slipway.dev/slipway/web/wire"
)

// scanTimeout is how long one address is given; a controller that starts takes longer, and is found by the next scan.
const scanTimeout = 2 * time.Second

// scanner looks for controllers on networks.
type scanner struct {
	egress     *egress.Policy // which addresses may be scanned
	neighbours *lookup.Neighbours
}

// scan looks for controllers in a range of addresses.
func (s scanner) scan(ctx context.Context, text string, drivers []string) ([]wire.FoundBMC, error) {
	r, err := scan.ParseRange(text)
	if err != nil {
		return nil, err
	}
	if err := s.mayScan(r); err != nil {
		return nil, err
	}
	isWanted := func(d inventory.BMCDriver) bool { return len(drivers) == 0 || slices.Contains(drivers, string(d)) }
	cfg := scan.Config{Range: r, Egress: s.egress, SkipIPMI: !isWanted(inventory.IPMI), Parallel: 1024, Rate: 1000, Timeout: scanTimeout, MAC: func(addr netip.Addr) inventory.MAC {
		mac, _ := s.neighbours.Of(addr)
		return mac
	}}
	if isWanted(inventory.Redfish) {
		cfg.Redfish = s.redfishProbe
	}
	// Scan calls one function at a time, so that no lock guards the list.
	var found []wire.FoundBMC
	_, err = scan.Scan(ctx, cfg, func(f scan.Found) {
		found = append(found, wire.FoundBMC{
			IP: f.IP.String(), Driver: f.Driver, Address: f.Address, Vendor: f.Vendor, Product: f.Product, Name: f.Name, UUID: f.UUID,
			Version: f.Version, Fingerprint: f.Fingerprint, MAC: f.MAC, Warning: f.Warning,
		})
	})
	return found, err
}

// mayScan refuses a range of which the egress policy allows no address.
func (s scanner) mayScan(r scan.Range) error {
	var first error
	// At most 65,536 addresses, and each check is a comparison in memory.
	for addr := range r.All() {
		err := s.egress.Check(netip.AddrPortFrom(addr, 0))
		if err == nil {
			return nil
		}
		first = cmp.Or(first, err)
	}
	return egress.Explain("no address in the range is allowed", first)
}

// redfishProbe asks an address for Redfish on the port that services are on.
func (s scanner) redfishProbe(ctx context.Context, addr netip.Addr) (scan.Found, error) {
	f, err := redfish.Probe(ctx, netip.AddrPortFrom(addr, 443), redfish.ProbeClient(scanTimeout, s.egress))
	return scan.Found{
		Address: f.Address, Vendor: f.Vendor, Product: f.Product, Name: f.Name, UUID: f.UUID, Version: f.Version, Fingerprint: f.Fingerprint,
	}, err
}
