package serve

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/secret"
	"slipway.dev/slipway/kubernetes/clusterapi"
	infra "slipway.dev/slipway/kubernetes/infra/v1alpha1"
	"slipway.dev/slipway/kubernetes/kubeconfig"
	"slipway.dev/slipway/kubernetes/manager"
	"slipway.dev/slipway/kubernetes/standalone"
	metalv1 "slipway.dev/slipway/kubernetes/v1alpha1"
	"slipway.dev/slipway/web/wire"
)

// Sets are the controllers that exist. The in-cluster manager runs the same ones, so that a cluster behaves alike wherever its
// controllers are.
func Sets() []manager.Set {
	return []manager.Set{
		{Mode: inventory.ModeStandalone, AddToScheme: metalv1.AddToScheme, Setup: standalone.Setup},
		{Mode: inventory.ModeCAPI, AddToScheme: infra.AddToScheme, Setup: clusterapi.Setup},
	}
}

// identity tells this appliance from all others, and stays the same over restarts.
func identity(dataDir string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "slipway"
	}
	if abs, err := filepath.Abs(dataDir); err == nil {
		dataDir = abs
	}
	// Two servers on one machine have different data directories. The name is in leader leases and annotations of the cluster,
	// and must fit into a label.
	sum := sha256.Sum256([]byte(dataDir))
	return inventory.Clean(host, 64) + "-" + hex.EncodeToString(sum[:3])
}

// attachFile attaches the cluster of the kubeconfig that serve was started with, if it is not attached like that already.
func attachFile(ctx context.Context, path string, store inventory.Store, box *secret.Box) error {
	if path == "" {
		return nil
	}
	name, text, err := kubeconfig.Read(path)
	if err != nil {
		return err
	}
	want := inventory.Cluster{Name: name, Kubeconfig: manager.KubeconfigSecret(name), State: inventory.ClusterAttaching}
	sealed, err := box.Seal(want.Kubeconfig, text)
	if err != nil {
		return err
	}
	now := time.Now()
	err = store.Write(ctx, func(tx inventory.Tx) error {
		s := inventory.Secret{Name: want.Kubeconfig, About: "kubeconfig of cluster " + name, Sealed: sealed}
		stored, err := tx.Secrets().Find(s.Name)
		if err == nil {
			// Sealing draws a nonce, so only the opened texts can be compared. An unchanged file writes nothing at a restart.
			if plain, err := box.Open(s.Name, stored.Sealed); err != nil || string(plain) != string(text) {
				s.Version = stored.Version
				if err := tx.Secrets().Update(&s, now); err != nil {
					return err
				}
			}
		} else if err := tx.Secrets().Create(&s, now); err != nil {
			return err
		}
		// A cluster that an admin has changed or paused since then stays as it is.
		if _, err := tx.Clusters().Find(name); err == nil {
			return nil
		}
		if err := tx.Clusters().Create(&want, now); err != nil {
			return err
		}
		return tx.AddEvent(&inventory.Event{At: now, Kind: inventory.EventChanged, Subject: "cluster/" + name, Detail: "cluster " + name + " attached by serve --kubeconfig"})
	})
	if err != nil {
		return fmt.Errorf("attach the cluster of %s: %w", path, err)
	}
	return nil
}

// attached checks and detaches clusters for the API.
type attached struct{ attacher *manager.Attacher }

// CheckCluster implements clusters.Clusters.
func (a attached) CheckCluster(ctx context.Context, c inventory.Cluster, text []byte) wire.ClusterCheck {
	k := a.attacher.Check(ctx, c, text)
	out := wire.ClusterCheck{Cluster: k.Cluster, Kubernetes: k.Kubernetes, UID: k.UID, Results: []wire.TargetCheckResult{}}
	for _, r := range k.Results {
		out.Results = append(out.Results, wire.TargetCheckResult(r))
	}
	return out
}

// DetachCluster implements clusters.Clusters.
func (a attached) DetachCluster(ctx context.Context, name string, purge, force bool, by string) error {
	return a.attacher.Detach(ctx, name, manager.Parting{Purge: purge, Force: force, By: by})
}
