package kube_test

import (
	"context"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	certsv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/certificate/csr"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/join"
	"slipway.dev/slipway/test/kube/cluster"
)

// TestJoin lets hosts join one control plane, the right ones and the wrong ones.
func TestJoin(t *testing.T) {
	l := newLab(t)
	t.Run("a checkup finds everything in place", l.checkup)
	t.Run("a token that was minted before a restart is good after it", l.mintThenRestart)
	t.Run("the right host gets its certificate, its node appears, its token goes", l.rightHost)
	t.Run("a bearer of a token can ask for a certificate and read what kubeadm reads, and nothing else", l.bearerIsWeak)
	t.Run("the account of Slipway can do what it does, and nothing else", l.accountIsWeak)
	t.Run("kubeadm join finds the cluster with a token", l.kubeadmJoin)
	t.Run("a wrong node name is denied, and the right one is granted after that", l.wrongName)
	t.Run("a second use of a token is denied", l.secondUse)
	t.Run("the same request again is granted again", l.retry)
	t.Run("of two requests that have waited the newer one is granted", l.newest)
	t.Run("the token of another host is denied", l.otherHost)
	t.Run("other certificates asked with a token are left pending with an alarm", l.otherSigner)
	t.Run("an expired token is refused by the API server and by the approver", l.expired)
	t.Run("a new boot gets a new token and the old one is gone", l.newBoot)
	t.Run("a repeat gets the same token, whoever asks at the same time", l.repeat)
	t.Run("a released host's token is worth nothing", l.released)
	t.Run("a live node that Slipway did not let in keeps its name", l.liveNode)
	t.Run("a host that comes back takes its old node over", l.comesBack)
	t.Run("a token of kubeadm is left to the approver of Kubernetes", l.stockToken)
	t.Run("a token whose group was changed in the cluster is denied", l.regrouped)
	t.Run("serving certificates are granted for what the host is called, and nothing else", l.serving)
	t.Run("a whole rack joins at once", l.rack)
	t.Run("a cluster that goes down and comes back lets hosts join again", l.downAndUp)
}

func (l *lab) sub(t *testing.T) func() {
	outer := l.t
	l.t = t
	return func() { l.t = outer }
}

func (l *lab) mintThenRestart(t *testing.T) {
	defer l.sub(t)()
	h := l.host()
	token := l.mint(h, 1)
	k := l.kubelet(l.bearer(token), h.Name)
	if _, _, err := k.ask(t); err != nil { // nobody approves it yet
		t.Fatal(err)
	}
	l.joiner = l.newJoiner()
	if again := l.mint(h, 1); again != token {
		t.Error("another token after the restart")
	}
	l.restart()
	crt, err := k.enroll(t)
	l.must(err)
	l.register(k, crt)
	l.wantState(token, inventory.TokenJoined)
}

func (l *lab) wantState(token string, want inventory.JoinTokenState) {
	l.t.Helper()
	cluster.Until(l.t, 10*time.Second, "token is "+string(want), func() error {
		if got := l.state(token); got != want {
			return fmt.Errorf("it is %s", got)
		}
		return nil
	})
}

func (l *lab) wantNoSecret(token string) {
	l.t.Helper()
	cluster.Until(l.t, 10*time.Second, "the token's Secret is gone", func() error {
		if l.hasSecret(token) {
			return errors.New("it exists")
		}
		return nil
	})
}

