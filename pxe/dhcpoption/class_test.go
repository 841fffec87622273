package dhcpoption

import (
	"fmt"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
)

func TestClassesAreToldByWhatPacketsSay(t *testing.T) {
	phone := Client{MAC: "00:04:f2:aa:00:01", VendorClass: "Polycom-SPIP335"}
	onie := Client{MAC: "52:54:00:aa:00:01", VendorClass: "onie_vendor:x86_64-accton_as7712-r0", UserClasses: []string{"onie_dhcp_user_class"}}
	pxe := Client{MAC: "52:54:00:aa:00:02", VendorClass: "PXEClient:Arch:00007:UNDI:003000", Archs: []int{7}}
	for _, c := range []struct {
		class inventory.Class
		want  string
	}{
		{inventory.Class{VendorClasses: []string{"onie_vendor:*"}}, "onie"},
		{inventory.Class{VendorClasses: []string{"*accton*r0"}}, "onie"},
		{inventory.Class{VendorClasses: []string{"onie_vendor"}}, ""},
		{inventory.Class{VendorClasses: []string{"r0*"}}, ""},
		{inventory.Class{UserClasses: []string{"onie_*"}}, "onie"},
		{inventory.Class{MACPrefixes: []string{"00:04:f2", "00:04:f3"}}, "phone"},
		{inventory.Class{MACPrefixes: []string{"00:04:f2"}, VendorClasses: []string{"onie*"}}, ""},
		{inventory.Class{Archs: []int{6, 7}}, "pxe"},
		{inventory.Class{VendorClasses: []string{"onie*", "Polycom-*"}}, "phone onie"},
	} {
		var got []string
		for _, x := range []struct {
			name   string
			client Client
		}{{"phone", phone}, {"onie", onie}, {"pxe", pxe}} {
			if isIn(x.client, &c.class) {
				got = append(got, x.name)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%+v has %v, want %q", c.class, got, c.want)
		}
	}
	all := ClassesOf([]inventory.Class{{Name: "b", MACPrefixes: []string{"00"}}, {Name: "a", MACPrefixes: []string{"00"}}, {Name: "z", MACPrefixes: []string{"00"}, Priority: 1}}, phone)
	if got := fmt.Sprint(all[0].Name, all[1].Name, all[2].Name); got != "zab" {
		t.Errorf("the order is %s", got)
	}
}
