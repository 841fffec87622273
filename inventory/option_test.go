package inventory

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
)

func TestOptionsAreCheckedByTheirType(t *testing.T) {
	for _, c := range []struct {
		text string
		is6  bool
		want string // bytes in hex, or what the error says
	}{
		{"tftp-server-name=boot.lab", false, "626f6f742e6c6162"},
		{"66=boot.lab", false, "626f6f742e6c6162"},
		{"150=10.0.0.1,10.0.0.2", false, "0a0000010a000002"},
		{"ip-forwarding=true", false, "01"},
		{"224/uint16=0x102", false, "0102"},
		{"224/int8=-1", false, "ff"},
		{"224/int32=-2", false, "fffffffe"},
		{"224/uint8=7,8", false, "0708"},
		{"domain-search=lab.example,a.b.", false, "036c6162076578616d706c65000161016200"},
		{"224/hex=01:0a ff", false, "010aff"},
		{"80000/text=x", false, "not a number of an option"},
		{"224/empty", false, ""},
		{"ms-classless-static-routes=10.9.0.0/16=10.0.0.254", false, "100a090a0000fe"},
		{"vendor:1=http://x", false, "687474703a2f2f78"},
		{"vendor-42623:1/uint8=3", false, "03"},
		{"vendor-42623:300=x", true, "78"},
		{"nis-servers=fd00::1", true, "fd000000000000000000000000000001"},
		{"bootfile-url=http://[fd00::1]/x", true, "687474703a2f2f5b666430303a3a315d2f78"},
		{"text-of-nobody=1", false, "no option is called so"},
		{"224=1", false, "its type is not known"},
		{"224/number=1", false, "not a type"},
		{"nis-servers=fd00::1", false, "not an IPv4 address"},
		{"nis-servers=10.0.0.1", true, "not an IPv6 address"},
		{"swap-server=10.0.0.1,10.0.0.2", false, "it takes one value"},
		{"224/uint8=256", false, "not a number of type uint8"},
		{"224/bool=maybe", false, "neither true nor false"},
		{"224/hex=0g", false, "not a row of bytes"},
		{"224/domain=a..b", false, "not a domain"},
		{"224/empty=x", false, "its type is empty"},
		{"66=", false, "empty"},
		{"vendor:1=x", true, "DHCPv6 has no option 43"},
		{"sellers:1=x", false, "not a space of options"},
		{"vendor:0=x", false, "between 1 and 254"},
		{"vendor:1=" + strings.Repeat("x", 250), false, "at most 249 fit"},
	} {
		o, err := ParseOption(c.text)
		if err == nil {
			list := []Option{o}
			if err = CheckOptions(OptionsOfClass, "c", "options", list, c.is6); err == nil {
				b, _ := list[0].Encode(c.is6)
				if got := hex.EncodeToString(b); got != c.want {
					t.Errorf("%s is %s, want %s", c.text, got, c.want)
				}
				continue
			}
		}
		if c.want == "" || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.text, err, c.want)
		}
	}
}

func TestOptionsThatTheServerOwnsAreRefusedWithTheReason(t *testing.T) {
	for _, c := range []struct {
		owner OptionOwner
		code  int
		is6   bool
		want  string
	}{
		{OptionsOfSubnet, 53, false, "the protocol itself"},
		{OptionsOfSubnet, 54, false, "own address"},
		{OptionsOfClass, 51, false, "leaseFor"},
		{OptionsOfClass, 61, false, "get their own back"},
		{OptionsOfReservation, 82, false, "get their own back"},
		{OptionsOfClass, 255, false, "not a number"},
		{OptionsOfClass, 0, false, "not a number"},
		{OptionsOfClass, 1, false, "network of the subnet"},
		{OptionsOfClass, 175, false, "iPXE"},
		{OptionsOfSubnet, 6, false, "has a field"},
		{OptionsOfSubnet, 121, false, "has a field"},
		{OptionsOfReservation, 12, false, "has a field"},
		{OptionsOfClass, 12, false, "has a field"},
		{OptionsOfClass, 6, false, ""},
		{OptionsOfReservation, 3, false, ""},
		{OptionsOfClass, 2, true, "own identifier"},
		{OptionsOfClass, 3, true, "the protocol itself"},
		{OptionsOfSubnet, 23, true, "has a field"},
		{OptionsOfClass, 23, true, ""},
	} {
		value := "10.0.0.1"
		if c.is6 {
			value = "fd00::1"
		}
		list := []Option{{Code: c.code, Type: OptionAddress, Value: value}}
		err := CheckOptions(c.owner, "x", "options", list, c.is6)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("option %d of a %s (IPv6 %v): %v, want %q", c.code, c.owner, c.is6, err, c.want)
		}
	}
}

