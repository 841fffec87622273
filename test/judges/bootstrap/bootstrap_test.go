// Package bootstrap shows what our bootstrappers emit to the programs that will read it: kubeadm itself, Talos' own
// loader, systemd, shellcheck, containerd, apt. It never looks at how they were made.
package bootstrap

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/kubeadm"
	"slipway.dev/slipway/machineconfig/late"
)

// root is the folder of the module.
var root = filepath.Join("..", "..", "..")

// judges skips a test unless the judges are called for.
func judges(t *testing.T) {
	t.Helper()
	if os.Getenv("SLIPWAY_JUDGES") == "" {
		t.Skip("other people's programs judge here: run by make test-judges")
	}
}

// program finds a program or ends the test loudly.
func program(t *testing.T, name, pkg string) string {
	t.Helper()
	p, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("the judge %s is missing: install the Debian package %s", name, pkg)
	}
	return p
}

// part finds a program that tools/parts.sh builds.
func part(t *testing.T, name string) string {
	t.Helper()
	p, err := filepath.Abs(filepath.Join(root, "build", "parts", name))
	if err == nil {
		_, err = os.Stat(p)
	}
	if err != nil {
		t.Fatalf("the judge %s is missing: run tools/parts.sh build %s", name, name)
	}
	return p
}

// run runs a program and returns what it said on both outputs.
func run(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// pki is made once: eight RSA keys take seconds.
var pki = sync.OnceValue(func() map[string]string {
	p, err := kubeadm.NewPKI(time.Now(), nil)
	if err != nil {
		panic(err)
	}
	return p
})

// inject replaces markers by values such as the lead's renderer would.
func inject(t *testing.T, text string) string {
	t.Helper()
	out, err := late.Inject([]byte(text), func(ref string) ([]byte, error) {
		switch {
		case strings.HasSuffix(ref, "/token"), ref == "secret://static-token":
			return []byte("123456.0123456789012345"), nil // a number, if nobody puts it in quotes
		case ref == "secret://cert-key":
			return []byte("1234567890123456789012345678901234567890123456789012345678901234"), nil
		case strings.HasPrefix(ref, "secret://pki#"):
			return []byte(pki()[strings.TrimPrefix(ref, "secret://pki#")]), nil
		}
		return nil, fmt.Errorf("no value for %s", ref)
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// target is a join target with everything.
func target() *inventory.JoinTarget {
	return &inventory.JoinTarget{
		Name: "prod", Endpoint: "10.0.0.10:6443", Kubernetes: "1.35.0", CA: pki()["ca.crt"], Kubeconfig: "admin", PKI: "pki",
		VIP: netip.MustParseAddr("10.0.0.10"), VIPInterface: "eno1", PodCIDR: "10.244.0.0/16", ServiceCIDR: "10.96.0.0/12",
	}
}

func input(spec machineconfig.BootstrapSpec, to *inventory.JoinTarget, os string) machineconfig.BootstrapInput {
	return machineconfig.BootstrapInput{
		Config: &machineconfig.Config{Host: machineconfig.HostIdentity{Hostname: "node-1"}},
		Spec:   spec, Target: to, OS: machineconfig.Target{OS: os, Release: "12", Arch: inventory.X8664},
	}
}

// fileOf returns the text of a file of an activation.
func fileOf(a *machineconfig.Activation, path string) string {
	for _, f := range a.Files {
		if f.Path == path {
			return f.Text
		}
	}
	return ""
}
