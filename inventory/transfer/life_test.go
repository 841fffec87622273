package transfer

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"slipway.dev/slipway/inventory"
	facts "slipway.dev/slipway/inventory/noun"
	"slipway.dev/slipway/inventory/option"
)

// put adds records of a plain noun.
func put(c *Current, name Noun, records ...any) {
	list := listOf(&c.Plain, name)
	*list = append(*list, records...)
}

// genLife draws BMCs, and records of plain nouns: of each one the sample of its row.
func genLife(t *rapid.T, c *Current) {
	for _, n := range facts.All() {
		if n.About().Files != nil {
			put(c, Noun(n.About().Many), n.New())
		}
	}
	put(
		c, "pools", inventory.Pool{Name: "default"},
		inventory.Pool{
			Name: "gpu", Selector: "role=gpu,rack=~r.*", Clean: inventory.CleanFull, MinSpare: 2, BurnInFor: inventory.Duration(time.Hour),
			Requirements: inventory.HardwareRequirements{
				CPUThreads: rapid.IntRange(0, 1e9).Draw(t, "threads"), MemoryBytes: 1 << 40, IsRotational: new(bool), AcceleratorID: "10de",
				Expression: genText().Draw(t, "expression"),
			},
			Budget: inventory.Budget{Provision: rapid.IntRange(0, 9).Draw(t, "budget"), DestroyInterval: inventory.Duration(90 * time.Second)},
		},
	)
	put(c, "goldens", inventory.Golden{
		Name: "r650", Selector: "product=R650", Firmware: map[string]string{"bios": "1.2", "disk:Samsung SSD": "007", "bmc": ""}, DiskN: 2, IsStrict: true,
	})
	for i, h := range c.Hosts {
		if rapid.Bool().Draw(t, "bmc") {
			c.BMCs = append(c.BMCs, inventory.BMC{
				HostID: h.ID, Driver: inventory.IPMI, Address: fmt.Sprintf("10.0.0.%d:623", i), Username: "007", Sealed: []byte("sealed"),
				InsecureSkipVerify: rapid.Bool().Draw(t, "skip"), MAC: "52:54:00:00:00:09", Options: map[string]string{"cipher": "17", "empty": ""},
			})
		}
	}
}

func TestDiskHintsAreReadAsTheyAreWritten(t *testing.T) {
	no := false
	for text, hint := range map[string]inventory.DiskHint{
		"serial=S4XY":                                {Serial: "S4XY"},
		"isRotational=false,minBytes=500":            {MinBytes: 500, IsRotational: &no},
		"model=Samsung%20SSD%2C%20100%25,serial=007": {Model: "Samsung SSD, 100%", Serial: "007"},
		"byPath=pci-0000:00:1f.2-ata=1,vendor=null":  {ByPath: "pci-0000:00:1f.2-ata=1", Vendor: "null"},
		`model="x"}{"`:                               {Model: `"x"}{"`},
		"model=a%C2%A0b%0A":                          {Model: "a\u00a0b\n"},
	} {
		if got := writeHint(hint); got != text {
			t.Errorf("%+v is written as %s, want %s", hint, got, text)
		}
		got, err := parseHint(text)
		if d := cmp.Diff(hint, got); err != nil || d != "" {
			t.Errorf("%s: %v (-want +got):\n%s", text, err, d)
		}
	}
	for text, words := range map[string]string{
		"":                          "names no disk",
		"serial":                    "has no value",
		"serial=":                   "has no value",
		"serial=a,serial=b":         "given twice",
		"colour=red":                "not known here",
		"minBytes=large":            "cannot be",
		`minBytes=1}`:               "cannot be",
		`minBytes=1%2C"serial":"2"`: "cannot be",
		"serial=%zz":                "not a disk hint",
		"minBytes=0":                "names no disk",
	} {
		if _, err := parseHint(text); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: got %v, want %q", text, err, words)
		}
	}
}

