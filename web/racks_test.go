package web

import (
	"net/netip"
	"strings"
	"testing"

	"slipway.dev/slipway/hardware"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/usage"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/web/records"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/wire"
)

func TestARackIsThereWithItsHosts(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	var r1 records.Rack
	a := r.must(200, &r1, "GET", "/api/v1/racks/r1", "")
	if r1.ID != "r1" || r1.Height != 42 || r1.HostN != 1 || r1.Version != 0 || a.header.Get("ETag") != "" {
		t.Errorf("a rack that only a host names is %+v", r1)
	}
	r.must(404, nil, "DELETE", "/api/v1/racks/r1", "")
	r.must(404, nil, "GET", "/api/v1/racks/r7", "")
	r.must(422, nil, "GET", "/api/v1/racks/a%2Fb", "")

	r.must(200, &r1, "PUT", "/api/v1/racks/r1", `{"height":20,"notes":"by the door"}`)
	if r1.Version != 1 || r1.Height != 20 || r1.Numbering != inventory.FromBottom {
		t.Errorf("described it is %+v", r1)
	}
	r.must(412, nil, "PUT", "/api/v1/racks/r1", `{"height":21}`, "If-Match", `"7"`)
	r.must(422, nil, "PUT", "/api/v1/racks/r1", `{"name":"r2","height":21}`)
	bad := r.must(422, nil, "PUT", "/api/v1/racks/r1", `{"height":101}`)
	if !strings.Contains(bad.body, `"location":"body.height"`) {
		t.Errorf("a wrong height is refused with %s", bad.body)
	}
	var far records.Rack
	r.must(201, &far, "POST", "/api/v1/racks", `{"site":"fra","row":"a/b","name":"r1"}`)
	r.must(200, &far, "GET", "/api/v1/racks/fra%2Fa%252Fb%2Fr1", "")
	if far.ID != "fra/a%2Fb/r1" || far.HostN != 0 {
		t.Errorf("a rack of a site is %+v", far)
	}

	r.must(200, nil, "PATCH", "/api/v1/hosts/r2-u01", `{"place":{"rack":"r1","unit":20,"height":2}}`)
	var all rest.List[records.Rack]
	r.must(200, &all, "GET", "/api/v1/racks", "")
	if len(all.Items) != 2 || all.Items[1].ID != "r1" || all.Items[1].HostN != 2 || len(all.Items[1].Faults) != 1 || all.Items[1].Faults[0].Kind != "outside" {
		t.Errorf("racks are %+v", all.Items)
	}
	svg := r.must(200, nil, "GET", "/api/v1/racks/r1/elevation.svg?face=rear", "")
	if svg.header.Get("Content-Type") != "image/svg+xml" || !strings.Contains(svg.header.Get("Content-Security-Policy"), "default-src 'none'") ||
		!strings.Contains(svg.body, "Rack r1, rear") || !strings.Contains(svg.body, "r2-u01") {
		t.Errorf("the drawing is %v %s", svg.header, svg.body)
	}
	r.must(422, nil, "GET", "/api/v1/racks/r1/elevation.svg?face=top", "")
	r.must(422, nil, "PATCH", "/api/v1/hosts/r2-u01", `{"place":{"face":"side"}}`)
	r.must(204, nil, "DELETE", "/api/v1/racks/r1", "")
	r.must(200, &r1, "GET", "/api/v1/racks/r1", "")
	if r1.Height != 42 || r1.HostN != 2 {
		t.Errorf("forgotten it is %+v", r1)
	}
}

func TestCablesComeFromInspections(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	err := r.store.Write(t.Context(), func(tx inventory.Tx) error {
		for i, name := range []string{"r1-u01", "r1-u01", "r2-u01"} {
			h, err := tx.FindHostByName(name)
			if err != nil {
				return err
			}
			port := inventory.Port{Name: "eno1", MAC: h.NICs[0].MAC, Neighbour: &inventory.Neighbour{Chassis: "c", System: "leaf-1", Port: []string{"7", "8", "8"}[i]}}
			if err := tx.SaveInspection(&inventory.Inspection{HostID: h.ID, At: testStart, Hardware: inventory.Hardware{Ports: []inventory.Port{port}}}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	kinds := func(c hardware.Cabling) (out []string) {
		for _, f := range c.Faults {
			out = append(out, f.Kind)
		}
		return out
	}
	var c hardware.Cabling
	r.must(200, &c, "GET", "/api/v1/cabling", "")
	if len(c.Links) != 2 || strings.Join(kinds(c), " ") != "shared-port changed" {
		t.Errorf("all cables are %+v", c)
	}
	r.must(200, &c, "GET", "/api/v1/cabling?rack=r2", "")
	if len(c.Links) != 1 || c.Links[0].Host != "r2-u01" || strings.Join(kinds(c), " ") != "shared-port" {
		t.Errorf("those of a rack are %+v", c)
	}
	r.must(404, nil, "GET", "/api/v1/cabling?rack=r9", "")
	r.must(200, &c, "GET", "/api/v1/cabling?host=r1-u01", "")
	if len(c.Links) != 1 || c.Links[0].Host != "r1-u01" || strings.Join(kinds(c), " ") != "shared-port changed" {
		t.Errorf("those of a host are %+v", c)
	}
	r.must(404, nil, "GET", "/api/v1/cabling?host=nobody", "")
}

func TestNetworksSayWhatTheyDo(t *testing.T) {
	r := newRig(t, func(c *Config) {
		c.BootPort = 80
		c.Interfaces = func() []wire.Interface {
			return []wire.Interface{
				{Name: "eno1", IsServed: true, Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.2/24")}, BootURL: "http://10.0.0.2"},
				{Name: "eno2", Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.3/24")}},
			}
		}
	})
	r.seed()
	var ifs rest.List[wire.Interface]
	r.must(200, &ifs, "GET", "/api/v1/interfaces", "")
	if len(ifs.Items) != 2 || ifs.Items[0].Subnet != "rack1" {
		t.Errorf("interfaces are %+v", ifs)
	}
	var u usage.SubnetUse
	r.must(200, &u, "GET", "/api/v1/subnets/rack1/usage", "")
	if len(u.Ranges) != 1 || u.Ranges[0].Free != 100 {
		t.Errorf("use is %+v", u)
	}
	r.must(404, nil, "GET", "/api/v1/subnets/none/usage", "")
	var s rest.List[pxe.Snippet]
	r.must(200, &s, "GET", "/api/v1/subnets/rack1/snippets?server=kea", "")
	if len(s.Items) != 1 || !strings.Contains(s.Items[0].Text, "http://10.0.0.2/boot/ask") {
		t.Errorf("snippets are %+v", s)
	}
	r.must(422, nil, "GET", "/api/v1/subnets/rack1/snippets?server=bind", "")
	bad := r.must(422, nil, "POST", "/api/v1/subnets", `{"name":"x","cidr":"10.1.0.0/24","gateway":"10.2.0.1"}`)
	if !strings.Contains(bad.body, `"location":"body.gateway"`) {
		t.Errorf("a wrong gateway is refused with %s", bad.body)
	}
}
