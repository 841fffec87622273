package render

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/cloudinit"
	"slipway.dev/slipway/ignition"
	"slipway.dev/slipway/installer/autoinstall"
	"slipway.dev/slipway/installer/kickstart"
	"slipway.dev/slipway/installer/preseed"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
)

// documented renders a host whose profile has a document.
func documentedHost(format, os, release string, doc inventory.DocumentFormat, text, layer string) Result {
	r := New(Parts{Provisioners: []machineconfig.Provisioner{ignition.New(), cloudinit.New(), autoinstall.New(), kickstart.New(), preseed.New()}})
	return r.Host(input(func(in *Input) {
		in.Image = &inventory.Image{Name: "i", OS: os, Release: release, Arch: inventory.X8664, Configs: []inventory.ImageConfig{{Format: format}}}
		in.Profiles = []inventory.Profile{{Name: "web", Document: &inventory.Document{Format: doc, Text: text}}}
		in.Layers = []inventory.Layer{{Scope: inventory.ScopeGlobal, Config: layer}}
	}))
}

// TestExplainHasTheValuesOfTheDocument looks at every format: where each value stands, and which does not count.
func TestExplainHasTheValuesOfTheDocument(t *testing.T) {
	const loses = "; does not count: "
	for _, c := range []struct {
		name, format, os, release string
		doc                       inventory.DocumentFormat
		text, layer               string
		want                      map[string]string
	}{
		{
			"cloud-config", "cloud-init", "debian", "12", inventory.DocCloudConfig,
			"#cloud-config\nhostname: doc\ntimezone: Europe/Berlin\nusers:\n  - name: ops\n    shell: /bin/sh\nruncmd: [ls]\n", "host: {timezone: UTC}",
			map[string]string{
				"/document/hostname": "profile web, document:2:11" + loses, "/document/timezone": "profile web, document:3:11" + loses,
				"/document/users/ops/name": "profile web, document:5:11", "/document/users/ops/shell": "profile web, document:6:12", "/document/runcmd/0": "profile web, document:7:10",
			},
		},
		{
			"autoinstall", "autoinstall", "ubuntu", "24.04", inventory.DocAutoinstall,
			"autoinstall:\n  version: 1\n  identity: {hostname: doc, username: u, password: x}\n", "",
			map[string]string{
				"/document/autoinstall/version": "profile web, document:2:12", "/document/autoinstall/identity/hostname": "profile web, document:3:24" + loses,
				"/document/autoinstall/identity/username": "profile web, document:3:39", "/document/autoinstall/identity/password": "profile web, document:3:52",
			},
		},
		{
			"kickstart", "kickstart", "rocky", "9", inventory.DocKickstart,
			"lang en_US.UTF-8\nnetwork --bootproto=dhcp\nnetwork --hostname=doc\n%post\nlang x\n%end\n", "",
			map[string]string{
				"/document/lang": "profile web, document:1:1", "/document/network": "profile web, document:2:1",
				"/document/network/2": "profile web, document:3:1" + loses, "/document/%post": "profile web, document:4:1",
			},
		},
		{
			"preseed", "preseed", "debian", "12", inventory.DocPreseed,
			"d-i netcfg/get_hostname string doc\nd-i preseed/late_command string a \\\n  b\n", "",
			map[string]string{"/document/netcfg~1get_hostname": "profile web, document:1:1" + loses, "/document/preseed~1late_command": "profile web, document:2:1"},
		},
		{
			"Ignition", "ignition", "flatcar", "stable", inventory.DocIgnition,
			"{\"ignition\": {\"version\": \"3.3.0\"},\n \"storage\": {\"files\": [{\"path\": \"/etc/motd\"}]}}", "files: [{path: /etc/motd, text: ours}]",
			map[string]string{"/document/ignition/version": "profile web, document:1:26", "/document/storage/files/~1etc~1motd/path": "profile web, document:2:33" + loses},
		},
		{
			"Butane", "ignition", "flatcar", "stable", inventory.DocButane,
			"variant: flatcar\nversion: 1.0.0\n", "",
			map[string]string{"/document/variant": "profile web, document:1:10", "/document/version": "profile web, document:2:10"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			res := documentedHost(c.format, c.os, c.release, c.doc, c.text, c.layer)
			if err := res.Findings.Err(); err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for path, row := range res.Config.Provenance {
				if strings.HasPrefix(path, "/document") {
					if at, _, lost := strings.Cut(row, loses); lost {
						row = at + loses
					}
					got[path] = row
				}
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("%s\nall: %v", d, slices.Sorted(maps.Keys(got)))
			}
		})
	}
}

func TestALetterThatWasLostOnTheWayIsWarnedOf(t *testing.T) {
	res := documentedHost("cloud-init", "debian", "12", inventory.DocCloudConfig, "#cloud-config\npackages: [\"caf\ufffd\"]\n", "")
	for _, f := range res.Findings {
		if f.Code == "encoding" && f.Source == "document:2:16" && f.Severity == machineconfig.SeverityWarning {
			return
		}
	}
	t.Errorf("found %v", res.Findings)
}

func FuzzDocumentRows(f *testing.F) {
	f.Add("a: &x [*x]\nb: {c: d}\n", "cloud-config")
	f.Add("part /\n%post\n", "kickstart")
	f.Add("d-i a/b string \\\n c\n", "preseed")
	f.Fuzz(func(t *testing.T, text, format string) {
		if rows := documentRows("p", inventory.DocumentFormat(format), text); len(rows) > maxRows {
			t.Error("too many rows")
		}
	})
}