func TestTheLifeOfServersIsPlanned(t *testing.T) {
	c := current()
	put(&c, "pools", inventory.Pool{Name: "gpu", MinSpare: 1})
	put(&c, "classes", inventory.Class{
		Name: "phones", UserClasses: []string{"x"}, Options: []option.Option{{Name: "tftp-server-name", Code: 66, Type: "text", Value: "mine"}},
	})
	c.BMCs = []inventory.BMC{{HostID: "h2", Driver: inventory.IPMI, Address: "10.0.0.5", Username: "admin", Sealed: []byte("sealed")}}
	for _, test := range []struct{ about, in, want string }{
		{
			"a pool changes where it is given",
			"pools:\n- {name: gpu, budget: {provision: 5}, requirements: {disks: 2, arch: x86_64}}\n",
			"~ pool gpu\n    requirements: (none) -> arch=x86_64 disks=2\n    budget: (none) -> provision=5\n0 to create, 1 to update, 0 unchanged\n",
		},
		{
			"a BMC is found by the name of its host, and a host may be new",
			"hosts:\n- {name: new, macs: [52:54:00:00:09:09]}\nbmcs:\n- {host: db1, username: root}\n- {host: new, driver: wol}\n",
			"+ host new\n    name: new\n    macs: 52:54:00:00:09:09\n~ bmc db1\n    username: admin -> root\n" +
				"+ bmc new\n    host: new\n    driver: wol\n2 to create, 1 to update, 0 unchanged\n",
		},
		{
			"a host's disks and taints",
			"hosts:\n- {name: db1, rootDisk: serial=S1, keepDisks: [wwn=1, \"model=a%20b\"], taints: [slow, gpu=a100]}\n",
			"~ host db1\n    taints: (none) -> slow gpu=a100\n    rootDisk: (none) -> serial=S1\n    keepDisks: (none) -> wwn=1 model=a%20b\n" +
				"0 to create, 1 to update, 0 unchanged\n",
		},
		{
			"what a file says in another form than the inventory is no change",
			"classes:\n- {name: phones, options: [66=mine]}\n",
			"0 to create, 0 to update, 1 unchanged\n",
		},
		{
			"golden hardware",
			"goldens:\n- {name: g, selector: mac, firmware: {\"disk:Big One\": 1.2}, isStrict: true}\n",
			"+ golden g\n    name: g\n    selector: mac\n    firmware: disk:Big One=1.2\n    isStrict: true\n1 to create, 0 to update, 0 unchanged\n",
		},
	} {
		d, err := readFile("x.yaml", test.in)
		if err != nil {
			t.Fatalf("%s: %v", test.about, err)
		}
		diff, err := Plan(d, c)
		if err != nil {
			t.Errorf("%s: %v", test.about, err)
			continue
		}
		if got := diff.String(); got != test.want {
			t.Errorf("%s:\n%s\nwant\n%s", test.about, got, test.want)
		}
	}
	for in, want := range map[string]string{
		"bmcs:\n- {host: nobody, driver: wol}\n":                                   "there is no host nobody",
		"bmcs:\n- {host: db1, password: hunter2}\n":                                `"password" is not known here`,
		"bmcs:\n- {host: machine-1, driver: ipmi, address: 10.0.0.5}\n":            "x.yaml:2: the ipmi controller at 10.0.0.5 powers host db1",
		"bmcs:\n- {host: machine-1, driver: magic}\n":                              "not a way to power",
		"bmcs:\n- {host: db1}\n- {host: db1}\n":                                    "bmc db1 stands in line 2 already",
		"bmcs:\n- {driver: wol}\n":                                                 "the bmc has no host",
		"pools:\n- {name: gpu, minSpare: -1}\n":                                    "negative",
		"pools:\n- {name: gpu, budget: {lunch: 5}}\n":                              `"lunch" is not known here`,
		"goldens:\n- {name: g}\n":                                                  "has no selector",
		"hosts:\n- {name: db1, taints: [\"a b\"]}\n":                               "label",
		"hosts:\n- {name: db1, keepDisks: [\"\"]}\n":                               "names no disk",
		"hosts:\n- {name: db1, rootDisk: colour=red}\n":                            `"colour" is not known here`,
		"pools:\n- {name: gpu, requirements: {arch: vax}}\n":                       "not an architecture",
		"bmcs:\n- {host: db1, driver: redfish, address: \"https://a:b@10.0.0.5\"}": "not the URL",
	} {
		d, err := readFile("x.yaml", in)
		if err == nil {
			_, err = Plan(d, c)
		}
		if err == nil || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%.80s: got %v, want %q", in, err, want)
		}
	}
	var b bytes.Buffer
	if err := WriteYAML(&b, Export(c)); err != nil || strings.Contains(b.String(), "sealed") || !strings.Contains(b.String(), "bmcs:") {
		t.Errorf("%v: the export is\n%s", err, &b)
	}
}
