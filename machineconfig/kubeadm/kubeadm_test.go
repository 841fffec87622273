package kubeadm

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"flag"
	"math/big"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
	"slipway.dev/slipway/machineconfig/layer"
	"slipway.dev/slipway/machineconfig/validation"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// testCA is a real authority, made once by NewPKI.
func testCA(t testing.TB) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func testTarget(t testing.TB) *inventory.JoinTarget {
	return &inventory.JoinTarget{
		Name: "prod", Endpoint: "10.0.0.10:6443", Kubernetes: "1.35.0", CA: testCA(t), Kubeconfig: "admin", PKI: "prod-pki",
		VIP: netip.MustParseAddr("10.0.0.10"), VIPInterface: "eno1", PodCIDR: "10.244.0.0/16", ServiceCIDR: "10.96.0.0/12",
	}
}

func testInput(t testing.TB, spec machineconfig.BootstrapSpec, change ...func(*inventory.JoinTarget)) machineconfig.BootstrapInput {
	to := testTarget(t)
	for _, f := range change {
		f(to)
	}
	return machineconfig.BootstrapInput{
		Config: &machineconfig.Config{Host: machineconfig.HostIdentity{Hostname: "node-1"}}, Spec: spec, Target: to,
		OS: machineconfig.Target{OS: "debian", Release: "12", Arch: inventory.X8664},
	}
}

// show writes an activation for people to read.
func show(a *machineconfig.Activation) string {
	var b strings.Builder
	b.WriteString("exec " + strings.Join(a.Exec, " ") + "\nready " + a.ReadyPath + "\nsentinel " + a.Sentinel + "\nafter " + strings.Join(a.After, " ") +
		"\ncleanup\n  " + strings.Join(a.Cleanup, "\n  ") + "\n")
	for _, f := range a.Files {
		b.WriteString("\n=== " + f.Mode.String() + " " + f.Path + "\n" + string(late.Redact([]byte(f.Text))))
		if !strings.HasSuffix(f.Text, "\n") {
			b.WriteString("\n")
		}
	}
	return b.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got):\n%s", name, d)
	}
}

func TestActivations(t *testing.T) {
	full := machineconfig.BootstrapSpec{
		NodeName: "node-1.example.com", NodeIP: "10.0.0.21", ProviderID: "slipway://ams/node-1/01JABC",
		Labels:      map[string]string{"rack": "r1", "node-role.kubernetes.io/worker": "", "node.kubernetes.io/instance-type": "m1"},
		Taints:      []machineconfig.Taint{{Key: "a/b", Value: "c", Effect: "NoSchedule"}},
		KubeletArgs: map[string]string{"v": "2"}, Options: map[string]string{"ignorePreflightErrors": "NumCPU,Mem", "install.repoURL": "https://x/"},
	}
	old := func(to *inventory.JoinTarget) { to.Kubernetes = "v1.28.3" }
	for name, c := range map[string]struct {
		role   machineconfig.Role
		os     string
		change func(*inventory.JoinTarget)
	}{
		"worker":             {machineconfig.Worker, "debian", nil},
		"worker-v1beta3":     {machineconfig.Worker, "flatcar", old},
		"control-plane":      {machineconfig.ControlPlane, "debian", nil},
		"control-plane-key":  {machineconfig.ControlPlane, "debian", func(to *inventory.JoinTarget) { to.PKI, to.CertificateKey = "", "cert-key" }},
		"init":               {machineconfig.Init, "debian", nil},
		"init-flatcar-beta3": {machineconfig.Init, "flatcar", func(to *inventory.JoinTarget) { old(to); to.CertificateKey = "cert-key" }},
	} {
		t.Run(name, func(t *testing.T) {
			in := testInput(t, full)
			in.Spec.Role, in.OS.OS = c.role, c.os
			if c.change != nil {
				c.change(in.Target)
			}
			a, _, err := New().Emit(in)
			if err != nil {
				t.Fatal(err)
			}
			again, _, _ := New().Emit(in)
			if d := cmp.Diff(a, again); d != "" {
				t.Errorf("a second time it is different:\n%s", d)
			}
			golden(t, name, show(a))
		})
	}
}

