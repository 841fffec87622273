package machineconfig_test

import (
	"net/netip"
	"strings"
	"testing"

	"slipway.dev/slipway/machineconfig/layer/layertest"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/validation"
)

// kept gives the addresses of two subnets.
func kept(subnet string) (netip.Prefix, error) {
	p, ok := map[string]netip.Prefix{"rack1": netip.MustParsePrefix("192.0.2.7/24"), "six": netip.MustParsePrefix("2001:db8::7/64")}[subnet]
	if !ok {
		return p, inventory.Errorf(inventory.Conflict, "subnet %s has no free address", subnet).WithHint("add a range")
	}
	return p, nil
}

func TestAMachineGetsItsAddressFromASubnet(t *testing.T) {
	cfg := layertest.Merged(t, "network: {interfaces: [{name: lan0, mac: '52:54:00:12:34:56', fromSubnets: [rack1], routes: [{to: 0.0.0.0/0, via: 192.0.2.1}]}]}",
		"network: {interfaces: [{name: lan0, addresses: [198.51.100.9/24], fromSubnets: [six]}]}")
	machineconfig.Fill(cfg, &inventory.Host{Name: "node-1"}, "")
	if r := machineconfig.FillAddresses(cfg, kept); len(r) > 0 {
		t.Fatal(r)
	}
	if got := strings.Join(cfg.Network.Addresses(), " "); got != "198.51.100.9/24 192.0.2.7/24 2001:db8::7/64" {
		t.Errorf("addresses: %s", got)
	}
	if r := validation.Validate(cfg); len(r) > 0 {
		t.Error(r)
	}
	said := map[string]string{}
	cfg.EachAddress(func(path, source, address string) { said[address] = path + " " + source })
	if said["192.0.2.7/24"] != "/network/interfaces/lan0/addresses/1 subnet rack1" {
		t.Errorf("where they come from: %v", said)
	}
}

func TestAnAddressThatIsNotThereIsAFinding(t *testing.T) {
	for _, tc := range []struct{ name, subnet, want, hint string }{
		{"a full subnet", "full", "subnet full has no free address", "add a range"},
		{"no name of a subnet", "RACK 1", `"RACK 1" is not the name of a subnet`, "slipway subnet list"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg := layertest.Merged(t, "network: {vlans: [{name: v1, parent: lan0, id: 7, fromSubnets: ['"+tc.subnet+"']}], interfaces: [{name: lan0}]}")
			r := machineconfig.FillAddresses(cfg, kept)
			if len(r) != 1 || r[0].Message != tc.want || !strings.Contains(r[0].Hint, tc.hint) || r[0].Path != "/network/vlans/v1/fromSubnets/0" || r[0].Source != "layer 1:1" {
				t.Errorf("findings: %+v", r)
			}
		})
	}
}
