package address

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
)

// Clash is what a machine would hold, and who or what has it.
type Clash struct {
	inventory.Holding
	With string // such as machine web-2, the gateway of subnet rack1
	// Other is the holder of the address or name; the zero Holder stands for something of the network.
	Other inventory.Holder
	Hint  string
	Refs  []inventory.Ref // what With names
}

// References implements inventory.Referrer.
func (c *Clash) References() []inventory.Ref { return append(c.Holder.References(), c.Refs...) }

// Message says what is wrong, without naming the machine that would hold it.
func (c *Clash) Message() string {
	switch c.Kind {
	case inventory.HoldsName:
		name := c.Value
		if c.Domain != "" && !strings.Contains(c.Domain, "/") {
			name += "." + c.Domain
		}
		return fmt.Sprintf("the host name %s is that of %s", name, c.With)
	case inventory.HoldsNode:
		target, node, _ := strings.Cut(c.Value, "/")
		return fmt.Sprintf("the node name %s in %s is that of %s", node, target, c.With)
	}
	return fmt.Sprintf("the address %s is %s", c.Value, c.With)
}

// Code names the kind of the clash in findings.
func (c *Clash) Code() string { return "duplicate-" + string(c.Kind) }

// Err is the refusal of what would hold it. It is Invalid: who controls clusters tells that in a condition, and tries a Conflict again.
func (c *Clash) Err() *inventory.Error {
	return inventory.Errorf(inventory.Invalid, "%s: %s", c.Holder, c.Message()).WithHint("%s", c.Hint).Naming(c.Refs...)
}

// hintOf says what to do about a clash of two machines.
func hintOf(k inventory.HoldingKind) string {
	switch k {
	case inventory.HoldsName:
		return "give each machine a name of its own: leave host.hostname out of what they share, or make it a template such as web-{{ .Host.Place.Unit }}"
	case inventory.HoldsNode:
		return "leave bootstrap.nodeName out of what machines share, or make it a template such as {{ .Host.Name }}"
	}
	return "let each machine have one of its own with fromSubnets: [SUBNET], or write the address in the machine's own configuration"
}

// Clashes returns what of the holdings of a subject somebody or something else has. The holdings of the holders named in
// except do not count.
func (b *Book) Clashes(s Subject, all []inventory.Holding, except map[string]bool) (clashes []Clash, err error) {
	for _, h := range all {
		others, err := b.others(s, h, except)
		if err != nil {
			return nil, err
		}
		if len(others) > 0 {
			clashes = append(clashes, between(h, others[0]))
			continue
		}
		if h.Kind != inventory.HoldsAddress {
			continue
		}
		a, err := netip.ParseAddr(h.Value)
		if err != nil {
			continue
		}
		t, err := b.inNetwork(s, a)
		if err != nil {
			return nil, err
		}
		if t.with != "" {
			clashes = append(clashes, Clash{Holding: h, With: t.with, Hint: t.hint, Refs: t.refs})
		}
	}
	return clashes, nil
}

// Others returns each clash of the holdings of a subject with a machine or host. Addresses of the network itself do not
// count.
func (b *Book) Others(s Subject, all []inventory.Holding) (clashes []Clash, err error) {
	for _, h := range all {
		others, err := b.others(s, h, nil)
		if err != nil {
			return nil, err
		}
		for _, o := range others {
			clashes = append(clashes, between(h, o))
		}
	}
	return clashes, nil
}

// others are the holdings of machines and hosts that are the same as one of a subject.
func (b *Book) others(s Subject, h inventory.Holding, except map[string]bool) ([]inventory.Holding, error) {
	all, err := b.tx.FindHoldings(h.Kind, h.Value)
	if err != nil {
		return nil, fmt.Errorf("read who holds %s: %w", h.Value, err)
	}
	if b.Awaited != nil {
		all = append(all, b.Awaited(h.Kind, h.Value)...)
	}
	return slices.DeleteFunc(all, func(o inventory.Holding) bool { return !o.IsSame(&h) || except[o.Key()] || isSubject(s, o.Holder) }), nil
}

