// Package allowance owns how much a machine may make the server store. It limits rows and bytes for each boot session, MAC
// and switch port, and for all unaccepted machines together. It never stores anything, and knows nothing of what is stored.
//
// Start reading at Book.Spend. Its memory is bounded, and each call costs the same.
package allowance

import (
	"sync"
	"time"
)

// Rate is how much may be spent at once, and how much comes back in an hour.
type Rate struct{ Burst, PerHour float64 }

// Limits are those of one payer.
type Limits struct{ Rows, Bytes Rate }

// Plan says how much each kind of sender may spend. Unaccepted machines pay from all of Session, MAC, Port and Strangers;
// known machines from KnownSession and KnownMAC.
type Plan struct {
	Session, MAC, Port, Strangers Limits
	KnownSession, KnownMAC        Limits
}

// Default fits 10,000 machines that are switched on for the first time: a machine that is listed and boots takes some 25 rows.
func Default() Plan {
	kib, mib := 1024.0, 1024.0*1024
	return Plan{
		Session:      Limits{Rate{300, 180}, Rate{256 * kib, 64 * kib}},
		MAC:          Limits{Rate{600, 360}, Rate{512 * kib, 128 * kib}},
		Port:         Limits{Rate{4000, 1800}, Rate{4 * mib, mib}},
		Strangers:    Limits{Rate{300_000, 7200}, Rate{128 * mib, 4 * mib}},
		KnownSession: Limits{Rate{2000, 3600}, Rate{4 * mib, 4 * mib}},
		KnownMAC:     Limits{Rate{6000, 3600}, Rate{16 * mib, 8 * mib}},
	}
}

// Who pays. Empty names pay nothing.
type Who struct {
	Session, MAC, Port string
	IsKnown            bool
}

// Book keeps what was spent.
type Book struct {
	mu      sync.Mutex
	plan    Plan
	most    int
	purses  map[payer]*purse
	crowd   purse // of all strangers
	sweptAt time.Time
}

type payer struct {
	kind kind
	name string
}

type kind uint8

const (
	bySession kind = iota
	byMAC
	byPort
	byKnownSession
	byKnownMAC
)

// purse is what a payer has left.
type purse struct {
	rows, bytes float64
	at          time.Time // of when that was so; zero: all
}

// pursesMost bounds the memory: some 2 MB.
const pursesMost = 16_384

// New returns a book in which nothing was spent.
func New(p Plan) *Book { return &Book{plan: p, most: pursesMost, purses: map[payer]*purse{}} }

// Spend takes rows and bytes from everybody who pays for them, or reports false and takes nothing.
func (b *Book) Spend(now time.Time, w Who, rows, bytes int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	var use [4]*purse
	n := 0
	add := func(p *purse, l Limits) bool {
		if p == nil {
			return true
		}
		p.fill(l, now)
		use[n] = p
		n++
		// Nothing is taken yet: a payer further on may refuse.
		return p.rows >= float64(rows) && p.bytes >= float64(bytes)
	}
	if w.IsKnown {
		if !add(b.purse(byKnownSession, w.Session, now), b.plan.KnownSession) || !add(b.purse(byKnownMAC, w.MAC, now), b.plan.KnownMAC) {
			return false
		}
	} else if !add(b.purse(bySession, w.Session, now), b.plan.Session) || !add(b.purse(byMAC, w.MAC, now), b.plan.MAC) ||
		!add(b.purse(byPort, w.Port, now), b.plan.Port) || !add(&b.crowd, b.plan.Strangers) {
		return false
	}
	for _, p := range use[:n] {
		p.rows -= float64(rows)
		p.bytes -= float64(bytes)
	}
	return true
}

// purse finds the purse of a payer; nil for nobody, and where there is no room for another: then all strangers pay together.
func (b *Book) purse(k kind, name string, now time.Time) *purse {
	if name == "" {
		return nil
	}
	key := payer{k, name}
	p := b.purses[key]
	if p == nil {
		if len(b.purses) >= b.most {
			b.sweep(now)
			if len(b.purses) >= b.most {
				return nil
			}
		}
		p = &purse{}
		b.purses[key] = p
	}
	return p
}

// sweep forgets the purses that are full again, at most once a second.
func (b *Book) sweep(now time.Time) {
	// A flood of invented MACs asks for a purse with each packet. Sweeping each time would cost the server its CPU.
	if now.Sub(b.sweptAt) < time.Second {
		return
	}
	b.sweptAt = now
	for key, p := range b.purses {
		l := b.limits(key.kind)
		if p.fill(l, now); p.rows >= l.Rows.Burst && p.bytes >= l.Bytes.Burst {
			delete(b.purses, key)
		}
	}
}

func (b *Book) limits(k kind) Limits {
	switch k {
	case bySession:
		return b.plan.Session
	case byMAC:
		return b.plan.MAC
	case byPort:
		return b.plan.Port
	case byKnownSession:
		return b.plan.KnownSession
	}
	return b.plan.KnownMAC
}

// fill adds what came back since the last time.
func (p *purse) fill(l Limits, now time.Time) {
	if p.at.IsZero() {
		p.rows, p.bytes, p.at = l.Rows.Burst, l.Bytes.Burst, now
		return
	}
	if hours := now.Sub(p.at).Hours(); hours > 0 {
		p.rows = min(p.rows+hours*l.Rows.PerHour, l.Rows.Burst)
		p.bytes = min(p.bytes+hours*l.Bytes.PerHour, l.Bytes.Burst)
		p.at = now
	}
}
