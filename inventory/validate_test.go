package inventory

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// invalid is a change that spoils a valid thing, and what the error says.
type invalid[T any] struct {
	about string
	spoil func(*T)
	words string
}

func testValidate[T any](t *testing.T, valid func() *T, validate func(*T) error, cases []invalid[T]) {
	t.Helper()
	if err := validate(valid()); err != nil {
		t.Fatalf("the valid one is refused: %v", err)
	}
	for _, c := range cases {
		t.Run(c.about, func(t *testing.T) {
			v := valid()
			c.spoil(v)
			wantKind(t, validate(v), Invalid, c.words)
		})
	}
}

func validHost() *Host {
	return &Host{
		Name: "r1-u01", State: Available, NICs: []NIC{{MAC: "52:54:00:00:00:02"}, {MAC: "52:54:00:00:00:01"}},
		Labels: map[string]string{"role": "worker"}, Place: Place{Rack: "r1", Unit: 1}, DiskBoot: DiskExit,
		UUID: "4c4c4544", Serial: "SN1", AssetTag: "A1", Manufacturer: "Dell Inc.", Product: "R650", Arch: X8664, Firmware: UEFI,
		Facts: map[string]string{"bios": "1.2"},
	}
}

func TestHostValidate(t *testing.T) {
	testValidate(t, validHost, (*Host).Validate, []invalid[Host]{
		{"no name", func(h *Host) { h.Name = "" }, "not a name for a host"},
		{"a state that is none", func(h *Host) { h.State = "sleeping" }, `"sleeping" is not a state`},
		{"no NIC", func(h *Host) { h.NICs = nil }, "r1-u01 has no NIC"},
		{"too many NICs", func(h *Host) {
			for i := range 64 {
				h.NICs = append(h.NICs, NIC{MAC: MAC(fmt.Sprintf("52:54:00:00:01:%02x", i))})
			}
		}, "66 NICs"},
		{"a MAC that is none", func(h *Host) { h.NICs[0].MAC = "x" }, "not a MAC"},
		{"a MAC in another spelling", func(h *Host) { h.NICs[0].MAC = "52-54-00-00-00-02" }, "write MAC"},
		{"a MAC twice", func(h *Host) { h.NICs[0].MAC = h.NICs[1].MAC }, "twice"},
		{"a control character", func(h *Host) { h.Serial = "a\x00" }, "serial"},
		{"a long text", func(h *Host) { h.Place.Rack = strings.Repeat("r", 257) }, "rack"},
		{"a unit below the floor", func(h *Host) { h.Place.Unit = -1 }, "rack unit -1"},
		{"a unit above the roof", func(h *Host) { h.Place.Unit = 101 }, "rack unit 101"},
		{"a way to disk that is none", func(h *Host) { h.DiskBoot = "jump" }, "jump"},
		{"a label that is none", func(h *Host) { h.Labels["a b"] = "" }, "a b"},
		{"a taint that is none", func(h *Host) { h.Taints = []Taint{{Key: "a b"}} }, "a b"},
		{"too many taints", func(h *Host) { h.Taints = make([]Taint, 17) }, "16 taints"},
		{"too many disks to keep", func(h *Host) { h.KeepDisks = make([]DiskHint, 33) }, "32 disks"},
	})
}

func TestHostAttributes(t *testing.T) {
	h := validHost()
	h.Place.Site, h.Place.Row = "fra", "a"
	for key, want := range map[string]string{
		"name": "r1-u01", "mac": "52:54:00:00:00:01 52:54:00:00:00:02", "uuid": "4c4c4544", "serial": "SN1", "assetTag": "A1",
		"manufacturer": "Dell Inc.", "product": "R650", "arch": "x86_64", "firmware": "uefi", "state": "available",
		"site": "fra", "row": "a", "rack": "r1", "role": "worker", "label:role": "worker", "fact:bios": "1.2",
		"bios": "", "fact:role": "", "nothing": "",
	} {
		if got := strings.Join(h.Attribute(key), " "); got != want {
			t.Errorf("attribute %s is %q, want %q", key, got, want)
		}
	}
}

