// Package scan owns the search for controllers in a range of addresses. It sends the IPMI probe of bmc/ipmi, and a Redfish
// probe that the caller gives. It never logs in anywhere, and never sends to an address outside of the range.
package scan

import (
	"cmp"
	"context"
	"net/netip"
	"sync"
	"time"

	"slipway.dev/slipway/bmc/ipmi"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/egress"
)

// Found is a controller that answered. All texts are the controller's own, cleaned and truncated.
type Found struct {
	IP          netip.Addr          `json:"ip"`
	Driver      inventory.BMCDriver `json:"driver"`
	Address     string              `json:"address"` // as inventory.BMC.Address wants it
	Vendor      string              `json:"vendor,omitempty"`
	Product     string              `json:"product,omitempty"`
	Name        string              `json:"name,omitempty"`
	UUID        string              `json:"uuid,omitempty"`
	Version     string              `json:"version,omitempty"` // of the protocol
	Fingerprint string              `json:"fingerprint,omitempty"`
	MAC         inventory.MAC       `json:"mac,omitempty"`
	Warning     string              `json:"warning,omitempty"` // what an admin should know about it
}

// Probe looks for a controller at one address. It ends with ctx; any error means that there is none.
type Probe func(ctx context.Context, addr netip.Addr) (Found, error)

// Config says where and how to scan. Zero values mean the defaults in brackets.
type Config struct {
	Range    Range
	IPMIPort uint16         // [623]
	SkipIPMI bool           // to look for Redfish only
	Redfish  Probe          // nil looks for IPMI only
	Egress   *egress.Policy // addresses that it refuses are passed over; nil: none are
	Parallel int            // addresses at once [128]
	Rate     int            // addresses begun in a second [500]
	Timeout  time.Duration  // for each address [2 s]
	// MAC finds the link address of a neighbour, such as in the kernel's table, "" for none; nil never does.
	MAC func(netip.Addr) inventory.MAC
}

// Bounds of what a caller may ask for.
const (
	maxParallel = 1024
	maxRate     = 10_000
	maxTimeout  = 30 * time.Second
	maxText     = 120
)

func (c *Config) fill() error {
	if !c.Range.isValid() {
		return inventory.Errorf(inventory.Invalid, "a scan needs a range of 1 to %d addresses", MaxN)
	}
	if c.SkipIPMI && c.Redfish == nil {
		return inventory.Errorf(inventory.Invalid, "a scan needs something to look for")
	}
	c.IPMIPort = cmp.Or(c.IPMIPort, 623)
	c.Parallel = bounded(c.Parallel, 128, maxParallel)
	c.Rate = bounded(c.Rate, 500, maxRate)
	if c.Timeout <= 0 {
		c.Timeout = 2 * time.Second
	}
	c.Timeout = min(c.Timeout, maxTimeout)
	return nil
}

func bounded(n, or, most int) int {
	if n <= 0 {
		return or
	}
	return min(n, most)
}

// Scan asks all addresses of a range. It calls each for every controller, one at a time, in the order of their answers.
// It returns how many addresses it asked: all of them, unless ctx ended.
func Scan(ctx context.Context, c Config, each func(Found)) (doneN int, err error) {
	if err := c.fill(); err != nil {
		return 0, err
	}
	var (
		wg      sync.WaitGroup
		mu      sync.Mutex
		places  = make(chan struct{}, c.Parallel)
		beat    = time.NewTicker(time.Second / time.Duration(c.Rate))
		release = func() { <-places }
	)
	defer beat.Stop()
	// Deferred calls run in reverse: the probes end before the ticker stops, and each is never called after Scan has returned.
	defer wg.Wait()
	report := func(f Found) {
		mu.Lock()
		defer mu.Unlock()
		each(f)
	}
	// Two limits: places bounds the sockets that are open at once, and beat the packets of a second. Without the second one, a
	// network of refusing hosts frees places at once and gets a burst that looks like an attack.
	for addr := range c.Range.All() {
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		doneN++
		wg.Go(func() {
			defer release()
			c.look(ctx, addr, report)
		})
		select {
		case <-beat.C:
		case <-ctx.Done():
		}
	}
	if ctx.Err() != nil {
		return doneN, &inventory.Error{Kind: inventory.Unavailable, Msg: "the scan was stopped before its end", Err: ctx.Err()}
	}
	return doneN, nil
}

// look asks one address by both protocols at once.
func (c *Config) look(ctx context.Context, addr netip.Addr, report func(Found)) {
	if c.Egress.Check(netip.AddrPortFrom(addr, 0)) != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	var wg sync.WaitGroup
	ask := func(driver inventory.BMCDriver, p Probe) {
		wg.Go(func() {
			f, err := p(ctx, addr)
			if err != nil {
				return
			}
			// A probe's own word for its address does not count: a controller must not lead the admin to another machine.
			f.IP, f.Driver = addr, driver
			if f.MAC == "" && c.MAC != nil {
				f.MAC = c.MAC(addr)
			}
			report(f.clean())
		})
	}
	if !c.SkipIPMI {
		ask(inventory.IPMI, c.ipmi)
	}
	if c.Redfish != nil {
		ask(inventory.Redfish, c.Redfish)
	}
	wg.Wait()
}

func (c *Config) ipmi(ctx context.Context, addr netip.Addr) (Found, error) {
	// UDP loses packets: a third of the time leaves room to ask again within Timeout.
	f, err := ipmi.Probe(ctx, netip.AddrPortFrom(addr, c.IPMIPort), c.Timeout/3)
	if err != nil {
		return Found{}, err
	}
	out := Found{Address: f.Address, Vendor: f.Vendor, UUID: f.UUID, Version: f.Version}
	switch {
	case f.IsOpen:
		out.Warning = "it lets in users without a name or a password"
	case f.Version != "2.0":
		out.Warning = "it does not speak IPMI 2.0, which the driver needs"
	}
	return out, nil
}

// clean cuts what came from the network.
func (f Found) clean() Found {
	for _, s := range []*string{&f.Address, &f.Vendor, &f.Product, &f.Name, &f.UUID, &f.Version, &f.Fingerprint, &f.Warning} {
		*s = inventory.Clean(*s, maxText)
	}
	return f
}
