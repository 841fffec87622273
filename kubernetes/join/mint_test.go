package join

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"slipway.dev/slipway/inventory"
)

func TestMint(t *testing.T) {
	l := newLab(t)
	var recorded atomic.Bool
	l.api.setAnswer(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost {
			_ = l.store.Read(context.Background(), func(tx inventory.Tx) error {
				all, err := tx.ListJoinTokens("prod", inventory.TokenMinted)
				recorded.Store(err == nil && len(all) == 1)
				return nil
			})
		}
		return false
	})
	token := l.mint(host(1), "00112233445566778899aabbccddeeff")
	if !regexp.MustCompile(`^[a-z0-9]{6}\.[a-z0-9]{16}$`).MatchString(token) {
		t.Fatalf("token %q", token)
	}
	if !recorded.Load() {
		t.Error("the cluster heard of the token before the store")
	}
	k := l.token(token)
	if k.HostID != "host-1" || k.NodeName != "web-1" || k.Target != "prod" || k.State != inventory.TokenMinted || !k.ExpiresAt.Equal(l.clock().Add(30*time.Minute)) {
		t.Errorf("recorded %+v", k)
	}
	s := l.api.secrets["bootstrap-token-"+token[:6]]
	want := map[string]string{
		"token-id": token[:6], "token-secret": token[7:], "expiration": k.ExpiresAt.UTC().Format(time.RFC3339),
		"usage-bootstrap-authentication": "true", "usage-bootstrap-signing": "true",
		"auth-extra-groups": Group, "description": "Slipway: host web-1 joins as node web-1, boot 00112233",
	}
	for key, v := range want {
		if s.StringData[key] != v {
			t.Errorf("%s is %q, want %q", key, s.StringData[key], v)
		}
	}
	if len(s.StringData) != len(want) || s.Namespace != "kube-system" || s.Type != "bootstrap.kubernetes.io/token" {
		t.Errorf("Secret %+v", s)
	}
}

func TestMintAgain(t *testing.T) {
	const first, second = inventory.SessionID("0011223344"), inventory.SessionID("5566778899")
	for _, tt := range []struct {
		name   string
		again  func(*lab) (string, error)
		isSame bool
	}{
		{"the same boot", func(l *lab) (string, error) { return l.Mint(t.Context(), target(), host(1), first, "web-1") }, true},
		{"the same boot after a restart of Slipway", func(l *lab) (string, error) {
			return New(l.cfg).Mint(t.Context(), target(), host(1), first, "web-1")
		}, true},
		{"the same boot long after", func(l *lab) (string, error) {
			l.pass(28 * time.Minute)
			l.api.setAnswer(func(w http.ResponseWriter, _ *http.Request) bool {
				w.Header().Set("Date", l.clock().UTC().Format(http.TimeFormat))
				return false
			})
			return l.Mint(t.Context(), target(), host(1), first, "web-1")
		}, true},
		{"the same boot when the token is about to expire", func(l *lab) (string, error) {
			l.pass(29*time.Minute + time.Second)
			l.api.setAnswer(func(w http.ResponseWriter, _ *http.Request) bool {
				w.Header().Set("Date", l.clock().UTC().Format(http.TimeFormat))
				return false
			})
			return l.Mint(t.Context(), target(), host(1), first, "web-1")
		}, false},
		{"the same boot under another node name", func(l *lab) (string, error) { return l.Mint(t.Context(), target(), host(1), first, "web-9") }, false},
		{"the next boot", func(l *lab) (string, error) { return l.Mint(t.Context(), target(), host(1), second, "web-1") }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLab(t)
			token := l.mint(host(1), first)
			again, err := tt.again(l)
			if err != nil || (again == token) != tt.isSame {
				t.Fatalf("got %s after %s: %v", again, token, err)
			}
			if names := l.api.secretNames(); !slices.Equal(names, []string{"bootstrap-token-" + again[:6]}) {
				t.Errorf("the cluster has %v", names)
			}
			if !tt.isSame && l.token(token).State != inventory.TokenRevoked {
				t.Errorf("the old token is %s", l.token(token).State)
			}
		})
	}
}

func TestMintForTwoHosts(t *testing.T) {
	l := newLab(t)
	a := l.mint(host(1), "0011223344")
	if b := l.mint(host(2), "5566778899"); a == b || l.token(a).State != inventory.TokenMinted {
		t.Error("one host took the token of the other")
	}
	_, err := l.Mint(t.Context(), target(), host(2), "5566778899", "web-1")
	if inventory.KindOf(err) != inventory.Conflict {
		t.Errorf("the node name of a host that is joining: %v", err)
	}
	l.write(func(tx inventory.Tx) error { return tx.DeleteHost("host-1") })
	if _, err := l.Mint(t.Context(), target(), host(2), "5566778899", "web-1"); err != nil {
		t.Errorf("the node name of a host that is gone: %v", err)
	}
}

