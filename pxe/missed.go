package pxe

import (
	"sync"
	"time"
)

// Missed are the last questions of machines on networks that another instance answers on. If that instance dies, its networks come here
// some seconds later. These machines still listen: firmware asks again only after 4, 8 or more seconds (UEFI 24.3, iPXE), so that an answer
// to what it sent before comes sooner. The zero value is empty and ready. K tells machines apart, Q is a question.
type Missed[K comparable, Q any] struct {
	mu  sync.Mutex
	all map[K]missed[Q]
}

type missed[Q any] struct {
	question Q
	subnet   string
	at       time.Time
}

// The bounds of what is remembered.
const (
	MissedFor     = 8 * time.Second // a machine listens for so long, or asks again
	MissedAtMost  = 1024
	MissedUnknown = 768                    // of machines that are not known: a flood of them leaves room for the others
	MissedTick    = 100 * time.Millisecond // how often a listener looks for those that it may answer
)

// Note remembers the question of a machine in place of the one before. isKept says whether there was room for it.
func (m *Missed[K, Q]) Note(who K, question Q, subnet string, at time.Time, isKnown bool) (isKept bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, has := m.all[who]; !has && len(m.all) >= MissedUnknown && (!isKnown || len(m.all) >= MissedAtMost) {
		return false
	}
	if m.all == nil {
		m.all = map[K]missed[Q]{}
	}
	m.all[who] = missed[Q]{question, subnet, at}
	return true
}

// Drop forgets a machine: it got an answer, or asks for nothing.
func (m *Missed[K, Q]) Drop(who K) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.all, who)
}

// Take returns the questions on networks that this instance answers on now, and forgets these and the old ones.
func (m *Missed[K, Q]) Take(now time.Time, answers func(subnet string) bool) (questions []Q) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for who, x := range m.all {
		isOld := now.Sub(x.at) > MissedFor
		if !isOld && answers(x.subnet) {
			questions = append(questions, x.question)
			isOld = true
		}
		if isOld {
			delete(m.all, who)
		}
	}
	return questions
}

// N is how many questions are remembered.
func (m *Missed[K, Q]) N() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.all)
}
