package hardware

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
)

func TestExpressionsSeeTheHostInTheNamesOfTheAPI(t *testing.T) {
	big := server()
	big.PCI = make([]inventory.PCIDevice, 1024)
	for name, c := range map[string]struct {
		expression string
		hw         *inventory.Hardware
		want       string // "" holds
	}{
		"a number":                         {`host.cpu.threads >= 64`, new(server()), ""},
		"memory in bytes":                  {`host.memoryBytes > 500 * 1024 * 1024 * 1024`, new(server()), ""},
		"memory before an inspection":      {`host.memoryBytes > 1024`, nil, ""},
		"a label":                          {`host.labels["zone"] == "a" && host.labels.zone == "a"`, nil, ""},
		"a fact":                           {`host.facts["kernel"].startsWith("6.")`, nil, ""},
		"the place":                        {`host.place.rack == "r1" && host.place.unit > 4`, nil, ""},
		"one of the disks":                 {`host.disks.exists(d, d.sizeBytes > 3000000000000 && d.transport == "nvme")`, new(server()), ""},
		"all of the disks":                 {`host.disks.all(d, !d.isRotational)`, new(server()), ""},
		"the number of disks":              {`host.disks.filter(d, d.model.contains("PM9A3")).size() == 4`, new(server()), ""},
		"the second disk":                  {`host.disks[1].serial == "S4XY1"`, new(server()), ""},
		"a list of texts":                  {`"avx512f" in host.cpu.flags`, new(server()), ""},
		"the switch at the other end":      {`host.ports.exists(p, has(p.neighbour) && p.neighbour.system == "leaf-1")`, new(server()), ""},
		"a MAC":                            {`host.ports.exists(p, p.mac == "52:54:00:aa:00:02")`, new(server()), ""},
		"a part that may be there":         {`has(host.tpm) && host.tpm.version == "2.0"`, new(server()), ""},
		"firmware is what an agent told":   {`host.firmware.kind == "uefi" && host.firmware.version == "1.14.1"`, new(server()), ""},
		"a regular expression":             {`host.system.product.matches("^PowerEdge R7[0-9]0$")`, new(server()), ""},
		"two parts that are the same":      {`host.cpu == host.cpu && host.disks[0] != host.disks[1]`, new(server()), ""},
		"a field of something dynamic":     {`dyn(host.cpu).threads == 64 || true`, new(server()), ""},
		"false":                            {`host.cpu.threads > 64`, new(server()), "does not meet the expression host.cpu.threads > 64"},
		"a label that the host has not":    {`host.labels["disk"] == "fast"`, nil, `does not meet the expression host.labels["disk"] == "fast": no such key: disk`},
		"a disk that the host has not":     {`host.disks[9].serial == "x"`, new(server()), `does not meet the expression host.disks[9].serial == "x": index out of bounds: 9`},
		"a part that the host has not":     {`host.tpm.version == "2.0"`, &big2, `does not meet the expression host.tpm.version == "2.0": no tpm`},
		"hardware that was never seen":     {`host.cpu.threads < 8`, nil, "was never inspected"},
		"unless the expression asks first": {`!host.isInspected || host.cpu.threads < 8`, nil, ""},
		"hardware cannot be made up":       {`slipway.CPU{threads: 4} == host.cpu`, new(server()), "does not meet the expression slipway.CPU{threads: 4} == host.cpu: a slipway.CPU cannot be made here"},
		"division by zero":                 {`1 / (host.place.unit - 7) == 1`, nil, "does not meet the expression 1 / (host.place.unit - 7) == 1: division by zero"},
		"a comparison of all with all":     {`host.pci.exists(a, host.pci.exists(b, a.id == "x" && b.id == "y"))`, &big, TooCostly},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := Compile(c.expression)
			if err != nil {
				t.Fatal(err)
			}
			h := rackHost()
			ok, why := e.Holds(NewSubject(&h, c.hw))
			if why != c.want || ok != (c.want == "") {
				t.Errorf("got %v, %q; want %q", ok, why, c.want)
			}
		})
	}
}

