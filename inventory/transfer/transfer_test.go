package transfer

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/option"
)

var update = flag.Bool("update", false, "write golden files instead of comparing with them")

var cmpOptions = cmp.Options{
	cmpopts.EquateEmpty(), cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}),
	cmpopts.SortSlices(func(a, b inventory.NIC) bool { return a.MAC < b.MAC }),
}

func readFile(name string, text string) (Document, error) {
	if strings.HasSuffix(name, ".csv") {
		return ReadCSV(name, strings.NewReader(text))
	}
	return ReadYAML(name, strings.NewReader(text))
}

// TestWhatIsWrongWithAFileIsSaidWithItsLine reads every file in testdata/wrong; the messages are in its .golden.
func TestWhatIsWrongWithAFileIsSaidWithItsLine(t *testing.T) {
	files, err := filepath.Glob("testdata/wrong/*.[cy]*")
	if err != nil || len(files) < 10 {
		t.Fatalf("found %d files, %v", len(files), err)
	}
	for _, path := range files {
		if strings.HasSuffix(path, ".golden") {
			continue
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			d, err := readFile(filepath.Base(path), string(b))
			var e *inventory.Error
			if !errors.As(err, &e) || e.Kind != inventory.Invalid || e.Hint == "" {
				t.Fatalf("got %v, want an Invalid error with a hint", err)
			}
			var list Problems
			if !errors.As(err, &list) || len(list) == 0 || len(list) > maxProblems {
				t.Errorf("the error carries %d problems", len(list))
			}
			if d.Hosts != nil || d.Subnets != nil || d.Reservations != nil {
				t.Error("a wrong file was read in part")
			}
			golden(t, path+".golden", strings.ReplaceAll(e.Msg, nouns(), "NOUNS")+"\n") // a new noun changes no golden file
		})
	}
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got):\n%s", path, d)
	}
}

