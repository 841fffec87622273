package manager

import (
	"context"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
)

// Parting says how to detach a cluster.
type Parting struct {
	Purge bool   // take the kinds away as well, and with them all objects of them
	Force bool   // even when the cluster does not answer: our finalizers stay on its objects
	By    string // who asked, for the timeline
}

// An admin waits for the command. A cluster that needs longer is one for --force.
const partFor = 60 * time.Second

// KubeconfigSecret is the name of the secret with the kubeconfig of a cluster that was attached from a file. Detach
// deletes it with the cluster.
func KubeconfigSecret(cluster string) string {
	name := "cluster-" + cluster
	return strings.TrimRight(name[:min(len(name), 63)], "-")
}

// Detach ends the controllers of a cluster, removes our finalizers from its objects, and forgets it. Its machines
// stay as they are, and every server runs on. The error is Unavailable when the cluster does not answer, unless
// how.Force is set, and Conflict when another process needs what Purge would delete.
//
// It is safe to repeat: until the last step, the row of the cluster exists and Serve attaches it again.
func (a *Attacher) Detach(ctx context.Context, name string, how Parting) error {
	c, err := inventory.Read(ctx, a.cfg.Store, func(tx inventory.Tx) (inventory.Cluster, error) { return tx.Clusters().Find(name) })
	if err != nil {
		return err
	}
	// The last defer runs first: Serve may start the cluster again, and only then it is woken.
	done := a.leave(name)
	defer a.Wake()
	defer done()
	// The cluster first, and the row last. If the process dies in between, the cluster is attached again, and an admin
	// detaches it again.
	if err := a.part(ctx, c, how); err != nil && !how.Force {
		e := asError(name, err)
		if e.Kind == inventory.Conflict {
			return e
		}
		return inventory.Errorf(inventory.Unavailable, "cluster %s was not detached, because it does not let go of its objects: %s", name, e.Msg).
			WithHint("try again when it answers; or --force forgets it now: objects deleted there later wait until somebody removes their finalizer %s… by hand", finalizerPrefix)
	}
	return a.forget(ctx, c, how)
}

// leave stops the follower of a cluster, and keeps Serve from starting it again until the caller calls done.
func (a *Attacher) leave(name string) (done func()) {
	a.mu.Lock()
	a.leaving[name] = true
	f := a.followed[name]
	delete(a.followed, name)
	a.mu.Unlock()
	// Waited for, because a controller that still runs would put its finalizer back.
	if f != nil {
		f.stop()
		<-f.done
	}
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.leaving, name)
	}
}

// part removes our finalizers, and with Purge the kinds. While another process runs the controllers of the cluster,
// it touches nothing there.
func (a *Attacher) part(ctx context.Context, c inventory.Cluster, how Parting) error {
	ctx, cancel := context.WithTimeout(ctx, partFor)
	defer cancel()
	p, err := a.connect(ctx, c)
	if err != nil {
		return err
	}
	defer p.hangUp()
	if err := p.narrow(ctx, c.Namespaces); err != nil {
		return err
	}
	holder, err := p.holder(ctx, Options{Namespaces: c.Namespaces, WatchFilter: c.WatchFilter})
	if err != nil {
		return err
	}
	// The controllers elsewhere need their finalizers: their machines must be released before their objects go.
	if holder != "" && holder != a.cfg.Identity+"/"+c.Name {
		if how.Purge {
			return inventory.Errorf(inventory.Conflict, "the controllers of cluster %s run at %s: Slipway keeps the objects that they need", c.Name, inventory.Clean(holder, 200)).
				WithHint("detach it there first, or detach it here without --purge")
		}
		return nil
	}
	if err := p.letGo(ctx, c.Namespaces); err != nil {
		return err
	}
	if how.Purge {
		return p.purge(ctx)
	}
	return nil
}

// forget deletes the row of a cluster, and its kubeconfig when that was stored for it alone.
func (a *Attacher) forget(ctx context.Context, c inventory.Cluster, how Parting) error {
	return a.cfg.Store.Write(ctx, func(tx inventory.Tx) error {
		if err := tx.Clusters().Delete(c.Name); err != nil {
			return err
		}
		if c.Kubeconfig == KubeconfigSecret(c.Name) {
			// Conflict: something else uses the secret as well, so it stays.
			if err := tx.Secrets().Delete(c.Kubeconfig); err != nil && inventory.KindOf(err) != inventory.Conflict &&
				inventory.KindOf(err) != inventory.NotFound {
				return err
			}
		}
		if err := a.closeIssue(tx, c.Name, "cluster "+c.Name+" was detached"); err != nil {
			return err
		}
		return tx.AddEvent(&inventory.Event{
			At: a.cfg.Now(), Kind: inventory.EventChanged, Subject: "cluster/" + c.Name, Detail: "cluster " + c.Name + " detached by " + how.By,
		})
	})
}
