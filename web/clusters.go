package web

import (
	"context"
	"net/http"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/foresight"
)

// clusterFor bounds the detaching of a cluster: controllers end, and each of its objects is let go of.
const clusterFor = 2 * time.Minute

// Clusters attaches Kubernetes clusters.
type Clusters interface {
	// CheckCluster looks whether a cluster can be attached with a kubeconfig, or with the stored one when that is nil.
	CheckCluster(ctx context.Context, c inventory.Cluster, kubeconfig []byte) ClusterCheck
	// DetachCluster ends its controllers, lets go of its objects, and deletes it.
	DetachCluster(ctx context.Context, name string, purge, force bool, by string) error
}

// ClusterCheck says whether a cluster can be attached.
type ClusterCheck struct {
	Cluster    string              `json:"cluster"`
	Kubernetes string              `json:"kubernetes,omitempty" doc:"Version of its API server"`
	UID        string              `json:"uid,omitempty" doc:"Of its namespace kube-system"`
	IsGood     bool                `json:"isGood" doc:"All results are"`
	Results    []TargetCheckResult `json:"results" doc:"In the order of the checks"`
}

// CheckClusterInput is a cluster that is not attached yet.
type CheckClusterInput struct {
	Name        string                  `json:"name"`
	Kubeconfig  string                  `json:"kubeconfig" writeOnly:"true" doc:"The text itself; it is not kept" maxLength:"1048576"`
	Modes       []inventory.ClusterMode `json:"modes,omitempty"`
	Namespaces  []string                `json:"namespaces,omitempty"`
	WatchFilter string                  `json:"watchFilter,omitempty"`
	TakesOver   bool                    `json:"takesOver,omitempty" doc:"It is the cluster that it says it is, although another certificate authority vouched for that one, or none is known"`
}

type (
	checkClusterInput struct {
		Body CheckClusterInput
	}
	deleteClusterInput struct {
		WriteOptions
		NameRef
		Purge bool `query:"purge" doc:"Take the kinds away as well, and with them all objects of them"`
		Force bool `query:"force" doc:"Even when the cluster does not answer: its objects keep our finalizers"`
	}
)

// clusterOps is what clusters share with other nouns. They are deleted by detaching them.
func (s *Server) clusterOps() noun[inventory.Cluster] {
	now := s.cfg.Now
	return noun[inventory.Cluster]{
		singular: "cluster", plural: "clusters", needs: inventory.Admin, article: "a",
		name:    func(c inventory.Cluster) string { return c.Name },
		version: func(c inventory.Cluster) int64 { return c.Version },
		prepare: func(_ inventory.Tx, in *inventory.Cluster, name string, old *inventory.Cluster) error {
			if err := sameName("cluster", &in.Name, name); err != nil {
				return err
			}
			in.State, in.Reason, in.Hint, in.UID, in.Kubernetes = inventory.ClusterAttaching, "", "", "", ""
			if old != nil {
				in.CreatedAt, in.UpdatedAt, in.Version = old.CreatedAt, old.UpdatedAt, old.Version
				in.State, in.Reason, in.Hint, in.UID, in.Kubernetes, in.SeenAt = old.State, old.Reason, old.Hint, old.UID, old.Kubernetes, old.SeenAt
			}
			return in.Validate()
		},
		find: func(tx inventory.Tx, name string) (inventory.Cluster, error) { return tx.Clusters().Find(name) },
		list: func(tx inventory.Tx, p Page) (*listed[inventory.Cluster], error) {
			all, err := tx.Clusters().List(inventory.Page{})
			return cut(all, p, func(c inventory.Cluster) string { return c.Name }), err
		},
		create: func(tx inventory.Tx, in *inventory.Cluster) error { return tx.Clusters().Create(in, now()) },
		update: func(tx inventory.Tx, in *inventory.Cluster) error {
			if err := tx.Clusters().Update(in, now()); err != nil {
				return err
			}
			in.State, in.Reason, in.Hint = inventory.ClusterAttaching, "", "" // what was so is so no longer
			return tx.NoteCluster(in)
		},
	}
}

