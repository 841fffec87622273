package backend_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/backend/backendtest"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/web/client"
	"slipway.dev/slipway/web/wire"
)

const otherCluster = "bbbbbbbb-0000-4000-8000-000000000002"

func ownerIn(uid, namespace, name string) string {
	return contract.Owner{ClusterUID: uid, Namespace: namespace, Kind: "MetalMachine", Name: name, UID: "u-" + name}.String()
}

// TestATokenOfAClusterSpeaksForThatClusterOnly: whoever has it, a pod or a thief, says another UID or namespace in vain.
func TestATokenOfAClusterSpeaksForThatClusterOnly(t *testing.T) {
	r := backendtest.New(t)
	ctx := t.Context()
	mine, theirs := controllers(t, r, client.TokenWish{Cluster: cluster}), controllers(t, r, client.TokenWish{Cluster: otherCluster})
	team := controllers(t, r, client.TokenWish{Cluster: cluster, Namespaces: []string{"team"}})
	if uid, ns := team.Bound(); uid != cluster || strings.Join(ns, " ") != "team" {
		t.Errorf("the token says that it is bound to %q %q", uid, ns)
	}
	m, err := theirs.CreateMachine(ctx, inventory.Machine{Name: "db", Profile: "worker", Owner: ownerIn(otherCluster, "team", "db")})
	if err != nil {
		t.Fatal(err)
	}
	for what, do := range map[string]func() error{
		"a machine for another cluster": func() error {
			_, err := mine.CreateMachine(ctx, inventory.Machine{Name: "x", Profile: "worker", Owner: ownerIn(otherCluster, "team", "x")})
			return err
		},
		"a machine for another namespace": func() error {
			_, err := team.CreateMachine(ctx, inventory.Machine{Name: "x", Profile: "worker", Owner: ownerIn(cluster, "prod", "x")})
			return err
		},
		"the machine of another cluster":    func() error { _, err := mine.FindMachine(ctx, m.Owner); return err },
		"its end":                           func() error { _, err := mine.DeleteMachine(ctx, "db", true); return err },
		"its configuration":                 func() error { m.Hostname = "mine"; _, err := mine.UpdateMachine(ctx, m); return err },
		"a pool of a cluster, by namespace": func() error { return team.SavePool(ctx, inventory.Pool{Name: "p", Owner: ownerIn(cluster, "", "p")}) },
		"a secret of another cluster":       func() error { return mine.SaveSecret(ctx, "s", ownerIn(otherCluster, "team", "db"), []byte("x")) },
		"a machine with a host of its choice": func() error {
			_, err := mine.UpdateMachine(ctx, inventory.Machine{Name: "db", Owner: ownerIn(cluster, "team", "db"), HostID: "h"})
			return err
		},
	} {
		if err := do(); !isKind(err, inventory.Forbidden) && !isKind(err, inventory.NotFound) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if all, err := mine.ListMachines(ctx, ""); err != nil || len(all) != 0 {
		t.Errorf("it lists %d machines of another cluster: %v", len(all), err)
	}
	if v, err := theirs.FindMachine(ctx, m.Owner); err != nil || !v.Machine.DeletedAt.IsZero() || v.Machine.Hostname == "mine" {
		t.Errorf("the neighbour is harmed: %+v %v", v.Machine, err)
	}
	if x, err := mine.ClusterAccess(ctx, otherCluster); err != nil || x.UID != cluster {
		t.Errorf("it is shown what cluster %s may: %v", x.UID, err)
	}
}

// TestNamesThatAreTakenAreNotSaidToBeOfWhom: a secret or pool of others is there, and that is all.
func TestNamesThatAreTakenAreNotSaidToBeOfWhom(t *testing.T) {
	r := backendtest.New(t)
	mine, theirs := controllers(t, r, client.TokenWish{Cluster: cluster}), controllers(t, r, client.TokenWish{Cluster: otherCluster})
	if err := errors.Join(theirs.SaveSecret(t.Context(), "db-root", ownerIn(otherCluster, "prod", "db"), []byte("canary")),
		theirs.SavePool(t.Context(), inventory.Pool{Name: "gold", Owner: ownerIn(otherCluster, "", "gold")})); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"secret": mine.SaveSecret(t.Context(), "db-root", ownerIn(cluster, "prod", "db"), []byte("mine")),
		"delete": mine.DeleteSecret(t.Context(), "db-root", ownerIn(cluster, "prod", "db")),
		"pool":   mine.SavePool(t.Context(), inventory.Pool{Name: "gold", Owner: ownerIn(cluster, "", "gold")}),
	} {
		if !isKind(err, inventory.Conflict) || strings.Contains(err.Error(), otherCluster) {
			t.Errorf("%s: %v", what, err)
		}
	}
	pools, err := mine.ListPools(t.Context())
	if err != nil || len(pools) != 1 || strings.Contains(pools[0].Owner, otherCluster) {
		t.Errorf("pools: %+v %v", pools, err)
	}
}

