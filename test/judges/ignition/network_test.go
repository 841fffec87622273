package ignition_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// networkdScript runs systemd-networkd for a few seconds in namespaces of its own: veth pairs stand for the ports. With
// a read-only /sys it does not wait for udev.
const networkdScript = `set -eu
mount --make-rprivate /
mkdir -p /etc/systemd/network /run/systemd/network
mount --bind "$1" /etc/systemd/network
mount -t tmpfs -o mode=755 tmpfs /run/systemd
mount -t sysfs -o ro sysfs /sys
for d in netif netif/links netif/leases network; do mkdir -p /run/systemd/$d; chown systemd-network /run/systemd/$d; done
ip link add lan0 address 52:54:00:aa:bb:01 type veth peer name peer0
ip link add p1 address 52:54:00:aa:bb:02 type veth peer name peer1
ip link add p2 type veth peer name peer2
ip link add p3 type veth peer name peer3
for i in 0 1 2 3; do ip link set peer$i up; done
echo ==log
SYSTEMD_LOG_LEVEL=info SYSTEMD_LOG_TARGET=console timeout 3 /lib/systemd/systemd-networkd || true
echo ==state
ip -o addr show
ip -o link show
ip route show
ip -6 route show
`

var complaintRE = regexp.MustCompile(`(?i)unknown|failed to parse|invalid|ignor|cannot parse|not understood`)

func TestNetworkdDoesWhatTheFilesSay(t *testing.T) {
	judges(t)
	if os.Getuid() != 0 {
		t.Fatal("systemd-networkd needs namespaces: run as root")
	}
	program(t, "unshare", "util-linux")
	program(t, "ip", "iproute2")
	program(t, "/lib/systemd/systemd-networkd", "systemd")
	n, seen := 0, map[string]bool{}
	for _, j := range all(t).cases {
		files, _ := j.contents(t)
		dir := t.TempDir()
		must(t, os.Chmod(dir, 0o755))
		must(t, os.Chmod(filepath.Dir(dir), 0o755))
		isOurs := false
		for path, text := range files {
			if name, ok := strings.CutPrefix(path, "/etc/systemd/network/"); ok && !strings.HasSuffix(name, ".link") {
				isOurs = true
				// A veth has no permanent address.
				write(t, filepath.Join(dir, name), strings.ReplaceAll(text, "PermanentMACAddress=", "MACAddress="), 0o644)
			}
		}
		if !isOurs || j.on.OS != "flatcar" || seen[j.name] {
			continue
		}
		seen[j.name] = true
		n++
		t.Run(j.name, func(t *testing.T) {
			t.Parallel() // networkd runs for three seconds
			networkd(t, &j, dir)
		})
	}
	t.Logf("systemd-networkd took %d sets of files", n)
	if n < 3 {
		t.Error("that is too few")
	}
}

// networkd judges the files in dir.
func networkd(t *testing.T, j *judged, dir string) {
	out, err := run("", nil, "unshare", "--net", "--mount", "bash", "-c", networkdScript, "bash", dir)
	if err != nil {
		t.Fatalf("%s: %v\n%s", j.name, err, out)
	}
	log, state, _ := strings.Cut(out, "==state")
	for l := range strings.Lines(log) {
		if complaintRE.MatchString(l) {
			t.Errorf("%s: %s", j.name, l)
		}
	}
	if j.name == "own: network on flatcar" {
		for _, want := range []string{
			"192.0.2.10/24", "2001:db8::10/64", "mtu 1400", "default via 192.0.2.1 dev lan0 proto static metric 100",
			"default via 2001:db8::1 dev lan0", "198.51.100.0/24 via 203.0.113.1 dev lan0 proto static onlink", "10.9.0.1/24", "master br7",
		} {
			if !strings.Contains(state, want) {
				t.Errorf("%q did not come about:\n%s", want, out)
			}
		}
		if strings.Contains(log, "Operation not supported") {
			t.Log("this kernel has no bonds or VLANs: only their files were read")
		} else if !strings.Contains(state, "master bond7") || !strings.Contains(state, "10.7.0.2/24") {
			t.Errorf("the bond and its VLAN did not come about:\n%s", out)
		}
	}
}

