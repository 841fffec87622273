package join

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	authzv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/egress"
)

// Checkup holds what Check found, in the order of its checks.
type Checkup struct {
	Target  string   `json:"target"`
	Version string   `json:"version,omitempty"` // of the API server
	Results []Result `json:"results"`
}

// Result is one thing that was checked.
type Result struct {
	Name   string `json:"name"`
	IsGood bool   `json:"isGood"`
	Detail string `json:"detail"`
	Hint   string `json:"hint,omitempty"`
}

// IsGood reports whether hosts can join the target.
func (r *Checkup) IsGood() bool {
	return !slices.ContainsFunc(r.Results, func(s Result) bool { return !s.IsGood })
}

func (r *Checkup) good(name, format string, args ...any) {
	r.Results = append(r.Results, Result{Name: name, IsGood: true, Detail: fmt.Sprintf(format, args...)})
}

func (r *Checkup) bad(name string, err error) {
	var e *inventory.Error
	if !errors.As(err, &e) {
		e = inventory.Errorf(inventory.Internal, "%v", err)
	}
	r.Results = append(r.Results, Result{Name: name, Detail: e.Msg, Hint: e.Hint})
}

// Check tests whether hosts can join a target, and reports each condition. It changes nothing in the cluster. A
// failure is a result and no error.
func (j *Joiner) Check(ctx context.Context, target inventory.JoinTarget) Checkup {
	r := Checkup{Target: target.Name}
	if target.Kubeconfig == "" {
		if _, err := j.storedToken(ctx, &target); err != nil {
			r.bad("token", err)
		} else {
			r.good("token", "a token made elsewhere is stored; Slipway approves nothing for it")
		}
	} else {
		j.checkCluster(ctx, &target, &r)
	}
	j.checkEndpoint(ctx, &target, &r)
	return r
}

// checkCluster checks what the kubeconfig leads to.
func (j *Joiner) checkCluster(ctx context.Context, target *inventory.JoinTarget, r *Checkup) {
	c, err := j.connect(ctx, target)
	if err != nil {
		r.bad("kubeconfig", err)
		return
	}
	r.good("kubeconfig", "secret %s can be used", target.Kubeconfig)
	body, err := c.get(ctx, "/version")
	var version struct{ GitVersion string }
	if err == nil && (json.Unmarshal(body, &version) != nil || version.GitVersion == "") {
		err = inventory.Errorf(inventory.Invalid, "cluster %s: there is nothing of Kubernetes where the kubeconfig points", target.Name)
	}
	if err != nil {
		r.bad("reachable", failure(target.Name, "read its version", err))
		return
	}
	r.Version = version.GitVersion
	r.good("reachable", "the API server is %s", version.GitVersion)
	checkVersion(target, version.GitVersion, r)
	if err := checkSkew(target.Name, time.Duration(c.skew.Load()), tokenFor(target)); err != nil {
		r.bad("clock", err)
	} else {
		r.good("clock", "within %s of Slipway's", skewLimit(tokenFor(target)))
	}
	c.checkAccount(ctx, r)
	c.checkBindings(ctx, r)
	switch {
	case target.CA == "":
		r.good("ca", "the target holds no CA: nodes verify the cluster with their token")
	case bytes.Contains(c.ca, bytes.TrimSpace([]byte(target.CA))) || isSameCA(c.ca, []byte(target.CA)):
		r.good("ca", "the target and the kubeconfig trust the same CA, %s", fingerprint([]byte(target.CA)))
	default:
		r.bad("ca", inventory.Errorf(inventory.Invalid, "target %s trusts CA %s, and its kubeconfig another, %s", target.Name, fingerprint([]byte(target.CA)), fingerprint(c.ca)).
			WithHint("set the CA of the target to the cluster's /etc/kubernetes/pki/ca.crt"))
	}
}

// checkVersion compares minor versions. A kubelet may be up to three minor versions older than its API server, and
// never newer (Kubernetes version skew policy).
func checkVersion(target *inventory.JoinTarget, server string, r *Checkup) {
	var major, minor, sMajor, sMinor int
	if _, err := fmt.Sscanf(strings.TrimPrefix(target.Kubernetes, "v"), "%d.%d", &major, &minor); err != nil {
		return // the target names no version
	}
	if _, err := fmt.Sscanf(strings.TrimPrefix(server, "v"), "%d.%d", &sMajor, &sMinor); err != nil {
		return
	}
	if major != sMajor || minor > sMinor || minor < sMinor-3 {
		r.bad("version", inventory.Errorf(inventory.Invalid, "nodes get Kubernetes %s, which cannot join an API server %s", target.Kubernetes, server).
			WithHint("set the version of the target to one of %d.%d to %d.%d", sMajor, sMinor-3, sMajor, sMinor))
		return
	}
	r.good("version", "nodes with Kubernetes %s can join it", target.Kubernetes)
}

