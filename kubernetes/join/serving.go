package join

import (
	"fmt"
	"slices"
	"strings"

	certsv1 "k8s.io/api/certificates/v1"

	"slipway.dev/slipway/inventory"
)

// DecideServing judges a request for a kubelet's serving certificate (kubelet setting serverTLSBootstrap), which
// Kubernetes itself never approves. It approves a request of a node for itself, whose names and addresses all belong
// to the host that joined under that name. It leaves all others to other approvers.
func DecideServing(r *certsv1.CertificateSigningRequest, f Facts) Decision {
	node, isNode := strings.CutPrefix(r.Spec.Username, nodeUser)
	t := f.Token
	switch {
	case r.Spec.SignerName != certsv1.KubeletServingSignerName || !isNode || !slices.Contains(r.Spec.Groups, nodeGroup):
		return Decision{Ignore, "not a node's request for its serving certificate"}
	case t == nil || t.NodeName != node || t.Target != f.Target || t.State != inventory.TokenSpent && t.State != inventory.TokenJoined:
		return Decision{Ignore, "the node did not join through Slipway"}
	case f.Host == nil || f.Host.ID != t.HostID:
		return Decision{Ignore, "the node's host is not in the inventory any more"}
	}
	s, err := parseRequest(r.Spec.Request)
	if err != nil {
		return Decision{Ignore, err.Error()}
	}
	if reason := checkShape(s, r.Spec.Usages, node, certsv1.UsageServerAuth); reason != "" {
		return Decision{Ignore, reason}
	}
	if len(s.extensions) != 1 || s.isOdd || len(s.names)+len(s.addresses) == 0 {
		return Decision{Ignore, "it must ask for DNS names and addresses, and for nothing else"}
	}
	for _, n := range s.names {
		if !slices.Contains(f.Names, n) {
			return Decision{Ignore, fmt.Sprintf("host %s is not called %s", f.Host.Name, inventory.Clean(n, 255))}
		}
	}
	for _, a := range s.addresses {
		if !slices.Contains(f.Addresses, a) {
			return Decision{Ignore, fmt.Sprintf("host %s does not have the address %s", f.Host.Name, a)}
		}
	}
	return Decision{Approve, fmt.Sprintf("all names and addresses are those of host %s", f.Host.Name)}
}
