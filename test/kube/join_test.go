// Package kube_test owns the tests that let hosts join a real control plane: etcd, kube-apiserver and
// kube-controller-manager, built from their Go modules. It never starts a kubelet; what a kubelet does to get its
// certificate is done with client-go's own code.
package kube_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	certsv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/certificate/csr"
	"k8s.io/client-go/util/keyutil"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore"
	"slipway.dev/slipway/kubernetes/join"
	"slipway.dev/slipway/test/kube/cluster"
)

// lab is a control plane, a store with hosts, and a Joiner with the account of the manifest.
type lab struct {
	*cluster.Cluster
	root  *testing.T // lives as long as the lab
	t     *testing.T // of the moment
	store *sqlstore.Store
	admin *kubernetes.Clientset

	mu     sync.Mutex
	values map[string][]byte // of secrets
	alarms []join.Alarm
	ahead  time.Duration // our clock
	hostN  int
	joiner *join.Joiner
	stop   func()
}

const targetName = "prod"

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{Cluster: cluster.Start(t), root: t, t: t, values: map[string][]byte{}}
	l.admin = cluster.Client(t, l.Admin())
	store, err := sqlstore.Open(t.Context(), sqlstore.Config{Path: filepath.Join(t.TempDir(), "slipway.db")})
	l.must(err)
	l.store = store
	t.Cleanup(func() { _ = store.Close() })
	l.addSecret("root", l.Admin())
	l.addSecret("least", l.Kubeconfig("slipway"))
	l.joiner = l.newJoiner()
	root := inventory.JoinTarget{Name: targetName, Endpoint: l.Endpoint(), Kubernetes: "1.36.3", CA: string(l.CA()), Kubeconfig: "root"}
	l.must(l.joiner.Apply(t.Context(), root))
	l.must(l.joiner.Apply(t.Context(), root)) // again changes nothing
	root.Kubeconfig = "least"
	l.write(func(tx inventory.Tx) error { return tx.JoinTargets().Create(&root, time.Now()) })
	l.kubeadmRoles()
	return l
}

func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) write(fn func(inventory.Tx) error) {
	l.t.Helper()
	l.must(l.store.Write(context.Background(), fn))
}

func (l *lab) newJoiner() *join.Joiner {
	return join.New(join.Config{
		Store: l.store, Secrets: l, Log: slog.New(slog.NewTextHandler(l.root.Output(), nil)), PollFor: 200 * time.Millisecond,
		Now: func() time.Time {
			l.mu.Lock()
			defer l.mu.Unlock()
			return time.Now().Add(l.ahead)
		},
		Alarm: func(_ context.Context, a join.Alarm) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.alarms = append(l.alarms, a)
		},
		ServingCerts: true,
	})
}

// Open, Seal and Unseal make the lab a join.Secrets.
func (l *lab) Open(_ context.Context, name string) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if v, ok := l.values[name]; ok {
		return v, nil
	}
	return nil, inventory.Errorf(inventory.NotFound, "no secret %s", name)
}

func (l *lab) Seal(label string, plain []byte) ([]byte, error) {
	return []byte(label + "|" + string(plain)), nil
}

func (l *lab) Unseal(label string, sealed []byte) ([]byte, error) {
	plain, ok := strings.CutPrefix(string(sealed), label+"|")
	if !ok {
		return nil, errors.New("sealed for something else")
	}
	return []byte(plain), nil
}

func (l *lab) addSecret(name string, value []byte) {
	l.mu.Lock()
	l.values[name] = value
	l.mu.Unlock()
	l.write(func(tx inventory.Tx) error {
		return tx.Secrets().Create(&inventory.Secret{Name: name, Sealed: []byte("sealed")}, time.Now())
	})
}

// serve runs the approver until the test ends or l.stop is called.
func (l *lab) serve() {
	l.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.joiner.Serve(ctx) }()
	l.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			l.root.Errorf("Serve: %v", err)
		}
	})
	l.root.Cleanup(l.stop)
}

func (l *lab) sawAlarm(kind join.AlarmKind, host inventory.HostID, target ...string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.alarms {
		if a.Kind == kind && a.Host == host && (len(target) == 0 || a.Target == target[0]) {
			return nil
		}
	}
	return fmt.Errorf("no alarm %s for host %q among %v", kind, host, l.alarms)
}

// waitAlarm waits for an alarm, which follows what the approver writes to the cluster.
func (l *lab) waitAlarm(t *testing.T, kind join.AlarmKind, host inventory.HostID) {
	t.Helper()
	cluster.Until(t, 10*time.Second, "there is an alarm", func() error { return l.sawAlarm(kind, host) })
}

