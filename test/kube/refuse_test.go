package kube_test

import (
	"context"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	authnv1 "k8s.io/api/authentication/v1"
	certsv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/certificate/csr"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/join"
	"slipway.dev/slipway/test/kube/cluster"
)

func (l *lab) checkup(t *testing.T) {
	defer l.sub(t)()
	r := l.joiner.Check(t.Context(), l.target())
	if !r.IsGood() || r.Version == "" || len(r.Results) < 7 {
		t.Errorf("%+v", r)
	}
	for _, tt := range []struct {
		name, want string
		change     func(*inventory.JoinTarget)
	}{
		{"a CA that is not the cluster's", "ca", func(t *inventory.JoinTarget) { t.CA = strings.Replace(t.CA, "M", "N", 1) }},
		{"an endpoint where nobody listens", "endpoint", func(t *inventory.JoinTarget) { t.Endpoint = "127.0.0.1:1" }},
		{"a version that cannot join", "version", func(t *inventory.JoinTarget) { t.Kubernetes = "1.37.0" }},
		{"an account without rights", "account", func(t *inventory.JoinTarget) { t.Kubeconfig = "nobody" }},
	} {
		if tt.want == "account" {
			l.addSecret("nobody", l.Kubeconfig("nobody"))
		}
		target := l.target()
		tt.change(&target)
		r := l.joiner.Check(t.Context(), target)
		found := false
		for _, s := range r.Results {
			found = found || s.Name == tt.want && !s.IsGood && s.Hint != ""
		}
		if !found {
			t.Errorf("%s: %+v", tt.name, r)
		}
	}
	target := l.target()
	target.Kubeconfig = "nobody"
	_, err := l.joiner.Mint(t.Context(), target, l.host(), "00000000000000000000000000000001", "nobody")
	var e *inventory.Error
	if !errors.As(err, &e) || e.Kind != inventory.Forbidden || !strings.Contains(e.Hint, "slipway target rbac prod") {
		t.Errorf("without rights: %+v", err)
	}
	if err := l.joiner.Apply(t.Context(), l.target()); !errors.As(err, &e) || e.Kind != inventory.Forbidden {
		t.Errorf("the least account applied the manifest: %v", err)
	}
}

func (l *lab) bearerIsWeak(t *testing.T) {
	defer l.sub(t)()
	b := l.bearer(l.mint(l.host(), 1))
	ctx := t.Context()
	sys := b.CoreV1().Secrets("kube-system")
	_, certs := sys.Get(ctx, "kubeadm-certs", metav1.GetOptions{})
	_, list := sys.List(ctx, metav1.ListOptions{})
	_, secret := sys.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, metav1.CreateOptions{})
	_, node := b.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, metav1.CreateOptions{})
	_, nodes := b.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	_, pod := b.CoreV1().Pods("default").Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, metav1.CreateOptions{})
	_, cm := b.CoreV1().ConfigMaps("kube-system").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, metav1.CreateOptions{})
	_, sa := b.CoreV1().ServiceAccounts("kube-system").CreateToken(ctx, "slipway", &authnv1.TokenRequest{}, metav1.CreateOptions{})
	for what, err := range map[string]error{
		"read kubeadm-certs": certs, "list secrets": list, "create a secret": secret, "create a node": node,
		"list nodes": nodes, "create a pod": pod, "create a config map": cm, "make a token of an account": sa,
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("a bearer may %s: %v", what, err)
		}
	}
	for _, name := range []string{"kubeadm-config", "kubelet-config"} {
		if _, err := b.CoreV1().ConfigMaps("kube-system").Get(ctx, name, metav1.GetOptions{}); err != nil {
			t.Errorf("a bearer cannot read %s: %v", name, err)
		}
	}
	if _, err := b.CoreV1().Nodes().Get(ctx, "absent", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a bearer cannot look for its node: %v", err)
	}
}

