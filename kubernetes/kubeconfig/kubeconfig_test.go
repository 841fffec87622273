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

// TestEachFaultOfAKubeconfigHasItsOwnTextAndWayOut holds for a file of the command line and for a text that is stored.
func TestEachFaultOfAKubeconfigHasItsOwnTextAndWayOut(t *testing.T) {
	good := strings.NewReplacer("{tokenFile: token}", "{token: t}", "certificate-authority: ca.crt", "certificate-authority-data: UEVN").Replace(text)
	seen := map[string]string{}
	for name, c := range map[string]struct{ text, msg, hint string }{
		"nothing":               {"", "is empty", "kubectl config view"},
		"white space":           {" \n\t\n", "is empty", "kubectl config view"},
		"noise":                 {"\x00\x01\xfe\xff\x80", "is no text", "kubectl config view"},
		"a word":                {"hello", "has no clusters, contexts and users", "kubectl config view"},
		"another object":        {"apiVersion: v1\nkind: Secret\nmetadata: {name: x}\n", "has no clusters, contexts and users", "kubectl config view"},
		"broken YAML":           {"apiVersion: v1\nclusters:\n- {name: prod\ncontexts: [\n", "is broken YAML (line ", "kubectl config view"},
		"a secret in bad YAML":  {"users: *hunter2\n", "is broken YAML", "kubectl config view"},
		"fields of other types": {"clusters: 7\n", "its fields are not those of a kubeconfig", "kubectl config view"},
		"no certificate checks": {strings.Replace(good, "certificate-authority-data: UEVN", "insecure-skip-tls-verify: true", 1), "insecure-skip-tls-verify", "--embed-certs"},
		"no authority":          {strings.Replace(good, ", certificate-authority-data: UEVN", "", 1), "does not say which certificate authority", "--embed-certs"},
		"a program":             {strings.Replace(good, "{token: t}", "{exec: {command: sh, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}}", 1), "running a program", "client certificate or token"},
		"no current context":    {strings.Replace(good, "current-context: kubernetes-admin@Prod.example", "", 1), "", "kubectl config"},
	} {
		for door, read := range map[string]func() error{
			"stored": func() error { _, err := Parse("secret kc", []byte(c.text)); return err },
			"a file": func() error { _, _, err := Complete([]byte(c.text)); return err },
		} {
			var e *inventory.Error
			if err := read(); !errors.As(err, &e) || e.Kind != inventory.Invalid || !strings.Contains(e.Msg, c.msg) || !strings.Contains(e.Hint, c.hint) {
				t.Errorf("%s, %s: %+v", name, door, err)
				continue
			}
			if strings.Contains(e.Msg+e.Hint, "hunter2") {
				t.Errorf("%s, %s: it quotes the file: %v (%s)", name, door, e, e.Hint)
			}
			if other := seen[door+e.Msg]; other != "" && c.msg != "" && !strings.Contains(c.msg, "has no clusters") && c.msg != "is empty" && c.msg != "is broken YAML" {
				t.Errorf("%s and %s have one text: %s", name, other, e.Msg)
			}
			seen[door+e.Msg] = name
		}
	}
	if _, err := Parse("secret kc", []byte(good)); err != nil {
		t.Errorf("the one that is good: %v", err)
	}
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
