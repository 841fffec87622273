package microk8s

import (
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func testInput(role machineconfig.Role) machineconfig.BootstrapInput {
	return machineconfig.BootstrapInput{
		Config: &machineconfig.Config{Host: machineconfig.HostIdentity{Hostname: "node-1"}},
		Spec: machineconfig.BootstrapSpec{
			Role: role, NodeName: "n1", Labels: map[string]string{"rack": "1"}, Taints: []machineconfig.Taint{{Key: "a", Effect: "NoSchedule"}},
			Options: map[string]string{},
		},
		Target: &inventory.JoinTarget{Name: "lab", Endpoint: "10.0.0.10:16443", Kubernetes: "1.35", Token: "lab-token"},
		OS:     machineconfig.Target{OS: "ubuntu", Release: "24.04"},
	}
}

func TestActivations(t *testing.T) {
	for _, role := range []machineconfig.Role{machineconfig.Worker, machineconfig.ControlPlane, machineconfig.Init} {
		in := testInput(role)
		if role == machineconfig.Init {
			in.Spec.Options["addons"] = "dns,ingress"
		}
		a, _, err := New().Emit(in)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		b.WriteString("ready " + a.ReadyPath + "\nafter " + strings.Join(a.After, " ") + "\ncleanup " + strings.Join(a.Cleanup, " ") + "\n")
		for _, f := range a.Files {
			b.WriteString("\n=== " + f.Mode.String() + " " + f.Path + "\n" + string(late.Redact([]byte(f.Text))))
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

// The script runs on a folder that stands for a machine, with programs that write down how they were called.
func TestTheScriptJoinsWithEitherFormOfToken(t *testing.T) {
	for token, want := range map[string]string{
		"abc":                     "microk8s join 10.0.0.10:25000/abc --worker\n",
		"10.9.9.9:25000/abc/hash": "microk8s join 10.9.9.9:25000/abc/hash --worker\n",
	} {
		dir := t.TempDir()
		a, _, err := New().Emit(testInput(machineconfig.Worker))
		if err != nil {
			t.Fatal(err)
		}
		put := func(path, text string) {
			path = filepath.Join(dir, path)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o700)); err != nil {
				t.Fatal(err)
			}
		}
		for _, f := range a.Files {
			text := strings.NewReplacer("/etc/slipway", dir+"/etc/slipway", "/var/snap", dir+"/var/snap", late.Marker("secret://lab-token"), token).Replace(f.Text)
			put(f.Path, text)
		}
		put("/var/snap/microk8s/current/args/kubelet", "--node-labels=rack=1\n--x=y\n")
		for _, name := range []string{"snap", "microk8s"} {
			put("/bin/"+name, "#!/bin/bash\necho "+name+" \"$@\" >>"+dir+"/calls\n[ \"$1\" != list ]\n")
		}
		for range 2 {
			cmd := exec.Command("/bin/bash", filepath.Join(dir, scriptPath))
			cmd.Env = []string{"PATH=" + dir + "/bin:/usr/bin:/bin"}
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatal(err, string(out))
			}
		}
		calls, _ := os.ReadFile(filepath.Join(dir, "calls"))
		if !strings.HasSuffix(string(calls), want) || strings.Count(string(calls), "join") != 1 || !strings.Contains(string(calls), "snap install microk8s --classic --channel=1.35/stable\n") {
			t.Errorf("called\n%s", calls)
		}
		args, _ := os.ReadFile(filepath.Join(dir, "/var/snap/microk8s/current/args/kubelet"))
		if want := "--node-labels=rack=1\n--x=y\n--hostname-override=n1\n--register-with-taints=a=:NoSchedule\n"; string(args) != want {
			t.Errorf("arguments\n%s", args)
		}
	}
}

func TestSpecificationsThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*machineconfig.BootstrapInput)
		want   string
	}{
		"a role that is none":    {func(in *machineconfig.BootstrapInput) { in.Spec.Role = "x" }, "/bootstrap/role"},
		"no target":              {func(in *machineconfig.BootstrapInput) { in.Target, in.Spec.Version = nil, "1.35" }, "/bootstrap/target"},
		"no token":               {func(in *machineconfig.BootstrapInput) { in.Target.Token = "" }, "/bootstrap/secret"},
		"no version":             {func(in *machineconfig.BootstrapInput) { in.Target.Kubernetes = "" }, "/bootstrap/version"},
		"a version that is none": {func(in *machineconfig.BootstrapInput) { in.Spec.Version = "x" }, "/bootstrap/version"},
		"another runtime":        {func(in *machineconfig.BootstrapInput) { in.Spec.CRISocket = "unix:///x" }, "/bootstrap/criSocket"},
		"a channel with a space": {func(in *machineconfig.BootstrapInput) { in.Spec.Options["channel"] = "a b" }, "/bootstrap/options/channel"},
		"an add-on with a quote": {func(in *machineconfig.BootstrapInput) { in.Spec.Options["addons"] = "dns,$(x)" }, "/bootstrap/options/addons"},
		"a port that is none":    {func(in *machineconfig.BootstrapInput) { in.Spec.Options["joinPort"] = "0" }, "/bootstrap/options/joinPort"},
		"an option that is none": {func(in *machineconfig.BootstrapInput) { in.Spec.Options["addon"] = "dns" }, "/bootstrap/options/addon"},
		"a host with a script":   {func(in *machineconfig.BootstrapInput) { in.Target.Endpoint = "$(x):1" }, "host:port"},
	} {
		in := testInput(machineconfig.Worker)
		c.change(&in)
		_, _, err := New().Emit(in)
		var e *inventory.Error
		if !errors.As(err, &e) || !strings.Contains(e.Msg, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
