package k3s

import (
	"errors"
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
	"slipway.dev/slipway/machineconfig/layer"
	"slipway.dev/slipway/machineconfig/validation"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var sum = strings.Repeat("ab", 32)

func testInput(spec machineconfig.BootstrapSpec) machineconfig.BootstrapInput {
	return machineconfig.BootstrapInput{
		Config: &machineconfig.Config{Host: machineconfig.HostIdentity{Hostname: "node-1"}}, Spec: spec,
		Target: &inventory.JoinTarget{
			Name: "edge", Endpoint: "10.0.0.10:6443", Kubernetes: "1.35.0+k3s1", Token: "edge-token", VIP: netip.MustParseAddr("10.0.0.11"),
			PodCIDR: "10.42.0.0/16", ServiceCIDR: "10.43.0.0/16",
		},
		OS: machineconfig.Target{OS: "debian", Release: "12", Arch: inventory.X8664},
	}
}

func full(role machineconfig.Role) machineconfig.BootstrapSpec {
	return machineconfig.BootstrapSpec{
		Role: role, NodeIP: "10.0.0.21", Labels: map[string]string{"rack": "1", "node-role.kubernetes.io/x": ""},
		Taints: []machineconfig.Taint{{Key: "a", Value: "b", Effect: "NoSchedule"}}, KubeletArgs: map[string]string{"v": "2"}, ProviderID: "slipway://s/h/c",
		Options: map[string]string{"binarySHA256": sum, "config.flannel-backend": "none", "config.disable": "traefik,servicelb", "config.tls-san": "api.example.com"},
	}
}

func TestActivations(t *testing.T) {
	for _, role := range []machineconfig.Role{machineconfig.Worker, machineconfig.ControlPlane, machineconfig.Init} {
		in := testInput(full(role))
		a, req, err := New().Emit(in)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		b.WriteString("exec " + strings.Join(a.Exec, " ") + "\nready " + a.ReadyPath + "\nafter " + strings.Join(a.After, " ") + "\nneeds " + strings.Join(req.Binaries, " ") + "\n")
		for _, f := range a.Files {
			b.WriteString("\n=== " + f.Mode.String() + " " + f.Path + "\n" + string(late.Redact([]byte(f.Text))))
			if f.Remote != nil {
				b.WriteString(f.Remote.URL + " " + f.Remote.SHA256 + "\n")
			}
		}
		path := filepath.Join("testdata", string(role)+".golden")
		if *update {
			if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if d := cmp.Diff(string(want), b.String()); err != nil || d != "" {
			t.Errorf("%s: %v (-want +got):\n%s", role, err, d)
		}
	}
}

func TestTheBinaryComesFromSomewhere(t *testing.T) {
	in := testInput(machineconfig.BootstrapSpec{Install: "none"})
	a, req, err := New().Emit(in)
	if err != nil || !cmp.Equal(req.Binaries, []string{"k3s"}) || strings.Contains(a.Files[1].Text, "/opt/bin") {
		t.Errorf("from the image: %v, %v", req.Binaries, err)
	}
	in = testInput(machineconfig.BootstrapSpec{Options: map[string]string{"binarySHA256": sum}})
	in.OS = machineconfig.Target{OS: "flatcar", Arch: inventory.ARM64}
	a, req, err = New().Emit(in)
	if err != nil || req.Binaries != nil {
		t.Fatal(err)
	}
	last := a.Files[len(a.Files)-1]
	if last.Path != "/opt/bin/k3s" || last.Remote.URL != "https://github.com/k3s-io/k3s/releases/download/v1.35.0%2Bk3s1/k3s-arm64" || !strings.Contains(a.Files[1].Text, "ExecStart=/opt/bin/k3s agent") {
		t.Errorf("on Flatcar: %+v", last)
	}
}

func TestSpecificationsThatAreRefused(t *testing.T) {
	opt := func(k, v string) func(*machineconfig.BootstrapInput) {
		return func(in *machineconfig.BootstrapInput) { in.Spec.Options[k] = v }
	}
	for name, c := range map[string]struct {
		change func(*machineconfig.BootstrapInput)
		want   string
	}{
		"a role that is none":          {func(in *machineconfig.BootstrapInput) { in.Spec.Role = "x" }, "/bootstrap/role"},
		"no target":                    {func(in *machineconfig.BootstrapInput) { in.Target = nil }, "/bootstrap/target"},
		"no token":                     {func(in *machineconfig.BootstrapInput) { in.Target.Token = "" }, "/bootstrap/secret"},
		"no port":                      {func(in *machineconfig.BootstrapInput) { in.Target.Endpoint = "x" }, "host:port"},
		"no checksum":                  {opt("binarySHA256", ""), "/bootstrap/options/binarySHA256"},
		"a URL that is none":           {opt("binaryURL", "x"), "/bootstrap/options/binaryURL"},
		"an option that is none":       {opt("binary", "x"), "/bootstrap/options/binary"},
		"a setting with its own field": {opt("config.token", "x"), "/bootstrap/options/config.token"},
		"a setting that is none":       {opt("config.A b", "x"), "/bootstrap/options/config.A b"},
		"a version of Kubernetes":      {func(in *machineconfig.BootstrapInput) { in.Spec.Version = "1.35.0" }, "/bootstrap/version"},
		"a version that is none":       {func(in *machineconfig.BootstrapInput) { in.Spec.Version = "latest" }, "/bootstrap/version"},
	} {
		in := testInput(machineconfig.BootstrapSpec{Options: map[string]string{"binarySHA256": sum}})
		c.change(&in)
		_, _, err := New().Emit(in)
		var e *inventory.Error
		if !errors.As(err, &e) || !strings.Contains(e.Msg, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzEmit(f *testing.F) {
	f.Add("worker", "1.35.0+k3s1", "n", "config.disable", "a,b", "10.0.0.1:6443")
	f.Fuzz(func(t *testing.T, role, version, name, k, v, endpoint string) {
		in := testInput(machineconfig.BootstrapSpec{Role: machineconfig.Role(role), Version: version, NodeName: name, Options: map[string]string{"binarySHA256": sum, k: v}})
		in.Target.Endpoint = endpoint
		a, _, err := New().Emit(in)
		if (a == nil) == (err == nil) {
			t.Fatalf("%v and %v", a, err)
		}
	})
}

// TestSettingsAreTakenByTheirNames reads a layer as people write them: k3s's own names, and lists.
func TestSettingsAreTakenByTheirNames(t *testing.T) {
	l, r := layer.Parse("bootstrap: {kind: k3s, role: worker, version: 1.34.2+k3s1, install: none, options: {flannel-iface: eno2, disable: [servicelb], "+
		"kube-apiserver-arg: ['enable-admission-plugins=A,B', v=2], config.brand-new: x}}", "layer")
	c, more := layer.Merge(l)
	if r = append(append(r, more...), validation.Validate(c)...); len(r) > 0 {
		t.Fatal(r)
	}
	a, _, err := New().Emit(testInput(*c.Bootstrap))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"flannel-iface: eno2\n", "disable:\n  - servicelb\n", "kube-apiserver-arg:\n  - enable-admission-plugins=A,B\n  - v=2\n", "brand-new: x\n"} {
		if !strings.Contains(a.Files[0].Text, want) {
			t.Errorf("%q is not in\n%s", want, a.Files[0].Text)
		}
	}
	for _, name := range []string{"flanel-iface", "server", "node-ip"} {
		_, _, err := New().Emit(testInput(machineconfig.BootstrapSpec{Role: machineconfig.Worker, Install: "none", Options: machineconfig.Options{name: "x"}}))
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("the option %s is answered by %v", name, err)
		}
	}
}