func validSubnet() *Subnet {
	at := netip.MustParseAddr
	return &Subnet{
		Name: "rack1", CIDR: netip.MustParsePrefix("10.0.0.0/24"), Mode: ModeFull, Unknown: UnknownDisk,
		Gateway: at("10.0.0.1"), DNS: []netip.Addr{at("192.0.2.1")}, NTP: []netip.Addr{at("192.0.2.2")}, MTU: 1500,
		Routes:   []Route{{To: netip.MustParsePrefix("0.0.0.0/0"), Via: at("10.0.0.1")}},
		LeaseFor: Duration(24 * time.Hour), BootLeaseFor: Duration(10 * time.Minute),
		Ranges: []Range{{at("10.0.0.100"), at("10.0.0.254")}, {at("10.0.0.10"), at("10.0.0.99")}},
	}
}

func TestSubnetValidate(t *testing.T) {
	at := netip.MustParseAddr
	prefix := func(s string) func(*Subnet) { return func(n *Subnet) { n.CIDR = netip.MustParsePrefix(s) } }
	testValidate(t, validSubnet, (*Subnet).Validate, []invalid[Subnet]{
		{"no name", func(n *Subnet) { n.Name = "" }, "not a name for a subnet"},
		{"no network", func(n *Subnet) { n.CIDR = netip.Prefix{} }, "not an IPv4 network"},
		{"IPv6 that is no network for machines", prefix("fe80::/64"), "not an IPv6 network"},
		{"too small", prefix("10.0.0.0/31"), "between /8 and /30"},
		{"too large", prefix("10.0.0.0/7"), "between /8 and /30"},
		{"host bits", prefix("10.0.0.5/24"), "host bits"},
		{"a mode that is none", func(n *Subnet) { n.Mode = "mirror" }, "mirror"},
		{"a policy that is none", func(n *Subnet) { n.Unknown = "" }, "unknown machines"},
		{"gateway elsewhere", func(n *Subnet) { n.Gateway = at("10.0.1.1") }, "gateway 10.0.1.1"},
		{"gateway on the network's address", func(n *Subnet) { n.Gateway = at("10.0.0.0") }, "gateway"},
		{"gateway on the broadcast address", func(n *Subnet) { n.Gateway = at("10.0.0.255") }, "gateway"},
		{"IPv6 DNS", func(n *Subnet) { n.DNS[0] = at("::1") }, "::1"},
		{"too many NTP servers", func(n *Subnet) { n.NTP = make([]netip.Addr, 9) }, "9 servers"},
		{"IPv6 route", func(n *Subnet) { n.Routes[0].Via = at("::1") }, "route"},
		{"small MTU", func(n *Subnet) { n.MTU = 100 }, "MTU 100"},
		{"control character in the domain", func(n *Subnet) { n.Domain = "a\x00" }, "domain"},
		{"short lease", func(n *Subnet) { n.BootLeaseFor = Duration(time.Second) }, "lease of 1s"},
		{"endless lease", func(n *Subnet) { n.LeaseFor = Duration(400 * 24 * time.Hour) }, "9600h"},
		{"range backwards", func(n *Subnet) { n.Ranges[0] = Range{at("10.0.0.9"), at("10.0.0.2")} }, "not a range"},
		{"range elsewhere", func(n *Subnet) { n.Ranges[0].Last = at("10.0.1.2") }, "not a range"},
		{"range over the broadcast address", func(n *Subnet) { n.Ranges[0].Last = at("10.0.0.255") }, "not a range"},
		{"ranges that share an address", func(n *Subnet) { n.Ranges[0].First = at("10.0.0.99") }, "overlap"},
	})
	n := validSubnet()
	if err := n.Validate(); err != nil || n.Ranges[0].First != at("10.0.0.10") {
		t.Errorf("Validate leaves the ranges as %v, %v", n.Ranges, err)
	}
	if r := n.Ranges[0]; !r.Contains(at("10.0.0.10")) || !r.Contains(at("10.0.0.99")) || r.Contains(at("10.0.0.100")) || r.Contains(at("10.0.0.9")) {
		t.Error("a range does not contain just its addresses")
	}
}

