package clusters

import (
	"context"
	"net/http"
	"slices"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/noun"
	"slipway.dev/slipway/provision/foresight"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/wire"
)

// clusterFor bounds the detaching of a cluster: controllers end, and each of its objects is let go of.
const clusterFor = 2 * time.Minute

type (
	checkClusterInput struct {
		Body wire.CheckClusterInput
	}
	deleteClusterInput struct {
		rest.WriteOptions
		rest.NameRef
		Purge bool `query:"purge" doc:"Take the kinds away as well, and with them all objects of them"`
		Force bool `query:"force" doc:"Even when the cluster does not answer: its objects keep our finalizers"`
	}
)

// clusterOps is what clusters share with other nouns. They are deleted by detaching them.
func (s *Server) clusterOps() rest.Noun[inventory.Cluster] {
	n := rest.Plain(noun.Clusters, s.rest.Now, func(_ inventory.Tx, in, old *inventory.Cluster) error {
		in.State, in.Reason, in.Hint, in.UID, in.Kubernetes = inventory.ClusterAttaching, "", "", "", ""
		if old != nil {
			in.State, in.Reason, in.Hint, in.UID, in.Kubernetes, in.SeenAt = old.State, old.Reason, old.Hint, old.UID, old.Kubernetes, old.SeenAt
		}
		return in.Validate()
	})
	update := n.Update
	n.Update = func(tx inventory.Tx, in *inventory.Cluster) error {
		if err := update(tx, in); err != nil {
			return err
		}
		in.State, in.Reason, in.Hint = inventory.ClusterAttaching, "", "" // what was so is so no longer
		return tx.NoteCluster(in)
	}
	n.Remove = nil
	return n
}

// addClusters registers the operations on attached clusters.
func (s *Server) addClusters() {
	n := s.clusterOps()
	rest.AddNoun(s.rest, n)
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodDelete, Path: "/clusters/{name}", ID: "delete-cluster", Needs: inventory.Admin, Tag: "clusters", Dry: true, Status: http.StatusNoContent,
		Summary: "Detach a cluster", About: "Its controllers end and remove our finalizers from its objects. Every server runs on.",
		Errors: []int{http.StatusNotFound, http.StatusConflict, http.StatusPreconditionFailed}, Within: clusterFor,
	}, func(req *rest.Request, in *deleteClusterInput) (*rest.Written, error) {
		return s.detachCluster(req, n, in)
	})
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/clusters/{name}/check", ID: "check-cluster", Tag: "clusters",
		Summary: "Check an attached cluster", Errors: []int{http.StatusNotFound}, About: "Speaks to the cluster, and changes nothing there.",
	}, func(req *rest.Request, in *rest.NameInput) (*rest.One[wire.ClusterCheck], error) {
		c, err := rest.Read(req, s.rest.Store, func(tx inventory.Tx) (inventory.Cluster, error) {
			return tx.Clusters().Find(in.Name)
		})
		if err != nil {
			return nil, err
		}
		return s.checkCluster(req, c, nil)
	})
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodPost, Path: "/clusters/check", ID: "check-kubeconfig", Needs: inventory.Admin, Tag: "clusters", Asks: true,
		Summary: "Look whether a cluster could be attached", About: "Speaks to the cluster, and changes nothing there. The kubeconfig is not kept.",
	}, func(req *rest.Request, in *checkClusterInput) (*rest.One[wire.ClusterCheck], error) {
		b := in.Body
		c := inventory.Cluster{Name: b.Name, Kubeconfig: "kubeconfig", Modes: b.Modes, Namespaces: b.Namespaces, WatchFilter: b.WatchFilter, TakesOver: b.TakesOver}
		if err := c.Validate(); err != nil {
			return nil, err
		}
		return s.checkCluster(req, c, []byte(b.Kubeconfig))
	})
}

func (s *Server) checkCluster(ctx context.Context, c inventory.Cluster, kubeconfig []byte) (*rest.One[wire.ClusterCheck], error) {
	if s.cfg.Clusters == nil {
		return nil, errNoClusters()
	}
	k := s.cfg.Clusters.CheckCluster(ctx, c, kubeconfig)
	k.IsGood, k.Results = judged(k.Results)
	return &rest.One[wire.ClusterCheck]{Body: k}, nil
}

// judged reports whether all results are good. It makes an empty list of none.
func judged(results []wire.TargetCheckResult) (isGood bool, _ []wire.TargetCheckResult) {
	isBad := slices.ContainsFunc(results, func(r wire.TargetCheckResult) bool { return !r.IsGood })
	return !isBad, append([]wire.TargetCheckResult{}, results...)
}

func (s *Server) detachCluster(req *rest.Request, n rest.Noun[inventory.Cluster], in *deleteClusterInput) (*rest.Written, error) {
	var (
		c    inventory.Cluster
		does string
	)
	err := s.rest.Store.Read(req, func(tx inventory.Tx) (err error) {
		if c, err = tx.Clusters().Find(in.Name); err != nil {
			return err
		}
		counts, err := countsOfCluster(tx, c)
		does = foresight.Delete(foresight.Thing{Noun: n.Singular, Name: c.Name, N: counts, How: in.how()})
		if err != nil {
			return err
		}
		return in.Check(n.Singular, in.Name, c.Version)
	})
	if err != nil {
		return nil, err
	}
	if in.DryRun {
		return n.Respond(&c, nil, true, http.StatusNoContent).Does(does), nil
	}
	if s.cfg.Clusters == nil {
		return nil, errNoClusters()
	}
	rest.Edited(req, n.Singular, in.Name, inventory.AuditDelete, c, nil, 0)
	req.Trail.Fix("the cluster was let go of; attach it again")
	if err := s.cfg.Clusters.DetachCluster(req, in.Name, in.Purge, in.Force, req.By()); err != nil {
		return nil, err
	}
	return n.Respond(&c, nil, false, http.StatusNoContent), nil
}

func countsOfCluster(tx inventory.Tx, c inventory.Cluster) (map[string]int, error) {
	if c.UID == "" {
		return nil, nil
	}
	machines, err := tx.ListMachines(inventory.MachineFilter{OwnerPrefix: c.UID + "/"}, inventory.Page{})
	return map[string]int{"machine": len(machines)}, err
}

// detaching tells the ways of letting a cluster go apart.
func (in *deleteClusterInput) how() string {
	switch {
	case in.Force:
		return "force"
	case in.Purge:
		return "purge"
	}
	return ""
}