func TestSpecificationsThatAreRefused(t *testing.T) {
	opt := func(k, v string) machineconfig.BootstrapSpec {
		return machineconfig.BootstrapSpec{Options: map[string]string{k: v}}
	}
	for name, c := range map[string]struct {
		spec   machineconfig.BootstrapSpec
		change func(*inventory.JoinTarget)
		want   string // in the message
	}{
		"a role that is none":            {machineconfig.BootstrapSpec{Role: "boss"}, nil, "/bootstrap/role"},
		"no version":                     {machineconfig.BootstrapSpec{}, func(to *inventory.JoinTarget) { to.Kubernetes = "" }, "/bootstrap/version"},
		"half a version":                 {machineconfig.BootstrapSpec{Version: "1.35"}, nil, "/bootstrap/version"},
		"a version too old":              {machineconfig.BootstrapSpec{Version: "1.21.9"}, nil, "too old"},
		"a node name with capitals":      {machineconfig.BootstrapSpec{NodeName: "Node"}, nil, "/bootstrap/nodeName"},
		"a label that is none":           {machineconfig.BootstrapSpec{Labels: map[string]string{"a b": ""}}, nil, "/bootstrap/labels"},
		"a label with a comma":           {machineconfig.BootstrapSpec{Labels: map[string]string{"a": "b,c=d"}}, nil, "/bootstrap/labels"},
		"a taint without effect":         {machineconfig.BootstrapSpec{Taints: []machineconfig.Taint{{Key: "a"}}}, nil, "/bootstrap/taints/a"},
		"labels among the arguments":     {machineconfig.BootstrapSpec{KubeletArgs: map[string]string{"node-labels": "a=b"}}, nil, "/bootstrap/kubeletArgs/node-labels"},
		"an argument with dashes":        {machineconfig.BootstrapSpec{KubeletArgs: map[string]string{"--v": "2"}}, nil, "/bootstrap/kubeletArgs"},
		"an argument of two lines":       {machineconfig.BootstrapSpec{KubeletArgs: map[string]string{"v": "2\n3"}}, nil, "/bootstrap/kubeletArgs"},
		"a node address that is none":    {machineconfig.BootstrapSpec{NodeIP: "10.0.0"}, nil, "/bootstrap/nodeIP"},
		"a provider id without scheme":   {machineconfig.BootstrapSpec{ProviderID: "node"}, nil, "/bootstrap/providerID"},
		"a socket that is a path":        {machineconfig.BootstrapSpec{CRISocket: "/run/x.sock"}, nil, "/bootstrap/criSocket"},
		"an option that does not exist":  {opt("ignorePreflightError", "x"), nil, "/bootstrap/options/ignorePreflightError"},
		"a check with a space":           {opt("ignorePreflightErrors", "a b"), nil, "/bootstrap/options/ignorePreflightErrors"},
		"a port out of range":            {opt("bindPort", "70000"), nil, "/bootstrap/options/bindPort"},
		"a discovery of neither kind":    {opt("discovery", "guess"), nil, "/bootstrap/options/discovery"},
		"a hash that is none":            {opt("caCertHashes", "sha256:1"), nil, "/bootstrap/options/caCertHashes"},
		"no tries":                       {opt("tries", "0"), nil, "/bootstrap/options/tries"},
		"an endpoint without port":       {machineconfig.BootstrapSpec{}, func(to *inventory.JoinTarget) { to.Endpoint = "10.0.0.1" }, "host:port"},
		"an endpoint with a script":      {machineconfig.BootstrapSpec{}, func(to *inventory.JoinTarget) { to.Endpoint = "$(reboot):6443" }, "host:port"},
		"no CA and no hash":              {machineconfig.BootstrapSpec{}, func(to *inventory.JoinTarget) { to.CA = "" }, "has no CA"},
		"hashes and discovery by file":   {machineconfig.BootstrapSpec{Options: map[string]string{"discovery": "file", "caCertHashes": "sha256:" + strings.Repeat("0", 64)}}, func(to *inventory.JoinTarget) { to.CA = "" }, "has no CA"},
		"a CA that is none":              {machineconfig.BootstrapSpec{}, func(to *inventory.JoinTarget) { to.CA = "x" }, "not a PEM certificate"},
		"nothing to authenticate with":   {machineconfig.BootstrapSpec{}, func(to *inventory.JoinTarget) { to.Kubeconfig = "" }, "neither a kubeconfig nor a token"},
		"a control plane without PKI":    {machineconfig.BootstrapSpec{Role: machineconfig.ControlPlane}, func(to *inventory.JoinTarget) { to.PKI = "" }, "neither PKI nor certificateKey"},
		"a CA that kubeadm would remake": {machineconfig.BootstrapSpec{Role: machineconfig.Init}, func(to *inventory.JoinTarget) { to.PKI = "" }, "another CA"},
		"an address on no interface":     {machineconfig.BootstrapSpec{Role: machineconfig.ControlPlane}, func(to *inventory.JoinTarget) { to.VIPInterface = "" }, "interface"},
		"an image with a quote":          {machineconfig.BootstrapSpec{Role: machineconfig.Init}, func(to *inventory.JoinTarget) { to.VIPImage = "a\"b" }, "container image"},
	} {
		t.Run(name, func(t *testing.T) {
			in := testInput(t, c.spec)
			if c.change != nil {
				c.change(in.Target)
			}
			a, _, err := New().Emit(in)
			var e *inventory.Error
			if !errors.As(err, &e) || e.Kind != inventory.Invalid || !strings.Contains(e.Msg, c.want) || a != nil {
				t.Errorf("got %v, %v", a, err)
			}
		})
	}
	in := testInput(t, machineconfig.BootstrapSpec{})
	in.Target = nil
	if _, _, err := New().Emit(in); err == nil || !strings.Contains(err.Error(), "join target") {
		t.Errorf("without a target: %v", err)
	}
}