func TestLimits(t *testing.T) {
	for name, in := range map[string]string{
		"rows.csv":  "name,macs\n" + strings.Repeat("x,52:54:00:00:00:01\n", maxRows+1),
		"big.csv":   strings.Repeat(" ", maxCSVBytes+1),
		"big.yaml":  strings.Repeat(" ", maxYAMLBytes+1),
		"deep.yaml": "hosts: " + strings.Repeat("[", 20_000),
	} {
		if _, err := readFile(name, in); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

// current is an inventory with two hosts, a subnet and a reservation.
func current() Current {
	at := netip.MustParseAddr
	subnet := newSubnet()
	subnet.Name, subnet.CIDR, subnet.Version = "rack1", netip.MustParsePrefix("10.1.0.0/24"), 3
	subnet.Ranges = []inventory.Range{{First: at("10.1.0.10"), Last: at("10.1.0.20")}}
	return Current{
		Hosts: []inventory.Host{
			{
				ID: "h1", Name: "machine-1", State: inventory.Discovered, Serial: "S1", Version: 7,
				Labels: map[string]string{"old": "1"},
				NICs:   []inventory.NIC{{MAC: "52:54:00:00:00:02", Name: "eno2"}, {MAC: "52:54:00:00:00:01", Name: "eno1", IsBoot: true}},
			},
			{ID: "h2", Name: "db1", State: inventory.Active, Version: 2, NICs: []inventory.NIC{{MAC: "52:54:00:00:00:03"}}},
		},
		Subnets:      []inventory.Subnet{subnet},
		Reservations: []inventory.Reservation{{Address: at("10.1.0.5"), Subnet: "rack1", MAC: "52:54:00:00:00:03", Version: 1}},
		Profiles:     []inventory.Profile{{Name: "debian", Image: "debian-12", Revision: 2}},
		Images:       []string{"debian-12"},
	}
}

func TestPlan(t *testing.T) {
	for _, c := range []struct {
		about, file, in, want string
	}{
		{
			"a discovered host is named by its MAC and keeps its state", "h.csv",
			"name,macs,rack,accepted\nr1-u01,52-54-00-00-00-01 52:54:00:00:00:02,r1,true\n",
			"~ host machine-1\n    name: machine-1 -> r1-u01\n    rack: (none) -> r1\n0 to create, 1 to update, 0 unchanged\n",
		},
		{
			"a column that is missing changes nothing, an empty cell empties", "h.csv",
			"name,serial,labels\nmachine-1,,\n",
			"~ host machine-1\n    labels: old=1 -> (none)\n    serial: S1 -> (none)\n0 to create, 1 to update, 0 unchanged\n",
		},
		{
			"MACs in another order are no change", "h.yaml",
			"hosts:\n- {name: machine-1, macs: [52:54:00:00:00:02, 52:54:00:00:00:01]}\n",
			"0 to create, 0 to update, 1 unchanged\n",
		},
		{
			"a new host is listed with what it has", "h.yaml",
			"hosts:\n- name: new\n  macs: [525400000009]\n  unit: 7\n  profile: debian\n  labels: {b: 2, a: }\n  accepted: true\n",
			"+ host new\n    name: new\n    macs: 52:54:00:00:00:09\n    unit: 7\n    labels: a= b=2\n    profile: debian\n    accepted: true\n1 to create, 0 to update, 0 unchanged\n",
		},
		{
			"a new subnet has defaults, and holds reservations of the same file", "n.yaml",
			"reservations:\n- {address: 10.2.0.5, subnet: rack2, uuid: abc}\nsubnets:\n- {name: rack2, cidr: 10.2.0.0/24, ranges: [10.2.0.50-10.2.0.99, 10.2.0.10-10.2.0.20]}\n",
			"+ subnet rack2\n    name: rack2\n    cidr: 10.2.0.0/24\n    mode: full\n    leaseFor: 24h\n    bootLeaseFor: 10m\n    unknown: disk\n    ranges: 10.2.0.10-10.2.0.20 10.2.0.50-10.2.0.99\n" +
				"+ reservation 10.2.0.5\n    address: 10.2.0.5\n    subnet: rack2\n    uuid: abc\n2 to create, 0 to update, 0 unchanged\n",
		},
		{
			"an empty mode keeps the mode", "n.csv", "name,cidr,mode,mtu\nrack1,10.1.0.0/24,,9000\n",
			"~ subnet rack1\n    mtu: (none) -> 9000\n0 to create, 1 to update, 0 unchanged\n",
		},
	} {
		t.Run(c.about, func(t *testing.T) {
			d, err := readFile(c.file, c.in)
			if err != nil {
				t.Fatal(err)
			}
			diff, err := Plan(d, current())
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, diff.String()); d != "" {
				t.Errorf("diff (-want +got):\n%s", d)
			}
		})
	}
}

func TestPlanKeepsWhatAFileDoesNotGive(t *testing.T) {
	d, err := readFile("h.csv", "name,macs,accepted\nr1-u01,52:54:00:00:00:01 52:54:00:00:00:0a,true\n")
	if err != nil {
		t.Fatal(err)
	}
	was := current()
	diff, err := Plan(d, was)
	if err != nil {
		t.Fatal(err)
	}
	want := was.Hosts[0]
	want.Name = "r1-u01"
	want.NICs = []inventory.NIC{{MAC: "52:54:00:00:00:01", Name: "eno1", IsBoot: true}, {MAC: "52:54:00:00:00:0a"}}
	if d := cmp.Diff(want, *diff.Changes[0].thing.(*inventory.Host), cmpOptions); d != "" {
		t.Errorf("host (-want +got):\n%s", d)
	}
	if d := cmp.Diff(current(), was, cmpOptions); d != "" {
		t.Errorf("Plan changed what it compared with (-want +got):\n%s", d)
	}
}

func TestPlanRefusesWithTheLine(t *testing.T) {
	for _, c := range []struct{ about, file, in, want string }{
		{"MACs of two hosts", "h.csv", "name,macs\nx,52:54:00:00:00:01 52:54:00:00:00:03\n", "h.csv:2: the MACs belong to two hosts, machine-1 and db1"},
		{"name of one host and MAC of another", "h.csv", "name,macs\n\ndb1,52:54:00:00:00:01\n", "h.csv:3: the name is of host db1, but the MACs are of host machine-1"},
		{"two rows for one host", "h.csv", "name,macs\na,52:54:00:00:00:01\nb,52:54:00:00:00:02\n", "h.csv:3: host machine-1 is changed by line 2 already"},
		{"a new host without MAC", "h.csv", "name,rack\nnew,r1\n", "h.csv:2: host new has no NIC (add a column macs"},
		{"a profile that is not there", "h.csv", "name,profile\ndb1,nothing\n", "h.csv:2: host db1: there is no profile nothing"},
		{"a rack unit that cannot be", "h.csv", "name,unit\ndb1,400\n", "h.csv:2: host db1: rack unit 400"},
		{"a network that overlaps a stored one", "n.yaml", "subnets:\n- name: big\n  cidr: 10.0.0.0/8\n", "n.yaml:2: subnet big (10.0.0.0/8) overlaps subnet rack1 (10.1.0.0/24)"},
		{"a range that the changed network has no room for", "n.yaml", "subnets:\n- name: rack1\n  cidr: 10.1.0.0/29\n", "n.yaml:2: subnet rack1: 10.1.0.10 to 10.1.0.20 is not a range inside 10.1.0.0/29"},
		{"a reservation in no subnet", "r.csv", "address,subnet,mac\n10.9.0.1,nowhere,52:54:00:00:00:01\n", "r.csv:2: reservation 10.9.0.1: there is no subnet \"nowhere\""},
		{"a reservation outside its subnet", "r.csv", "address,subnet,mac\n10.9.0.1,rack1,52:54:00:00:00:01\n", "r.csv:2: reservation 10.9.0.1 is not a host address"},
		{"a second reservation for a machine", "r.csv", "address,subnet,mac\n10.1.0.6,rack1,52:54:00:00:00:03\n", "r.csv:2: 52:54:00:00:00:03 has the address 10.1.0.5 reserved"},
	} {
		t.Run(c.about, func(t *testing.T) {
			d, err := readFile(c.file, c.in)
			if err != nil {
				t.Fatal(err)
			}
			_, err = Plan(d, current())
			var e *inventory.Error
			if !errors.As(err, &e) || !strings.HasPrefix(e.Msg, c.want) {
				t.Errorf("got  %v\nwant %s...", err, c.want)
			}
		})
	}
}

// genText draws texts that a machine or an admin may have given. Cells are trimmed, so theirs are too.
func genText() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		s := rapid.OneOf(rapid.StringN(0, 20, 40), rapid.SampledFrom([]string{"true", "007", "null", "~", "1e3", "a: b", "#x", "- x", `"q"`, "a,b", "a\nb", "=1+1", "0x1F", "12:30:45", "<<"})).Draw(t, "text")
		s = strings.Map(func(r rune) rune {
			if r < 0x20 && r != '\n' || r >= 0x7f && r < 0xa0 || r == '\ufeff' || r == '\ufffe' || r == '\uffff' {
				return 'x'
			}
			return r
		}, s)
		return strings.TrimSpace(strings.ToValidUTF8(s, ""))
	})
}

