package kickstart

import (
	_ "embed"
	"slices"
	"strconv"
	"strings"
)

//go:embed commands.table
var tableText string

// command is a command, or the header of a section, that Anaconda knows.
type command struct {
	name       string
	in, passed releases
	takesAll   bool
	options    []option
}

type option struct {
	name       string
	hasValue   bool
	isNeeded   bool
	in, passed releases
}

// releases are ranges of releases; nil is none.
type releases []span

type span struct {
	isFedora    bool
	first, last int
}

// release is what installs: a major release of Enterprise Linux, or of Fedora.
type release struct {
	isFedora bool
	n        int
}

// The oldest and newest releases of the table.
const (
	oldestEL, newestEL         = 7, 10
	oldestFedora, newestFedora = 38, 44
)

// releaseOf takes a release that is not in the table for the nearest that is.
func releaseOf(os string, n int) release {
	if os == "fedora" {
		return release{true, min(max(n, oldestFedora), newestFedora)}
	}
	return release{false, min(max(n, oldestEL), newestEL)}
}

func (r releases) has(at release) bool {
	return slices.ContainsFunc(r, func(s span) bool { return s.isFedora == at.isFedora && s.first <= at.n && at.n <= s.last })
}

var everywhere = releases{{false, oldestEL, newestEL}, {true, oldestFedora, newestFedora}}

// table is read once.
var table = readTable(tableText)

// readTable reads the table; a mistake in it is one of this program.
func readTable(text string) map[string]*command {
	out := map[string]*command{}
	var c *command
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		if line[0] != ' ' {
			c = &command{}
			c.name, c.in, c.passed = rangesOf(words[0])
			out[c.name] = c
			words = words[1:]
		}
		for _, word := range words {
			if word == "..." {
				c.takesAll = true
				continue
			}
			var o option
			o.name, o.in, o.passed = rangesOf(word)
			o.name, o.isNeeded = strings.CutSuffix(o.name, "*")
			var isFlag bool
			o.name, isFlag = strings.CutSuffix(o.name, "!")
			o.hasValue = !isFlag
			c.options = append(c.options, o)
		}
	}
	return out
}

// rangesOf reads NAME@RELEASES~RELEASES.
func rangesOf(word string) (name string, in, passed releases) {
	word, warned, isWarned := strings.Cut(word, "~")
	name, known, isLimited := strings.Cut(word, "@")
	in = everywhere
	if isLimited {
		in = spans(known)
	}
	if isWarned {
		passed = spans(warned)
	}
	return name, in, passed
}

func spans(text string) (out releases) {
	if text == "" {
		return everywhere
	}
	for part := range strings.SplitSeq(text, ",") {
		s := span{false, oldestEL, newestEL}
		numbers, isEL := strings.CutPrefix(part, "el")
		if !isEL {
			s = span{true, oldestFedora, newestFedora}
			numbers = strings.TrimPrefix(part, "f")
		}
		first, last, isRange := strings.Cut(numbers, "-")
		if n, err := strconv.Atoi(first); err == nil {
			s.first = n
			if !isRange {
				s.last = n
			}
		}
		if n, err := strconv.Atoi(last); err == nil {
			s.last = n
		}
		out = append(out, s)
	}
	return out
}

// find returns the option of that name, or the one that it is the beginning of, as Anaconda reads it.
func (c *command) find(name string, at release) *option {
	var found []*option
	for i := range c.options {
		o := &c.options[i]
		if o.name == name {
			return o
		}
		if o.in.has(at) && strings.HasPrefix(o.name, name) {
			found = append(found, o)
		}
	}
	if len(found) == 1 {
		return found[0]
	}
	return nil
}

// names returns the commands or the sections that a release knows, sorted.
func names(at release, areSections bool) (out []string) {
	for name, c := range table {
		if c.in.has(at) && strings.HasPrefix(name, "%") == areSections {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
