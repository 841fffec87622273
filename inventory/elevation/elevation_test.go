package elevation

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/inventory"
)

func TestHostsStandWhereTheirPlacesSay(t *testing.T) {
	host := func(name string, unit, height int, face inventory.Face) inventory.Host {
		return inventory.Host{Name: name, Place: inventory.Place{Rack: "r1", Unit: unit, Height: height, Face: face}}
	}
	r := inventory.Rack{Name: "r1", Height: 10, Numbering: inventory.FromBottom}
	for name, c := range map[string]struct {
		hosts  []inventory.Host
		face   inventory.Face
		want   string // host low-high lane/lanes
		faults []string
	}{
		"alone":                   {hosts: []inventory.Host{host("a", 2, 0, "")}, want: "a 2-2 0/1"},
		"nodes of one chassis":    {hosts: []inventory.Host{host("b", 1, 2, ""), host("a", 1, 2, ""), host("c", 3, 1, "")}, want: "a 1-2 0/2, b 1-2 1/2, c 3-3 0/1"},
		"in each other":           {hosts: []inventory.Host{host("a", 1, 3, ""), host("b", 3, 1, "")}, want: "a 1-3 0/2, b 3-3 1/2", faults: []string{"overlap a b"}},
		"back to back":            {hosts: []inventory.Host{host("a", 1, 1, inventory.Front), host("b", 1, 1, inventory.Rear)}, face: inventory.Rear, want: "b 1-1 0/1"},
		"a deep one in a shallow": {hosts: []inventory.Host{host("a", 1, 1, inventory.Front), host("b", 1, 1, "")}, want: "a 1-1 0/2, b 1-1 1/2", faults: []string{"overlap a b"}},
		"above the rack":          {hosts: []inventory.Host{host("a", 10, 2, "")}, want: "a 10-11 0/1", faults: []string{"outside a"}},
		"a lane that is free":     {hosts: []inventory.Host{host("a", 1, 4, ""), host("b", 1, 1, ""), host("c", 3, 1, "")}, want: "b 1-1 0/2, a 1-4 1/2, c 3-3 0/2", faults: []string{"overlap b a", "overlap a c"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := Of(&r, c.hosts, c.face)
			var got, faults []string
			for _, m := range e.Mounted {
				got = append(got, fmt.Sprintf("%s %d-%d %d/%d", m.Host.Name, m.Low, m.High, m.Lane, m.LaneN))
			}
			for _, f := range e.Faults {
				faults = append(faults, f.Kind+" "+strings.Join(f.Hosts, " "))
			}
			if d := cmp.Diff(c.want, strings.Join(got, ", ")); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if d := cmp.Diff(c.faults, faults); d != "" {
				t.Errorf("faults (-want +got):\n%s", d)
			}
		})
	}
	if e := Of(&r, []inventory.Host{host("z", 0, 1, ""), host("y", 0, 1, "")}, ""); len(e.Loose) != 2 || e.Loose[0].Name != "y" {
		t.Errorf("loose are %v", e.Loose)
	}
}