// genClass draws a class in the form that the inventory keeps.
func genClass(t *rapid.T) inventory.Class {
	words := rapid.SliceOfN(rapid.SampledFrom([]string{"acme*", "onie_vendor:*", "true", "007", "a b, c", `"q"`, "- x"}), 1, 3)
	c := inventory.Class{
		Name: "phones", VendorClasses: words.Draw(t, "vendor"), UserClasses: words.Draw(t, "user"), Archs: []int{0, 7}, MACPrefixes: []string{"00:04:f2"},
		Priority: rapid.IntRange(-9, 9).Draw(t, "priority"), Options: []option.Option{{Code: 66, Value: "a b"}, {Code: 224, Type: "text", Value: "1", IsAlways: true}},
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	return c
}

func genCurrent() *rapid.Generator[Current] {
	return rapid.Custom(func(t *rapid.T) Current {
		c := Current{Images: []string{"debian-12"}, Profiles: genProfiles(t)}
		bit := rapid.Bool()
		for i := range rapid.IntRange(0, 5).Draw(t, "hosts") {
			h := inventory.Host{
				ID: inventory.HostID(fmt.Sprint(i)), Name: fmt.Sprintf("host-%d", i), State: rapid.SampledFrom(inventory.States()).Draw(t, "state"),
				Serial: genText().Draw(t, "serial"), UUID: genText().Draw(t, "uuid"), AssetTag: genText().Draw(t, "tag"),
				Manufacturer: genText().Draw(t, "manufacturer"), Product: genText().Draw(t, "product"),
				Place: inventory.Place{
					Site: genText().Draw(t, "site"), Row: genText().Draw(t, "row"), Rack: genText().Draw(t, "rack"),
					Unit: rapid.IntRange(0, 100).Draw(t, "unit"),
				},
				Profile:       rapid.SampledFrom([]string{"", "debian", "p2"}).Draw(t, "profile"),
				DiskBoot:      rapid.SampledFrom([]inventory.DiskBoot{"", inventory.DiskExit, inventory.DiskNoOffer}).Draw(t, "diskBoot"),
				InMaintenance: bit.Draw(t, "m"), IsProtected: bit.Draw(t, "p"), IsAdopted: bit.Draw(t, "a"),
				IsCordoned: bit.Draw(t, "c"), IsRetained: bit.Draw(t, "r"),
				Labels: rapid.MapOfN(rapid.StringMatching(`[A-Za-z0-9]([a-z./_-]{0,5}[a-z0-9])?`), rapid.StringMatching(`([A-Za-z0-9]([A-Za-z0-9._-]{0,5}[a-z0-9])?)?`), 0, 4).Draw(t, "labels"),
			}
			if bit.Draw(t, "hints") {
				size := rapid.Int64Range(0, 1<<50).Draw(t, "size")
				h.RootDisk = inventory.DiskHint{Model: "Samsung SSD, 50%25 off", Serial: genText().Draw(t, "diskSerial"), MinBytes: size, IsRotational: new(bool)}
				h.KeepDisks = []inventory.DiskHint{{WWN: "007"}, {Vendor: "true", MaxBytes: 1}, {ByPath: "pci-0000:00:1f.2-ata=1"}}
				h.Taints = []inventory.Taint{{Key: "gpu", Value: "a100"}, {Key: "slow"}}
			}
			for n := range rapid.IntRange(1, 3).Draw(t, "nics") {
				h.NICs = append(h.NICs, inventory.NIC{MAC: inventory.MAC(fmt.Sprintf("52:54:00:00:%02x:%02x", i, n))})
			}
			c.Hosts = append(c.Hosts, h)
		}
		for i := range rapid.IntRange(0, 4).Draw(t, "subnets") {
			at := func(d int) netip.Addr { return netip.AddrFrom4([4]byte{10, byte(i), 0, byte(d)}) }
			n := inventory.Subnet{
				Name: fmt.Sprintf("rack-%d", i), CIDR: netip.PrefixFrom(at(0), 24), Interface: rapid.SampledFrom([]string{"", "eno1"}).Draw(t, "if"),
				Mode: rapid.SampledFrom([]inventory.SubnetMode{inventory.ModeFull, inventory.ModeReservations, inventory.ModeOff}).Draw(t, "mode"),
				MTU:  rapid.SampledFrom([]int{0, 1500, 9000}).Draw(t, "mtu"), Domain: rapid.SampledFrom([]string{"", "a.example"}).Draw(t, "domain"),
				LeaseFor:     inventory.Duration(time.Duration(rapid.IntRange(60, 1e6).Draw(t, "lease")) * time.Second),
				BootLeaseFor: inventory.Duration(time.Duration(rapid.IntRange(60, 1e6).Draw(t, "boot")) * time.Second),
				Unknown:      rapid.SampledFrom([]inventory.UnknownPolicy{inventory.UnknownDisk, inventory.UnknownWait}).Draw(t, "unknown"),
			}
			if bit.Draw(t, "whole") {
				n.Gateway, n.DNS, n.NTP = at(1), []netip.Addr{at(3), at(2)}, []netip.Addr{at(4)}
				n.Routes = []inventory.Route{{To: netip.MustParsePrefix("0.0.0.0/0"), Via: at(1)}, {To: netip.MustParsePrefix("192.168.0.0/16"), Via: at(9)}}
				n.Ranges = []inventory.Range{{First: at(10), Last: at(20)}, {First: at(30), Last: at(30)}}
			}
			c.Subnets = append(c.Subnets, n)
			r := inventory.Reservation{Address: at(40), Subnet: n.Name, Hostname: rapid.SampledFrom([]string{"", "h"}).Draw(t, "hostname")}
			switch rapid.IntRange(0, 2).Draw(t, "by") {
			case 0:
				r.MAC = "52:54:00:00:00:01"
			case 1:
				r.ClientID = "01aabb"
			case 2:
				r.UUID = "4c4c4544-0000"
			}
			c.Reservations = append(c.Reservations, r)
		}
		put(&c, "classes", genClass(t))
		genConfigs(t, &c)
		genLife(t, &c)
		return c
	})
}

// readBack writes the document in one format and reads it again.
func readBack(t *rapid.T, d Document, asCSV bool) (back Document) {
	read := func(name string, b *bytes.Buffer) Document {
		got, err := readFile(name, b.String())
		if err != nil {
			t.Fatalf("reading what was written: %v\n%s", err, b.String())
		}
		return got
	}
	var b bytes.Buffer
	if !asCSV {
		if err := WriteYAML(&b, d); err != nil {
			t.Fatal(err)
		}
		return read("all.yaml", &b)
	}
	back = d
	back.Hosts, back.Subnets, back.Reservations = nil, nil, nil
	for _, noun := range []Noun{Hosts, Subnets, Reservations} {
		b.Reset()
		if err := WriteCSV(&b, noun, d); err != nil {
			t.Fatal(err)
		}
		got := read(string(noun)+".csv", &b)
		back.Hosts = append(back.Hosts, got.Hosts...)
		back.Subnets = append(back.Subnets, got.Subnets...)
		back.Reservations = append(back.Reservations, got.Reservations...)
	}
	return back
}

// tested is what tests ask of every noun of files.
type tested interface {
	rowN(d *Document) int
	thereN(c *Current) int
	add(c *Current, change Change)
}

func (n noun[T]) rowN(d *Document) int  { return len(*n.rows(d)) }
func (n noun[T]) thereN(c *Current) int { return len(*n.there(c)) }
func (n noun[T]) add(c *Current, change Change) {
	*n.there(c) = append(*n.there(c), *change.thing.(*T))
}

func TestAnExportImportedAgainChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := genCurrent().Draw(t, "inventory")
		d := Export(c)
		back := readBack(t, d, rapid.Bool().Draw(t, "CSV"))
		diff, err := Plan(back, c)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, noun := range tables() {
			n += noun.(tested).thereN(&c)
		}
		if diff.CountN(OpUnchanged) != n || len(diff.Changes) != diff.CountN(OpUnchanged) {
			t.Fatalf("the import would change:\n%s", diff)
		}
	})
}

