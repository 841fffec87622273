package join

import (
	"crypto/x509"
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/egress"
	"slipway.dev/slipway/kubernetes/kubeconfig"
)

// Failure turns the error of a call to a cluster into one for an admin, in the words of this package. action
// completes "does not let Slipway ...". An *inventory.Error in the chain comes back unchanged.
func Failure(target, action string, err error) *inventory.Error { return failure(target, action, err) }

// failure says what a failed call to a cluster means for an admin.
func failure(target, action string, err error) *inventory.Error {
	var e *inventory.Error
	if errors.As(err, &e) {
		return e
	}
	if refused, ok := errors.AsType[*egress.Refused](err); ok {
		return &inventory.Error{Kind: inventory.Invalid, Msg: "cluster " + target + " gets no request: " + refused.Error(), Hint: egress.AllowHint, Err: err}
	}
	if e := tlsFailure(target, err); e != nil {
		e.Err = err
		return e
	}
	e = statusFailure(target, action, err)
	e.Err = err
	return e
}

// tlsFailure is failure for certificates that are not accepted; nil for the rest.
func tlsFailure(target string, err error) *inventory.Error {
	var (
		unknown x509.UnknownAuthorityError
		name    x509.HostnameError
		invalid x509.CertificateInvalidError
	)
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return inventory.Errorf(inventory.Unavailable, "cluster %s: a certificate is valid from %s to %s, and that is not now", target,
			day(invalid.Cert.NotBefore), day(invalid.Cert.NotAfter)).
			WithHint("compare the clocks of Slipway and the cluster; if they agree, renew the cluster's certificates")
	case errors.As(err, &unknown), errors.As(err, &invalid):
		return inventory.Errorf(inventory.Invalid, "cluster %s: its certificate is not from the certificate authority in the kubeconfig", target).
			WithHint("store the kubeconfig that the cluster has now: slipway secret set NAME")
	case errors.As(err, &name):
		return inventory.Errorf(inventory.Invalid, "cluster %s: its certificate is not for the server that the kubeconfig names", target).
			WithHint("use a server name or address in the kubeconfig that the certificate of the API server has")
	}
	return nil
}

func day(t time.Time) string { return t.UTC().Format(time.DateTime) }

// statusFailure is failure for what the API server answers, and for no answer at all.
func statusFailure(target, action string, err error) *inventory.Error {
	var status apierrors.APIStatus
	switch {
	case apierrors.IsUnauthorized(err):
		return inventory.Errorf(inventory.Unauthorized, "cluster %s does not accept the credentials in the kubeconfig", target).
			WithHint("they may have expired; store new ones: slipway secret set NAME")
	case apierrors.IsForbidden(err):
		return inventory.Errorf(inventory.Forbidden, "cluster %s does not let Slipway %s", target, action).
			WithHint("an administrator of the cluster runs: slipway target rbac %s | kubectl apply --server-side -f -", target)
	case errors.As(err, &status) && status.Status().Code == http.StatusNotFound:
		return inventory.Errorf(inventory.Invalid, "cluster %s: there is nothing of Kubernetes where the kubeconfig points", target).
			WithHint("check the server address in the kubeconfig")
	case errors.As(err, &status) && status.Status().Code < 500 && status.Status().Code != http.StatusTooManyRequests && status.Status().Code != http.StatusConflict:
		return inventory.Errorf(inventory.Internal, "cluster %s refused to %s: %s", target, action, inventory.Clean(status.Status().Message, 300))
	case errors.As(err, &status):
		return inventory.Errorf(inventory.Unavailable, "cluster %s cannot %s at the moment: %s", target, action, inventory.Clean(status.Status().Message, 300)).
			WithHint("look at its API server: slipway target check %s", target)
	}
	// Objects of a cluster choose the address: whether it refused or was silent is in the cause, which only the log has.
	return inventory.Errorf(inventory.Unavailable, "cluster %s cannot be reached%s", target, kubeconfig.Place(err)).
		WithHint("check that its API server runs and that Slipway reaches it: slipway target check %s", target)
}

// badKubeconfig says that a kubeconfig cannot be used. The cause may quote it and goes to no one.
func badKubeconfig(target *inventory.JoinTarget, err error) *inventory.Error {
	e := inventory.Errorf(inventory.Invalid, "target %s: secret %s is not a kubeconfig that can be used", target.Name, target.Kubeconfig)
	if err != nil {
		e = e.WithHint("it holds a certificate or key that is none; print a complete one with: kubectl config view --raw --minify --flatten")
	}
	return e
}

// skewLimit is how far a cluster's clock may differ from ours. With a larger difference a token of that life would
// end too soon or too late.
func skewLimit(life time.Duration) time.Duration { return min(5*time.Minute, life/3) }

// checkSkew refuses a cluster whose clock is too far from ours.
func checkSkew(target string, skew, life time.Duration) error {
	if skew.Abs() <= skewLimit(life) {
		return nil
	}
	way := "ahead of"
	if skew < 0 {
		way = "behind"
	}
	return inventory.Errorf(inventory.Unavailable, "the clock of cluster %s is %s %s Slipway's", target, skew.Abs().Round(time.Second), way).
		WithHint("set both by NTP: a token's life of %s is measured by the cluster", life)
}
