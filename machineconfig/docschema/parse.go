package docschema

import (
	"fmt"
	"strings"
	"unicode"
)

// Must reads a table; one that is wrong is a mistake of this program.
func Must(text string) *Schema {
	s, err := Parse(text)
	if err != nil {
		panic("docschema: " + err.Error())
	}
	return s
}

// Parse reads a table.
func Parse(text string) (*Schema, error) {
	s := &Schema{named: map[string]*kind{}}
	var definitions []string
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "":
		case line[0] == ' ' || line[0] == '\t':
			if len(definitions) == 0 {
				return nil, fmt.Errorf("%q continues nothing", strings.TrimSpace(line))
			}
			definitions[len(definitions)-1] += line
		default:
			definitions = append(definitions, line)
		}
	}
	for _, d := range definitions {
		name, body, ok := strings.Cut(d, "=")
		name = strings.TrimSpace(name)
		if !ok || s.named[name] != nil {
			return nil, fmt.Errorf("%q is no definition, or a second one", name)
		}
		p := &parser{text: body}
		k := p.union()
		if p.skip(); p.err == nil && p.text != "" {
			p.fail("the end")
		}
		if p.err != nil {
			return nil, fmt.Errorf("%s: %w", name, p.err)
		}
		s.named[name] = k
	}
	for name, k := range s.named {
		if err := s.known(k, 0); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return s, nil
}

// known reports a name that is not defined, and names that are each other.
func (s *Schema) known(k *kind, depth int) error {
	if k.form == nameForm {
		next := s.named[k.word]
		switch {
		case next == nil:
			return fmt.Errorf("there is no definition of %s", k.word)
		case next.form == nameForm && depth > len(s.named):
			return fmt.Errorf("%s is defined by itself", k.word)
		case next.form == nameForm:
			return s.known(next, depth+1)
		}
		return nil
	}
	parts := append([]*kind{}, k.either...)
	if k.item != nil {
		parts = append(parts, k.item)
	}
	for _, f := range k.fields {
		parts = append(parts, f.kind)
	}
	for _, part := range parts {
		if err := s.known(part, 0); err != nil {
			return err
		}
	}
	return nil
}

// parser reads a type.
type parser struct {
	text string
	err  error
}

func (p *parser) skip() { p.text = strings.TrimLeft(p.text, " \t\r\n") }

func (p *parser) fail(want string) {
	if p.err == nil {
		p.err = fmt.Errorf("want %s at %.20q", want, p.text)
	}
}

// take takes a sign, if it comes next.
func (p *parser) take(sign string) bool {
	p.skip()
	rest, ok := strings.CutPrefix(p.text, sign)
	if ok {
		p.text = rest
	}
	return ok
}

func (p *parser) union() *kind {
	first := p.one()
	if !p.take("|") {
		return first
	}
	u := &kind{form: unionForm, either: []*kind{first}}
	for p.err == nil {
		u.either = append(u.either, p.one())
		if !p.take("|") {
			break
		}
	}
	return u
}

var words = map[string]bool{"string": true, "integer": true, "number": true, "boolean": true, "null": true}

func (p *parser) one() *kind {
	switch {
	case p.err != nil:
		return &kind{}
	case p.take("["):
		k := &kind{form: listForm, item: p.union()}
		if !p.take("]") {
			p.fail("]")
		}
		p.bounds(k)
		return k
	case p.take("{"):
		return p.mapping()
	case p.take("'"):
		word, rest, ok := strings.Cut(p.text, "'")
		if !ok {
			p.fail("'")
		}
		p.text = rest
		return &kind{form: literalForm, word: word}
	}
	name := p.word()
	switch {
	case name == "any":
		return &kind{form: anyForm}
	case words[name]:
		k := &kind{form: scalarForm, word: name}
		p.bounds(k)
		return k
	case name == "":
		p.fail("a type")
	}
	return &kind{form: nameForm, word: name}
}

// word takes a name or a key.
func (p *parser) word() string {
	p.skip()
	i := strings.IndexFunc(p.text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-/.", r)
	})
	if i < 0 {
		i = len(p.text)
	}
	word := p.text[:i]
	p.text = p.text[i:]
	return word
}

func (p *parser) mapping() *kind {
	k := &kind{form: mapForm}
	for p.err == nil && !p.take("}") {
		switch {
		case p.take("..."):
			k.isOpen = true
		case p.take("*"):
			p.colon()
			k.item = p.union()
		case p.take("<"):
			if names, isOnly := p.names(); isOnly {
				k.only = append(k.only, names)
			} else {
				k.oneOf = append(k.oneOf, names)
			}
		default:
			f := field{key: p.word()}
			if f.key == "" {
				p.fail("a key")
			}
			f.isNeeded = p.take("!")
			p.colon()
			f.kind = p.union()
			k.fields = append(k.fields, f)
		}
		if p.take("}") {
			break
		}
		if !p.take(",") {
			p.fail(", or }")
		}
	}
	return k
}

func (p *parser) colon() {
	if !p.take(":") {
		p.fail(":")
	}
}

// names takes what is in <a | b> or <a ^ b>.
func (p *parser) names() (out []string, isOnly bool) {
	for p.err == nil {
		out = append(out, p.word())
		if p.take(">") {
			break
		}
		switch {
		case p.take("^"):
			isOnly = true
		case !p.take("|"):
			p.fail("|, ^ or >")
		}
	}
	return out, isOnly
}
