package clusters

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/web/events"
	"slipway.dev/slipway/web/machines"
	"slipway.dev/slipway/web/rest"
)

// clusterViews are the appliance as the holders of clusters' tokens may use it. They remember what they have read.
type clusterViews struct {
	mu sync.Mutex
	of map[string]ClusterView // by what a token is bound to
}

// clusterViewsMax bounds the views that are kept; beyond that Slipway makes all of them again.
const clusterViewsMax = 256

// applianceOf returns the appliance as the caller may use it: an admin the whole, the token of a cluster what is that cluster's.
func (s *Controllers) applianceOf(req *rest.Request) (Appliance, error) {
	c := req.Caller
	if c.Cluster == "" {
		if s.cfg.Appliance == nil {
			return nil, errNoClusters()
		}
		return s.cfg.Appliance, nil
	}
	if s.cfg.View == nil {
		return nil, errNoClusters()
	}
	key := c.Cluster + " " + strings.Join(c.Namespaces, ",")
	v := &s.views
	v.mu.Lock()
	defer v.mu.Unlock()
	if found, ok := v.of[key]; ok {
		return found, nil
	}
	if v.of == nil || len(v.of) >= clusterViewsMax {
		v.of = map[string]ClusterView{}
	}
	v.of[key] = s.cfg.View(c.Cluster, slices.Clone(c.Namespaces))
	return v.of[key], nil
}

type (
	deleteOwnedInput struct {
		rest.NameRef
		Force bool `query:"force" doc:"Without fencing or wiping: its host is quarantined"`
	}
	ownedPower struct {
		rest.HostRef
		Body struct {
			Action bmc.Action `json:"action" enum:"on,off,cycle,reset"`
		}
	}
)

// addApplianceVerbs registers how machines are made, and what is done to them.
func (s *Controllers) addApplianceVerbs() {
	question(s, http.MethodPost, "/machines", "create-owned-machine", "Want a machine for an owner; the one that it has stays",
		func(req *rest.Request, a Appliance, in *struct{ Body inventory.Machine }) (inventory.Machine, error) {
			return a.CreateMachine(req, in.Body)
		})
	question(s, http.MethodDelete, "/machines/{name}", "delete-owned-machine", "Ask for the end of a machine",
		func(req *rest.Request, a Appliance, in *deleteOwnedInput) (inventory.Machine, error) {
			return a.DeleteMachine(req, in.Name, in.Force)
		})
	verb := func(verb, summary string, do func(*rest.Request, Appliance, *rest.NameInput) (inventory.Machine, error)) {
		question(s, http.MethodPost, "/machines/{name}/"+verb, verb+"-owned-machine", summary, do)
	}
	verb("reinstall", "Reinstall a machine on its host", func(req *rest.Request, a Appliance, in *rest.NameInput) (inventory.Machine, error) {
		return a.Reinstall(req, in.Name)
	})
	verb("retry", "Let a machine that has failed look for a host again", func(req *rest.Request, a Appliance, in *rest.NameInput) (inventory.Machine, error) {
		return a.RetryMachine(req, in.Name)
	})
	question(s, http.MethodPost, "/machines/{name}/remediate", "remediate-owned-machine", "Get a machine going again that does not work",
		func(req *rest.Request, a Appliance, in *machines.RemediateInput) (inventory.Machine, error) {
			var steps []string
			for _, r := range in.Body.Steps {
				steps = append(steps, string(r))
			}
			return a.Remediate(req, in.Name, steps)
		})
	question(s, http.MethodPost, "/machines/{name}/ack", "ack-owned-machine", "Acknowledge a hook, so that the step it blocks goes on",
		func(req *rest.Request, a Appliance, in *machines.AckInput) (inventory.Machine, error) {
			return a.AckHook(req, in.Name, in.Body.Step, in.Body.Owner)
		})
	question(s, http.MethodPost, "/machines/{name}/hold", "hold-owned-machine", "Say why a hook is not acknowledged yet",
		func(req *rest.Request, a Appliance, in *machines.HoldInput) (inventory.Machine, error) {
			return a.HoldHook(req, in.Name, in.Body.Step, in.Body.Owner, in.Body.Reason)
		})
	question(s, http.MethodPost, "/hosts/{host}/power", "power-owned-host", "Change the power of a host",
		func(req *rest.Request, a Appliance, in *ownedPower) (done, error) {
			return done{}, a.Power(req, inventory.HostID(in.Host), in.Body.Action)
		})
}

