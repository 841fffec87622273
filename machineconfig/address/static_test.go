package address

import (
	"strings"
	"testing"

	"slipway.dev/slipway/machineconfig/layer/layertest"

	"slipway.dev/slipway/machineconfig"
)

func TestStaticAddressesAreFoundWhereverTheyAreSaid(t *testing.T) {
	for _, tc := range []struct{ name, format, document, layer, want string }{
		{"interfaces, and not what every machine may have", "", "", "network: {interfaces: [{name: a, addresses: [192.0.2.5/24, 'fe80::1/64', 127.0.0.9/8]}], bridges: [{name: b, addresses: ['2001:db8::5/64']}]}", "192.0.2.5@layer 1:1 2001:db8::5@layer 1:1"},
		{"kickstart", "kickstart", "install\nnetwork --bootproto=static --ip=192.0.2.5 --netmask=255.255.255.0 --ipv6=2001:db8::5/64\nnetwork --bootproto=dhcp --ip dhcp\n#network --ip=192.0.2.9\n", "", "192.0.2.5@document:2:1 2001:db8::5@document:2:1"},
		{"preseed", "preseed", "d-i netcfg/get_nameservers string 192.0.2.53\nd-i netcfg/get_ipaddress string 192.0.2.5\n", "", "192.0.2.5@document:2:1"},
		{"autoinstall", "autoinstall", "network:\n  ethernets:\n    a:\n      addresses: [192.0.2.5/24]\n      nameservers: {addresses: [192.0.2.53]}\n      routes: [{to: default, via: 192.0.2.1}]\n", "", "192.0.2.5@document:4:1"},
		{"version 1 of cloud-init", "autoinstall", "network:\n  config:\n    - type: physical\n      subnets:\n        - {type: static, address: 192.0.2.5/24, gateway: 192.0.2.1}\n", "", "192.0.2.5@document:5:1"},
		{"a file that a cloud-config writes", "cloud-config", "#cloud-config\nwrite_files:\n  - path: /etc/netplan/9.yaml\n    content: |\n      network: {ethernets: {a: {addresses: [192.0.2.5/24]}}}\n", "", "192.0.2.5@document:4:1"},
		{"a file that Butane writes", "butane", "variant: flatcar\nstorage:\n  files:\n    - path: /etc/systemd/network/a.network\n      contents:\n        inline: \"[Network]\\nAddress=192.0.2.5/24\\n\"\n", "", "192.0.2.5@document:6:1"},
		{"Talos", "talos", "machine:\n  network:\n    interfaces:\n      - {interface: eth0, addresses: [192.0.2.5/24]}\n", "", "192.0.2.5@document:4:1"},
		{"files of network tools, and no others", "", "", `files:
- {path: /etc/NetworkManager/system-connections/a.nmconnection, text: "[ipv4]\naddress1=192.0.2.5/24,192.0.2.1\ndns=192.0.2.53\n"}
- {path: /etc/network/interfaces.d/a, text: "iface a inet static\n  address 192.0.2.6/24\n  gateway 192.0.2.1\n"}
- {path: /etc/sysconfig/network-scripts/ifcfg-a, text: "IPADDR=\"192.0.2.7\"\n"}
- {path: /etc/hosts, text: "192.0.2.8 web\n"}
`, "192.0.2.5@layer 1:2 192.0.2.6@layer 1:3 192.0.2.7@layer 1:4"},
		{"no YAML at all", "autoinstall", "network: [", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg := layertest.Merged(t, tc.layer)
			if tc.document != "" {
				cfg.Document = &machineconfig.Passthrough{Format: tc.format, Data: []byte(tc.document)}
			}
			var got []string
			for _, a := range StaticIn(cfg) {
				got = append(got, a.Address.String()+"@"+a.Source)
			}
			if strings.Join(got, " ") != tc.want {
				t.Errorf("found %q, want %q", strings.Join(got, " "), tc.want)
			}
		})
	}
}

// FuzzStaticAddresses: what a document says is looked at before anybody has checked it.
func FuzzStaticAddresses(f *testing.F) {
	for _, format := range []string{"kickstart", "preseed", "autoinstall", "cloud-config"} {
		f.Add(format, "network:\n  ethernets: {a: &x {addresses: [192.0.2.5/24]}, b: *x}\n")
	}
	f.Fuzz(func(t *testing.T, format, text string) {
		c := &machineconfig.Config{Document: &machineconfig.Passthrough{Format: format, Data: []byte(text)}}
		for _, a := range StaticIn(c) {
			if !a.Address.IsValid() || a.Address.IsLoopback() || a.Source == "" {
				t.Errorf("found %+v", a)
			}
		}
	})
}