// host stores a new host.
func (l *lab) host() *inventory.Host {
	l.t.Helper()
	l.hostN++
	h := &inventory.Host{
		ID:   inventory.HostID(fmt.Sprintf("01900000-0000-7000-8000-%012d", l.hostN)),
		Name: fmt.Sprintf("n%d", l.hostN), State: inventory.Installing,
		NICs: []inventory.NIC{{MAC: inventory.MAC(fmt.Sprintf("52:54:00:00:00:%02x", l.hostN))}},
	}
	l.write(func(tx inventory.Tx) error { return tx.CreateHost(h, time.Now()) })
	return h
}

func (l *lab) target() inventory.JoinTarget {
	l.t.Helper()
	var t inventory.JoinTarget
	l.write(func(tx inventory.Tx) (err error) {
		t, err = tx.JoinTargets().Find(targetName)
		return err
	})
	return t
}

func session(h *inventory.Host, n int) inventory.SessionID {
	return inventory.SessionID(fmt.Sprintf("%s%08d", strings.ReplaceAll(string(h.ID), "-", "")[8:], n))
}

// mint returns a token for the n-th boot of a host.
func (l *lab) mint(h *inventory.Host, n int) string {
	l.t.Helper()
	token, err := l.joiner.Mint(l.t.Context(), l.target(), h, session(h, n), h.Name)
	l.must(err)
	return token
}

func (l *lab) state(token string) inventory.JoinTokenState {
	l.t.Helper()
	var t inventory.JoinToken
	l.write(func(tx inventory.Tx) (err error) {
		t, err = tx.FindJoinToken(token[:6])
		return err
	})
	return t.State
}

// bearer returns a client that bears a token.
func (l *lab) bearer(token string) *kubernetes.Clientset {
	return cluster.Client(l.t, l.TokenKubeconfig(token))
}

// kubelet is what a kubelet has when it asks for its certificate.
type kubelet struct {
	client *kubernetes.Clientset
	key    *ecdsa.PrivateKey
	node   string
}

func (l *lab) kubelet(client *kubernetes.Clientset, node string) *kubelet {
	l.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	l.must(err)
	return &kubelet{client, key, node}
}

func clientUsages() []certsv1.KeyUsage {
	return []certsv1.KeyUsage{certsv1.UsageDigitalSignature, certsv1.UsageClientAuth}
}

// ask sends the request that a kubelet sends, under a name that comes from its key (pkg/kubelet/certificate/bootstrap).
func (k *kubelet) ask(t *testing.T) (string, types.UID, error) {
	t.Helper()
	text, err := cert.MakeCSR(k.key, &pkix.Name{CommonName: "system:node:" + k.node, Organization: []string{"system:nodes"}}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(k.key.Public())
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("node-csr-%x", sha256.Sum256(append(public, k.node...)))
	for try := 0; ; try++ {
		request, uid, err := csr.RequestCertificateWithContext(t.Context(), k.client, text, name, certsv1.KubeAPIServerClientKubeletSignerName, nil, clientUsages(), k.key)
		if !apierrors.IsUnauthorized(err) || try == 20 {
			return request, uid, err
		}
		time.Sleep(50 * time.Millisecond) // the API server hears of a new token a moment after it has stored it
	}
}

// enroll asks for a certificate and waits for it as a kubelet does.
func (k *kubelet) enroll(t *testing.T) ([]byte, error) {
	t.Helper()
	name, uid, err := k.ask(t)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	return csr.WaitForCertificate(ctx, k.client, name, uid)
}

// register creates the kubelet's Node with its certificate.
func (l *lab) register(k *kubelet, crt []byte) *kubernetes.Clientset {
	l.t.Helper()
	key, err := keyutil.MarshalPrivateKeyToPEM(k.key)
	l.must(err)
	node := cluster.Client(l.t, l.CertKubeconfig(crt, key))
	_, err = node.CoreV1().Nodes().Create(l.t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: k.node}}, metav1.CreateOptions{})
	l.must(err)
	return node
}

// conditions returns type and reason of the conditions of a request.
func (l *lab) conditions(name string) string {
	r, err := l.admin.CertificatesV1().CertificateSigningRequests().Get(l.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	var out []string
	for _, c := range r.Status.Conditions {
		out = append(out, string(c.Type)+"/"+c.Reason+": "+c.Message)
	}
	return strings.Join(out, "\n")
}

// wantDenied waits until a request is denied for a reason.
func (l *lab) wantDenied(name, reason string) {
	l.t.Helper()
	cluster.Until(l.t, 10*time.Second, "the request is denied", func() error {
		if got := l.conditions(name); !strings.HasPrefix(got, "Denied/SlipwayDenied") || !strings.Contains(got, reason) {
			return fmt.Errorf("conditions %q", got)
		}
		return nil
	})
}

// hasSecret reports whether the Secret of a token exists.
func (l *lab) hasSecret(token string) bool {
	l.t.Helper()
	_, err := l.admin.CoreV1().Secrets("kube-system").Get(l.t.Context(), "bootstrap-token-"+token[:6], metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		l.t.Fatal(err)
	}
	return err == nil
}
