package history

import (
	"slices"
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
)

const (
	// paceSamples is how many boots or operations the usual time of a step comes from.
	paceSamples = 9
	// paceLook bounds how far back Slipway looks for them, and paceFor how long an answer is good.
	paceLook  = 200
	paceFor   = time.Minute
	paceKinds = 1024
)

// pace remembers how long steps usually take. Durations say nothing of whose hosts they come from.
type pace struct {
	mu    sync.Mutex
	known map[string]paced
}

type paced struct {
	at   time.Time
	took map[string]usual
}

// usual is the median of the times that a step took.
type usual struct {
	seconds float64
	n       int
}

// paceKey is what has the same pace: the same on the same model and image.
func paceKey(h inventory.Host, g *group) string {
	what := g.Title
	if g.Kind == "boot" {
		what = g.session.Boot
	}
	return g.Kind + "\x00" + what + "\x00" + g.Image + "\x00" + h.Manufacturer + "\x00" + h.Product
}

// usual returns the medians for a key, from look when they are not known or old.
func (p *pace) usual(key string, now time.Time, look func() (map[string][]float64, error)) (map[string]usual, error) {
	p.mu.Lock()
	got, ok := p.known[key]
	p.mu.Unlock()
	if ok && now.Sub(got.at) < paceFor {
		return got.took, nil
	}
	times, err := look()
	if err != nil {
		return nil, err
	}
	took := map[string]usual{}
	for step, t := range times {
		took[step] = usual{median(t), len(t)}
	}
	if len(took) == 0 {
		return took, nil // the first of its kind may end at any moment, and the second is to be measured against it
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil || len(p.known) >= paceKinds {
		p.known = map[string]paced{}
	}
	p.known[key] = paced{now, took}
	return took, nil
}

// median returns the middle of some numbers, the mean of the middle two when their count is even, 0 for none.
func median(of []float64) float64 {
	if len(of) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(of))
	mid := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[mid]
	}
	return (sorted[mid-1] + sorted[mid]) / 2
}

// samples collects how long the steps of the latest of the same kind took, that ended well, on the same model and image.
func samples(tx inventory.Tx, h inventory.Host, g *group) (map[string][]float64, error) {
	alike, err := alikeOf(tx, h, g)
	if err != nil {
		return nil, err
	}
	out := map[string][]float64{}
	for i := range alike {
		steps, err := stepsOf(tx, &alike[i])
		if err != nil {
			return nil, err
		}
		for _, s := range steps {
			if s.State == "done" && s.TryN == 0 && s.Step != waits.step && !s.hasWaited {
				out[s.Step] = append(out[s.Step], s.EndedAt.Sub(s.StartedAt).Seconds())
			}
		}
	}
	return out, nil
}

// alikeOf returns the latest groups that a group can be compared with.
func alikeOf(tx inventory.Tx, h inventory.Host, g *group) (alike []group, err error) {
	models := map[inventory.HostID]bool{h.ID: true}
	isModel := func(id inventory.HostID) bool {
		is, known := models[id]
		if !known {
			other, err := tx.FindHost(id)
			is = err == nil && other.Manufacturer == h.Manufacturer && other.Product == h.Product
			models[id] = is
		}
		return is
	}
	if g.Kind == "boot" {
		rows, err := tx.ListSessions("", inventory.Page{Limit: paceLook})
		for _, b := range rows {
			isGood := b.Outcome == inventory.OutcomeArrived || b.Outcome == inventory.OutcomeDisk || b.Outcome == inventory.OutcomeRefused
			// Until it is decided, a boot is like every other of the model.
			isAlike := g.session.Boot == "" || b.Boot == g.session.Boot && b.Image == g.Image
			if len(alike) < paceSamples && isGood && b.ID != g.session.ID && isAlike && isModel(b.HostID) {
				alike = append(alike, group{TimelineGroup: bootGroup(b), session: b})
			}
		}
		return alike, err
	}
	rows, err := tx.ListOperations(inventory.OperationFilter{Kind: g.operation.Kind}, inventory.Page{Limit: paceLook})
	for _, o := range rows {
		if len(alike) < paceSamples && o.State == inventory.OpDone && o.ID != g.ID && operationGroup(o).Image == g.Image && isModel(o.HostID) {
			alike = append(alike, group{TimelineGroup: operationGroup(o), operation: o})
		}
	}
	return alike, err
}
