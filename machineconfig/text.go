package machineconfig

import (
	"strings"
	"unicode/utf8"
)

// TextFault returns where a text is no UTF-8 that every tool reads alike, and what is wrong there; line 0 for nothing.
// A column counts characters.
func TextFault(text string) (line, column int, what, hint string) {
	switch {
	case strings.HasPrefix(text, "\xef\xbb\xbf"):
		return 1, 1, "begins with a byte order mark, which the tool takes for the first letter", "save the file as UTF-8 without a byte order mark"
	case strings.HasPrefix(text, "\xff\xfe"), strings.HasPrefix(text, "\xfe\xff"):
		return 1, 1, "is UTF-16", "save the file as UTF-8"
	case utf8.ValidString(text):
		return 0, 0, "", ""
	}
	line, column = 1, 1
	for text != "" {
		r, size := utf8.DecodeRuneInString(text)
		if r == utf8.RuneError && size == 1 {
			break
		}
		column++
		if r == '\n' {
			line, column = line+1, 1
		}
		text = text[size:]
	}
	return line, column, "has a byte that is not UTF-8, such as a letter in Latin-1", "save the file as UTF-8: iconv -f LATIN1 -t UTF-8 FILE"
}

// SecondDocument returns the line on which a second YAML document begins, 0 if there is none. A reader that expects
// one drops the second, or refuses both.
func SecondDocument(text string) int {
	n, isOpen, isEnded := 0, false, false
	for l := range strings.Lines(text) {
		n++
		l = strings.TrimRight(l, " \t\r\n")
		switch {
		case l == "---" || strings.HasPrefix(l, "--- ") || strings.HasPrefix(l, "---\t"):
			if isOpen {
				return n
			}
			isOpen = true
		case l == "..." || strings.HasPrefix(l, "... "):
			isEnded = isOpen
		case l == "" || strings.HasPrefix(strings.TrimLeft(l, " \t"), "#"):
		case !isOpen && strings.HasPrefix(l, "%"):
		case isEnded:
			return n
		default:
			isOpen = true
		}
	}
	return 0
}