// addApplianceNouns registers the questions about what machines are made of.
func (s *Controllers) addApplianceNouns() {
	question(s, http.MethodGet, "/pools", "list-pools-for-controllers", "List the pools, in order of their names",
		func(req *rest.Request, a Appliance, in *rest.Page) (rest.List[inventory.Pool], error) {
			all, err := a.ListPools(req)
			if err != nil {
				return rest.List[inventory.Pool]{}, err
			}
			return rest.Cut(all, *in, func(p inventory.Pool) string { return p.Name }).Body, nil
		})
	question(s, http.MethodGet, "/pools/{name}/count", "count-pool", "Count the hosts of a pool", func(req *rest.Request, a Appliance, in *rest.NameInput) (contract.PoolCount, error) {
		return a.CountPool(req, in.Name)
	})
	question(s, http.MethodGet, "/targets/{name}", "find-target", "Show a join target of the cluster", func(req *rest.Request, a Appliance, in *rest.NameInput) (inventory.JoinTarget, error) {
		return a.FindTarget(req, in.Name)
	})
	question(s, http.MethodGet, "/profiles/{name}", "find-profile", "Show which image a profile installs", func(req *rest.Request, a Appliance, in *rest.NameInput) (inventory.Profile, error) {
		return a.FindProfile(req, in.Name)
	})
	question(s, http.MethodGet, "/images/{name}", "find-image", "Show an image", func(req *rest.Request, a Appliance, in *rest.NameInput) (inventory.Image, error) {
		return a.FindImage(req, in.Name)
	})
	question(s, http.MethodGet, "/clusters/{name}/access", "find-own-access", "Show which machines the cluster may take over, and which pools it may use",
		func(req *rest.Request, a Appliance, in *rest.NameInput) (inventory.ClusterAccess, error) {
			x, err := a.ClusterAccess(req, in.Name)
			x.TakesFrom, x.Pools = orEmpty(x.TakesFrom), orEmpty(x.Pools)
			return x, err
		})
}

type followInput struct {
	After  string `query:"after" doc:"Only events with a higher id; without it the stream begins with the next" pattern:"^[0-9]{1,19}$"`
	LastID string `header:"Last-Event-ID" doc:"As after, for a stream that was interrupted; it wins" pattern:"^[0-9]{1,19}$"`
	Accept string `header:"Accept" doc:"text/event-stream"`
}

// addApplianceEvents registers the stream of what a cluster may hear.
func (s *Controllers) addApplianceEvents() {
	o := rest.Operation{
		Method: http.MethodGet, Path: "/appliance/events", ID: "follow-cluster-events", Needs: inventory.Admin, ForClusters: true, Tag: "appliance", IsLong: true,
		Summary: "Follow what happens to the machines of a cluster, and to the hosts that it may see", Plain: "text/event-stream",
		About: "For controllers of custom resources that run in a cluster. Each event comes with its id: (resume with Last-Event-ID).",
	}
	rest.Register(s.rest, o, func(req *rest.Request, in *followInput) (*huma.StreamResponse, error) {
		q := &events.Query{After: in.After, LastID: in.LastID, Accept: in.Accept}
		if !q.IsStream() {
			return nil, inventory.Errorf(inventory.Invalid, "these events are a stream").WithHint("ask with Accept: text/event-stream")
		}
		a, err := s.applianceOf(req)
		if err != nil {
			return nil, err
		}
		hear := func(_ context.Context, e inventory.Event) (inventory.Event, bool) { return e, true }
		if v, ok := a.(ClusterView); ok {
			hear = v.Hear
		}
		f, after, err := s.cfg.Events.EventStart(req, q)
		if err != nil {
			return nil, err
		}
		return s.cfg.Events.Streamed(req, f, after, hear)
	})
}
