package clusters

import (
	"context"
	"net/http"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/wire"
)

// ApplianceSecret is a secret that is kept for the object of an attached cluster.
type ApplianceSecret struct {
	Owner string `json:"owner" maxLength:"512"`
	Value []byte `json:"value" writeOnly:"true" doc:"In base64. It never comes out again, but to the machines that are given it"`
}

// InitHolder is the machine whose turn it is to be the first control plane of a target.
type InitHolder struct {
	Machine string `json:"machine" doc:"Empty for none"`
}

// addApplianceNouns registers the questions about what machines are made of.
func (s *Server) addApplianceNouns() {
	question(s, http.MethodGet, "/pools", "list-pools-for-controllers", "List the pools, in order of their names",
		func(req *rest.Request, a Appliance, in *rest.Page) (rest.List[inventory.Pool], error) {
			all, err := a.ListPools(req)
			if err != nil {
				return rest.List[inventory.Pool]{}, err
			}
			return rest.Cut(all, *in, func(p inventory.Pool) string { return p.Name }).Body, nil
		})
	byName(s, http.MethodGet, "/pools/{name}/count", "count-pool", "Count the hosts of a pool", Appliance.CountPool)
	byName(s, http.MethodGet, "/targets/{name}", "find-target", "Show a join target of the cluster", Appliance.FindTarget)
	byName(s, http.MethodGet, "/profiles/{name}", "find-profile", "Show which image a profile installs", Appliance.FindProfile)
	byName(s, http.MethodGet, "/images/{name}", "find-image", "Show an image", Appliance.FindImage)
	question(s, http.MethodGet, "/clusters/{name}/access", "find-own-access", "Show which machines the cluster may take over, and which pools it may use",
		func(req *rest.Request, a Appliance, in *rest.NameInput) (inventory.ClusterAccess, error) {
			x, err := a.ClusterAccess(req, in.Name)
			x.TakesFrom, x.Pools = orEmpty(x.TakesFrom), orEmpty(x.Pools)
			return x, err
		})
	question(s, http.MethodPut, "/pools/{name}", "put-owned-pool", "Keep a pool for its owner", func(req *rest.Request, a Appliance, in *bodied[wire.Pool]) (done, error) {
		if err := rest.SameName("pool", &in.Body.Name, in.Name); err != nil {
			return done{}, err
		}
		return done{}, a.SavePool(req, in.Body.Pool)
	})
	question(s, http.MethodPut, "/targets/{name}", "put-owned-target", "Keep a join target for its owner", func(req *rest.Request, a Appliance, in *bodied[inventory.JoinTarget]) (done, error) {
		if err := rest.SameName("target", &in.Body.Name, in.Name); err != nil {
			return done{}, err
		}
		return done{}, a.SaveTarget(req, in.Body)
	})
	question(s, http.MethodPut, "/secrets/{name}", "put-owned-secret", "Keep a secret for its owner", func(req *rest.Request, a Appliance, in *bodied[ApplianceSecret]) (done, error) {
		return done{}, a.SaveSecret(req, in.Name, in.Body.Owner, in.Body.Value)
	})
	for noun, remove := range map[string]func(Appliance, context.Context, string, string) error{
		"pool": Appliance.DeletePool, "target": Appliance.DeleteTarget, "secret": Appliance.DeleteSecret,
	} {
		question(s, http.MethodDelete, "/"+noun+"s/{name}", "delete-owned-"+noun, "Forget a "+noun+" of an owner; what is not there is no error",
			func(req *rest.Request, a Appliance, in *ownedRef) (done, error) {
				return done{}, remove(a, req, in.Name, in.Owner)
			})
	}
	question(s, http.MethodGet, "/targets/{name}/holder", "get-init-holder", "Show which machine is to be the first control plane of a target",
		func(req *rest.Request, a Appliance, in *rest.NameInput) (InitHolder, error) {
			m, err := a.InitHolder(req, in.Name)
			return InitHolder{m}, err
		})
}
