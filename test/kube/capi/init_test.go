package capi_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/clusterapi"
	"slipway.dev/slipway/kubernetes/manager"
	"slipway.dev/slipway/kubernetes/standalone"
	metalv1 "slipway.dev/slipway/kubernetes/v1alpha1"
	"slipway.dev/slipway/test/kube/capi/stock"
	"slipway.dev/slipway/test/kube/cluster"
	"slipway.dev/slipway/test/kube/rig"
	"slipway.dev/slipway/test/kube/walkthrough"
)

// TestClusterctlInitInstallsSlipway: clusterctl brings stock Cluster API and our files into an empty cluster, with the commands
// of docs/cluster-api.md and a program that was built without a tag. The account that they make there may do all that our
// controllers do. Pods do not run: there are no nodes.
func TestClusterctlInitInstallsSlipway(t *testing.T) {
	s := &stage{t: t, Rig: rig.New(t, rig.Options{Hosts: 1, Schemes: []func(*runtime.Scheme) error{clusterv1.AddToScheme}})}
	control := cluster.Start(t)
	s.stack = &stock.Stack{Kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	s.must(os.WriteFile(s.stack.Kubeconfig, control.Admin(), 0o600))
	s.asDocumented()

	cfg, err := clientcmd.RESTConfigFromKubeConfig(control.Admin())
	s.must(err)
	s.Client, err = client.New(cfg, client.Options{Scheme: s.Rig.Client.Scheme()})
	s.must(err)
	provider := s.object("clusterctl.cluster.x-k8s.io/v1alpha3", "Provider", "slipway-system", "infrastructure-slipway")
	s.must(s.Client.Get(t.Context(), client.ObjectKeyFromObject(provider), provider))
	if provider.Object["version"] != "v0.1.0" || provider.Object["providerName"] != "slipway" {
		t.Errorf("clusterctl knows it as %v", provider.Object)
	}
	var pods appsv1.DeploymentList
	s.must(s.Client.List(t.Context(), &pods, client.InNamespace("slipway-system")))
	if len(pods.Items) != 1 {
		t.Fatalf("%d deployments", len(pods.Items))
	}
	s.asAccount(control, pods.Items[0].Spec.Template.Spec.ServiceAccountName)
}

// asDocumented runs the section about clusterctl init, in a folder of its own. Cluster API's own files come from here instead
// of the internet: they are added to the configuration that the first command has written.
func (s *stage) asDocumented() {
	s.t.Helper()
	page, err := os.ReadFile("../../../docs/cluster-api.md")
	s.must(err)
	_, section, found := strings.Cut(string(page), "\n## clusterctl init\n")
	if !found {
		s.t.Fatal("docs/cluster-api.md has no section about clusterctl init")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	blocks, err := walkthrough.Parse(section)
	s.must(err)
	if len(blocks) != 2 {
		s.t.Fatalf("%d blocks of shell", len(blocks))
	}
	home := s.t.TempDir()
	bin := filepath.Join(home, "bin")
	s.must(os.Mkdir(bin, 0o700))
	build, err := exec.Command("go", "build", "-ldflags", "-s -w", "-o", filepath.Join(bin, "slipway"), "slipway.dev/slipway/cmd/slipway").CombinedOutput()
	if err != nil {
		s.t.Fatalf("build slipway: %v\n%s", err, build)
	}
	s.must(os.Symlink(cluster.Part(s.t, "clusterctl"), filepath.Join(bin, "clusterctl")))
	shell, err := walkthrough.NewShell(home, []string{
		"PATH=" + bin + ":/usr/bin:/bin", "HOME=" + home, "XDG_CONFIG_HOME=" + home, "KUBECONFIG=" + s.stack.Kubeconfig,
		"CLUSTERCTL_DISABLE_VERSIONCHECK=true", "GOPROXY=off",
	})
	s.must(err)
	s.t.Cleanup(shell.Close)
	ctx, cancel := context.WithTimeout(s.t.Context(), 3*time.Minute)
	defer cancel()
	for i, b := range blocks {
		out, err := shell.Run(ctx, b)
		if err != nil {
			s.t.Fatalf("%v\n%s\nprinted:\n%s", err, b.Shell, out)
		}
		if i == 0 {
			s.config = filepath.Join(home, "clusterctl.yaml")
			s.stockRepository()
		}
	}
}

// asAccount lets the controllers install a machine with no other rights than those of an account.
func (s *stage) asAccount(control *cluster.Cluster, account string) {
	s.t.Helper()
	token, err := cluster.Client(s.t, control.Admin()).CoreV1().ServiceAccounts("slipway-system").CreateToken(s.t.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	s.must(err)
	cfg, err := clientcmd.RESTConfigFromKubeConfig(control.TokenKubeconfig(token.Status.Token))
	s.must(err)
	run, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- manager.Run(run, cfg, manager.Options{Appliance: s.Appliance(), Cluster: "init", Identity: "the-pod", Sets: []manager.Set{
			{Mode: inventory.ModeStandalone, AddToScheme: metalv1.AddToScheme, Setup: standalone.Setup},
			{Mode: inventory.ModeCAPI, AddToScheme: clusterapi.AddToScheme, Setup: clusterapi.Setup},
		}})
	}()
	s.t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			s.t.Errorf("controllers with the account's rights: %v", err)
		}
	})
	mm := &metalv1.MetalMachine{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceDefault, Name: "by-the-account"}}
	mm.Spec.OS.Profile = rig.DiskProfile
	s.must(s.Client.Create(s.t.Context(), mm))
	s.until("the machine runs", func() error {
		if err := s.Client.Get(s.t.Context(), client.ObjectKeyFromObject(mm), mm); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(mm.Status.Conditions, metalv1.Ready) {
			return fmt.Errorf("conditions are %+v", mm.Status.Conditions)
		}
		return nil
	})
	s.must(s.Client.Delete(s.t.Context(), mm))
	s.until("the machine is gone", func() error {
		err := s.Client.Get(s.t.Context(), client.ObjectKeyFromObject(mm), mm)
		if client.IgnoreNotFound(err) == nil && err != nil {
			return nil
		}
		return fmt.Errorf("it is there: %v, %+v", err, mm.Status.Conditions)
	})
}

