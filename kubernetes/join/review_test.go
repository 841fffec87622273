package join

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	certsv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"slipway.dev/slipway/inventory"
)

// ask puts a request of a token into the fake server, as a kubelet does.
func (l *lab) ask(token, name, node string) *certsv1.CertificateSigningRequest {
	l.t.Helper()
	r, _ := rightCase(l.t)
	r.Name, r.UID, r.Spec.Username = name, types.UID("uid of "+name), "system:bootstrap:"+token[:6]
	r.Spec.Request = makeCSR(l.t, func(c *x509.CertificateRequest) { c.Subject.CommonName = "system:node:" + node })
	l.api.mu.Lock()
	defer l.api.mu.Unlock()
	l.api.requests[name] = *r
	return r
}

func (l *lab) cluster() *cluster {
	l.t.Helper()
	t := target()
	c, err := l.connect(l.t.Context(), &t)
	if err != nil {
		l.t.Fatal(err)
	}
	return c
}

func (l *lab) settled(name string) string {
	l.api.mu.Lock()
	defer l.api.mu.Unlock()
	for _, c := range l.api.requests[name].Status.Conditions {
		return string(c.Type)
	}
	return ""
}

func TestReview(t *testing.T) {
	t.Run("the token is spent in the store before the cluster hears of the approval", func(t *testing.T) {
		l := newLab(t)
		token := l.mint(host(1), "0011223344")
		state := inventory.JoinTokenState("")
		l.api.setAnswer(func(_ http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPut {
				state = l.token(token).State
			}
			return false
		})
		d, err := l.review(t.Context(), l.cluster(), l.ask(token, "a", "web-1"))
		if err != nil || d.Verdict != Approve || state != inventory.TokenSpent || l.settled("a") != "Approved" || l.token(token).CSR != "uid of a" {
			t.Errorf("%+v, %v; token was %s, request is %q", d, err, state, l.settled("a"))
		}
	})
	t.Run("a decision that meets a change is made again", func(t *testing.T) {
		l := newLab(t)
		n := 0
		l.api.setAnswer(func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPut {
				n++
			}
			if n == 1 && r.Method == http.MethodPut {
				refuse(w, http.StatusConflict, metav1.StatusReasonConflict)
				return true
			}
			return false
		})
		_, err := l.review(t.Context(), l.cluster(), l.ask(l.mint(host(1), "0011223344"), "a", "web-1"))
		if err != nil || n != 2 || l.settled("a") != "Approved" {
			t.Errorf("%v after %d tries, request is %q", err, n, l.settled("a"))
		}
	})
	t.Run("an approval that did not arrive is repeated", func(t *testing.T) {
		l := newLab(t)
		r := l.ask(l.mint(host(1), "0011223344"), "a", "web-1")
		l.api.setAnswer(func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPut {
				refuse(w, 503, metav1.StatusReasonServiceUnavailable)
			}
			return r.Method == http.MethodPut
		})
		if _, err := l.review(t.Context(), l.cluster(), r); inventory.KindOf(err) != inventory.Unavailable {
			t.Errorf("got %v", err)
		}
		l.api.setAnswer(nil)
		if _, err := l.review(t.Context(), l.cluster(), r); err != nil || l.settled("a") != "Approved" {
			t.Errorf("%v, request is %q", err, l.settled("a"))
		}
	})
	t.Run("a denial raises an alarm that names the host and not its secrets", func(t *testing.T) {
		l := newLab(t)
		token := l.mint(host(1), "0011223344")
		if _, err := l.review(t.Context(), l.cluster(), l.ask(token, "a", "web-2")); err != nil || l.settled("a") != "Denied" {
			t.Errorf("%v, request is %q", err, l.settled("a"))
		}
		if len(l.alarms) != 1 || l.alarms[0].Host != "host-1" || l.alarms[0].Kind != AlarmRefused || l.alarms[0].Session != "0011223344" {
			t.Fatalf("alarms %+v", l.alarms)
		}
		if strings.Contains(l.alarms[0].Detail+l.alarms[0].Hint, token[7:]) {
			t.Error("the alarm holds the token")
		}
		if l.token(token).State != inventory.TokenMinted {
			t.Error("a wrong request has spent the token")
		}
	})
	t.Run("a token whose node has joined stays so", func(t *testing.T) {
		l := newLab(t)
		r := l.ask(l.mint(host(1), "0011223344"), "a", "web-1")
		id := strings.TrimPrefix(r.Spec.Username, tokenUser)
		k := l.token(id)
		k.State, k.CSR = inventory.TokenJoined, string(r.UID)
		l.write(func(tx inventory.Tx) error { return tx.SaveJoinToken(k) })
		if _, err := l.review(t.Context(), l.cluster(), r); err != nil || l.token(id).State != inventory.TokenJoined || l.settled("a") != "Approved" {
			t.Errorf("%v; token is %s, request is %q", err, l.token(id).State, l.settled("a"))
		}
	})
	t.Run("a request that is settled is left alone", func(t *testing.T) {
		l := newLab(t)
		token := l.mint(host(1), "0011223344")
		r := l.ask(token, "a", "web-1")
		r.Status.Conditions = []certsv1.CertificateSigningRequestCondition{{Type: certsv1.CertificateDenied}}
		if d, err := l.review(t.Context(), l.cluster(), r); err != nil || d.Verdict != Ignore || l.token(token).State != inventory.TokenMinted {
			t.Errorf("%+v, %v", d, err)
		}
	})
	t.Run("two requests at the same moment get one approval", func(t *testing.T) {
		l := newLab(t)
		token := l.mint(host(1), "0011223344")
		c, done := l.cluster(), make(chan struct{})
		for _, name := range []string{"a", "b", "c", "d"} {
			r := l.ask(token, name, "web-1")
			go func() {
				_, _ = l.review(context.Background(), c, r)
				done <- struct{}{}
			}()
		}
		n := map[string]int{}
		for range 4 {
			<-done
		}
		for _, name := range []string{"a", "b", "c", "d"} {
			n[l.settled(name)]++
		}
		if n["Approved"] != 1 || n["Denied"] != 3 {
			t.Errorf("decisions %v", n)
		}
	})
}

