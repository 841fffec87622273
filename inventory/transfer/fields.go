package transfer

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/option"
)

func hostFields() []field[inventory.Host] {
	type host = inventory.Host
	labels := mapField("labels", func(h *host) *map[string]string { return &h.Labels })
	labels.set = setLabels
	return []field[host]{
		keeping(textField("name", func(h *host) *string { return &h.Name }, func(s string) error { return inventory.CheckName("host", s) })),
		{name: "macs", kind: asList, get: getMACs, set: setMACs, keeps: true},
		textField("site", func(h *host) *string { return &h.Place.Site }, plain("site")),
		textField("row", func(h *host) *string { return &h.Place.Row }, plain("row")),
		textField("rack", func(h *host) *string { return &h.Place.Rack }, plain("rack")),
		numberField("unit", func(h *host) *int { return &h.Place.Unit }),
		numberField("height", func(h *host) *int { return &h.Place.Height }),
		textField("face", func(h *host) *inventory.Face { return &h.Place.Face }, nil),
		labels,
		textField("profile", func(h *host) *string { return &h.Profile }, func(s string) error { return inventory.CheckName("profile", s) }),
		numberField("profileRevision", func(h *host) *int { return &h.ProfileRevision }),
		textField("serial", func(h *host) *string { return &h.Serial }, plain("serial")),
		textField("uuid", func(h *host) *string { return &h.UUID }, plain("uuid")),
		textField("assetTag", func(h *host) *string { return &h.AssetTag }, plain("assetTag")),
		textField("manufacturer", func(h *host) *string { return &h.Manufacturer }, plain("manufacturer")),
		textField("product", func(h *host) *string { return &h.Product }, plain("product")),
		textField("diskBoot", func(h *host) *inventory.DiskBoot { return &h.DiskBoot }, nil),
		textField("port", func(h *host) *string { return &h.Port }, inventory.CheckPort),
		flagField("inMaintenance", func(h *host) *bool { return &h.InMaintenance }),
		flagField("isProtected", func(h *host) *bool { return &h.IsProtected }),
		flagField("isAdopted", func(h *host) *bool { return &h.IsAdopted }),
		flagField("isCordoned", func(h *host) *bool { return &h.IsCordoned }),
		flagField("isRetained", func(h *host) *bool { return &h.IsRetained }),
		listField("taints", func(h *host) *[]inventory.Taint { return &h.Taints }, parseTaint, writeTaint),
		parsedField("rootDisk", func(h *host) *inventory.DiskHint { return &h.RootDisk }, parseHint, writeHint),
		listField("keepDisks", func(h *host) *[]inventory.DiskHint { return &h.KeepDisks }, parseHint, writeHint),
		{name: "accepted", kind: asFlag, get: getAccepted, set: setAccepted, keeps: true},
	}
}

func getMACs(h *inventory.Host) (texts []string) {
	for _, m := range h.MACs() {
		texts = append(texts, string(m))
	}
	return texts
}

// setMACs keeps what is known of NICs that stay.
func setMACs(h *inventory.Host, texts []string) error {
	var nics []inventory.NIC
	for _, s := range texts {
		m, err := inventory.ParseMAC(s)
		if err != nil {
			return err
		}
		nic := inventory.NIC{MAC: m}
		if i := slices.IndexFunc(h.NICs, func(n inventory.NIC) bool { return n.MAC == m }); i >= 0 {
			nic = h.NICs[i]
		}
		nics = append(nics, nic)
	}
	h.NICs = nics
	return nil
}

func setLabels(h *inventory.Host, texts []string) error {
	labels := map[string]string{}
	for _, s := range texts {
		k, v, ok := strings.Cut(s, "=")
		if !ok {
			return inventory.Errorf(inventory.Invalid, "label %q has no value", clip(s)).WithHint("write key=value, or key= for an empty value")
		}
		if _, twice := labels[k]; twice {
			return inventory.Errorf(inventory.Invalid, "label %s is given twice", clip(k))
		}
		labels[k] = v
	}
	if h.Labels = labels; len(labels) == 0 {
		h.Labels = nil
	}
	return inventory.CheckLabels(labels)
}

func getAccepted(h *inventory.Host) []string { return one(writeFlag(h.State != inventory.Discovered)) }

// setAccepted gives a new host its first state; Plan keeps it from moving an existing one.
func setAccepted(h *inventory.Host, texts []string) error {
	yes, err := parseFlag(only(texts))
	if h.State = inventory.Discovered; yes {
		h.State = inventory.Available
	}
	return err
}

