package session

import (
	"container/heap"
	"net/netip"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

// Step is when a boot came to its step, and the file that it fetches since.
type Step struct {
	Name     string
	Session  inventory.SessionID
	Stage    pxe.Stage // of whom asked for an address last: iPXE comes further than the firmware before it
	At       time.Time
	File     string // "" when none is being sent
	LoadedAt time.Time
}

// LoadingFor bounds how long a file counts as being sent without a word of its end.
const LoadingFor = 20 * time.Minute

// IsLoading reports whether a file is being sent.
func (x *Step) IsLoading(now time.Time) bool { return x.File != "" && now.Sub(x.LoadedAt) < LoadingFor }

// entry is what is known of the boots of a MAC.
type entry struct {
	inventory.BootSession
	at       Step
	address  netip.Addr // that it is found by: of the boot before until this one has one
	isSecure bool       // its iPXE speaks HTTPS, as its DHCP said
	due      time.Time  // when its next check is due
	index    int        // in the agenda
}

// came takes note of when a session came to the step that it is at.
func (x *entry) came(stage pxe.Stage, now time.Time) {
	isSame := x.at.Session == x.ID
	if stage == "" && isSame {
		stage = x.at.Stage
	}
	if !isSame || x.at.Name != x.Step || x.at.Stage != stage {
		x.at = Step{Name: x.Step, Session: x.ID, Stage: stage, At: now}
	}
}

// agenda has the sessions in the order of their next check: when their next sign is late, and when they have
// been silent for too long. It is a heap, so that a look costs what is due and not what boots.
type agenda []*entry

func (a agenda) Len() int { return len(a) }

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

const (
	// SilentFor is how long a session may be without any sign before it counts as abandoned. The slowest step, an installer
	// that loads without a report, takes less.
	SilentFor = 30 * time.Minute
	// goneWithin is when a machine that got nothing of ours to run counts as gone to its own disk.
	goneWithin = 2 * time.Minute
)

// silentAt is when a session has been without a sign for too long.
func silentAt(s *inventory.BootSession) time.Time {
	patience := SilentFor
	if s.Boot == string(pxe.BootDisk) || s.Boot == string(pxe.BootIgnore) {
		patience = goneWithin
	}
	return s.LastAt.Add(patience)
}
