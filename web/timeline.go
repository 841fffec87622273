package web

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision"
)

// Timeline is what was done with a host, in boots and operations, and what should happen next.
type Timeline struct {
	Expects *provision.Expected `json:"expects,omitempty" doc:"Absent when nothing is under way"`
	Groups  []TimelineGroup     `json:"groups" doc:"Latest first"`
	Next    string              `json:"next,omitempty" doc:"Ask with this as after for the rest; absent at the end"`
}

// TimelineGroup is one boot or one operation.
type TimelineGroup struct {
	Kind      string         `json:"kind" enum:"boot,operation"`
	ID        string         `json:"id" doc:"Of the boot session or the operation"`
	Title     string         `json:"title"`
	State     string         `json:"state" doc:"running, waiting, or how it ended: done, failed, cancelled, arrived, disk, refused, abandoned"`
	Reason    string         `json:"reason,omitempty"`
	Hint      string         `json:"hint,omitempty"`
	By        string         `json:"by,omitempty" doc:"Who asked for it"`
	Machine   string         `json:"machine,omitempty"`
	Image     string         `json:"image,omitempty"`
	Operation string         `json:"operation,omitempty" doc:"That a boot is a step of"`
	MAC       inventory.MAC  `json:"mac,omitempty"`
	StartedAt time.Time      `json:"startedAt"`
	EndedAt   time.Time      `json:"endedAt,omitzero"`
	Steps     []TimelineStep `json:"steps"`
}

// TimelineStep is one step of a boot or an operation.
type TimelineStep struct {
	Step      string    `json:"step"`
	Title     string    `json:"title"`
	State     string    `json:"state" enum:"done,running,failed,ahead"`
	StartedAt time.Time `json:"startedAt,omitzero"`
	EndedAt   time.Time `json:"endedAt,omitzero"`
	Usual     float64   `json:"usualSeconds,omitempty" doc:"Median of the same step on the same image and model; absent where it was never seen"`
	SampleN   int       `json:"sampleN,omitempty" doc:"How often it was seen for that"`
	Detail    string    `json:"detail,omitempty" doc:"What was heard of it last"`
	EventID   int64     `json:"eventID,omitempty" doc:"The event that ended it, or the latest of it"`
	TryN      int       `json:"tryN,omitempty" doc:"How often it was begun, where that is more than once"`
}

type timelineInput struct {
	HostRef
	After string `query:"after" doc:"Only what comes after this key: the next of the page before" maxLength:"80"`
	Limit int    `query:"limit" doc:"Most boots and operations" default:"10" minimum:"1" maximum:"50"`
}

// addTimeline registers the timeline of a host.
func (s *Server) addTimeline() {
	register(s, operation{
		method: http.MethodGet, path: "/hosts/{host}/timeline", id: "get-timeline", scope: ofPools, tag: "hosts",
		summary: "Show the boots and operations of a host step by step, latest first", errors: []int{http.StatusNotFound},
		about: "With how long each step took and usually takes, and what is expected next. The events of a boot are at " +
			"/events?session=ID, all of the host at /events?host=HOST&before=ID.",
	}, s.timeline)
}

// timelineKey is where a page of a timeline ends: the start and id of its last group.
func timelineKey(g TimelineGroup) string { return fmt.Sprintf("%d.%s", g.StartedAt.UnixMilli(), g.ID) }

func (s *Server) timeline(ctx context.Context, in *timelineInput) (*one[Timeline], error) {
	t := Timeline{Groups: []TimelineGroup{}}
	err := s.ofHost(ctx, in.Host, func(tx inventory.Tx, h inventory.Host) (err error) {
		if in.After == "" {
			if t.Expects, err = s.cfg.Lifecycle.Expects(tx, h); err != nil {
				return err
			}
		}
		groups, err := listGroups(tx, h.ID, in.After, in.Limit)
		if err != nil {
			return err
		}
		if len(groups) > in.Limit {
			groups = groups[:in.Limit]
			t.Next = timelineKey(groups[in.Limit-1].TimelineGroup)
		}
		for _, g := range groups {
			if err := s.fillGroup(tx, h, &g); err != nil {
				return err
			}
			t.Groups = append(t.Groups, g.TimelineGroup)
		}
		return nil
	})
	return &one[Timeline]{Body: t}, err
}

// group is a group of a timeline with what it is made of.
type group struct {
	TimelineGroup
	session   inventory.BootSession
	operation inventory.Operation
}

