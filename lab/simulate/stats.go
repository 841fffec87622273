package simulate

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// StepStat is how long one step took over all machines, as the machines lived through it, retries included.
type StepStat struct {
	Step    string        `json:"step"`
	N       int           `json:"n"`
	Retries int           `json:"retries"`
	P50     time.Duration `json:"p50ns"`
	P90     time.Duration `json:"p90ns"`
	P99     time.Duration `json:"p99ns"`
	Max     time.Duration `json:"maxns"`
}

// Failure is a reason why boots failed, how often, and one machine it happened to.
type Failure struct {
	Reason  string `json:"reason"`
	N       int    `json:"n"`
	Example string `json:"example"` // MAC
}

// stats collects what all machines live through.
type stats struct {
	mu       sync.Mutex
	steps    map[string][]time.Duration
	retries  map[string]int
	counts   map[string]int
	failures map[string]*Failure
	files    map[string][sha256.Size]byte
	second   map[string]bool // loaders that the second client got, or gets now
	sum      int64
}

func newStats() *stats {
	return &stats{
		steps: map[string][]time.Duration{}, retries: map[string]int{}, counts: map[string]int{},
		failures: map[string]*Failure{}, files: map[string][sha256.Size]byte{}, second: map[string]bool{},
	}
}

func (s *stats) took(step string, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps[step] = append(s.steps[step], d)
}

func (s *stats) retried(step string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retries[step]++
}

func (s *stats) count(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[what]++
}

func (s *stats) bytes(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sum += n
}

// maxReasons bounds the list of failures: reasons may carry a machine's own address.
const maxReasons = 200

// fail notes a failed boot. What differs from machine to machine is left out of the reason, so that equal reasons add up.
func (s *stats) fail(id Identity, reason string) {
	reason = sessionPart.ReplaceAllString(reason, "/boot/*/")
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.failures[reason]
	if f == nil {
		if len(s.failures) >= maxReasons {
			reason = "others"
		}
		if f = s.failures[reason]; f == nil {
			f = &Failure{Reason: reason, Example: macText(id.MAC, ":")}
			s.failures[reason] = f
		}
	}
	f.N++
}

// sameFile checks that a loader has the same bytes for every machine and over every protocol.
func (s *stats) sameFile(name string, digest [sha256.Size]byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, ok := s.files[name]; ok && old != digest {
		return fmt.Errorf("%s has the digest %s here and %s for others", name, hex.EncodeToString(digest[:8]), hex.EncodeToString(old[:8]))
	}
	s.files[name] = digest
	return nil
}

// stepOrder is the order of steps in a summary.
var stepOrder = [...]string{
	"offer", "ack", "loader", "ipxe offer", "ipxe ack", "router", "script", "file", "os offer", "os ack", "report", "renewal",
	"agent report", "agent inspect", "agent burn-in", "agent wipe", "agent write", "boot",
}

func (s *stats) summary() (steps []StepStat, failures []Failure, counts map[string]int, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range stepOrder {
		d := slices.Sorted(slices.Values(s.steps[name]))
		if len(d) == 0 && s.retries[name] == 0 {
			continue
		}
		steps = append(steps, StepStat{
			Step: name, N: len(d), Retries: s.retries[name],
			P50: percentile(d, .5), P90: percentile(d, .9), P99: percentile(d, .99), Max: percentile(d, 1),
		})
	}
	for _, f := range s.failures {
		failures = append(failures, *f)
	}
	slices.SortFunc(failures, func(a, b Failure) int { return cmp.Or(b.N-a.N, strings.Compare(a.Reason, b.Reason)) })
	return steps, failures, maps.Clone(s.counts), s.sum
}

// percentile takes the value at q (0 to 1) of sorted durations; 0 when there are none.
func percentile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(float64(len(sorted))*q))]
}

// sessionPart is what differs in the URLs of different boots.
var sessionPart = regexp.MustCompile(`/boot/[0-9a-f]{32}/`)

// Lease is an address as a machine was given it with an ACK.
type Lease struct {
	MAC     string     `json:"mac"`
	Address netip.Addr `json:"address"`
	At      time.Time  `json:"at"`
	Until   time.Time  `json:"until"`
}

// holders remembers who was given which address, and notices one that was given twice.
type holders struct {
	mu       sync.Mutex
	by       map[netip.Addr]Lease
	breaches []string
}

func newHolders() *holders { return &holders{by: map[netip.Addr]Lease{}} }

// took notes an acknowledged lease. Two machines that hold one address at the same time are the worst that a DHCP
// server can do.
func (h *holders) took(l Lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if old, ok := h.by[l.Address]; ok && old.MAC != l.MAC && old.Until.After(l.At) {
		h.breaches = append(h.breaches, fmt.Sprintf("%s was given to %s while %s holds it until %s",
			l.Address, l.MAC, old.MAC, old.Until.Format(time.TimeOnly)))
	}
	h.by[l.Address] = l
}

func (h *holders) all() (leases []Lease, breaches []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Values(h.by)), h.breaches
}
