package cloudinit

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"slipway.dev/slipway/cloudinit"
	"slipway.dev/slipway/machineconfig"
)

// renderers are cloud-init's, with a distribution that has each.
var renderers = map[string]string{
	"netplan": "ubuntu", "networkd": "debian", "eni": "debian", "sysconfig": "rhel", "network-manager": "fedora",
}

func TestEveryRendererOfCloudInitSaysTheNetwork(t *testing.T) {
	each(t, func(t *testing.T, r reader, cases []*seedCase) {
		type try struct {
			c             *seedCase
			renderer, out string
		}
		var tries []try
		var args [][]string
		for _, c := range cases {
			if c.config.Network.IsZero() {
				continue
			}
			dir := t.TempDir()
			in := write(t, dir, "network-config", c.document(t, "network-config"))
			for renderer := range renderers {
				if renderer != "netplan" && needsNetplan(c.config.Network) {
					continue
				}
				out := filepath.Join(dir, renderer)
				tries = append(tries, try{c, renderer, out})
				args = append(args, convertArgs(c.config.Network, in, out, renderer))
			}
		}
		for i, problem := range r.convert(t, args) {
			t.Run(tries[i].c.name+" with "+tries[i].renderer, func(t *testing.T) {
				if problem != "" {
					t.Fatal(problem)
				}
				checkNetwork(t, tries[i].renderer, readTree(t, tries[i].out), tries[i].c.config.Network)
			})
		}
	})
}

// needsNetplan reports whether a network is refused for an operating system without netplan.
func needsNetplan(n machineconfig.Network) bool {
	return slices.ContainsFunc(n.Bonds, func(b machineconfig.Bond) bool { return len(b.ARPTargets) > 0 })
}

func convertArgs(n machineconfig.Network, in, out, renderer string) []string {
	args := []string{"-p", in, "-k", "yaml", "-d", out, "-D", renderers[renderer], "-O", renderer}
	for _, i := range n.Interfaces {
		if i.MAC != "" {
			args = append(args, "-m", i.Name+","+i.MAC)
		}
	}
	return args
}

func (r reader) convert(t *testing.T, args [][]string) []string {
	t.Helper()
	stdin, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	var problems []string
	r.ask(t, stdin, &problems, "convert")
	return problems
}

func readTree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		fmt.Fprintf(&b, "== %s\n%s\n", path, text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// checkNetwork looks for the addresses, gateways, bonds, VLANs and DNS servers in a renderer's files.
func checkNetwork(t *testing.T, renderer, text string, n machineconfig.Network) {
	t.Helper()
	want := func(what string, any ...string) {
		t.Helper()
		for _, s := range any {
			if strings.Contains(text, s) {
				return
			}
		}
		t.Errorf("%s is not in:\n%s", what, text)
	}
	l3 := func(name string, l machineconfig.L3) {
		want(name, name)
		for _, a := range l.Addresses {
			ip, _, _ := strings.Cut(a, "/")
			want("address "+a, ip)
		}
		for _, route := range l.Routes {
			if route.Via != "" {
				want("gateway "+route.Via, route.Via)
			}
		}
		for _, d := range l.DNS {
			want("DNS server "+d, d)
		}
	}
	for _, i := range n.Interfaces {
		l3(i.Name, i.L3)
	}
	if renderer == "networkd" {
		return // it writes no .netdev files, which is why the capability table refuses them
	}
	for _, b := range n.Bonds {
		l3(b.Name, b.L3)
		want("mode of "+b.Name, b.Mode)
		for _, m := range b.Members {
			want("member "+m, m)
		}
	}
	for _, v := range n.VLANs {
		l3(v.Name, v.L3)
		if renderer != "sysconfig" || strings.HasSuffix(v.Name, fmt.Sprint(v.ID)) { // else refused for systems that have it
			want("number of "+v.Name, fmt.Sprint(v.ID))
		}
	}
	for _, b := range n.Bridges {
		l3(b.Name, b.L3)
	}
}

func TestNetworkdRendererMakesNoVirtualDevices(t *testing.T) {
	for _, r := range readers(t) {
		dir := t.TempDir()
		data, _ := cloudinit.NetworkConfig(machineconfig.Target{OS: "debian", Tool: r.version}, &machineconfig.Config{Network: fullNetwork()})
		problems := r.convert(t, [][]string{convertArgs(fullNetwork(), write(t, dir, "nc", data), dir+"/out", "networkd")})
		if problems[0] != "" {
			t.Fatal(problems[0])
		}
		if text := readTree(t, dir+"/out"); strings.Contains(text, ".netdev") {
			t.Errorf("cloud-init %s makes .netdev files: the capability table can allow them\n%s", r.version, text)
		}
	}
}

func TestNetplanAcceptsTheNetwork(t *testing.T) {
	each(t, func(t *testing.T, r reader, cases []*seedCase) {
		for _, c := range cases {
			if c.config.Network.IsZero() {
				continue
			}
			root := t.TempDir()
			write(t, root, "etc/netplan/50-cloud-init.yaml", c.document(t, "network-config"))
			out, err := exec.CommandContext(t.Context(), "netplan", "generate", "--root-dir", root).CombinedOutput()
			if err != nil {
				t.Errorf("%s: netplan: %v\n%s\n%s", c.name, err, out, c.document(t, "network-config"))
			}
			checkNetwork(t, "netplan", readTree(t, root), c.config.Network)
		}
	})
}

func TestTheKernelArgumentSaysTheSameNetwork(t *testing.T) {
	each(t, func(t *testing.T, r reader, cases []*seedCase) {
		n := 0
		for _, c := range cases {
			if c.config.Network.IsZero() {
				continue
			}
			if len(c.rendered.Args) != 1 {
				t.Errorf("%s has arguments %v", c.name, c.rendered.Args)
				continue
			}
			n++
			var got, want map[string]any
			renderer := "any"
			if needsNetplan(c.config.Network) {
				renderer = "netplan"
			}
			r.ask(t, nil, &got, "cmdline", c.rendered.Args[0], renderer)
			var doc struct {
				Network map[string]any `yaml:"network"`
			}
			if err := yaml.Unmarshal(c.document(t, "network-config"), &doc); err != nil {
				t.Fatal(err)
			}
			want = doc.Network
			if diff := cmp.Diff(fmt.Sprint(want), fmt.Sprint(got)); diff != "" {
				t.Errorf("%s: %s", c.name, diff)
			}
			t.Logf("%s: %d bytes", c.name, len(c.rendered.Args[0]))
		}
		if n < 3 {
			t.Errorf("only %d cases have a network", n)
		}
	})
}
