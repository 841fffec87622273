package walkthrough

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	metalv1 "slipway.dev/slipway/kubernetes/v1alpha1"
	"slipway.dev/slipway/test/kube/cluster"
)

// TestAClusterFromAnEmptyRack runs docs/walkthrough-standalone.md. What kubeadm would do on the machines is done here: the
// first control plane starts etcd and an API server with the authorities that Slipway has made, and nodes appear in it.
func TestAClusterFromAnEmptyRack(t *testing.T) {
	s := newStage(t, 2)
	ctx, stop := context.WithCancel(s.ctx)
	made := &kubeadm{stage: s, joined: map[string]bool{}, dir: t.TempDir()}
	done := make(chan struct{})
	go func() {
		defer close(done)
		made.play(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-done
		if t.Failed() {
			t.Logf("the machines: %v", made.err)
		}
	})
	s.walk(chapter{page: "walkthrough-standalone.md", until: withoutRack})
	stop()
	<-done
	if made.client == nil {
		t.Error("no cluster was made")
	}
	if !made.looked {
		t.Errorf("nobody looked for secrets in /metrics: %v", made.err)
	}
}

// kubeadm is what happens on machines that are to be a cluster.
type kubeadm struct {
	*stage
	dir    string
	client client.Client // of the new cluster, nil before it is made
	joined map[string]bool
	looked bool  // for secrets in the server's figures
	err    error // the last that went wrong
}

func (k *kubeadm) play(ctx context.Context) {
	for ; ctx.Err() == nil; time.Sleep(200 * time.Millisecond) {
		var all metalv1.MetalMachineList
		if k.stage.client.List(ctx, &all) != nil {
			continue // the kinds are not there yet
		}
		for _, m := range all.Items {
			comes := m.Status.Phase == metalv1.PhaseJoining || m.Status.Phase == metalv1.PhaseRunning // its node may be there without being ready
			if comes && !k.joined[m.Name] {
				if err := k.start(ctx, &m); err != nil {
					k.err = fmt.Errorf("%s: %w", m.Name, err)
					continue
				}
				k.joined[m.Name] = true
				if !slices.Contains(m.Spec.Roles, metalv1.RoleControlPlane) {
					k.err = k.metricsAreClean(ctx)
				}
			}
		}
	}
}

// start is the first boot of a machine.
func (k *kubeadm) start(ctx context.Context, m *metalv1.MetalMachine) error {
	if k.client == nil {
		if !slices.Contains(m.Spec.Roles, metalv1.RoleControlPlane) {
			return errors.New("a worker came before the control plane")
		}
		if _, err := os.Stat(filepath.Join(k.home, "asked")); err != nil {
			return errors.New("the page has not asked yet what the worker waits for")
		}
		if err := k.init(ctx, m.Namespace); err != nil {
			return err
		}
	}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.Name}, Spec: corev1.NodeSpec{ProviderID: m.Spec.ProviderID}}
	if err := k.client.Create(ctx, n); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	if err := k.client.Get(ctx, client.ObjectKeyFromObject(n), n); err != nil {
		return err
	}
	before := n.DeepCopy()
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}}
	n.Status.NodeInfo.KubeletVersion = m.Spec.Versions.Kubelet
	return k.client.Status().Patch(ctx, n, client.MergeFrom(before)) // Slipway labels the node at the same time
}

// init makes the cluster at the address that the page names.
func (k *kubeadm) init(ctx context.Context, namespace string) error {
	var s corev1.Secret
	if err := k.stage.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "prod-kubeconfig"}, &s); err != nil {
		return err
	}
	var pki map[string]string
	if err := yaml.Unmarshal(s.Data["pki"], &pki); err != nil {
		return err
	}
	pair, err := tls.X509KeyPair([]byte(pki["ca.crt"]), []byte(pki["ca.key"]))
	if err != nil {
		return err
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: "kube-apiserver"}, IPAddresses: []net.IP{net.IPv4(10, 0, 0, 100)},
		NotBefore: pair.Leaf.NotBefore, NotAfter: pair.Leaf.NotAfter, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, pair.Leaf, key.Public(), pair.PrivateKey)
	if err != nil {
		return err
	}
	for name, text := range map[string][]byte{
		"ca.crt": []byte(pki["ca.crt"]), "sa.key": []byte(pki["sa.key"]), "sa.pub": []byte(pki["sa.pub"]),
		"server.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		"server.key": pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}),
	} {
		if err := os.WriteFile(filepath.Join(k.dir, name), text, 0o600); err != nil {
			return err
		}
	}
	etcd, peer := fmt.Sprintf("http://127.0.0.1:%d", cluster.FreePort(k.t)), fmt.Sprintf("http://127.0.0.1:%d", cluster.FreePort(k.t))
	cluster.Run(k.t, "etcd", "--data-dir="+filepath.Join(k.dir, "etcd"), "--unsafe-no-fsync", "--listen-client-urls="+etcd, "--advertise-client-urls="+etcd,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=default="+peer)
	file := func(name string) string { return filepath.Join(k.dir, name) }
	cluster.Run(k.t, "kube-apiserver", "--etcd-servers="+etcd, "--bind-address=10.0.0.100", "--secure-port=6443", "--advertise-address=10.0.0.100", "--endpoint-reconciler-type=none",
		"--tls-cert-file="+file("server.crt"), "--tls-private-key-file="+file("server.key"), "--client-ca-file="+file("ca.crt"), "--authorization-mode=Node,RBAC",
		"--enable-bootstrap-token-auth", "--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file="+file("sa.pub"),
		"--service-account-signing-key-file="+file("sa.key"), "--service-cluster-ip-range=10.97.0.0/16")
	if err := k.awaitAPI(ctx, []byte(pki["ca.crt"])); err != nil {
		return err
	}
	c := k.newClient(s.Data["value"])
	err = c.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kubeadm-config"}, Data: map[string]string{"ClusterConfiguration": "kubernetesVersion: v1.36.3\n"},
	})
	if err != nil {
		return err
	}
	k.client = c
	return nil
}

// awaitAPI waits until the new cluster answers.
func (k *kubeadm) awaitAPI(ctx context.Context, ca []byte) error {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(bytes.TrimSpace(ca))
	c := &http.Client{Timeout: time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true}}
	for {
		resp, err := c.Get("https://10.0.0.100:6443/readyz")
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the new API server: %w", ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
}