func TestReviewOfNamesThatAreInUse(t *testing.T) {
	alive := corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
	dead := corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}}}
	old := func(host inventory.HostID, state inventory.JoinTokenState, csr string) inventory.JoinToken {
		return inventory.JoinToken{ID: "old000", Target: "prod", HostID: host, NodeName: "web-1", State: state, CSR: csr, Sealed: []byte("x")}
	}
	for _, tt := range []struct {
		name string
		node *corev1.Node
		old  inventory.JoinToken
		want string
	}{
		{"no node, and another host had the name until its release", nil, old("host-2", inventory.TokenRevoked, "u"), "Approved"},
		{"a dead node of a host that is gone", &dead, old("host-9", inventory.TokenJoined, "u"), "Approved"},
		{"a dead node of another host that was released", &dead, old("host-2", inventory.TokenRevoked, "u"), "Approved"},
		{"a live node of another host that was released", &alive, old("host-2", inventory.TokenRevoked, "u"), "Denied"},
		{"a live node of the host itself", &alive, old("host-1", inventory.TokenJoined, "u"), "Approved"},
		{"a live node of the host before it was released", &alive, old("host-1", inventory.TokenRevoked, "u"), "Approved"},
		{"a live node, and the host never got as far as that", &alive, old("host-1", inventory.TokenRevoked, ""), "Denied"},
		{"a live node of nobody", &alive, old("host-1", inventory.TokenMinted, ""), "Denied"},
		{"a dead node of nobody", &dead, old("host-1", inventory.TokenMinted, ""), "Approved"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLab(t)
			tt.old.CreatedAt, tt.old.ExpiresAt = l.clock().Add(-time.Hour), l.clock().Add(-time.Minute)
			l.write(func(tx inventory.Tx) error { return tx.SaveJoinToken(tt.old) })
			if tt.node != nil {
				l.api.nodes["web-1"] = *tt.node
			}
			_, err := l.review(t.Context(), l.cluster(), l.ask(l.mint(host(1), "0011223344"), "a", "web-1"))
			if err != nil || l.settled("a") != tt.want {
				t.Errorf("request is %q, want %s: %v", l.settled("a"), tt.want, err)
			}
		})
	}
}

