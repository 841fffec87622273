// Package diagnosis owns the answer to "why is it not booting?". Its rules read a machine's boot, on the wire and in its
// timeline, and rank the possible causes. It never reads a clock, a socket or the store, and never changes anything.
//
// Start reading at Explain; the rules are in Rules, in the order of a boot.
package diagnosis

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/trace"
)

// Case is what is known of a machine that should boot. Fields that are not known stay empty.
type Case struct {
	Now      time.Time
	Packets  []trace.Packet // of the port that it boots from, oldest first
	Notes    []trace.Note   // why packets of it got no answer
	Events   []inventory.Event
	Session  inventory.BootSession // its latest
	Ours     []netip.Addr          // our addresses
	BootPort int

	Host     *inventory.Host // nil for a machine that is not listed
	Subnet   *inventory.Subnet
	Decision pxe.Decision
	Image    *inventory.Image
	Issues   []inventory.Issue // open, of the host
	// IsLate says that the next step of the boot or of the operation is late.
	IsLate bool
	// Operation is the running operation of the host, or else its last one; zero if there was none.
	Operation inventory.Operation
	// WantsNetboot says that an operation waits for a network boot of the host. PowerOnAt is when the host was last
	// switched on for it.
	WantsNetboot bool
	PowerOnAt    time.Time
	OtherPorts   []Port // other ports of the host that were heard lately
}

// Port is another network port of the host.
type Port struct {
	MAC    inventory.MAC
	LastAt time.Time
}

// Evidence is something that was seen.
type Evidence struct {
	At   time.Time `json:"at,omitzero"`
	Text string    `json:"text"`
}

// Cause is what may have stopped a boot.
type Cause struct {
	Code     string     `json:"code" doc:"Of the rule; see docs/diagnosis.md"`
	Rank     int        `json:"rank" doc:"1 is the likeliest"`
	Sentence string     `json:"sentence"`
	Hint     string     `json:"hint" doc:"What to do"`
	Doc      string     `json:"doc" doc:"Where the documentation says more"`
	Evidence []Evidence `json:"evidence" doc:"What was seen"`
	Weight   int        `json:"weight" doc:"How sure: 100 when it was seen directly, 20 for what only makes a boot slow"`
	// Certainty separates the one root cause from guesses.
	Certainty Certainty `json:"certainty" enum:"cause,guess,slow" doc:"cause: what stops the boot, one at most; guess: what may also explain it; slow: what only makes a boot slow"`
}

// Certainty says how sure a cause is, for readers.
type Certainty string

// The certainties.
const (
	RootCause Certainty = "cause" // it was seen or recorded, and what else was seen may follow from it
	Guess     Certainty = "guess"
	SlowsDown Certainty = "slow"
)

// certaintyOf judges a cause by its place among all: only the first can be the root, and only when it follows from what was seen.
func certaintyOf(rank, weight int) Certainty {
	switch {
	case weight <= slow:
		return SlowsDown
	case rank == 1 && weight >= strong:
		return RootCause
	}
	return Guess
}

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

// evidenceAtMost bounds what a cause shows.
const evidenceAtMost = 6

// Rules returns the rules in the order of a boot.
func Rules() []Rule {
	return slices.Concat(decisionRules(), silenceRules(), addressRules(), offerRules(), identityRules(), fetchRules(), tftpRules(), loaderRules(), scriptRules(), httpRules(), systemRules(), loopRules())
}

// Explain ranks what may have stopped a boot, the likeliest first; nothing when nothing is wrong. It is total. Callers
// first ask for the Trouble: if nothing is late and nothing has failed, there is nothing to explain.
func Explain(c Case) []Cause {
	if c.Session.Outcome == inventory.OutcomeArrived {
		return nil
	}
	s := newStory(&c)
	var causes []Cause
	for _, r := range Rules() {
		f := r.find(s)
		if f.weight == 0 {
			continue
		}
		if len(f.evidence) > evidenceAtMost {
			f.evidence = append(f.evidence[:2:2], f.evidence[len(f.evidence)-evidenceAtMost+2:]...)
		}
		causes = append(causes, Cause{
			Code: r.Code, Sentence: cmp.Or(f.sentence, r.Title), Hint: cmp.Or(f.hint, c.named(r.Hint)), Doc: "diagnosis.md#" + r.Code,
			Evidence: append([]Evidence{}, f.evidence...), Weight: f.weight,
		})
	}
	slices.SortStableFunc(causes, func(a, b Cause) int { return b.Weight - a.Weight })
	for i := range causes {
		causes[i].Rank, causes[i].Certainty = i+1, certaintyOf(i+1, causes[i].Weight)
	}
	return causes
}

// named puts the names of the case into a rule's hint, so that a command in it is ready to be used. What a case does not know
// stays a word in capitals.
func (c *Case) named(hint string) string {
	if c.Host != nil {
		hint = strings.ReplaceAll(hint, " HOST", " "+c.Host.Name)
	}
	if c.Subnet != nil {
		hint = strings.ReplaceAll(hint, " SUBNET", " "+c.Subnet.Name)
	}
	return hint
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
