package main

import (
	"slices"
	"strings"
)

type subnetProbe struct {
	Subnet string `arg:""`
	Ask    string `help:"Ask this DHCP server alone, as a relay agent; for networks that are reached by relay only." placeholder:"ADDR"`
}

// Run asks the DHCP servers of a subnet.
func (c *subnetProbe) Run(s *session) error {
	api, err := s.client()
	if err != nil {
		return err
	}
	p, err := api.Probe(s.ctx, c.Subnet, c.Ask)
	if err != nil {
		return err
	}
	return s.show(p.Items, func(t *tableWriter) {
		t.row("MACHINES", "LEADS TO", "SERVER", "FILE", "WHY")
		var hints []string
		for _, l := range p.Items {
			server, file := "", ""
			for _, o := range l.Offers {
				if server == "" || o.File != "" {
					server, file = o.Server.String(), o.File
				}
			}
			t.row(l.Kind, l.LeadsTo, server, file, l.Detail)
			if l.Hint != "" && !slices.Contains(hints, l.Hint) {
				hints = append(hints, l.Hint)
			}
		}
		for _, hint := range hints { // most hold for several kinds
			t.text("→ " + hint)
		}
	})
}

type subnetServers struct {
	Subnet string `arg:""`
}

// Run lists other servers.
func (c *subnetServers) Run(s *session) error {
	api, err := s.client()
	if err != nil {
		return err
	}
	p, err := api.ForeignServers(s.ctx, c.Subnet)
	if err != nil {
		return err
	}
	return s.show(p.Items, func(t *tableWriter) {
		t.row("SERVER", "MAC", "INTERFACE", "HEARD", "GIVES", "SINCE", "LAST")
		for _, f := range p.Items {
			name := f.Server.String()
			if f.DUID != "" {
				name = strings.TrimPrefix(name+" DUID "+f.DUID, "invalid IP ")
			}
			t.row(name, string(f.MAC), f.Interface, either(f.IsHeard, "yes", "named by a machine"),
				either(f.IsProxy, "boot options", "addresses"), timeText(f.SinceAt), timeText(f.LastAt))
		}
	})
}