// addClusters registers the operations on attached clusters.
func (s *Server) addClusters() {
	n := s.clusterOps()
	addNoun(s.rest, n)
	register(s.rest, operation{
		method: http.MethodDelete, path: "/clusters/{name}", id: "delete-cluster", needs: inventory.Admin, tag: "clusters", dry: true, status: http.StatusNoContent,
		summary: "Detach a cluster", about: "Its controllers end and remove our finalizers from its objects. Every server runs on.",
		errors: []int{http.StatusNotFound, http.StatusConflict, http.StatusPreconditionFailed}, within: clusterFor,
	}, func(req *Request, in *deleteClusterInput) (*written, error) {
		return s.detachCluster(req, n, in)
	})
	register(s.rest, operation{
		method: http.MethodGet, path: "/clusters/{name}/check", id: "check-cluster", tag: "clusters",
		summary: "Check an attached cluster", errors: []int{http.StatusNotFound}, about: "Speaks to the cluster, and changes nothing there.",
	}, func(req *Request, in *nameInput) (*one[ClusterCheck], error) {
		var c inventory.Cluster
		err := s.rest.store.Read(req, func(tx inventory.Tx) (err error) {
			c, err = tx.Clusters().Find(in.Name)
			return err
		})
		if err != nil {
			return nil, err
		}
		return s.checkCluster(req, c, nil)
	})
	register(s.rest, operation{
		method: http.MethodPost, path: "/clusters/check", id: "check-kubeconfig", needs: inventory.Admin, tag: "clusters", asks: true,
		summary: "Look whether a cluster could be attached", about: "Speaks to the cluster, and changes nothing there. The kubeconfig is not kept.",
	}, func(req *Request, in *checkClusterInput) (*one[ClusterCheck], error) {
		b := in.Body
		c := inventory.Cluster{Name: b.Name, Kubeconfig: "kubeconfig", Modes: b.Modes, Namespaces: b.Namespaces, WatchFilter: b.WatchFilter, TakesOver: b.TakesOver}
		if err := c.Validate(); err != nil {
			return nil, err
		}
		return s.checkCluster(req, c, []byte(b.Kubeconfig))
	})
}

func (s *Server) checkCluster(ctx context.Context, c inventory.Cluster, kubeconfig []byte) (*one[ClusterCheck], error) {
	if s.cfg.Clusters == nil {
		return nil, errNoClusters()
	}
	k := s.cfg.Clusters.CheckCluster(ctx, c, kubeconfig)
	k.IsGood = true
	for _, r := range k.Results {
		k.IsGood = k.IsGood && r.IsGood
	}
	if k.Results == nil {
		k.Results = []TargetCheckResult{}
	}
	return &one[ClusterCheck]{Body: k}, nil
}

func (s *Server) detachCluster(req *Request, n noun[inventory.Cluster], in *deleteClusterInput) (*written, error) {
	var (
		c    inventory.Cluster
		does string
	)
	err := s.rest.store.Read(req, func(tx inventory.Tx) (err error) {
		if c, err = tx.Clusters().Find(in.Name); err != nil {
			return err
		}
		counts, err := countsOfCluster(tx, c)
		does = foresight.Delete(foresight.Thing{Noun: n.singular, Name: c.Name, N: counts, How: in.how()})
		if err != nil {
			return err
		}
		return in.check(n.singular, in.Name, c.Version)
	})
	if err != nil {
		return nil, err
	}
	if in.DryRun {
		return n.respond(&c, nil, true, http.StatusNoContent).does(does), nil
	}
	if s.cfg.Clusters == nil {
		return nil, errNoClusters()
	}
	edited(req, n.singular, in.Name, inventory.AuditDelete, c, nil, 0)
	req.trail.fix("the cluster was let go of; attach it again")
	if err := s.cfg.Clusters.DetachCluster(req, in.Name, in.Purge, in.Force, req.by()); err != nil {
		return nil, err
	}
	return n.respond(&c, nil, false, http.StatusNoContent), nil
}
