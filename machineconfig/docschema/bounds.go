package docschema

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// bound is what a table says of a value besides its type.
type bound struct {
	least, most *float64       // a number, the letters of a text, the items of a list
	pattern     *regexp.Regexp // of a text
	about       string         // what the pattern stands for, to people
}

// Loose returns the table without its bounds and patterns, for a document whose values are not known yet.
func (s *Schema) Loose() *Schema { return &Schema{named: s.named, isLoose: true, IsOpaque: s.IsOpaque} }

// isIn reports whether a value keeps the bounds of its type. What cannot be measured keeps them.
func (s *Schema) isIn(n *yaml.Node, k *kind) bool {
	b := k.bound
	if b == nil || s.isLoose || n.Kind == yaml.ScalarNode && s.IsOpaque != nil && s.IsOpaque(n.Value) {
		return true
	}
	size := math.NaN()
	switch k.form {
	case listForm:
		size = float64(len(n.Content))
	case scalarForm:
		if k.word == "string" {
			size = float64(utf8.RuneCountInString(n.Value))
		} else if v, err := strconv.ParseFloat(strings.ReplaceAll(n.Value, "_", ""), 64); err == nil && !strings.HasPrefix(strings.TrimLeft(n.Value, "+-"), "0") || n.Value == "0" {
			size = v
		}
	}
	if b.least != nil && size < *b.least || b.most != nil && size > *b.most {
		return false
	}
	return b.pattern == nil || k.word != "string" || b.pattern.MatchString(n.Value)
}

// outside reports a value that does not keep the bounds of any of the types that it may have.
func (c *checker) outside(at, n *yaml.Node, all []*kind, path string) {
	var wants []string
	for _, k := range all {
		wants = append(wants, k.bound.describe(k))
	}
	want := strings.Join(wants, " or ")
	c.add(at, Odd, "bad-value", "write "+want, "%sis %s, and the tool reads %s there", said(path), amount(n), want)
}

func amount(n *yaml.Node) string {
	if n.Kind == yaml.SequenceNode {
		return fmt.Sprintf("a list of %d", len(n.Content))
	}
	return got(n)
}

func (b *bound) describe(k *kind) string {
	if b == nil {
		return describe(k)
	}
	what, of := describe(k), " of "
	if k.word == "string" {
		of = " with a length of "
	}
	if b.about != "" {
		return b.about
	}
	switch {
	case b.least != nil && b.most != nil && *b.least == *b.most:
		return fmt.Sprintf("%s%s%g", what, of, *b.least)
	case b.least != nil && b.most != nil:
		return fmt.Sprintf("%s%s%g to %g", what, of, *b.least, *b.most)
	case b.least != nil:
		return fmt.Sprintf("%s%s%g or more", what, of, *b.least)
	case b.most != nil:
		return fmt.Sprintf("%s%s%g or less", what, of, *b.most)
	}
	return what + " like " + b.pattern.String()
}

// bounds takes what may follow a type: (LEAST..MOST), a pattern between ~, and in quotes what that is called.
func (p *parser) bounds(k *kind) {
	b := &bound{}
	if p.take("(") {
		least, rest, ok := strings.Cut(p.text, "..")
		most, rest, closed := strings.Cut(rest, ")")
		if !ok || !closed {
			p.fail("(LEAST..MOST)")
			return
		}
		p.text = rest
		b.least, b.most = p.number(least), p.number(most)
	}
	if p.take("~") {
		text, rest, ok := strings.Cut(p.text, "~")
		re, err := regexp.Compile(text)
		if !ok || err != nil || k.word != "string" {
			p.fail("a pattern of a string between ~")
			return
		}
		p.text, b.pattern = rest, re
		if p.take("'") {
			about, rest, ok := strings.Cut(p.text, "'")
			if !ok {
				p.fail("'")
			}
			p.text, b.about = rest, about
		}
	}
	if b.least != nil || b.most != nil || b.pattern != nil {
		k.bound = b
	}
}

func (p *parser) number(text string) *float64 {
	if text = strings.TrimSpace(text); text == "" {
		return nil
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		p.fail("a number")
	}
	return &n
}
