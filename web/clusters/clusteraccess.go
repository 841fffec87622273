package clusters

import (
	"net/http"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/rest"
)

// PutClusterAccess is what an admin lets a cluster do beyond its own machines.
type PutClusterAccess struct {
	TakesFrom []string `json:"takesFrom" doc:"Clusters whose machines it may take over by their claims: names of attached clusters, UIDs of clusters, or local for machines that people made" maxItems:"64"`
	Pools     []string `json:"pools" doc:"Pools whose hosts it sees, uses and changes; empty means all. A cluster that is kept to pools makes no MetalPools" maxItems:"64"`
}

type putClusterAccessInput struct {
	rest.NameRef
	Body PutClusterAccess
}

// addClusterAccess registers what an admin lets clusters do.
func (s *Server) addClusterAccess() {
	errs := []int{http.StatusNotFound, http.StatusConflict}
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/clusters/{name}/access", ID: "get-cluster-access", Tag: "clusters", Errors: errs,
		Summary: "Show which machines a cluster may take over, and which pools it may use",
		About:   "The name is that of an attached cluster, or the UID of any cluster.",
	}, func(req *rest.Request, in *rest.NameInput) (*rest.One[inventory.ClusterAccess], error) {
		var a inventory.ClusterAccess
		err := s.rest.Store.Read(req, func(tx inventory.Tx) error {
			uid, err := rest.ClusterUID(tx, in.Name)
			if err == nil {
				a, err = tx.FindClusterAccess(uid)
			}
			return err
		})
		a.TakesFrom, a.Pools = orEmpty(a.TakesFrom), orEmpty(a.Pools)
		return &rest.One[inventory.ClusterAccess]{Body: a}, err
	})
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodPut, Path: "/clusters/{name}/access", ID: "put-cluster-access", Needs: inventory.Admin, Tag: "clusters", Errors: errs,
		Summary: "Say which machines a cluster may take over, and which pools it may use",
		About:   "The name is that of an attached cluster, or the UID of any cluster: it is the UID of the namespace kube-system.",
	}, s.putClusterAccess)
}

func (s *Server) putClusterAccess(req *rest.Request, in *putClusterAccessInput) (*rest.One[inventory.ClusterAccess], error) {
	var was, a inventory.ClusterAccess
	err := s.rest.Store.Write(req, func(tx inventory.Tx) error {
		uid, err := rest.ClusterUID(tx, in.Name)
		if err != nil {
			return err
		}
		if was, err = tx.FindClusterAccess(uid); err != nil {
			return err
		}
		a = inventory.ClusterAccess{UID: uid, Pools: unique(in.Body.Pools), Authority: was.Authority}
		for _, from := range unique(in.Body.TakesFrom) {
			if from != inventory.FromPeople {
				if from, err = rest.ClusterUID(tx, from); err != nil {
					return err
				}
			}
			a.TakesFrom = append(a.TakesFrom, from)
		}
		a.TakesFrom = unique(a.TakesFrom)
		if err := a.Validate(); err != nil {
			return err
		}
		for _, name := range a.Pools {
			if _, err := tx.Pools().Find(name); err != nil {
				return err
			}
		}
		if err := tx.SaveClusterAccess(&a, s.rest.Now()); err != nil {
			return err
		}
		detail := "cluster " + in.Name + " may take machines from " + orNobody(a.TakesFrom) + ", and use " + orAllPools(a.Pools) + ", said by " + req.By()
		return tx.AddEvent(&inventory.Event{At: s.rest.Now(), Kind: inventory.EventChanged, Subject: "cluster/" + in.Name, Detail: inventory.Clean(detail, 500)})
	})
	if err != nil {
		return nil, err
	}
	rest.Edited(req, "cluster access", in.Name, inventory.AuditUpdate, was, a, 0)
	req.Trail.Fix("say it again: slipway cluster access")
	a.TakesFrom, a.Pools = orEmpty(a.TakesFrom), orEmpty(a.Pools)
	return &rest.One[inventory.ClusterAccess]{Body: a}, nil
}

func unique(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return slices.Compact(names)
}

func orEmpty(names []string) []string {
	if names == nil {
		return []string{}
	}
	return names
}

func orNobody(names []string) string {
	if len(names) == 0 {
		return "nobody"
	}
	return strings.Join(names, ", ")
}

func orAllPools(names []string) string {
	if len(names) == 0 {
		return "all pools"
	}
	return "pools " + strings.Join(names, ", ")
}
