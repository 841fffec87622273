package inventory

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRackIDsComeBack(t *testing.T) {
	for _, c := range [][4]string{{"", "", "r1", "r1"}, {"fra", "", "r1", "fra//r1"}, {"fra", "a/b", "50%2F", "fra/a%2Fb/50%252F"}, {"", "", "a/b", "a%2Fb"}} {
		if id := RackID(c[0], c[1], c[2]); id != c[3] {
			t.Errorf("%v is %s", c, id)
		}
		site, row, name, err := ParseRackID(c[3])
		if err != nil || [3]string{site, row, name} != [3]string{c[0], c[1], c[2]} {
			t.Errorf("%s is read as %q %q %q, %v", c[3], site, row, name, err)
		}
	}
	for _, bad := range []string{"", "//", "a/b", "a/b/c/d"} {
		if _, _, _, err := ParseRackID(bad); err == nil {
			t.Errorf("%q names a rack", bad)
		}
	}
}

func TestHostsStandWhereTheirPlacesSay(t *testing.T) {
	host := func(name string, unit, height int, face Face) Host {
		return Host{Name: name, Place: Place{Rack: "r1", Unit: unit, Height: height, Face: face}}
	}
	r := Rack{Name: "r1", Height: 10, Numbering: FromBottom}
	for name, c := range map[string]struct {
		hosts  []Host
		face   Face
		want   string // host low-high lane/lanes
		faults []string
	}{
		"alone":                   {hosts: []Host{host("a", 2, 0, "")}, want: "a 2-2 0/1"},
		"nodes of one chassis":    {hosts: []Host{host("b", 1, 2, ""), host("a", 1, 2, ""), host("c", 3, 1, "")}, want: "a 1-2 0/2, b 1-2 1/2, c 3-3 0/1"},
		"in each other":           {hosts: []Host{host("a", 1, 3, ""), host("b", 3, 1, "")}, want: "a 1-3 0/2, b 3-3 1/2", faults: []string{"overlap a b"}},
		"back to back":            {hosts: []Host{host("a", 1, 1, Front), host("b", 1, 1, Rear)}, face: Rear, want: "b 1-1 0/1"},
		"a deep one in a shallow": {hosts: []Host{host("a", 1, 1, Front), host("b", 1, 1, "")}, want: "a 1-1 0/2, b 1-1 1/2", faults: []string{"overlap a b"}},
		"above the rack":          {hosts: []Host{host("a", 10, 2, "")}, want: "a 10-11 0/1", faults: []string{"outside a"}},
		"a lane that is free":     {hosts: []Host{host("a", 1, 4, ""), host("b", 1, 1, ""), host("c", 3, 1, "")}, want: "b 1-1 0/2, a 1-4 1/2, c 3-3 0/2", faults: []string{"overlap b a", "overlap a c"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := r.Elevate(c.hosts, c.face)
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
	if e := r.Elevate([]Host{host("z", 0, 1, ""), host("y", 0, 1, "")}, ""); len(e.Loose) != 2 || e.Loose[0].Name != "y" {
		t.Errorf("loose are %v", e.Loose)
	}
}

func TestRacksThatCannotBeAreRefused(t *testing.T) {
	for field, r := range map[string]Rack{
		"name":      {},
		"height":    {Name: "r", Height: 101},
		"numbering": {Name: "r", Numbering: "left"},
		"cables":    {Name: "r", Height: 4, Cables: []Cable{{Unit: 5, Switch: "s", To: "1"}}},
	} {
		r.FillDefaults()
		err, ok := r.Validate().(*Error)
		if !ok || err.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	many := Rack{Name: "r", Height: 1, Numbering: FromTop, Cables: make([]Cable, 1001)}
	if many.Validate() == nil {
		t.Error("any number of cables goes")
	}
}