func TestMintWhenTheIDIsTaken(t *testing.T) {
	l := newLab(t)
	var n atomic.Int32
	l.api.setAnswer(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost && n.Add(1) == 1 {
			refuse(w, http.StatusConflict, metav1.StatusReasonAlreadyExists)
			return true
		}
		if r.Method == http.MethodDelete {
			t.Error("somebody else's Secret was deleted")
		}
		return false
	})
	token := l.mint(host(1), "0011223344")
	if n.Load() != 2 || l.token(token).State != inventory.TokenMinted {
		t.Errorf("%d calls, token %+v", n.Load(), l.token(token))
	}
	if again := l.mint(host(1), "0011223344"); again != token {
		t.Error("the repeat got another token")
	}
	c, tgt := l.cluster(), target()
	l.doomRevoked(t.Context(), "prod") // as after a restart
	l.sweep(t.Context(), c, &tgt)
}

func TestMintForABootThatEndsMeanwhile(t *testing.T) {
	l := newLab(t)
	l.api.setAnswer(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost {
			if err := l.Revoke(context.Background(), "0011223344"); err != nil {
				t.Error(err)
			}
		}
		return false
	})
	token, err := l.Mint(t.Context(), target(), host(1), "0011223344", "web-1")
	if token != "" || inventory.KindOf(err) != inventory.Conflict || len(l.api.secretNames()) > 0 {
		t.Errorf("got %q, %v; the cluster has %v", token, err, l.api.secretNames())
	}
}

func TestMintFailures(t *testing.T) {
	status := func(code int, reason metav1.StatusReason) func(*lab) {
		return func(l *lab) {
			l.api.setAnswer(func(w http.ResponseWriter, _ *http.Request) bool { refuse(w, code, reason); return true })
		}
	}
	config := func(change func(*clientcmdapi.Config)) func(*lab) {
		return func(l *lab) { l.setSecret("kubeconfig", l.api.kubeconfig(change)) }
	}
	user := func(change func(*clientcmdapi.AuthInfo)) func(*lab) {
		return config(func(c *clientcmdapi.Config) { change(c.AuthInfos["u"]) })
	}
	for _, tt := range []struct {
		name   string
		damage func(*lab)
		kind   inventory.Kind
		says   string // in message or hint
	}{
		{"nobody listens", func(l *lab) { l.api.Close() }, inventory.Unavailable, "slipway target check prod"},
		{"the credentials are not accepted", status(401, metav1.StatusReasonUnauthorized), inventory.Unauthorized, "slipway secret set"},
		{"the account lacks rights", status(403, metav1.StatusReasonForbidden), inventory.Forbidden, "slipway target rbac prod"},
		{"it is no Kubernetes", func(l *lab) {
			l.api.setAnswer(func(w http.ResponseWriter, r *http.Request) bool { http.NotFound(w, r); return true })
		}, inventory.Invalid, "server address"},
		{"the server is ill", status(500, metav1.StatusReasonInternalError), inventory.Unavailable, "slipway target check"},
		{"the server is busy", status(429, metav1.StatusReasonTooManyRequests), inventory.Unavailable, "at the moment"},
		{"the Secret is refused", status(422, metav1.StatusReasonInvalid), inventory.Internal, "because Invalid"},
		{"its certificate is from another authority", func(l *lab) {
			other := newFakeAPI(t, serverCert(t, time.Now().Add(time.Hour)))
			l.setSecret("kubeconfig", other.kubeconfig(func(c *clientcmdapi.Config) { c.Clusters["c"].Server = l.api.URL }))
		}, inventory.Invalid, "certificate authority"},
		{"its certificate is for another name", config(func(c *clientcmdapi.Config) {
			c.Clusters["c"].Server = strings.Replace(c.Clusters["c"].Server, "127.0.0.1", "localhost", 1)
		}), inventory.Invalid, "server name"},
		{"its certificate has expired", func(l *lab) {
			other := newFakeAPI(t, serverCert(t, time.Now().Add(-time.Minute)))
			l.setSecret("kubeconfig", other.kubeconfig(nil))
		}, inventory.Unavailable, "compare the clocks"},
		{"its clock is ahead", func(l *lab) {
			l.api.setAnswer(func(w http.ResponseWriter, _ *http.Request) bool {
				w.Header().Set("Date", l.clock().Add(20*time.Minute).UTC().Format(http.TimeFormat))
				return false
			})
		}, inventory.Unavailable, "ahead of Slipway's"},
		{"its clock is behind", func(l *lab) {
			l.api.setAnswer(func(w http.ResponseWriter, _ *http.Request) bool {
				w.Header().Set("Date", l.clock().Add(-6*time.Minute).UTC().Format(http.TimeFormat))
				return false
			})
		}, inventory.Unavailable, "NTP"},

		{"a kubeconfig that is garbage", func(l *lab) { l.setSecret("kubeconfig", []byte("{{{")) }, inventory.Invalid, "--flatten"},
		{"a kubeconfig that is empty", func(l *lab) { l.setSecret("kubeconfig", nil) }, inventory.Invalid, "is empty"},
		{"no current context", config(func(c *clientcmdapi.Config) { c.CurrentContext = "" }), inventory.Invalid, "current-context"},
		{"a context without its user", config(func(c *clientcmdapi.Config) { delete(c.AuthInfos, "u") }), inventory.Invalid, "does not hold"},
		{"a user that runs a program", user(func(u *clientcmdapi.AuthInfo) {
			u.Exec = &clientcmdapi.ExecConfig{Command: "sh", APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: "Never"}
		}), inventory.Invalid, "running a program"},
		{"a user that names a token file", user(func(u *clientcmdapi.AuthInfo) { u.TokenFile = "/etc/shadow" }), inventory.Invalid, "--flatten"},
		{"a user that names a certificate file", user(func(u *clientcmdapi.AuthInfo) { u.ClientCertificate = "/x" }), inventory.Invalid, "--flatten"},
		{"a user that names a key file", user(func(u *clientcmdapi.AuthInfo) { u.ClientKey = "/x" }), inventory.Invalid, "--flatten"},
		{"a CA in a file", config(func(c *clientcmdapi.Config) { c.Clusters["c"].CertificateAuthority = "/x" }), inventory.Invalid, "--flatten"},
		{"no check of the server", config(func(c *clientcmdapi.Config) {
			c.Clusters["c"].InsecureSkipTLSVerify, c.Clusters["c"].CertificateAuthorityData = true, nil
		}), inventory.Invalid, "certificate-authority-data"},
		{"no CA", config(func(c *clientcmdapi.Config) { c.Clusters["c"].CertificateAuthorityData = nil }), inventory.Invalid, "certificate-authority-data"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLab(t)
			tt.damage(l)
			_, err := l.Mint(t.Context(), target(), host(1), "0011223344", "web-1")
			var e *inventory.Error
			if !errors.As(err, &e) || e.Kind != tt.kind || !strings.Contains(e.Msg+" "+e.Hint, tt.says) {
				t.Fatalf("got %+v, want %s with %q", err, tt.kind, tt.says)
			}
			if names := l.api.secretNames(); len(names) > 0 {
				t.Errorf("the cluster has %v", names)
			}
		})
	}
}

