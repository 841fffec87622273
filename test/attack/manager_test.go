package attack_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/backend"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/web/client"
	"slipway.dev/slipway/web/wire"
)

const (
	clusterA = "aaaaaaaa-0000-4000-8000-000000000001"
	clusterB = "bbbbbbbb-0000-4000-8000-000000000002"
)

// TestAStolenManagerTokenReachesItsClusterOnly steals the token that slipway manager has in cluster A: it reads no secret, user or
// setting, takes no machine of cluster B, and changes no host outside of the pools of its cluster.
func TestAStolenManagerTokenReachesItsClusterOnly(t *testing.T) {
	a := victim(t)
	ctx, value := t.Context(), "attack-canary"
	if _, err := a.API.SetSecret(ctx, "db-root", wire.SecretInput{Value: &value}); err != nil {
		t.Fatal(err)
	}
	a.ImportLive()
	if _, err := a.API.Profiles.Create(ctx, inventory.Profile{Name: "shared", Image: "live", Config: "files: [{path: /etc/x, secret: 'secret://db-root'}]"}); err != nil {
		t.Fatal(err)
	}
	for _, pool := range []string{"a-pool", "b-pool"} {
		if _, err := a.API.Pools.Create(ctx, wire.Pool{Pool: inventory.Pool{Name: pool, Selector: "pool=" + pool}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.API.Clusters.SetAccess(ctx, clusterA, inventory.ClusterAccess{Pools: []string{"a-pool"}}); err != nil {
		t.Fatal(err)
	}
	thief, stolen := managerOf(t, a.API, clusterA, inside(a, a.Net.Server, ""))
	victims, _ := managerOf(t, a.API, clusterB, inside(a, a.Net.Server, ""))
	owner := contract.Owner{ClusterUID: clusterB, Namespace: "prod", Kind: "MetalMachine", Name: "db", UID: "u-db"}.String()
	mine := contract.Owner{ClusterUID: clusterA, Namespace: "prod", Kind: "MetalMachine", Name: "db", UID: "u-db"}.String()
	theirs, err := victims.CreateMachine(ctx, inventory.Machine{Name: "b-db", Profile: "shared", Pool: "b-pool", Owner: owner})
	if err != nil {
		t.Fatal(err)
	}
	host, err := victims.DeclareHost(ctx, inventory.Host{Name: "b-1", Labels: map[string]string{"pool": "b-pool"}, NICs: []inventory.NIC{{MAC: "52:54:00:0b:00:01"}}})
	if err != nil {
		t.Fatal(err)
	}

	for what, do := range map[string]func() error{
		"reads a secret":  func() error { _, err := stolen.Secrets.Get(ctx, "db-root"); return err },
		"lists users":     func() error { _, err := stolen.Users.List(ctx, client.Query{}); return err },
		"reads the audit": func() error { _, err := stolen.Audit.List(ctx, client.Query{}); return err },
		"lists clusters":  func() error { _, err := stolen.Clusters.List(ctx, client.Query{}); return err },
		"grants itself all": func() error {
			_, err := stolen.Clusters.SetAccess(ctx, clusterA, inventory.ClusterAccess{})
			return err
		},
		"makes another token": func() error {
			_, err := stolen.NewToken(ctx, client.TokenWish{Name: "more", Cluster: clusterB})
			return err
		},
		"reads the profile":      func() error { _, err := stolen.Profiles.Get(ctx, "shared"); return err },
		"says it is B":           func() error { _, err := thief.FindMachine(ctx, owner); return err },
		"ends B's machine":       func() error { _, err := thief.DeleteMachine(ctx, theirs.Name, true); return err },
		"offers B's machine":     func() error { return thief.Offer(ctx, owner, clusterA) },
		"looks at a host of B":   func() error { _, err := thief.FindHost(ctx, host.ID); return err },
		"unprotects a host of B": func() error { return thief.Protect(ctx, host.ID, false) },
		"switches a host of B":   func() error { return thief.Power(ctx, host.ID, "off") },
		"sends B's host elsewhere": func() error {
			return thief.SaveBMC(ctx, inventory.BMC{HostID: host.ID, Driver: inventory.Redfish, Address: "https://10.77.255.250"}, "")
		},
		"takes B's host by its MAC": func() error {
			_, err := thief.DeclareHost(ctx, inventory.Host{Name: "a-1", Labels: map[string]string{"pool": "a-pool"}, NICs: host.NICs})
			return err
		},
		"installs on B's pool": func() error {
			m, err := thief.CreateMachine(ctx, inventory.Machine{Name: "a-db", Profile: "shared", Pool: "b-pool", Owner: mine, HostID: host.ID})
			if err == nil && strings.Join(m.Placement.OnlyPools, " ") == "a-pool" {
				return inventory.Errorf(inventory.Forbidden, "it is kept to its own pool")
			}
			return err
		},
	} {
		if err := do(); err == nil || !isRefused(err) && !isNotFound(err) {
			t.Errorf("the token of A %s: %v", what, err)
		}
	}
	if p, err := thief.FindProfile(ctx, "shared"); err != nil || p.Config != "" || p.Image != "live" {
		t.Errorf("it is shown the configuration of a profile: %+v %v", p, err)
	}
	shown := 0
	if err := thief.EachHost(ctx, func(contract.HostView) error { shown++; return nil }); err != nil || shown != 0 {
		t.Errorf("it is shown %d hosts of others: %v", shown, err)
	}

	// The neighbour goes on unharmed, and the audit names who tried.
	if v, err := victims.FindMachine(ctx, owner); err != nil || !v.Machine.DeletedAt.IsZero() {
		t.Errorf("B's machine: %+v %v", v.Machine, err)
	}
	if v, err := victims.FindHost(ctx, host.ID); err != nil || v.BMC != nil {
		t.Errorf("B's host: %+v %v", v, err)
	}
	refused, err := a.API.Audit.List(ctx, client.Query{Outcome: "refused", Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	isNamed := false
	for _, e := range refused.Items {
		isNamed = isNamed || e.Actor == "token manager-"+clusterA
	}
	if !isNamed {
		t.Errorf("the audit does not name the token: %+v", refused.Items)
	}
}

// managerOf makes the token of a cluster, and returns what slipway manager has with it and a plain client.
func managerOf(t *testing.T, api *client.Client, uid string, dial func(ctx context.Context, network, to string) (net.Conn, error)) (*backend.ClusterRemote, *client.Client) {
	t.Helper()
	token, err := api.NewToken(t.Context(), client.TokenWish{Name: "manager-" + uid, Cluster: uid})
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(client.Config{Server: "http://" + adminDoor, Token: token.Secret, Dial: dial})
	if err != nil {
		t.Fatal(err)
	}
	m, err := backend.NewClusterRemote(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return m, c
}

func isNotFound(err error) bool {
	var e *inventory.Error
	return errors.As(err, &e) && (e.Kind == inventory.NotFound || e.Kind == inventory.Conflict)
}