// isSubject reports whether a holder is the subject, or the host that it takes.
func isSubject(s Subject, h inventory.Holder) bool {
	if h.Key() == s.Key() {
		return true
	}
	return s.On != nil && h.MachineUID == "" && h.HostID == s.On.ID
}

// between is the clash of a holding with another's.
func between(h, other inventory.Holding) Clash {
	c := Clash{Holding: h, Other: other.Holder, Hint: hintOf(h.Kind), Refs: other.Holder.References()}
	switch h.Kind {
	case inventory.HoldsAddress:
		c.With = "that of " + other.Holder.String()
	default:
		c.With = other.Holder.String()
	}
	return c
}

// Among returns the clashes of holdings with each other, one for each holding that comes after another of its kind and value.
func Among(all []inventory.Holding) (clashes []Clash) {
	first := map[string][]inventory.Holding{}
	for _, h := range all {
		key := string(h.Kind) + "/" + h.Value
		for _, o := range first[key] {
			if o.IsSame(&h) && o.Key() != h.Key() {
				clashes = append(clashes, between(h, o))
				break
			}
		}
		first[key] = append(first[key], h)
	}
	return clashes
}

// Namesakes returns the default host names that two machines have. Each machine is named after an object, and the objects
// are in two namespaces or clusters. Both machines may be, and somebody should know.
func Namesakes(all []inventory.Holding) (clashes []Clash) {
	first := map[string]inventory.Holding{}
	for _, h := range all {
		if h.Kind != inventory.HoldsName || !strings.Contains(h.Domain, "/") {
			continue
		}
		one, isKnown := first[h.Value]
		if !isKnown {
			first[h.Value] = h
		} else if !one.IsSame(&h) && one.Key() != h.Key() {
			c := between(h, one)
			c.With += ", too; their objects are in two namespaces"
			c.Hint = "nothing is wrong while DNS and monitoring tell them apart; else give one of the objects a host name of its own: spec.hostname"
			clashes = append(clashes, c)
		}
	}
	return clashes
}

// taker is what of the network has an address, with what to do about it and what with names. The zero taker is nothing.
type taker struct {
	with, hint string
	refs       []inventory.Ref
}

// inNetwork says what of the network has an address.
func (b *Book) inNetwork(s Subject, a netip.Addr) (taker, error) {
	const another = "choose another address, or fromSubnets: [SUBNET] for one that is kept for the machine"
	if slices.Contains(b.ours, a) {
		return taker{with: "this server's own", hint: another}, nil
	}
	kept, err := b.tx.FindAllocation(a)
	switch {
	case err == nil && kept.Key() == s.Key():
		return taker{}, nil
	case err == nil:
		return taker{"kept for " + kept.Holder.String(), another + "; see: slipway address list --subnet " + kept.Subnet, kept.References()}, nil
	case !isNotFound(err):
		return taker{}, err
	}
	if t, err := b.fixture(a); err != nil || t.with != "" {
		t.hint = another
		return t, err
	}
	r, err := b.tx.FindReservation(a)
	switch {
	case err == nil && IsReservedFor(r, s.On):
		return taker{}, nil
	case err == nil && s.On == nil:
		return reservedFor(r, "give the machine the host that it is reserved for (--host), or choose another address"), nil
	case err == nil:
		return reservedFor(r, "choose another address, or delete that reservation: slipway reservation delete "+a.String()), nil
	case !isNotFound(err):
		return taker{}, err
	}
	n := b.subnetOf(a)
	if n == nil {
		return taker{}, nil
	}
	l, err := b.tx.FindLease(a)
	if err == nil && l.State == inventory.LeaseBound && l.ExpiresAt.After(b.now) && !hasMAC(s.On, l.MAC) {
		return taker{"leased to " + string(l.MAC), another, inventory.HostRef(string(l.MAC)).References()}, nil
	} else if err != nil && !isNotFound(err) {
		return taker{}, err
	}
	for _, rg := range n.Ranges {
		if n.Mode == inventory.ModeFull && rg.Contains(a) {
			return taker{
				with: fmt.Sprintf("in the range %s-%s of subnet %s, which DHCP leases", rg.First, rg.Last, n.Name),
				hint: "choose one outside of the range, or reserve it for the host: slipway reservation create " + a.String() + " --mac MAC",
			}, nil
		}
	}
	return taker{}, nil
}

