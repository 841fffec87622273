package storetest

import (
	"errors"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

func clusters(t *testing.T, s inventory.Store) {
	write(t, s, func(tx inventory.Tx) error {
		return errors.Join(tx.Secrets().Create(&inventory.Secret{Name: "admin"}, Now), tx.Secrets().Create(&inventory.Secret{Name: "other"}, Now))
	})
	c := inventory.Cluster{
		Name: "mgmt", Kubeconfig: "admin", Modes: []inventory.ClusterMode{inventory.ModeCAPI}, Namespaces: []string{"a", "b"},
		WatchFilter: "metal", State: inventory.ClusterAttaching,
	}
	bare := inventory.Cluster{Name: "bare", Kubeconfig: "admin", State: inventory.ClusterAttached, UID: "u", Kubernetes: "v1.36.3", SeenAt: Now.UTC().Truncate(time.Millisecond)}
	write(t, s, func(tx inventory.Tx) error {
		return errors.Join(tx.Clusters().Create(&c, Now), tx.Clusters().Create(&bare, Now))
	})
	read(t, s, func(tx inventory.Tx) error {
		got, err := tx.Clusters().Find("mgmt")
		same(t, "cluster", c, got)
		if err != nil {
			return err
		}
		all, err := tx.Clusters().List(inventory.Page{})
		same(t, "clusters", []inventory.Cluster{bare, c}, all)
		return err
	})
	refuses(t, s, inventory.Conflict, "cluster mgmt", func(tx inventory.Tx) error {
		return tx.Clusters().Create(&inventory.Cluster{Name: "mgmt", Kubeconfig: "admin"}, Now)
	})
	refuses(t, s, inventory.Invalid, "lost nothing", func(tx inventory.Tx) error {
		return tx.Clusters().Create(&inventory.Cluster{Name: "lost", Kubeconfig: "nothing"}, Now)
	})
	refuses(t, s, inventory.Conflict, "secret admin cluster bare", func(tx inventory.Tx) error { return tx.Secrets().Delete("admin") })

	noted := c
	noted.TakesOver = true
	noted.State, noted.Reason, noted.Hint = inventory.ClusterUnreachable, "gone", "look"
	noted.UID, noted.Kubernetes, noted.SeenAt = "uid", "v1.36.3", Now.Add(time.Hour).UTC().Truncate(time.Millisecond)
	write(t, s, func(tx inventory.Tx) error { return tx.NoteCluster(&noted) })
	c.Kubeconfig, c.Modes, c.Namespaces, c.WatchFilter, c.State = "other", nil, nil, "", "ignored"
	c.TakesOver = true
	write(t, s, func(tx inventory.Tx) error { return tx.Clusters().Update(&c, Now.Add(time.Minute)) })
	read(t, s, func(tx inventory.Tx) error {
		want := noted
		want.Kubeconfig, want.Modes, want.Namespaces, want.WatchFilter = "other", nil, nil, ""
		want.UpdatedAt, want.Version = c.UpdatedAt, 2
		got, err := tx.Clusters().Find("mgmt")
		same(t, "a cluster with what became of it", want, got)
		return err
	})
	stale := c
	stale.Version = 1
	refuses(t, s, inventory.Conflict, "cluster mgmt changed", func(tx inventory.Tx) error { return tx.Clusters().Update(&stale, Now) })
	write(t, s, func(tx inventory.Tx) error { return tx.Clusters().Delete("mgmt") })
	refuses(t, s, inventory.NotFound, "cluster mgmt", func(tx inventory.Tx) error { return tx.Clusters().Delete("mgmt") })
	refuses(t, s, inventory.NotFound, "cluster mgmt", func(tx inventory.Tx) error { return tx.NoteCluster(&c) })
	write(t, s, func(tx inventory.Tx) error {
		return errors.Join(tx.Clusters().Delete("bare"), tx.Secrets().Delete("admin"))
	})
}

func clusterAccess(t *testing.T, s inventory.Store) {
	a := inventory.ClusterAccess{UID: "u-b", TakesFrom: []string{"u-a", inventory.FromPeople}, Pools: []string{"gold"}, Authority: []string{"ab", "cd"}}
	read(t, s, func(tx inventory.Tx) error {
		none, err := tx.FindClusterAccess("u-b")
		same(t, "access that nobody has given", inventory.ClusterAccess{UID: "u-b"}, none)
		return err
	})
	write(t, s, func(tx inventory.Tx) error { return tx.SaveClusterAccess(&a, Now) })
	a.Pools = nil
	write(t, s, func(tx inventory.Tx) error { return tx.SaveClusterAccess(&a, Now) })
	read(t, s, func(tx inventory.Tx) error {
		got, err := tx.FindClusterAccess("u-b")
		same(t, "access", a, got)
		return err
	})
	write(t, s, func(tx inventory.Tx) error { return tx.SaveClusterAccess(&inventory.ClusterAccess{UID: "u-b"}, Now) })
	read(t, s, func(tx inventory.Tx) error {
		all, err := tx.ListClusterAccess()
		if len(all) > 0 {
			t.Errorf("nothing was said, and stored is %+v", all)
		}
		return err
	})
}
