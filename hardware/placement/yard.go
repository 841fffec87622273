package placement

import (
	"cmp"
	"encoding/json"
	"hash/fnv"
	"slices"
	"strings"

	"slipway.dev/slipway/hardware"
	"slipway.dev/slipway/inventory"
)

// yard is all candidates during one allocation, with everything that was found out about them.
type yard struct {
	entries []*entry // by host ID
	byName  map[string]*entry
	shapes  map[string]*shape
	memos   map[string]*memo
	pools   map[string]*pool
	keys    map[string]bool // reuse keys of all hosts, free or not
}

// entry is one candidate.
type entry struct {
	*Candidate
	n       int // place in yard.entries
	subject *hardware.Subject
	hash    uint64
	base    *cause // what keeps it from every machine
	isTaken bool
}

// memo remembers the answers to one question by entry.n; nil has no answer yet, fits is a yes.
type memo struct {
	ask     func(*entry) *cause
	answers []*cause
	matcher *hardware.Matcher // of requirements
}

// fits is a memo's mark for a yes; it never leaves memo.of.
var fits = &cause{}

// of returns nil when the entry fits.
func (m *memo) of(e *entry) *cause {
	a := m.answers[e.n]
	if a == nil {
		if a = m.ask(e); a == nil {
			a = fits
		}
		m.answers[e.n] = a
	}
	if a == fits {
		return nil
	}
	return a
}

// pool counts the hosts of a pool that are still free.
type pool struct {
	isMember []bool
	freeN    int
}

func newYard(candidates []Candidate) *yard {
	y := &yard{
		byName: map[string]*entry{}, shapes: map[string]*shape{}, memos: map[string]*memo{}, pools: map[string]*pool{},
		keys: map[string]bool{},
	}
	order := make([]*Candidate, len(candidates))
	for i := range candidates {
		order[i] = &candidates[i]
	}
	slices.SortFunc(order, func(a, b *Candidate) int {
		return cmp.Or(strings.Compare(string(a.Host.ID), string(b.Host.ID)), cmp.Compare(b.Host.Version, a.Host.Version))
	})
	block := make([]entry, len(order))
	for _, c := range order {
		if n := len(y.entries); n > 0 && y.entries[n-1].Host.ID == c.Host.ID {
			continue // an older reading of the same host
		}
		e := &block[len(y.entries)]
		*e = entry{
			Candidate: c, n: len(y.entries), subject: hardware.NewSubject(&c.Host, c.Hardware), hash: hash(string(c.Host.ID)), base: base(c),
		}
		y.entries = append(y.entries, e)
		y.byName[c.Host.Name] = e
		if k := c.Host.ReuseKey; k != "" {
			y.keys[k] = true
		}
	}
	return y
}

// hash spreads names evenly; FNV is the same in every process and version.
func hash(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s))
	return h.Sum64()
}

// mix makes an even number of two (the finalizer of splitmix64), so that machines do not all prefer the same hosts.
func mix(a, b uint64) uint64 {
	z := a ^ b*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// take removes a host from what is free.
func (y *yard) take(e *entry) {
	e.isTaken = true
	for _, p := range y.pools {
		if p.isMember[e.n] {
			p.freeN--
		}
	}
}

// memo returns the memory for a question; the key must say all that the answer depends on.
func (y *yard) memo(key string, compile func() (func(*entry) *cause, error)) (*memo, error) {
	if m, ok := y.memos[key]; ok {
		return m, nil
	}
	ask, err := compile()
	if err != nil {
		return nil, err
	}
	m := &memo{ask: ask, answers: make([]*cause, len(y.entries))}
	y.memos[key] = m
	return m, nil
}

// selector returns the memory for a selector; no is what those get that do not match.
func (y *yard) selector(text string, no *cause) (*memo, error) {
	return y.memo("selector\x00"+text+"\x00"+no.phrase, func() (func(*entry) *cause, error) {
		sel, err := inventory.ParseSelector(text)
		if err != nil {
			return nil, err
		}
		return func(e *entry) *cause {
			if len(sel) == 0 || sel.Matches(&e.Host) {
				return nil
			}
			return no
		}, nil
	})
}

// costlyN is on how many hosts an expression may exceed its cost before it is asked of no other one.
const costlyN = 16

// requirements returns the memory for requirements.
func (y *yard) requirements(r inventory.HardwareRequirements) (*memo, error) {
	key, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	var made *hardware.Matcher
	asked, err := y.memo("requirements\x00"+string(key), func() (func(*entry) *cause, error) {
		m, err := hardware.NewMatcher(r)
		if err != nil {
			return nil, err
		}
		made = m
		costly, causes := 0, map[string]*cause{}
		return func(e *entry) *cause {
			ok, why := false, hardware.TooCostly
			if costly < costlyN {
				ok, why = m.Meets(e.subject)
			}
			if ok {
				return nil
			}
			if why == hardware.TooCostly {
				costly++
			}
			c := causes[why]
			if c == nil {
				c = &cause{phrase: why, hint: "compare with: slipway host hardware NAME"}
				causes[why] = c
			}
			return c
		}, nil
	})
	if made != nil {
		asked.matcher = made
	}
	return asked, err
}

// poolOf counts a pool at the first question about it.
func (y *yard) poolOf(key string, isMember func(*entry) bool) *pool {
	if p, ok := y.pools[key]; ok {
		return p
	}
	p := &pool{isMember: make([]bool, len(y.entries))}
	for i, e := range y.entries {
		if p.isMember[i] = e.base == nil && isMember(e); p.isMember[i] && !e.isTaken {
			p.freeN++
		}
	}
	y.pools[key] = p
	return p
}
