package layer_test

import (
	"fmt"
	"testing"

	"slipway.dev/slipway/machineconfig/layer/layertest"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/layer"
	"slipway.dev/slipway/machineconfig/template"
	"slipway.dev/slipway/machineconfig/validation"
)

var profileLayer = `
units:
  - name: app.service
    enabled: true
    contents: |
      [Service]
      ExecStart=/bin/app {{ .Host.Name }}
      [Install]
      WantedBy=multi-user.target
commands: [{name: a, shell: "echo {{ .Host.Place.Rack }}"}, {argv: [touch, /a]}]
storage:
  disks: [{name: data, device: {path: /dev/vdb}, partitions: [{label: data-1}]}]
  filesystems: [{device: data-1, format: xfs, mountPoint: /srv}]
directories: [{path: /srv/www, mode: 0755}]
`

// BenchmarkThousandHosts merges, fills, expands and validates 1,000 hosts of four layers each.
func BenchmarkThousandHosts(b *testing.B) {
	layers := layertest.Parsed(b, wideLayer, rackLayer, profileLayer)
	hosts := make([]*inventory.Host, 1000)
	own := make([]*layer.Layer, len(hosts))
	for i := range hosts {
		hosts[i] = &inventory.Host{Name: fmt.Sprintf("node-%d", i), NICs: []inventory.NIC{{MAC: "52:54:00:12:34:56"}}}
		own[i] = layertest.Parsed(b, fmt.Sprintf("network: {interfaces: [{name: lan0, mac: boot, addresses: [10.0.%d.%d/16], routes: [{to: 0.0.0.0/0, via: 10.0.0.1}]}]}", i/250, i%250+2))[0]
	}
	b.ReportAllocs()
	for b.Loop() {
		for i, h := range hosts {
			c, r := layer.Merge(layers[0], layers[1], layers[2], own[i])
			machineconfig.Fill(c, h, "")
			_, expanded := template.Expand(c, template.NewVars(h, nil, "12"))
			r = append(r, expanded...)
			if r = append(r, validation.Validate(c)...); len(r) > 0 {
				b.Fatal(r)
			}
		}
	}
}
