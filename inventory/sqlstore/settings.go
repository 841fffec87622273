package sqlstore

import (
	"errors"
	"maps"
	"slices"
	"sync"

	"slipway.dev/slipway/inventory"
)

// settings keeps what was read of the tables that people edit now and then and that every boot reads: profiles, images,
// layers, subnets, classes, accept rules, secrets, join targets, pools, clusters. Duties are here because each write on PostgreSQL asks
// for one. What a transaction gets from here is what its snapshot holds: database.Tx.Changes decides that.
type settings struct {
	mu   sync.RWMutex
	asOf uint64         // the count of changes that kept was read at
	kept map[string]any // by the key of the question; NotFound is kept as its error
}

// keptSettings bounds the memory. Beyond it, settings forget all and read it again.
const keptSettings = 4096

// settingTables are the tables. Nothing cascades into them: see database.Changes.
var settingTables = []string{
	"profiles", "images", "image_files", "layers", "subnets", "classes", "ranges", "ranges6", "accept_rules", "secrets", "join_targets",
	"pools", "clusters", "duties",
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
	count, ok := t.Changes()
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
	if now, ok := t.Changes(); !ok || now != count || err != nil && !isAbsent { // changed while it was read: good for the caller, not for others
		return v, err
	}
	if err != nil {
		s.keep(key, count, err)
		return v, err
	}
	s.keep(key, count, v)
	return own(v), nil
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