func TestAnExportMovesToAnEmptyInventory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := genCurrent().Draw(t, "inventory")
		for i := range c.Hosts { // revisions do not travel
			c.Hosts[i].ProfileRevision = 0
		}
		c0 := c
		c0.Hosts = slices.Clone(c.Hosts)
		back := readBack(t, Export(c), rapid.Bool().Draw(t, "CSV"))
		diff, err := Plan(back, Current{Images: c.Images, Secrets: c.Secrets})
		if err != nil {
			t.Fatal(err)
		}
		var got Current
		for _, change := range diff.Changes {
			if p := change.Profile(); p != nil {
				p.Revision = 0
			}
			for _, noun := range tables() {
				if noun.name() == change.Noun {
					noun.(tested).add(&got, change)
				}
			}
		}
		for i := range c.Hosts { // a state does not travel, only whether the host was accepted
			c.Hosts[i].ID = ""
			if c.Hosts[i].State != inventory.Discovered {
				c.Hosts[i].State = inventory.Available
			}
		}
		for i := range c.Profiles {
			c.Profiles[i].Revision = 0
		}
		c.Layers, c.BMCs = namedLayers(c0), namedBMCs(c0)
		for i := range c.BMCs {
			c.BMCs[i].Sealed = nil
		}
		got.Images, got.Secrets = c.Images, c.Secrets
		if d := cmp.Diff(c, got, cmpOptions); d != "" {
			t.Fatalf("moved inventory (-want +got):\n%s", d)
		}
	})
}

