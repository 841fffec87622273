package cloudinit

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"slipway.dev/slipway/machineconfig/late"
)

// The documents are written here and not by a YAML library, because a library chooses how a scalar is quoted: text
// that holds a marker of a late value has to be in double quotes, whatever its value will be.

// object is a mapping that keeps the order of its keys.
type object []entry

type entry struct {
	key   string
	value any // string, int, bool, object, list or argv
}

// list is a sequence in block style.
type list []any

// argv is a command: a sequence on one line, all of it quoted.
type argv []string

// quoted is a string that never stands without quotes, such as a mode.
type quoted string

// with adds a key, unless its value is empty.
func (o object) with(key string, value any) object {
	switch v := value.(type) {
	case string:
		if v == "" {
			return o
		}
	case list:
		if len(v) == 0 {
			return o
		}
	case argv:
		if len(v) == 0 {
			return o
		}
	case object:
		if len(v) == 0 {
			return o
		}
	}
	return append(o, entry{key, value})
}

// strs turns strings into a list.
func strs(in []string) list {
	var out list
	for _, s := range in {
		out = append(out, s)
	}
	return out
}

// block writes a mapping in block style.
func block(o object) []byte {
	var b strings.Builder
	writeObject(&b, o, 0)
	return []byte(b.String())
}

func writeObject(b *strings.Builder, o object, indent int) {
	for _, e := range o {
		b.WriteString(strings.Repeat(" ", indent) + scalar(e.key, -1) + ":")
		writeValue(b, e.value, indent)
	}
}

// writeValue writes what follows a colon, with its line end.
func writeValue(b *strings.Builder, v any, indent int) {
	switch v := v.(type) {
	case object:
		if len(v) > 0 {
			b.WriteString("\n")
			writeObject(b, v, indent+2)
			return
		}
	case list:
		if len(v) > 0 {
			b.WriteString("\n")
			writeList(b, v, indent)
			return
		}
	}
	b.WriteString(" " + inline(v, indent+2) + "\n")
}

func writeList(b *strings.Builder, l list, indent int) {
	pad := strings.Repeat(" ", indent)
	for _, item := range l {
		if o, ok := item.(object); ok && len(o) > 0 {
			var sub strings.Builder
			writeObject(&sub, o, indent+2)
			b.WriteString(pad + "- " + sub.String()[indent+2:])
			continue
		}
		b.WriteString(pad + "- " + inline(item, indent+2) + "\n")
	}
}

// inline writes a value that starts on the current line; a block scalar's lines are indented.
func inline(v any, indent int) string {
	switch v := v.(type) {
	case string:
		return scalar(v, indent)
	case quoted:
		return quote(string(v))
	}
	return flow(v)
}

// flow writes a value on one line, which is JSON as well.
func flow(v any) string {
	var parts []string
	switch v := v.(type) {
	case string:
		return quote(v)
	case quoted:
		return quote(string(v))
	case int:
		return strconv.Itoa(v)
	case bool:
		return strconv.FormatBool(v)
	case argv:
		for _, s := range v {
			parts = append(parts, quote(s))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case list:
		for _, s := range v {
			parts = append(parts, flow(s))
		}
		return "[" + strings.Join(parts, ",") + "]"
	case object:
		for _, e := range v {
			parts = append(parts, quote(e.key)+":"+flow(e.value))
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	panic(fmt.Sprintf("cloudinit: no YAML for %T", v)) // only types above are ever put into an object
}

var (
	plainRE = regexp.MustCompile(`^[A-Za-z/][A-Za-z0-9._/@+-]*$`)
	wordsRE = regexp.MustCompile(`^(?i:y|n|yes|no|on|off|true|false|null)$`) // YAML 1.1 makes values of these
)

// scalar writes a string: plain, as a block of lines when indent is not negative, or in double quotes.
func scalar(s string, indent int) string {
	if late.HasMarker(s) {
		return quote(s)
	}
	if plainRE.MatchString(s) && !wordsRE.MatchString(s) {
		return s
	}
	if indent >= 0 && isBlock(s) {
		head, body := "|-", s
		if strings.HasSuffix(s, "\n") {
			head, body = "|", strings.TrimSuffix(s, "\n")
		}
		pad := strings.Repeat(" ", indent)
		lines := strings.Split(body, "\n")
		for i, l := range lines {
			if l != "" {
				lines[i] = pad + l
			}
		}
		return head + "\n" + strings.Join(lines, "\n")
	}
	return quote(s)
}

// isBlock reports whether s survives as a literal block without an indentation indicator, and ascii leaves it alone.
func isBlock(s string) bool {
	if !strings.Contains(s, "\n") || strings.HasSuffix(s, "\n\n") || !utf8.ValidString(s) {
		return false
	}
	if s[0] == '\n' || s[0] == ' ' || s[0] == '\t' {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool { return r != '\n' && r != '\t' && (r > 0x7e || isEscaped(r)) })
}

// ascii escapes all characters beyond ASCII. In what this file writes they are in double quotes only.
func ascii(doc string) string {
	var b strings.Builder
	for _, r := range doc {
		switch {
		case r < 0x80:
			b.WriteRune(r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	return b.String()
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= 0x80 })
}

// isEscaped reports whether YAML 1.1 readers refuse the character as it is, or take it for a line break.
func isEscaped(r rune) bool {
	switch {
	case r < 0x20, 0x7f <= r && r < 0xa0, r == 0x2028, r == 0x2029, r == 0xfeff, r == 0xfffe, r == 0xffff:
		return true
	}
	return false
}

// quote writes a string in double quotes. Markers in it get the encoding that their values will need there.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case isEscaped(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r) // invalid UTF-8 comes as U+FFFD
		}
	}
	b.WriteByte('"')
	return late.Retag(b.String(), late.JSONString)
}
