package sqlstore

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"slipway.dev/slipway/inventory"
)

// settings keeps what was read of the tables that people edit now and then and that every boot reads: profiles, images,
// layers, subnets, classes, accept rules, secrets, join targets. What a transaction gets from here is what its snapshot holds.
type settings struct {
	// count is odd from the first statement of a transaction that changes one of these tables until it has ended. What
	// was read while it was even and stayed the same is right for each transaction that sees the same number.
	count atomic.Uint64

	mu   sync.RWMutex
	asOf uint64         // the count that kept was read at
	kept map[string]any // by the key of the question; NotFound is kept as its error
}

// keptSettings bounds the memory. Beyond it, settings forget all and read it again.
const keptSettings = 4096

// settingTables are the tables, as statements that change one begin with their names.
var settingTables = []string{
	"profiles", "images", "image_files", "layers", "subnets", "classes", "ranges", "ranges6", "accept_rules", "secrets", "join_targets",
}

// changesSettings reports whether a statement changes one of the tables. Nothing cascades into them.
func changesSettings(query string) bool {
	// The name of the table is among the first words of a statement that changes it.
	words := strings.Fields(query[:min(len(query), 80)])
	for i, w := range words {
		if i > 0 && i < 4 && (strings.EqualFold(words[i-1], "INTO") || strings.EqualFold(words[i-1], "UPDATE") || strings.EqualFold(words[i-1], "FROM")) {
			return !strings.EqualFold(words[0], "SELECT") && slices.Contains(settingTables, strings.TrimRight(w, "("))
		}
	}
	return false
}

// find returns what is kept for a key as of a count.
func (s *settings) find(key string, count uint64) (v any, ok bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.asOf != count {
		return nil, false
	}
	v, ok = s.kept[key]
	return v, ok
}

// keep may run for several readers at once. Each has checked the count after its read, and find checks it again.
func (s *settings) keep(key string, count uint64, v any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == nil || s.asOf != count || len(s.kept) >= keptSettings {
		s.asOf, s.kept = count, map[string]any{} // what was read at another count goes
	}
	s.kept[key] = v
}

// setting returns what read returns, from memory while it has not changed. own makes the copy that the caller may change.
func setting[T any](t *tx, key string, own func(T) T, read func() (T, error)) (T, error) {
	count, ok := t.settingsCount()
	if !ok {
		return read()
	}
	s := &t.store.settings
	switch v, _ := s.find(key, count); v := v.(type) {
	case T:
		return own(v), nil
	case error:
		return *new(T), v // NotFound is kept as well: a boot asks for layers that do not exist
	}
	v, err := read()
	var said *inventory.Error
	isAbsent := errors.As(err, &said) && said.Kind == inventory.NotFound
	if now := s.count.Load(); now != count || err != nil && !isAbsent { // changed while it was read: good for the caller, not for others
		return v, err
	}
	if err != nil {
		s.keep(key, count, err)
		return v, err
	}
	s.keep(key, count, v)
	return own(v), nil
}

// settingsCount returns the count whose settings this transaction reads; ok is false when it has to read them itself.
// A Read has its snapshot from its first statement on: nothing has changed between that and now, if nothing has since it
// began.
func (t *tx) settingsCount() (count uint64, ok bool) {
	if t.isRead && !t.hasRead {
		if _, err := t.row([]any{new(int64)}, takeSnapshot); err != nil { // a snapshot begins with the first statement, not with BEGIN
			return 0, false
		}
	}
	count = t.store.settings.count.Load()
	// Something changed since the read began, and its snapshot may have the old rows.
	if t.isRead && count != t.began {
		return 0, false
	}
	return count, count%2 == 0
}

// changing is called before each statement of the writer.
func (s *Store) changing(isSetting bool) {
	// Once in a transaction: the count has to stay odd until that ends.
	if isSetting && !s.isChanging {
		s.isChanging = true
		s.settings.count.Add(1)
	}
}

// changed is called when a transaction of the writer has ended in whatever way.
func (s *Store) changed() {
	if s.isChanging { // also after a rollback: what others read meanwhile is read again
		s.isChanging = false
		s.settings.count.Add(1)
	}
}

// ownProfile copies what a caller may change: the kept value is shared by all transactions.
func ownProfile(p inventory.Profile) inventory.Profile {
	p.KernelArgs, p.Parameters, p.Accepts = slices.Clone(p.KernelArgs), maps.Clone(p.Parameters), slices.Clone(p.Accepts)
	if p.Document != nil {
		d := *p.Document
		p.Document = &d
	}
	return p
}

func ownProfiles(all []inventory.Profile) []inventory.Profile {
	all = slices.Clone(all)
	for i := range all {
		all[i] = ownProfile(all[i])
	}
	return all
}

func ownImage(i inventory.Image) inventory.Image {
	i.Files, i.KernelArgs = slices.Clone(i.Files), slices.Clone(i.KernelArgs)
	i.Configs, i.ConfigArgs = slices.Clone(i.Configs), slices.Clone(i.ConfigArgs)
	return i
}

func ownSubnets(all []inventory.Subnet) []inventory.Subnet {
	all = slices.Clone(all)
	for i := range all {
		n := &all[i]
		n.DNS, n.NTP, n.Routes, n.Ranges = slices.Clone(n.DNS), slices.Clone(n.NTP), slices.Clone(n.Routes), slices.Clone(n.Ranges)
		n.StaticRanges = slices.Clone(n.StaticRanges)
		n.Options = slices.Clone(n.Options)
	}
	return all
}

func ownSelf[T any](v T) T { return v }