func fuzzReader(f *testing.F, name string, pattern string) {
	files, _ := filepath.Glob("testdata/wrong/" + pattern)
	for _, path := range files {
		if b, err := os.ReadFile(path); err == nil {
			f.Add(string(b))
		}
	}
	f.Fuzz(func(t *testing.T, in string) {
		d, err := readFile(name, in)
		if err != nil {
			var e *inventory.Error
			if !errors.As(err, &e) || e.Msg == "" {
				t.Fatalf("an error for nobody: %v", err)
			}
			return
		}
		diff, err := Plan(d, Current{Images: []string{"i"}})
		n := 0
		for _, noun := range tables() {
			n += noun.(tested).rowN(&d)
		}
		if err == nil && diff.CountN(OpCreate) != n {
			t.Fatalf("planned %d of %d rows", diff.CountN(OpCreate), n)
		}
	})
}

func FuzzReadCSV(f *testing.F) {
	f.Add("name,macs,site,row,rack,unit,labels,profile,serial,uuid,accepted\nr1-u01,52:54:00:00:00:01,fra,a,r1,1,role=x,debian,S,U,true\n")
	f.Add("name,cidr,ranges\nrack1,10.0.0.0/24,10.0.0.10-10.0.0.20\n")
	f.Add("address,subnet,mac\n10.0.0.5,rack1,52:54:00:00:00:01\n")
	fuzzReader(f, "fuzz.csv", "*.csv")
}

