package hardware

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/inventory"
)

// at is a port that hears a switch port; "" hears nothing.
func at(name, sw, port string) inventory.Port {
	p := inventory.Port{Name: name, MAC: inventory.MAC("52:54:00:00:00:" + name[len(name)-2:])}
	if sw != "" {
		p.Neighbour = &inventory.Neighbour{Chassis: "id-" + sw, System: sw, Port: port, PortDescription: "to " + port}
	}
	return p
}

func wiredIn(name, rack string, unit int, ports ...inventory.Port) Wired {
	return Wired{Host: &inventory.Host{Name: name, Place: inventory.Place{Rack: rack, Unit: unit}}, At: time.Unix(0, 0), Now: ports}
}

func TestCablesThatCannotBeSoAreFaults(t *testing.T) {
	before := func(w Wired, ports ...inventory.Port) Wired {
		w.Before = ports
		return w
	}
	full := []Wired{
		wiredIn("a", "r1", 1, at("e01", "leaf-1", "1")), wiredIn("b", "r1", 2, at("e02", "leaf-1", "2")), wiredIn("c", "r1", 3, at("e03", "leaf-1", "3")),
	}
	plan := func(c ...inventory.Cable) []inventory.Rack {
		return []inventory.Rack{{Name: "r1", Height: 42, Cables: c}}
	}
	for name, c := range map[string]struct {
		hosts []Wired
		racks []inventory.Rack
		want  []string // kind and hosts
	}{
		"all is well":               {hosts: full},
		"a host in the wrong rack":  {hosts: append(full[:3:3], wiredIn("x", "r2", 1, at("e09", "leaf-1", "9"))), want: []string{"other-rack x"}},
		"a switch of two racks":     {hosts: append(full[:3:3], wiredIn("x", "r2", 1, at("e09", "leaf-1", "9")), wiredIn("y", "r2", 2, at("e10", "leaf-1", "10")))},
		"too few to know":           {hosts: append(full[:2:2], wiredIn("x", "r2", 1, at("e09", "leaf-1", "9")))},
		"a host in no rack":         {hosts: append(full[:3:3], wiredIn("x", "", 0, at("e09", "leaf-1", "9")))},
		"two hosts on one port":     {hosts: append(full[:3:3], wiredIn("d", "r1", 4, at("e04", "leaf-1", "2"))), want: []string{"shared-port d b"}},
		"one host's two ports":      {hosts: []Wired{wiredIn("a", "r1", 1, at("e01", "leaf-1", "1"), at("e02", "leaf-1", "1"))}},
		"a cable that was moved":    {hosts: []Wired{before(full[0], at("e01", "leaf-1", "7"))}, want: []string{"changed a"}},
		"a cable as before":         {hosts: []Wired{before(full[0], at("e01", "leaf-1", "1"))}},
		"nothing heard before":      {hosts: []Wired{before(full[0], at("e01", "", ""))}},
		"as planned":                {hosts: full, racks: plan(inventory.Cable{Unit: 1, Port: "e01", Switch: "LEAF-1", To: "1"}, inventory.Cable{Unit: 2, Switch: "id-leaf-1", To: "to 2"})},
		"not as planned":            {hosts: full, racks: plan(inventory.Cable{Unit: 1, Port: "e01", Switch: "leaf-1", To: "2"}), want: []string{"not-as-planned a"}},
		"planned, and not heard":    {hosts: full, racks: plan(inventory.Cable{Unit: 1, Port: "e08", Switch: "leaf-1", To: "8"}), want: []string{"not-seen a"}},
		"planned where nobody is":   {hosts: full, racks: plan(inventory.Cable{Unit: 40, Switch: "leaf-1", To: "8"})},
		"planned in another's rack": {hosts: []Wired{wiredIn("a", "r2", 1)}, racks: plan(inventory.Cable{Unit: 1, Switch: "leaf-1", To: "8"})},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, f := range Cables(c.hosts, c.racks).Faults {
				got = append(got, f.Kind+" "+strings.Join(f.Hosts, " "))
				if f.Detail == "" || f.Hint == "" {
					t.Errorf("%+v says too little", f)
				}
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestLinksAreInOrderOfTheRack(t *testing.T) {
	w := wiredIn("a", "r1", 1, at("e01", "", ""), at("e02", "leaf-1", "Eth2"))
	w.Now[1].Neighbour.System, w.Now[1].SpeedMbps = "", 25000
	got := Cables([]Wired{w, wiredIn("b", "r1", 9, at("e03", "leaf-1", "Eth9"))}, nil).Links
	if len(got) != 2 || got[0].Host != "b" || got[1].Switch != "id-leaf-1" || got[1].To != "Eth2" || got[1].SpeedMbps != 25000 || got[1].Rack != "r1" {
		t.Errorf("links are %+v", got)
	}
}