func (l *lab) accountIsWeak(t *testing.T) {
	defer l.sub(t)()
	a := cluster.Client(t, l.Kubeconfig("slipway"))
	ctx := t.Context()
	token := l.mint(l.host(), 1)
	sys := a.CoreV1().Secrets("kube-system")
	_, get := sys.Get(ctx, "bootstrap-token-"+token[:6], metav1.GetOptions{})
	_, list := sys.List(ctx, metav1.ListOptions{})
	_, update := sys.Update(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "kubeadm-certs"}}, metav1.UpdateOptions{})
	_, other := a.CoreV1().Secrets("default").Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, metav1.CreateOptions{})
	_, nodes := a.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	node := a.CoreV1().Nodes().Delete(ctx, "n1", metav1.DeleteOptions{})
	_, request := a.CertificatesV1().CertificateSigningRequests().Create(ctx, &certsv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, metav1.CreateOptions{})
	for what, err := range map[string]error{
		"read a token": get, "list secrets": list, "change a secret": update, "create a secret elsewhere": other,
		"list nodes": nodes, "delete a node": node, "ask for a certificate": request,
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("Slipway's account may %s: %v", what, err)
		}
	}
	// It may settle no request of another signer.
	k := l.kubelet(cluster.Client(t, l.Admin()), "x")
	text, err := cert.MakeCSR(k.key, &pkix.Name{CommonName: "kubernetes-admin"}, nil, nil)
	l.must(err)
	name, _, err := csr.RequestCertificateWithContext(t.Context(), k.client, text, "", certsv1.KubeAPIServerClientSignerName, nil, clientUsages(), k.key)
	l.must(err)
	r, err := a.CertificatesV1().CertificateSigningRequests().Get(ctx, name, metav1.GetOptions{})
	l.must(err)
	r.Status.Conditions = []certsv1.CertificateSigningRequestCondition{{Type: certsv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "x"}}
	if _, err := a.CertificatesV1().CertificateSigningRequests().UpdateApproval(ctx, name, r, metav1.UpdateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("Slipway's account may approve an administrator: %v", err)
	}
}

func (l *lab) wrongName(t *testing.T) {
	defer l.sub(t)()
	h, other := l.host(), l.host()
	c := l.bearer(l.mint(h, 1))
	name, _, err := l.kubelet(c, other.Name).ask(t)
	l.must(err)
	l.wantDenied(name, `may only be "system:node:`+h.Name)
	l.waitAlarm(t, join.AlarmRefused, h.ID)
	if _, err := l.kubelet(c, h.Name).enroll(t); err != nil {
		t.Errorf("the right name: %v", err)
	}
}

func (l *lab) secondUse(t *testing.T) {
	defer l.sub(t)()
	h := l.host()
	c := l.bearer(l.mint(h, 1))
	_, err := l.kubelet(c, h.Name).enroll(t)
	l.must(err)
	name, _, err := l.kubelet(c, h.Name).ask(t)
	l.must(err)
	l.wantDenied(name, "used before")
	l.waitAlarm(t, join.AlarmRefused, h.ID)
}

func (l *lab) otherHost(t *testing.T) {
	defer l.sub(t)()
	a, b := l.host(), l.host()
	l.mint(a, 1)
	name, _, err := l.kubelet(l.bearer(l.mint(b, 1)), a.Name).ask(t)
	l.must(err)
	l.wantDenied(name, "may only be")
	_, err = l.joiner.Mint(t.Context(), l.target(), b, session(b, 2), a.Name)
	var e *inventory.Error
	if !errors.As(err, &e) || e.Kind != inventory.Conflict {
		t.Errorf("two hosts with one node name: %v", err)
	}
}

func (l *lab) otherSigner(t *testing.T) {
	defer l.sub(t)()
	h := l.host()
	c := l.bearer(l.mint(h, 1))
	k := l.kubelet(c, h.Name)
	text, err := cert.MakeCSR(k.key, &pkix.Name{CommonName: "kubernetes-admin"}, nil, nil)
	l.must(err)
	name, _, err := csr.RequestCertificateWithContext(t.Context(), c, text, "", certsv1.KubeAPIServerClientSignerName, nil, clientUsages(), k.key)
	l.must(err)
	l.waitAlarm(t, join.AlarmRefused, h.ID)
	if got := l.conditions(name); got != "" {
		t.Errorf("conditions %s", got)
	}
}

func (l *lab) expired(t *testing.T) {
	defer l.sub(t)()
	h := l.host()
	target := l.target()
	target.TokenFor = inventory.Duration(3 * time.Second)
	token, err := l.joiner.Mint(t.Context(), target, h, session(h, 1), h.Name)
	l.must(err)
	c := l.bearer(token)
	cluster.Until(t, 20*time.Second, "the API server refuses the token", func() error {
		if _, err := c.CoreV1().Nodes().Get(t.Context(), "absent", metav1.GetOptions{}); !apierrors.IsUnauthorized(err) {
			return fmt.Errorf("it says %w", err)
		}
		return nil
	})
	l.wantState(token, inventory.TokenRevoked)
	l.wantNoSecret(token)

	// The cluster still takes this one, and our clock says that its time is over.
	h = l.host()
	token = l.mint(h, 1)
	l.stop()
	l.setAhead(time.Hour)
	name, _, err := l.kubelet(l.bearer(token), h.Name).ask(t)
	l.must(err)
	l.restart()
	l.wantDenied(name, "expired")
	l.setAhead(0)
}

