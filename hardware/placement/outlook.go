package placement

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/hardware"
	"slipway.dev/slipway/inventory"
)

// Outlook is whether the inventory has a host for a machine at all, even if another machine uses that host now.
type Outlook struct {
	// IsHopeless says that no host meets the requirements, free or in use. What is not known of a host counts as met.
	IsHopeless bool
	IsKnown    bool // somebody has looked: the zero value says nothing
	Fit        int  // hosts that meet it, or may meet it
	Code       Code
	Reason     string
	Hint       string
}

// Forecast looks at all hosts of an inventory as if nobody used them. It is for one goroutine.
type Forecast struct {
	y     *yard
	known map[string]Outlook // of machines that ask for the same; hints have NAME for the machine
}

// NewForecast takes all hosts of the inventory, free or not.
func NewForecast(all []Candidate) *Forecast {
	idle := make([]Candidate, len(all))
	for i, c := range all {
		idle[i] = Idle(c)
	}
	return &Forecast{y: newYard(idle), known: map[string]Outlook{}}
}

// Idle is a candidate as it would be without a machine. Its hardware, place and labels stay.
func Idle(c Candidate) Candidate {
	h := &c.Host
	h.State, h.ClaimID, h.Machine, h.ReuseKey, h.FreedAt, h.FailureN = inventory.Available, "", "", "", time.Time{}, 0
	h.IsCordoned, h.InMaintenance, h.IsProtected, h.IsAdopted, h.IsDirty = false, false, false, false, false
	c.Faults = nil
	return c
}

// miss is one thing that keeps a host from a machine for good.
type miss = hardware.Miss

// Outlook says whether one of the hosts could ever serve a machine, and if none, what the nearest of them lack. Machines that
// ask for the same share the answer.
func (f *Forecast) Outlook(d Demand) Outlook {
	d.IsInspectionNeeded = false
	s, err := f.y.shapeOf(&d)
	if err != nil {
		return Outlook{} // the choice says what cannot be read
	}
	p := &d.Machine.Placement
	key := fmt.Sprintf("%p\x00%s\x00%v\x00%q", s, p.FailureDomain, p.IsDomainPreferred, d.Machine.Avoid)
	out, ok := f.known[key]
	if !ok {
		if p.Host != "" {
			out = f.pinned(&d, s, p.Host)
		} else {
			out = f.all(&d, s)
		}
		out.IsKnown = true
		f.known[key] = out
	}
	out.Hint = strings.ReplaceAll(out.Hint, "NAME", d.Machine.Name)
	return out
}

// all looks at every host.
func (f *Forecast) all(d *Demand, s *shape) Outlook {
	t := tally{outside: map[string]int{}, groups: map[string]*group{}}
	inside := 0
	for _, e := range f.y.entries {
		if c := s.outside(e); c != nil {
			t.outside[c.phrase]++
			continue
		}
		inside++
		t.add(s.misses(d, e))
	}
	switch isSpare := t.fit > 0 && s.minSpare >= inside && len(d.Machine.Avoid) == 0; {
	case isSpare:
		return Outlook{
			IsHopeless: true, Code: NoMatchingHost, Hint: "add hosts to the pool, or lower its minSpare: slipway pool show " + orDefault(d.Pool.Name),
			Reason: fmt.Sprintf("%s: pool %s keeps %d spare and has %s", hopeless, orDefault(d.Pool.Name), s.minSpare, hosts(inside)),
		}
	case t.fit > 0:
		return Outlook{Fit: t.fit}
	case len(f.y.entries) == 0:
		return Outlook{IsHopeless: true, Code: NoMatchingHost, Reason: noHosts, Hint: noHostsHint}
	}
	return t.outlook(d, inside)
}

// hopeless begins each reason that no passing of time mends.
const hopeless = "no host of the inventory meets it, free or in use"

// CodeOf returns the code of a reason that an Outlook has given, "" for another text: reasons are stored, codes are not.
func CodeOf(reason string) Code {
	if reason == noHosts {
		return NoMatchingHost
	}
	rest, ok := strings.CutPrefix(reason, hopeless)
	if !ok {
		return ""
	}
	if nearest, _, _ := strings.Cut(rest, ";"); strings.Contains(nearest, " only "+domainMiss) {
		return NoMatchInFailureDomain
	}
	return NoMatchingHost
}

