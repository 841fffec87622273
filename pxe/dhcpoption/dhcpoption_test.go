package dhcpoption

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/option"
)

func list(t *testing.T, is6 bool, texts ...string) (all []option.Option) {
	t.Helper()
	for _, s := range texts {
		o, err := inventory.ParseOption(s)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, o)
	}
	if err := inventory.CheckOptions(option.OfClass, "c", "options", all, is6); err != nil {
		t.Fatal(err)
	}
	return all
}

// show writes options as number, bytes in hex, and ! when they are always sent.
func show(all []Sent) string {
	var out []string
	for _, s := range all {
		text := fmt.Sprintf("%d=%s", s.Code, hex.EncodeToString(s.Value))
		if s.IsAlways {
			text += "!"
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

func TestAReservationGoesBeforeAClassBeforeASubnet(t *testing.T) {
	subnet := &inventory.Subnet{Name: "rack", CIDR: netip.MustParsePrefix("10.0.0.0/24"), Options: list(t, false, "66=s", "70=10.0.0.1", "vendor:1=s", "vendor:2=s", "252=s")}
	first := inventory.Class{Name: "first", Options: list(t, false, "66=a", "69=10.0.0.2", "vendor:1=a")}
	second := inventory.Class{Name: "second", Options: list(t, false, "66=b", "69=10.0.0.3", "vendor:3=b")}
	mine := &inventory.Reservation{Address: netip.MustParseAddr("10.0.0.7"), Options: list(t, false, "always:66=r")}
	whole := &inventory.Reservation{Address: netip.MustParseAddr("10.0.0.7"), Options: list(t, false, "43/hex=0909")}
	for _, c := range []struct {
		name string
		of   Of
		want string
	}{
		{"subnet", Of{Subnet: subnet}, "43=010173020173 66=73 70=0a000001 252=73"},
		{"class", Of{Subnet: subnet, Classes: []inventory.Class{first, second}}, "43=010161020173030162 66=61 69=0a000002 70=0a000001 252=73"},
		{"reservation", Of{Subnet: subnet, Classes: []inventory.Class{second}, Reservation: mine}, "43=010173020173030162 66=72! 69=0a000003 70=0a000001 252=73"},
		{"an option 43 as a whole replaces its parts", Of{Subnet: subnet, Classes: []inventory.Class{second}, Reservation: whole}, "43=0909 66=62 69=0a000003 70=0a000001 252=73"},
	} {
		if got := show(Encode(Choose(c.of), false, false)); got != c.want {
			t.Errorf("%s: got  %s\nwant %s", c.name, got, c.want)
		}
	}
	for _, c := range Choose(Of{Subnet: subnet, Classes: []inventory.Class{first}, Reservation: mine}) {
		if want := map[string]string{"66": "reservation 10.0.0.7", "69": "class first", "70": "subnet rack"}[fmt.Sprint(c.Code)]; want != "" && c.From != want && c.Space == "" {
			t.Errorf("option %d is said to be of %s, want %s", c.Code, c.From, want)
		}
	}
}

func TestWhatIsBootedIsNeverTakenFromAList(t *testing.T) {
	all := list(t, false, "66=x", "67=x", "150=10.0.0.1", "60=x", "210=/x", "vendor:1=x", "69=10.0.0.1", "vendor-9:1=x")
	subnet := &inventory.Subnet{Name: "rack", CIDR: netip.MustParsePrefix("10.0.0.0/24"), Options: all}
	if got, want := show(Encode(Choose(Of{Subnet: subnet}), true, false)), "69=0a000001 125=0000000903010178"; got != want {
		t.Errorf("a machine that boots gets %s, want %s", got, want)
	}
	six := &inventory.Subnet{Name: "six", CIDR: netip.MustParsePrefix("fd00::/64"), Options: list(t, true, "59=http://x", "27=fd00::1")}
	if got, want := show(Encode(Choose(Of{Subnet: six}), true, true)), "27=fd000000000000000000000000000001"; got != want {
		t.Errorf("a machine that boots over IPv6 gets %s, want %s", got, want)
	}
}

func TestOptionsOfVendorsTravelInsideOfOthers(t *testing.T) {
	long := strings.Repeat("x", 200)
	four := &inventory.Subnet{Name: "rack", CIDR: netip.MustParsePrefix("10.0.0.0/24"), Options: list(t, false, "vendor-9:1=a", "vendor-9:2="+long, "vendor-9:3="+long, "vendor-42623:1=b")}
	x := hex.EncodeToString([]byte(long))
	want := "125=0000a67f" + "03" + "010162" + "00000009" + "cd" + "010161" + "02c8" + x + "00000009" + "ca" + "03c8" + x
	if got := show(Encode(Choose(Of{Subnet: four}), false, false)); got != want {
		got, want = strings.ReplaceAll(got, x, "X"), strings.ReplaceAll(want, x, "X")
		t.Errorf("got  %s\nwant %s", got, want)
	}
	six := &inventory.Subnet{Name: "six", CIDR: netip.MustParsePrefix("fd00::/64"), Options: list(t, true, "vendor-9:1=a", "always:vendor-9:2=b", "vendor-10:1=c")}
	if got, want := show(Encode(Choose(Of{Subnet: six}), false, true)), "17=0000000a0001000163 17=0000000900010001610002000162!"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