// checkAccount asks the cluster whether our account may do what we do.
func (c *cluster) checkAccount(ctx context.Context, r *Checkup) {
	const group = "certificates.k8s.io"
	var missing []string
	needs := []struct {
		what string
		authzv1.ResourceAttributes
	}{
		{"create tokens", authzv1.ResourceAttributes{Namespace: "kube-system", Verb: "create", Resource: "secrets"}},
		{"delete tokens", authzv1.ResourceAttributes{Namespace: "kube-system", Verb: "delete", Resource: "secrets"}},
		{"read certificate requests", authzv1.ResourceAttributes{Verb: "get", Group: group, Resource: csrResource}},
		{"list certificate requests", authzv1.ResourceAttributes{Verb: "list", Group: group, Resource: csrResource}},
		{"watch certificate requests", authzv1.ResourceAttributes{Verb: "watch", Group: group, Resource: csrResource}},
		{"settle certificate requests", authzv1.ResourceAttributes{Verb: "update", Group: group, Resource: csrResource, Subresource: "approval"}},
		{"approve for kubelets", authzv1.ResourceAttributes{Verb: "approve", Group: group, Resource: "signers", Name: "kubernetes.io/kube-apiserver-client-kubelet"}},
		{"read nodes", authzv1.ResourceAttributes{Verb: "get", Resource: "nodes"}},
	}
	for _, n := range needs {
		may, err := c.mayI(ctx, n.ResourceAttributes)
		if err != nil {
			r.bad("account", failure(c.target, "look up its own rights", err))
			return
		}
		if !may {
			missing = append(missing, n.what)
		}
	}
	if len(missing) > 0 {
		r.bad("account", inventory.Errorf(inventory.Forbidden, "Slipway's account in %s may not: %s", c.target, strings.Join(missing, ", ")).
			WithHint("an administrator of the cluster runs: slipway target rbac %s | kubectl apply --server-side -f -", c.target))
		return
	}
	r.good("account", "may do the %d things that Slipway does", len(needs))
}

// checkBindings looks for what lets nodes join.
func (c *cluster) checkBindings(ctx context.Context, r *Checkup) {
	docs, heads, err := documents()
	if err != nil {
		r.bad("nodes", err)
		return
	}
	n := 0
	for i, h := range heads {
		if !strings.HasSuffix(h.Kind, "Binding") || !bytes.Contains(docs[i], []byte(`"name":"`+Group+`"`)) {
			continue
		}
		n++
		body, err := c.get(ctx, h.path())
		var want, got struct {
			RoleRef  rbacv1.RoleRef   `json:"roleRef"`
			Subjects []rbacv1.Subject `json:"subjects"`
		}
		if err == nil {
			err = errors.Join(json.Unmarshal(docs[i], &want), json.Unmarshal(body, &got))
		}
		if apierrors.IsNotFound(err) || err == nil && (got.RoleRef != want.RoleRef || !contains(got.Subjects, want.Subjects)) {
			err = inventory.Errorf(inventory.Invalid, "cluster %s: %s %s is not as it must be for nodes to join", c.target, h.Kind, h.Metadata.Name).
				WithHint("an administrator of the cluster runs: slipway target rbac %s | kubectl apply --server-side -f -", c.target)
		}
		if err != nil {
			r.bad("nodes", failure(c.target, "read "+h.Kind+" "+h.Metadata.Name, err))
			return
		}
	}
	r.good("nodes", "the %d bindings that let nodes join are there", n)
}

func contains(have, want []rbacv1.Subject) bool {
	set := map[rbacv1.Subject]bool{}
	for _, s := range have {
		set[s] = true
	}
	for _, s := range want {
		if !set[s] {
			return false
		}
	}
	return true
}

// checkEndpoint speaks TLS with the server that nodes will speak to, and trusts only the CA that they will trust.
// Slipway's own connection goes by the kubeconfig, so that it proves nothing about this address.
func (j *Joiner) checkEndpoint(ctx context.Context, target *inventory.JoinTarget, r *Checkup) {
	if target.Endpoint == "" {
		return
	}
	host, _, err := net.SplitHostPort(target.Endpoint)
	if err != nil {
		r.bad("endpoint", inventory.Errorf(inventory.Invalid, "endpoint %s is not HOST:PORT", inventory.Clean(target.Endpoint, 100)))
		return
	}
	cfg := &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12, InsecureSkipVerify: target.CA == ""} //nolint:gosec // without a CA only reachability is asked, and nothing is sent
	if target.CA != "" {
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM([]byte(target.CA)) {
			r.bad("endpoint", inventory.Errorf(inventory.Invalid, "the CA of target %s is no certificate", target.Name).WithHint("it is PEM, from the cluster's /etc/kubernetes/pki/ca.crt"))
			return
		}
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	conn, err := (&tls.Dialer{NetDialer: j.cfg.Egress.Dialer(0), Config: cfg}).DialContext(ctx, "tcp", target.Endpoint)
	if err != nil {
		e := tlsFailure(target.Name, err)
		if refused, ok := errors.AsType[*egress.Refused](err); ok {
			e = inventory.Errorf(inventory.Invalid, "endpoint %s of target %s gets no request: %s", target.Endpoint, target.Name, refused).WithHint(egress.AllowHint)
		} else if e == nil {
			e = inventory.Errorf(inventory.Unavailable, "endpoint %s of target %s cannot be reached", target.Endpoint, target.Name).
				WithHint("nodes must reach it; from here it may be firewalled")
		} else {
			e.Msg = "endpoint " + target.Endpoint + ": nodes will not trust it: " + e.Msg
			e.Hint = "set the CA and the endpoint of the target to those of the cluster: slipway target set " + target.Name
		}
		r.bad("endpoint", e)
		return
	}
	_ = conn.Close()
	r.good("endpoint", "%s answers as nodes expect", target.Endpoint)
}

// fingerprint names a certificate as kubeadm does: by its public key.
func fingerprint(text []byte) string {
	if block, _ := pem.Decode(text); block != nil {
		if c, err := x509.ParseCertificate(block.Bytes); err == nil {
			return fmt.Sprintf("sha256:%x", sha256.Sum256(c.RawSubjectPublicKeyInfo))
		}
	}
	return "(no certificate)"
}
