package clusters

import (
	"crypto/tls"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheManagersTrust(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	own := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for _, c := range []struct {
		name     string
		ca       []byte
		server   string
		isOwn    bool // the file's authorities and no others
		isNoTLS  bool
		complain string
	}{
		{name: "an authority of its own", ca: own, server: server.URL, isOwn: true},
		{name: "a Secret without one is an empty file: those of the system", ca: nil, server: server.URL},
		{name: "nor is a line break one", ca: []byte("\n"), server: server.URL},
		{name: "something else is refused", ca: []byte("token"), server: server.URL, complain: "no certificate"},
		{name: "http needs none", ca: []byte("token"), server: "http://10.0.0.1", isNoTLS: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "ca.crt")
			if err := os.WriteFile(file, c.ca, 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := (&ManagerCommand{}).tls(c.server, file)
			if c.complain != "" {
				if err == nil || !strings.Contains(err.Error(), c.complain) {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if c.isNoTLS != (got == nil) {
				t.Fatalf("%+v", got)
			}
			if got == nil {
				return
			}
			if c.isOwn != (got.RootCAs != nil) {
				t.Errorf("authorities %v", got.RootCAs)
			}
			conn, err := tls.Dial("tcp", strings.TrimPrefix(c.server, "https://"), got)
			if c.isOwn != (err == nil) { // no system trusts the test's own
				t.Errorf("%v", err)
			}
			if err == nil {
				_ = conn.Close()
			}
		})
	}
}
