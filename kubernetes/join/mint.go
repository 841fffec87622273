package join

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"

	"slipway.dev/slipway/inventory"
)

// Mint returns the bootstrap token with which one host joins a target under one node name in one boot. The store has
// the token before the cluster does, so that the approver knows every token. A boot that asks again gets the same
// token while it is good. A new token revokes those of earlier boots of the host. A target without a kubeconfig
// returns its stored token.
//
// The error is Conflict when another host has or wants the name, or this boot has ended. It is Unavailable for the
// cluster and its clock, Forbidden for the rights of the account, and Invalid for a wrong node name or kubeconfig.
//
// Only calls for the same session wait for each other.
func (j *Joiner) Mint(ctx context.Context, target inventory.JoinTarget, h *inventory.Host, s inventory.SessionID, nodeName string) (string, error) {
	if target.Kubeconfig == "" {
		return j.storedToken(ctx, &target)
	}
	switch {
	case h == nil || s == "":
		return "", inventory.Errorf(inventory.Internal, "a token for %s needs a host and a boot", target.Name)
	case len(validation.IsDNS1123Subdomain(nodeName)) > 0:
		return "", inventory.Errorf(inventory.Invalid, "host %s: %q cannot be the name of a node", h.Name, inventory.Clean(nodeName, 80)).
			WithHint("use a-z, 0-9, - and dots, at most 253 in all")
	}
	// A boot asks twice when its first request timed out. The second one could otherwise return a token which the first is
	// about to disown.
	release, err := j.turns.take(ctx, string(s))
	if err != nil {
		return "", err
	}
	defer release()
	c, err := j.connect(ctx, &target)
	if err != nil {
		return "", err
	}
	for range 3 { // a drawn id is taken once in two billion
		r, err := j.record(ctx, &target, h, s, nodeName)
		if err != nil {
			return "", err
		}
		// If the process dies before this call, the boot asks again and gets the same token. If it dies after it, the
		// Secret exists already, which is a success below.
		err = c.createSecret(ctx, newSecret(r.token, r.half, h.Name, target.CA == ""))
		switch {
		// Somebody else has made a Secret with the id that was just drawn. Nobody here knows its half: another id is drawn.
		case apierrors.IsAlreadyExists(err) && r.isNew:
			err = j.disown(ctx, r.token)
			if err != nil {
				return "", err
			}
			continue
		case err != nil && !apierrors.IsAlreadyExists(err):
			return "", failure(target.Name, "create bootstrap tokens", err)
		}
		j.deleteSecrets(ctx, c, r.stale)
		// The answer to createSecret had the clock of the cluster in it. With a wrong clock the token would end before the host
		// has used it, or live for hours.
		if err := checkSkew(target.Name, time.Duration(c.skew.Load()), tokenFor(&target)); err != nil {
			return "", errors.Join(err, j.revoke(ctx, func(t inventory.JoinToken) bool { return t.ID == r.token.ID }, inventory.TokenMinted))
		}
		if err := j.checkMinted(ctx, c, r.token.ID); err != nil {
			return "", err
		}
		if r.isNew {
			j.cfg.Log.Info("join token minted", "target", target.Name, "host", h.Name, "node", nodeName, "token", r.token.ID, "boot", short(s))
		}
		return r.token.ID + "." + r.half, nil
	}
	return "", inventory.Errorf(inventory.Internal, "every token that was drawn for %s exists already", target.Name)
}

// checkMinted deletes a Secret whose token was revoked while it was being created. Revoke could not have deleted it:
// it did not exist yet.
func (j *Joiner) checkMinted(ctx context.Context, c *cluster, id string) error {
	t, err := inventory.Read(ctx, j.cfg.Store, func(tx inventory.Tx) (inventory.JoinToken, error) { return tx.FindJoinToken(id) })
	if err != nil || t.State != inventory.TokenRevoked {
		return err
	}
	j.deleteSecrets(ctx, c, []string{id})
	return inventory.Errorf(inventory.Conflict, "the boot that asked for a token of %s is over", t.Target).WithHint("the host has booted again, or was released")
}

// storedToken returns the token of a target that has no kubeconfig.
func (j *Joiner) storedToken(ctx context.Context, target *inventory.JoinTarget) (string, error) {
	if target.Token == "" {
		return "", inventory.Errorf(inventory.Invalid, "target %s has neither a kubeconfig nor a token: no host can join it", target.Name).
			WithHint("store a kubeconfig as a secret and name it: slipway target set %s --kubeconfig SECRET", target.Name)
	}
	value, err := j.cfg.Secrets.Open(ctx, target.Token)
	if err != nil {
		return "", err
	}
	return checkToken(target.Token, value)
}

