package machineconfig

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"slipway.dev/slipway/machineconfig/pointer"
)

// sources finds where values were set.
type sources struct {
	provenance map[string]string
	sorted     []string // the keys of provenance, once they are needed
}

// of returns where the value at a path was set, or else a part of it, or what it is part of.
func (s *sources) of(p string) string {
	if where, ok := s.provenance[p]; ok || len(s.provenance) == 0 {
		return where
	}
	if s.sorted == nil {
		s.sorted = slices.Sorted(maps.Keys(s.provenance))
	}
	for ; p != ""; p = pointer.Parent(p) {
		if where, ok := s.provenance[p]; ok {
			return where
		}
		if i, _ := slices.BinarySearch(s.sorted, p+"/"); i < len(s.sorted) && strings.HasPrefix(s.sorted[i], p+"/") {
			return s.provenance[s.sorted[i]]
		}
	}
	return ""
}

// SourceOf returns the layer and line that says the value at a path, "" when nothing does.
func (c *Config) SourceOf(path string) string { return (&sources{provenance: c.Provenance}).of(path) }

// EachAddress calls f with every address of the network, its path, and the layer that it comes from.
func (c *Config) EachAddress(f func(path, source, address string)) {
	where := sources{provenance: c.Provenance}
	c.Network.EachLink(func(path string, l *L3) {
		for i, a := range l.Addresses {
			at := path + "/addresses/" + strconv.Itoa(i)
			f(at, where.of(at), a)
		}
	})
}

// Locate fills in the layer and line of the findings that name a path and no source yet.
func (r Report) Locate(c *Config) {
	where := sources{provenance: c.Provenance}
	for i := range r {
		if r[i].Source == "" && r[i].Path != "" {
			r[i].Source = where.of(r[i].Path)
		}
	}
}
