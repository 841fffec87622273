package kube_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"slipway.dev/slipway/test/kube/cluster"
)

// kubeadm runs the real kubeadm.
func (l *lab) kubeadm(args ...string) (string, error) {
	l.t.Helper()
	cmd := exec.CommandContext(l.t.Context(), cluster.Part(l.t, "kubeadm"), args...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// kubeadmRoles does to the cluster what "kubeadm init" does for nodes that join, with kubeadm itself.
func (l *lab) kubeadmRoles() {
	l.t.Helper()
	dir := l.t.TempDir()
	admin, config := filepath.Join(dir, "admin.conf"), filepath.Join(dir, "init.yaml")
	l.must(os.WriteFile(admin, l.Admin(), 0o600))
	l.must(os.WriteFile(config, fmt.Appendf(nil, `apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
nodeRegistration: {name: cp, criSocket: "unix:///run/containerd/containerd.sock"}
localAPIEndpoint: {advertiseAddress: 192.0.2.1}
bootstrapTokens: []
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.36.3
controlPlaneEndpoint: %s
`, l.Endpoint()), 0o600))
	for _, phase := range [][]string{{"upload-config", "kubeadm"}, {"upload-config", "kubelet"}, {"bootstrap-token"}, {"addon", "kube-proxy"}} {
		args := append([]string{"init", "phase"}, phase...)
		if out, err := l.kubeadm(append(args, "--kubeconfig="+admin, "--config="+config)...); err != nil {
			l.t.Fatalf("kubeadm %v: %v\n%s", phase, err, out)
		}
	}
	_, err := l.admin.CoreV1().Secrets("kube-system").Create(l.t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "kubeadm-certs"}}, metav1.CreateOptions{})
	l.must(err)
}

// kubeadmJoin lets the real kubeadm discover the cluster and read its configuration with a token of ours.
func (l *lab) kubeadmJoin(t *testing.T) {
	defer l.sub(t)()
	h := l.host()
	target := l.target()
	for _, tt := range []struct{ name, discovery string }{
		{"with a file that holds the CA", "file: {kubeConfigPath: %s}"},
		{"with the token", "bootstrapToken: {token: %s, apiServerEndpoint: %s, caCertHashes: [%q]}"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			defer l.sub(t)()
			dir := t.TempDir()
			var discovery string
			if strings.HasPrefix(tt.discovery, "file") {
				path := filepath.Join(dir, "discovery.conf")
				l.must(os.WriteFile(path, l.kubeconfigOfNobody(), 0o600))
				discovery = fmt.Sprintf(tt.discovery, path)
			} else {
				target.CA = "" // then the token signs cluster-info
			}
			token, err := l.joiner.Mint(t.Context(), target, h, session(h, len(tt.name)), h.Name)
			l.must(err)
			if discovery == "" {
				discovery = fmt.Sprintf(tt.discovery, token, l.Endpoint(), l.CAHash())
			}
			path := filepath.Join(dir, "join.yaml")
			l.must(os.WriteFile(path, fmt.Appendf(nil, `apiVersion: kubeadm.k8s.io/v1beta4
kind: JoinConfiguration
nodeRegistration: {name: %s, criSocket: "unix:///run/containerd/containerd.sock"}
discovery: {%s, tlsBootstrapToken: %s}
timeouts: {discovery: 30s, kubernetesAPICall: 10s}
`, h.Name, discovery, token), 0o600))
			out, err := l.kubeadm("join", "phase", "preflight", "--config="+path, "--ignore-preflight-errors=all", "-v=1")
			if err != nil || strings.Contains(out, "forbidden") {
				t.Errorf("kubeadm: %v\n%s", err, out)
			}
			for _, read := range []string{`"kubeadm-config"`, `"kube-proxy"`, `"kubelet-config"`} {
				if !strings.Contains(out, read) {
					t.Errorf("kubeadm did not read %s:\n%s", read, out)
				}
			}
		})
	}
}

// kubeconfigOfNobody is what discovery.file needs: where the cluster is and whom to trust.
func (l *lab) kubeconfigOfNobody() []byte { return l.TokenKubeconfig("") }
