package backend

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/yaml"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/kubeconfig"
	"slipway.dev/slipway/machineconfig/kubeadm"
)

// foundCluster makes, once, the authorities of a new cluster and Slipway's kubeconfig for it. It seals them as the secrets that
// the target names, and fills in the target's CA.
func (l *local) foundCluster(ctx context.Context, t *inventory.JoinTarget) error {
	if l.cfg.Secrets == nil {
		return inventory.Errorf(inventory.Unavailable, "this server has no key for secrets")
	}
	files, err := l.authorities(ctx, t.PKI)
	// The authorities are stored before anything is signed by them. A crash after this leaves a secret, which the next call
	// finds.
	if inventory.IsKind(err, inventory.NotFound) {
		if files, err = kubeadm.NewPKI(l.cfg.Now(), nil); err != nil {
			return err
		}
		var text []byte
		if text, err = yaml.Marshal(files); err != nil {
			return fmt.Errorf("encode authorities: %w", err)
		}
		err = l.addSecret(ctx, t.PKI, t.Owner, "authorities of the cluster of "+t.Name, text)
		if inventory.IsKind(err, inventory.Conflict) {
			files, err = l.authorities(ctx, t.PKI) // somebody was faster
		}
	}
	if err != nil {
		return err
	}
	t.CA = files["ca.crt"]
	stored, err := inventory.Read(ctx, l.cfg.Store, func(tx inventory.Tx) (inventory.Secret, error) {
		return tx.Secrets().Find(t.Kubeconfig)
	})
	if err == nil {
		text, err := l.cfg.Secrets.Open(stored.Name, stored.Sealed)
		if err != nil {
			return err
		}
		// A kubeconfig for another endpoint or authority is of no use. It is issued again, as a reconciler calls this again and
		// again.
		if c, err := kubeconfig.Parse("target "+t.Name, text); err == nil && c.Host == "https://"+t.Endpoint && bytes.Equal(c.CAData, bytes.TrimSpace([]byte(t.CA))) {
			return nil
		}
	} else if !inventory.IsKind(err, inventory.NotFound) {
		return err
	}
	text, err := kubeconfig.Issue(kubeconfig.Admin(t.Name, t.Endpoint, files, "slipway", kubeconfig.OwnFor), l.cfg.Now())
	if err != nil {
		return err
	}
	return l.saveSecret(ctx, t.Kubeconfig, t.Owner, text)
}

// authorities opens the secret with a cluster's authorities.
func (l *local) authorities(ctx context.Context, name string) (files map[string]string, err error) {
	s, err := inventory.Read(ctx, l.cfg.Store, func(tx inventory.Tx) (inventory.Secret, error) { return tx.Secrets().Find(name) })
	if err != nil {
		return nil, err
	}
	text, err := l.cfg.Secrets.Open(name, s.Sealed)
	if err != nil {
		return nil, err
	}
	if yaml.Unmarshal(text, &files) != nil || files["ca.crt"] == "" || files["ca.key"] == "" {
		return nil, inventory.Errorf(inventory.Invalid, "secret %s does not hold the authorities of a cluster", name).
			WithHint("it is a YAML map with the files ca.crt, ca.key, ... of /etc/kubernetes/pki")
	}
	return files, nil
}

// addSecret stores a value that is not there yet.
func (l *local) addSecret(ctx context.Context, name, owner, about string, value []byte) error {
	s := inventory.Secret{Name: name, Owner: owner, About: about}
	if err := s.Validate(); err != nil {
		return err
	}
	var err error
	if s.Sealed, err = l.cfg.Secrets.Seal(name, value); err != nil {
		return err
	}
	return l.cfg.Store.Write(ctx, func(tx inventory.Tx) error {
		if err := tx.Secrets().Create(&s, l.cfg.Now()); err != nil {
			return err
		}
		return l.changed(tx, "secret", name, "created")
	})
}

// IssueKubeconfig returns a kubeconfig that lets user administer the cluster of a target, for as long as life says. It
// needs the cluster's authorities: those of a cluster that Slipway has made, or that the target's pki names.
func (l *local) IssueKubeconfig(ctx context.Context, target, user string, life time.Duration) ([]byte, error) {
	t, err := inventory.Read(ctx, l.cfg.Store, func(tx inventory.Tx) (inventory.JoinTarget, error) { return tx.JoinTargets().Find(target) })
	if err != nil {
		return nil, err
	}
	if t.PKI == "" || l.cfg.Secrets == nil {
		return nil, inventory.Errorf(inventory.Conflict, "Slipway does not have the authorities of target %s, and cannot let anybody into its cluster", target).
			WithHint("ask the cluster's administrator for a kubeconfig")
	}
	files, err := l.authorities(ctx, t.PKI)
	if err != nil {
		return nil, err
	}
	text, err := kubeconfig.Issue(kubeconfig.Admin(t.Name, t.Endpoint, files, user, life), l.cfg.Now())
	if err != nil {
		return nil, err
	}
	return text, l.cfg.Store.Write(ctx, func(tx inventory.Tx) error {
		return tx.AddEvent(&inventory.Event{
			At: l.cfg.Now(), Kind: inventory.EventChanged, Subject: "target/" + target,
			Detail: inventory.Clean(fmt.Sprintf("a kubeconfig of target %s for %s was issued to %s", target, inventory.Duration(life), user), 500),
		})
	})
}
