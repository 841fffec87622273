package history

import (
	"slices"
	"sync"
	"time"
)

const (
	paceFor   = time.Minute // how long an answer is good
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
