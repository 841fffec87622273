package history

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/web/rest"
)

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

// phase is a part of a boot as people see it: it lasts from the end of the one before it until the last of its events.
type phase struct {
	step, title string
	ends        []string // kinds of events that end it
	fails       []string // and that say that it failed
	isFirst     bool     // the first of those events ends it, not the last
}

// phases are the parts of a boot, in order.
var phases = []phase{
	{step: "address", title: "gets an address", ends: []string{inventory.EventDHCPAck}, fails: []string{inventory.EventDHCPNak}, isFirst: true},
	{step: "loader", title: "fetches a boot loader", ends: []string{inventory.EventLoaderSent}, fails: []string{inventory.EventLoaderFailed}},
	{step: "decision", title: "learns what to boot", ends: []string{inventory.EventBootDecided}, isFirst: true},
	waits,
	{step: "system", title: "fetches kernel and RAM disk", ends: []string{inventory.EventArtefactSent}, fails: []string{inventory.EventArtefactFailed}},
	{step: "configuration", title: "fetches its configuration", ends: []string{inventory.EventConfigSent}, fails: []string{inventory.EventConfigRefused}},
	{step: "agent", title: "our agent starts", ends: []string{inventory.EventAgentStarted}, isFirst: true},
	{step: "report", title: "reports up", ends: []string{inventory.EventReported}},
}

// waits is the time in which Slipway tells a machine to wait, and the machine asks again and again: for a person most of all. It is no boot
// time, and nobody's usual time.
var waits = phase{step: "wait", title: "waits"}

// ofWaiting finds the waiting among the events of a boot: from the first time that it was told to wait until it was told
// something else.
func ofWaiting(b *inventory.BootSession, events []inventory.Event) (s TimelineStep, seen bool) {
	s = TimelineStep{Step: waits.step, Title: waits.title, State: "running"}
	for _, e := range events {
		if e.Kind != inventory.EventBootDecided {
			continue
		}
		boot := pxe.Boot(rest.EventText(e, "boot"))
		isWait := boot == pxe.BootWait || boot == pxe.BootMenu
		switch {
		case isWait && !seen:
			s.StartedAt, seen = e.At, true
			fallthrough
		case isWait:
			s.Detail, s.EventID = e.Detail, e.ID
		case seen:
			s.State, s.EndedAt = "done", e.At
			return s, true
		}
	}
	if seen && !b.EndedAt.IsZero() {
		s.State, s.EndedAt = "done", b.EndedAt
	}
	return s, seen
}

// waitedIn is how long a boot waited, so far or in all.
func waitedIn(steps []TimelineStep, now time.Time) (seconds float64) {
	for _, s := range steps {
		if s.Step == waits.step {
			end := s.EndedAt
			if end.IsZero() {
				end = now
			}
			seconds += max(0, end.Sub(s.StartedAt).Seconds())
		}
	}
	return seconds
}

// wantedPhases are those that a boot should pass through, by what was decided.
func wantedPhases(b *inventory.BootSession) []string {
	switch pxe.Boot(b.Boot) {
	case pxe.BootIgnore, pxe.BootPark:
		return nil
	case pxe.BootDisk:
		if stepsIn(b.Step) >= stepsIn(inventory.EventLoaderStarted) {
			return []string{"address", "loader", "decision"}
		}
		return nil // it was given no loader, and finds its disk by itself
	case pxe.BootAgent:
		return []string{"address", "loader", "decision", "system", "agent"}
	case pxe.BootImage:
		want := []string{"address", "loader", "decision", "system"}
		if b.Config != "" {
			want = append(want, "configuration", "report")
		}
		return want
	}
	return []string{"address", "loader", "decision"}
}

func stepsIn(kind string) int { return slices.Index(inventory.Steps(), kind) }

// bootSteps makes steps of a boot's events. What it should have passed through and did not stands behind them: as running
// or ahead while the boot lasts, and the first of it as failed when it ended without.
func bootSteps(b inventory.BootSession, events []inventory.Event) []TimelineStep {
	steps := []TimelineStep{}
	want := wantedPhases(&b)
	began := b.StartedAt
	for _, p := range phases {
		s, seen := p.of(events)
		if p.step == waits.step {
			if s, seen = ofWaiting(&b, events); seen {
				steps, began = append(steps, s), s.EndedAt
			}
			continue
		}
		if !seen && (!slices.Contains(want, p.step) || isPassed(p, events)) {
			continue
		}
		switch {
		case s.State == "done":
			s.StartedAt = earlier(began, s.EndedAt)
			began = s.EndedAt
		case !began.IsZero():
			s.StartedAt = began
			began = time.Time{} // what follows has not begun
			s.State = cmp.Or(s.State, "running")
			if !b.EndedAt.IsZero() {
				s.State, s.EndedAt = "failed", b.EndedAt
			}
		case !b.EndedAt.IsZero():
			continue // it never came to that
		default:
			s.State = "ahead"
		}
		steps = append(steps, s)
	}
	if isOwed := b.Outcome == inventory.OutcomeArrived || b.Outcome == inventory.OutcomeDisk; isOwed {
		steps = slices.DeleteFunc(steps, func(s TimelineStep) bool { return s.State == "failed" && s.EventID == 0 })
	}
	return steps
}