func TestReservationValidate(t *testing.T) {
	valid := func() *Reservation {
		return &Reservation{Address: netip.MustParseAddr("10.0.0.5"), Subnet: "rack1", MAC: "52:54:00:00:00:01", Hostname: "a"}
	}
	testValidate(t, valid, func(r *Reservation) error { return r.Validate(validSubnet()) }, []invalid[Reservation]{
		{"elsewhere", func(r *Reservation) { r.Address = netip.MustParseAddr("10.0.1.5") }, "not a host address"},
		{"broadcast", func(r *Reservation) { r.Address = netip.MustParseAddr("10.0.0.255") }, "not a host address"},
		{"for nobody", func(r *Reservation) { r.MAC = "" }, "names 0 machines"},
		{"for two", func(r *Reservation) { r.UUID = "x" }, "names 2 machines"},
		{"a MAC in another spelling", func(r *Reservation) { r.MAC = "525400000001" }, "not a MAC"},
		{"a host name that is none", func(r *Reservation) { r.Hostname = "a_b" }, "a_b"},
		{"a long client id", func(r *Reservation) { r.MAC, r.ClientID = "", strings.Repeat("a", 513) }, "clientID"},
	})
}

func validImage() *Image {
	d := Digest("sha256:" + strings.Repeat("0", 64))
	return &Image{Name: "debian-12", Arch: X8664, KernelArgs: []string{"quiet"}, Files: []ImageArtefact{
		{RoleKernel, "linux", d}, {RoleInitrd, "initrd.gz", d}, {RoleInitrd, "drivers.gz", d},
	}}
}

func TestImageValidate(t *testing.T) {
	testValidate(t, validImage, (*Image).Validate, []invalid[Image]{
		{"no name", func(i *Image) { i.Name = "" }, "not a name for an image"},
		{"a path as file name", func(i *Image) { i.Files[0].Name = "../linux" }, "../linux"},
		{"a space in a file name", func(i *Image) { i.Files[0].Name = "a b" }, "a b"},
		{"a file name twice", func(i *Image) { i.Files[1].Name = "linux" }, "linux twice"},
		{"no digest", func(i *Image) { i.Files[0].Digest = "x" }, "linux has no sha256"},
		{"a role that is none", func(i *Image) { i.Files[1].Role = "dtb" }, "dtb"},
		{"no kernel", func(i *Image) { i.Files = i.Files[1:] }, "0 kernels"},
		{"two kernels", func(i *Image) { i.Files[1].Role = RoleKernel }, "2 kernels"},
		{"an architecture that is none", func(i *Image) { i.Arch = "riscv" }, "riscv"},
		{"a line end in an argument", func(i *Image) { i.KernelArgs[0] = "a\nshell" }, "control character"},
		{"more arguments than a kernel reads", func(i *Image) { i.KernelArgs = []string{strings.Repeat("a", 1800)} }, "1801 bytes"},
	})
}

func TestProfileValidate(t *testing.T) {
	valid := func() *Profile {
		return &Profile{Name: "debian", Image: "debian-12", Selector: "rack=r1", Parameters: map[string]string{"url": "http://x"}}
	}
	testValidate(t, valid, (*Profile).Validate, []invalid[Profile]{
		{"no name", func(p *Profile) { p.Name = "" }, "not a name for a profile"},
		{"no image", func(p *Profile) { p.Image = "" }, "names no image"},
		{"a selector that is none", func(p *Profile) { p.Selector = "=" }, "not a term"},
		{"a parameter that is none", func(p *Profile) { p.Parameters["A-b"] = "" }, "A-b"},
		{"a line end in a parameter", func(p *Profile) { p.Parameters["url"] = "a\nb" }, "control character"},
		{"a control character in an argument", func(p *Profile) { p.KernelArgs = []string{"\x7f"} }, "control character"},
	})
}

