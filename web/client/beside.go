package client

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"slipway.dev/slipway/inventory"
)

// ForeignServer is another DHCP server that was noticed on a subnet. One that was not heard itself was named by a
// machine, which proves nothing.
type ForeignServer struct {
	Subnet    string        `json:"subnet"`
	Interface string        `json:"interface"`
	Server    netip.Addr    `json:"server"`         // invalid for a DHCPv6 server that only a machine named
	DUID      string        `json:"duid,omitempty"` // of DHCPv6
	MAC       inventory.MAC `json:"mac,omitempty"`
	IsHeard   bool          `json:"isHeard"`
	IsProxy   bool          `json:"isProxy"` // it gave no address, only boot options
	SinceAt   time.Time     `json:"sinceAt"`
	LastAt    time.Time     `json:"lastAt"`
}

// ForeignServers returns the other DHCP servers that were noticed on a subnet in the last hour.
func (c *Client) ForeignServers(ctx context.Context, subnet string) (p Page[ForeignServer], err error) {
	return p, c.call(ctx, http.MethodGet, c.Subnets.at(subnet)+"/foreign-servers", nil, nil, &p)
}

// ProbeLine is what becomes of machines of one kind of firmware on a network.
type ProbeLine struct {
	Kind    string       `json:"kind"`
	LeadsTo string       `json:"leadsTo"` // us, elsewhere or nowhere
	Detail  string       `json:"detail"`
	Hint    string       `json:"hint,omitempty"`
	Offers  []ProbeOffer `json:"offers,omitempty"`
}

// ProbeOffer is what a server offered.
type ProbeOffer struct {
	Kind        string     `json:"kind"`
	Server      netip.Addr `json:"server"`
	Address     netip.Addr `json:"address,omitzero"`
	Next        netip.Addr `json:"next,omitzero"`
	File        string     `json:"file,omitempty"`
	Class       string     `json:"class,omitempty"`
	NoProxyWait bool       `json:"noProxyWait"`
}

// Probe asks the DHCP servers of a subnet what they tell machines that boot from the network; server is one to ask as a
// relay agent, or "" for all on the wire.
func (c *Client) Probe(ctx context.Context, subnet, server string) (p Page[ProbeLine], err error) {
	q := url.Values{}
	if server != "" {
		q.Set("server", server)
	}
	return p, c.call(ctx, http.MethodPost, c.Subnets.at(subnet)+"/probe", q, nil, &p)
}
