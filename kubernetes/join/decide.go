package join

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	certsv1 "k8s.io/api/certificates/v1"

	"slipway.dev/slipway/inventory"
)

const (
	tokenUser = "system:bootstrap:" // and the token's id: who a bearer is to the API server
	nodeUser  = "system:node:"      // and the node's name
	nodeGroup = "system:nodes"
)

// Verdict is what becomes of a certificate request.
type Verdict string

// The verdicts.
const (
	Approve Verdict = "approve"
	Deny    Verdict = "deny"
	Ignore  Verdict = "ignore" // not ours to judge
	// Report leaves a request to others, but it was made with one of our tokens and must not be granted.
	Report Verdict = "report"
)

// Decision is a verdict, and the reason in words for the admin.
type Decision struct {
	Verdict Verdict
	Reason  string
}

// Facts are what is known about the token or node that a request was made with.
type Facts struct {
	Target string
	Token  *inventory.JoinToken // nil: none of ours
	Host   *inventory.Host      // of the token; nil: it is gone
	// Owner is the host whose node has that name now, as far as Slipway let it join; "" if none.
	Owner inventory.HostID
	// IsNodeReady tells that a node of that name is alive in the cluster.
	IsNodeReady bool
	// Names and Addresses are what may be in a serving certificate of the host.
	Names     []string
	Addresses []netip.Addr
}

// Decide judges a request for a kubelet's client certificate. It approves exactly one per token: for the node name, the
// host and the time that the token was minted for. It approves the same request again, so that a retry is safe. It denies
// every other request with a token of ours.
//
// The approver of Kubernetes never compares the name in a request with the asker. A token could there become any
// node. Decide closes that gap.
func Decide(r *certsv1.CertificateSigningRequest, f Facts, now time.Time) Decision {
	id, isToken := strings.CutPrefix(r.Spec.Username, tokenUser)
	t := f.Token
	if !isToken || t == nil || t.ID != id || t.Target != f.Target {
		return Decision{Ignore, "not made with a token of ours"}
	}
	if r.Spec.SignerName != certsv1.KubeAPIServerClientKubeletSignerName {
		// A denial would judge for a signer that is not ours. Its own approver decides; the admin hears that the token is misused.
		return Decision{Report, fmt.Sprintf("token %s is for a kubelet's client certificate, and the request is for signer %s", id, inventory.Clean(r.Spec.SignerName, 100))}
	}
	if reason := checkUse(r, f, now); reason != "" {
		return Decision{Deny, reason}
	}
	subject, err := parseRequest(r.Spec.Request)
	if err != nil {
		return Decision{Deny, err.Error()}
	}
	if reason := checkShape(subject, r.Spec.Usages, t.NodeName, certsv1.UsageClientAuth); reason != "" {
		return Decision{Deny, reason}
	}
	if len(subject.extensions) > 0 {
		return Decision{Deny, "it asks for names, addresses or extensions; a kubelet's client certificate has none"}
	}
	return Decision{Approve, fmt.Sprintf("token %s was minted for host %s as node %s", id, f.Host.Name, t.NodeName)}
}

// checkUse returns the reason why a token may not be used for a request now, "" if it may.
func checkUse(r *certsv1.CertificateSigningRequest, f Facts, now time.Time) string {
	t := f.Token
	// A request comes again when the process died between spending the token and writing the approval.
	isRetry := t.CSR != "" && t.CSR == string(r.UID)
	switch {
	case !slices.Contains(r.Spec.Groups, Group):
		return fmt.Sprintf("token %s has lost its group %s in the cluster", t.ID, Group)
	case t.State == inventory.TokenRevoked:
		return fmt.Sprintf("token %s is revoked", t.ID)
	case t.State != inventory.TokenMinted && !isRetry:
		return fmt.Sprintf("token %s was used before, for another request", t.ID)
	case !now.Before(t.ExpiresAt):
		return fmt.Sprintf("token %s expired at %s", t.ID, day(t.ExpiresAt))
	// The clock of this server was set back since the token was minted. A wrong clock must not judge tokens.
	case now.Before(t.CreatedAt.Add(-skewLimit(t.ExpiresAt.Sub(t.CreatedAt)))):
		return fmt.Sprintf("token %s is from the future: it was minted at %s", t.ID, day(t.CreatedAt))
	case f.Host == nil || f.Host.ID != t.HostID:
		return fmt.Sprintf("the host of token %s is not in the inventory any more", t.ID)
	// Anyone who has the certificate of a node reads the Secrets of its pods. So a name never goes to another host while the
	// first one has it.
	case f.Owner != "" && f.Owner != t.HostID:
		return fmt.Sprintf("node %s belongs to another host, %s", t.NodeName, f.Owner)
	case f.Owner == "" && f.IsNodeReady && !isRetry:
		return fmt.Sprintf("a node %s is alive in the cluster that Slipway did not let in", t.NodeName)
	}
	return ""
}

// checkShape returns what is wrong with the subject and usages of a request for a node's certificate, "" for nothing.
func checkShape(s *subject, usages []certsv1.KeyUsage, node string, purpose certsv1.KeyUsage) string {
	switch {
	case s.commonName != nodeUser+node:
		return fmt.Sprintf("it asks to be %q, and may only be %q", inventory.Clean(s.commonName, 300), nodeUser+node)
	case !slices.Equal(s.organizations, []string{nodeGroup}):
		return fmt.Sprintf("it asks for the groups %q, and may only have %q", clean(s.organizations), nodeGroup)
	case s.others > 0:
		return "its subject says more than a name and a group"
	case !areUsages(usages, purpose):
		return fmt.Sprintf("it asks for the key usages %q; a kubelet asks for %q and %q, and with an RSA key for %q", clean(usages),
			purpose, certsv1.UsageDigitalSignature, certsv1.UsageKeyEncipherment)
	}
	return ""
}

// areUsages reports whether usages are those of a kubelet, in any order: without key encipherment for keys that cannot.
func areUsages(usages []certsv1.KeyUsage, purpose certsv1.KeyUsage) bool {
	got := slices.Sorted(slices.Values(usages))
	short := []certsv1.KeyUsage{purpose, certsv1.UsageDigitalSignature}
	slices.Sort(short)
	long := append([]certsv1.KeyUsage{certsv1.UsageKeyEncipherment}, short...)
	slices.Sort(long)
	return slices.Equal(got, short) || slices.Equal(got, long)
}

func clean[S ~string](texts []S) []string {
	var out []string
	for _, t := range texts[:min(len(texts), 10)] {
		out = append(out, inventory.Clean(string(t), 100))
	}
	return out
}
