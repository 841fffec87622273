package plain

import (
	"fmt"
	"strings"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
)

// wireguards writes the files of wg-quick(8), which root alone reads, and enables its units.
func (w *writer) wireguards() {
	on := true
	for _, g := range w.c.Network.WireGuards {
		w.file("/etc/wireguard/"+g.Name+".conf", 0o600, wgQuick(g, append(append([]string{}, g.DNS...), g.Search...)))
		w.c.Units = append(w.c.Units, machineconfig.Unit{Name: "wg-quick@" + g.Name + ".service", Enabled: &on})
		w.install(map[Family]string{Apt: "wireguard-tools", Dnf: "wireguard-tools", Zypper: "wireguard-tools"})
	}
	w.c.Network.WireGuards = nil
}

func wgQuick(g machineconfig.WireGuard, dns []string) string {
	var b strings.Builder
	b.WriteString("[Interface]\nPrivateKey = " + late.Marker(g.PrivateKey) + "\n")
	if len(g.Addresses) > 0 {
		b.WriteString("Address = " + strings.Join(g.Addresses, ", ") + "\n")
	}
	if g.ListenPort > 0 {
		fmt.Fprintf(&b, "ListenPort = %d\n", g.ListenPort)
	}
	if g.MTU > 0 {
		fmt.Fprintf(&b, "MTU = %d\n", g.MTU)
	}
	if len(dns) > 0 {
		b.WriteString("DNS = " + strings.Join(dns, ", ") + "\n")
	}
	for _, r := range g.Routes {
		line := "ip route replace " + r.To + " dev %i"
		if r.Via != "" {
			line = "ip route replace " + r.To + " via " + r.Via + " dev %i"
		}
		if r.Metric > 0 {
			line += fmt.Sprintf(" metric %d", r.Metric)
		}
		if r.Table > 0 {
			line += fmt.Sprintf(" table %d", r.Table)
		}
		b.WriteString("PostUp = " + line + "\n")
	}
	for _, r := range g.Rules {
		rule, ip := ruleWords(r), "ip -4"
		if strings.Contains(r.From+r.To, ":") {
			ip = "ip -6"
		}
		b.WriteString("PostUp = " + ip + " rule add " + rule + "\nPreDown = " + ip + " rule del " + rule + "\n")
	}
	for _, p := range g.Peers {
		b.WriteString("\n" + peer(p))
	}
	return b.String()
}

func ruleWords(r machineconfig.Rule) string {
	words := fmt.Sprintf("priority %d", r.Priority)
	if r.From != "" {
		words += " from " + r.From
	}
	if r.To != "" {
		words += " to " + r.To
	}
	if r.Mark > 0 {
		words += fmt.Sprintf(" fwmark %d", r.Mark)
	}
	return words + fmt.Sprintf(" table %d", r.Table)
}

// peer says a peer as a section of wg(8).
func peer(p machineconfig.Peer) string {
	var b strings.Builder
	b.WriteString("[Peer]\nPublicKey = " + p.PublicKey + "\n")
	if p.PresharedKey != "" {
		b.WriteString("PresharedKey = " + late.Marker(p.PresharedKey) + "\n")
	}
	b.WriteString("AllowedIPs = " + strings.Join(p.AllowedIPs, ", ") + "\n")
	if p.Endpoint != "" {
		b.WriteString("Endpoint = " + p.Endpoint + "\n")
	}
	if p.KeepaliveS > 0 {
		fmt.Fprintf(&b, "PersistentKeepalive = %d\n", p.KeepaliveS)
	}
	return b.String()
}
