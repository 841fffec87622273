package kubeconfig

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"slipway.dev/slipway/inventory"
)

// Read reads the kubeconfig in a file of the user that runs this program. It leaves out what the current context does not
// use, and puts in certificates and tokens from the files that it names. name is the context's, as a DNS label.
func Read(path string) (name string, text []byte, err error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return "", nil, &inventory.Error{Kind: inventory.Invalid, Msg: "cannot read the kubeconfig: " + err.Error()}
	}
	return complete(raw, filepath.Dir(path), filepath.Base(path))
}

// Complete is Read for a text. It reads no files that the text names.
func Complete(raw []byte) (name string, text []byte, err error) {
	return complete(raw, "", "the kubeconfig")
}

func complete(raw []byte, dir, what string) (string, []byte, error) {
	bad := inventory.Errorf(inventory.Invalid, "%s is not a kubeconfig that can be used", what)
	if why := notKubeconfig(raw); why != "" {
		return "", nil, inventory.Errorf(inventory.Invalid, "%s %s", what, why).WithHint(flatten)
	}
	c, err := clientcmd.Load(raw)
	if err != nil {
		return "", nil, inventory.Errorf(inventory.Invalid, "%s is YAML, but its fields are not those of a kubeconfig", what).WithHint(flatten)
	}
	if len(c.Contexts) == 0 {
		return "", nil, inventory.Errorf(inventory.Invalid, "%s has no contexts", what).WithHint(flatten)
	}
	if err := clientcmdapi.MinifyConfig(c); err != nil {
		return "", nil, bad.WithHint("it has no current-context; choose one with: kubectl config use-context NAME")
	}
	if dir != "" {
		for _, refs := range [][]*string{clusterFiles(c), userFiles(c)} {
			for _, p := range refs {
				if *p != "" && !filepath.IsAbs(*p) {
					*p = filepath.Join(dir, *p)
				}
			}
		}
		if err := inline(c); err != nil {
			return "", nil, bad.WithHint("a file that it names cannot be read: %s", err)
		}
	}
	text, err := clientcmd.Write(*c)
	if err != nil {
		return "", nil, bad
	}
	if _, err := Parse(what, text); err != nil {
		return "", nil, err
	}
	return label(c.CurrentContext), text, nil
}

func clusterFiles(c *clientcmdapi.Config) (refs []*string) {
	for _, x := range c.Clusters {
		refs = append(refs, &x.CertificateAuthority)
	}
	return refs
}

func userFiles(c *clientcmdapi.Config) (refs []*string) {
	for _, x := range c.AuthInfos {
		refs = append(refs, &x.ClientCertificate, &x.ClientKey, &x.TokenFile)
	}
	return refs
}

// inline puts the files that a kubeconfig names into it.
func inline(c *clientcmdapi.Config) error {
	if err := clientcmdapi.FlattenConfig(c); err != nil {
		return err
	}
	for _, u := range c.AuthInfos {
		if u.TokenFile == "" {
			continue
		}
		token, err := os.ReadFile(u.TokenFile)
		if err != nil {
			return err
		}
		u.Token, u.TokenFile = strings.TrimSpace(string(token)), ""
	}
	return nil
}

var notLabel = regexp.MustCompile(`[^a-z0-9]+`)

// label makes a name of a context, such as kubernetes-admin@prod or arn:aws:eks:…/prod, a DNS label.
func label(context string) string {
	s := strings.Trim(notLabel.ReplaceAllString(strings.ToLower(context), "-"), "-")
	if s = strings.Trim(s[max(0, len(s)-50):], "-"); s == "" {
		return "cluster"
	}
	return s
}
