package configuration

import (
	"fmt"
	"slices"
	"sync"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig/address"
)

// A profile may be that of ten thousand machines. A walk finds what it makes each of them hold, before the transaction that
// saves it. Small transactions note that afterwards: DHCP waits for no long write. In between the walk counts as held.

// heldWalk is what an edit makes machines and hosts hold.
type heldWalk struct {
	edit    string                         // of what; see editKey
	since   int64                          // the change before it
	holders map[string]bool                // their keys
	index   map[string][]inventory.Holding // by kind and value
}

// spares refuses a walk by which another holder would have what the one with this key has.
func (w *heldWalk) spares(tx inventory.Tx, key string) error {
	has, err := tx.ListHoldings(inventory.AddressFilter{Owner: key})
	if err != nil {
		return fmt.Errorf("read what %s holds: %w", key, err)
	}
	for _, h := range has {
		both := append([]inventory.Holding{h}, w.index[string(h.Kind)+"/"+h.Value]...)
		for _, c := range address.Among(both) {
			if c.Other.Key() == key {
				return c.Err()
			}
		}
	}
	return nil
}

// heldLog knows the last walks, and what has changed of what is held since one began. A change that was not committed in the
// end costs a second look.
type heldLog struct {
	mu      sync.Mutex
	n       int64
	changes []string // the keys of the last holders, "" for all of them
	walks   []*heldWalk
	pending []*heldWalk // saved, and not noted yet
}

const (
	// heldChanges bounds the holders of which a change is remembered; a walk that is older is of no use.
	heldChanges = 200
	maxWalks    = 4
)

// changed says that a holder has something else, "" for any holder.
func (l *heldLog) changed(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n++
	if l.changes = append(l.changes, key); len(l.changes) > heldChanges {
		l.changes = slices.Delete(l.changes, 0, len(l.changes)-heldChanges)
	}
}

func (l *heldLog) now() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.n
}

func (l *heldLog) keep(w *heldWalk) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.walks = append(slices.DeleteFunc(l.walks, func(o *heldWalk) bool { return o.edit == w.edit }), w)
	if len(l.walks) > maxWalks {
		l.walks = slices.Delete(l.walks, 0, 1)
	}
}

// find returns the walk of an edit, and whose holdings have changed since. It is nil when there is none that still holds.
func (l *heldLog) find(edit string) (*heldWalk, []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.walks, func(w *heldWalk) bool { return w.edit == edit })
	if i < 0 {
		return nil, nil
	}
	newN := l.n - l.walks[i].since
	if newN > int64(len(l.changes)) {
		return nil, nil
	}
	fresh := slices.Clone(l.changes[len(l.changes)-int(newN):])
	if slices.Contains(fresh, "") {
		return nil, nil
	}
	slices.Sort(fresh)
	return l.walks[i], slices.Compact(fresh)
}

func (l *heldLog) begin(w *heldWalk) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending = append(l.pending, w)
}

func (l *heldLog) end(w *heldWalk) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending = slices.DeleteFunc(l.pending, func(o *heldWalk) bool { return o == w })
	l.walks = slices.DeleteFunc(l.walks, func(o *heldWalk) bool { return o == w })
}

// awaited returns who holds a value by a configuration that is saved, and not noted for each machine yet.
func (l *heldLog) awaited(k inventory.HoldingKind, value string) (all []inventory.Holding) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.pending {
		all = append(all, w.index[string(k)+"/"+value]...)
	}
	return all
}