func (l *lab) rightHost(t *testing.T) {
	defer l.sub(t)()
	h := l.host()
	token := l.mint(h, 1)
	s, err := l.admin.CoreV1().Secrets("kube-system").Get(t.Context(), "bootstrap-token-"+token[:6], metav1.GetOptions{})
	l.must(err)
	for key, want := range map[string]string{
		"auth-extra-groups": join.Group, "usage-bootstrap-authentication": "true", "usage-bootstrap-signing": "",
		"token-id": token[:6], "token-secret": token[7:],
	} {
		if got := string(s.Data[key]); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	if d := string(s.Data["description"]); !strings.Contains(d, h.Name) || strings.Contains(d, string(session(h, 1))) {
		t.Errorf("description %q", d)
	}
	k := l.kubelet(l.bearer(token), h.Name)
	crt, err := k.enroll(t)
	l.must(err)
	if !l.hasSecret(token) || l.state(token) != inventory.TokenSpent {
		t.Error("the token is gone before the node has appeared")
	}
	node := l.register(k, crt)
	l.wantState(token, inventory.TokenJoined)
	l.wantNoSecret(token)
	if _, err := node.CoreV1().Nodes().Get(t.Context(), h.Name, metav1.GetOptions{}); err != nil {
		t.Errorf("the node lost its access with the token: %v", err)
	}
}

// accountIsWeak tries what the account in rbac.yaml must not be able to do.
func (l *lab) retry(t *testing.T) {
	defer l.sub(t)()
	h := l.host()
	k := l.kubelet(l.bearer(l.mint(h, 1)), h.Name)
	first, err := k.enroll(t)
	l.must(err)
	second, err := k.enroll(t) // the same key and so the same name, as a kubelet that was restarted
	l.must(err)
	if string(first) != string(second) {
		t.Error("another certificate")
	}

	// The token is spent, and then Slipway dies before it has told the cluster.
	h = l.host()
	token := l.mint(h, 1)
	l.stop()
	k = l.kubelet(l.bearer(token), h.Name)
	_, uid, err := k.ask(t)
	l.must(err)
	l.write(func(tx inventory.Tx) error {
		j, err := tx.FindJoinToken(token[:6])
		if err != nil {
			return err
		}
		j.State, j.CSR = inventory.TokenSpent, string(uid)
		return tx.SaveJoinToken(j)
	})
	l.restart()
	if _, err := k.enroll(t); err != nil {
		t.Error(err)
	}
}

// newest has two requests wait for Slipway: a kubelet that is started anew makes a new key and forgets the old one.
func (l *lab) newest(t *testing.T) {
	defer l.sub(t)()
	h := l.host()
	c := l.bearer(l.mint(h, 1))
	l.stop()
	old, _, err := l.kubelet(c, h.Name).ask(t)
	l.must(err)
	time.Sleep(1100 * time.Millisecond) // the API server counts seconds
	k := l.kubelet(c, h.Name)
	_, _, err = k.ask(t)
	l.must(err)
	l.restart()
	if _, err := k.enroll(t); err != nil {
		t.Error(err)
	}
	l.wantDenied(old, "used before")
}

func (l *lab) setAhead(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ahead = d
}

// restart serves with a new Joiner, as after a restart of Slipway.
func (l *lab) restart() {
	if l.stop != nil {
		l.stop()
	}
	l.joiner = l.newJoiner()
	l.serve()
}

func (l *lab) newBoot(t *testing.T) {
	defer l.sub(t)()
	h := l.host()
	old := l.mint(h, 1)
	c := l.bearer(old)
	name, _, err := l.kubelet(c, "thief").ask(t)
	l.must(err)
	l.wantDenied(name, "may only be")
	fresh := l.mint(h, 2)
	if fresh == old || l.state(old) != inventory.TokenRevoked || l.hasSecret(old) {
		t.Errorf("the token of the first boot is %s", l.state(old))
	}
	if _, err := l.kubelet(l.bearer(fresh), h.Name).enroll(t); err != nil {
		t.Error(err)
	}
}

func (l *lab) repeat(t *testing.T) {
	defer l.sub(t)()
	h := l.host()
	got := make(chan string, 20)
	for range cap(got) {
		go func() {
			token, err := l.joiner.Mint(context.Background(), l.target(), h, session(h, 1), h.Name)
			if err != nil {
				token = err.Error()
			}
			got <- token
		}()
	}
	first := <-got
	for range cap(got) - 1 {
		if again := <-got; again != first {
			t.Errorf("got %s and %s", first, again)
		}
	}
	// What somebody has deleted in the cluster is there again.
	l.must(l.admin.CoreV1().Secrets("kube-system").Delete(t.Context(), "bootstrap-token-"+first[:6], metav1.DeleteOptions{}))
	if again := l.mint(h, 1); again != first || !l.hasSecret(first) {
		t.Error("a deleted Secret did not come back")
	}
}

// aliveNode makes a Node that was ready a minute ago and is still taken for it.
func (l *lab) comesBack(t *testing.T) {
	defer l.sub(t)()
	h := l.host()
	first := l.mint(h, 1)
	k := l.kubelet(l.bearer(first), h.Name)
	crt, err := k.enroll(t)
	l.must(err)
	l.register(k, crt)
	l.aliveNode(h.Name)
	l.wantState(first, inventory.TokenJoined)
	l.must(l.joiner.RevokeHost(t.Context(), h.ID))
	if _, err := l.kubelet(l.bearer(l.mint(h, 2)), h.Name).enroll(t); err != nil {
		t.Error(err)
	}
}

// stockToken uses a token in kubeadm's group, as Cluster API makes them.
func (l *lab) serving(t *testing.T) {
	defer l.sub(t)()
	h := l.host()
	k := l.kubelet(l.bearer(l.mint(h, 1)), h.Name)
	crt, err := k.enroll(t)
	l.must(err)
	node := l.register(k, crt)
	ask := func(dns []string, ips ...net.IP) string {
		text, err := cert.MakeCSR(k.key, &pkix.Name{CommonName: "system:node:" + h.Name, Organization: []string{"system:nodes"}}, dns, ips)
		l.must(err)
		name, _, err := csr.RequestCertificateWithContext(t.Context(), node, text, "", certsv1.KubeletServingSignerName, nil,
			[]certsv1.KeyUsage{certsv1.UsageDigitalSignature, certsv1.UsageServerAuth}, k.key)
		l.must(err)
		return name
	}
	good := ask([]string{h.Name})
	cluster.Until(t, 10*time.Second, "the serving certificate is approved", func() error {
		if got := l.conditions(good); !strings.HasPrefix(got, "Approved/SlipwayApproved") {
			return fmt.Errorf("conditions %q", got)
		}
		return nil
	})
	k2 := l.kubelet(node, h.Name)
	k.key = k2.key
	bad := ask([]string{h.Name, "kubernetes.default.svc"})
	k.key = l.kubelet(node, h.Name).key
	ip := ask([]string{h.Name}, net.IPv4(10, 0, 0, 1))
	time.Sleep(2 * time.Second)
	for _, name := range []string{bad, ip} {
		if got := l.conditions(name); got != "" {
			t.Errorf("conditions %s", got)
		}
	}
}

// rack lets 40 hosts join at the same time.
func (l *lab) rack(t *testing.T) {
	defer l.sub(t)()
	const n = 40
	done := make(chan error, n)
	began := time.Now()
	for range n {
		h := l.host()
		go func() {
			done <- func() error {
				token, err := l.joiner.Mint(context.Background(), l.target(), h, session(h, 1), h.Name)
				if err != nil {
					return err
				}
				_, err = l.kubelet(l.bearer(token), h.Name).enroll(t)
				return err
			}()
		}()
	}
	for range n {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d hosts have their certificates after %s", n, time.Since(began).Round(time.Millisecond))
}

func (l *lab) downAndUp(t *testing.T) {
	defer l.sub(t)()
	// A second target that nobody answers for holds up nothing.
	l.addSecret("dead", []byte(strings.Replace(string(l.Admin()), l.Server(), "https://127.0.0.1:1", 1)))
	l.write(func(tx inventory.Tx) error {
		return tx.JoinTargets().Create(&inventory.JoinTarget{Name: "dead", Endpoint: "127.0.0.1:1", Kubernetes: "1.36.3", Kubeconfig: "dead"}, time.Now())
	})
	h, late := l.host(), l.host()
	token := l.mint(h, 1)
	c := l.bearer(token)
	l.StopAPI()
	_, err := l.joiner.Mint(t.Context(), l.target(), late, session(late, 1), late.Name)
	var e *inventory.Error
	if !errors.As(err, &e) || e.Kind != inventory.Unavailable || e.Hint == "" {
		t.Errorf("a cluster that is down: %v", err)
	}
	cluster.Until(t, 30*time.Second, "there is an alarm", func() error { return l.sawAlarm(join.AlarmUnreachable, "", targetName) })
	l.StartAPI()
	if _, err := l.kubelet(c, h.Name).enroll(t); err != nil { // the approver comes back within 15 s
		t.Error(err)
	}
	if _, err := l.kubelet(l.bearer(l.mint(late, 1)), late.Name).enroll(t); err != nil {
		t.Error(err)
	}
	cluster.Until(t, 10*time.Second, "there is an all-clear", func() error { return l.sawAlarm(join.AlarmReachable, "", targetName) })
	l.must(l.sawAlarm(join.AlarmUnreachable, "", "dead"))
}
