package join

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"time"

	certsv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"slipway.dev/slipway/inventory"
)

// isSettled reports whether a request was approved or denied, or can never be granted.
func isSettled(r *certsv1.CertificateSigningRequest) bool {
	return len(r.Status.Certificate) > 0 || slices.ContainsFunc(r.Status.Conditions, func(c certsv1.CertificateSigningRequestCondition) bool {
		return c.Type == certsv1.CertificateApproved || c.Type == certsv1.CertificateDenied || c.Type == certsv1.CertificateFailed
	})
}

// review decides one request and writes the decision down, in the store first. So a token is spent before its
// certificate can exist. It is safe to repeat at any point: a spent token still approves the request whose UID it
// holds, and no other.
func (j *Joiner) review(ctx context.Context, c *cluster, r *certsv1.CertificateSigningRequest) (Decision, error) {
	// Another approver may decide at the same time. The first one to write wins, and then the request is settled.
	for try := 0; ; try++ {
		if isSettled(r) {
			return Decision{Ignore, "it is settled"}, nil
		}
		d, f, err := j.decide(ctx, c, r)
		if err != nil || d.Verdict == Ignore || d.Verdict == Report {
			if d.Verdict == Report {
				j.refuse(ctx, c.target, r, f, d)
			}
			return d, err
		}
		err = c.settle(ctx, settled(r, d, j.cfg.Now()))
		switch {
		case err == nil && d.Verdict == Deny:
			j.refuse(ctx, c.target, r, f, d)
			return d, nil
		case err == nil:
			j.cfg.Log.Info("certificate approved", "target", c.target, "host", f.Host.Name, "node", f.Token.NodeName, "csr", r.Name, "reason", d.Reason)
			return d, nil
		case apierrors.IsNotFound(err):
			return d, nil // it was withdrawn; its token stays spent
		// A conflict: somebody else has written to the request. It is read and judged again.
		case !apierrors.IsConflict(err) || try >= 3:
			return d, failure(c.target, "approve certificate requests of kubelets", err)
		}
		if r, err = c.findRequest(ctx, r.Name); apierrors.IsNotFound(err) {
			return d, nil
		} else if err != nil {
			return d, failure(c.target, "read certificate requests", err)
		}
	}
}

// settled returns a copy of the request with the decision on it.
func settled(r *certsv1.CertificateSigningRequest, d Decision, now time.Time) *certsv1.CertificateSigningRequest {
	r = r.DeepCopy()
	cond := certsv1.CertificateSigningRequestCondition{
		Type: certsv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "SlipwayApproved",
		Message: d.Reason, LastUpdateTime: metav1.NewTime(now), LastTransitionTime: metav1.NewTime(now),
	}
	if d.Verdict == Deny {
		cond.Type, cond.Reason = certsv1.CertificateDenied, "SlipwayDenied"
	}
	r.Status.Conditions = append(r.Status.Conditions, cond)
	return r
}

// refuse raises the alarm about a misused token.
func (j *Joiner) refuse(ctx context.Context, target string, r *certsv1.CertificateSigningRequest, f Facts, d Decision) {
	a := Alarm{
		Kind: AlarmRefused, Target: target, Host: f.Token.HostID, Session: f.Token.SessionID,
		Detail: "certificate request " + r.Name + " in " + target + " was refused: " + d.Reason,
		Hint:   "the machine may have lost its key and asked twice: boot it again, every boot gets its own token. Otherwise somebody else has its token",
	}
	j.cfg.Log.Warn("certificate refused", "target", target, "node", f.Token.NodeName, "csr", r.Name, "verdict", string(d.Verdict), "reason", d.Reason)
	j.cfg.Alarm(ctx, a)
}

// decide gathers the facts about a request and judges it. An approval has spent the token when decide returns.
//
// The first judgement, without a transaction, saves a write for requests that are refused in any case. The one inside
// the transaction counts: two requests with one token at the same time can then not both be approved.
func (j *Joiner) decide(ctx context.Context, c *cluster, r *certsv1.CertificateSigningRequest) (Decision, Facts, error) {
	if _, isToken := strings.CutPrefix(r.Spec.Username, tokenUser); !isToken {
		return j.decideServing(ctx, c, r)
	}
	f := Facts{Target: c.target}
	err := j.cfg.Store.Read(ctx, func(tx inventory.Tx) error { return readToken(tx, r, &f) })
	if err != nil {
		return Decision{}, f, err
	}
	if f.Token == nil {
		return Decision{Ignore, "not made with a token of ours"}, f, nil
	}
	// Outside the transaction: a cluster that answers slowly must not hold up the store. The node may appear in between,
	// which only an owner in the store can make harmless: Decide knows both.
	node, err := c.findNode(ctx, f.Token.NodeName)
	if err != nil && !apierrors.IsNotFound(err) {
		return Decision{}, f, failure(c.target, "read nodes", err)
	}
	hasNode := err == nil
	f.IsNodeReady = hasNode && isReady(node)
	now := j.cfg.Now()
	// An owner can only forbid. Without a node the first judgement is therefore final, unless it approves.
	if d := Decide(r, f, now); d.Verdict != Approve && !hasNode {
		return d, f, nil
	}
	var d Decision
	err = j.cfg.Store.Write(ctx, func(tx inventory.Tx) error {
		// Read again: since the first judgement another request may have spent the token, or a release revoked it.
		if err := readToken(tx, r, &f); err != nil {
			return err
		}
		f.Owner = ""
		if hasNode && f.Token != nil {
			owner, err := findOwner(tx, *f.Token)
			if err != nil {
				return err
			}
			f.Owner = owner
		}
		if d = Decide(r, f, now); d.Verdict != Approve || f.Token.State != inventory.TokenMinted {
			return nil
		}
		// From here on the token is good for this request only. If the process dies before the approval is written, the next
		// review approves the same request, and no other.
		spent := *f.Token
		spent.State, spent.CSR = inventory.TokenSpent, string(r.UID)
		return tx.SaveJoinToken(spent)
	})
	return d, f, err
}

