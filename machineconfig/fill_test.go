package machineconfig_test

import (
	"strings"
	"testing"

	"slipway.dev/slipway/machineconfig/layer/layertest"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/validation"
)

func TestFillWritesTheBootstrapsSecretAsAName(t *testing.T) {
	cfg := layertest.Merged(t, "bootstrap: {kind: talos, secret: 'secret://a'}")
	machineconfig.Fill(cfg, &inventory.Host{Name: "node-1"}, "")
	if r := validation.Validate(cfg); len(r) > 0 || cfg.Bootstrap.Secret != "a" {
		t.Errorf("secret %q, findings %v; want a", cfg.Bootstrap.Secret, r)
	}
}

func TestFillTakesTheInventorysWord(t *testing.T) {
	nics := []inventory.NIC{{MAC: "52:54:00:00:00:01"}, {MAC: "52:54:00:00:00:02", IsBoot: true}}
	for _, c := range []struct {
		name, layer string
		nics        []inventory.NIC
		known       inventory.MAC
		host, mac   string
	}{
		{"the name and the NIC it booted from", "network: {interfaces: [{name: a, mac: boot}]}", nics, "", "node-1", "52:54:00:00:00:02"},
		{"a known MAC comes first", "network: {interfaces: [{name: a, mac: boot}]}", nics, "52:54:00:00:00:01", "node-1", "52:54:00:00:00:01"},
		{"the only NIC", "network: {interfaces: [{name: a, mac: boot}]}", nics[:1], "", "node-1", "52:54:00:00:00:01"},
		{"one of several that never booted is not guessed", "network: {interfaces: [{name: a, mac: boot}]}", []inventory.NIC{nics[0], {MAC: "52:54:00:00:00:03"}}, "", "node-1", "boot"},
		{"what a layer says stays", "host: {hostname: b}\nnetwork: {interfaces: [{name: a, mac: '52:54:00:00:00:09'}]}", nics, "", "b", "52:54:00:00:00:09"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := layertest.Merged(t, c.layer)
			cfg.Host.InstanceID = "kept"
			machineconfig.Fill(cfg, &inventory.Host{Name: "node-1", NICs: c.nics}, c.known)
			if cfg.Host.Hostname != c.host || cfg.Network.Interfaces[0].MAC != c.mac || cfg.Host.InstanceID != "kept" {
				t.Errorf("host name %s, MAC %s; want %s, %s", cfg.Host.Hostname, cfg.Network.Interfaces[0].MAC, c.host, c.mac)
			}
			if c.mac == "boot" {
				if r := validation.Validate(cfg); len(r) != 1 || !strings.Contains(r[0].Message, "which is not known") {
					t.Errorf("findings %v; want that the port is not known", r)
				}
			}
		})
	}
}