// keyfileScript reads keyfiles with NetworkManager's own library and prints what it understood.
const keyfileScript = `
import sys, gi
gi.require_version("NM", "1.0")
from gi.repository import NM, GLib
bad = 0
for path in sys.argv[1:]:
    keyfile = GLib.KeyFile()
    keyfile.load_from_file(path, GLib.KeyFileFlags.NONE)
    def warn(keyfile, connection, kind, data, user):
        global bad
        bad = 1
        print("WARNING", path, data.get_message() if hasattr(data, "get_message") else kind)
        return True
    try:
        c = NM.keyfile_read(keyfile, "/etc/NetworkManager/system-connections", NM.KeyfileHandlerFlags.NONE, warn, None)
        NM.SimpleConnection.normalize(c, None)
        c.verify()
    except GLib.Error as e:
        bad = 1
        print("REFUSED", path, e.message)
        continue
    for s in ("ipv4", "ipv6"):
        ip = c.get_setting_ip4_config() if s == "ipv4" else c.get_setting_ip6_config()
        if ip is None:
            continue
        for i in range(ip.get_num_addresses()):
            a = ip.get_address(i)
            print("address", a.get_address() + "/" + str(a.get_prefix()))
        for i in range(ip.get_num_routes()):
            r = ip.get_route(i)
            print("route", r.get_dest() + "/" + str(r.get_prefix()), r.get_next_hop(), r.get_metric())
        for i in range(ip.get_num_dns()):
            print("dns", ip.get_dns(i))
    if c.get_setting_vlan():
        print("vlan", c.get_setting_vlan().get_id(), c.get_setting_vlan().get_parent())
    if c.get_setting_bond():
        print("bond", c.get_setting_bond().get_option_by_name("mode"))
    s = c.get_setting_connection()
    if s.get_master():
        print("member", s.get_id(), s.get_master(), s.get_slave_type())
sys.exit(bad)
`

func TestNetworkManagerReadsTheKeyfiles(t *testing.T) {
	judges(t)
	if out, err := run("", nil, "/usr/bin/python3", "-c", "import gi; gi.require_version('NM', '1.0')"); err != nil {
		t.Fatalf("NetworkManager's library is not there: apt-get install gir1.2-nm-1.0 python3-gi\n%s", out)
	}
	n := 0
	for _, j := range all(t).cases {
		files, _ := j.contents(t)
		dir := t.TempDir()
		var paths []string
		for path, text := range files {
			if name, ok := strings.CutPrefix(path, "/etc/NetworkManager/system-connections/"); ok {
				write(t, filepath.Join(dir, name), text, 0o600)
				paths = append(paths, filepath.Join(dir, name))
			}
		}
		if len(paths) == 0 {
			continue
		}
		n += len(paths)
		out, err := run("", nil, append([]string{"/usr/bin/python3", "-c", keyfileScript}, paths...)...)
		if err != nil || strings.Contains(out, "WARNING") {
			t.Errorf("%s: %v\n%s", j.name, err, out)
		}
		if j.name == "own: network on fedora-coreos" {
			for _, want := range []string{
				"address 192.0.2.10/24", "address 2001:db8::10/64", "route 0.0.0.0/0 192.0.2.1 100", "route ::/0 2001:db8::1 -1",
				"route 198.51.100.0/24 203.0.113.1 -1", "dns 192.0.2.53", "dns 9.9.9.9", "vlan 7 bond7", "bond active-backup",
				"member p1 bond7 bond", "member p3 br7 bridge", "address 10.9.0.1/24",
			} {
				if !strings.Contains(out, want) {
					t.Errorf("%q was not understood:\n%s", want, out)
				}
			}
		}
	}
	t.Logf("NetworkManager's library read %d keyfiles", n)
	if n < 5 {
		t.Error("that is too few")
	}
}
