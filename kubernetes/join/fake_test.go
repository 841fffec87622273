package join

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	certsv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore"
)

// fakeAPI is as much of an API server as joining needs; test/kube has a real one.
type fakeAPI struct {
	*httptest.Server
	t testing.TB

	mu       sync.Mutex
	secrets  map[string]corev1.Secret
	nodes    map[string]corev1.Node
	requests map[string]certsv1.CertificateSigningRequest
	// answer takes a request over when it returns true.
	answer func(w http.ResponseWriter, r *http.Request) bool
	calls  []string
}

func newFakeAPI(t testing.TB, cert ...tls.Certificate) *fakeAPI {
	t.Helper()
	a := &fakeAPI{t: t, secrets: map[string]corev1.Secret{}, nodes: map[string]corev1.Node{}, requests: map[string]certsv1.CertificateSigningRequest{}}
	a.Server = httptest.NewUnstartedServer(a)
	a.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	if len(cert) > 0 {
		a.TLS = &tls.Config{Certificates: cert}
	}
	a.StartTLS()
	t.Cleanup(a.Close)
	return a
}

func (a *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	a.calls = append(a.calls, r.Method+" "+r.URL.Path)
	answer := a.answer
	a.mu.Unlock()
	if answer != nil && answer(w, r) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		a.t.Error(err)
	}
	const secrets, nodes, requests = "/api/v1/namespaces/kube-system/secrets", "/api/v1/nodes/", "/apis/certificates.k8s.io/v1/certificatesigningrequests/"
	name := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	switch {
	case r.Method == http.MethodPost && r.URL.Path == secrets:
		s := decode[corev1.Secret](a.t, body)
		if _, exists := a.secrets[s.Name]; exists {
			refuse(w, http.StatusConflict, metav1.StatusReasonAlreadyExists)
			return
		}
		a.secrets[s.Name] = s
		encode(w, s)
	case r.Method == http.MethodDelete && strings.HasPrefix(r.URL.Path, secrets):
		if _, exists := a.secrets[name]; !exists {
			refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound)
			return
		}
		delete(a.secrets, name)
		encode(w, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Success"})
	case strings.HasPrefix(r.URL.Path, nodes):
		reply(w, a.nodes, name)
	case r.Method == http.MethodPut && strings.HasPrefix(r.URL.Path, requests):
		req := decode[certsv1.CertificateSigningRequest](a.t, body)
		a.requests[req.Name] = req
		encode(w, req)
	case strings.HasPrefix(r.URL.Path, requests):
		reply(w, a.requests, name)
	default:
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound)
	}
}

func reply[T any](w http.ResponseWriter, all map[string]T, name string) {
	if v, ok := all[name]; ok {
		encode(w, v)
		return
	}
	refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound)
}

func decode[T any](t testing.TB, body []byte) (v T) {
	if err := json.Unmarshal(body, &v); err != nil {
		t.Error(err)
	}
	return v
}

func encode(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: int32(code), Reason: reason, Message: "because " + string(reason),
	})
}

func (a *fakeAPI) setAnswer(f func(http.ResponseWriter, *http.Request) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answer = f
}

func (a *fakeAPI) secretNames() (names []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for n := range a.secrets {
		names = append(names, n)
	}
	return names
}

// kubeconfig returns a kubeconfig for the server, changed by change.
func (a *fakeAPI) kubeconfig(change func(*clientcmdapi.Config)) []byte {
	a.t.Helper()
	c := clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"c": {
			Server:                   a.URL,
			CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.Certificate().Raw}),
		}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {Token: "t"}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	}
	if change != nil {
		change(&c)
	}
	out, err := clientcmd.Write(c)
	if err != nil {
		a.t.Fatal(err)
	}
	return out
}

// lab is a Joiner with a store and one target at a fake server.
type lab struct {
	*Joiner
	t     testing.TB
	store *sqlstore.Store
	api   *fakeAPI

	mu     sync.Mutex
	now    time.Time
	values map[string][]byte
	alarms []Alarm
}

func newLab(t testing.TB) *lab {
	t.Helper()
	store, err := sqlstore.Open(t.Context(), sqlstore.Config{Path: filepath.Join(t.TempDir(), "slipway.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	l := &lab{t: t, store: store, api: newFakeAPI(t), now: time.Now().Truncate(time.Millisecond), values: map[string][]byte{}}
	l.Joiner = New(Config{Store: store, Secrets: l, Now: l.clock, Alarm: func(_ context.Context, a Alarm) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.alarms = append(l.alarms, a)
	}})
	l.setSecret("kubeconfig", l.api.kubeconfig(nil))
	l.write(func(tx inventory.Tx) error {
		for _, h := range []inventory.Host{*host(1), *host(2)} {
			if err := tx.CreateHost(&h, l.clock()); err != nil {
				return err
			}
		}
		target := target()
		return tx.JoinTargets().Create(&target, l.clock())
	})
	return l
}

func target() inventory.JoinTarget {
	return inventory.JoinTarget{Name: "prod", Endpoint: "10.0.0.1:6443", Kubernetes: "1.36.0", Kubeconfig: "kubeconfig"}
}

func host(n int) *inventory.Host {
	c := string(rune('0' + n))
	return &inventory.Host{
		ID: inventory.HostID("host-" + c), Name: "web-" + c, State: inventory.Installing,
		NICs: []inventory.NIC{{MAC: inventory.MAC("52:54:00:00:00:0" + c)}},
	}
}

func (l *lab) clock() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now
}

func (l *lab) pass(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now = l.now.Add(d)
}

func (l *lab) write(fn func(inventory.Tx) error) {
	l.t.Helper()
	if err := l.store.Write(context.Background(), fn); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) setSecret(name string, value []byte) {
	l.t.Helper()
	l.mu.Lock()
	l.values[name] = value
	l.mu.Unlock()
	l.write(func(tx inventory.Tx) error {
		s, err := tx.Secrets().Find(name)
		if err != nil {
			return tx.Secrets().Create(&inventory.Secret{Name: name, Sealed: []byte("x")}, time.Now())
		}
		s.Sealed = []byte("y")
		return tx.Secrets().Update(&s, time.Now())
	})
}

func (l *lab) token(id string) inventory.JoinToken {
	l.t.Helper()
	var k inventory.JoinToken
	l.write(func(tx inventory.Tx) (err error) {
		k, err = tx.FindJoinToken(id[:6])
		return err
	})
	return k
}

func (l *lab) mint(h *inventory.Host, s inventory.SessionID) string {
	l.t.Helper()
	k, err := l.Mint(l.t.Context(), target(), h, s, h.Name)
	if err != nil {
		l.t.Fatal(err)
	}
	return k
}

// Open, Seal and Unseal make the lab a Secrets.
func (l *lab) Open(_ context.Context, name string) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if v, ok := l.values[name]; ok {
		return v, nil
	}
	return nil, inventory.Errorf(inventory.NotFound, "no secret is called %s", name)
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