func TestAcceptRuleValidate(t *testing.T) {
	valid := func() *AcceptRule { return &AcceptRule{Name: "dell", Selector: "manufacturer=~Dell.*"} }
	testValidate(t, valid, (*AcceptRule).Validate, []invalid[AcceptRule]{
		{"no name", func(r *AcceptRule) { r.Name = "" }, "not a name"},
		{"no selector", func(r *AcceptRule) { r.Selector = " " }, "no selector"},
		{"a selector that is none", func(r *AcceptRule) { r.Selector = "a=~(" }, "regular expression"},
	})
}

func TestSelectors(t *testing.T) {
	h := validHost()
	for text, want := range map[string]bool{
		"":                         false,
		"rack=r1":                  true,
		"rack = r1 , role=worker":  true,
		"rack=r1,role=control":     false,
		"rack!=r2":                 true,
		"rack!=r1":                 false,
		"site!=fra":                true, // a host without the attribute
		"site":                     false,
		"role":                     true,
		"label:role":               true,
		"fact:bios=1.2":            true,
		"fact:role":                false,
		"product=~R6.*":            true,
		"product=~6":               false, // the whole value
		"product=~R650|X":          true,
		"serial=SN":                false,
		"mac=52:54:00:00:00:02":    true, // any of several
		"mac!=52:54:00:00:00:02":   false,
		"manufacturer=Dell Inc.":   true,
		"manufacturer=~dell.*":     false,
		"manufacturer=~(?i)dell.*": true,
		"role=":                    false,
	} {
		s, err := ParseSelector(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got := s.Matches(h); got != want {
			t.Errorf("%q matches: %v, want %v", text, got, want)
		}
	}
	for _, text := range []string{"=", "a b", "a==b", "a=~(", "a=~b)|(c", "rack=r1,", ",", "-a=b", "9=b", "a~b", strings.Repeat("a", 1025)} {
		if s, err := ParseSelector(text); err == nil {
			t.Errorf("%q is read as %v", text, s)
		}
	}
}

func FuzzParseSelector(f *testing.F) {
	for _, s := range []string{"rack=r1,product=~R6.*", "label:a/b!=c, fact:x", "mac", "a=~(", ",,"} {
		f.Add(s)
	}
	h := validHost()
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSelector(text)
		if err != nil {
			return
		}
		if s.Matches(h) && len(s) == 0 {
			t.Error("a selector without terms matches")
		}
	})
}

func TestAWrongNameIsSaidAtItsField(t *testing.T) {
	const wrong = "Not A Name"
	for _, c := range []struct {
		noun, field string
		err         error
	}{
		{"host", "name", (&Host{Name: wrong}).Validate()},
		{"user", "name", (&User{Name: wrong}).Validate()},
		{"image", "name", (&Image{Name: wrong}).Validate()},
		{"profile", "name", (&Profile{Name: wrong}).Validate()},
		{"subnet", "name", (&Subnet{Name: wrong}).Validate()},
		{"accept rule", "name", (&AcceptRule{Name: wrong}).Validate()},
		{"golden", "name", (&Golden{Name: wrong}).Validate()},
		{"secret", "name", (&Secret{Name: wrong}).Validate()},
		{"join target", "name", (&JoinTarget{Name: wrong}).Validate()},
		{"machine", "name", (&Machine{Name: wrong}).Validate()},
		{"pool", "name", (&Pool{Name: wrong}).Validate()},
		{"cluster", "name", (&Cluster{Name: wrong}).Validate()},
		{"pool of a grant", "grants", Grants{{Role: Viewer, Pool: wrong}}.Validate()},
	} {
		var e *Error
		if !errors.As(c.err, &e) || e.Field != c.field || !strings.Contains(e.Msg, "is not a name") {
			t.Errorf("%s: %+v, want one at field %s", c.noun, c.err, c.field)
		}
	}
}
