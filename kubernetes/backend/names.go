package backend

import (
	"cmp"
	"slices"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/ref"
)

// known is what texts may name to a cluster. A name that it does not have is hidden, so that things that are gone stay
// hidden as well.
type known struct {
	rule   *rule
	owners map[string]string   // of the cluster's machines, by name
	recent func(string) string // owner of a machine of the cluster that came or went since then
	seen   map[string]bool     // names, ids and MACs of hosts that the cluster may see; nil when it sees all
	others map[string][]string // by each name of a host that it may not see: all of them
}

// namesOf returns all by which a text may name a host.
func namesOf(h *inventory.Host) []string {
	names := []string{h.Name, string(h.ID)}
	for _, mac := range h.MACs() {
		names = append(names, string(mac))
	}
	return names
}

// hidden returns the references without those whose names may be told, and with all names of hosts. isAll says that the texts
// may name anything.
func (k *known) hidden(isMine func(owner string) bool, refs []inventory.Ref) (hidden []inventory.Ref, isAll bool) {
	for _, r := range refs {
		switch r.Kind {
		case ref.OfMachine:
			owner := cmp.Or(k.owners[r.Name], k.recent(r.Name))
			if owner == "" || !isMine(owner) {
				hidden = append(hidden, r)
			}
		case ref.OfHost:
			if k.seen == nil || k.seen[r.Name] {
				continue
			}
			hidden = append(hidden, r)
			for _, name := range k.others[r.Name] {
				hidden = append(hidden, ref.Host(name))
			}
		case ref.OfPool:
			if !k.rule.mayName(r.Name) {
				hidden = append(hidden, r)
			}
		default: // ref.Unknown, and kinds that this code does not know
			return nil, true
		}
	}
	// The longest first: the name of one thing may begin with that of another.
	slices.SortStableFunc(hidden, func(a, b inventory.Ref) int { return len(b.Name) - len(a.Name) })
	return hidden, false
}

// without returns a text in which other words stand for a thing.
func without(text string, r inventory.Ref, by string) string {
	text = ref.Replace(text, string(r.Kind)+" "+r.Name, by)
	return ref.Replace(text, r.Name, by)
}
