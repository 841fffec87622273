package history

import (
	"net/http"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/watch"
	"slipway.dev/slipway/web/rest"
)

// Timeline is what was done with a host, in boots and operations, and what should happen next.
type Timeline struct {
	Expects *watch.Expected `json:"expects,omitempty" doc:"Absent when nothing is under way"`
	Groups  []TimelineGroup `json:"groups" doc:"Latest first"`
	Next    string          `json:"next,omitempty" doc:"Ask with this as after for the rest; absent at the end"`
}

type timelineInput struct {
	rest.HostRef
	After string `query:"after" doc:"Only what comes after this key: the next of the page before" maxLength:"80"`
	Limit int    `query:"limit" doc:"Most boots and operations" default:"10" minimum:"1" maximum:"50"`
}

// addTimeline registers the timeline of a host.
func (s *Server) addTimeline() {
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/hosts/{host}/timeline", ID: "get-timeline", Scope: rest.OfPools, Tag: "hosts",
		Summary: "Show the boots and operations of a host step by step, latest first", Errors: []int{http.StatusNotFound},
		About: "With how long each step took and usually takes, and what is expected next. The events of a boot are at " +
			"/events?session=ID, all of the host at /events?host=HOST&before=ID.",
	}, s.timeline)
}

func (s *Server) timeline(req *rest.Request, in *timelineInput) (*rest.One[Timeline], error) {
	t := Timeline{Groups: []TimelineGroup{}}
	err := s.rest.OfHost(req, in.Host, func(tx inventory.Tx, h inventory.Host) (err error) {
		if in.After == "" {
			if t.Expects, err = s.cfg.Engine.Expects(tx, h); err != nil {
				return err
			}
		}
		groups, next, err := listGroups(tx, h.ID, in.After, in.Limit)
		if err != nil {
			return err
		}
		t.Next = next
		for _, g := range groups {
			if err := s.fillGroup(tx, h, &g); err != nil {
				return err
			}
			t.Groups = append(t.Groups, g.TimelineGroup)
		}
		return nil
	})
	return &rest.One[Timeline]{Body: t}, err
}

// fillGroup works out the steps of a group.
func (s *Server) fillGroup(tx inventory.Tx, h inventory.Host, g *group) error {
	steps, err := stepsOf(tx, g)
	if err != nil {
		return err
	}
	usual, err := s.pace.usual(paceKey(h, g), s.rest.Now(), func() (map[string][]float64, error) { return samples(tx, h, g) })
	if err != nil {
		return err
	}
	for i := range steps {
		u := usual[steps[i].Step]
		steps[i].Usual, steps[i].SampleN = u.seconds, u.n
	}
	g.Steps = steps
	if g.Kind == "boot" {
		g.Waited = waitedIn(steps, s.rest.Now())
	}
	return nil
}