// listGroups returns up to n+1 boots and operations that come after a key, latest first.
func listGroups(tx inventory.Tx, h inventory.HostID, after string, n int) ([]group, error) {
	ms, id, _ := strings.Cut(after, ".")
	var all []group
	keep := func(g group) bool {
		all = append(all, g)
		return len(all) > n
	}
	isAfter := func(g group) bool {
		key := fmt.Sprint(g.StartedAt.UnixMilli())
		return after == "" || len(key) < len(ms) || len(key) == len(ms) && (key < ms || key == ms && g.ID < id)
	}
	for page := (inventory.Page{Limit: 200}); ; {
		rows, err := tx.ListSessions(h, page)
		if err != nil {
			return nil, err
		}
		isFull := false
		for _, b := range rows {
			page.After = string(b.ID)
			if g := (group{TimelineGroup: bootGroup(b), session: b}); isAfter(g) && !isFull {
				isFull = keep(g)
			}
		}
		if isFull || len(rows) < page.Limit {
			break
		}
	}
	boots := len(all)
	for page := (inventory.Page{Limit: 200}); ; {
		rows, err := tx.ListOperations(inventory.OperationFilter{HostID: h}, page)
		if err != nil {
			return nil, err
		}
		for _, o := range rows {
			page.After = o.ID
			if g := (group{TimelineGroup: operationGroup(told(o)), operation: o}); isAfter(g) && len(all)-boots <= n {
				all = append(all, g)
			}
		}
		if len(all)-boots > n || len(rows) < page.Limit {
			break
		}
	}
	slices.SortStableFunc(all, func(a, b group) int {
		return cmp.Or(b.StartedAt.Compare(a.StartedAt), cmp.Compare(b.ID, a.ID))
	})
	return all[:min(len(all), n+1)], nil
}

func bootGroup(b inventory.BootSession) TimelineGroup {
	title := "boot"
	if b.Boot != "" {
		title += ": " + b.Boot
	}
	return TimelineGroup{
		Kind: "boot", ID: string(b.ID), Title: title, State: cmp.Or(string(b.Outcome), "running"), Reason: b.Reason, Image: b.Image, Operation: b.Operation,
		MAC: b.MAC, StartedAt: b.StartedAt, EndedAt: b.EndedAt,
	}
}

func operationGroup(o inventory.Operation) TimelineGroup {
	return TimelineGroup{
		Kind: "operation", ID: o.ID, Title: string(o.Kind), State: string(o.State), Reason: o.Reason, Hint: o.Hint, By: o.By, Machine: o.Machine,
		Image: provision.ImageOf(&o), StartedAt: o.StartedAt, EndedAt: o.EndedAt,
	}
}

// eventsOfGroup bounds what is read for one group: a boot has some thirty events, an installer that reports much more.
const eventsOfGroup = 1000

// fillGroup works out the steps of a group.
func (s *Server) fillGroup(tx inventory.Tx, h inventory.Host, g *group) error {
	steps, err := stepsOf(tx, g)
	if err != nil {
		return err
	}
	usual, err := s.pace.usual(paceKey(h, g), s.cfg.Now(), func() (map[string][]float64, error) { return samples(tx, h, g) })
	if err != nil {
		return err
	}
	for i := range steps {
		u := usual[steps[i].Step]
		steps[i].Usual, steps[i].SampleN = u.seconds, u.n
	}
	g.Steps = steps
	return nil
}

// stepsOf reads the events of a group and makes steps of them.
func stepsOf(tx inventory.Tx, g *group) ([]TimelineStep, error) {
	if g.Kind == "boot" {
		events, err := tx.ListEvents(inventory.EventFilter{SessionID: g.session.ID}, 0, eventsOfGroup)
		return bootSteps(g.session, events), err
	}
	events, err := operationEvents(tx, &g.operation)
	return operationSteps(g.operation, provision.Way(&g.operation), events), err
}

// operationEvents returns what was noted of an operation, oldest first. It reads back from the newest, as most that is
// asked for is new, and no further than the operation's start.
func operationEvents(tx inventory.Tx, o *inventory.Operation) (own []inventory.Event, err error) {
	for f := (inventory.EventFilter{HostID: o.HostID, Kind: inventory.EventOperation, Before: math.MaxInt64}); len(own) < eventsOfGroup; {
		rows, err := tx.ListEvents(f, 0, 100)
		if err != nil {
			return nil, err
		}
		for _, e := range rows {
			f.Before = e.ID
			if dataText(e, "operation") == o.ID {
				own = append(own, e)
			}
		}
		if len(rows) < 100 || rows[99].At.Before(o.StartedAt) {
			break
		}
	}
	slices.Reverse(own)
	return own, nil
}

// dataText returns a text out of an event's data.
func dataText(e inventory.Event, key string) string {
	m, _ := e.Data.(map[string]any)
	text, _ := m[key].(string)
	return text
}