func TestNothingSecretStandsInTheFiles(t *testing.T) {
	for _, role := range []machineconfig.Role{machineconfig.Worker, machineconfig.ControlPlane, machineconfig.Init} {
		in := testInput(t, machineconfig.BootstrapSpec{Role: role}, func(to *inventory.JoinTarget) { to.CertificateKey = "cert-key" })
		a, _, err := New().Emit(in)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range a.Files {
			for _, ref := range late.References([]byte(f.Text)) {
				if f.Mode != 0o600 || !slices.Contains(a.Cleanup, f.Path) {
					t.Errorf("%s: %s holds %s with mode %s, and is not cleaned up", role, f.Path, ref, f.Mode)
				}
			}
			if f.IsVolatile() {
				t.Errorf("%s: %s is gone after a reboot in the middle", role, f.Path)
			}
			if late.Retag(f.Text, late.Percent) == f.Text && late.HasMarker(f.Text) {
				t.Errorf("%s: %s has markers that provisioners cannot encode", role, f.Path)
			}
		}
	}
}

func TestTaintsNilKeepsAndEmptyTakesAway(t *testing.T) {
	for want, taints := range map[string][]machineconfig.Taint{"": nil, "  taints: []\n": {}, "  taints:\n    - key: a\n": {{Key: "a", Effect: "NoExecute"}}} {
		a, _, err := New().Emit(testInput(t, machineconfig.BootstrapSpec{Taints: taints}))
		if err != nil {
			t.Fatal(err)
		}
		if text := a.Files[0].Text; want == "" && strings.Contains(text, "taints") || !strings.Contains(text, want) {
			t.Errorf("for %v:\n%s", taints, text)
		}
	}
}

func TestRequirements(t *testing.T) {
	_, r, err := New().Emit(testInput(t, machineconfig.BootstrapSpec{Role: machineconfig.Init}, func(to *inventory.JoinTarget) { to.PodCIDR = "fd01::/48" }))
	if err != nil {
		t.Fatal(err)
	}
	want := machineconfig.Requirements{
		Binaries: []string{"conntrack", "containerd", "crictl", "kubeadm", "kubectl", "kubelet", "socat"}, Version: "1.35.0",
		Modules: []string{"br_netfilter", "overlay"}, NoSwap: true, Ports: []int{2379, 2380, 6443, 10250, 10257, 10259},
		Sysctl: map[string]string{
			"net.bridge.bridge-nf-call-ip6tables": "1", "net.bridge.bridge-nf-call-iptables": "1", "net.ipv4.ip_forward": "1",
			"net.ipv6.conf.all.forwarding": "1",
		},
	}
	if d := cmp.Diff(want, r); d != "" {
		t.Error(d)
	}
	_, r, err = New().Emit(testInput(t, machineconfig.BootstrapSpec{CRISocket: "unix:///run/crio/crio.sock"}))
	if err != nil || slices.Contains(r.Binaries, "containerd") || !cmp.Equal(r.Ports, []int{10250}) {
		t.Errorf("a worker with CRI-O needs %v, %v: %v", r.Binaries, r.Ports, err)
	}
}