// readToken fills in the token that a request was made with, and its host.
func readToken(tx inventory.Tx, r *certsv1.CertificateSigningRequest, f *Facts) error {
	f.Token, f.Host = nil, nil
	t, err := tx.FindJoinToken(strings.TrimPrefix(r.Spec.Username, tokenUser))
	if inventory.KindOf(err) == inventory.NotFound || err == nil && t.Target != f.Target {
		return nil
	}
	if err != nil {
		return err
	}
	f.Token = &t
	f.Host, err = findHost(tx, t.HostID)
	return err
}

func findHost(tx inventory.Tx, id inventory.HostID) (*inventory.Host, error) {
	h, err := tx.FindHost(id)
	if inventory.KindOf(err) == inventory.NotFound {
		return nil, nil
	}
	return &h, err
}

// findOwner returns the host that the node of a token's name belongs to: the last one that joined under that name. A
// released host still owns its old node when it comes back, and keeps no other host from the name.
func findOwner(tx inventory.Tx, t inventory.JoinToken) (inventory.HostID, error) {
	all, err := tx.ListJoinTokens(t.Target, inventory.TokenJoined, inventory.TokenRevoked)
	if err != nil {
		return "", err
	}
	for _, o := range all { // newest first
		if o.NodeName != t.NodeName || o.CSR == "" || o.State == inventory.TokenRevoked && o.HostID != t.HostID {
			continue
		}
		h, err := findHost(tx, o.HostID)
		if h == nil {
			return "", err
		}
		return h.ID, err
	}
	return "", nil
}

func isReady(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// decideServing judges requests that come without a token.
func (j *Joiner) decideServing(ctx context.Context, c *cluster, r *certsv1.CertificateSigningRequest) (Decision, Facts, error) {
	f := Facts{Target: c.target}
	node, isNode := strings.CutPrefix(r.Spec.Username, nodeUser)
	if !j.cfg.ServingCerts || !isNode || r.Spec.SignerName != certsv1.KubeletServingSignerName {
		return Decision{Ignore, "not made with a token of ours"}, f, nil
	}
	s, err := parseRequest(r.Spec.Request)
	if err != nil {
		return Decision{Ignore, err.Error()}, f, nil
	}
	err = j.cfg.Store.Read(ctx, func(tx inventory.Tx) error {
		all, err := tx.ListJoinTokens(c.target, inventory.TokenSpent, inventory.TokenJoined)
		if err != nil {
			return err
		}
		// The list begins with the newest: a name that was used before belongs to the host that joined last.
		i := slices.IndexFunc(all, func(t inventory.JoinToken) bool { return t.NodeName == node })
		if i < 0 {
			return nil
		}
		f.Token = &all[i]
		if f.Host, err = findHost(tx, f.Token.HostID); f.Host == nil {
			return err
		}
		f.Names, f.Addresses, err = knownAs(tx, f.Host, node, s.addresses)
		return err
	})
	if err != nil {
		return Decision{}, f, err
	}
	return DecideServing(r, f), f, nil
}

// knownAs returns the names of a host, with the domains of the subnets of its addresses, and those of the asked
// addresses that it has. It checks at most 64 addresses.
func knownAs(tx inventory.Tx, h *inventory.Host, node string, asked []netip.Addr) (names []string, addrs []netip.Addr, err error) {
	names = []string{node, h.Name}
	// Anybody with a node certificate chooses how many addresses are in a request, and each costs two lookups.
	for _, a := range asked[:min(len(asked), 64)] {
		subnet, err := subnetOf(tx, h, a)
		if err != nil {
			return nil, nil, err
		}
		if subnet == "" {
			continue
		}
		addrs = append(addrs, a)
		s, err := tx.Subnets().Find(subnet)
		if err != nil {
			return nil, nil, err
		}
		if s.Domain != "" {
			names = append(names, node+"."+s.Domain, h.Name+"."+s.Domain)
		}
	}
	return names, addrs, nil
}

// subnetOf returns the subnet in which an address is reserved for a host or leased to it, "" if it is not its address.
func subnetOf(tx inventory.Tx, h *inventory.Host, a netip.Addr) (string, error) {
	r, err := tx.FindReservation(a)
	switch {
	case err == nil && (slices.Contains(h.MACs(), r.MAC) || r.UUID != "" && r.UUID == h.UUID):
		return r.Subnet, nil
	case err == nil:
		return "", nil // somebody else's
	case inventory.KindOf(err) != inventory.NotFound:
		return "", err
	}
	l, err := tx.FindLease(a)
	switch {
	case err == nil && l.State == inventory.LeaseBound && slices.Contains(h.MACs(), l.MAC):
		return l.Subnet, nil
	case err != nil && inventory.KindOf(err) != inventory.NotFound:
		return "", err
	}
	return "", nil
}