func TestSweep(t *testing.T) {
	node := func(created, heard time.Duration) func(*lab) {
		return func(l *lab) {
			n := corev1.Node{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(l.clock().Add(created))}}
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.NewTime(l.clock().Add(heard))}}
			l.api.nodes["web-1"] = n
		}
	}
	for _, tt := range []struct {
		name  string
		spent bool
		setup func(*lab)
		after time.Duration
		want  inventory.JoinTokenState
	}{
		{"a token that waits stays", false, nil, time.Minute, inventory.TokenMinted},
		{"a spent token stays until its node appears: kubelet fetches its certificate with it", true, nil, time.Minute, inventory.TokenSpent},
		{"a node that is new closes it", true, node(time.Minute, 0), 2 * time.Minute, inventory.TokenJoined},
		{"an old node that nobody has heard since does not", true, node(-time.Hour, -time.Minute), time.Minute, inventory.TokenSpent},
		{"an old node that was heard since does", true, node(-time.Hour, time.Minute), 2 * time.Minute, inventory.TokenJoined},
		{"a node does not close a token that was not used", false, node(time.Minute, time.Minute), 2 * time.Minute, inventory.TokenMinted},
		{"an unused token goes when it expires", false, nil, 30 * time.Minute, inventory.TokenRevoked},
		{"a spent one too", true, nil, 31 * time.Minute, inventory.TokenRevoked},
		{"a node that appeared in the last moment counts", true, node(time.Minute, 0), 31 * time.Minute, inventory.TokenJoined},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLab(t)
			token := l.mint(host(1), "0011223344")
			c, tgt := l.cluster(), target()
			if tt.spent {
				if _, err := l.review(t.Context(), c, l.ask(token, "a", "web-1")); err != nil {
					t.Fatal(err)
				}
			}
			if tt.setup != nil {
				tt.setup(l)
			}
			l.pass(tt.after)
			l.sweep(t.Context(), c, &tgt)
			isOpen := tt.want == inventory.TokenMinted || tt.want == inventory.TokenSpent
			if got := l.token(token).State; got != tt.want || (len(l.api.secretNames()) == 1) != isOpen {
				t.Errorf("token is %s, want %s; Secrets %v", got, tt.want, l.api.secretNames())
			}
		})
	}
}

func TestTheNewestRequestOfATokenComesFirst(t *testing.T) {
	at := func(name, user string, second int64) certsv1.CertificateSigningRequest {
		return certsv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.Unix(second, 0)},
			Spec:       certsv1.CertificateSigningRequestSpec{Username: user},
		}
	}
	got := byAsker([]certsv1.CertificateSigningRequest{at("a1", "a", 1), at("b1", "b", 9), at("a3", "a", 3), at("a2", "a", 2)})
	var names []string
	for _, r := range got["a"] {
		names = append(names, r.Name)
	}
	if !slices.Equal(names, []string{"a3", "a2", "a1"}) || len(got["b"]) != 1 {
		t.Errorf("got %v", names)
	}
}

