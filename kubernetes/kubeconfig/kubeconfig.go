// Package kubeconfig owns which kubeconfigs the appliance uses: those that hold their credentials themselves and say
// whom to trust. It opens no connection.
package kubeconfig

import (
	"bytes"
	"regexp"
	"unicode/utf8"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"slipway.dev/slipway/inventory"
)

const flatten = "print a complete one with: kubectl config view --raw --minify --flatten"

// Parse reads a kubeconfig, and keeps only what its current context uses. It must hold its credentials itself. The API that
// stores kubeconfigs must not reach a file of the server, or a program to run. The error is Invalid and begins with what,
// such as "target prod: secret admin"; its cause may quote the kubeconfig and goes to no one.
func Parse(what string, text []byte) (*rest.Config, error) {
	bad := inventory.Errorf(inventory.Invalid, "%s is not a kubeconfig that can be used", what)
	if why := notKubeconfig(text); why != "" {
		return nil, inventory.Errorf(inventory.Invalid, "%s %s", what, why).WithHint(flatten)
	}
	raw, err := clientcmd.Load(text)
	if err != nil {
		return nil, inventory.Errorf(inventory.Invalid, "%s is YAML, but its fields are not those of a kubeconfig", what).WithHint(flatten)
	}
	context, ok := raw.Contexts[raw.CurrentContext]
	if !ok {
		return nil, bad.WithHint("it has no current-context; " + flatten)
	}
	user, server := raw.AuthInfos[context.AuthInfo], raw.Clusters[context.Cluster]
	if user == nil || server == nil || server.Server == "" {
		return nil, bad.WithHint("its current context names a cluster or user that it does not hold")
	}
	if why, hint := unsafe(user, server); why != "" {
		return nil, inventory.Errorf(inventory.Invalid, "%s cannot be used: %s", what, why).WithHint("%s", hint)
	}
	cfg, err := clientcmd.NewDefaultClientConfig(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": server},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": user},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	}, nil).ClientConfig()
	if err != nil {
		return nil, bad.WithHint(flatten)
	}
	cfg.QPS = -1 // hosts of a whole rack may ask at once; the server has its own limits
	cfg.UserAgent = "slipway"
	cfg.WarningHandler = rest.NoWarnings{}
	return cfg, nil
}

// notKubeconfig says what a text is that is no kubeconfig at all, "" for one that may be. It quotes nothing of the text.
func notKubeconfig(text []byte) string {
	if len(bytes.TrimSpace(text)) == 0 {
		return "is empty"
	}
	if !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0 {
		return "is no text"
	}
	var fields any
	if err := yaml.Unmarshal(text, &fields); err != nil {
		if line := lineOf.FindString(err.Error()); line != "" {
			return "is broken YAML (" + line + ")"
		}
		return "is broken YAML"
	}
	m, ok := fields.(map[string]any)
	if !ok || m["clusters"] == nil && m["contexts"] == nil && m["users"] == nil {
		return "is no kubeconfig: it has no clusters, contexts and users"
	}
	return ""
}

var lineOf = regexp.MustCompile(`line [0-9]+`)

// unsafe says what keeps a kubeconfig from being used, and the way out; "" if nothing does.
func unsafe(user *clientcmdapi.AuthInfo, server *clientcmdapi.Cluster) (why, hint string) {
	const pin = "kubectl config set-cluster NAME --certificate-authority FILE --embed-certs writes certificate-authority-data into its cluster"
	switch {
	case user.Exec != nil || user.AuthProvider != nil:
		return "its user logs in by running a program", "use one with a client certificate or token"
	case user.ClientCertificate != "" || user.ClientKey != "" || user.TokenFile != "" || server.CertificateAuthority != "":
		return "it names files", "print one that holds them with: kubectl config view --raw --minify --flatten"
	case server.InsecureSkipTLSVerify:
		return "it says insecure-skip-tls-verify, with which anybody could answer for the cluster", "take that out; " + pin
	case len(server.CertificateAuthorityData) == 0:
		return "it does not say which certificate authority to trust", pin
	}
	return "", ""
}
