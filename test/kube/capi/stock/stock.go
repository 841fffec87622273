// Package stock owns Cluster API as others ship it, for tests: its core, its kubeadm bootstrap and control plane
// providers as processes on a test's control plane, and its workload cluster that is kept in memory. Nothing of ours is
// in it, and nothing of theirs is changed but where webhooks are reached.
package stock

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"slipway.dev/slipway/test/kube/cluster"
)

// provider is one of Cluster API's programs.
type provider struct {
	name, comment, gates string
	webhook, health      int
}

// Stack is stock Cluster API on a control plane.
type Stack struct {
	Programs   map[string]cluster.Program // by part
	Kubeconfig string                     // path of an administrator's
	client     client.Client
	hooks      []*unstructured.Unstructured // webhook configurations
}

// Start brings Cluster API's kinds into a cluster and starts its providers, and waits until they are ready. They end with
// the test; the kinds stay, without their webhooks.
func Start(t testing.TB, c *cluster.Cluster) *Stack {
	t.Helper()
	dir := t.TempDir()
	s := &Stack{Programs: map[string]cluster.Program{}, Kubeconfig: filepath.Join(dir, "kubeconfig")}
	cert, key := c.ServingCert()
	for name, text := range map[string][]byte{"kubeconfig": c.Admin(), "tls.crt": cert, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg, err := clientcmd.RESTConfigFromKubeConfig(c.Admin())
	if err != nil {
		t.Fatal(err)
	}
	cfg.QPS = -1
	if s.client, err = client.New(cfg, client.Options{Scheme: runtime.NewScheme()}); err != nil {
		t.Fatal(err)
	}
	providers := []provider{
		{name: "capi-core", comment: "core", gates: "ClusterTopology=true,MachinePool=true"},
		{name: "capi-cabpk", comment: "bootstrap/kubeadm", gates: "MachinePool=true,KubeadmBootstrapFormatIgnition=true"},
		{name: "capi-kcp", comment: "controlplane/kubeadm", gates: "ClusterTopology=true,KubeadmBootstrapFormatIgnition=true"},
	}
	texts := Manifests(t)
	t.Cleanup(s.clear)
	for i := range providers {
		p := &providers[i]
		p.webhook, p.health = cluster.FreePort(t), cluster.FreePort(t)
		s.install(t, texts[p.comment], p.webhook, c.CA())
	}
	for _, p := range providers {
		s.Programs[p.name] = cluster.Run(t, p.name, "--kubeconfig="+s.Kubeconfig, "--webhook-cert-dir="+dir, "--leader-elect=false",
			fmt.Sprintf("--webhook-port=%d", p.webhook), fmt.Sprintf("--health-addr=127.0.0.1:%d", p.health),
			"--diagnostics-address=127.0.0.1:0", "--insecure-diagnostics", "--feature-gates="+p.gates)
	}
	for _, p := range providers {
		cluster.Until(t, 3*time.Minute, p.name+" is ready", func() error {
			if err := s.Programs[p.name].Ended(); err != nil {
				t.Fatalf("%s: %v\n%s", p.name, err, s.Programs[p.name].Tail())
			}
			resp, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/readyz", p.health))
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				return fmt.Errorf("%s", resp.Status)
			}
			return nil
		})
	}
	return s
}

// Manifests are what the releases of Cluster API put into a cluster, by provider, as tools/parts.sh made them.
func Manifests(t testing.TB) map[string]string {
	t.Helper()
	text, err := os.ReadFile(cluster.Part(t, "capi-manifests"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, part := range strings.Split(string(text), "--- # ")[1:] {
		name, rest, _ := strings.Cut(part, "\n")
		out[name] = rest
	}
	return out
}

// install applies CRDs, namespace and webhooks of a provider; its Deployment and roles are for pods, which there are none
// of, and cert-manager is not needed where the control plane's own authority signs.
func (s *Stack) install(t testing.TB, text string, port int, ca []byte) {
	t.Helper()
	d := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(text)), 4096)
	var crds []*unstructured.Unstructured
	for {
		o := &unstructured.Unstructured{}
		if err := d.Decode(&o.Object); err != nil {
			break
		}
		switch kind := o.GetKind(); {
		case kind == "CustomResourceDefinition":
			if hook, found, _ := unstructured.NestedMap(o.Object, "spec", "conversion", "webhook"); found {
				redirect(hook, port, "/convert", ca)
				_ = unstructured.SetNestedMap(o.Object, hook, "spec", "conversion", "webhook")
			}
			label(o)
			crds = append(crds, o)
		case strings.HasSuffix(kind, "WebhookConfiguration"):
			hooks, _, _ := unstructured.NestedSlice(o.Object, "webhooks")
			for _, h := range hooks {
				redirect(h.(map[string]any), port, "", ca)
			}
			_ = unstructured.SetNestedSlice(o.Object, hooks, "webhooks")
			s.hooks = append(s.hooks, o)
		case kind != "Namespace":
			continue
		}
		if err := s.client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(o.DeepCopy()), client.FieldOwner("stock"), client.ForceOwnership); err != nil {
			t.Fatalf("apply %s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
	if len(crds) == 0 {
		t.Fatal("the manifests of a provider hold no CRD; run: tools/parts.sh build capi-manifests")
	}
	for _, crd := range crds {
		cluster.Until(t, time.Minute, crd.GetName()+" is served", func() error {
			if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(crd), crd); err != nil {
				return err
			}
			conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
			for _, c := range conditions {
				if c := c.(map[string]any); c["type"] == "Established" && c["status"] == "True" {
					return nil
				}
			}
			return fmt.Errorf("not established")
		})
	}
}

// label marks a CRD as clusterctl init does: clusterctl describe, move and the validators find nothing else. Ours have it
// in their manifests.
func label(crd *unstructured.Unstructured) {
	labels := crd.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels["clusterctl.cluster.x-k8s.io"] = ""
	crd.SetLabels(labels)
}

// redirect points a webhook to loopback.
func redirect(hook map[string]any, port int, path string, ca []byte) {
	in, _ := hook["clientConfig"].(map[string]any)
	if p, found, _ := unstructured.NestedString(in, "service", "path"); found {
		path = p
	}
	hook["clientConfig"] = map[string]any{"url": fmt.Sprintf("https://127.0.0.1:%d%s", port, path), "caBundle": encode(ca)}
}

// clear takes the webhooks away: nobody answers them any more.
func (s *Stack) clear() {
	for _, h := range s.hooks {
		_ = s.client.Delete(context.Background(), h)
	}
}
