package validation

import (
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"

	"slipway.dev/slipway/machineconfig/layer"
	"slipway.dev/slipway/machineconfig/template"
)

const wgKey = "RlBLZ0RZNNyXMTlGnRCo1Bnn0LhFcWCrCnHbUTJgQlE="

// TestWhatRealFilesNeedIsValidated has a layer for each rule of the newer parts, with the path, a part of the message and a
// part of the hint.
func TestWhatRealFilesNeedIsValidated(t *testing.T) {
	iface := func(more string) string { return "network: {interfaces: [{name: a, " + more + "}]}" }
	bond := func(more string) string {
		return "network: {interfaces: [{name: a}, {name: b}], bonds: [{name: bond0, members: [a, b], " + more + "}]}"
	}
	wg := func(more string) string {
		return "network: {wireguards: [{name: wg0, privateKey: 'secret://wg', addresses: [10.0.0.1/32], " + more + "}]}"
	}
	mount := func(more string) string { return "storage: {mounts: [{mountPoint: /srv, " + more + "}]}" }
	lvm := func(lvs string) string {
		return "storage: {disks: [{name: d, partitions: [{label: pv}]}], lvm: [{name: vg, devices: [pv], lvs: [" + lvs + "]}]}"
	}
	btrfs := func(fs string) string {
		return "storage: {disks: [{name: d, partitions: [{label: p}]}], filesystems: [{device: p, " + fs + "}]}"
	}
	for _, c := range []struct{ name, layer, path, want, hint string }{
		{"a glob with a slash", iface("dhcp4: true, match: {name: en/*}"), "/network/interfaces/a/match/name", "not a glob", "en*"},
		{"a driver with a blank", iface("dhcp4: true, match: {driver: 'a b'}"), "/network/interfaces/a/match/driver", "not the name of a driver", "ethtool"},
		{"a match and a MAC", iface("mac: '52:54:00:00:00:01', match: {name: en*}"), "/network/interfaces/a/match", "excludes a MAC", ""},
		{"an address on any link", iface("match: {link: true}, addresses: [192.0.2.9/24]"), "/network/interfaces/a/match/link", "more than one port", "dhcp4"},
		{"an address on a glob", iface("match: {name: en*}, addresses: [192.0.2.9/24]"), "/network/interfaces/a/match", "more than one port", ""},
		{"a VLAN on a glob", "network: {interfaces: [{name: a, match: {name: en*}}], vlans: [{name: v, parent: a, id: 7}]}", "/network/vlans/v/parent", "every port that matches", "its name or MAC"},
		{"DHCP options without DHCP", iface("dhcp: {useDNS: false}"), "/network/interfaces/a/dhcp", "uses no DHCP", "dhcp4: true"},
		{"an identifier that is none", iface("dhcp4: true, dhcp: {identifier: macc}"), "/network/interfaces/a/dhcp/identifier", "not known", "did you mean mac?"},
		{"a negative metric", iface("dhcp4: true, dhcp: {routeMetric: -1}"), "/network/interfaces/a/dhcp/routeMetric", "not between", ""},
		{"link-local in a list's word", iface("linkLocal: all"), "/network/interfaces/a/linkLocal", "not known", "none, ipv4"},
		{"DHCPv6 without a link-local address", iface("dhcp6: true, linkLocal: none"), "/network/interfaces/a/linkLocal", "DHCPv6 needs", ""},
		{"a rule without a table", iface("rules: [{priority: 5, from: 192.0.2.0/24}]"), "/network/interfaces/a/rules/5/table", "is needed", ""},
		{"a rule that matches all", iface("rules: [{priority: 5, table: 7}]"), "/network/interfaces/a/rules/5", "every packet", "from, to or mark"},
		{"a rule with host bits", iface("rules: [{priority: 5, from: 192.0.2.7/24, table: 7}]"), "/network/interfaces/a/rules/5/from", "beyond its prefix", "write 192.0.2.0/24"},
		{"a rule of two families", iface("rules: [{priority: 5, from: 192.0.2.0/24, to: '2001:db8::/32', table: 7}]"), "/network/interfaces/a/rules/5/to", "same family", ""},
		{"a priority of the kernel", iface("rules: [{priority: 32766, from: 192.0.2.0/24, table: 7}]"), "/network/interfaces/a/rules/32766/priority", "not between", ""},
		{"an up-delay without miimon", bond("mode: 802.3ad, upDelayMS: 200"), "/network/bonds/bond0/upDelayMS", "miiMonMS only", "miiMonMS: 100"},
		{"a down-delay between two looks", bond("mode: 802.3ad, miiMonMS: 100, downDelayMS: 250"), "/network/bonds/bond0/downDelayMS", "no multiple", "write 300"},
		{"ARP without targets", bond("mode: active-backup, arpIntervalMS: 100"), "/network/bonds/bond0/arpTargets", "is needed", "gateway"},
		{"ARP with LACP", bond("mode: 802.3ad, arpIntervalMS: 100, arpTargets: [192.0.2.1]"), "/network/bonds/bond0/arpIntervalMS", "no meaning", "miiMonMS"},
		{"an IPv6 target", bond("mode: active-backup, arpIntervalMS: 100, arpTargets: ['2001:db8::1']"), "/network/bonds/bond0/arpTargets/0", "not an IPv4", ""},
		{"more links than members", bond("mode: 802.3ad, minLinks: 3"), "/network/bonds/bond0/minLinks", "number of members", ""},
		{"a reselect without a primary", bond("mode: active-backup, primaryReselect: better"), "/network/bonds/bond0/primaryReselect", "with primary only", ""},
		{"a key of WireGuard in clear", "network: {wireguards: [{name: wg0, privateKey: " + wgKey + "}]}", "/network/wireguards/wg0/privateKey", "not a reference", "secret://NAME"},
		{"a peer without networks", wg("peers: [{publicKey: " + wgKey + "}]"), "/network/wireguards/wg0/peers/" + wgKey + "/allowedIPs", "is needed", ""},
		{"a short public key", wg("peers: [{publicKey: abc=, allowedIPs: [10.0.0.0/8]}]"), "/network/wireguards/wg0/peers/abc=/publicKey", "not a public key", "wg pubkey"},
		{"an endpoint without a port", wg("peers: [{publicKey: " + wgKey + ", allowedIPs: [10.0.0.0/8], endpoint: vpn}]"), "/network/wireguards/wg0/peers/" + wgKey + "/endpoint", "not host:port", ""},
		{"DHCP in a tunnel", wg("dhcp4: true"), "/network/wireguards/wg0", "no DHCP server", ""},

		{"a script without a stage", "scripts: [{name: a, text: 'true'}]", "/scripts/a/stage", "is needed", "partitioning"},
		{"a script of an unknown stage", "scripts: [{name: a, stage: post, text: 'true'}]", "/scripts/a/stage", "not known", "chroot"},
		{"an interpreter with an argument", "scripts: [{name: a, stage: early, interpreter: /bin/bash -x, text: 'true'}]", "/scripts/a/interpreter", "path of a program", "without arguments"},
		{"an empty script", "scripts: [{name: a, stage: early, text: ' '}]", "/scripts/a/text", "nothing to run", ""},

		{"the largest of one", "boot: {rootDevice: {choose: largest, path: /dev/sda}}", "/boot/rootDevice/choose", "names one", ""},
		{"an unknown choice", "boot: {rootDevice: {choose: biggest}}", "/boot/rootDevice/choose", "not known", "largest"},
		{"a kept partition with a size", "storage: {disks: [{name: d, partitions: [{label: p, keep: true, sizeMiB: 5}]}]}", "/storage/disks/d/partitions/p/keep", "size and the start", ""},
		{"a kept partition on a wiped disk", "storage: {disks: [{name: d, wipeTable: true, partitions: [{label: p, keep: true}]}]}", "/storage/disks/d/partitions/p/keep", "table is wiped", ""},
		{"a kept file system on a new partition", btrfs("format: xfs, keep: true, mountPoint: /srv"), "/storage/filesystems/p/keep", "made again", "keep: true"},
		{"a kept root", "storage: {disks: [{name: d, partitions: [{label: p, keep: true}]}], filesystems: [{device: p, format: xfs, keep: true, mountPoint: /}]}", "/storage/filesystems/p/keep", "root file system", "/home"},
		{"kept and wiped", "storage: {filesystems: [{device: /dev/sdb1, format: xfs, keep: true, wipe: true, mountPoint: /srv}]}", "/storage/filesystems/~1dev~1sdb1/keep", "exclude each other", ""},
		{"more than the group", lvm("{name: a, percent: 60}, {name: b, percent: 50}"), "/storage/lvm/vg/lvs", "110 per cent", ""},
		{"a size in two units", lvm("{name: a, percent: 60, sizeMiB: 5}"), "/storage/lvm/vg/lvs/a/percent", "exclude each other", ""},
		{"a pool that is not there", lvm("{name: a, pool: p, sizeMiB: 5}"), "/storage/lvm/vg/lvs/a/pool", "no thin pool", "thin: true"},
		{"a thin volume without a size", lvm("{name: p, thin: true}, {name: a, pool: p}"), "/storage/lvm/vg/lvs/a/sizeMiB", "is needed", ""},
		{"a file system on a thin pool", "storage: {disks: [{name: d, partitions: [{label: pv}]}], lvm: [{name: vg, devices: [pv], lvs: [{name: p, thin: true}]}], filesystems: [{device: vg/p, format: xfs}]}", "/storage/filesystems/vg~1p/device", "no device", ""},
		{"subvolumes of xfs", btrfs("format: xfs, subvolumes: [{name: a}]"), "/storage/filesystems/p/subvolumes", "are of btrfs", ""},
		{"subvolumes beside a mount point", btrfs("format: btrfs, mountPoint: /srv, subvolumes: [{name: a}]"), "/storage/filesystems/p/mountPoint", "subvolumes are mounted", ""},
		{"a subvolume with dots", btrfs("format: btrfs, subvolumes: [{name: ../a}]"), "/storage/filesystems/p/subvolumes/..~1a/name", "not the name of a subvolume", ""},
		{"an export without a path", mount("type: nfs, source: nas"), "/storage/mounts/~1srv/source", "not an export", "server:/path"},
		{"a share with backslashes", mount(`type: cifs, source: '\\nas\a'`), "/storage/mounts/~1srv/source", "not a share", "//server/share"},
		{"a password in the options", mount("type: cifs, source: //nas/a, options: [password=x]"), "/storage/mounts/~1srv/options/0", "every user reads", "secret://NAME"},
		{"credentials in the options", mount("type: cifs, source: //nas/a, options: [credentials=/etc/x]"), "/storage/mounts/~1srv/options/0", "every user reads", ""},
		{"a password in clear", mount("type: cifs, source: //nas/a, username: u, password: geheim"), "/storage/mounts/~1srv/password", "not a reference", ""},
		{"a user of CIFS with a comma", mount("type: cifs, source: //nas/a, username: 'u,uid=0'"), "/storage/mounts/~1srv/username", "not a user of CIFS", ""},
		{"a password of NFS", mount("type: nfs, source: 'nas:/a', username: u"), "/storage/mounts/~1srv", "for cifs only", ""},
		{"a tmpfs of something", mount("type: tmpfs, source: /dev/sda"), "/storage/mounts/~1srv/source", "not the source of a tmpfs", ""},
		{"a mount point twice", "storage: {mounts: [{mountPoint: /srv, type: nfs, source: 'a:/b'}], filesystems: [{device: /dev/sdb1, format: xfs, mountPoint: /srv}]}", "/storage/mounts/~1srv/mountPoint", "mount point of", ""},
		{"an unknown type", mount("type: nfss, source: 'a:/b'"), "/storage/mounts/~1srv/type", "not known", "did you mean nfs?"},

		{"an image's user that is removed and changed", "defaultUser: {state: remove, shell: /bin/sh}", "/defaultUser/state", "removes the user", ""},
		{"a plain password of the image's user", "defaultUser: {passwordHash: geheim}", "/defaultUser/passwordHash", "not a crypt(3) hash", ""},
		{"a user that has the name of the image's", "defaultUser: {name: a}\nusers: [{name: a}]", "/defaultUser/name", "one of users too", ""},
		{"root with a word of another tool", "sshd: {permitRootLogin: without-password}", "/sshd/permitRootLogin", "not known", "prohibit-password"},
		{"a port that is none", "sshd: {ports: [ssh]}", "/sshd/ports/0", "not a port", ""},
		{"a port that the firewall closes", "sshd: {ports: [2222]}\nfirewall: {enabled: true, services: [ssh]}", "/sshd/ports/0", "not among the ports", "2222/tcp"},
		{"a setting with its own field", "sshd: {settings: {Port: 2222}}", "/sshd/settings/Port", "field of its own", "sshd.ports"},
		{"a Match in settings", "sshd: {settings: {Match: all}}", "/sshd/settings/Match", "cannot be said", ""},
		{"a setting of two lines", `sshd: {settings: {Banner: "a\nPermitRootLogin yes"}}`, "/sshd/settings/Banner", "line end", ""},
		{"ports without a firewall", "firewall: {ports: [443/tcp]}", "/firewall/enabled", "is needed", ""},
		{"a port without its protocol", "firewall: {enabled: true, services: [ssh], ports: ['443']}", "/firewall/ports/0", "with its protocol", "443/tcp"},
		{"a range backwards", "firewall: {enabled: true, services: [ssh], ports: [9-8/tcp]}", "/firewall/ports/0", "not a range", ""},
		{"a firewall that shuts SSH out", "firewall: {enabled: true}", "/firewall", "does not open SSH", "firewall.services"},
		{"an unknown mode of SELinux", "selinux: permisive", "/selinux", "not known", "did you mean permissive?"},
		{"a package that is installed and removed", "packages: {install: [ed], remove: [ed]}", "/packages/remove/0", "installed and removed", ""},
		{"a group with a blank", "packages: {groups: ['Development Tools']}", "/packages/groups/0", "not a group", "its id"},
		{"a pin without a version", "packages: {pins: [{name: ed}]}", "/packages/pins/ed/version", "not a version", ""},
		{"a channel with a blank", "packages: {snaps: [{name: lxd, channel: 'latest stable'}]}", "/packages/snaps/lxd/channel", "not a channel", ""},
		{"a proxy with a password", "packages: {proxy: 'http://u:p@proxy:3128'}", "/packages/proxy", "user name or password", ""},
		{"metadata with Slipway's own name", "host: {metaData: {instance-id: a}}", "/host/metaData/instance-id", "Slipway says itself", ""},
		{"metadata with a secret", `host: {metaData: {a: '{{ secret "x" }}'}}`, "/host/metaData/a", "holds a secret", "files"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, r := layer.Parse(c.layer, "layer")
			if !r.HasErrors() {
				cfg, _ := layer.Merge(l)
				_, more := template.Expand(cfg, template.NewVars(&inventory.Host{Name: "node-1"}, nil, "12"))
				r = append(more, Validate(cfg)...)
			}
			for _, f := range r {
				if f.Path == c.path && strings.Contains(f.Message, c.want) && strings.Contains(f.Hint, c.hint) && strings.HasPrefix(f.Source, "layer:1") {
					return
				}
			}
			t.Errorf("findings %v; want %q at %s with hint %q", r, c.want, c.path, c.hint)
		})
	}
}