func TestAListOfOptionsIsCheckedAsAWhole(t *testing.T) {
	list := func(texts ...string) (all []Option) {
		for _, s := range texts {
			o, err := ParseOption(s)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, o)
		}
		return all
	}
	for want, l := range map[string][]Option{
		"it is there twice":    list("66=a", "tftp-server-name=b"),
		"it belongs into":      list("43/hex=01", "vendor:1=x"),
		"is option 66, not 67": {{Name: "tftp-server-name", Code: 67, Value: "x"}},
	} {
		if err := CheckOptions(OptionsOfSubnet, "x", "options", l, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", l, err, want)
		}
	}
	if err := CheckOptions(OptionsOfSubnet, "x", "options", make([]Option, 65), false); err == nil {
		t.Error("65 options are taken")
	}
	ok := list("66=a", "always:vendor:1=x", "vendor:66/uint8=1", "vendor-9:66=x")
	if err := CheckOptions(OptionsOfSubnet, "x", "options", ok, false); err != nil {
		t.Error(err)
	}
}

func TestEachNameOfAnOptionIsOfOneNumber(t *testing.T) {
	for _, is6 := range []bool{false, true} {
		names, codes := map[string]bool{}, map[int]bool{}
		for _, k := range optionTable(is6) {
			if names[k.name] || codes[k.code] {
				t.Errorf("%s or %d is there twice", k.name, k.code)
			}
			if ownOption(k.code, is6) != "" {
				t.Errorf("%s has a name and is never taken", k.name)
			}
			names[k.name], codes[k.code] = true, true
		}
	}
}

func FuzzParseOption(f *testing.F) {
	for _, s := range []string{"66=a", `always:vendor-9:1/hex=01:02`, `66=a\sb\\s`, "224/empty", "=", "a:b:c/d=e"} {
		f.Add(s, false)
	}
	f.Fuzz(func(t *testing.T, text string, is6 bool) {
		o, err := ParseOption(text)
		if err != nil {
			return
		}
		list := []Option{o}
		if CheckOptions(OptionsOfClass, "c", "options", list, is6) != nil {
			return
		}
		again, err := ParseOption(list[0].Text())
		if err != nil {
			t.Fatalf("%q is written as %q, which is no option: %v", text, list[0].Text(), err)
		}
		if again.Code == 0 {
			again.Code = list[0].Code
		}
		if again.Name == "" {
			again.Name = list[0].Name
		}
		if again != list[0] {
			t.Fatalf("%q comes back as %+v, was %+v", list[0].Text(), again, list[0])
		}
	})
}

func TestClassesAreToldByWhatPacketsSay(t *testing.T) {
	phone := ClassClient{MAC: "00:04:f2:aa:00:01", VendorClass: "Polycom-SPIP335"}
	onie := ClassClient{MAC: "52:54:00:aa:00:01", VendorClass: "onie_vendor:x86_64-accton_as7712-r0", UserClasses: []string{"onie_dhcp_user_class"}}
	pxe := ClassClient{MAC: "52:54:00:aa:00:02", VendorClass: "PXEClient:Arch:00007:UNDI:003000", Archs: []int{7}}
	for _, c := range []struct {
		class Class
		want  string
	}{
		{Class{VendorClasses: []string{"onie_vendor:*"}}, "onie"},
		{Class{VendorClasses: []string{"*accton*r0"}}, "onie"},
		{Class{VendorClasses: []string{"onie_vendor"}}, ""},
		{Class{VendorClasses: []string{"r0*"}}, ""},
		{Class{UserClasses: []string{"onie_*"}}, "onie"},
		{Class{MACPrefixes: []string{"00:04:f2", "00:04:f3"}}, "phone"},
		{Class{MACPrefixes: []string{"00:04:f2"}, VendorClasses: []string{"onie*"}}, ""},
		{Class{Archs: []int{6, 7}}, "pxe"},
		{Class{VendorClasses: []string{"onie*", "Polycom-*"}}, "phone onie"},
	} {
		var got []string
		for _, x := range []struct {
			name   string
			client ClassClient
		}{{"phone", phone}, {"onie", onie}, {"pxe", pxe}} {
			if c.class.Has(x.client) {
				got = append(got, x.name)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%+v has %v, want %q", c.class, got, c.want)
		}
	}
	all := ClassesOf([]Class{{Name: "b", MACPrefixes: []string{"00"}}, {Name: "a", MACPrefixes: []string{"00"}}, {Name: "z", MACPrefixes: []string{"00"}, Priority: 1}}, phone)
	if got := fmt.Sprint(all[0].Name, all[1].Name, all[2].Name); got != "zab" {
		t.Errorf("the order is %s", got)
	}
}

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
