package diagnosis

import (
	"fmt"
	"slices"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe/trace"
)

// Rule is one known reason for which machines do not boot.
type Rule struct {
	Code  string
	Title string // in words; what a finding says unless it says more
	Hint  string
	find  func(s *story) finding
}

// finding is what a rule found; a weight of 0 is nothing.
type finding struct {
	weight   int
	sentence string // instead of the rule's title
	hint     string // instead of the rule's hint
	evidence []Evidence
}

// The weights. What was seen directly goes before what follows from it, and that before what is only common.
const (
	certain  = 100
	strong   = 80
	likely   = 60
	possible = 40
	slow     = 20
)

// Evidence is something that was seen.
type Evidence struct {
	At   time.Time `json:"at,omitzero"`
	Text string    `json:"text"`
}

// seen makes evidence of packets.
func seen(packets ...trace.Packet) []Evidence {
	var out []Evidence
	for _, p := range packets {
		out = append(out, Evidence{At: p.At, Text: p.String()})
	}
	return out
}

// told makes evidence of events.
func told(events ...inventory.Event) []Evidence {
	var out []Evidence
	for _, e := range events {
		out = append(out, Evidence{At: e.At, Text: e.Kind + ": " + e.Detail})
	}
	return out
}

func said(format string, args ...any) []Evidence {
	return []Evidence{{Text: fmt.Sprintf(format, args...)}}
}

func join(parts ...[]Evidence) []Evidence {
	all := slices.Concat(parts...)
	slices.SortStableFunc(all, func(a, b Evidence) int { return a.At.Compare(b.At) })
	return all
}