// recorded is a token that is written down.
type recorded struct {
	token inventory.JoinToken
	half  string
	isNew bool
	stale []string // tokens of the host that the new one replaces
}

// record finds the good token of a session, or stores a new one. All checks against other hosts run in the same
// transaction: two hosts that ask for one name at the same time cannot both get it.
func (j *Joiner) record(ctx context.Context, target *inventory.JoinTarget, h *inventory.Host, s inventory.SessionID, nodeName string) (recorded, error) {
	fresh, half, err := j.drawToken(target, h, s, nodeName)
	if err != nil {
		return recorded{}, err
	}
	var r recorded
	err = j.cfg.Store.Write(ctx, func(tx inventory.Tx) error {
		r = recorded{token: fresh, half: half, isNew: true}
		open, err := tx.ListJoinTokens(target.Name, inventory.TokenMinted, inventory.TokenSpent)
		if err != nil {
			return err
		}
		if err := checkJoined(tx, target.Name, h.ID, nodeName); err != nil {
			return err
		}
		for _, t := range open {
			switch {
			case t.HostID != h.ID:
				if err := checkRival(tx, t, nodeName, fresh.CreatedAt); err != nil {
					return err
				}
			case r.isNew && isReusable(t, fresh):
				r.token, r.isNew = t, false
			default:
				// A token of an earlier boot, or one that is about to expire: a host has one good token at most.
				t.State = inventory.TokenRevoked
				r.stale = append(r.stale, t.ID)
				if err := tx.SaveJoinToken(t); err != nil {
					return err
				}
			}
		}
		if !r.isNew {
			return nil
		}
		// Saving an id that was drawn before would overwrite the row of another host, whose approvals depend on it.
		if _, err := tx.FindJoinToken(fresh.ID); inventory.KindOf(err) != inventory.NotFound {
			return errors.Join(err, inventory.Errorf(inventory.Unavailable, "token %s was drawn before", fresh.ID).WithHint("ask again"))
		}
		return tx.SaveJoinToken(fresh)
	})
	if err != nil || r.isNew {
		return r, err
	}
	plain, err := j.cfg.Secrets.Unseal(SealedAs(r.token.ID), r.token.Sealed)
	r.half = string(plain)
	return r, err
}

// drawToken makes a token; nobody knows it yet.
func (j *Joiner) drawToken(target *inventory.JoinTarget, h *inventory.Host, s inventory.SessionID, nodeName string) (inventory.JoinToken, string, error) {
	both, err := draw(j.cfg.Rand, 6+16)
	if err != nil {
		return inventory.JoinToken{}, "", err
	}
	id, half := both[:6], both[6:]
	sealed, err := j.cfg.Secrets.Seal(SealedAs(id), []byte(half))
	if err != nil {
		return inventory.JoinToken{}, "", err
	}
	now := j.cfg.Now()
	return inventory.JoinToken{
		ID: id, Target: target.Name, HostID: h.ID, SessionID: s, NodeName: nodeName, Sealed: sealed,
		State: inventory.TokenMinted, CreatedAt: now, ExpiresAt: now.Add(tokenFor(target)),
	}, half, nil
}

// isReusable reports whether a boot that would get fresh can be given t again. What is about to expire cannot.
func isReusable(t, fresh inventory.JoinToken) bool {
	left := t.ExpiresAt.Sub(fresh.CreatedAt)
	return t.SessionID == fresh.SessionID && t.NodeName == fresh.NodeName && left > min(time.Minute, fresh.ExpiresAt.Sub(fresh.CreatedAt)/10)
}

// checkRival refuses a node name that another living host is about to join with.
func checkRival(tx inventory.Tx, t inventory.JoinToken, nodeName string, now time.Time) error {
	if t.NodeName != nodeName || !t.ExpiresAt.After(now) {
		return nil
	}
	other, err := tx.FindHost(t.HostID)
	if inventory.KindOf(err) == inventory.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	return inventory.Errorf(inventory.Conflict, "host %s is joining %s as node %s", inventory.HostRef(other.Name), t.Target, nodeName).
		WithHint("give one of the hosts another name, or release the other: slipway host release %s", other.Name)
}

