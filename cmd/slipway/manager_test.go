package main

import (
	"bytes"
	"crypto/tls"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	"slipway.dev/slipway/machine/manifests"
)

// TestTheManagerTakesTheFlagsOfItsDeployment: what the manifests write into a cluster is what the program reads.
func TestTheManagerTakesTheFlagsOfItsDeployment(t *testing.T) {
	files, err := manifests.Files(manifests.Release{Version: "v0.1.0", Image: "registry.example/slipway:v0.1.0"})
	if err != nil {
		t.Fatal(err)
	}
	for name, sets := range map[string][]string{"infrastructure-components.yaml": {"standalone", "capi"}, "standalone.yaml": {"standalone"}} {
		var d appsv1.Deployment
		for doc := range bytes.SplitSeq(files[name], []byte("\n---\n")) {
			if bytes.Contains(doc, []byte("\nkind: Deployment\n")) {
				if err := yaml.Unmarshal(doc, &d); err != nil {
					t.Fatal(err)
				}
			}
		}
		if len(d.Spec.Template.Spec.Containers) != 1 {
			t.Fatalf("%s has no Deployment of one container", name)
		}
		box := d.Spec.Template.Spec.Containers[0]
		args := append(slices.Clone(box.Command[1:]), box.Args...)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "$(SLIPWAY_SERVER)", "https://10.0.0.1:8443")
		}
		var c cli
		parser, err := newParser(&c, io.Discard, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parser.Parse(args); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		m := c.Manager
		if !slices.Equal(m.Sets, sets) || m.Namespace != "" || m.WatchFilter != "" || !m.LeaderElect || m.HealthAddr != ":8081" ||
			c.Server != "https://10.0.0.1:8443" || c.TokenFile != "/etc/slipway/token" || c.CAFile != "/etc/slipway/ca.crt" {
			t.Errorf("%s: the manager is told %+v of server %q with token %q", name, m, c.Server, c.TokenFile)
		}
	}
}

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
			got, err := (&managerCommand{}).tls(c.server, file)
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
