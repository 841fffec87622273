package net_test

import (
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

// dhclient6 starts ISC's client for IPv6; what it is told is printed.
func (r *rack6) dhclient6(ns, id string) *process { return r.dhclient6With(ns, id, "") }

// dhclient6With is dhclient6 with more lines of configuration.
func (r *rack6) dhclient6With(ns, id, more string) *process {
	r.T.Helper()
	script := r.script(`echo "$reason ip=$new_ip6_address/$new_ip6_prefixlen old=$old_ip6_address dns=$new_dhcp6_name_servers domain=$new_dhcp6_domain_search life=$new_max_life url=$new_dhcp6_bootfile_url"
case "$reason" in BOUND6|RENEW6|REBIND6) ip -6 addr replace $new_ip6_address/$new_ip6_prefixlen dev $interface;; DEPREF6|EXPIRE6|RELEASE6|STOP6) ip -6 addr del $old_ip6_address/128 dev $interface 2>/dev/null;; esac
exit 0
`)
	path := filepath.Join(r.Dir, id)
	conf := `option dhcp6.bootfile-url code 59 = text;
option dhcp6.client-arch code 61 = unsigned integer 16;
also request dhcp6.bootfile-url;
`
	if err := os.WriteFile(path+".conf", []byte(conf+more), 0o644); err != nil {
		r.T.Fatal(err)
	}
	args := []string{"dhclient", "-6", "-d", "-sf", script, "-cf", path + ".conf", "-lf", path + ".leases", "-pf", path + ".pid", "-D", "LL"}
	return r.Start(ns, nil, nil, append(args, "eth0")...)
}

var boundRE = regexp.MustCompile(`BOUND6 ip=(fd77:1::1[0-9a-f]{3})/`)

func TestDhclient6(t *testing.T) {
	r := newRack6(t, "dhclient")
	setup := r.setup()
	setup.ProbeFor = 100 * time.Millisecond
	s := r.serve(setup)
	m := r.machine(1)
	c := r.dhclient6(m, "one")
	c.WaitFor("BOUND6 ip=fd77:1::1 ... dns=fd77:1::53 domain=lab.example. life=3600", 1)
	addr := boundRE.FindStringSubmatch(c.Text())[1]
	l, ok := s.lease(addr)
	if !ok || l.State != inventory.LeaseBound || string(l.MAC) != mac6(1) || l.ClientID != "00030001"+"525400770001" || l.IsBoot {
		t.Errorf("the store has %+v", l)
	}
	c.Kill(syscall.SIGKILL)

	// Killed and started again, it goes on with its address, and so does the server.
	s.Kill(syscall.SIGKILL)
	s = r.serve(setup)
	c = r.dhclient6(m, "one")
	c.WaitFor("ip="+addr+"/", 1)
	c.Kill(syscall.SIGKILL)

	out, err := r.Try(20*time.Second, "ip", "netns", "exec", m, "dhclient", "-6", "-r", "-cf", filepath.Join(r.Dir, "one.conf"),
		"-lf", filepath.Join(r.Dir, "one.leases"), "-pf", filepath.Join(r.Dir, "one.pid"), "-D", "LL", "-sf", "/bin/true", "eth0")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s.waitState(addr, inventory.LeaseReleased)
}

func TestTwoClients6AndAReservation(t *testing.T) {
	r := newRack6(t, "dhclient")
	setup := r.setup()
	setup.Reservations = []inventory.Reservation{{Address: netip.MustParseAddr("fd77:1::77"), Subnet: "six", MAC: inventory.MAC(mac6(2))}}
	s := r.serve(setup)
	one, two := r.dhclient6(r.machine(1), "one"), r.dhclient6(r.machine(2), "two")
	one.WaitFor("BOUND6 ip=fd77:1::1", 1)
	two.WaitFor("BOUND6 ip=fd77:1::77/", 1)
	if l, ok := s.lease("fd77:1::77"); !ok || string(l.MAC) != mac6(2) {
		t.Errorf("the store has %+v", l)
	}
}

// TestAnIPv6AddressInUseIsNotOffered has the only address of the range on another machine.
func TestAnIPv6AddressInUseIsNotOffered(t *testing.T) {
	r := newRack6(t, "dhclient")
	setup := r.setup()
	at := netip.MustParseAddr
	setup.ProbeFor = 300 * time.Millisecond
	setup.Subnets[0].Ranges = []inventory.Range{{First: at("fd77:1::1000"), Last: at("fd77:1::1001")}}
	squatter := r.machine(9)
	r.In(squatter, "ip", "addr", "add", "fd77:1::1000/64", "dev", "eth0", "nodad")
	s := r.serve(setup)
	a, b := r.dhclient6(r.machine(1), "one"), r.dhclient6(r.machine(2), "two")
	s.WaitFor("conflict fd77:1::1000 six", 1)
	s.waitState("fd77:1::1000", inventory.LeaseDeclined)
	deadline := time.Now().Add(20 * time.Second)
	for !boundRE.MatchString(a.Text()+b.Text()) && time.Now().Before(deadline) {
		time.Sleep(50 * time.Millisecond)
	}
	if m := boundRE.FindStringSubmatch(a.Text() + b.Text()); m == nil || m[1] != "fd77:1::1001" {
		t.Errorf("nobody has the free address:\n%s\n%s", a.Text(), b.Text())
	}
}

// TestRdisc6 reads our router advertisements as a tool of the field shows them.
func TestRdisc6(t *testing.T) {
	r := newRack6(t, "rdisc6")
	r.serve(r.setup())
	m := r.machine(1)
	out, _ := r.Try(20*time.Second, "ip", "netns", "exec", m, "rdisc6", "-1", "-r", "5", "-w", "2000", "eth0")
	for _, want := range []string{
		`Stateful address conf\.\s*:\s*Yes`, `Stateful other conf\.\s*:\s*Yes`, `Router lifetime\s*:\s*0 `, `Prefix\s*:\s*fd77:1::/64`,
		`On-link\s*:\s*Yes`, `Autonomous address conf\.:\s*No`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("no %s in:\n%s", want, out)
		}
	}
}

// TestDhcpcd6 is a client that asks because our advertisement says so.
func TestDhcpcd6(t *testing.T) {
	r := newRack6(t, "dhcpcd")
	s := r.serve(r.setup())
	m := r.machine(1)
	for range 100 { // our advertisements leave from our link-local address, once the kernel has found it free
		if r.In(r.server, "ip", "-6", "addr", "show", "dev", "srv0", "tentative") == "" {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	conf := filepath.Join(r.Dir, "dhcpcd.conf")
	if err := os.WriteFile(conf, []byte("ipv6only\nnoipv4ll\nipv6rs\nduid ll\nnohook resolv.conf, hostname, timesyncd\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	c := r.alone(m, "mount -t tmpfs none /run && mount -t tmpfs none /var/lib/dhcpcd && exec dhcpcd -6 -B -1 -d -f "+conf+" --noconfigure eth0")
	c.WaitFor("Router Advertisement from fe80::", 1)
	c.WaitFor("REPLY6 received", 1)
	if len(regexp.MustCompile("note dhcp").FindAllString(s.Text(), -1)) != 0 {
		t.Errorf("an operating system stands in a timeline: %s", s.Text())
	}
}