// fixture says which gateway, virtual address or controller has an address.
func (b *Book) fixture(a netip.Addr) (taker, error) {
	if n := b.subnetOf(a); n != nil && n.Gateway == a {
		return taker{with: "the gateway of subnet " + n.Name}, nil
	}
	if err := b.loadFixtures(); err != nil {
		return taker{}, err
	}
	return b.fixtures[a], nil
}

func (b *Book) loadFixtures() error {
	if b.fixtures != nil {
		return nil
	}
	b.fixtures = map[netip.Addr]taker{}
	controllers, err := b.tx.ListBMCs(inventory.Page{})
	if err != nil {
		return fmt.Errorf("read controllers: %w", err)
	}
	for _, c := range controllers {
		if a, ok := controllerAddress(c); ok {
			b.fixtures[a] = b.controllerOf(c.HostID)
		}
	}
	targets, err := b.tx.JoinTargets().List(inventory.Page{})
	if err != nil {
		return fmt.Errorf("read join targets: %w", err)
	}
	for _, t := range targets {
		if t.VIP.IsValid() {
			b.fixtures[t.VIP.Unmap()] = taker{with: "the virtual address of target " + t.Name}
		}
	}
	return nil
}

func (b *Book) controllerOf(id inventory.HostID) taker {
	const its = "that of the controller of "
	if h, err := b.tx.FindHost(id); err == nil {
		return taker{with: its + "host " + h.Name, refs: inventory.HostRef(h.Name).References()}
	}
	return taker{with: its + "another host"}
}

// controllerAddress is the address of a host's controller, where that is reached by one over the network.
func controllerAddress(c inventory.BMC) (netip.Addr, bool) {
	if c.Driver != inventory.Redfish && c.Driver != inventory.IPMI {
		return netip.Addr{}, false
	}
	text := c.Address
	if strings.Contains(text, "://") {
		u, err := url.Parse(text)
		if err != nil {
			return netip.Addr{}, false
		}
		text = u.Hostname()
	} else if host, _, err := net.SplitHostPort(text); err == nil {
		text = host
	}
	a, err := netip.ParseAddr(strings.Trim(text, "[]"))
	return a.Unmap(), err == nil && !a.IsLoopback()
}

func hasMAC(h *inventory.Host, m inventory.MAC) bool {
	return h != nil && slices.Contains(h.MACs(), m)
}

// IsReservedFor reports whether a reservation is of a host.
func IsReservedFor(r inventory.Reservation, h *inventory.Host) bool {
	switch {
	case h == nil:
		return false
	case r.MAC != "":
		return hasMAC(h, r.MAC)
	case r.UUID != "":
		return strings.EqualFold(r.UUID, h.UUID)
	case r.Port != "":
		return r.Port == h.Port
	}
	return false
}

func reservedFor(r inventory.Reservation, hint string) taker {
	t := taker{with: "reserved in DHCP for a machine", hint: hint}
	if r.MAC != "" {
		t.refs = inventory.HostRef(string(r.MAC)).References()
	}
	for _, who := range []struct{ what, is string }{{"", string(r.MAC)}, {"UUID ", r.UUID}, {"port ", r.Port}, {"client id ", r.ClientID}} {
		if who.is != "" {
			t.with = "reserved in DHCP for " + who.what + who.is
			break
		}
	}
	return t
}
