// Package elevation arranges the hosts of a rack by their places, and finds places that cannot be right. It draws nothing: the web UI
// and the command line show its result.
package elevation

import (
	"cmp"
	"fmt"
	"slices"

	"slipway.dev/slipway/inventory"
)

// Mounted is a host in the drawing of a rack. Hosts that share their units, as the nodes of one chassis do, stand side
// by side: this one is number Lane of LaneN.
type Mounted struct {
	Host  *inventory.Host
	Low   int
	High  int
	Lane  int
	LaneN int
}

// PlaceFault is something about the places in a rack that cannot be so.
type PlaceFault struct {
	Kind   string   `json:"kind" enum:"overlap,outside"` // overlap or outside
	Hosts  []string `json:"hosts"`
	Detail string   `json:"detail"`
	Hint   string   `json:"hint"`
}

// Elevation is what stands where in a rack.
type Elevation struct {
	Mounted []Mounted         // from the lowest unit to the highest
	Loose   []*inventory.Host // in the rack, but nobody said in which unit
	Faults  []PlaceFault
}

// Of arranges hosts, all of which are placed in the rack, as they are seen from a face; "" sees both. Hosts with exactly the same
// units share them. Places that cannot be so are drawn as they are and named as faults.
func Of(r *inventory.Rack, hosts []inventory.Host, face inventory.Face) Elevation {
	var e Elevation
	for i := range hosts {
		h := &hosts[i]
		low, high := h.Place.Units()
		if face != "" && h.Place.Face != "" && h.Place.Face != face {
			continue
		}
		if low == 0 {
			e.Loose = append(e.Loose, h)
			continue
		}
		e.Mounted = append(e.Mounted, Mounted{Host: h, Low: low, High: high, LaneN: 1})
		if high > r.Height {
			e.Faults = append(e.Faults, PlaceFault{
				Kind: "outside", Hosts: []string{h.Name},
				Detail: h.Name + " is in " + unitsText(low, high) + ", above the rack's " + unitsText(1, r.Height),
				Hint:   "place it elsewhere, or say how high the rack is: slipway rack set " + r.ID() + " --height N",
			})
		}
	}
	slices.SortStableFunc(e.Mounted, func(a, b Mounted) int {
		return cmp.Or(cmp.Compare(a.Low, b.Low), cmp.Compare(a.High, b.High), cmp.Compare(a.Host.Name, b.Host.Name))
	})
	slices.SortStableFunc(e.Loose, func(a, b *inventory.Host) int { return cmp.Compare(a.Name, b.Name) })
	e.lanes()
	return e
}

// meets reports whether two hosts would be in the same place: in a unit of both, on the same side of the rack.
func (m *Mounted) meets(o *Mounted) bool {
	a, b := m.Host.Place.Face, o.Host.Place.Face
	return m.Low <= o.High && o.Low <= m.High && (a == b || a == "" || b == "")
}

// shares reports whether two hosts fill exactly the same units, as the nodes of one chassis do.
func (m *Mounted) shares(o *Mounted) bool {
	return m.Low == o.Low && m.High == o.High && m.Host.Place.Face == o.Host.Place.Face
}

// lanes sets hosts that meet side by side, and names those that must not. Mounted is in order of its units, so that a
// run of hosts ends where the next begins above all before.
func (e *Elevation) lanes() {
	for from := 0; from < len(e.Mounted); {
		to, high := from+1, e.Mounted[from].High
		for to < len(e.Mounted) && e.Mounted[to].Low <= high {
			high = max(high, e.Mounted[to].High)
			to++
		}
		e.run(e.Mounted[from:to])
		from = to
	}
}

// maxPlaceFaults is how many faults of one rack are named: more help nobody.
const maxPlaceFaults = 100

// run puts every host of a run into the first lane that is free in its units.
func (e *Elevation) run(run []Mounted) {
	var tops []int
	for i := range run {
		m := &run[i]
		m.Lane = slices.IndexFunc(tops, func(top int) bool { return top < m.Low })
		if m.Lane < 0 {
			m.Lane, tops = len(tops), append(tops, 0)
		}
		tops[m.Lane] = m.High
		for j := range i {
			if o := &run[j]; o.meets(m) && !o.shares(m) && len(e.Faults) < maxPlaceFaults {
				e.Faults = append(e.Faults, PlaceFault{
					Kind: "overlap", Hosts: []string{o.Host.Name, m.Host.Name},
					Detail: fmt.Sprintf("%s in %s and %s in %s overlap",
						o.Host.Name, unitsText(o.Low, o.High), m.Host.Name, unitsText(m.Low, m.High)),
					Hint: "one of the places or heights is wrong: slipway host place NAME --unit N --height N; half-deep hosts have a --face",
				})
			}
		}
	}
	for i := range run {
		run[i].LaneN = len(tops)
	}
}

// unitsText says units as people do: U5, or U5-U8.
func unitsText(low, high int) string {
	if low == high {
		return fmt.Sprintf("U%d", low)
	}
	return fmt.Sprintf("U%d-U%d", low, high)
}