func (l *lab) released(t *testing.T) {
	defer l.sub(t)()
	h := l.host()
	token := l.mint(h, 1)
	c := l.bearer(token)
	l.stop()
	name, _, err := l.kubelet(c, h.Name).ask(t)
	l.must(err)
	l.must(l.joiner.Revoke(t.Context(), session(h, 1)))
	if l.hasSecret(token) {
		t.Error("its Secret exists")
	}
	l.restart()
	l.wantDenied(name, "revoked")
}

func (l *lab) liveNode(t *testing.T) {
	defer l.sub(t)()
	h := l.host()
	l.aliveNode(h.Name)
	name, _, err := l.kubelet(l.bearer(l.mint(h, 1)), h.Name).ask(t)
	l.must(err)
	l.wantDenied(name, "did not let in")
}

func (l *lab) aliveNode(name string) {
	l.t.Helper()
	n, err := l.admin.CoreV1().Nodes().Create(l.t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		n, err = l.admin.CoreV1().Nodes().Get(l.t.Context(), name, metav1.GetOptions{})
	}
	l.must(err)
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.NewTime(time.Now().Add(-time.Minute))}}
	_, err = l.admin.CoreV1().Nodes().UpdateStatus(l.t.Context(), n, metav1.UpdateOptions{})
	l.must(err)
}

func (l *lab) stockToken(t *testing.T) {
	defer l.sub(t)()
	l.foreignToken("stock0", "system:bootstrappers:kubeadm:default-node-token")
	k := l.kubelet(l.bearer("stock0.0123456789abcdef"), "anything")
	name, uid, err := k.ask(t)
	l.must(err)
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	if _, err := csr.WaitForCertificate(ctx, k.client, name, uid); err != nil {
		t.Fatal(err)
	}
	if got := l.conditions(name); !strings.HasPrefix(got, "Approved/AutoApproved") {
		t.Errorf("conditions %s", got)
	}
	// One in our group that we did not mint is nobody's.
	l.foreignToken("stock1", join.Group)
	name, _, err = l.kubelet(l.bearer("stock1.0123456789abcdef"), "anything2").ask(t)
	l.must(err)
	time.Sleep(2 * time.Second)
	if got := l.conditions(name); got != "" {
		t.Errorf("conditions %s", got)
	}
}

func (l *lab) foreignToken(id, group string) {
	l.t.Helper()
	_, err := l.admin.CoreV1().Secrets("kube-system").Create(l.t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-" + id}, Type: corev1.SecretTypeBootstrapToken,
		StringData: map[string]string{
			"token-id": id, "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true", "auth-extra-groups": group,
		},
	}, metav1.CreateOptions{})
	l.must(err)
}

func (l *lab) regrouped(t *testing.T) {
	defer l.sub(t)()
	h := l.host()
	token := l.mint(h, 1)
	secrets := l.admin.CoreV1().Secrets("kube-system")
	s, err := secrets.Get(t.Context(), "bootstrap-token-"+token[:6], metav1.GetOptions{})
	l.must(err)
	s.Data["auth-extra-groups"] = []byte("system:bootstrappers:elsewhere")
	_, err = secrets.Update(t.Context(), s, metav1.UpdateOptions{})
	l.must(err)
	_, err = l.admin.RbacV1().ClusterRoleBindings().Patch(t.Context(), "slipway:node-bootstrapper", "application/strategic-merge-patch+json",
		[]byte(`{"subjects":[{"kind":"Group","apiGroup":"rbac.authorization.k8s.io","name":"system:bootstrappers:elsewhere"}]}`), metav1.PatchOptions{})
	l.must(err)
	if r := l.joiner.Check(t.Context(), l.target()); r.IsGood() {
		t.Error("the checkup did not see that a binding was changed")
	}
	var name string
	cluster.Until(t, 10*time.Second, "the other group may ask", func() (err error) {
		name, _, err = l.kubelet(l.bearer(token), h.Name).ask(t)
		return err
	})
	l.wantDenied(name, "lost its group")
	root := l.target()
	root.Kubeconfig = "root"
	l.must(l.joiner.Apply(t.Context(), root)) // mends the binding
}
