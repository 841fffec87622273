package net_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"slipway.dev/slipway/inventory"
)

// relayed is a rack with a second network, 10.77.2.0/24, that is reached through a relay agent only.
type relayed struct {
	*rack
	relay  string // namespace: eth0 10.77.1.254 on the server's network, eth1 10.77.2.1 on the machines'
	behind string // namespace of the machines' switch
}

func newRelayed(t *testing.T, programs ...string) *relayed {
	r := newRack(t, append(programs, "sysctl")...)
	x := &relayed{rack: r, relay: r.NS("relay"), behind: r.NS("sw2")}
	r.In(x.behind, "ip", "link", "add", "br0", "type", "bridge")
	r.In(x.behind, "ip", "link", "set", "br0", "up")
	r.plug(x.relay, "eth0")
	x.plugBehind(x.relay, "eth1")
	r.In(x.relay, "ip", "addr", "add", "10.77.1.254/24", "dev", "eth0")
	r.In(x.relay, "ip", "addr", "add", "10.77.2.1/24", "dev", "eth1")
	r.In(x.relay, "sysctl", "-qw", "net.ipv4.ip_forward=1")
	r.In(r.server, "ip", "route", "add", "10.77.2.0/24", "via", "10.77.1.254")
	return x
}

func (x *relayed) plugBehind(ns, iface string) {
	x.T.Helper()
	x.n++
	end := fmt.Sprintf("q%d", x.n)
	x.Wire(ns, iface, x.behind, end)
	x.In(x.behind, "ip", "link", "set", end, "master", "br0")
}

// far makes a namespace behind the relay with the interface eth0.
func (x *relayed) far(n int) string {
	x.T.Helper()
	ns := x.NS(fmt.Sprintf("f%d", n))
	x.plugBehind(ns, "eth0")
	x.In(ns, "ip", "link", "set", "eth0", "address", mac(n))
	return ns
}

func (x *relayed) setup() dhcpSetup {
	s := x.rack.setup()
	s.Subnets = append(s.Subnets, rackNet(2, ""))
	return s
}

// dhcpcd runs Roy Marples' client; it sets the address itself.
func (l *lab) dhcpcd(ns string) *process {
	l.T.Helper()
	return l.alone(ns, "mount -t tmpfs none /run && mount -t tmpfs none /var/lib/dhcpcd && exec dhcpcd -4 -B -d --noipv4ll --noarp -f /dev/null -c /bin/true eth0")
}

// networkd runs systemd's client; it sets the address itself, and is asked for it by its lease file.
func (l *lab) networkd(ns string) *process {
	l.T.Helper()
	dir := filepath.Join(l.Dir, "networkd-"+ns)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		l.T.Fatal(err)
	}
	text := "[Match]\nName=eth0\n[Network]\nDHCP=ipv4\nLinkLocalAddressing=no\nIPv6AcceptRA=no\n[DHCPv4]\nClientIdentifier=mac\n"
	if err := os.WriteFile(filepath.Join(dir, "10-eth0.network"), []byte(text), 0o644); err != nil {
		l.T.Fatal(err)
	}
	return l.alone(ns, fmt.Sprintf(networkdScript, dir))
}

// networkdScript runs systemd-networkd with the configuration of a folder. With /sys read-only it waits for no udev, as in
// a container; /run is its own.
const networkdScript = `mount -o remount,ro,bind /sys && mount -t tmpfs none /run && mkdir -p /run/systemd/network /run/systemd/netif/leases /run/systemd/netif/links /run/systemd/netif/lldp &&
cp %s/*.network /run/systemd/network/ && chmod -R a+rwX /run/systemd &&
export SYSTEMD_LOG_TARGET=console SYSTEMD_LOG_LEVEL=debug SYSTEMD_NETLINK_DEBUG=0 && exec /lib/systemd/systemd-networkd`