// TestTheTokenOfAClusterIsGoodForControllersOnly: what people do by nouns is refused, an admin's and a viewer's alike.
func TestTheTokenOfAClusterIsGoodForControllersOnly(t *testing.T) {
	r := backendtest.New(t)
	value := "canary"
	if _, err := r.API.SetSecret(t.Context(), "db-root", wire.SecretInput{Value: &value}); err != nil {
		t.Fatal(err)
	}
	token, err := r.API.NewToken(t.Context(), client.TokenWish{Name: "mgmt", Cluster: cluster})
	if err != nil || token.Cluster != cluster || token.User != "" || len(token.Grants) != 0 {
		t.Fatalf("%+v %v", token.Token, err)
	}
	thief, ctx := r.With(t, token.Secret), t.Context()
	for what, do := range map[string]func() error{
		"secrets":  func() error { _, err := thief.Secrets.Get(ctx, "db-root"); return err },
		"users":    func() error { _, err := thief.Users.List(ctx, client.Query{}); return err },
		"tokens":   func() error { _, err := thief.Tokens.List(ctx, client.Query{}); return err },
		"token":    func() error { _, err := thief.NewToken(ctx, client.TokenWish{Name: "more"}); return err },
		"clusters": func() error { _, err := thief.Clusters.List(ctx, client.Query{}); return err },
		"audit":    func() error { _, err := thief.Audit.List(ctx, client.Query{}); return err },
		"events":   func() error { _, err := thief.Events(ctx, client.EventQuery{}); return err },
		"hosts":    func() error { _, err := thief.Hosts.Get(ctx, "h"); return err },
		"profiles": func() error { _, err := thief.Profiles.Get(ctx, "worker"); return err },
		"machine": func() error {
			_, err := thief.Machines.Create(ctx, inventory.Machine{Name: "x", Profile: "worker"})
			return err
		},
		"layer":  func() error { _, err := thief.SetLayer(ctx, "global", "host: {}"); return err },
		"access": func() error { _, err := thief.Clusters.SetAccess(ctx, cluster, inventory.ClusterAccess{}); return err },
	} {
		if err := do(); !isKind(err, inventory.Forbidden) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if me, err := thief.Me(ctx); err != nil || me.Cluster != cluster || len(me.Grants) != 0 {
		t.Errorf("it is %+v: %v", me, err)
	}
	people := "somebody"
	for what, wish := range map[string]client.TokenWish{
		"roles":               {Cluster: cluster, Grants: inventory.AdminEverywhere()},
		"a user":              {Cluster: cluster, User: &people},
		"no UID":              {Cluster: "prod"},
		"namespaces of none":  {Namespaces: []string{"team"}},
		"a namespace of none": {Cluster: cluster, Namespaces: []string{"a/b"}},
	} {
		wish.Name = "wrong"
		if _, err := r.API.NewToken(ctx, wish); !isKind(err, inventory.Invalid) && !isKind(err, inventory.NotFound) {
			t.Errorf("a token with %s: %v", what, err)
		}
	}
}

// TestAClusterHearsOfItsOwn: the stream of a cluster has its machines by name, hosts by id, and no words about either.
func TestAClusterHearsOfItsOwn(t *testing.T) {
	r := backendtest.New(t)
	mine, theirs := controllers(t, r, client.TokenWish{Cluster: cluster}), controllers(t, r, client.TokenWish{Cluster: otherCluster})
	ctx, cancel := context.WithCancel(t.Context())
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		heard []inventory.Event
	)
	stands, done := make(chan struct{}), make(chan struct{})
	wg.Go(func() {
		_ = mine.Watch(ctx, func(e inventory.Event) {
			mu.Lock()
			defer mu.Unlock()
			if heard = append(heard, e); len(heard) == 1 {
				close(stands)
			}
			if e.Subject == "machine/mine" && ctx.Err() == nil {
				cancel()
				close(done)
			}
		})
	})
	defer wg.Wait()
	defer cancel()
	<-stands
	if _, err := theirs.CreateMachine(t.Context(), inventory.Machine{Name: "theirs", Profile: "worker", Owner: ownerIn(otherCluster, "prod", "theirs")}); err != nil {
		t.Fatal(err)
	}
	value := "x"
	if _, err := r.API.SetSecret(t.Context(), "db-root", wire.SecretInput{Value: &value}); err != nil {
		t.Fatal(err)
	}
	if _, err := mine.CreateMachine(t.Context(), inventory.Machine{Name: "mine", Profile: "worker", Owner: ownerIn(cluster, "prod", "mine")}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-done:
	case <-time.After(90 * time.Second):
		t.Fatal("its own machine was not heard of")
	}
	mu.Lock()
	defer mu.Unlock()
	isTold := false
	for _, e := range heard {
		if e.Detail != "" || strings.Contains(e.Subject, "theirs") || strings.Contains(e.Subject, "db-root") {
			t.Errorf("it heard %+v", e)
		}
		isTold = isTold || e.Subject == "secret/"
	}
	if !isTold {
		t.Error("it did not hear that a secret was made, which machines may wait for")
	}
}
