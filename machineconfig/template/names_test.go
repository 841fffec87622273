package template

import (
	"net/netip"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig/layer/layertest"

	"github.com/google/go-cmp/cmp"
)

func TestSecretsOfTheNewerPartsAreNamed(t *testing.T) {
	c := layertest.Merged(t, `
defaultUser: {passwordHash: 'secret://pw'}
storage: {mounts: [{mountPoint: /a, source: //a/b, type: cifs, username: u, password: 'secret://smb'}]}
network: {wireguards: [{name: wg0, privateKey: 'secret://wg', peers: [{publicKey: RlBLZ0RZNNyXMTlGnRCo1Bnn0LhFcWCrCnHbUTJgQlE=, presharedKey: 'secret://psk', allowedIPs: [10.0.0.0/8]}]}]}
scripts: [{name: s, stage: early, text: 'echo {{ secret "db" | shell }}'}]
`)
	named, r := Expand(c, exampleVars())
	if len(r) > 0 {
		t.Fatal(r)
	}
	got := map[string]string{}
	for _, n := range append(c.Names(), named...) {
		got[n.Path] = n.Ref
		if c.SourceOf(n.Path) == "" {
			t.Errorf("nobody knows which layer says %s", n.Path)
		}
	}
	want := map[string]string{
		"/defaultUser/passwordHash": "secret://pw", "/storage/mounts/~1a/password": "secret://smb", "/network/wireguards/wg0/privateKey": "secret://wg",
		"/network/wireguards/wg0/peers/RlBLZ0RZNNyXMTlGnRCo1Bnn0LhFcWCrCnHbUTJgQlE=/presharedKey": "secret://psk", "/scripts/s/text": "secret://db",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestWhatIsOneMachinesOwnMayBeATemplate(t *testing.T) {
	cfg := layertest.Merged(t, `
host: {hostname: 'web-{{ .Host.Place.Unit }}', domain: '{{ .Parameters.zone }}.example.com'}
bootstrap: {kind: none, nodeName: '{{ .Host.Name }}.x', nodeIP: '{{ ip (address "rack1") }}'}
network: {interfaces: [{name: lan0, addresses: ['{{ nth 9 "192.0.2.0/24" }}/24'], routes: [{to: 0.0.0.0/0, via: '{{ nth 1 (network (address "rack1")) }}'}]}]}
files: [{path: /a, text: '{{ address "rack1" }} {{ address "six" }}'}]
`)
	_, r := Expand(cfg, exampleVars().WithAddresses(kept))
	if len(r) > 0 {
		t.Fatal(r)
	}
	got := strings.Join([]string{
		cfg.Host.FQDN(), cfg.Bootstrap.NodeName, cfg.Bootstrap.NodeIP, cfg.Network.Addresses()[0], cfg.Network.Interfaces[0].Routes[0].Via, cfg.Files[0].Text,
	}, "|")
	if want := "web-7.z1.example.com|node-1.x|192.0.2.7|192.0.2.9/24|192.0.2.1|192.0.2.7/24 2001:db8::7/64"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	_, _, r = ExpandText("document", "", `{{ address "full" }}`, exampleVars().WithAddresses(kept))
	if len(r) != 1 || r[0].Message != "subnet full has no free address" {
		t.Errorf("findings: %+v", r)
	}
	_, _, r = ExpandText("document", "", `{{ address "rack1" }}`, exampleVars())
	if len(r) != 1 || !strings.Contains(r[0].Message, "no address of subnet rack1 is known here") {
		t.Errorf("findings: %+v", r)
	}
}

// kept gives the addresses of two subnets.
func kept(subnet string) (netip.Prefix, error) {
	p, ok := map[string]netip.Prefix{"rack1": netip.MustParsePrefix("192.0.2.7/24"), "six": netip.MustParsePrefix("2001:db8::7/64")}[subnet]
	if !ok {
		return p, inventory.Errorf(inventory.Conflict, "subnet %s has no free address", subnet).WithHint("add a range")
	}
	return p, nil
}
