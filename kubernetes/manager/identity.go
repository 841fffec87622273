package manager

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"slices"

	"k8s.io/client-go/rest"

	"slipway.dev/slipway/inventory"
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
