package kickstart

import (
	"strings"
	"unicode/utf8"
)

// word is a word of a line of a kickstart file, with its place.
type word struct {
	text         string
	line, column int
}

// line is a line of a kickstart file.
type line struct {
	n    int
	raw  string // as it is written, with its line end
	head string // its first word
}

// linesOf splits a file. Anaconda knows no lines that go on: a backslash at the end continues nothing.
func linesOf(text string) (out []line) {
	for raw := range strings.Lines(text) {
		l := line{n: len(out) + 1, raw: raw}
		if f := strings.Fields(raw); len(f) > 0 {
			l.head = f[0]
		}
		out = append(out, l)
	}
	return out
}

// isContinued reports whether a line ends in a backslash.
func (l line) isContinued() bool { return strings.HasSuffix(strings.TrimRight(l.raw, "\r\n"), `\`) }

// words splits a line as a shell does, as Anaconda does: with quotes and backslashes, and up to a #. Open is the place of a quote
// that is not closed.
func (l line) words() (out []word, open *word) {
	at := word{line: l.n, column: 1}
	var cur *word
	quote := rune(0)
	start := word{}
	begin := func() {
		if cur == nil {
			cur = &word{line: at.line, column: at.column}
		}
	}
	end := func() {
		if cur != nil {
			out = append(out, *cur)
			cur = nil
		}
	}
	for text := l.raw; text != ""; {
		r, size := utf8.DecodeRuneInString(text)
		rest := text[size:]
		next, nextSize := utf8.DecodeRuneInString(rest)
		took := 1
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case r == '\\' && quote == 0 || r == '\\' && quote == '"' && (next == '"' || next == '\\'):
			begin()
			cur.text += string(next)
			size, took = size+nextSize, 2
		case quote != 0:
			cur.text += text[:size]
		case r == '\'' || r == '"':
			begin()
			quote, start = r, at
		case r == '#':
			end()
			return out, nil
		case r == ' ' || r == '\t' || r == '\r' || r == '\n':
			end()
		default:
			begin()
			cur.text += text[:size]
		}
		at.column += took
		text = text[size:]
	}
	end()
	if quote != 0 {
		return out, &start
	}
	return out, nil
}
