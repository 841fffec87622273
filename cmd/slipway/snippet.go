package main

import (
	"fmt"
	"strings"

	"slipway.dev/slipway/web/client"
)

type subnetUsage struct {
	Subnet string `arg:""`
}

// Run counts the addresses of a subnet, range by range.
func (c *subnetUsage) Run(s *session) error {
	api, err := s.client()
	if err != nil {
		return err
	}
	u, err := api.SubnetUse(s.ctx, c.Subnet)
	if err != nil {
		return err
	}
	return s.show(u, func(t *tableWriter) {
		t.row("RANGE", "ADDRESSES", "FREE", "LEASED", "KEPT", "RESERVED", "CONFLICT")
		row := func(name string, r client.RangeUse) {
			t.row(name, fmt.Sprint(r.Total), fmt.Sprint(r.Free), fmt.Sprint(r.Leased), fmt.Sprint(r.Kept), fmt.Sprint(r.Reserved), fmt.Sprint(r.Conflict))
		}
		for _, r := range u.Ranges {
			row(r.First.String()+"-"+r.Last.String(), r)
		}
		row("outside", u.Outside)
	})
}

type subnetSnippet struct {
	Subnet string `arg:""`
	Server string `name:"for" help:"The other server: dnsmasq, kea, dhcpd, mikrotik or windows." enum:"dnsmasq,kea,dhcpd,mikrotik,windows" required:""`
}

// Run writes a snippet as it goes into a file; what else is to be said of it goes to the person.
func (c *subnetSnippet) Run(s *session) error {
	api, err := s.client()
	if err != nil {
		return err
	}
	p, err := api.Snippets(s.ctx, c.Subnet, c.Server)
	if err != nil {
		return err
	}
	if s.globals.Output != "table" {
		return s.show(p.Items, nil)
	}
	for _, n := range p.Items {
		fmt.Fprint(s.out, plainLines(n.Text))
		for _, said := range []struct{ before, text string }{{"it goes to ", n.File}, {"check it with: ", n.Check}, {"", n.Note}} {
			if said.text != "" {
				s.say("# %s%s", said.before, said.text)
			}
		}
	}
	return nil
}

type subnetInterfaces struct{}

// Run lists interfaces.
func (*subnetInterfaces) Run(s *session) error {
	api, err := s.client()
	if err != nil {
		return err
	}
	p, err := api.Interfaces(s.ctx)
	if err != nil {
		return err
	}
	return s.show(p.Items, func(t *tableWriter) {
		t.row("NAME", "MAC", "LINK", "SERVED", "ADDRESSES", "SUBNET", "BOOT DOOR")
		for _, i := range p.Items {
			var addresses []string
			for _, a := range i.Addresses {
				addresses = append(addresses, a.String())
			}
			t.row(i.Name, string(i.MAC), either(i.IsUp, "up", "down"), either(i.IsServed, "yes", ""), strings.Join(addresses, " "), i.Subnet, i.BootURL)
		}
	})
}

func either(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}