func FuzzReadYAML(f *testing.F) {
	f.Add("hosts:\n- name: a\n  macs: [52:54:00:00:00:01]\nsubnets:\n- {name: n, cidr: 10.0.0.0/24}\n")
	f.Add("pools:\n- {name: a, requirements: {disks: 1}, budget: {destroyInterval: 1m}}\ngoldens:\n- {name: g, selector: mac, firmware: {bios: 1}}\n")
	f.Add("hosts:\n- {name: a, macs: [52:54:00:00:00:01], rootDisk: \"model=a%20b\", keepDisks: [wwn=1], taints: [a=b]}\nbmcs:\n- {host: a, driver: wol}\n")
	f.Add("profiles:\n- {name: a, image: i, document: x, documentFormat: preseed}\n- {name: b, image: i, extends: a}\nlayers:\n- layer: global\n  config: |\n    a: 1\n")
	f.Add("targets:\n- {name: t, endpoint: 'k:1', vip: 'fd00::1', tokenFor: 1h}\nsecrets:\n- {name: s, about: x}\n")
	for seed := range 3 { // every noun, whole
		var b strings.Builder
		if err := WriteYAML(&b, Export(genCurrent().Example(seed))); err != nil {
			f.Fatal(err)
		}
		f.Add(b.String())
	}
	fuzzReader(f, "fuzz.yaml", "*.yaml")
}