func (f *Forecast) pinned(d *Demand, s *shape, name string) Outlook {
	e := f.y.byName[name]
	if e == nil {
		return Outlook{}
	}
	out := Outlook{IsHopeless: true, Code: PinnedHostUnavailable, Hint: "name another host, or ask for less: slipway machine show NAME"}
	if c := s.outside(e); c != nil {
		out.Reason = "host " + name + ", which the machine names, " + c.phrase
		return out
	}
	all := s.misses(d, e)
	if len(all) == 0 {
		return Outlook{Fit: 1}
	}
	out.Reason = "host " + name + ", which the machine names, never meets it: it fails " + (&group{misses: all}).words()
	return out
}

// outside returns why a host is not for machines of this shape, whatever it is made of.
func (s *shape) outside(e *entry) *cause {
	for _, m := range s.pool {
		c := m.of(e)
		if isUnknown := c != nil && m.matcher != nil && len(m.matcher.Misses(e.subject)) == 0; c != nil && !isUnknown {
			return c
		}
	}
	for _, b := range s.barred {
		if all(b.pool, e) == nil {
			return b.no
		}
	}
	if s.isWalled && !slices.ContainsFunc(s.walls, func(b bar) bool { return all(b.pool, e) == nil }) {
		return outsideWalls
	}
	return nil
}

// misses returns all that a host lacks for a machine, in the order in which a person would ask.
func (s *shape) misses(d *Demand, e *entry) (list []miss) {
	if arch := hardware.Arch(&e.Host, e.Hardware); !runs(s.image.Arch, arch) {
		list = append(list, miss{What: "the architecture of the image", Asked: string(s.image.Arch)})
	}
	if have, want := hardware.Memory(&e.Host, e.Hardware), int64(s.image.MemoryMiB)<<20; have > 0 && have < want {
		list = append(list, miss{What: "the memory that the image needs", Asked: hardware.Bytes(want), Have: have, Has: hardware.MemoryText(have)})
	}
	if e.Hardware != nil && inventory.IsBelow(inventory.CPULevelOf(&e.Hardware.CPU), s.image.CPULevel) {
		list = append(list, miss{What: "the processor level that the image needs", Asked: string(s.image.CPULevel)})
	}
	for _, m := range s.filters {
		if m.matcher != nil {
			list = append(list, m.matcher.Misses(e.subject)...)
		}
	}
	for _, sel := range s.labels {
		if sel.memo.of(e) != nil {
			list = append(list, miss{What: "the selector " + sel.text})
		}
	}
	if c := s.untolerated(e); c != nil {
		list = append(list, miss{What: "the tolerations", Note: "it " + strings.TrimSuffix(c.phrase, ", which the machine does not tolerate")})
	}
	if s.disk != nil && e.Hardware != nil {
		if c := s.disk.of(e); c != nil {
			list = append(list, miss{What: "the root disk", Note: "it " + c.phrase})
		}
	}
	if p := &d.Machine.Placement; p.FailureDomain != "" && !p.IsDomainPreferred && !e.Host.Place.InDomain(p.FailureDomain) {
		list = append(list, miss{What: domainMiss + inventory.Clean(p.FailureDomain, 80)})
	}
	if slices.Contains(d.Machine.Avoid, e.Host.ID) {
		list = append(list, miss{What: "its record", Note: "this machine failed on it before"})
	}
	return list[:min(len(list), missesKept)]
}

// missesKept bounds what is remembered of one host.
const missesKept = 16

const domainMiss = "the failure domain "

// group is the hosts that fail the same things.
type group struct {
	n      int
	misses []miss // each with the most that one of the hosts has
}

