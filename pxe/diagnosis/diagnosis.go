// Package diagnosis owns the answer to "why is it not booting?". Its rules read a machine's boot, on the wire and in its
// timeline, and rank the possible causes. It never reads a clock, a socket or the store, and never changes anything.
//
// Start reading at Case, which is what callers know, and Rule. A rule is a function of a story: the case with its latest attempt on the
// wire, sorted by who said what. The rules of a stage of the boot are in one file, in the order of Rules: before, offer, identity, loader,
// http, system. Explain asks all of them.
package diagnosis

import (
	"cmp"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
)

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
