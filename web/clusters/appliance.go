package clusters

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/events"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/wire"
)

// Parameters of several of these operations.
type (
	ownedRef struct {
		rest.NameRef
		Owner string `query:"owner" doc:"Whose it is" maxLength:"512" required:"true"`
	}
	bodied[T any] struct {
		rest.NameRef
		Body T
	}
)

// applianceBody is the most that a machine with its configuration, or bootstrap data, may be.
const applianceBody = 4 << 20

// applianceOf returns the appliance as the caller may use it: an admin the whole, the token of a cluster what is that cluster's.
func (s *Server) applianceOf(req *rest.Request) (Appliance, error) {
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

// done is an answer that says no more than that.
type done struct{}

// question registers one question to the appliance.
func question[I, O any](s *Server, method, path, id, summary string, do func(req *rest.Request, a Appliance, in *I) (O, error)) {
	o := rest.Operation{
		Method: method, Path: "/appliance" + path, ID: id, Needs: inventory.Admin, ForClusters: true, Tag: "appliance",
		Summary: summary, Body: applianceBody,
		About: "For controllers of custom resources that run in a cluster, with a token of that cluster; people use the nouns.",
	}
	if method != http.MethodGet {
		o.Errors = append(o.Errors, http.StatusConflict)
	}
	if strings.Contains(path, "{") {
		o.Errors = append(o.Errors, http.StatusNotFound)
	}
	find := func(req *rest.Request, in *I) (out O, err error) {
		a, err := s.applianceOf(req)
		if err != nil {
			return out, err
		}
		return do(req, a, in)
	}
	if _, isDone := any(*new(O)).(done); isDone {
		o.Status = http.StatusNoContent
		rest.Register(s.rest, o, func(req *rest.Request, in *I) (*struct{}, error) {
			_, err := find(req, in)
			return nil, err
		})
		return
	}
	rest.Register(s.rest, o, func(req *rest.Request, in *I) (*struct{ Body O }, error) {
		out, err := find(req, in)
		return &struct{ Body O }{out}, err
	})
}

// byName registers one question about the thing of a name.
func byName[N ~string, O any](s *Server, method, path, id, summary string, do func(Appliance, context.Context, N) (O, error)) {
	question(s, method, path, id, summary, func(req *rest.Request, a Appliance, in *rest.NameInput) (O, error) {
		return do(a, req, N(in.Name))
	})
}

// addApplianceInfo registers what a controller asks first.
func (s *Server) addApplianceInfo() {
	question(s, http.MethodGet, "", "get-appliance", "Show what provider ids begin with, and what the token is bound to",
		func(req *rest.Request, a Appliance, _ *struct{}) (info wire.ApplianceInfo, err error) {
			c := req.Caller
			info = wire.ApplianceInfo{Site: a.Site(), Cluster: c.Cluster, Namespaces: c.Namespaces}
			err = s.rest.Store.Read(req, func(tx inventory.Tx) (err error) {
				info.LastEvent, err = tx.LastEventID()
				return err
			})
			return info, err
		})
}

type followInput struct {
	After  string `query:"after" doc:"Only events with a higher id; without it the stream begins with the next" pattern:"^[0-9]{1,19}$"`
	LastID string `header:"Last-Event-ID" doc:"As after, for a stream that was interrupted; it wins" pattern:"^[0-9]{1,19}$"`
	Accept string `header:"Accept" doc:"text/event-stream"`
}

// addApplianceEvents registers the stream of what a cluster may hear.
func (s *Server) addApplianceEvents() {
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
