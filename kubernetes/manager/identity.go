package manager

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"slices"

	"k8s.io/client-go/rest"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/kubeconfig"
)

// authoritiesMax bounds the keys that are kept of one cluster.
const authoritiesMax = 64

// authorityOf returns fingerprints of what a server is trusted by: the keys of the authorities in its kubeconfig. A
// kubeconfig without authorities trusts those of the system; its address then takes their place.
func authorityOf(cfg *rest.Config) (keys []string) {
	for rest := cfg.CAData; len(keys) < authoritiesMax; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if c, err := x509.ParseCertificate(block.Bytes); err == nil {
			// The key and not the certificate: an authority that is renewed for its old key is the same one.
			sum := sha256.Sum256(c.RawSubjectPublicKeyInfo)
			keys = append(keys, hex.EncodeToString(sum[:]))
		}
	}
	if len(keys) == 0 {
		return []string{"server " + inventory.Clean(cfg.Host, 255)}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// vouched refuses a server that claims to be a cluster for which Slipway keeps something. It accepts a server whose
// authority vouched for that cluster before, and one that an admin declares to be the same. c is the attachment as it
// is stored, or will be.
//
// A UID is no secret. Without this check, anybody with a kubeconfig to attach could take over the machines of another
// cluster.
func vouched(tx inventory.Tx, c inventory.Cluster, uid string, ours []string) error {
	if uid == "" || c.TakesOver {
		return nil
	}
	known, err := tx.FindClusterAccess(uid)
	if err != nil {
		return err
	}
	hint := "if it is the same cluster: slipway cluster attach --take-over --kubeconfig FILE --name " + c.Name + "; else it would have the machines of another"
	// One key in common is enough: authorities are renewed one after the other.
	if len(known.Authority) > 0 {
		if slices.ContainsFunc(ours, func(k string) bool { return slices.Contains(known.Authority, k) }) {
			return nil
		}
		return inventory.Errorf(inventory.Conflict, "this server says that it is the cluster with the UID %s, and another certificate authority vouched for that one", inventory.Clean(uid, 64)).
			WithHint("%s", hint)
	}
	if c.UID == uid { // attached since before authorities were kept
		return nil
	}
	what, err := keptFor(tx, uid)
	if err != nil || what == "" {
		return err
	}
	return inventory.Errorf(inventory.Conflict, "this server says that it is the cluster with the UID %s, for which Slipway keeps %s, and nothing shows that it is", inventory.Clean(uid, 64), what).
		WithHint("%s", hint)
}

// isVouched is vouched for a cluster that this manager watches.
func (a *Attacher) isVouched(ctx context.Context, c inventory.Cluster, p *peer) error {
	return a.cfg.Store.Read(ctx, func(tx inventory.Tx) error {
		if stored, err := tx.Clusters().Find(c.Name); err == nil {
			c.UID, c.TakesOver = stored.UID, c.TakesOver || stored.TakesOver
		}
		return vouched(tx, c, p.uid, authorityOf(p.cfg))
	})
}

// keptFor names what Slipway keeps for a cluster that was never attached, or was detached before authorities were
// stored; "" for nothing.
func keptFor(tx inventory.Tx, uid string) (string, error) {
	all, err := tx.Clusters().List(inventory.Page{})
	if err != nil {
		return "", err
	}
	if slices.ContainsFunc(all, func(c inventory.Cluster) bool { return c.UID == uid }) {
		return "", nil // isImpostor has compared the two
	}
	machines, err := tx.ListMachines(inventory.MachineFilter{OwnerPrefix: uid + "/"}, inventory.Page{Limit: 1})
	if err != nil || len(machines) > 0 {
		return "machines", err
	}
	tokens, err := tx.ListTokens()
	if err != nil {
		return "", err
	}
	if i := slices.IndexFunc(tokens, func(t inventory.Token) bool { return t.Cluster == uid }); i >= 0 {
		return "token " + tokens[i].Name, nil
	}
	return "", nil
}

// keepAuthority stores what vouches for a cluster now. The record stays when the cluster is detached: its machines
// stay as well.
func (a *Attacher) keepAuthority(tx inventory.Tx, uid string, ours []string) error {
	known, err := tx.FindClusterAccess(uid)
	if err != nil || uid == "" || len(ours) == 0 || slices.Equal(known.Authority, ours) {
		return err
	}
	known.Authority = ours
	said := known.UpdatedAt // of what an admin has said
	return tx.SaveClusterAccess(&known, cmp.Or(said, a.cfg.Now()))
}

// isTwice refuses a cluster that is attached under another name, unless the two handle different objects. Otherwise
// two sets of controllers would change the same objects in turn.
func (a *Attacher) isTwice(ctx context.Context, c inventory.Cluster, uid string) error {
	return a.cfg.Store.Read(ctx, func(tx inventory.Tx) error { return refuseSecond(tx, c, uid) })
}

// take stores the identity of an attached cluster and what vouches for it, unless another attachment has it. It does
// so in one transaction: of two that attach the same cluster in one instant, one continues.
func (a *Attacher) take(ctx context.Context, c inventory.Cluster, uid string, authority []string) error {
	return a.cfg.Store.Write(ctx, func(tx inventory.Tx) error {
		// The row may have changed since Serve read it: the calls to the cluster took their time.
		stored, err := tx.Clusters().Find(c.Name)
		if inventory.KindOf(err) == inventory.NotFound || err == nil && !stored.CreatedAt.Equal(c.CreatedAt) {
			return nil // detached meanwhile: this session is about to end
		}
		if err != nil {
			return err
		}
		if err := refuseSecond(tx, stored, uid); err != nil || uid == "" {
			return err
		}
		if err := isSame(c.Name, stored.UID, uid); err != nil {
			return err
		}
		// The identity and what vouches for it are stored in one transaction. After a crash between the two, a stranger could be
		// the first to vouch for the cluster.
		if err := vouched(tx, stored, uid, authority); err != nil {
			return err
		}
		if err := a.keepAuthority(tx, uid, authority); err != nil || stored.UID == uid && !stored.TakesOver {
			return err
		}
		// The admin has vouched for this one server. The next one has to prove itself again.
		stored.UID, stored.TakesOver = uid, false
		return tx.NoteCluster(&stored)
	})
}

// refuseSecond refuses the second of two attachments of one cluster. The one with the stored UID is the first, else
// the older one.
func refuseSecond(tx inventory.Tx, c inventory.Cluster, uid string) error {
	if uid == "" {
		return nil
	}
	all, err := tx.Clusters().List(inventory.Page{})
	if err != nil {
		return err
	}
	for _, o := range all {
		// Both sides must come to the same answer, whichever asks first. Otherwise two would refuse each other without end.
		isFirst := c.UID != uid || o.CreatedAt.Before(c.CreatedAt) || o.CreatedAt.Equal(c.CreatedAt) && o.Name < c.Name
		if o.Name != c.Name && o.UID == uid && isFirst && overlap(o, c) {
			return inventory.Errorf(inventory.Conflict, "this cluster is attached as %s already", o.Name).
				WithHint("use cluster %s; to rename it, first: slipway cluster detach %s; or attach other namespaces, modes or a watch filter than the first", o.Name, o.Name)
		}
	}
	return nil
}

// isImpostor refuses a server that claims to be a cluster which is attached under another name, and has another
// certificate authority. The claim decides whose machines are its own.
func (a *Attacher) isImpostor(ctx context.Context, c inventory.Cluster, p *peer) error {
	var others []inventory.Cluster
	err := a.cfg.Store.Read(ctx, func(tx inventory.Tx) error {
		all, err := tx.Clusters().List(inventory.Page{})
		others = slices.DeleteFunc(all, func(o inventory.Cluster) bool { return o.Name == c.Name || o.UID != p.uid || p.uid == "" })
		return err
	})
	if err != nil {
		return err
	}
	for _, o := range others {
		text, err := a.cfg.Secrets.Open(ctx, o.Kubeconfig)
		if err != nil {
			return err
		}
		cfg, err := kubeconfig.Parse("the kubeconfig of cluster "+o.Name, text)
		if err != nil {
			return err
		}
		// Without authorities in both kubeconfigs, only the address can tell the two servers apart.
		ours, theirs := bytes.TrimSpace(p.cfg.CAData), bytes.TrimSpace(cfg.CAData)
		if !bytes.Equal(ours, theirs) || len(ours) == 0 && cfg.Host != p.cfg.Host {
			return inventory.Errorf(inventory.Conflict, "this cluster says that it is the one that is attached as %s, and its certificate authority is another", o.Name).
				WithHint("a cluster is known by the UID of its namespace kube-system; if both are the same cluster, give them one certificate authority in their kubeconfigs")
		}
	}
	return nil
}

// overlap reports whether the controllers of both could handle the same object. An empty list or filter stands for
// all.
func overlap(a, b inventory.Cluster) bool {
	isMode := slices.ContainsFunc(modesOf(a), b.Runs)
	isFilter := a.WatchFilter == "" || b.WatchFilter == "" || a.WatchFilter == b.WatchFilter
	isNamespace := len(a.Namespaces) == 0 || len(b.Namespaces) == 0 ||
		slices.ContainsFunc(a.Namespaces, func(n string) bool { return slices.Contains(b.Namespaces, n) })
	return isMode && isFilter && isNamespace
}
