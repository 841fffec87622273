package plain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"slipway.dev/slipway/machineconfig"
)

// sshdPath is read before the files of images and of other programs: the SSH server takes the first value of each keyword.
const sshdPath = "/etc/ssh/sshd_config.d/05-slipway.conf"

// SSHDText says settings of the SSH server as lines of sshd_config(5).
func SSHDText(s machineconfig.SSHD) string {
	var b strings.Builder
	for _, p := range s.Ports {
		b.WriteString("Port " + p + "\n")
	}
	if a := s.PasswordAuthentication; a != nil {
		word := map[bool]string{true: "yes", false: "no"}[*a]
		b.WriteString("PasswordAuthentication " + word + "\nKbdInteractiveAuthentication " + word + "\n")
	}
	if s.PermitRootLogin != "" {
		b.WriteString("PermitRootLogin " + s.PermitRootLogin + "\n")
	}
	if len(s.AllowUsers) > 0 {
		b.WriteString("AllowUsers " + strings.Join(s.AllowUsers, " ") + "\n")
	}
	if len(s.AllowGroups) > 0 {
		b.WriteString("AllowGroups " + strings.Join(s.AllowGroups, " ") + "\n")
	}
	for _, k := range slices.Sorted(maps.Keys(s.Settings)) {
		b.WriteString(k + " " + s.Settings[k] + "\n")
	}
	return b.String()
}

func (w *writer) sshd() {
	s := w.c.SSHD
	if s.IsZero() {
		return
	}
	w.file(sshdPath, 0o600, SSHDText(s))
	if w.t.OS == "flatcar" && len(s.Ports) > 0 { // where systemd listens for it
		text := "[Socket]\nListenStream=\n"
		for _, p := range s.Ports {
			text += "ListenStream=" + p + "\n"
		}
		w.dropIn("sshd.socket", machineconfig.DropIn{Name: "10-slipway.conf", Contents: text})
	}
	w.run("sshd", append([]string{sshdPath}, s.Ports...)...)
}

func (w *writer) dropIn(unit string, d machineconfig.DropIn) {
	for i := range w.c.Units {
		if u := &w.c.Units[i]; u.Name == unit {
			u.DropIns = append(slices.Clone(u.DropIns), d)
			return
		}
	}
	w.c.Units = append(w.c.Units, machineconfig.Unit{Name: unit, DropIns: []machineconfig.DropIn{d}})
}

// services are the ports of services by firewalld's names, for firewalls that know no names.
var services = map[string][]string{
	"ssh": {"22/tcp"}, "http": {"80/tcp"}, "https": {"443/tcp"}, "dns": {"53/tcp", "53/udp"}, "ntp": {"123/udp"}, "nfs": {"2049/tcp"},
	"smtp": {"25/tcp"}, "imaps": {"993/tcp"}, "ldap": {"389/tcp"}, "ldaps": {"636/tcp"}, "mysql": {"3306/tcp"}, "postgresql": {"5432/tcp"},
	"redis": {"6379/tcp"}, "samba": {"137/udp", "138/udp", "139/tcp", "445/tcp"}, "snmp": {"161/udp"}, "syslog": {"514/udp"}, "tftp": {"69/udp"},
	"dhcp": {"67/udp"}, "cockpit": {"9090/tcp"}, "prometheus": {"9090/tcp"}, "mdns": {"5353/udp"}, "wireguard": {"51820/udp"},
	"kube-apiserver": {"6443/tcp"}, "kubelet": {"10250/tcp"}, "etcd-client": {"2379/tcp"}, "etcd-server": {"2380/tcp"},
	"kube-nodeport-services": {"30000-32767/tcp", "30000-32767/udp"}, "iscsi-target": {"3260/tcp"}, "proxmox": {"8006/tcp"},
}

// ports are all open ports, services by their numbers.
func (w *writer) ports() []string {
	f := w.c.Firewall
	var out []string
	for i, s := range f.Services {
		known, ok := services[s]
		if !ok {
			w.cannot(fmt.Sprintf("/firewall/services/%d", i), fmt.Sprintf("has a service %s, whose ports are not known for %s", s, w.t), "write its ports under firewall.ports")
		}
		out = append(out, known...)
	}
	out = append(out, f.Ports...)
	slices.Sort(out)
	return slices.Compact(out)
}

func (w *writer) firewall() {
	f := w.c.Firewall
	if f.Enabled == nil {
		return
	}
	if !*f.Enabled {
		w.run("firewall", "off")
		return
	}
	args := []string{"on"}
	if w.family != Apt {
		for _, s := range f.Services {
			args = append(args, "service:"+s)
		}
		for _, p := range f.Ports {
			args = append(args, "port:"+p)
		}
		w.install(map[Family]string{Dnf: "firewalld", Zypper: "firewalld"})
		w.run("firewall", args...)
		return
	}
	w.install(map[Family]string{Apt: "ufw"})
	for _, p := range w.ports() {
		if strings.HasSuffix(p, "/sctp") {
			w.cannot("/firewall/ports", "has a port of SCTP, which ufw does not know", "leave it out")
		}
		args = append(args, "port:"+p)
	}
	w.run("firewall", args...)
}

// Nftables returns the rules and the unit of a firewall for systems that have nftables and nothing above it. With the
// firewall off there is nothing to do: such systems have none.
func Nftables(t machineconfig.Target, c *machineconfig.Config) (*machineconfig.Config, machineconfig.Report) {
	f := c.Firewall
	if f.Enabled == nil || !*f.Enabled {
		return c, nil
	}
	out := *c
	w := &writer{t: t, c: &out}
	out.Files, out.Units = slices.Clone(c.Files), slices.Clone(c.Units)
	var b strings.Builder
	b.WriteString("# What may reach this machine. Written by Slipway.\ntable inet slipway\ndelete table inet slipway\ntable inet slipway {\n" +
		"\tchain input {\n\t\ttype filter hook input priority filter; policy drop;\n\t\tct state established,related accept\n\t\tiif lo accept\n" +
		"\t\tmeta l4proto { icmp, ipv6-icmp } accept\n\t\tudp dport { 68, 546 } accept\n")
	for _, p := range w.ports() {
		number, protocol, _ := strings.Cut(p, "/")
		b.WriteString("\t\t" + protocol + " dport " + number + " accept\n")
	}
	b.WriteString("\t}\n}\n")
	const path = "/etc/slipway/firewall.nft"
	w.file(path, 0o600, b.String())
	on := true
	out.Units = append(out.Units, machineconfig.Unit{Name: "slipway-firewall.service", Enabled: &on, Contents: `[Unit]
Description=Slipway: firewall
DefaultDependencies=no
Wants=network-pre.target
After=local-fs.target
Before=network-pre.target shutdown.target
Conflicts=shutdown.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/bin/env nft -f ` + path + `

[Install]
WantedBy=multi-user.target
`})
	return &out, w.report
}