func TestFindingsSayWhatIsLeftOut(t *testing.T) {
	in := testInput(t, machineconfig.BootstrapSpec{
		Role: machineconfig.Init, Labels: map[string]string{"node-role.kubernetes.io/gpu": "", "a": "b"}, Options: map[string]string{"unsafeSkipCAVerification": "true"},
	}, func(to *inventory.JoinTarget) { to.PKI, to.CA = "", "" })
	var codes []string
	for _, f := range New().Findings(in) {
		codes = append(codes, f.Path+" "+f.Code)
	}
	want := []string{"/bootstrap/labels/node-role.kubernetes.io~1gpu controller-sets", "/bootstrap/target no-pki", "/bootstrap/options/unsafeSkipCAVerification unverified"}
	if d := cmp.Diff(want, codes); d != "" {
		t.Error(d)
	}
}

func TestNewPKIMakesAllFilesForTenYears(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	p, err := NewPKI(now, nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for name := range p {
		names = append(names, name)
	}
	slices.Sort(names)
	if d := cmp.Diff(PKIFiles(), names); d != "" {
		t.Error(d)
	}
	for _, name := range []string{"ca.crt", "etcd-ca.crt", "front-proxy-ca.crt"} {
		block, _ := pem.Decode([]byte(p[name]))
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		if !cert.IsCA || cert.CheckSignatureFrom(cert) != nil || !cert.NotAfter.Equal(now.AddDate(10, 0, 0)) || !cert.NotBefore.Before(now) {
			t.Errorf("%s: %s to %s", name, cert.NotBefore, cert.NotAfter)
		}
	}
	if _, err := NewPKI(now, strings.NewReader("")); err == nil {
		t.Error("made keys out of nothing")
	}
}

func TestCAHashRefusesWhatIsNoAuthority(t *testing.T) {
	if h, err := CAHash(testCA(t)); err != nil || !hashRE.MatchString(h) {
		t.Errorf("%s, %v", h, err)
	}
	for _, bad := range []string{"", "x", strings.Replace(testCA(t), "MII", "AAA", 1)} {
		if h, err := CAHash(bad); err == nil {
			t.Errorf("%q has hash %s", bad, h)
		}
	}
}

func FuzzEmit(f *testing.F) {
	f.Add("worker", "1.35.0", "n", "a=b", "10.0.0.1", "v=2", "10.0.0.10:6443", "tries=2", true)
	f.Add("init", "1.28.0", "n.x", "a/b=c", "fd00::1", "x=y z", "api:6443", "certSANs=a,b", false)
	ca := testCA(f)
	f.Fuzz(func(t *testing.T, role, version, name, label, ip, arg, endpoint, option string, hasCA bool) {
		kv := func(s string) map[string]string {
			k, v, _ := strings.Cut(s, "=")
			return map[string]string{k: v}
		}
		to := &inventory.JoinTarget{Name: "t", Endpoint: endpoint, Kubernetes: version, Token: "tok", PKI: "p"}
		if hasCA {
			to.CA = ca
		}
		a, _, err := New().Emit(machineconfig.BootstrapInput{
			Spec:   machineconfig.BootstrapSpec{Role: machineconfig.Role(role), NodeName: name, Labels: kv(label), NodeIP: ip, KubeletArgs: kv(arg), Options: kv(option)},
			Target: to,
		})
		if (a == nil) == (err == nil) {
			t.Fatalf("%v and %v", a, err)
		}
		var e *inventory.Error
		if err != nil && !errors.As(err, &e) {
			t.Fatalf("an error for nobody: %v", err)
		}
	})
}

// emit returns the text of kubeadm's configuration.
func emitConfig(t *testing.T, spec machineconfig.BootstrapSpec, change ...func(*inventory.JoinTarget)) string {
	t.Helper()
	a, _, err := New().Emit(testInput(t, spec, change...))
	if err != nil {
		t.Fatal(err)
	}
	return a.Files[0].Text
}

func TestEachKubeadmGetsTheVersionItReads(t *testing.T) {
	for v, want := range map[string]string{"1.22.0": "v1beta3", "v1.30.14": "v1beta3", "1.31.0-rc.1": "v1beta4", "1.31.0": "v1beta4", "1.40.2": "v1beta4"} {
		if text := emitConfig(t, machineconfig.BootstrapSpec{Version: v}); !strings.HasPrefix(text, "apiVersion: kubeadm.k8s.io/"+want+"\n") {
			t.Errorf("%s gets\n%s", v, text)
		}
	}
}

func TestWhatIsKnownOfTheClusterIsVerified(t *testing.T) {
	text := emitConfig(t, machineconfig.BootstrapSpec{Options: map[string]string{"discovery": "token", "unsafeSkipCAVerification": "true"}})
	if hash, _ := CAHash(testCA(t)); strings.Contains(text, "unsafe") || !strings.Contains(text, hash) {
		t.Errorf("the CA is known, and still\n%s", text)
	}
}

func TestAControlPlaneWithPKINeedsNoCertificateKey(t *testing.T) {
	text := emitConfig(t, machineconfig.BootstrapSpec{Role: machineconfig.ControlPlane}, func(to *inventory.JoinTarget) { to.CertificateKey = "k" })
	if strings.Contains(text, "certificateKey") {
		t.Errorf("it has one:\n%s", text)
	}
}

func TestCAHashRefusesAServersCertificate(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "api"}}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	if h, err := CAHash(encodePEM("CERTIFICATE", der)); err == nil || !strings.Contains(err.Error(), "api") {
		t.Errorf("%s, %v", h, err)
	}
}

