// Package admission owns the limit on downloads of image files, over all protocols. It admits only as many downloads at a
// time as a link can carry at a useful speed. The oldest boot goes first. It never sends anything.
package admission

import (
	"cmp"
	"hash/fnv"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Rules limit how many artefacts leave through one of our addresses at the same time, so that each download is fast
// enough to finish.
type Rules struct {
	Downloads      int   // at most so many at once; 0 means 256
	BytesPerSecond int64 // of the link; 0 when not known: then Downloads alone counts
	Floor          int64 // bytes per second that each download should get at least; 0 means 5 MB/s
}

// slots returns how many downloads may run at once.
func (a Rules) slots() int {
	n := cmp.Or(a.Downloads, 256)
	if a.BytesPerSecond > 0 {
		n = min(n, max(1, int(a.BytesPerSecond/cmp.Or(a.Floor, 5_000_000))))
	}
	return n
}

// Lines are the queues in front of the links behind our addresses.
type Lines struct {
	rules func(local netip.Addr) Rules
	now   func() time.Time

	mu    sync.Mutex
	lines map[netip.Addr]*line // by our address
}

// New returns empty lines. rules returns the Rules of the link behind one of our addresses; nil means the defaults.
func New(rules func(local netip.Addr) Rules, now func() time.Time) *Lines {
	if rules == nil {
		rules = func(netip.Addr) Rules { return Rules{} }
	}
	return &Lines{rules: rules, now: now, lines: map[netip.Addr]*line{}}
}

// Enter lets a boot load this number of bytes from one of our addresses, or returns the wait and the place in the queue.
// The boot keeps its place while it asks again. A boot that was admitted, with a wait of 0, calls leave, once.
func (l *Lines) Enter(local netip.Addr, boot string, size int64) (leave func(), wait time.Duration, place int) {
	one := l.of(local)
	if wait, place = one.enter(boot, size); wait > 0 {
		return nil, wait, place
	}
	since := l.now()
	return func() { one.leave(boot, l.now().Sub(since)) }, 0, 0
}

func (l *Lines) of(local netip.Addr) *line {
	l.mu.Lock()
	defer l.mu.Unlock()
	one := l.lines[local]
	if one == nil {
		one = newLine(l.rules(local), l.now)
		l.lines[local] = one
	}
	return one
}

// Sweep forgets boots that neither load nor wait any more.
func (l *Lines) Sweep() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range l.lines {
		one.sweep()
	}
}

// Lengths returns how many boots wait, and how many downloads run.
func (l *Lines) Lengths() (queued, active int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range l.lines {
		q, a := one.lengths()
		queued, active = queued+q, active+a
	}
	return queued, active
}

// line is the queue in front of one link. A machine in it holds no connection: it has been told to ask again, and
// keeps its place until it is overdue.
type line struct {
	rules Rules
	now   func() time.Time

	mu      sync.Mutex
	active  int
	boots   map[string]*waiter // by session, or by address without one
	queue   []*waiter          // those of them that were told to ask again, the oldest first
	lookAt  time.Time          // when the queue is looked at for those that are overdue
	perBoot time.Duration      // how long a download lately took, smoothed
}

// waiter is a boot that has asked for an artefact.
type waiter struct {
	boot    string
	firstAt time.Time // its age in the line
	activeN int
	dueAt   time.Time // when one in the queue was told to ask again
	lastAt  time.Time
}

const (
	longestWait = 30 * time.Second
	grace       = 10 * time.Second // how late a machine may come back to its place
	forgetAfter = 30 * time.Minute
	maxWaiters  = 16384 // boots that are remembered
)

func newLine(rules Rules, now func() time.Time) *line {
	return &line{rules: rules, now: now, boots: map[string]*waiter{}, perBoot: 5 * time.Second}
}

// enter lets a boot download an artefact of so many bytes, or says how long it has to wait and which place it has in
// the line. Who was let in calls leave.
func (l *line) enter(boot string, size int64) (wait time.Duration, place int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	l.dropOverdue(now)
	w := l.boots[boot]
	if w == nil {
		if len(l.boots) >= maxWaiters {
			l.forget(func(w *waiter) bool { return now.Sub(w.lastAt) > grace }) // their age would only count for a next file
		}
		if len(l.boots) >= maxWaiters {
			return longestWait, len(l.queue) + 1
		}
		w = &waiter{boot: boot, firstAt: now}
		l.boots[boot] = w
	}
	w.lastAt = now
	ahead, isQueued := slices.BinarySearchFunc(l.queue, w, byAge)
	if l.active+ahead < l.rules.slots() {
		l.active++
		w.activeN++
		if isQueued {
			l.queue = slices.Delete(l.queue, ahead, ahead+1)
		}
		return 0, 0
	}
	wait = l.waitFor(boot, ahead+1, size)
	w.dueAt = now.Add(wait)
	if !isQueued {
		l.queue = slices.Insert(l.queue, ahead, w)
	}
	return wait, ahead + 1
}

func byAge(a, b *waiter) int {
	return cmp.Or(a.firstAt.Compare(b.firstAt), cmp.Compare(a.boot, b.boot))
}

// dropOverdue takes those off the queue that did not come back, once a second.
func (l *line) dropOverdue(now time.Time) {
	if now.Before(l.lookAt) {
		return
	}
	l.lookAt = now.Add(time.Second)
	l.queue = slices.DeleteFunc(l.queue, func(w *waiter) bool { return !now.Before(w.dueAt.Add(grace)) })
}

// waitFor returns when the place-th in line may expect its turn, in whole seconds: iPXE understands no other
// Retry-After. Machines that were switched on together get up to 3 s on top, so that they do not come back together.
func (l *line) waitFor(boot string, place int, size int64) time.Duration {
	slots := l.rules.slots()
	each := l.perBoot
	if l.rules.BytesPerSecond > 0 {
		each = time.Duration(float64(size) * float64(slots) / float64(l.rules.BytesPerSecond) * float64(time.Second))
	}
	wait := each * time.Duration((place+slots-1)/slots)
	h := fnv.New32a()
	_, _ = h.Write([]byte(boot))
	wait = min(max(wait, time.Second), longestWait) + time.Duration(h.Sum32()%4)*time.Second
	return min(wait.Truncate(time.Second), longestWait)
}

// leave ends a download that took so long.
func (l *line) leave(boot string, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.active--
	l.perBoot += (took - l.perBoot) / 8
	if w := l.boots[boot]; w != nil {
		w.activeN--
		w.lastAt = l.now()
	}
}

// sweep forgets boots that neither load nor wait any more.
func (l *line) sweep() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	l.dropOverdue(now)
	l.forget(func(w *waiter) bool { return now.Sub(w.lastAt) > forgetAfter })
}

// forget drops boots that neither load nor are in the queue, and are old.
func (l *line) forget(isOld func(*waiter) bool) {
	for name, w := range l.boots {
		if w.activeN > 0 || !isOld(w) {
			continue
		}
		if _, isQueued := slices.BinarySearchFunc(l.queue, w, byAge); !isQueued {
			delete(l.boots, name)
		}
	}
}

// lengths returns how many boots are in the line, and how many downloads run.
func (l *line) lengths() (queued, active int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.queue), l.active
}
