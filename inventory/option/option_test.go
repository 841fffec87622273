package option

import (
	"encoding/hex"
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
		o, err := Parse(c.text)
		if err == nil {
			list := []Option{o}
			if err = Check(OfClass, list, c.is6); err == nil {
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
		owner Owner
		code  int
		is6   bool
		want  string
	}{
		{OfSubnet, 53, false, "the protocol itself"},
		{OfSubnet, 54, false, "own address"},
		{OfClass, 51, false, "leaseFor"},
		{OfClass, 61, false, "get their own back"},
		{OfReservation, 82, false, "get their own back"},
		{OfClass, 255, false, "not a number"},
		{OfClass, 0, false, "not a number"},
		{OfClass, 1, false, "network of the subnet"},
		{OfClass, 175, false, "iPXE"},
		{OfSubnet, 6, false, "has a field"},
		{OfSubnet, 121, false, "has a field"},
		{OfReservation, 12, false, "has a field"},
		{OfClass, 12, false, "has a field"},
		{OfClass, 6, false, ""},
		{OfReservation, 3, false, ""},
		{OfClass, 2, true, "own identifier"},
		{OfClass, 3, true, "the protocol itself"},
		{OfSubnet, 23, true, "has a field"},
		{OfClass, 23, true, ""},
	} {
		value := "10.0.0.1"
		if c.is6 {
			value = "fd00::1"
		}
		list := []Option{{Code: c.code, Type: Address, Value: value}}
		err := Check(c.owner, list, c.is6)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("option %d of a %s (IPv6 %v): %v, want %q", c.code, c.owner, c.is6, err, c.want)
		}
	}
}

func TestAListOfOptionsIsCheckedAsAWhole(t *testing.T) {
	list := func(texts ...string) (all []Option) {
		for _, s := range texts {
			o, err := Parse(s)
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
		if err := Check(OfSubnet, l, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", l, err, want)
		}
	}
	if err := Check(OfSubnet, make([]Option, 65), false); err == nil {
		t.Error("65 options are taken")
	}
	ok := list("66=a", "always:vendor:1=x", "vendor:66/uint8=1", "vendor-9:66=x")
	if err := Check(OfSubnet, ok, false); err != nil {
		t.Error(err)
	}
}

func TestEachNameOfAnOptionIsOfOneNumber(t *testing.T) {
	for _, is6 := range []bool{false, true} {
		names, codes := map[string]bool{}, map[int]bool{}
		for _, k := range table(is6) {
			if names[k.name] || codes[k.code] {
				t.Errorf("%s or %d is there twice", k.name, k.code)
			}
			if ownReason(k.code, is6) != "" {
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
		o, err := Parse(text)
		if err != nil {
			return
		}
		list := []Option{o}
		if Check(OfClass, list, is6) != nil {
			return
		}
		again, err := Parse(list[0].Text())
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
