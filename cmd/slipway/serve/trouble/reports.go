package trouble

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"slipway.dev/slipway/cmd/slipway/serve/peer"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/duty"
)

// ReportPath is where the leader takes a Report on the link.
const ReportPath = "/troubles"

const (
	sendFor      = WatchEvery
	mostTroubles = 200 // of one instance: it has some interfaces, and a bounded number of damaged files
	keyAtMost    = 200
	hintAtMost   = 500
)

// Report is all that is wrong with the machine of an instance now.
type Report struct {
	Troubles []Trouble `json:"troubles"`
}

// Trouble is an issue without what the leader knows better.
type Trouble struct {
	Key      string             `json:"key"`
	Type     string             `json:"type"`
	Severity inventory.Severity `json:"severity"`
	Cause    string             `json:"cause"`
	Hint     string             `json:"hint"`
}

// Reporter tells the leader what is wrong with the machine of this instance, while another one leads.
type Reporter struct {
	Machine *Machine
	Send    func(context.Context, Report) error
	Log     *slog.Logger
}

// Serve looks and tells until ctx is done. It tells everything each time: a new leader knows nothing.
func (r *Reporter) Serve(ctx context.Context) error {
	var c Clock
	var unheard unheard
	began := time.Now()
	tick := time.NewTicker(WatchEvery)
	defer tick.Stop()
	for {
		now := time.Now()
		r.Machine.Alarms.LetLeasesRest(now)
		found := Conditions(r.Machine.Look(ctx, c.Look(now, now.Sub(began))))
		found = slices.DeleteFunc(found, func(i inventory.Issue) bool { return !slices.Contains(machineIssues, i.Type) })
		report := reportOf(found)
		r.Machine.Alarms.Set(Named(found, r.Machine.Instance), now, r.Log)
		sending, cancel := context.WithTimeout(ctx, sendFor)
		err := r.Send(sending, report)
		cancel()
		if ctx.Err() == nil && unheard.isNew(len(found), err) {
			r.Log.Warn("the instance with the engine does not hear what is wrong with this machine", "count", len(found), "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// unheard is why the leader did not hear the troubles of this machine, as the log has it; "" if it did.
type unheard string

// isNew notes whether the leader has heard of some troubles, and reports whether to log that. No trouble needs no line in the log.
func (u *unheard) isNew(troubleN int, err error) bool {
	switch {
	case err == nil:
		*u = ""
		return false
	case troubleN == 0 || *u == unheard(err.Error()):
		return false
	}
	*u = unheard(err.Error())
	return true
}

func reportOf(found []inventory.Issue) Report {
	r := Report{Troubles: []Trouble{}}
	for _, i := range found {
		r.Troubles = append(r.Troubles, Trouble{i.Key, i.Type, i.Severity, i.Cause, i.Hint})
	}
	return r
}

// Reports are what other instances have told of their machines since this one leads. Many goroutines may use it.
type Reports struct {
	// Changed gets a value when an instance tells something else than before. Nobody needs to wait for the next look.
	Changed chan struct{}

	mu sync.Mutex
	by map[string]report // by the id of the instance
}

// NewReports returns Reports without any.
func NewReports() *Reports { return &Reports{Changed: make(chan struct{}, 1), by: map[string]report{}} }

type report struct {
	at  time.Time // by the own clock
	all []inventory.Issue
}

// Register takes reports from the link.
func (r *Reports) Register(link interface{ Handle(string, http.Handler) }) {
	link.Handle("POST "+ReportPath, peer.HandlerOf(func(_ context.Context, caller string, q Report) (struct{}, error) {
		return struct{}{}, r.take(caller, q, time.Now())
	}))
}

// take keeps a report instead of the one before. It leaves out what no machine can have, and returns an error about that.
func (r *Reports) take(id string, q Report, now time.Time) error {
	if id == "" {
		return inventory.Errorf(inventory.Invalid, "an instance that does not say who it is reports troubles")
	}
	if len(q.Troubles) > mostTroubles {
		return inventory.Errorf(inventory.Invalid, "%d troubles of one machine; %d are possible", len(q.Troubles), mostTroubles)
	}
	is := report{at: now}
	seen := map[string]bool{}
	var refused error
	for _, t := range q.Troubles {
		if seen[t.Key] || !t.isPossible() { // a newer program may know more of them
			refused = inventory.Errorf(inventory.Invalid, "no machine has the trouble %q with the key %q",
				inventory.Clean(t.Type, 60), inventory.Clean(t.Key, keyAtMost)).WithHint("do all instances run the same version?")
			continue
		}
		seen[t.Key] = true
		is.all = append(is.all, inventory.Issue{
			Key: t.Key, Type: t.Type, Severity: t.Severity,
			Cause: inventory.Clean(t.Cause, CauseAtMost), Hint: inventory.Clean(t.Hint, hintAtMost),
		})
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.EqualFunc(r.by[id].all, is.all, func(was, is inventory.Issue) bool { return was.Key == is.Key }) {
		select {
		case r.Changed <- struct{}{}:
		default:
		}
	}
	r.by[id] = is
	return refused
}

// isPossible reports whether a machine can have a trouble.
func (t *Trouble) isPossible() bool {
	isOfType := t.Key == t.Type || strings.HasPrefix(t.Key, t.Type+"/")
	return slices.Contains(machineIssues, t.Type) && isOfType && t.Key == inventory.Clean(t.Key, keyAtMost) &&
		(t.Severity == inventory.SeverityWarning || t.Severity == inventory.SeverityError)
}

// Issues returns what is wrong with the machines of other instances. Of returns what the store says about an instance: it holds for one
// that lives, and has told nothing yet. Nobody knows how the machine of a silent instance is, and its silence is an issue of its own.
func (r *Reports) Issues(peers []duty.Peer, of func(instance string) []inventory.Issue, now time.Time) (all []inventory.Issue) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range r.by {
		if !slices.ContainsFunc(peers, func(p duty.Peer) bool { return p.ID == id }) {
			delete(r.by, id) // an admin has deleted it
		}
	}
	for _, p := range peers {
		is, hasTold := r.by[p.ID]
		isFresh := hasTold && now.Sub(is.at) < freshFor
		switch {
		case p.IsSelf || p.Life == duty.Stopped:
			delete(r.by, p.ID)
		case p.Life == duty.Silent && !isFresh: // one that tells, and gives the database no sign of life, cannot reach that
		case hasTold:
			all = append(all, Named(slices.Clone(is.all), p.Name)...)
		default:
			all = append(all, of(p.Name)...)
		}
	}
	return all
}