// TestWhatRealFilesSayOfAWorkerIsTaken reads a layer as people write them: a list of ignored errors, patches, numbers.
func TestWhatRealFilesSayOfAWorkerIsTaken(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "worker-options.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	l, r := layer.Parse(string(text), "layer")
	c, more := layer.Merge(l)
	if r = append(append(r, more...), validation.Validate(c)...); len(r) > 0 {
		t.Fatal(r)
	}
	a, _, err := New().Emit(testInput(t, *c.Bootstrap))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"patches:\n  directory: /etc/kubernetes/patches\n", "ignorePreflightErrors:\n    - Mem\n", "value: \"250\"", "value: 192.0.2.10,2001:db8::10"} {
		if !strings.Contains(show(a), want) {
			t.Errorf("%q is not in\n%s", want, show(a))
		}
	}
}

func TestEachComponentGetsItsArguments(t *testing.T) {
	options := machineconfig.Options{
		"apiServer.audit-log-maxage": "30", "apiServer.enable-admission-plugins": "NodeRestriction,PodSecurity\n", "controllerManager.bind-address": "0.0.0.0",
		"scheduler.bind-address": "0.0.0.0", "etcd.listen-metrics-urls": "http://0.0.0.0:2381", "featureGates": "EtcdLearnerMode=true,WaitForAllControlPlaneComponents=false",
		"patches": "/etc/kubernetes/patches",
	}
	a, _, err := New().Emit(testInput(t, machineconfig.BootstrapSpec{Role: machineconfig.Init, Options: options}))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"apiServer:\n  extraArgs:\n    - name: audit-log-maxage\n      value: \"30\"\n    - name: enable-admission-plugins\n      value: NodeRestriction,PodSecurity\n",
		"controllerManager:\n  extraArgs:\n    - name: bind-address\n      value: 0.0.0.0\n", "scheduler:\n  extraArgs:\n    - name: bind-address\n",
		"etcd:\n  local:\n    extraArgs:\n      - name: listen-metrics-urls\n        value: http://0.0.0.0:2381\n",
		"featureGates:\n  EtcdLearnerMode: true\n  WaitForAllControlPlaneComponents: false\n", "patches:\n  directory: /etc/kubernetes/patches\n",
	} {
		if !strings.Contains(show(a), want) {
			t.Errorf("%q is not in\n%s", want, show(a))
		}
	}
	for option, value := range map[string]string{"apiServer.--v": "2", "apiServer.v": "a\x01", "featureGates": "X", "patches": "relative", "proxy.v": "2"} {
		_, _, err := New().Emit(testInput(t, machineconfig.BootstrapSpec{Role: machineconfig.Init, Options: machineconfig.Options{option: value}}))
		if err == nil || !strings.Contains(err.Error(), "/bootstrap/options/"+option) {
			t.Errorf("%s: %q is answered by %v", option, value, err)
		}
	}
}