func TestServingNamesComeFromTheInventory(t *testing.T) {
	l := newLab(t)
	l.cfg.ServingCerts = true
	addr := netip.MustParseAddr
	l.write(func(tx inventory.Tx) error {
		s := inventory.Subnet{Name: "lan", CIDR: netip.MustParsePrefix("10.0.0.0/24"), Domain: "example.com"}
		s.FillDefaults()
		if err := tx.Subnets().Create(&s, l.clock()); err != nil {
			return err
		}
		if err := tx.SaveJoinToken(inventory.JoinToken{ID: "joined", Target: "prod", HostID: "host-1", NodeName: "web-1", State: inventory.TokenJoined, CSR: "u"}); err != nil {
			return err
		}
		for last, n := range map[string]int{"10.0.0.5": 1, "10.0.0.6": 2} {
			if err := tx.CreateReservation(&inventory.Reservation{Address: addr(last), Subnet: "lan", MAC: host(n).NICs[0].MAC}, l.clock()); err != nil {
				return err
			}
		}
		for last, state := range map[string]inventory.LeaseState{
			"10.0.0.7": inventory.LeaseBound, "10.0.0.6": inventory.LeaseBound, "10.0.0.9": inventory.LeaseDeclined,
		} {
			lease := inventory.Lease{Address: addr(last), Subnet: "lan", MAC: host(1).NICs[0].MAC, State: state, StartsAt: l.clock(), ExpiresAt: l.clock()}
			if err := tx.SaveLease(lease); err != nil {
				return err
			}
		}
		return nil
	})
	for _, tt := range []struct {
		name  string
		names []string
		addrs []string
		want  string
	}{
		{"its name and reserved address", []string{"web-1"}, []string{"10.0.0.5"}, "Approved"},
		{"its leased address and its name in that subnet's domain", []string{"web-1.example.com"}, []string{"10.0.0.7"}, "Approved"},
		{"an address that it had before it was reserved for another host", []string{"web-1"}, []string{"10.0.0.5", "10.0.0.6"}, ""},
		{"an address that it has declined", []string{"web-1"}, []string{"10.0.0.9"}, ""},
		{"an address of nobody", []string{"web-1"}, []string{"10.0.0.8"}, ""},
		{"a name in a domain where it has no address", []string{"web-1.example.com"}, nil, ""},
		{"another host's name", []string{"web-2"}, []string{"10.0.0.5"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, _ := servingCase(t)
			r.Name = "serving"
			r.Spec.Request = makeCSR(t, func(c *x509.CertificateRequest) {
				c.DNSNames = tt.names
				for _, a := range tt.addrs {
					c.IPAddresses = append(c.IPAddresses, net.ParseIP(a))
				}
			})
			l.api.mu.Lock()
			l.api.requests["serving"] = *r
			l.api.mu.Unlock()
			if _, err := l.review(t.Context(), l.cluster(), r); err != nil || l.settled("serving") != tt.want {
				t.Errorf("request is %q, want %q: %v", l.settled("serving"), tt.want, err)
			}
			l.cfg.ServingCerts = false
			if d, err := l.review(t.Context(), l.cluster(), r); err != nil || d.Verdict != Ignore {
				t.Errorf("with ServingCerts off: %+v, %v", d, err)
			}
			l.cfg.ServingCerts = true
		})
	}
}

func TestSweepLeavesWhatWasRevokedMeanwhile(t *testing.T) {
	l := newLab(t)
	token := l.mint(host(1), "0011223344")
	c, tgt := l.cluster(), target()
	if _, err := l.review(t.Context(), c, l.ask(token, "a", "web-1")); err != nil {
		t.Fatal(err)
	}
	l.api.nodes["web-1"] = corev1.Node{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(l.clock().Add(time.Minute))}}
	l.api.setAnswer(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasPrefix(r.URL.Path, "/api/v1/nodes/") {
			if err := l.Revoke(context.Background(), "0011223344"); err != nil {
				t.Error(err)
			}
		}
		return false
	})
	l.sweep(t.Context(), c, &tgt)
	if got := l.token(token).State; got != inventory.TokenRevoked {
		t.Errorf("token is %s", got)
	}
}

// TestAHostGetsNoTokenForTheNameOfAnotherHostsNode asks for a name that another host joined with and was not released from,
// whether its node is dead or somebody has deleted it: that host may come back as the same node.
func TestAHostGetsNoTokenForTheNameOfAnotherHostsNode(t *testing.T) {
	for name, node := range map[string]*corev1.Node{"no node": nil, "a dead node": {}} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			old := inventory.JoinToken{
				ID: "old000", Target: "prod", HostID: "host-2", NodeName: "web-1", State: inventory.TokenJoined, CSR: "u", Sealed: []byte("x"),
				CreatedAt: l.clock().Add(-time.Hour), ExpiresAt: l.clock().Add(-time.Minute),
			}
			l.write(func(tx inventory.Tx) error { return tx.SaveJoinToken(old) })
			if node != nil {
				l.api.nodes["web-1"] = *node
			}
			_, err := l.Mint(t.Context(), target(), host(1), "0011223344", "web-1")
			var e *inventory.Error
			if !errors.As(err, &e) || e.Kind != inventory.Conflict || !strings.Contains(e.Hint, "slipway host release") {
				t.Errorf("got %v, want a conflict that names the way out", err)
			}
		})
	}
}
