package talos

import (
	"go.yaml.in/yaml/v3"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
)

func (p *patcher) match(name string) machineconfig.PortMatch {
	for _, i := range p.c.Network.Interfaces {
		if i.Name == name {
			return i.Match
		}
	}
	return machineconfig.PortMatch{}
}

// matched returns the entry of the ports that match, which is made if there is none.
func (p *patcher) matched(all *yaml.Node, name string, m machineconfig.PortMatch) *yaml.Node {
	if m.Name != "" || m.Link {
		p.r.Errorf("/network/interfaces/"+name+"/match", "not-expressible", "Talos finds ports by their driver, not by a glob of names or by link").
			Hint = "give match.driver, or the port's MAC"
	}
	for _, d := range all.Content {
		if scalar(lookup(d, "deviceSelector", "driver")) == m.Driver {
			return d
		}
	}
	d := object("deviceSelector", object("driver", text(m.Driver)))
	all.Content = append(all.Content, d)
	return d
}

// wireguard adds a tunnel. Its keys are late values.
func (p *patcher) wireguard(g machineconfig.WireGuard) {
	n := object("privateKey", quotedMarker(g.PrivateKey))
	if g.ListenPort > 0 {
		put(n, "listenPort", integer(g.ListenPort))
	}
	peers := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	for _, peer := range g.Peers {
		o := object("publicKey", text(peer.PublicKey), "allowedIPs", texts(peer.AllowedIPs))
		if peer.PresharedKey != "" {
			p.r.Errorf("/network/wireguards/"+g.Name+"/peers/"+peer.PublicKey+"/presharedKey", "not-expressible", "Talos takes no pre-shared key here").Hint = "leave it out"
		}
		if peer.Endpoint != "" {
			put(o, "endpoint", text(peer.Endpoint))
		}
		if peer.KeepaliveS > 0 {
			put(o, "persistentKeepaliveInterval", text(integer(peer.KeepaliveS).Value+"s"))
		}
		peers.Content = append(peers.Content, o)
	}
	put(n, "peers", peers)
	d := p.device(g.Name)
	put(d, "wireguard", n)
	p.l3(d, g.L3, g.Name, "/network/wireguards/"+g.Name, true)
}

// quotedMarker is the marker of a secret in double quotes.
func quotedMarker(ref string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle, Value: late.MarkerIn(ref, late.JSONString)}
}
