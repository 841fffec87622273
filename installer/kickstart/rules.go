package kickstart

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"slipway.dev/slipway/machineconfig/late"
)

//go:embed rules.table
var rulesText string

// rule is what a command wants; see rules.table.
type rule struct {
	name    string // words, one, some, atmost, needs, or value
	in      releases
	options []string // that it speaks of
	words   bounds
	values  []string // of an option
	anyCase bool
	isInt   bool
}

// bounds are the least and the most; a most of -1 is none.
type bounds struct{ least, most int }

func (b bounds) has(n int) bool { return n >= b.least && (b.most < 0 || n <= b.most) }

func (b bounds) String() string {
	switch {
	case b.most < 0:
		return fmt.Sprintf("%d or more", b.least)
	case b.least == b.most && b.least == 0:
		return "no"
	case b.least == b.most:
		return strconv.Itoa(b.least)
	}
	return fmt.Sprintf("%d to %d", b.least, b.most)
}

// rules is read once.
var rules = readRules(rulesText)

func readRules(text string) map[string][]rule {
	out := map[string][]rule{}
	name := ""
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 || line[0] == '#' {
			continue
		}
		if line[0] != ' ' {
			name, words = words[0], words[1:]
		}
		for _, word := range words {
			out[name] = append(out[name], readRule(word))
		}
	}
	return out
}

func readRule(word string) rule {
	if option, values, ok := strings.Cut(word, "="); ok {
		r := rule{name: "value", in: everywhere, options: []string{option}, words: bounds{0, -1}}
		if limits, isInt := strings.CutPrefix(values, "int"); isInt {
			r.isInt = true
			if limits != "" {
				r.words = boundsOf(strings.TrimPrefix(limits, ":"))
			} else {
				r.words.least = -1 << 31
			}
			return r
		}
		values, r.anyCase = strings.CutPrefix(values, "~")
		r.values = strings.Split(values, "|")
		return r
	}
	head, body, _ := strings.Cut(word, ":")
	r := rule{}
	r.name, r.in, _ = rangesOf(head)
	if r.name == "words" {
		limits, unless, isLimited := strings.Cut(body, "/")
		if r.words = boundsOf(limits); isLimited {
			r.options = strings.Split(unless, ",")
		}
		return r
	}
	r.options = strings.FieldsFunc(body, func(c rune) bool { return c == ',' || c == ':' })
	return r
}

func boundsOf(text string) bounds {
	least, most, _ := strings.Cut(text, "-")
	b := bounds{most: -1}
	b.least, _ = strconv.Atoi(least)
	if n, err := strconv.Atoi(most); err == nil {
		b.most = n
	}
	return b
}

// given is what the document gives to a command: the values of its options, and the words after them.
type given struct {
	options map[string]word
	words   []word
}

func (g given) has(option string) bool { _, ok := g.options[option]; return ok }

var intRE = regexp.MustCompile(`^\s*[-+]?[0-9]+(_[0-9]+)*\s*$`)

// rules checks a command against its rules. What it says stands at the word that is wrong, or at the command.
func (c *checker) rules(known *command, head word, g given) {
	if known.passed.has(c.at) {
		return // nothing of it is read
	}
	for _, r := range rules[known.name] {
		if !r.in.has(c.at) {
			continue
		}
		var there []string
		for _, o := range r.options {
			if g.has(o) {
				there = append(there, o)
			}
		}
		c.rule(r, known, head, g, there)
	}
	if known.name == "mount" && len(g.words) == 2 && !strings.HasPrefix(g.words[1].text, "/") && g.words[1].text != "none" && !late.HasMarker(g.words[1].text) {
		c.fail(g.words[1].line, g.words[1].column, "bad-value", "write a path, or none", "%s is no mount point", cut(g.words[1].text))
	}
}

func (c *checker) rule(r rule, known *command, head word, g given, there []string) {
	all := make([]string, 0, len(r.options))
	for _, o := range r.options {
		if k := known.find(o, c.at); k != nil && k.in.has(c.at) {
			all = append(all, "--"+o)
		}
	}
	list := strings.Join(all, ", ")
	switch {
	case r.name == "words" && len(there) == 0 && !r.words.has(len(g.words)):
		at := head
		if r.words.most >= 0 && len(g.words) > r.words.most {
			at = g.words[r.words.most]
		}
		c.fail(at.line, at.column, "words", c.wordsHint(r), "%s has %d words besides its options, and takes %s", known.name, len(g.words), r.words)
	case (r.name == "one" || r.name == "some") && len(there) == 0:
		c.fail(head.line, head.column, "missing", "add one of them", "%s has none of %s", known.name, list)
	case (r.name == "one" || r.name == "atmost") && len(there) > 1:
		at := g.options[there[1]]
		c.fail(at.line, at.column, "exclusive", "leave one of them out", "%s takes only one of %s", known.name, "--"+strings.Join(there, ", --"))
	case r.name == "needs" && len(there) > 0 && there[0] == r.options[0] && len(there) == 1:
		at := g.options[there[0]]
		c.fail(at.line, at.column, "missing", "add --"+r.options[1], "--%s of %s needs --%s", r.options[0], known.name, r.options[1])
	case r.name == "value" && len(there) == 1 && !known.find(r.options[0], c.at).passed.has(c.at):
		c.value(r, known, g.options[there[0]])
	}
}

func (c *checker) wordsHint(r rule) string {
	if r.words.most == 0 {
		return "write it as an option, or take it out"
	}
	return "write the words besides the options, in quotes where they hold blanks"
}

// value checks the value of an option.
func (c *checker) value(r rule, known *command, at word) {
	if late.HasMarker(at.text) {
		return
	}
	want := "a whole number"
	if r.isInt {
		n, err := strconv.Atoi(strings.ReplaceAll(strings.TrimSpace(at.text), "_", ""))
		if intRE.MatchString(at.text) && (err != nil || r.words.has(n)) {
			return
		}
		if r.words.least > -1<<31 {
			want = "a whole number of " + r.words.String()
		}
	} else {
		var values []string
		for _, v := range r.values {
			if name, in, _ := rangesOf(v); in.has(c.at) {
				values = append(values, name)
			}
		}
		text := at.text
		if r.anyCase {
			text = strings.ToLower(text)
		}
		if slices.Contains(values, text) {
			return
		}
		want = strings.Join(values, ", ")
	}
	c.fail(at.line, at.column, "bad-value", "write "+want, "--%s of %s is %q, and takes %s", r.options[0], known.name, cut(at.text), want)
}
