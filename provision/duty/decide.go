// Package duty decides which of several instances does what only one may do at a time. It never does that work.
//
// Start reading at decide: it says from the stored rows, and from what this instance saw before, whether to take or give up a duty. Keeper
// asks it every second, in one transaction with the sign of life of its instance (run.go, turn.go). Fenced refuses writes of an instance
// that has lost the duty without knowing (fence.go).
//
// # Whose time counts
//
// The wall clocks of instances and of the database may differ by hours, and may be set at any moment. So nothing here compares times of two
// clocks. Each instance counts by a clock of its own that nobody can set:
//
//   - A holder counts from the moment before it sends its sign of life. When most of the term has passed without an answer, it stops.
//   - Another instance counts from the moment after it has read that sign of life. When the whole term has passed, it reads again. If the
//     row still has the same sign of life, the same transaction takes the duty.
//
// The first count begins earlier and is shorter. Therefore the holder stops before the other one begins, whatever was late, lost or paused
// between them. One clock may run faster than the other by a tenth.
package duty

import (
	"fmt"
	"time"

	"slipway.dev/slipway/inventory"
)

// sign is the last sign of life of an instance that this one has seen.
type sign struct {
	run      string
	n        int64
	since    time.Duration // by the own clock: it is as old as this, or older
	changedN int           // how often it was another one than before
}

// watch remembers signs of life, by the id of their instance.
type watch map[string]sign

// note compares what a transaction shows with what was seen before. Now is the own time after the rows were read.
func (w watch) note(all []inventory.Instance, now time.Duration) {
	for _, i := range all {
		was, known := w[i.ID]
		if known && was.run == i.Run && was.n == i.HeartbeatN {
			continue
		}
		is := sign{run: i.Run, n: i.HeartbeatN, since: now}
		if known {
			is.changedN = was.changedN + 1
		}
		w[i.ID] = is
	}
}

// silent is for how long an instance has shown no sign of life, as far as this one knows: never too long.
func (w watch) silent(id string, now time.Duration) time.Duration {
	s, known := w[id]
	if !known {
		return 0
	}
	return now - s.since
}

// forget counts from zero again, after the database did not answer. The other instances may not have reached it either. Then each duty
// has to stay with its holder.
func (w watch) forget() { clear(w) }

// verdict is what to do about a duty.
type verdict int

const (
	leave verdict = iota // it is not ours, or nobody's business
	keep                 // it is ours, and stays so
	take                 // it becomes ours
	give                 // it was ours, and becomes nobody's
)

// question is a duty at one moment of the database.
type question struct {
	duty     inventory.Duty
	isFormer bool                // the holder is the run of this instance before this one
	holder   *inventory.Instance // of the duty; nil for nobody, and for one that is not stored
	silent   time.Duration       // since when holder shows no sign of life; see watch
	self     inventory.Instance  // the one that asks
	wants    bool                // it would do that work
	isAlone  bool                // nobody else can use the database; see Config
}

// decide answers a question. Reason says, for people, why the duty is no longer where it was. Wait is the time after which the answer may
// become take; 0 means never.
func decide(q question) (v verdict, reason string, wait time.Duration) {
	term := inventory.DutyTerm(q.duty.Name)
	switch {
	case q.isFormer && q.silent < term: // it may still be there, and believe that it has the duty
		return leave, "", term - q.silent
	case q.isFormer:
		return take, fmt.Sprintf("instance %s was started again", q.self.Name), 0
	case q.duty.Holder == q.self.ID && q.wants:
		return keep, "", 0
	case q.duty.Holder == q.self.ID && q.self.IsDrained:
		return give, fmt.Sprintf("instance %s was drained", q.self.Name), 0
	case q.duty.Holder == q.self.ID && q.self.CutOff != "":
		return give, fmt.Sprintf("instance %s gets no answer from the instance with the engine", q.self.Name), 0
	case q.duty.Holder == q.self.ID:
		return give, fmt.Sprintf("instance %s does not do that work any more", q.self.Name), 0
	case !q.wants || q.self.IsDrained:
		return leave, "", 0
	case q.duty.Holder == "" && q.duty.Epoch > 0:
		return take, q.duty.Reason, 0
	case q.duty.Holder == "":
		return take, "nobody had it", 0
	case q.holder == nil:
		return take, "its instance was deleted", 0
	case q.isAlone: // the rows come from a database that several instances used
		return take, fmt.Sprintf("instance %s does not use this database", q.holder.Name), 0
	case q.silent >= term && q.holder.Run == "":
		return take, fmt.Sprintf("instance %s stopped without giving it up", q.holder.Name), 0
	case q.silent >= term:
		return take, fmt.Sprintf("instance %s gave no sign of life for %s", q.holder.Name, inventory.Duration(term)), 0
	}
	return leave, "", term - q.silent
}

// heldFor is how long a holder acts on one sign of life, counted from before it was sent: less than the term, in case a clock runs wrong.
func heldFor(name string) time.Duration { return inventory.DutyTerm(name) * 9 / 10 }
