package net_test

import (
	"bytes"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/iana"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/lab/simulate"
	"slipway.dev/slipway/pxe/trace"
	"slipway.dev/slipway/test/netlab"
	"slipway.dev/slipway/web/client"
	"slipway.dev/slipway/web/wire"
)

// newAppliance6 is a whole server whose interface vs has an address of each family, on a wire with machines.
func newAppliance6(t *testing.T, programs ...string) (*appliance, *rack6) {
	t.Helper()
	r := newRack6(t, programs...)
	r.In(r.server, "ip", "link", "set", "srv0", "down")
	r.In(r.server, "ip", "link", "set", "srv0", "name", "vs")
	r.wireIf = "vs"
	r.In(r.server, "ip", "link", "set", "vs", "up")
	r.In(r.server, "ip", "addr", "add", "10.77.1.1/24", "dev", "vs")
	r.In(r.server, "ip", "addr", "replace", "fd77:1::1/64", "dev", "vs", "nodad")
	a := &appliance{netlab.NewApplianceOn(r.Lab, &simulate.Net{Server: r.server, ServerIf: "vs", Address: netip.MustParsePrefix("10.77.1.1/24")}), r.lab}
	return a, r
}

// check returns a line of the self-check; ok is false when it has none of that name.
func (a *appliance) check(name string) (k wire.Check, ok bool) {
	a.lab.T.Helper()
	page, err := a.API.SelfCheck(a.lab.T.Context())
	if err != nil {
		a.lab.T.Fatal(err)
	}
	for _, k := range page.Items {
		if k.Name == name {
			return k, true
		}
	}
	return k, false
}

// six makes the IPv6 subnet that the self-check's hint names.
func (a *appliance) six(hint string) {
	a.lab.T.Helper()
	_, line, _ := strings.Cut(hint, "slipway subnet create ")
	w := strings.Fields(line)
	if len(w) != 7 || w[1] != "--cidr" || w[3] != "--interface" || w[5] != "--range" {
		a.lab.T.Fatalf("the hint is %q", hint)
	}
	first, last, _ := strings.Cut(w[6], "-")
	n := inventory.Subnet{
		Name: w[0], CIDR: prefix(w[2]), Interface: w[4], Unknown: inventory.UnknownWait,
		Ranges: []inventory.Range{{First: addr(first), Last: addr(last)}},
	}
	n.FillDefaults()
	if _, err := a.API.Subnets.Create(a.lab.T.Context(), n); err != nil {
		a.lab.T.Fatal(err)
	}
}

// TestAnIPv6AddressThatGoesIsAnIssue takes the interface its address of an IPv6 subnet, and gives it back.
func TestAnIPv6AddressThatGoesIsAnIssue(t *testing.T) {
	a, r := newAppliance6(t)
	a.Start()
	k, ok := a.check("ipv6 vs")
	if !ok {
		t.Fatal("the self-check says nothing of the IPv6 address")
	}
	a.six(k.Hint)
	r.In(r.server, "ip", "addr", "del", "fd77:1::1/64", "dev", "vs")
	a.Process.WaitFor("issue opened ... interface-unserved ... no address in fd77:1::/64 ... ip addr add fd77:1::1/64 dev vs", 1)
	r.In(r.server, "ip", "addr", "add", "fd77:1::1/64", "dev", "vs", "nodad")
	a.Process.WaitFor("issue closed ... interface-unserved", 1)
}

