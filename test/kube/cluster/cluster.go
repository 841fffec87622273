// Package cluster owns a Kubernetes control plane for tests: etcd, kube-apiserver and kube-controller-manager from
// build/parts as processes on loopback, with certificates of their own. It never runs a kubelet, a scheduler or a pod,
// and nothing of it outlives its test.
package cluster

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Env switches tests on that need a control plane.
const Env = "SLIPWAY_KUBE"

// Cluster is a control plane. Its address stays the same when it is stopped and started again.
type Cluster struct {
	t   testing.TB
	dir string
	pki *pki

	etcdPort, peerPort, apiPort, managerPort int
	etcd, api, manager                       *process
}

// Skip skips a test that needs a control plane when none is asked for.
func Skip(t testing.TB) {
	t.Helper()
	if os.Getenv(Env) == "" {
		t.Skip("needs etcd and kube-apiserver; run: make test-kube RUN=" + t.Name())
	}
}

// Part returns the path of a program in build/parts, and fails the test when it is not built.
func Part(t testing.TB, name string) string {
	t.Helper()
	dir, err := os.Getwd()
	for err == nil && dir != "/" {
		if _, e := os.Stat(filepath.Join(dir, "go.mod")); e == nil {
			break
		}
		dir = filepath.Dir(dir)
	}
	path := filepath.Join(dir, "build", "parts", name)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%s is not built; run: tools/parts.sh build %s", path, name)
	}
	return path
}

// Start starts a control plane and waits until it is ready. It is stopped at the end of the test; the logs are shown
// when the test has failed.
func Start(t testing.TB) *Cluster {
	t.Helper()
	Skip(t)
	dir, err := os.MkdirTemp("", "slipway-kube-")
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{t: t, dir: dir}
	t.Cleanup(c.clear)
	c.etcdPort, c.peerPort, c.apiPort, c.managerPort = freePort(t), freePort(t), freePort(t), freePort(t)
	c.pki = newPKI(t, dir)
	c.startEtcd()
	c.StartAPI()
	c.StartManager()
	return c
}

// clear kills the programs: a gentle end takes the API server more than a second, and some twenty control planes end in the tests.
func (c *Cluster) clear() {
	for _, p := range []*process{c.manager, c.api, c.etcd} {
		p.kill()
		if c.t.Failed() {
			c.t.Log(p.tail())
		}
	}
	_ = os.RemoveAll(c.dir)
}

func (c *Cluster) file(name string) string { return filepath.Join(c.dir, name) }

// Server returns the URL of the API server.
func (c *Cluster) Server() string { return "https://" + c.Endpoint() }

// Endpoint returns host and port of the API server.
func (c *Cluster) Endpoint() string { return fmt.Sprintf("127.0.0.1:%d", c.apiPort) }

// CA returns the certificate authority of the cluster, PEM.
func (c *Cluster) CA() []byte { return c.pki.caPEM }

// Authority is the certificate authority of the cluster with its key, PEM.
func (c *Cluster) Authority() (cert, key []byte) {
	c.t.Helper()
	key, err := os.ReadFile(c.file("ca.key"))
	must(c.t, err)
	return c.pki.caPEM, key
}

// CAHash returns the hash of the certificate authority's public key as kubeadm writes it.
func (c *Cluster) CAHash() string {
	return fmt.Sprintf("sha256:%x", sha256.Sum256(c.pki.ca.RawSubjectPublicKeyInfo))
}

func (c *Cluster) startEtcd() {
	client, peer := fmt.Sprintf("http://127.0.0.1:%d", c.etcdPort), fmt.Sprintf("http://127.0.0.1:%d", c.peerPort)
	c.etcd = start(c.t, c.file("etcd.log"), Part(c.t, "etcd"), "--data-dir="+c.file("etcd"), "--unsafe-no-fsync",
		"--listen-client-urls="+client, "--advertise-client-urls="+client, "--listen-peer-urls="+peer,
		"--initial-advertise-peer-urls="+peer, "--initial-cluster=default="+peer)
}

