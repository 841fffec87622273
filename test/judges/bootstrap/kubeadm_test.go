package bootstrap

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/kubeadm"
)

// oneCase is a machine that kubeadm makes a node.
type oneCase struct {
	name string
	os   string
	spec machineconfig.BootstrapSpec
	to   func(*inventory.JoinTarget)
}

func cases() []oneCase {
	full := machineconfig.BootstrapSpec{
		NodeName: "node-1.example.com", NodeIP: "10.0.0.21", ProviderID: "slipway://ams/node-1/01JABC",
		Labels:      map[string]string{"rack": "r1", "topology.kubernetes.io/zone": "a", "node-role.kubernetes.io/worker": ""},
		Taints:      []machineconfig.Taint{{Key: "node.cluster.x-k8s.io/uninitialized", Effect: "NoSchedule"}, {Key: "k", Value: "v", Effect: "NoExecute"}},
		KubeletArgs: map[string]string{"v": "2", "cloud-provider": "external", "feature-gates": "A=true,B=false"},
		Options:     map[string]string{"ignorePreflightErrors": "NumCPU, Mem", "skipPhases": "preflight"},
	}
	with := func(s machineconfig.BootstrapSpec, role machineconfig.Role) machineconfig.BootstrapSpec {
		s.Role = role
		return s
	}
	noTaints := machineconfig.BootstrapSpec{Role: machineconfig.ControlPlane, Taints: []machineconfig.Taint{}}
	init := with(full, machineconfig.Init)
	init.Options = map[string]string{
		"certSANs": "api.example.com,10.0.0.9", "clusterName": "prod", "dnsDomain": "cluster.example", "imageRepository": "mirror.example:5000/k8s",
		"serverTLSBootstrap": "true", "skipPhases": "addon/kube-proxy", "advertiseAddress": "10.0.0.22", "bindPort": "7443",
	}
	hashes := machineconfig.BootstrapSpec{Options: map[string]string{"caCertHashes": "sha256:" + strings.Repeat("ab", 32)}}
	unsafe := machineconfig.BootstrapSpec{Options: map[string]string{"unsafeSkipCAVerification": "true"}}
	noCA := func(t *inventory.JoinTarget) { t.CA = "" }
	return []oneCase{
		{"a worker", "debian", machineconfig.BootstrapSpec{}, nil},
		{"a worker with everything", "debian", full, nil},
		{"a worker on Flatcar", "flatcar", full, nil},
		{"a worker with a token made elsewhere", "rocky", machineconfig.BootstrapSpec{}, func(t *inventory.JoinTarget) { t.Kubeconfig, t.Token = "", "static-token" }},
		{"a worker that finds its cluster by the hash of its CA", "debian", machineconfig.BootstrapSpec{Options: map[string]string{"discovery": "token"}}, nil},
		{"a worker of a target without CA but hashes", "debian", hashes, noCA},
		{"a worker that trusts anybody", "debian", unsafe, noCA},
		{"a worker with CRI-O", "debian", machineconfig.BootstrapSpec{CRISocket: "unix:///var/run/crio/crio.sock"}, nil},
		{"a control plane with PKI", "debian", with(full, machineconfig.ControlPlane), nil},
		{"a control plane with a certificate key", "flatcar", with(full, machineconfig.ControlPlane), func(t *inventory.JoinTarget) { t.PKI, t.CertificateKey = "", "cert-key" }},
		{"a control plane that takes pods", "debian", noTaints, nil},
		{"a first control plane", "debian", machineconfig.BootstrapSpec{Role: machineconfig.Init}, nil},
		{"a first control plane with everything", "debian", init, func(t *inventory.JoinTarget) { t.CertificateKey = "cert-key" }},
		{"a first control plane on Flatcar", "flatcar", init, nil},
		{"a first control plane without PKI", "debian", machineconfig.BootstrapSpec{Role: machineconfig.Init}, func(t *inventory.JoinTarget) { t.PKI, t.CA = "", "" }},
		{"a first control plane with two address families", "debian", machineconfig.BootstrapSpec{Role: machineconfig.Init, NodeIP: "10.0.0.21,fd00::21"}, func(t *inventory.JoinTarget) {
			t.PodCIDR, t.ServiceCIDR, t.VIP = "10.244.0.0/16,fd01::/48", "10.96.0.0/12,fd02::/112", netip.MustParseAddr("fd00::10")
		}},
	}
}

