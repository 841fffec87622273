package configuration

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig/address"
	"slipway.dev/slipway/provision/ledger"
)

// A profile may be that of ten thousand machines. What it makes each of them hold is found out before the transaction that
// saves it (a walk), and noted after it in small ones: DHCP waits for no long write. In between the walk counts as held.

// heldWalk is what an edit makes machines and hosts hold.
type heldWalk struct {
	edit  string // of what; see editKey
	since int64  // the change before it
	held  map[string]heldBy
	index map[string][]inventory.Holding
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

// editKey tells one edit of a profile or layer from another.
func editKey(p *inventory.Profile, l *inventory.Layer) (string, error) {
	var said any
	if p != nil {
		c := *p
		c.Version, c.Revision, c.CreatedAt, c.UpdatedAt, c.Saved = 0, 0, time.Time{}, time.Time{}, inventory.Saved{}
		said = c
	} else {
		c := *l
		c.Version, c.Revision, c.CreatedAt, c.UpdatedAt, c.Saved = 0, 0, time.Time{}, time.Time{}, inventory.Saved{}
		said = c
	}
	b, err := json.Marshal([]any{p != nil, said})
	return string(b), err
}

// walked keeps what trials have found without a fault: the transaction that saves the edit need not find it again.
func (c *Edits) walked(t edit, since int64, trials []*trial) {
	key, err := editKey(t.profile, t.layer)
	if err != nil {
		return
	}
	w := &heldWalk{edit: key, since: since, held: map[string]heldBy{}, index: map[string][]inventory.Holding{}}
	for _, j := range trials {
		if j.impact.Findings.HasErrors() {
			return
		}
		x := heldBy{Subject: j.subject, all: unlessIdle(j.subject, j.holdings)}
		w.held[x.Key()] = x
		for _, h := range x.all {
			at := string(h.Kind) + "/" + h.Value
			w.index[at] = append(w.index[at], h)
		}
	}
	c.held.keep(w)
}

// HoldConfigured gives the machines and hosts of a profile or layer, saved in this transaction, their addresses and names.
// It refuses the save when two would have the same. Of most changes no word is about names or addresses: those cost
// nothing. after, which may be nil, is to be called when the transaction has ended.
func (c *Edits) HoldConfigured(
	tx inventory.Tx, profile string, l *inventory.Layer,
) (after func(ctx context.Context, isStored bool), err error) {
	tx = address.Whole(tx)
	t, kind, name := edit{Tx: tx, layer: l}, inventory.RevisionOfLayer, ""
	if l != nil {
		name = l.Key()
	} else {
		p, err := tx.Profiles().Find(profile)
		if err != nil {
			return nil, err
		}
		t.profile, kind, name = &p, inventory.RevisionOfProfile, profile
	}
	revisions, err := tx.ListRevisions(kind, name, 0, 2)
	if err != nil {
		return nil, fmt.Errorf("read revisions of %s: %w", name, err)
	}
	if !slices.ContainsFunc(revisions, func(r inventory.Revision) bool { return address.Matters(string(r.Body)) }) {
		return nil, nil
	}
	key, err := editKey(t.profile, l)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", name, err)
	}
	if w, fresh := c.held.find(key); w != nil {
		return c.holdWalked(tx, t, w, fresh)
	}
	defer c.held.changed("")
	b, err := c.book(tx, false)
	if err != nil {
		return nil, err
	}
	return nil, c.eachHolder(tx, func(m *inventory.Machine, h *inventory.Host) error {
		x, err := c.holds(tx, b, m, h)
		if err != nil || x.in == nil || !t.isUsedBy(x.in) {
			return err
		}
		return c.take(tx, b, &x)
	})
}

// holdWalked takes a walk for true, but for the holders that have changed since: those are checked again.
func (c *Edits) holdWalked(tx inventory.Tx, t edit, w *heldWalk, fresh []string) (func(context.Context, bool), error) {
	now := *w
	now.held = maps.Clone(w.held)
	for _, key := range fresh {
		delete(now.held, key)
	}
	c.held.begin(&now)
	b, err := c.book(tx, false)
	for _, key := range fresh {
		if err == nil {
			err = c.holdKey(tx, b, t, key)
		}
		if err == nil {
			err = now.spares(tx, key)
		}
	}
	if err != nil {
		c.held.end(&now)
		return nil, err
	}
	c.held.changed("")
	return func(ctx context.Context, isStored bool) {
		if isStored {
			c.noteWalked(context.WithoutCancel(ctx), &now)
		}
		c.held.end(&now)
	}, nil
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

// holdKey is hold for the holder with a key, when an edit is about it.
func (c *Edits) holdKey(tx inventory.Tx, b *address.Book, t edit, key string) error {
	m, h, err := holderOf(tx, key)
	if err != nil || m == nil && h == nil {
		return err
	}
	x, err := c.holds(tx, b, m, h)
	if err != nil || x.in == nil || !t.isUsedBy(x.in) {
		return err
	}
	return c.take(tx, b, &x)
}

// noteWalked stores what a walk has found, a few holders in each transaction. What could not be stored is checked later.
func (c *Edits) noteWalked(ctx context.Context, w *heldWalk) {
	for some := range slices.Chunk(slices.Sorted(maps.Keys(w.held)), holdersAtOnce) {
		err := c.cfg.Store.Write(ctx, func(tx inventory.Tx) error {
			b, err := c.book(tx, false)
			if err != nil {
				return err
			}
			for _, key := range some {
				m, h, err := holderOf(tx, key)
				if err != nil {
					return err
				}
				if m == nil && h == nil {
					continue
				}
				if err := c.noteHeld(tx, b, m, h); ledger.IgnoreNotFound(err) != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			c.cfg.Log.Warn("addresses and names of a configuration not noted yet", "err", err)
			c.HeldElsewhere()
			return
		}
	}
}

// holderOf finds a machine with its host, or a host that no machine has; both are nil for one that is gone.
func holderOf(tx inventory.Tx, key string) (m *inventory.Machine, h *inventory.Host, err error) {
	kind, id, _ := strings.Cut(key, "/")
	if kind == "machine" {
		found, err := tx.FindMachineByUID(id)
		if err != nil {
			return nil, nil, ledger.IgnoreNotFound(err)
		}
		m, id = &found, string(found.HostID)
	}
	if id == "" {
		return m, nil, nil
	}
	on, err := tx.FindHost(inventory.HostID(id))
	if err != nil {
		return nil, nil, ledger.IgnoreNotFound(err)
	}
	if m == nil && !isHolder(&on) {
		return nil, nil, nil
	}
	return m, &on, nil
}

// isHolder reports whether a host has names and addresses of its own: no machine has it, and somebody has accepted it.
func isHolder(h *inventory.Host) bool {
	return h.Machine == "" && h.State != inventory.Discovered && h.State != inventory.Failed
}

// unlessIdle leaves out the name of a host that waits for a machine: nothing runs under it.
func unlessIdle(s address.Subject, all []inventory.Holding) []inventory.Holding {
	if s.MachineUID != "" || s.On == nil || s.On.State == inventory.Active || s.On.State == inventory.Installing || s.On.IsAdopted {
		return all
	}
	if !isHolder(s.On) {
		return nil
	}
	return slices.DeleteFunc(all, func(g inventory.Holding) bool { return g.Kind == inventory.HoldsName && g.Source == "inventory" })
}