// alone runs a script with mounts and process numbers of its own. A client that gives up root loses the signal that
// unshare --kill-child would send it, so the first process, and all others with it, is ended here.
func (l *lab) alone(ns, script string) *process {
	l.T.Helper()
	p := l.Start(ns, nil, nil, "unshare", "-m", "-p", "-f", "sh", "-c", script)
	l.T.Cleanup(func() {
		pid := strconv.Itoa(p.Cmd.Process.Pid)
		text, _ := os.ReadFile("/proc/" + pid + "/task/" + pid + "/children")
		for _, child := range strings.Fields(string(text)) {
			if n, err := strconv.Atoi(child); err == nil {
				_ = syscall.Kill(n, syscall.SIGKILL)
			}
		}
	})
	return p
}

// TestClientsThroughARelay lets four clients get their addresses through two relay agents.
func TestClientsThroughARelay(t *testing.T) {
	for _, relay := range []struct {
		name, ready, port string
		args              []string
	}{
		{"dnsmasq", "DHCP relay", "", []string{
			"dnsmasq", "-k", "--conf-file=/dev/null", "--port=0", "--dhcp-relay=10.77.2.1,10.77.1.1", "--log-facility=-", "--log-dhcp", "--user=root", "--pid-file=",
		}},
		{"dhcrelay", "Sending on   Socket", "eth1@10.77.2.1", []string{"dhcrelay", "-4", "-d", "-a", "-id", "eth1", "-iu", "eth0", "10.77.1.1"}},
	} {
		t.Run(relay.name, func(t *testing.T) {
			x := newRelayed(t, relay.name, "dhclient", "dhcpcd", "udhcpc", "unshare")
			s := x.serve(x.server, x.setup())
			x.Start(x.relay, nil, nil, relay.args...).WaitFor(relay.ready, 1)
			type client struct {
				name, says string
				run        func(ns string) *process
			}
			clients := []client{
				{"udhcpc", "bound ip=10.77.2.", func(ns string) *process { return x.udhcpc(ns) }},
				{"dhclient", "BOUND ip=10.77.2.", func(ns string) *process { return x.dhclient(ns, "c", "") }},
				{"dhcpcd", "leased 10.77.2.", x.dhcpcd},
				{"networkd", "DHCPv4 address 10.77.2.", x.networkd},
			}
			running := map[string]*process{}
			for n, c := range clients {
				running[c.name] = c.run(x.far(n + 1))
			}
			for n, c := range clients {
				running[c.name].WaitFor(c.says, 1)
				l := s.leaseOf(mac(n + 1))
				if l.Subnet != "rack2" || l.State != inventory.LeaseBound || l.Port != relay.port {
					t.Errorf("%s: the store has %+v", c.name, l)
				}
			}
		})
	}
}

// leaseOf returns the newest lease of a MAC.
func (s *dhcpServer) leaseOf(mac string) (found inventory.Lease) {
	s.lab.T.Helper()
	s.read(func(tx inventory.Tx) error {
		all, err := tx.ListLeasesOf(inventory.MAC(mac))
		if len(all) > 0 {
			found = all[0]
		}
		return err
	})
	return found
}

// TestAReservationForASwitchPort gives the machine on a port its address, whatever its MAC is.
func TestAReservationForASwitchPort(t *testing.T) {
	x := newRelayed(t, "dhcrelay", "udhcpc")
	setup := x.setup()
	setup.Reservations = []inventory.Reservation{{Address: addr("10.77.2.20"), Subnet: "rack2", Port: "eth1@10.77.2.1"}}
	s := x.serve(x.server, setup)
	x.Start(x.relay, nil, nil, "dhcrelay", "-4", "-d", "-a", "-id", "eth1", "-iu", "eth0", "10.77.1.1").WaitFor("Sending on   Socket", 1)
	c := x.udhcpc(x.far(1), "-R")
	c.WaitFor("bound ip=10.77.2.20", 1)
	if l, _ := s.lease("10.77.2.20"); l.Port != "eth1@10.77.2.1" || string(l.MAC) != mac(1) {
		t.Errorf("the store has %+v", l)
	}
}
