package manager

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore"
)

// kubeconfigOf is for a server with a certificate authority, in PEM.
func kubeconfigOf(server, ca string) []byte {
	return []byte("apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n" +
		"clusters: [{name: a, cluster: {server: '" + server + "', certificate-authority-data: " + base64.StdEncoding.EncodeToString([]byte(ca)) + "}}]\n" +
		"users: [{name: a, user: {token: t}}]\n")
}

// answering is an API server that answers everything with one status.
func answering(t *testing.T, status int) (url, ca string) {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"because","code":%d}`, status)
	}))
	s.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

// TestARefusedAttachNamesTheServerTheCauseAndNoClusterThatDoesNotExist: a cluster that is only tried is not stored, so a hint
// may not name it in a command.
func TestARefusedAttachNamesTheServerTheCauseAndNoClusterThatDoesNotExist(t *testing.T) {
	store, err := sqlstore.Open(t.Context(), sqlstore.Config{Path: filepath.Join(t.TempDir(), "db")})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "https://" + l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	stranger, _ := answering(t, http.StatusOK)
	at := func(status int) func() (string, string) {
		return func() (string, string) { return answering(t, status) }
	}
	for name, c := range map[string]struct {
		server func() (url, ca string)
		says   []string // of the detail
	}{
		"nobody listens":          {func() (string, string) { return closed, testCA(t) }, []string{closed, "connection refused"}},
		"a name without address":  {func() (string, string) { return "https://api.invalid:6443", testCA(t) }, []string{"https://api.invalid:6443", "no address is known for the name api.invalid"}},
		"another authority":       {func() (string, string) { return stranger, testCA(t) }, []string{"not from the certificate authority"}},
		"credentials are refused": {at(http.StatusUnauthorized), []string{"does not accept the credentials"}},
		"rights are refused":      {at(http.StatusForbidden), []string{"refuses: "}},
		"no API":                  {at(http.StatusNotFound), []string{"not there"}},
		"it is broken":            {at(http.StatusInternalServerError), []string{"is not able to answer at the moment: "}},
	} {
		t.Run(name, func(t *testing.T) {
			url, ca := c.server()
			a := New(Config{Store: store})
			k := a.Check(t.Context(), inventory.Cluster{Name: "prod", Kubeconfig: "kubeconfig"}, kubeconfigOf(url, ca))
			bad := k.Results[len(k.Results)-1]
			if bad.IsGood || bad.Hint == "" {
				t.Fatalf("results %+v", k.Results)
			}
			for _, want := range c.says {
				if !strings.Contains(bad.Detail, want) {
					t.Errorf("%q does not say %q", bad.Detail, want)
				}
			}
			for _, r := range k.Results {
				for _, command := range []string{"check prod", "detach prod", "show prod", "access prod"} {
					if strings.Contains(r.Hint, command) {
						t.Errorf("the hint names a cluster that does not exist: %s", r.Hint)
					}
				}
			}
		})
	}
}