// words is what a group fails: "only memory: 64 GiB asked, 32 GiB at most".
func (g *group) words() string {
	if len(g.misses) == 1 {
		m := &g.misses[0]
		if text := m.Detail(g.n > 1); text != "" {
			return "only " + m.What + ": " + text
		}
		return "only " + m.What
	}
	var parts []string
	for i := range g.misses {
		m := &g.misses[i]
		if text := m.Detail(g.n > 1); text != "" {
			parts = append(parts, m.What+" ("+text+")")
		} else {
			parts = append(parts, m.What)
		}
	}
	if over := len(parts) - missesShown; over > 0 {
		return strings.Join(parts[:missesShown], ", ") + fmt.Sprintf(" and %d more", over)
	}
	return strings.Join(parts[:len(parts)-1], ", ") + " and " + parts[len(parts)-1]
}

// The bounds of a reason; what is left out is counted.
const (
	groupsShown  = 3
	missesShown  = 4
	outsideShown = 2
	reasonLimit  = 1000
)

// tally counts the hosts of an inventory by what they fail.
type tally struct {
	fit     int
	outside map[string]int // by phrase
	groups  map[string]*group
}

func (t *tally) add(misses []miss) {
	if len(misses) == 0 {
		t.fit++
		return
	}
	var key strings.Builder
	for _, m := range misses {
		fmt.Fprintf(&key, "%s\x00%s\x00%s\x00", m.What, m.Asked, m.Note)
	}
	g := t.groups[key.String()]
	if g == nil {
		g = &group{misses: misses}
		t.groups[key.String()] = g
	}
	g.n++
	for i, m := range misses {
		if m.Have > g.misses[i].Have {
			g.misses[i].Have, g.misses[i].Has = m.Have, m.Has
		}
	}
}

// outlook puts into words that nothing fits. The hosts that fail the fewest things come first.
func (t *tally) outlook(d *Demand, inside int) Outlook {
	out := Outlook{IsHopeless: true, Code: NoMatchingHost, Hint: "add a host that meets it, or ask for less: slipway machine show NAME"}
	var parts []string
	shown := 0
	list := t.nearest()
	for _, g := range list[:min(len(list), groupsShown)] {
		verb := "fail"
		if g.n == 1 {
			verb = "fails"
		}
		parts = append(parts, hosts(g.n)+" "+verb+" "+g.words())
		shown += g.n
	}
	if len(list) > 0 && len(list[0].misses) == 1 && strings.HasPrefix(list[0].misses[0].What, domainMiss) {
		out.Code = NoMatchInFailureDomain
	}
	if rest := inside - shown; rest > 0 {
		parts = append(parts, hosts(rest)+" "+plural(rest, "fails")+" as much or more")
	}
	if inside == 0 {
		out.Hint = "label hosts so that the pool has them, or name another pool: slipway pool show " + orDefault(d.Pool.Name)
	}
	out.Reason = inventory.Clean(hopeless+": "+strings.Join(append(parts, t.elsewhere()...), "; "), reasonLimit)
	return out
}

// nearest are the groups in the order in which they are told: few things that are failed before many, then many hosts before few.
func (t *tally) nearest() []*group {
	return slices.SortedFunc(maps.Values(t.groups), func(a, b *group) int {
		return cmp.Or(len(a.misses)-len(b.misses), b.n-a.n, strings.Compare(a.words(), b.words()))
	})
}

// elsewhere counts the hosts that are not for the machine, by why.
func (t *tally) elsewhere() (parts []string) {
	phrases := slices.SortedFunc(maps.Keys(t.outside), func(a, b string) int {
		return cmp.Or(t.outside[b]-t.outside[a], strings.Compare(a, b))
	})
	rest := 0
	for i, p := range phrases {
		if i >= outsideShown {
			rest += t.outside[p]
			continue
		}
		parts = append(parts, hosts(t.outside[p])+" "+plural(t.outside[p], p))
	}
	if rest > 0 {
		parts = append(parts, hosts(rest)+" "+plural(rest, "is")+" in other pools")
	}
	return parts
}

func plural(n int, phrase string) string {
	if n == 1 {
		return phrase
	}
	return hardware.Plural(phrase)
}

func hosts(n int) string {
	if n == 1 {
		return "1 host"
	}
	return fmt.Sprintf("%d hosts", n)
}
