package manager

import (
	"context"
	"crypto/x509"
	"errors"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/egress"
	"slipway.dev/slipway/kubernetes/kubeconfig"
)

// asError says what a failure means for an admin.
func asError(cluster string, err error) *inventory.Error {
	var e *inventory.Error
	switch {
	case err == nil:
		return inventory.Errorf(inventory.Unavailable, "the controllers of cluster %s ended", cluster)
	case errors.As(err, &e):
		return e
	}
	// The text of err may quote addresses and answers of a server that anybody chose. It goes to the log only.
	e = describe(cluster, err)
	e.Err = err
	return e
}

// describe tells certificates that are not accepted from answers of the API server, and those from no answer at all. The
// texts are the same while the trouble is.
func describe(cluster string, err error) *inventory.Error {
	var (
		unknown x509.UnknownAuthorityError
		name    x509.HostnameError
		invalid x509.CertificateInvalidError
		status  apierrors.APIStatus
	)
	renew := "give it the kubeconfig that the cluster has now: slipway cluster attach --name " + cluster + " --kubeconfig FILE"
	check := "check that its API server runs and that Slipway reaches it: slipway cluster check " + cluster
	var refused *egress.Refused
	switch {
	case errors.As(err, &refused):
		return inventory.Errorf(inventory.Invalid, "cluster %s gets no request: %s", cluster, refused).WithHint(egress.AllowHint)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return inventory.Errorf(inventory.Invalid, "cluster %s: a certificate is valid from %s to %s, and that is not now", cluster,
			invalid.Cert.NotBefore.UTC().Format(time.DateTime), invalid.Cert.NotAfter.UTC().Format(time.DateTime)).
			WithHint("compare the clocks of Slipway and the cluster; if they agree, renew the cluster's certificates")
	case errors.As(err, &unknown), errors.As(err, &invalid):
		return inventory.Errorf(inventory.Invalid, "cluster %s: its certificate is not from the certificate authority in the kubeconfig", cluster).WithHint("%s", renew)
	case errors.As(err, &name):
		return inventory.Errorf(inventory.Invalid, "cluster %s: its certificate is not for the server that the kubeconfig names", cluster).
			WithHint("use a server name or address in the kubeconfig that the certificate of the API server has")
	case apierrors.IsUnauthorized(err):
		return inventory.Errorf(inventory.Unauthorized, "cluster %s does not accept the credentials in the kubeconfig", cluster).
			WithHint("they may have expired; %s", renew)
	case apierrors.IsForbidden(err):
		return inventory.Errorf(inventory.Forbidden, "cluster %s refuses: %s", cluster, reasonOf(err)).WithHint("%s", grant(cluster))
	case errors.As(err, &status) && status.Status().Code == http.StatusNotFound:
		return inventory.Errorf(inventory.Invalid, "cluster %s: something that Slipway needs is not there: %s", cluster, reasonOf(err)).
			WithHint("check the server address in the kubeconfig: slipway cluster check %s", cluster)
	case errors.As(err, &status) && status.Status().Code < 500 && !apierrors.IsTooManyRequests(err) && !apierrors.IsConflict(err):
		return inventory.Errorf(inventory.Internal, "cluster %s refused: %s", cluster, reasonOf(err))
	case errors.As(err, &status):
		return inventory.Errorf(inventory.Unavailable, "cluster %s is not able to answer at the moment: %s", cluster, reasonOf(err)).WithHint("%s", check)
	case errors.Is(err, context.DeadlineExceeded):
		return inventory.Errorf(inventory.Unavailable, "cluster %s did not answer in time%s", cluster, kubeconfig.Place(err)).WithHint("%s", check)
	case strings.Contains(err.Error(), "leader election lost"): // an error of controller-runtime that is a text only
		return inventory.Errorf(inventory.Unavailable, "cluster %s did not answer for so long that its lease is lost", cluster).WithHint("%s", check)
	// The watch of a kind did not begin: mostly an API server that is overloaded, or a kind that it does not serve yet.
	case strings.Contains(err.Error(), "timed out waiting for cache") || strings.Contains(err.Error(), "timed out waiting for the condition"):
		return inventory.Errorf(inventory.Unavailable, "the objects of cluster %s could not be read in time", cluster).WithHint("%s", check)
	}
	return inventory.Errorf(inventory.Unavailable, "cluster %s cannot be reached%s", cluster, kubeconfig.Cause(err)).WithHint("%s", check)
}

// reasonOf is what an API server said, on one line.
func reasonOf(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return inventory.Clean(status.Status().Message, 300)
	}
	return ""
}

// grant says how an account gets the rights that it lacks.
func grant(cluster string) string {
	return "an administrator of the cluster applies what `slipway manifests` writes and binds the account to it; see docs/clusters.md, and then: slipway cluster check " + cluster
}

// listed writes at most three names.
func listed(names []string) string {
	if len(names) > 3 {
		return strings.Join(names[:3], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}
