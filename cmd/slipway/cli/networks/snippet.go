package networks

import (
	"fmt"
	"strings"

	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/inventory/usage"
	"slipway.dev/slipway/web/client"
	"slipway.dev/slipway/web/wire"
)

type subnetUsage struct {
	Subnet string `arg:""`
}

// Run counts the addresses of a subnet, range by range.
func (c *subnetUsage) Run(s *cli.Session, api *client.Client) error {
	return cli.Answered(api.SubnetUse(s.Ctx, c.Subnet)).Show(s, func(t *cli.TableWriter, u usage.SubnetUse) {
		t.Row("RANGE", "ADDRESSES", "FREE", "LEASED", "KEPT", "RESERVED", "CONFLICT")
		row := func(name string, r usage.RangeUse) {
			t.Row(name, fmt.Sprint(r.Total), fmt.Sprint(r.Free), fmt.Sprint(r.Leased), fmt.Sprint(r.Kept), fmt.Sprint(r.Reserved), fmt.Sprint(r.Conflict))
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

// Run writes a snippet as it belongs into a file. Notes about it go to the terminal.
func (c *subnetSnippet) Run(s *cli.Session, api *client.Client) error {
	p, err := api.Snippets(s.Ctx, c.Subnet, c.Server)
	if err != nil {
		return err
	}
	if s.Globals.Output != "table" {
		return s.Show(p.Items, nil)
	}
	for _, n := range p.Items {
		fmt.Fprint(s.Out, cli.PlainLines(n.Text))
		for _, said := range []struct{ before, text string }{{"it goes to ", n.File}, {"check it with: ", n.Check}, {"", n.Note}} {
			if said.text != "" {
				s.Say("# %s%s", said.before, said.text)
			}
		}
	}
	return nil
}

type subnetInterfaces struct{}

// Run lists interfaces.
func (*subnetInterfaces) Run(s *cli.Session, api *client.Client) error {
	headings := []string{"NAME", "MAC", "LINK", "SERVED", "ADDRESSES", "SUBNET", "BOOT DOOR"}
	return cli.Items(api.Interfaces(s.Ctx)).Show(s, cli.Rows(headings, func(i wire.Interface) []string {
		var addresses []string
		for _, a := range i.Addresses {
			addresses = append(addresses, a.String())
		}
		return []string{
			i.Name, string(i.MAC), either(i.IsUp, "up", "down"), either(i.IsServed, "yes", ""), strings.Join(addresses, " "), i.Subnet, i.BootURL,
		}
	}))
}

func either(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}
