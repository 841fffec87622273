package networks

import (
	"slices"
	"strings"

	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/web/client"
)

type subnetProbe struct {
	Subnet string `arg:""`
	Ask    string `help:"Ask this DHCP server alone, as a relay agent; for networks that are reached by relay only." placeholder:"ADDR"`
}

// Run asks the DHCP servers of a subnet.
func (c *subnetProbe) Run(s *cli.Session, api *client.Client) error {
	return cli.Items(api.Probe(s.Ctx, c.Subnet, c.Ask)).Show(s, func(t *cli.TableWriter, lines []pxe.ProbeLine) {
		t.Row("MACHINES", "LEADS TO", "SERVER", "FILE", "WHY")
		var hints []string
		for _, l := range lines {
			server, file := "", ""
			for _, o := range l.Offers {
				if server == "" || o.File != "" {
					server, file = o.Server.String(), o.File
				}
			}
			t.Row(l.Kind, l.LeadsTo, server, file, l.Detail)
			if l.Hint != "" && !slices.Contains(hints, l.Hint) {
				hints = append(hints, l.Hint)
			}
		}
		for _, hint := range hints { // most hold for several kinds
			t.Text("→ " + hint)
		}
	})
}

type subnetServers struct {
	Subnet string `arg:""`
}

// Run lists other servers.
func (c *subnetServers) Run(s *cli.Session, api *client.Client) error {
	headings := []string{"SERVER", "MAC", "INTERFACE", "HEARD", "GIVES", "SINCE", "LAST"}
	return cli.Items(api.ForeignServers(s.Ctx, c.Subnet)).Show(s, cli.Rows(headings, func(f pxe.ForeignServer) []string {
		name := f.Server.String()
		if f.DUID != "" {
			name = strings.TrimPrefix(name+" DUID "+f.DUID, "invalid IP ")
		}
		return []string{
			name, string(f.MAC), f.Interface, either(f.IsHeard, "yes", "named by a machine"),
			either(f.IsProxy, "boot options", "addresses"), cli.TimeText(f.SinceAt), cli.TimeText(f.LastAt),
		}
	}))
}
