package session

import (
	"container/heap"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

// agenda has the sessions in the order of their next check: when their next sign is late, and when they have
// been silent for too long. It is a heap, so that a look costs what is due and not what boots.
type agenda []*entry

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].due.Before(a[j].due) }
func (a agenda) Swap(i, j int) {
	a[i], a[j] = a[j], a[i]
	a[i].index, a[j].index = i, j
}

// Push and Pop are for package heap.
func (a *agenda) Push(x any) {
	e := x.(*entry)
	e.index = len(*a)
	*a = append(*a, e)
}

func (a *agenda) Pop() any {
	last := len(*a) - 1
	e := (*a)[last]
	(*a)[last] = nil
	*a = (*a)[:last]
	e.index = -1
	return e
}

// set puts an entry where its time is.
func (a *agenda) set(x *entry, due time.Time) {
	x.due = due
	if x.index < 0 {
		heap.Push(a, x)
	} else {
		heap.Fix(a, x.index)
	}
}

func (a *agenda) remove(x *entry) {
	if x.index >= 0 {
		heap.Remove(a, x.index)
	}
}

// silentAt is when a session has been without a sign for too long.
func silentAt(s *inventory.BootSession) time.Time {
	patience := SilentFor
	if s.Boot == string(pxe.BootDisk) || s.Boot == string(pxe.BootIgnore) {
		patience = goneWithin
	}
	return s.LastAt.Add(patience)
}

// dueAt is when the next check of a session is due: when it is past the time that it has.
func (t *Table) dueAt(x *entry) time.Time {
	due := silentAt(&x.BootSession)
	by, waits := t.deadline(&x.BootSession, x.at)
	if waits && x.at.IsLoading(t.now()) {
		by = x.at.LoadedAt.Add(LoadingFor) // and the deadline of its step then
	}
	if waits && by.Before(due) {
		due = by
	}
	return due.Add(1)
}

// plan is called after each change of a session. One that only has more time keeps its place until that check.
func (t *Table) plan(x *entry) {
	if due := t.dueAt(x); x.index < 0 || due.Before(x.due) {
		t.agenda.set(x, due)
	}
}

// LookAgain makes the session of a MAC due at a time, if it is not due before.
func (t *Table) LookAgain(m inventory.MAC, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if x := t.byMAC[m]; x != nil && at.Before(x.due) {
		t.agenda.set(x, at)
	}
}

const (
	// TakeAtOnce is how many late and silent sessions one check takes. It takes one more for each second that it is behind,
	// up to takeAtMost, because boots wait while their events are written.
	TakeAtOnce = 4
	takeAtMost = 64
	// passAtOnce is how many sessions one look passes over, which only have more time by now.
	passAtOnce = 256
)

// Take looks at sessions that are due. It returns the sessions whose next sign is late, each once until it changes. It
// removes and returns those that were silent for too long. hasMore says that others are due as well.
func (t *Table) Take() (late []Running, silent []inventory.BootSession, hasMore bool) {
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.agenda) == 0 {
		return nil, nil, false
	}
	limit := min(TakeAtOnce+max(0, int(now.Sub(t.agenda[0].due)/time.Second)), takeAtMost)
	for passed := 0; len(t.agenda) > 0 && !now.Before(t.agenda[0].due); {
		x := t.agenda[0]
		if len(late)+len(silent) == limit || passed == passAtOnce {
			return late, silent, true
		}
		by, waits := t.deadline(&x.BootSession, x.at)
		switch gone := silentAt(&x.BootSession); {
		case now.After(gone):
			if x.EndedAt.IsZero() {
				silent = append(silent, x.BootSession)
			}
			t.drop(x)
		case waits && now.After(by):
			late = append(late, Running{x.BootSession, x.at.Stage})
			t.agenda.set(x, gone.Add(1))
		default:
			t.agenda.set(x, t.dueAt(x))
			passed++
		}
	}
	return late, silent, false
}