// versions are of Kubernetes: this kubeadm reads v1beta4 and v1beta3.
var versions = []string{"1.36.0", "1.35.0", "1.31.0", "1.30.4", "1.22.0"}

// onDisk writes an activation with its values into a folder and returns the path of kubeadm's configuration.
func onDisk(t *testing.T, a *machineconfig.Activation) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range a.Files {
		text := strings.ReplaceAll(inject(t, f.Text), "/etc/kubernetes/slipway/discovery.conf", dir+"/etc/kubernetes/slipway/discovery.conf")
		write(t, filepath.Join(dir, f.Path), text)
	}
	return filepath.Join(dir, "/etc/kubernetes/slipway/kubeadm.yaml")
}

func TestKubeadmAcceptsWhatWeWriteForIt(t *testing.T) {
	judges(t)
	bin := part(t, "kubeadm")
	for _, v := range versions {
		for _, c := range cases() {
			t.Run(v+" "+c.name, func(t *testing.T) {
				to := target()
				to.Kubernetes = v
				if c.to != nil {
					c.to(to)
				}
				a, _, err := kubeadm.New().Emit(input(c.spec, to, c.os))
				if err != nil {
					t.Fatal(err)
				}
				path := onDisk(t, a)
				text, _ := os.ReadFile(path)
				// A kubeadm reads old documents, but deploys its own version of Kubernetes and the one before only.
				write(t, path, strings.Replace(string(text), "kubernetesVersion: v"+v, "kubernetesVersion: v1.36.0", 1))
				if out, err := run("", bin, "config", "validate", "--config", path); err != nil || strings.Contains(out, "unknown field") {
					t.Fatalf("kubeadm config validate: %v\n%s\n%s", err, out, text)
				}
				if strings.HasPrefix(v, "1.22") || strings.HasPrefix(v, "1.30") {
					migrates(t, bin, path)
				}
			})
		}
	}
}

// migrates checks that kubeadm converts an old document.
func migrates(t *testing.T, bin, path string) {
	t.Helper()
	text, _ := os.ReadFile(path)
	if !strings.Contains(string(text), "kubeadm.k8s.io/v1beta3") {
		t.Fatalf("this kubeadm reads v1beta3, and we wrote\n%s", text)
	}
	out, err := run("", bin, "config", "migrate", "--old-config", path, "--new-config", path+".new")
	if err != nil {
		t.Fatalf("kubeadm config migrate: %v\n%s\n%s", err, out, text)
	}
	migrated, _ := os.ReadFile(path + ".new")
	if !strings.Contains(string(migrated), "kubeadm.k8s.io/v1beta4") {
		t.Errorf("migrated to something else:\n%s", migrated)
	}
}

func TestKubeadmFindsFaultsThatWeMightMake(t *testing.T) {
	judges(t)
	bin := part(t, "kubeadm")
	a, _, err := kubeadm.New().Emit(input(machineconfig.BootstrapSpec{KubeletArgs: map[string]string{"v": "2"}}, target(), "debian"))
	if err != nil {
		t.Fatal(err)
	}
	path := onDisk(t, a)
	text, _ := os.ReadFile(path)
	for old, bad := range map[string]string{
		"criSocket:":       "criSockets:",
		"value: \"2\"":     "values: \"2\"",
		"discovery.conf":   "nothing.conf",
		"node-1":           "Node_1",
		"v1beta4":          "v1beta9",
		"\"123456.0123456": "\"123456-0123456",
	} {
		if !strings.Contains(string(text), old) {
			t.Errorf("%q is not in\n%s", old, text)
		}
		if out, err := run("", bin, "config", "validate", "--config", write(t, path+".bad", strings.Replace(string(text), old, bad, 1))); err == nil {
			t.Errorf("kubeadm takes %q for %q: %s", bad, old, out)
		}
	}
}

