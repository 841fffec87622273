package pxe

import (
	"regexp"
	"strings"

	"slipway.dev/slipway/inventory"
)

// How iPXE reads a script, which decides what text may be in one. A line ends at a line feed, unless a backslash
// stands before it. The line is cut at white space into words; there are no quotes. A word that is ||, && or ; ends
// the command, a word that begins with # the line. Only then is ${name} replaced inside each word, again and again
// until none is left, so a value cannot add words, but it can name another setting. The same holds for every version
// from 2019 to 2.0.

// quote makes any text safe as the words of an echo command that does not stand first: nothing in it ends the command,
// is replaced, or reaches beyond ASCII, which is all that every console shows.
func quote(text string) string {
	const limit = 300
	text = strings.Map(func(r rune) rune {
		switch {
		case r <= ' ' || r == 0x7f:
			return ' '
		case r == '\\':
			return '/'
		case r == '’' || r == '‘':
			return '\''
		case r > 0x7f:
			return '?'
		}
		return r
	}, text)
	text = strings.ReplaceAll(text, "${", "$ {")
	var words []string
	n := 0
	for _, w := range strings.Fields(text) {
		if n += len(w) + 1; n > limit {
			words = append(words, "...")
			break
		}
		words = append(words, quoteWord(w))
	}
	return strings.Join(words, " ")
}

func quoteWord(w string) string {
	switch {
	case w == "||" || w == "&&" || w == ";":
		return "'" + w + "'"
	case w[0] == '#':
		return "'" + w
	}
	return w
}

// checkWords refuses arguments that iPXE would not hand over as they are; unlike a text for people, an argument must
// not be changed to fit.
func checkWords(where, arg string) error {
	refuse := func(why string) error {
		return inventory.Errorf(inventory.Invalid, "%s: the boot loader cannot pass the argument %q: %s", where, inventory.Clean(arg, 100), why)
	}
	if i := strings.IndexFunc(arg, func(r rune) bool { return r < ' ' || r >= 0x7f }); i >= 0 {
		return refuse("only printable ASCII is allowed")
	}
	if strings.Contains(arg, "${") {
		return refuse("${ is left in it")
	}
	if strings.HasSuffix(arg, `\`) {
		return refuse("it ends in a backslash")
	}
	for _, w := range strings.Fields(arg) {
		if quoteWord(w) != w {
			return refuse("the word " + w + " ends a command there")
		}
	}
	return nil
}

var variableRE = regexp.MustCompile(`\$\{([^{}]*)\}`)

// expand replaces ${name} once by what the lookup knows; an unknown name is an error. What is in a value is not
// looked at again.
func expand(where, arg string, lookup func(name string) (string, bool)) (string, error) {
	var unknown error
	out := variableRE.ReplaceAllStringFunc(arg, func(m string) string {
		name := m[2 : len(m)-1]
		v, ok := lookup(name)
		if !ok && unknown == nil {
			unknown = inventory.Errorf(inventory.Invalid, "%s: nothing is called ${%s}", where, inventory.Clean(name, 64)).
				WithHint("there are %s, the profile's parameters, and ${file:NAME} for the image's files", strings.Join(VariableNames(), ", "))
		}
		return v
	})
	if unknown != nil {
		return "", unknown
	}
	return out, nil
}