var big2 = func() inventory.Hardware { hw := server(); hw.TPM = nil; return hw }()

func TestAnExpressionThatIsWrongSaysWhere(t *testing.T) {
	for name, c := range map[string]struct{ expression, want string }{
		"a field that does not exist":      {`host.cpu.treads > 4`, "the expression is not valid in line 1, column 9: undefined field 'treads'"},
		"in the second line":               {"host.cpu.threads > 4 &&\n  host.colour == 1", "the expression is not valid in line 2, column 7: undefined field 'colour'"},
		"a field of the members of a list": {`host.disks.exists(d, d.size > 4)`, "the expression is not valid in line 1, column 23: undefined field 'size'"},
		"a number compared with a text":    {`host.cpu.threads > "4"`, "the expression is not valid in line 1, column 18: found no matching overload for '_>_' applied to '(int, string)'"},
		"another variable":                 {`hosts.name == "x"`, "the expression is not valid in line 1, column 1: undeclared reference to 'hosts' (in container '')"},
		"neither true nor false":           {`host.cpu.threads`, "the expression gives a int and not true or false"},
		"nothing":                          {` `, "the expression is empty"},
		"too long":                         {strings.Repeat("host.isInspected&&", 200) + "true", "the expression is 3604 bytes long; at most 2048 are allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Compile(c.expression)
			var e *inventory.Error
			if !errors.As(err, &e) || e.Kind != inventory.Invalid || e.Msg != c.want {
				t.Fatalf("got %v, want %s", err, c.want)
			}
		})
	}
	if _, err := Compile("host.cpu.threads >"); err == nil || !strings.Contains(err.Error(), "line 1, column") {
		t.Errorf("an expression that breaks off gave %v", err)
	}
	if _, err := Compile(strings.Repeat("(", 500) + "true" + strings.Repeat(")", 500)); err == nil {
		t.Error("500 parentheses were accepted")
	}
}

func FuzzCompile(f *testing.F) {
	for _, s := range []string{
		`host.cpu.threads > 16 && host.labels["zone"] == "a"`, `host.disks.exists(d, d.sizeBytes > 1)`, `has(host.tpm)`,
		`host.ports.map(p, p.mac).size() > 1u`, `"a".matches("(a+)+$")`, `[1,2].all(x, [3,4].all(y, x < y))`, `slipway.CPU{threads: 1} == host.cpu`,
		`timestamp("2026-01-01T00:00:00Z").getFullYear() > 1`, `{"a": host}["a"].name == "x"`, "host.\x00", `type(host) == type(1)`,
	} {
		f.Add(s)
	}
	h, hw := rackHost(), server()
	f.Fuzz(func(t *testing.T, text string) {
		e, err := Compile(text)
		if err != nil {
			var ours *inventory.Error
			if !errors.As(err, &ours) || ours.Msg == "" || len(ours.Msg) > 600 {
				t.Fatalf("%q gave %v", text, err)
			}
			return
		}
		for _, hw := range []*inventory.Hardware{nil, &hw} {
			if ok, why := e.Holds(NewSubject(&h, hw)); ok != (why == "") || len(why) > 400 {
				t.Fatalf("%q gave %v, %q", text, ok, why)
			}
		}
	})
}

func BenchmarkHolds(b *testing.B) {
	h, hw := rackHost(), server()
	for _, text := range []string{
		`host.cpu.threads > 16`, `host.cpu.threads > 16 && host.labels["zone"] == "a"`, `host.disks.exists(d, d.sizeBytes > 9000000000000)`,
	} {
		e, err := Compile(text)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprint(len(text)), func(b *testing.B) {
			b.ReportAllocs()
			subject := NewSubject(&h, &hw)
			for b.Loop() {
				e.Holds(subject)
			}
		})
	}
}
