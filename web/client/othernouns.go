package client

import (
	"context"
	"io"
	"net/http"
	"net/netip"
	"net/url"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/elevation"
	"slipway.dev/slipway/web/wire"
)

// Clusters is the calls on attached Kubernetes clusters.
type Clusters struct {
	Noun[inventory.Cluster]
}

// Check makes the server check an attached cluster.
func (c Clusters) Check(ctx context.Context, name string) (k wire.ClusterCheck, err error) {
	return k, c.c.call(ctx, http.MethodGet, c.at(name)+"/check", nil, nil, &k)
}

// CheckKubeconfig has the server look whether a cluster could be attached with a kubeconfig. The server does not read the
// secret that it names.
func (c Clusters) CheckKubeconfig(ctx context.Context, want inventory.Cluster, kubeconfig string) (k wire.ClusterCheck, err error) {
	in := wire.CheckClusterInput{
		Name: want.Name, Kubeconfig: kubeconfig, Modes: want.Modes, Namespaces: want.Namespaces, WatchFilter: want.WatchFilter, TakesOver: want.TakesOver,
	}
	return k, c.c.call(ctx, http.MethodPost, "clusters/check", nil, in, &k)
}

// SetAccess says what a cluster, by its name or UID, may do beyond its own machines.
func (c Clusters) SetAccess(ctx context.Context, name string, a inventory.ClusterAccess) (stored inventory.ClusterAccess, err error) {
	in := map[string][]string{"takesFrom": append([]string{}, a.TakesFrom...), "pools": append([]string{}, a.Pools...)}
	return stored, c.c.call(ctx, http.MethodPut, c.at(name)+"/access", nil, in, &stored)
}

// Detach ends the controllers of a cluster and forgets it; every server runs on. With purge the kinds are taken away as
// well; with force a cluster is forgotten that does not answer.
func (c Clusters) Detach(ctx context.Context, name string, purge, force bool) error {
	return c.c.call(ctx, http.MethodDelete, c.at(name), params{"purge": purge, "force": force}.values(), nil, nil)
}

// Rack is a rack with its hosts.
type Rack struct {
	inventory.Rack
	ID     string                 `json:"id,omitempty"`
	HostN  int                    `json:"hostN"`
	Faults []elevation.PlaceFault `json:"faults"`
}

// Racks is the calls about racks.
type Racks struct{ Noun[Rack] }

// Elevation writes the drawing of one face of a rack as SVG.
func (r Racks) Elevation(ctx context.Context, id string, face inventory.Face, w io.Writer) error {
	return r.c.copy(ctx, r.at(id)+"/elevation.svg", params{"face": face}.values(), w)
}

// Addresses is the calls for static addresses.
type Addresses struct{ Noun[wire.Address] }

// Keep keeps an address for a machine, or for a host without a machine. It replaces the address that this one has in that
// subnet.
func (a Addresses) Keep(ctx context.Context, address netip.Addr, machine, host string, isDryRun bool) (out wire.Address, err error) {
	q := url.Values{}
	if isDryRun {
		q.Set("dryRun", "true")
		var d struct {
			Result wire.Address `json:"result"`
		}
		err = a.c.call(ctx, http.MethodPut, a.at(address.String()), q, map[string]string{"machine": machine, "host": host}, &d)
		return d.Result, err
	}
	return out, a.c.call(ctx, http.MethodPut, a.at(address.String()), q, map[string]string{"machine": machine, "host": host}, &out)
}