// isPassed reports whether a later part was seen, so that this one is behind it though no packet or event shows it.
func isPassed(p phase, events []inventory.Event) bool {
	i := slices.IndexFunc(phases, func(x phase) bool { return x.step == p.step })
	return slices.ContainsFunc(phases[i+1:], func(later phase) bool {
		return slices.ContainsFunc(events, func(e inventory.Event) bool { return slices.Contains(later.ends, e.Kind) })
	})
}

// of finds a part among the events of a boot.
func (p phase) of(events []inventory.Event) (s TimelineStep, seen bool) {
	s = TimelineStep{Step: p.step, Title: p.title}
	for _, e := range events {
		switch {
		case slices.Contains(p.fails, e.Kind):
			s.State, s.Detail, s.EventID, s.EndedAt = "failed", e.Detail, e.ID, e.At
		case slices.Contains(p.ends, e.Kind) && (s.State != "done" || !p.isFirst):
			s.State, s.Detail, s.EventID, s.EndedAt = "done", e.Detail, e.ID, e.At
		default:
			continue
		}
		seen = true
	}
	return s, seen
}

// operationSteps makes steps of what was noted of an operation. A step that was passed at once was not noted, and is left
// out; those ahead follow while it is under way.
func operationSteps(o inventory.Operation, way []inventory.Step, events []inventory.Event) []TimelineStep {
	steps := []TimelineStep{}
	for _, e := range events {
		name := cmp.Or(rest.EventText(e, "step"), "")
		if name == "" || rest.EventText(e, "state") == string(inventory.OpDone) && name == lastStep(steps) {
			continue
		}
		if name == lastStep(steps) {
			last := &steps[len(steps)-1]
			last.Detail, last.EventID = operationDetail(e), e.ID
			last.hasWaited = last.hasWaited || isWaiting(e)
			continue
		}
		if n := len(steps); n > 0 {
			steps[n-1].EndedAt, steps[n-1].State = e.At, "done"
		}
		steps = append(steps, TimelineStep{Step: name, Title: strings.ReplaceAll(name, "-", " "), State: "running", StartedAt: e.At, Detail: operationDetail(e), EventID: e.ID, hasWaited: isWaiting(e)})
	}
	if n := len(steps); n > 0 && !o.IsOpen() {
		last := &steps[n-1]
		last.EndedAt, last.State = o.EndedAt, "failed"
		if o.State == inventory.OpDone {
			last.State = "done"
		}
	}
	countTries(steps)
	if !o.IsOpen() {
		return steps
	}
	at := slices.Index(way, o.Step)
	if lastStep(steps) != string(o.Step) { // not noted yet
		steps = append(steps, TimelineStep{Step: string(o.Step), Title: strings.ReplaceAll(string(o.Step), "-", " "), State: "running", StartedAt: o.StepAt})
	}
	for _, s := range way[at+1:] {
		steps = append(steps, TimelineStep{Step: string(s), Title: strings.ReplaceAll(string(s), "-", " "), State: "ahead"})
	}
	return steps
}

// isWaiting reports whether an event says that its operation waits.
func isWaiting(e inventory.Event) bool {
	return rest.EventText(e, "state") == string(inventory.OpWaiting)
}

func lastStep(steps []TimelineStep) string {
	if len(steps) == 0 {
		return ""
	}
	return steps[len(steps)-1].Step
}

// operationDetail is what an event says of an operation, without the name of the operation before it.
func operationDetail(e inventory.Event) string {
	_, detail, ok := strings.Cut(e.Detail, ": ")
	if !ok || detail == rest.EventText(e, "step") {
		return ""
	}
	return detail
}

// countTries numbers the steps that were begun again; all but the last of them have failed.
func countTries(steps []TimelineStep) {
	n := map[string]int{}
	for i := range steps {
		name := steps[i].Step
		if n[name]++; n[name] == 1 {
			continue
		}
		steps[i].TryN = n[name]
	}
}

func earlier(a, b time.Time) time.Time {
	if a.After(b) { // doors note side by side: one may be a little in the past
		return b
	}
	return a
}
