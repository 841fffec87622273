package net_test

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/option"
)

// options6Conf teaches ISC's client the options of the test below, and makes it ask for them.
const options6Conf = `option dhcp6.posix-tz code 41 = text;
option dhcp6.portal code 103 = text;
option dhcp6.retry code 82 = unsigned integer 32;
option dhcp6.params code 60 = string;
option dhcp6.uclass code 15 = string;
option dhcp6.vclass code 16 = string;
also request dhcp6.posix-tz, dhcp6.portal, dhcp6.sntp-servers, dhcp6.vendor-opts, dhcp6.params;
`

// optionsClient6 starts ISC's client, which prints all that it is told.
func (r *rack6) optionsClient6(n int, id, more string) *process {
	r.T.Helper()
	script := r.script(`[ "$reason" != BOUND6 ] || { env | grep ^new_ | sort; echo told.; }
`)
	path := filepath.Join(r.Dir, id)
	if err := os.WriteFile(path+".conf", []byte(options6Conf+more), 0o644); err != nil {
		r.T.Fatal(err)
	}
	c := r.Start(r.machine(n), nil, nil, "dhclient", "-6", "-d", "-sf", script, "-cf", path+".conf", "-lf", path+".leases", "-pf", path+".pid", "-D", "LL", "eth0")
	c.WaitFor("told.", 1)
	return c
}

// TestRealClientsAreGivenTheirDHCPv6Options has options of a subnet, of classes by vendor, user class and MAC, and of a reservation,
// and two clients that read them: ISC's and dhcpcd.
func TestRealClientsAreGivenTheirDHCPv6Options(t *testing.T) {
	r := newRack6(t, "dhclient", "dhcpcd")
	setup := r.setup()
	setup.Subnets[0].Options = optionList(t, option.OfSubnet, true,
		"posix-timezone=CET-1CEST", "sntp-servers=fd77:1::99,fd77:1::98", "v6-captive-portal=http://rack/portal", "always:sol-max-rt=120")
	class := func(texts ...string) []option.Option {
		return optionList(t, option.OfClass, true, texts...)
	}
	setup.Classes = []inventory.Class{
		{Name: "switches", VendorClasses: []string{"onie_vendor:*"}, Options6: class("vendor-42623:1=http://rack/nos", "posix-timezone=UTC")},
		{Name: "testers", UserClasses: []string{"tester"}, Options6: class("dns-servers=fd77:1::aa")},
		{Name: "ports", MACPrefixes: []string{mac6(3)}, Options6: class("domain-search=class.example")},
	}
	setup.Reservations = []inventory.Reservation{{
		Address: netip.MustParseAddr("fd77:1::77"), Subnet: "six", MAC: inventory.MAC(mac6(4)),
		Options: optionList(t, option.OfReservation, true, "posix-timezone=EST5", "vendor-42623:1=http://rack/mine"),
	}}
	r.serve(setup)
	wants := func(who string, c *process, what ...string) {
		t.Helper()
		for _, w := range what {
			if !strings.Contains(c.Text(), w) {
				t.Errorf("%s was not told %q:\n%s", who, w, c.Text())
			}
		}
	}
	wants("a client of no class", r.optionsClient6(1, "none", ""), "new_dhcp6_posix_tz=CET-1CEST", "new_dhcp6_sntp_servers=fd77:1::99 fd77:1::98",
		"new_dhcp6_portal=http://rack/portal", "new_dhcp6_retry=120", "new_dhcp6_name_servers=fd77:1::53", "new_dhcp6_domain_search=lab.example")
	onie := r.optionsClient6(2, "onie", `send dhcp6.vclass 00:00:a6:7f:00:10:6f:6e:69:65:5f:76:65:6e:64:6f:72:3a:6c:61:62:31;
send dhcp6.uclass 00:06:74:65:73:74:65:72;
`)
	wants("a switch of a tester", onie, "new_dhcp6_posix_tz=UTC", "new_dhcp6_name_servers=fd77:1::aa", "new_dhcp6_vendor_opts=0:0:a6:7f:0:1:0:f:68:74:74:70")
	wants("a port by its MAC", r.optionsClient6(3, "port", ""), "new_dhcp6_domain_search=class.example", "new_dhcp6_posix_tz=CET-1CEST")
	wants("a reservation", r.optionsClient6(4, "mine", ""), "new_ip6_address=fd77:1::77", "new_dhcp6_posix_tz=EST5", "new_dhcp6_vendor_opts=0:0:a6:7f:0:1:0:10:68:74:74:70")

	conf := filepath.Join(r.Dir, "dhcpcd.conf")
	text := "ipv6only\nnoipv4ll\nnoipv6rs\nduid ll\nscript " + r.script("env | grep ^new_; echo told.\n") + "\noption dhcp6_posix_timezone\noption dhcp6_sntp_servers\ninterface eth0\nia_na 1\n"
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	c := r.alone(r.machine(5), "mount -t tmpfs none /run && mount -t tmpfs none /var/lib/dhcpcd && exec dhcpcd -6 -B -1 -d -f "+conf+" eth0")
	c.WaitFor("new_dhcp6_posix_timezone", 1)
	wants("dhcpcd", c, "new_dhcp6_posix_timezone=CET-1CEST", "new_dhcp6_sntp_servers=fd77:1::99 fd77:1::98")
}