func TestKubeadmUsesOurAuthorities(t *testing.T) {
	judges(t)
	bin, openssl := part(t, "kubeadm"), program(t, "openssl", "openssl")
	spec := machineconfig.BootstrapSpec{Role: machineconfig.Init, NodeIP: "10.0.0.21"}
	to := target()
	to.Kubernetes = "1.36.0"
	a, _, err := kubeadm.New().Emit(input(spec, to, "debian"))
	if err != nil {
		t.Fatal(err)
	}
	path := onDisk(t, a)
	dir := filepath.Join(filepath.Dir(path), "pki") // where the script copies them from
	before := map[string]string{}
	for _, name := range kubeadm.PKIFiles() {
		before[name] = pki()[name]
	}
	config, _ := os.ReadFile(path)
	cfg := write(t, path+".certs", strings.Replace(string(config), "kind: ClusterConfiguration\n", "kind: ClusterConfiguration\ncertificatesDir: "+dir+"\n", 1))
	out, err := run("", bin, "init", "phase", "certs", "all", "--config", cfg)
	if err != nil {
		t.Fatalf("kubeadm init phase certs all: %v\n%s", err, out)
	}
	for _, name := range []string{"ca", "etcd/ca", "front-proxy-ca"} {
		if !strings.Contains(out, fmt.Sprintf("Using existing %s certificate authority", name)) {
			t.Errorf("kubeadm made a %s of its own:\n%s", name, out)
		}
	}
	if !strings.Contains(out, "Using the existing \"sa\" key") {
		t.Errorf("kubeadm made a key for service accounts of its own:\n%s", out)
	}
	for name, want := range before {
		file := filepath.Join(dir, name)
		if rest, ok := strings.CutPrefix(name, "etcd-"); ok {
			file = filepath.Join(dir, "etcd", rest)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("kubeadm changed %s: %v", name, err)
		}
	}
	for leaf, ca := range map[string]string{
		"apiserver.crt": "ca.crt", "apiserver-kubelet-client.crt": "ca.crt", "etcd/server.crt": "etcd/ca.crt", "front-proxy-client.crt": "front-proxy-ca.crt",
	} {
		if out, err := run(dir, openssl, "verify", "-x509_strict", "-CAfile", ca, leaf); err != nil {
			t.Errorf("openssl verify %s: %v\n%s", leaf, err, out)
		}
	}
	if out, err := run(dir, openssl, "rsa", "-in", "sa.key", "-check", "-noout"); err != nil {
		t.Errorf("openssl rsa -check: %v\n%s", err, out)
	}
	der := openssl
	out, err = run(dir, "/bin/sh", "-c", der+" x509 -pubkey -in ca.crt | "+der+" pkey -pubin -outform der | "+der+" dgst -sha256 -hex")
	hash, hashErr := kubeadm.CAHash(pki()["ca.crt"])
	if err != nil || hashErr != nil || !strings.Contains(out, strings.TrimPrefix(hash, "sha256:")) {
		t.Errorf("the documented recipe hashes the CA to %s, we to %s (%v, %v)", out, hash, err, hashErr)
	}
	block, _ := pem.Decode([]byte(pki()["ca.crt"]))
	if _, err := x509.ParseCertificate(block.Bytes); err != nil {
		t.Error(err)
	}
}

func TestTokensAndKeysOfKubeadmFitOurQuotes(t *testing.T) {
	judges(t)
	bin := part(t, "kubeadm")
	for _, args := range [][]string{{"token", "generate"}, {"certs", "certificate-key"}} {
		out, err := run("", bin, args...)
		if err != nil {
			t.Fatal(err, out)
		}
		if v := strings.TrimSpace(out); strings.Trim(v, "abcdefghijklmnopqrstuvwxyz0123456789.") != "" {
			t.Errorf("%v made %q, which needs escapes", args, v)
		}
	}
}
