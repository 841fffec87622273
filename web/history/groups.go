package history

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/operation"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/web/rest"
)

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

const (
	paceSamples = 9   // how many boots or operations the usual time of a step comes from
	paceLook    = 200 // how far back Slipway looks for them
)

// paceKey is what has the same pace: the same on the same model and image.
func paceKey(h inventory.Host, g *group) string {
	what := g.Title
	if g.Kind == "boot" {
		what = g.session.Boot
	}
	return g.Kind + "\x00" + what + "\x00" + g.Image + "\x00" + h.Manufacturer + "\x00" + h.Product
}

// samples collects how long the steps of the latest of the same kind took, that ended well, on the same model and image.
func samples(tx inventory.Tx, h inventory.Host, g *group) (map[string][]float64, error) {
	alike, err := alikeOf(tx, h, g)
	if err != nil {
		return nil, err
	}
	out := map[string][]float64{}
	for i := range alike {
		steps, err := stepsOf(tx, &alike[i])
		if err != nil {
			return nil, err
		}
		for _, s := range steps {
			if s.State == "done" && s.TryN == 0 && s.Step != waits.step && !s.hasWaited {
				out[s.Step] = append(out[s.Step], s.EndedAt.Sub(s.StartedAt).Seconds())
			}
		}
	}
	return out, nil
}

// alikeOf returns the latest groups that a group can be compared with.
func alikeOf(tx inventory.Tx, h inventory.Host, g *group) (alike []group, err error) {
	models := map[inventory.HostID]bool{h.ID: true}
	isModel := func(id inventory.HostID) bool {
		is, known := models[id]
		if !known {
			other, err := tx.FindHost(id)
			is = err == nil && other.Manufacturer == h.Manufacturer && other.Product == h.Product
			models[id] = is
		}
		return is
	}
	if g.Kind == "boot" {
		rows, err := tx.ListSessions("", inventory.Page{Limit: paceLook})
		for _, b := range rows {
			isGood := b.Outcome == inventory.OutcomeArrived || b.Outcome == inventory.OutcomeDisk || b.Outcome == inventory.OutcomeRefused
			// Until it is decided, a boot is like every other of the model.
			isAlike := g.session.Boot == "" || b.Boot == g.session.Boot && b.Image == g.Image
			if len(alike) < paceSamples && isGood && b.ID != g.session.ID && isAlike && isModel(b.HostID) {
				alike = append(alike, group{TimelineGroup: bootGroup(b), session: b})
			}
		}
		return alike, err
	}
	rows, err := tx.ListOperations(inventory.OperationFilter{Kind: g.operation.Kind}, inventory.Page{Limit: paceLook})
	for _, o := range rows {
		if len(alike) < paceSamples && o.State == inventory.OpDone && o.ID != g.ID && operationGroup(o).Image == g.Image && isModel(o.HostID) {
			alike = append(alike, group{TimelineGroup: operationGroup(o), operation: o})
		}
	}
	return alike, err
}