// serverCert returns a certificate for 127.0.0.1 that signs itself and ends at a time.
func serverCert(t testing.TB, until time.Time) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: until.Add(-24 * time.Hour), NotAfter: until, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func TestASlowClusterHoldsUpOnlyItsOwnBoot(t *testing.T) {
	l := newLab(t)
	gate, waiting := make(chan struct{}), make(chan struct{}, 10)
	l.api.setAnswer(func(_ http.ResponseWriter, r *http.Request) bool {
		waiting <- struct{}{}
		select {
		case <-gate:
		case <-r.Context().Done():
		}
		return false
	})
	done := make(chan error, 2)
	for n, s := range []inventory.SessionID{"0011223344", "5566778899"} {
		go func() {
			_, err := l.Mint(context.Background(), target(), host(n+1), s, host(n+1).Name)
			done <- err
		}()
	}
	<-waiting
	<-waiting // both hosts are at the cluster, and neither waits for the other

	// Another request of the first boot waits for its turn, as long as it likes.
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := l.Mint(ctx, target(), host(1), "0011223344", "web-1"); err == nil || !strings.Contains(err.Error(), "same boot") {
		t.Errorf("got %v", err)
	}
	other := newFakeAPI(t)
	l.setSecret("other", other.kubeconfig(nil))
	far := inventory.JoinTarget{Name: "far", Kubeconfig: "other"}
	if _, err := l.Mint(t.Context(), far, host(1), "aabbccddee", "web-1"); err != nil {
		t.Errorf("another cluster: %v", err)
	}
	close(gate)
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestAKubeconfigThatChangesIsUsedAtOnce(t *testing.T) {
	l := newLab(t)
	l.mint(host(1), "0011223344")
	other := newFakeAPI(t)
	l.setSecret("kubeconfig", other.kubeconfig(nil))
	l.mint(host(2), "5566778899")
	if len(other.secretNames()) != 1 || len(l.api.secretNames()) != 1 {
		t.Errorf("old cluster %v, new cluster %v", l.api.secretNames(), other.secretNames())
	}
}

func TestStoredToken(t *testing.T) {
	l := newLab(t)
	for _, tt := range []struct{ name, value, want, says string }{
		{"a token with a line end", "abcdef.0123456789abcdef\n", "abcdef.0123456789abcdef", ""},
		{"no token", "hello", "", "kubeadm token create"},
		{"a token in upper case", "ABCDEF.0123456789abcdef", "", "holds no bootstrap token"},
		{"nothing", "", "", "holds no bootstrap token"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l.t = t
			l.setSecret("token", []byte(tt.value))
			got, err := l.Mint(t.Context(), inventory.JoinTarget{Name: "static", Token: "token"}, host(1), "0011223344", "web-1")
			var e *inventory.Error
			if got != tt.want || tt.says != "" && (!errors.As(err, &e) || e.Kind != inventory.Invalid || !strings.Contains(e.Msg+e.Hint, tt.says)) {
				t.Errorf("got %q, %v", got, err)
			}
			if err != nil && tt.value != "" && strings.Contains(err.Error(), tt.value) {
				t.Errorf("the error quotes the secret: %v", err)
			}
		})
	}
	none := inventory.JoinTarget{Name: "none"}
	if _, err := l.Mint(t.Context(), none, host(1), "0011223344", "web-1"); inventory.KindOf(err) != inventory.Invalid {
		t.Errorf("a target with neither: %v", err)
	}
}

