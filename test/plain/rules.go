// Package plain checks that what people read is plain English: docs, the web UI, and the texts in Go code. It finds the patterns
// that make a reader start a sentence again. docs/glossary.md lists the words to use.
package plain

import (
	"regexp"
	"strings"
)

// maxWords is the length of the longest sentence that a reader takes in at once.
const maxWords = 25

// rule is one pattern that plain English avoids.
type rule struct {
	name    string
	pattern *regexp.Regexp
	advice  string
}

// rules are matched against one sentence at a time, in which each piece of code is the word CODE.
var rules = []rule{
	{
		"clause-as-subject", regexp.MustCompile(`^(Who|What|Whoever|Whatever|Whichever|That which)( \S+){3,}[.:;]$`),
		"name the actor first: \"A user without a role can ...\", not \"Who has no role may ...\"",
	},
	{
		"clause-as-subject", regexp.MustCompile(`[;:] (and |but )?(who|what|whoever|whatever) [^,;:?]+ (is|are|was|may|has|gets|can|stays|counts|goes)\b`),
		"name the actor first: \"a user without a role can ...\", not \"who has no role may ...\"",
	},
	{
		"passive", regexp.MustCompile(`(?i)\b(is|are|was|were|be|been|being) (not |never |only |also |then |first |once )?(told|asked|said|heard|looked|spoken|thought|meant)\b`),
		"say who does it: \"Slipway asks the controller\"",
	},
	{
		"private-word", regexp.MustCompile(`(?i)\b(in vain|at hand|look(s|ed|ing)? over|looked at|(that|what) is over|says? so|said so|all the same|whoever|anew|mend(s|ed|ing)?|comes? off|beside|roads?|room for|at the most|for ever|stands? (in|there|beside|still))\b`),
		"use the standard word; docs/glossary.md has them",
	},
	{
		"private-word", regexp.MustCompile(`(?i)(^|[^-])\bdoors?\b`),
		"say listener, port or API",
	},
	{
		"private-word", regexp.MustCompile(`(?i)(^|[^-/_])\bstrangers?\b`),
		"say unaccepted machine",
	},
}

// finding is one place that is not plain.
type finding struct {
	where, rule, sentence, advice string
}

// check judges one text: a paragraph, a cell of a table, a label, a message.
func check(where, text string) []finding {
	var found []finding
	for _, s := range sentences(text) {
		if n := len(strings.Fields(s)); n > maxWords {
			found = append(found, finding{where, "long-sentence", s, "at most 25 words"})
		}
		for _, r := range rules {
			if r.pattern.MatchString(s) {
				found = append(found, finding{where, r.name, s, r.advice})
			}
		}
	}
	return found
}

var (
	sentenceEnd = regexp.MustCompile(`[.!?]["')*]* +`)
	abbreviated = regexp.MustCompile(`(?i)\b(e\.g|i\.e|etc|vs|no)\.$`)
)

// sentences splits a text at its full stops.
func sentences(text string) []string {
	text = strings.Join(strings.Fields(text), " ")
	var all []string
	begin := 0
	for _, m := range sentenceEnd.FindAllStringIndex(text, -1) {
		s := strings.TrimSpace(text[begin:m[1]])
		if abbreviated.MatchString(s) {
			continue
		}
		all = append(all, s)
		begin = m[1]
	}
	if s := strings.TrimSpace(text[begin:]); s != "" {
		all = append(all, s)
	}
	return all
}
