package kubeconfig

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
)

const text = `apiVersion: v1
kind: Config
current-context: kubernetes-admin@Prod.example
contexts:
- {name: kubernetes-admin@Prod.example, context: {cluster: prod, user: admin}}
- {name: other, context: {cluster: prod, user: other}}
clusters:
- {name: prod, cluster: {server: "https://10.0.0.1:6443", certificate-authority: ca.crt}}
users:
- {name: admin, user: {tokenFile: token}}
- {name: other, user: {token: of-another-context}}
`

func TestAFileIsReadWithTheFilesThatItNames(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"kubeconfig": text, "ca.crt": "PEM", "token": "secret\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	name, got, err := Read(filepath.Join(dir, "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	if name != "kubernetes-admin-prod-example" {
		t.Errorf("name %q", name)
	}
	for _, bad := range []string{dir, "of-another-context", "ca.crt"} {
		if strings.Contains(string(got), bad) {
			t.Errorf("it holds %q:\n%s", bad, got)
		}
	}
	cfg, err := Parse("it", got)
	if err != nil || cfg.BearerToken != "secret" || string(cfg.CAData) != "PEM" || cfg.Host != "https://10.0.0.1:6443" {
		t.Errorf("%v %+v", err, cfg)
	}
	if err := os.Remove(filepath.Join(dir, "token")); err != nil {
		t.Fatal(err)
	}
	wantInvalid(t, func() error { _, _, err := Read(filepath.Join(dir, "kubeconfig")); return err }(), "cannot be read")
}

func TestATextNamesNoFiles(t *testing.T) {
	_, _, err := Complete([]byte(text))
	wantInvalid(t, err, "it names files")
	_, _, err = Complete([]byte(strings.Replace(text, "current-context: kubernetes-admin@Prod.example", "", 1)))
	wantInvalid(t, err, "current-context")
	_, _, err = Complete([]byte("hello"))
	wantInvalid(t, err, "kubectl config view")
	_, _, err = Complete([]byte(strings.NewReplacer("{tokenFile: token}", "{exec: {command: sh, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}}",
		"certificate-authority: ca.crt", "certificate-authority-data: UEVN").Replace(text)))
	wantInvalid(t, err, "running a program")
}

func TestAContextBecomesAName(t *testing.T) {
	for context, want := range map[string]string{
		"admin@lab": "admin-lab", "arn:aws:eks:eu-central-1:1234:cluster/Prod": "arn-aws-eks-eu-central-1-1234-cluster-prod", "": "cluster", "___": "cluster",
		strings.Repeat("x", 70) + "-end": strings.Repeat("x", 46) + "-end",
	} {
		got := label(context)
		if got != want {
			t.Errorf("%q is called %q, want %q", context, got, want)
		}
		if err := inventory.CheckName("cluster", got); err != nil {
			t.Error(err)
		}
	}
}

func wantInvalid(t *testing.T, err error, words string) {
	t.Helper()
	var e *inventory.Error
	if !errors.As(err, &e) || e.Kind != inventory.Invalid || !strings.Contains(e.Msg+" "+e.Hint, words) {
		t.Errorf("%v does not say %q", err, words)
	}
}
