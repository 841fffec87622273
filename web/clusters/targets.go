package clusters

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/noun"
	"slipway.dev/slipway/web/configs"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/wire"
)

// rbacInput says what a cluster is to allow.
type rbacInput struct {
	rest.NameRef
	Nodes bool `query:"nodes" doc:"With what is needed to look after nodes: labels, taints, emptying, deleting"`
}

// addTargets registers the operations on clusters that hosts can join.
func (s *Server) addTargets() {
	n := rest.Plain(noun.JoinTargets, s.rest.Now, func(_ inventory.Tx, in, old *inventory.JoinTarget) error {
		if old == nil && (in.IsInit || !in.InitializedAt.IsZero()) {
			return inventory.Errorf(inventory.Invalid, "a target whose cluster is still to be made is applied").
				WithHint("slipway apply -f FILE, with a JoinTarget that has init: true")
		}
		if old != nil {
			in.IsInit, in.InitializedAt = old.IsInit, old.InitializedAt
		}
		return in.Validate()
	})
	remove := n.Remove
	n.Remove = func(tx inventory.Tx, name string) error {
		if err := configs.Unused(tx, "target", name, configs.TargetRE(name)); err != nil {
			return err
		}
		return remove(tx, name)
	}
	n.Counts = countsOfTarget
	rest.AddNoun(s.rest, n)
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/targets/{name}/check", ID: "check-target", Tag: "targets",
		Summary: "Look whether hosts can join a target", Errors: []int{http.StatusNotFound}, About: "Speaks to the cluster, and changes nothing there.",
	}, s.checkTarget)
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/targets/{name}/rbac", ID: "get-target-rbac", Scope: rest.OfNobody, Tag: "targets", Plain: "application/yaml",
		Summary: "Write what the cluster's administrator applies once, so that hosts can join", Errors: []int{http.StatusNotFound},
	},
		func(req *rest.Request, in *rbacInput) (*rest.Text, error) {
			if _, err := s.readTarget(req, in.Name); err != nil {
				return nil, err
			}
			if s.cfg.Joining.RBAC == nil {
				return nil, errNoClusters()
			}
			body := s.cfg.Joining.RBAC
			if in.Nodes {
				body = slices.Concat(body, []byte("---\n"), s.cfg.Joining.NodesRBAC)
			}
			return &rest.Text{ContentType: "application/yaml", Body: body}, nil
		})
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodPost, Path: "/targets/{name}/kubeconfig", ID: "issue-target-kubeconfig", Needs: inventory.Admin, Scope: rest.OfNobody, Tag: "targets",
		Summary: "Make a kubeconfig with which the caller administers the cluster of a target", Errors: []int{http.StatusNotFound, http.StatusConflict},
		About: "Signed again by the cluster's authorities, which Slipway has when it made the cluster, or when the target's pki names them. The cluster's audit log shows who asked.",
	}, s.issueKubeconfig)
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/targets/{name}/tokens", ID: "list-join-tokens", Needs: inventory.Operator, Tag: "targets",
		Summary: "List the bootstrap tokens that were minted for hosts, newest first", Errors: []int{http.StatusNotFound},
		About: "By their public halves.",
	},
		func(req *rest.Request, in *rest.NameInput) (*rest.One[rest.List[inventory.JoinToken]], error) {
			out := rest.List[inventory.JoinToken]{Items: []inventory.JoinToken{}}
			err := s.rest.Store.Read(req, func(tx inventory.Tx) error {
				if _, err := tx.JoinTargets().Find(in.Name); err != nil {
					return err
				}
				rows, err := tx.ListJoinTokens(in.Name)
				out.Items = append(out.Items, rows...)
				return err
			})
			return &rest.One[rest.List[inventory.JoinToken]]{Body: out}, err
		})
}

// The life of a kubeconfig that is issued.
const (
	accessFor  = 24 * time.Hour
	accessMost = 10 * 365 * 24 * time.Hour
)

// issueInput says for how long.
type issueInput struct {
	rest.NameRef
	Body struct {
		For inventory.Duration `json:"for,omitempty" doc:"How long it is good for; 24h when it is left out"`
	}
}

func (s *Server) issueKubeconfig(req *rest.Request, in *issueInput) (*rest.One[wire.Kubeconfig], error) {
	if s.cfg.Joining.IssueKubeconfig == nil {
		return nil, errNoClusters()
	}
	life := cmp.Or(time.Duration(in.Body.For), accessFor)
	if life < time.Minute || life > accessMost {
		return nil, inventory.Errorf(inventory.Invalid, "a kubeconfig for %s is of no use", inventory.Duration(life)).WithHint("choose between 1m and ten years")
	}
	until := s.rest.Now().Add(life)
	text, err := s.cfg.Joining.IssueKubeconfig(req, in.Name, "slipway:"+req.By(), life)
	if err != nil {
		return nil, err
	}
	return &rest.One[wire.Kubeconfig]{Body: wire.Kubeconfig{Kubeconfig: string(text), ExpiresAt: until}}, nil
}

func (s *Server) readTarget(req *rest.Request, name string) (t inventory.JoinTarget, err error) {
	return rest.Read(req, s.rest.Store, func(tx inventory.Tx) (inventory.JoinTarget, error) { return tx.JoinTargets().Find(name) })
}

func (s *Server) checkTarget(req *rest.Request, in *rest.NameInput) (*rest.One[wire.TargetCheck], error) {
	t, err := s.readTarget(req, in.Name)
	if err != nil {
		return nil, err
	}
	if s.cfg.Joining.Check == nil {
		return nil, errNoClusters()
	}
	c := s.cfg.Joining.Check(req, t)
	c.IsGood, c.Results = judged(c.Results)
	return &rest.One[wire.TargetCheck]{Body: c}, nil
}

// countsOfTarget counts the machines whose node a target's cluster has.
func countsOfTarget(tx inventory.Tx, t inventory.JoinTarget) (map[string]int, error) {
	machines, err := tx.ListMachines(inventory.MachineFilter{}, inventory.Page{})
	n := 0
	for i := range machines {
		if machines[i].Drain.Target == t.Name {
			n++
		}
	}
	return map[string]int{"node": n}, err
}