// checkJoined refuses the name of a node that another host has joined with and still is: anyone who asks would become it.
func checkJoined(tx inventory.Tx, target string, h inventory.HostID, nodeName string) error {
	joined, err := tx.ListJoinTokens(target, inventory.TokenJoined)
	if err != nil {
		return err
	}
	for _, t := range joined {
		if t.HostID == h || t.NodeName != nodeName {
			continue
		}
		other, err := tx.FindHost(t.HostID)
		if inventory.KindOf(err) == inventory.NotFound {
			continue
		}
		if err != nil {
			return err
		}
		return inventory.Errorf(inventory.Conflict, "host %s is node %s of %s already", inventory.HostRef(other.Name), nodeName, target).
			WithHint("give this host another name, or release the other: slipway host release %s", other.Name)
	}
	return nil
}

// disown closes a token whose id somebody else uses in the cluster. Its Secret is not ours to delete.
func (j *Joiner) disown(ctx context.Context, t inventory.JoinToken) error {
	// An expired token is none whose Secret doomRevoked would delete after a restart.
	t.State, t.ExpiresAt = inventory.TokenRevoked, t.CreatedAt
	return j.cfg.Store.Write(ctx, func(tx inventory.Tx) error { return tx.SaveJoinToken(t) })
}

// Revoke makes those tokens of a boot useless that have not led to a node. Approvals end at once, because they are
// decided by the store. The cluster forgets the tokens as soon as it can be reached; that is no error here.
func (j *Joiner) Revoke(ctx context.Context, s inventory.SessionID) error {
	return j.revoke(ctx, func(t inventory.JoinToken) bool { return t.SessionID == s }, inventory.TokenMinted, inventory.TokenSpent)
}

// RevokeHost revokes the tokens of all boots of a host that is released or deleted. Its node names are then free for
// others.
func (j *Joiner) RevokeHost(ctx context.Context, h inventory.HostID) error {
	return j.revoke(ctx, func(t inventory.JoinToken) bool { return t.HostID == h },
		inventory.TokenMinted, inventory.TokenSpent, inventory.TokenJoined)
}

// revoke revokes the tokens in those states that match. What cannot be deleted in a cluster now is left to Serve.
func (j *Joiner) revoke(ctx context.Context, match func(inventory.JoinToken) bool, states ...inventory.JoinTokenState) error {
	doomed := map[string][]string{} // by target
	targets := map[string]inventory.JoinTarget{}
	err := j.cfg.Store.Write(ctx, func(tx inventory.Tx) error {
		clear(doomed)
		all, err := tx.ListJoinTokens("", states...)
		if err != nil {
			return err
		}
		for _, t := range all {
			if !match(t) {
				continue
			}
			// sweep has deleted the Secret of a token that led to a node. Only its row still blocks the name.
			if t.State != inventory.TokenJoined {
				doomed[t.Target] = append(doomed[t.Target], t.ID)
			}
			t.State = inventory.TokenRevoked
			if err := tx.SaveJoinToken(t); err != nil {
				return err
			}
		}
		for name := range doomed {
			target, err := tx.JoinTargets().Find(name)
			if err != nil && inventory.KindOf(err) != inventory.NotFound {
				return err
			}
			targets[name] = target
		}
		return nil
	})
	if err != nil {
		return err
	}
	for name, ids := range doomed {
		target := targets[name]
		if target.Kubeconfig == "" {
			continue // the target is gone: its cluster forgets the tokens when they expire
		}
		c, err := j.connect(ctx, &target)
		if err != nil {
			j.cfg.Log.Warn("join tokens not deleted in the cluster yet", "target", name, "tokens", strings.Join(ids, " "), "err", err)
			j.doom(name, ids)
			continue
		}
		j.deleteSecrets(ctx, c, ids)
	}
	return nil
}

// deleteSecrets deletes tokens in a cluster, and leaves to Serve what it cannot delete.
func (j *Joiner) deleteSecrets(ctx context.Context, c *cluster, ids []string) {
	for i, id := range ids {
		if err := c.deleteSecret(ctx, secretName(id)); err != nil && !apierrors.IsNotFound(err) {
			j.cfg.Log.Warn("join tokens not deleted in the cluster yet", "target", c.target, "tokens", strings.Join(ids[i:], " "), "err", err)
			// The cluster does not answer. Each further call would only wait for its timeout.
			j.doom(c.target, ids[i:])
			return
		}
	}
}

// doom notes Secrets that Serve has to delete. The notes are in memory: after a restart doomRevoked finds them in the
// store.
func (j *Joiner) doom(target string, ids []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.doomed[target] == nil {
		j.doomed[target] = map[string]bool{}
	}
	for _, id := range ids {
		j.doomed[target][id] = true
	}
}

// takeDoomed returns the Secrets that are to be deleted in a target, and forgets them.
func (j *Joiner) takeDoomed(target string) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	ids := slices.Collect(maps.Keys(j.doomed[target]))
	delete(j.doomed, target)
	return ids
}