// StartAPI starts the API server and waits until it is ready.
func (c *Cluster) StartAPI() {
	c.t.Helper()
	c.api = start(c.t, c.file("kube-apiserver.log"), Part(c.t, "kube-apiserver"),
		fmt.Sprintf("--etcd-servers=http://127.0.0.1:%d", c.etcdPort), "--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", c.apiPort), "--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none",
		"--tls-cert-file="+c.file("server.crt"), "--tls-private-key-file="+c.file("server.key"), "--client-ca-file="+c.file("ca.crt"),
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--enable-bootstrap-token-auth", "--allow-privileged",
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file="+c.file("server.key"),
		"--service-account-signing-key-file="+c.file("server.key"), "--service-cluster-ip-range=10.96.0.0/16")
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(c.pki.caPEM)
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true,
	}}
	Until(c.t, 60*time.Second, "the API server is ready", func() error {
		if err := c.api.ended(); err != nil {
			c.t.Fatalf("kube-apiserver: %v\n%s", err, c.api.tail())
		}
		resp, err := client.Get(c.Server() + "/readyz")
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

// StopAPI stops the API server: the cluster is down, and remembers everything.
func (c *Cluster) StopAPI() { c.api.stop() }

// HangAPI lets the API server answer nothing any more, while its connections stay: StopAPI ends that.
func (c *Cluster) HangAPI() {
	c.t.Helper()
	if err := c.api.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		c.t.Fatal(err)
	}
}

// StartManager starts the controllers that sign and approve certificate requests, look after bootstrap tokens, and say how
// many pods their budgets let go.
func (c *Cluster) StartManager() {
	kubeconfig := c.file("admin.conf")
	if err := os.WriteFile(kubeconfig, c.Admin(), 0o600); err != nil {
		c.t.Fatal(err)
	}
	c.manager = start(c.t, c.file("kube-controller-manager.log"), Part(c.t, "kube-controller-manager"), "--kubeconfig="+kubeconfig,
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", c.managerPort), "--leader-elect=false",
		"--authentication-skip-lookup", "--controllers=csrsigning,csrapproving,csrcleaner,bootstrapsigner,tokencleaner,disruption",
		"--cluster-signing-cert-file="+c.file("ca.crt"), "--cluster-signing-key-file="+c.file("ca.key"))
}

// Admin returns the kubeconfig of an administrator.
func (c *Cluster) Admin() []byte { return c.Kubeconfig("admin", "system:masters") }

// Kubeconfig returns a kubeconfig with a client certificate for a user in groups.
func (c *Cluster) Kubeconfig(user string, groups ...string) []byte {
	c.t.Helper()
	cert, key := c.pki.client(c.t, user, groups)
	return c.kubeconfig(&clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key})
}

// TokenKubeconfig returns a kubeconfig of whoever bears a token.
func (c *Cluster) TokenKubeconfig(token string) []byte {
	c.t.Helper()
	return c.kubeconfig(&clientcmdapi.AuthInfo{Token: token})
}

// CertKubeconfig returns a kubeconfig with a client certificate that was got elsewhere.
func (c *Cluster) CertKubeconfig(cert, key []byte) []byte {
	c.t.Helper()
	return c.kubeconfig(&clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key})
}

func (c *Cluster) kubeconfig(user *clientcmdapi.AuthInfo) []byte {
	c.t.Helper()
	out, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"test": {Server: c.Server(), CertificateAuthorityData: c.pki.caPEM}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"user": user},
		Contexts:       map[string]*clientcmdapi.Context{"test": {Cluster: "test", AuthInfo: "user"}},
		CurrentContext: "test",
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return out
}

// Client returns a client with a kubeconfig.
func Client(t testing.TB, kubeconfig []byte) *kubernetes.Clientset {
	t.Helper()
	cfg, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	cfg.QPS = -1
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// Until tries something until it succeeds, and fails the test when it does not in time.
func Until(t testing.TB, limit time.Duration, what string, try func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("waited %s until %s: %v", limit, what, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// freePort returns a port of loopback that nothing has at the moment. It is below those that the kernel gives to outgoing
// connections (net.ipv4.ip_local_port_range begins at 32768): none of those takes it before a program listens there.
func freePort(t testing.TB) int {
	t.Helper()
	const first, n = 20000, 12000
	var err error
	for range 100 {
		var l net.Listener
		if l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", first+rand.IntN(n))); err == nil {
			defer l.Close()
			return l.Addr().(*net.TCPAddr).Port
		}
	}
	t.Fatal(err)
	return 0
}