func TestRevoke(t *testing.T) {
	l := newLab(t)
	a, b := l.mint(host(1), "0011223344"), l.mint(host(2), "5566778899")
	if err := l.Revoke(t.Context(), "0011223344"); err != nil {
		t.Fatal(err)
	}
	if l.token(a).State != inventory.TokenRevoked || l.token(b).State != inventory.TokenMinted || len(l.api.secretNames()) != 1 {
		t.Errorf("tokens %s and %s, Secrets %v", l.token(a).State, l.token(b).State, l.api.secretNames())
	}
	// A cluster that is away keeps the Secret; the approver deletes it later.
	l.api.setAnswer(func(w http.ResponseWriter, _ *http.Request) bool {
		refuse(w, 503, metav1.StatusReasonServiceUnavailable)
		return true
	})
	if err := l.RevokeHost(t.Context(), "host-2"); err != nil || l.token(b).State != inventory.TokenRevoked {
		t.Errorf("revoke while the cluster is away: %v, %s", err, l.token(b).State)
	}
	l.api.setAnswer(nil)
	tgt := target()
	c, err := l.connect(t.Context(), &tgt)
	if err != nil {
		t.Fatal(err)
	}
	l.sweep(t.Context(), c, &tgt)
	if names := l.api.secretNames(); len(names) > 0 {
		t.Errorf("the cluster still has %v", names)
	}
}

func TestDraw(t *testing.T) {
	got, err := draw(rand.Reader, 36000)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range alphabet {
		if n := strings.Count(got, string(c)); n < 800 || n > 1200 {
			t.Errorf("%c is drawn %d times of 36000", c, n)
		}
	}
	if _, err := draw(bytes.NewReader(make([]byte, 10)), 22); err == nil {
		t.Error("a token without chance")
	}
}

func TestManifest(t *testing.T) {
	docs, heads, err := documents()
	if err != nil {
		t.Fatal(err)
	}
	for i, h := range heads {
		if h.path() == "" || h.Metadata.Name == "" || strings.Contains(h.path(), "//") {
			t.Errorf("%s has no place: %q", docs[i], h.path())
		}
		if strings.Contains(string(docs[i]), ":nodeclient") {
			t.Errorf("%s lets Kubernetes approve our requests", h.Metadata.Name)
		}
	}
	m := Manifest()
	m[0] = 'x'
	if Manifest()[0] == 'x' {
		t.Error("a caller can change the manifest")
	}
}

func FuzzKubeconfig(f *testing.F) {
	f.Add([]byte("apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n"))
	ok, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:  map[string]*clientcmdapi.Cluster{"c": {Server: "https://x", CertificateAuthorityData: []byte("x")}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"u": {Token: "t"}}, Contexts: map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}}, CurrentContext: "x",
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(ok)
	tgt := target()
	f.Fuzz(func(t *testing.T, text []byte) {
		cfg, err := restConfig(&tgt, text)
		if err != nil && inventory.KindOf(err) != inventory.Invalid {
			t.Errorf("%v", err)
		}
		if err == nil && (cfg.ExecProvider != nil || cfg.AuthProvider != nil || cfg.BearerTokenFile != "" || cfg.Insecure || cfg.CertFile != "" || cfg.KeyFile != "" || cfg.CAFile != "") {
			t.Errorf("accepted %q", text)
		}
	})
}
