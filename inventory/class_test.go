package inventory

import "testing"

func TestAClassNeedsAMark(t *testing.T) {
	for _, c := range []Class{
		{Name: "x"},
		{Name: "x", VendorClasses: []string{"**"}},
		{Name: "x", Archs: []int{70000}},
		{Name: "x", MACPrefixes: []string{"0"}},
		{Name: "X Y", Archs: []int{7}},
		{Name: "x", Archs: []int{7}, Priority: 2000},
	} {
		if err := c.Validate(); err == nil {
			t.Errorf("%+v is taken", c)
		}
	}
	good := Class{Name: "x", MACPrefixes: []string{"00-04-F2"}}
	if err := good.Validate(); err != nil || good.MACPrefixes[0] != "00:04:f2" {
		t.Error(err, good.MACPrefixes)
	}
}
