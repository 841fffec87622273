package inventory

import "testing"

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