// TestADHCPv6ServerOnThisMachine has another program hold UDP port 547: a warning while there is no IPv6 subnet, an
// issue once there is one, which goes when the port is free, and a refusal to start then.
func TestADHCPv6ServerOnThisMachine(t *testing.T) {
	a, r := newAppliance6(t, "dnsmasq")
	const taken = "dhcpv6 vs"
	other := r.lab.dnsmasq6(r.server, "dhcp-range=fd77:9::8000,fd77:9::8fff,64,1h\n")
	a.Start()
	a.Process.WaitFor("dhcpv6 not answered on interface ... UDP port 547 of vs is taken by another DHCPv6 server", 1)
	if k, _ := a.check(taken); k.Status != "warning" || !strings.Contains(k.Detail, "UDP port 547 is taken") || !strings.Contains(k.Hint, "ss -lunp") {
		t.Errorf("the self-check says %+v", k)
	}
	k, ok := a.check("ipv6 vs")
	if !ok || k.Status != "ok" || !strings.Contains(k.Detail, "fd77:1::1/64, and there is no IPv6 subnet") {
		t.Fatalf("of an IPv6 address without a subnet the self-check says %+v", k)
	}
	a.six(k.Hint)
	a.Process.WaitFor("issue opened ... port-taken ... dhcpv6 vs: UDP port 547 is taken", 1)
	other.Kill(syscall.SIGKILL)
	a.Process.WaitFor("answering dhcpv6", 1)
	a.Process.WaitFor("issue closed ... port-taken", 1)
	if k, ok := a.check(taken); ok {
		t.Errorf("the port is free, and the self-check says %+v", k)
	}
	for range 50 {
		if k, ok = a.check("ipv6 vs"); !ok {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if ok {
		t.Errorf("there is an IPv6 subnet, and the self-check says %+v", k)
	}
	a.Process.Kill(syscall.SIGTERM)

	r.lab.dnsmasq6(r.server, "dhcp-range=fd77:9::8000,fd77:9::8fff,64,1h\n")
	a.Launch()
	a.Process.WaitFor("error dhcpv6: UDP port 547 of vs is taken by another DHCPv6 server", 1)
}

// TestTheWireOfIPv6IsRecorded boots as firmware does over DHCPv6: its packets and our answers are in its capture.
func TestTheWireOfIPv6IsRecorded(t *testing.T) {
	a, r := newAppliance6(t)
	a.Start()
	k, _ := a.check("ipv6 vs")
	a.six(k.Hint)
	m := r.machine(1)
	c := r.client6(m, 1)
	boots := func(m dhcpv6.DHCPv6) { m.AddOption(dhcpv6.OptClientArchType(iana.EFI_X86_64)) }
	var offer *dhcpv6.Message
	for range 10 { // the book follows a new subnet a moment later
		if offer = c.ask(c.message(dhcpv6.MessageTypeSolicit, nil, []string{}, boots)); offer != nil {
			break
		}
	}
	if offer == nil || offer.Options.BootFileURL() != "tftp://[fd77:1::1]/snponly.efi" {
		t.Fatalf("a SOLICIT is answered %s", told(offer))
	}
	at := offer.Options.OneIANA().Options.OneAddress().IPv6Addr.String()
	if got := told(c.ask(c.message(dhcpv6.MessageTypeRequest, offer.Options.ServerID(), []string{at}, boots))); got != "REPLY "+at+"/600" {
		t.Fatalf("a REQUEST is answered %s", got)
	}
	var text strings.Builder
	for range 50 {
		var b bytes.Buffer
		text.Reset()
		if err := a.API.Hosts.Packets(t.Context(), mac6(1), "", &b); err == nil {
			frames, err := trace.ParsePCAP(b.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range frames {
				text.WriteString(trace.Decode(f).String() + "\n")
			}
		}
		if strings.Contains(text.String(), "REPLY") {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	for _, want := range []string{"DHCPv6 SOLICIT from fe80::5054:ff:fe77:1", "DHCPv6 ADVERTISE", "boot file tftp://[fd77:1::1]/snponly.efi", "DHCPv6 REQUEST", "DHCPv6 REPLY"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the capture has no %q:\n%s", want, text.String())
		}
	}
	d, err := a.API.Hosts.Diagnose(t.Context(), mac6(1), "")
	if err != nil || len(d.Packets) < 4 {
		t.Errorf("the diagnosis shows %d packets, %v", len(d.Packets), err)
	}
}

// TestASolicitInVainIsToldOf lets a host boot over IPv6 in a subnet that is full: its timeline and its explanation say why.
func TestASolicitInVainIsToldOf(t *testing.T) {
	a, r := newAppliance6(t)
	a.Start()
	k, _ := a.check("ipv6 vs")
	name, _, _ := strings.Cut(k.Hint, " --range")
	a.six(name + " --range fd77:1::1000-fd77:1::1000")
	if _, err := a.API.Reservations.Create(t.Context(), inventory.Reservation{Address: addr("fd77:1::1000"), MAC: inventory.MAC(mac6(99))}); err != nil {
		t.Fatal(err)
	}
	mac := mac6(1)
	if _, err := a.API.Hosts.Create(t.Context(), inventory.Host{Name: "six", State: inventory.Available, NICs: []inventory.NIC{{MAC: inventory.MAC(mac)}}}); err != nil {
		t.Fatal(err)
	}
	m := r.machine(1)
	other := r.client6(m, 2)
	for range 50 { // the address is reserved a moment later
		if !strings.Contains(told(other.ask(other.message(dhcpv6.MessageTypeSolicit, nil, []string{}))), "fd77:1::1000") {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	_ = other.conn.Close() // there is one port 546
	c := r.client6(m, 1)
	boots := func(m dhcpv6.DHCPv6) { m.AddOption(dhcpv6.OptClientArchType(iana.EFI_X86_64)) }
	for range 50 {
		c.ask(c.message(dhcpv6.MessageTypeSolicit, nil, []string{}, boots))
		page, err := a.API.Events(t.Context(), client.EventQuery{Host: mac, Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Items {
			if e.Kind == inventory.EventDHCPUnanswered && e.Detail == "on vs: no address is left in the subnet's ranges" {
				d, err := a.API.Hosts.Diagnose(t.Context(), mac, "")
				if err != nil || len(d.Causes) == 0 || d.Causes[0].Code != "six-refused" && d.Causes[0].Code != "no-free-address" {
					t.Errorf("the diagnosis is %+v, %v", d.Causes, err)
				}
				return
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Error("the timeline does not say that it asks in vain")
}
