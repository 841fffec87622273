package database

import (
	"errors"
	"sync"

	"slipway.dev/slipway/inventory"
)

// Memory keeps rows of the watched tables. A transaction gets from it only rows that its own snapshot has: Tx.Changes decides that.
// Many goroutines may use it.
type Memory struct {
	mu   sync.RWMutex
	asOf uint64         // the count of changes that kept was read at
	kept map[string]any // by the key of the question; NotFound is kept as its error
}

// keptMost bounds the memory. Beyond it, all is forgotten and read again.
const keptMost = 4096

// Len is how many answers are kept.
func (m *Memory) Len() int { return len(m.kept) }

// find returns what is kept for a key as of a count.
func (m *Memory) find(key string, count uint64) any {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.asOf != count {
		return nil
	}
	return m.kept[key]
}

// keep may run for several readers at once. Each has checked the count after its read, and find checks it again.
func (m *Memory) keep(key string, count uint64, v any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kept == nil || m.asOf != count || len(m.kept) >= keptMost {
		m.asOf, m.kept = count, map[string]any{} // what was read at another count goes
	}
	m.kept[key] = v
}

// Remember returns what read returns, from memory while it has not changed. own makes the copy that the caller may change.
func Remember[T any](m *Memory, t *Tx, key string, own func(T) T, read func() (T, error)) (T, error) {
	count, ok := t.Changes()
	if !ok {
		return read()
	}
	switch v := m.find(key, count).(type) {
	case T:
		return own(v), nil
	case error:
		return *new(T), v // NotFound is kept as well: a boot asks for layers that do not exist
	}
	v, err := read()
	var said *inventory.Error
	isAbsent := errors.As(err, &said) && said.Kind == inventory.NotFound
	if now, ok := t.Changes(); !ok || now != count || err != nil && !isAbsent { // changed while it was read: good for the caller, not for others
		return v, err
	}
	if err != nil {
		m.keep(key, count, err)
		return v, err
	}
	m.keep(key, count, v)
	return own(v), nil
}
