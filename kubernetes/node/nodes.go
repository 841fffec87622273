package node

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/egress"
)

// Secrets opens what is stored under a name.
type Secrets interface {
	Open(ctx context.Context, name string) ([]byte, error)
}

// Config holds what Nodes need. Store and Secrets are required.
type Config struct {
	Store   inventory.Store
	Secrets Secrets
	Egress  *egress.Policy // which addresses clusters may be at; nil: anywhere
	Site    string         // first part of provider ids
	Now     func() time.Time
	Log     *slog.Logger
}

// Nodes drains and deletes the nodes of machines, with the kubeconfigs of their join targets. It remembers only
// connections: every call reads the cluster again.
type Nodes struct {
	cfg Config

	mu       sync.Mutex // never held during a call to a cluster or the store
	clusters map[string]*connection
}

// connection is a cluster with the versions of what it was made from.
type connection struct {
	*Cluster
	secret  string
	version int64
}

// New returns Nodes.
func New(cfg Config) *Nodes {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	return &Nodes{cfg: cfg, clusters: map[string]*connection{}}
}

// Drain drains the node of a machine by one step, and reports its progress. When the join target is gone or has no
// kubeconfig, nothing can be drained, and Drain reports that it is done.
func (n *Nodes) Drain(ctx context.Context, m inventory.Machine, h inventory.Host, since time.Time) (inventory.DrainState, error) {
	c, why, err := n.connect(ctx, m.Drain.Target)
	if err != nil {
		return inventory.DrainState{}, err
	}
	if c == nil {
		return inventory.DrainState{IsDone: true, Detail: why}, nil
	}
	return c.Drain(ctx, n.identity(&m, &h), m.Drain, since)
}

// Forget deletes the object of a machine's node.
func (n *Nodes) Forget(ctx context.Context, m inventory.Machine, h inventory.Host) error {
	c, why, err := n.connect(ctx, m.Drain.Target)
	if err != nil {
		return err
	}
	if c == nil {
		n.cfg.Log.Info("node is not deleted", "machine", m.Name, "target", m.Drain.Target, "reason", why)
		return nil
	}
	return c.Delete(ctx, n.identity(&m, &h))
}

// ControlPlane says how far the control plane of a target's cluster is.
func (n *Nodes) ControlPlane(ctx context.Context, target string) (ControlPlane, error) {
	c, why, err := n.connect(ctx, target)
	if err != nil {
		return ControlPlane{}, err
	}
	if c == nil {
		return ControlPlane{}, inventory.Errorf(inventory.Unavailable, "%s", why)
	}
	return c.ControlPlane(ctx)
}

func (n *Nodes) identity(m *inventory.Machine, h *inventory.Host) Identity {
	claim := inventory.Claim{ID: m.ClaimID}
	id := Identity{Machine: m.Name, SystemUUID: h.UUID, Hostname: cmp.Or(m.Drain.Node, m.Hostname, m.Name)}
	if m.ClaimID != "" {
		id.ProviderID = claim.ProviderID(n.cfg.Site, string(h.ID))
	}
	return id
}

// connect returns the cluster of a target, and keeps it until the kubeconfig changes. It opens no connection. When there
// is nothing to connect to it says why.
func (n *Nodes) connect(ctx context.Context, target string) (c *Cluster, why string, err error) {
	var t inventory.JoinTarget
	var s inventory.Secret
	err = n.cfg.Store.Read(ctx, func(tx inventory.Tx) (err error) {
		if t, err = tx.JoinTargets().Find(target); err != nil || t.Kubeconfig == "" {
			return err
		}
		s, err = tx.Secrets().Find(t.Kubeconfig)
		return err
	})
	var e *inventory.Error
	switch {
	case errors.As(err, &e) && e.Kind == inventory.NotFound && t.Name == "":
		return nil, "join target " + target + " is gone, and with it the way to its cluster", nil
	case err != nil:
		return nil, "", err
	case t.Kubeconfig == "":
		return nil, "join target " + target + " has no kubeconfig: Slipway cannot speak to its cluster", nil
	}
	n.mu.Lock()
	known := n.clusters[target]
	n.mu.Unlock()
	if known != nil && known.secret == s.Name && known.version == s.Version {
		return known.Cluster, "", nil
	}
	plain, err := n.cfg.Secrets.Open(ctx, t.Kubeconfig)
	if err != nil {
		return nil, "", err
	}
	c, err = open(target, "target "+target+": secret "+t.Kubeconfig, plain, n.cfg.Now, n.cfg.Egress, nil)
	if err != nil {
		return nil, "", err
	}
	n.mu.Lock()
	n.clusters[target] = &connection{c, s.Name, s.Version}
	n.mu.Unlock()
	return c, "", nil
}
