package ipmi

import (
	"slices"
	"sync"
)

// taken remembers the cipher suite that each controller took last, until the program ends. A driver lives for one
// look at a controller, so that it cannot remember this itself.
var taken memory

// maxTaken bounds the controllers that are remembered.
const maxTaken = 1 << 14

type memory struct {
	mu     sync.Mutex
	suites map[string]int // by address
}

// order returns the suites that may be used with the one that worked last in front, and whether there is one.
func (m *memory) order(address string, allowed []int) (order []int, hasWorked bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	id, ok := m.suites[address]
	if !ok || !slices.Contains(allowed, id) {
		return allowed, false
	}
	order = []int{id}
	for _, other := range allowed {
		if other != id {
			order = append(order, other)
		}
	}
	return order, true
}

// note remembers what worked.
func (m *memory) note(address string, suite int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.suites == nil {
		m.suites = map[string]int{}
	}
	if _, ok := m.suites[address]; !ok && len(m.suites) >= maxTaken {
		for other := range m.suites { // any one: it is learned again
			delete(m.suites, other)
			break
		}
	}
	m.suites[address] = suite
}