func subnetFields() []field[inventory.Subnet] {
	type subnet = inventory.Subnet
	return []field[subnet]{
		keeping(textField("name", func(n *subnet) *string { return &n.Name }, func(s string) error { return inventory.CheckName("subnet", s) })),
		keeping(parsedField("cidr", func(n *subnet) *netip.Prefix { return &n.CIDR }, parsePrefix, writePrefix)),
		textField("interface", func(n *subnet) *string { return &n.Interface }, func(s string) error { return inventory.CheckText("interface", s, 15) }),
		keeping(textField("mode", func(n *subnet) *inventory.SubnetMode { return &n.Mode }, nil)),
		parsedField("gateway", func(n *subnet) *netip.Addr { return &n.Gateway }, parseAddr, writeAddr),
		listField("dns", func(n *subnet) *[]netip.Addr { return &n.DNS }, parseAddr, writeAddr),
		listField("ntp", func(n *subnet) *[]netip.Addr { return &n.NTP }, parseAddr, writeAddr),
		textField("domain", func(n *subnet) *string { return &n.Domain }, func(s string) error { return inventory.CheckText("domain", s, 253) }),
		numberField("mtu", func(n *subnet) *int { return &n.MTU }),
		listField("routes", func(n *subnet) *[]inventory.Route { return &n.Routes }, parseRoute, writeRoute),
		keeping(parsedField("leaseFor", func(n *subnet) *inventory.Duration { return &n.LeaseFor }, parseDuration, writeDuration)),
		keeping(parsedField("bootLeaseFor", func(n *subnet) *inventory.Duration { return &n.BootLeaseFor }, parseDuration, writeDuration)),
		keeping(textField("unknown", func(n *subnet) *inventory.UnknownPolicy { return &n.Unknown }, nil)),
		inOrder(listField("ranges", func(n *subnet) *[]inventory.Range { return &n.Ranges }, parseRange, writeRange)),
		inOrder(listField("staticRanges", func(n *subnet) *[]inventory.Range { return &n.StaticRanges }, parseRange, writeRange)),
		textField("advertise", func(n *subnet) *inventory.Advertise { return &n.Advertise }, nil),
		flagField("isRouter", func(n *subnet) *bool { return &n.IsRouter }),
		listField("options", func(n *subnet) *[]option.Option { return &n.Options }, inventory.ParseOption, writeOption),
	}
}

// inOrder sorts the ranges as the inventory does, so that another order is no change.
func inOrder(f field[inventory.Subnet]) field[inventory.Subnet] {
	set := f.set
	f.set = func(n *inventory.Subnet, texts []string) error {
		err := set(n, texts)
		for _, ranges := range [][]inventory.Range{n.Ranges, n.StaticRanges} {
			slices.SortFunc(ranges, func(a, b inventory.Range) int { return a.First.Compare(b.First) })
		}
		return err
	}
	return f
}

func reservationFields() []field[inventory.Reservation] {
	type reservation = inventory.Reservation
	return []field[reservation]{
		keeping(parsedField("address", func(r *reservation) *netip.Addr { return &r.Address }, parseAddr, writeAddr)),
		keeping(textField("subnet", func(r *reservation) *string { return &r.Subnet }, func(s string) error { return inventory.CheckName("subnet", s) })),
		parsedField("mac", func(r *reservation) *inventory.MAC { return &r.MAC }, inventory.ParseMAC, func(m inventory.MAC) string { return string(m) }),
		textField("clientID", func(r *reservation) *string { return &r.ClientID }, checkClientID),
		textField("uuid", func(r *reservation) *string { return &r.UUID }, plain("uuid")),
		textField("port", func(r *reservation) *string { return &r.Port }, plain("port")),
		textField("hostname", func(r *reservation) *string { return &r.Hostname }, func(s string) error { return inventory.CheckName("host", s) }),
		listField("options", func(r *reservation) *[]option.Option { return &r.Options }, inventory.ParseOption, writeOption),
	}
}

func writeOption(o option.Option) string { return o.Text() }

func checkClientID(s string) error {
	if len(s)%2 != 0 || len(s) > 510 || strings.Trim(s, "0123456789abcdef") != "" {
		return inventory.Errorf(inventory.Invalid, "%q is not a client id", clip(s)).WithHint("write its bytes in hex, lower case, as leases show them")
	}
	return nil
}

func parseAddr(s string) (netip.Addr, error) {
	a, err := netip.ParseAddr(s)
	if err != nil || a.Is4In6() || a.Zone() != "" {
		return a, inventory.Errorf(inventory.Invalid, "%q is not an IP address", clip(s))
	}
	return a, nil
}

func writeAddr(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

func parsePrefix(s string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(s)
	if err != nil || p.Addr().Is4In6() {
		return p, inventory.Errorf(inventory.Invalid, "%q is not a network", clip(s)).WithHint("write it as 10.0.0.0/24 or fd00:1::/64")
	}
	return p, nil
}

func writePrefix(p netip.Prefix) string {
	if !p.IsValid() {
		return ""
	}
	return p.String()
}

func parseRoute(s string) (inventory.Route, error) {
	to, via, _ := strings.Cut(s, "=")
	p, err := parsePrefix(to)
	a, errVia := parseAddr(via)
	if err != nil || errVia != nil {
		return inventory.Route{}, inventory.Errorf(inventory.Invalid, "%q is not a route", clip(s)).WithHint("write it as 192.168.0.0/16=10.0.0.1")
	}
	return inventory.Route{To: p, Via: a}, nil
}

func writeRoute(r inventory.Route) string { return r.To.String() + "=" + r.Via.String() }

func parseRange(s string) (inventory.Range, error) {
	first, last, _ := strings.Cut(s, "-")
	a, err := parseAddr(first)
	b, errLast := parseAddr(last)
	if err != nil || errLast != nil {
		return inventory.Range{}, inventory.Errorf(inventory.Invalid, "%q is not a range", clip(s)).WithHint("write it as 10.0.0.10-10.0.0.99")
	}
	return inventory.Range{First: a, Last: b}, nil
}

func writeRange(r inventory.Range) string { return r.First.String() + "-" + r.Last.String() }

func parseDuration(s string) (d inventory.Duration, err error) {
	err = d.UnmarshalText([]byte(s))
	return d, err
}

func writeDuration(d inventory.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

// newSubnet is what a row starts from when it makes a new one.
func newSubnet() inventory.Subnet {
	return inventory.Subnet{
		Mode: inventory.ModeFull, Unknown: inventory.UnknownDisk,
		LeaseFor: inventory.Duration(24 * time.Hour), BootLeaseFor: inventory.Duration(10 * time.Minute),
	}
}
