package ref

import "strings"

// Replace returns a text in which by stands for a name, wherever the name is a word of its own.
func Replace(text, name, by string) string {
	if name == "" {
		return text
	}
	var out strings.Builder
	for from := 0; ; {
		i := strings.Index(text[from:], name)
		if i < 0 {
			out.WriteString(text)
			return out.String()
		}
		at := from + i
		end := at + len(name)
		if isWithin(text[:at]) || goesOn(text[end:]) {
			from = at + 1
			continue
		}
		out.WriteString(text[:at])
		out.WriteString(by)
		text, from = text[end:], 0
	}
}

// isWithin reports whether the name of something else ends a text: x- goes on with web-1 to x-web-1.
func isWithin(before string) bool {
	before = strings.TrimRight(before, "-")
	return before != "" && isLetter(before[len(before)-1])
}

// goesOn reports whether a text goes on with the same name.
func goesOn(after string) bool {
	after = strings.TrimLeft(after, "-")
	return after != "" && isLetter(after[0])
}

func isLetter(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
