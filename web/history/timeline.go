package history

import (
	"cmp"
	"math"
	"net/http"
	"slices"
	"sort"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/operation"
	"slipway.dev/slipway/provision/watch"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/web/rest"
)

// Timeline is what was done with a host, in boots and operations, and what should happen next.
type Timeline struct {
	Expects *watch.Expected `json:"expects,omitempty" doc:"Absent when nothing is under way"`
	Groups  []TimelineGroup `json:"groups" doc:"Latest first"`
	Next    string          `json:"next,omitempty" doc:"Ask with this as after for the rest; absent at the end"`
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
	Waited    float64        `json:"waitedSeconds,omitempty" doc:"Of that time, how long the machine had to wait, mostly for a person: it is no boot time"`
	Proof     string         `json:"proof,omitempty" doc:"What shows that the machine of a boot is the host; none: nothing does"`
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
	Detail    string    `json:"detail,omitempty" doc:"The last packet or report of it"`
	EventID   int64     `json:"eventID,omitempty" doc:"The event that ended it, or the latest of it"`
	TryN      int       `json:"tryN,omitempty" doc:"How often it was begun, where that is more than once"`

	hasWaited bool // in an operation, for a person or a budget: its time is nobody's usual one
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

// group is a group of a timeline with what it is made of.
type group struct {
	TimelineGroup
	session   inventory.BootSession
	operation inventory.Operation
}

// listGroups returns up to n boots and operations that come after a key, latest first, and the key for the rest: the last
// boot and the last operation that were given, with a dot between. Both go on from there, so that no page costs more than
// the first.
func listGroups(tx inventory.Tx, h inventory.HostID, after string, n int) (all []group, next string, err error) {
	boot, operation, _ := strings.Cut(after, ".")
	boots, err := pageAfter(tx.ListSessions(h, inventory.Page{After: boot, Limit: n + 1}))
	if err != nil {
		return nil, "", err
	}
	operations, err := pageAfter(tx.ListOperations(inventory.OperationFilter{HostID: h}, inventory.Page{After: operation, Limit: n + 1}))
	if err != nil {
		return nil, "", err
	}
	for _, b := range boots {
		all = append(all, group{TimelineGroup: bootGroup(b), session: b})
	}
	for _, o := range operations {
		all = append(all, group{TimelineGroup: operationGroup(Told(o)), operation: o})
	}
	slices.SortStableFunc(all, func(a, b group) int {
		return cmp.Or(b.StartedAt.Compare(a.StartedAt), cmp.Compare(b.ID, a.ID))
	})
	if len(all) <= n {
		return all, "", nil
	}
	all = all[:n]
	for _, g := range all {
		if g.Kind == "boot" {
			boot = g.ID
		} else {
			operation = g.ID
		}
	}
	return all, boot + "." + operation, nil
}

// pageAfter takes a page after a row that is forgotten by now for the end: what is older is forgotten too.
func pageAfter[T any](rows []T, err error) ([]T, error) {
	if inventory.IsKind(err, inventory.NotFound) {
		return nil, nil
	}
	return rows, err
}

func bootGroup(b inventory.BootSession) TimelineGroup {
	title := "boot"
	if b.Boot != "" {
		title += ": " + b.Boot
	}
	state := cmp.Or(string(b.Outcome), "running")
	if b.Outcome == "" && b.Boot == string(pxe.BootWait) {
		state = "waiting"
	}
	return TimelineGroup{
		Kind: "boot", ID: string(b.ID), Title: title, State: state, Proof: string(b.Proof), Reason: b.Reason, Image: b.Image, Operation: b.Operation,
		MAC: b.MAC, StartedAt: b.StartedAt, EndedAt: b.EndedAt,
	}
}

func operationGroup(o inventory.Operation) TimelineGroup {
	return TimelineGroup{
		Kind: "operation", ID: o.ID, Title: string(o.Kind), State: string(o.State), Reason: o.Reason, Hint: o.Hint, By: o.By, Machine: o.Machine,
		Image: operation.ImageOf(&o), StartedAt: o.StartedAt, EndedAt: o.EndedAt,
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

// stepsOf reads the events of a group and makes steps of them.
func stepsOf(tx inventory.Tx, g *group) ([]TimelineStep, error) {
	if g.Kind == "boot" {
		events, err := tx.ListEvents(inventory.EventFilter{SessionID: g.session.ID}, 0, eventsOfGroup)
		return bootSteps(g.session, events), err
	}
	events, err := operationEvents(tx, &g.operation)
	return operationSteps(g.operation, operation.Way(&g.operation), events), err
}

// operationLag is how long before its start and after its end an operation's events may have been noted.
const operationLag = time.Hour

// operationEvents returns what was noted of an operation, oldest first. It reads the host's events of its time only.
func operationEvents(tx inventory.Tx, o *inventory.Operation) (own []inventory.Event, err error) {
	from, err := eventsBefore(tx, o.StartedAt.Add(-operationLag))
	if err != nil {
		return nil, err
	}
	f := inventory.EventFilter{HostID: o.HostID, Kind: inventory.EventOperation, Before: math.MaxInt64}
	if !o.EndedAt.IsZero() {
		if f.Before, err = eventsBefore(tx, o.EndedAt.Add(operationLag)); err != nil {
			return nil, err
		}
		f.Before++
	}
	for len(own) < eventsOfGroup {
		rows, err := tx.ListEvents(f, from, 100)
		if err != nil {
			return nil, err
		}
		for _, e := range rows {
			f.Before = e.ID
			if rest.EventText(e, "operation") == o.ID {
				own = append(own, e)
			}
		}
		if len(rows) < 100 {
			break
		}
	}
	slices.Reverse(own)
	return own, nil
}

// eventsBefore returns the id of the last event of before a time. Ids grow with time, but for a moment in which packets are
// noted; so it halves what is left, twenty times for a million events.
func eventsBefore(tx inventory.Tx, at time.Time) (int64, error) {
	last, err := tx.LastEventID()
	if err != nil {
		return 0, err
	}
	var fault error
	n := sort.Search(int(last), func(i int) bool { // is the first event above i of that time or later?
		rows, err := tx.ListEvents(inventory.EventFilter{}, int64(i), 1)
		fault = cmp.Or(fault, err)
		return len(rows) == 0 || !rows[0].At.Before(at)
	})
	return int64(n), fault
}