// stockVersion is what our copies of Cluster API's files are called.
const stockVersion = "v1.14.2"

// stockRepository adds Cluster API, as its module has it, to where clusterctl looks, and cert-manager's kinds instead of
// cert-manager: nobody needs its certificates where no pod runs.
func (s *stage) stockRepository() {
	s.t.Helper()
	dir := filepath.Dir(s.config)
	texts := stock.Manifests(s.t)
	conf, err := os.ReadFile(s.config)
	s.must(err)
	write := func(text, folder, version, name string) string {
		file := filepath.Join(dir, folder, version, name)
		s.must(os.MkdirAll(filepath.Dir(file), 0o700))
		s.must(os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	var b strings.Builder
	b.Write(conf)
	for _, p := range []struct{ name, kind, folder, file, part string }{
		{"cluster-api", "CoreProvider", "cluster-api", "core-components.yaml", "core"},
		{"kubeadm", "BootstrapProvider", "bootstrap-kubeadm", "bootstrap-components.yaml", "bootstrap/kubeadm"},
		{"kubeadm", "ControlPlaneProvider", "control-plane-kubeadm", "control-plane-components.yaml", "controlplane/kubeadm"},
	} {
		write("apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\nreleaseSeries:\n- {major: 1, minor: 14, contract: v1beta2}\n", p.folder, stockVersion, "metadata.yaml")
		fmt.Fprintf(&b, "- {name: %s, type: %s, url: %q}\n", p.name, p.kind, write(texts[p.part], p.folder, stockVersion, p.file))
	}
	kinds, err := os.ReadFile(cluster.Part(s.t, "cert-manager-crds"))
	s.must(err)
	text := "apiVersion: v1\nkind: Namespace\nmetadata: {name: cert-manager}\n" + string(kinds)
	fmt.Fprintf(&b, "cert-manager:\n  version: v1.21.1\n  timeout: %s\n  url: %q\n", 5*time.Minute, write(text, "cert-manager", "v1.21.1", "cert-manager.yaml"))
	s.must(os.WriteFile(s.config, []byte(b.String()), 0o600))
}
