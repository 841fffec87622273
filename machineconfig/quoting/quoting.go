// Package quoting finds where a template puts a value into a text that may change more than its own place. A quote ends the
// word of a shell, and a line break begins another key. It looks at the text and at where the values stand, and changes
// nothing.
//
// Start reading at Check.
package quoting

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Kind is who reads a text.
type Kind string

// The kinds.
const (
	None    Kind = "" // of which nothing is known
	Shell   Kind = "shell script"
	YAML    Kind = "YAML text"
	JSON    Kind = "JSON text"
	TOML    Kind = "TOML text"
	Unit    Kind = "unit of systemd"
	Python  Kind = "Python script"
	Program Kind = "script"
)

// Value is what a template has put between two places of a text.
type Value struct {
	Start, End int
	Name       string // what the template says for it: .Parameters.zone
	IsSecret   bool   // its value is not in the text
	Quote      string // the function that has quoted it, "" for none
}

// Fault is a value that may change the text around it.
type Fault struct {
	Value               int
	Code, Message, Hint string
}

var shells = []string{"sh", "bash", "dash", "ash", "ksh", "mksh", "zsh"}

// OfInterpreter says what a program reads.
func OfInterpreter(program string) Kind {
	name := path.Base(program)
	switch {
	case slices.Contains(shells, name):
		return Shell
	case strings.HasPrefix(name, "python"):
		return Python
	}
	return Program
}

var kinds = map[string]Kind{
	".sh": Shell, ".bash": Shell, ".ksh": Shell, ".zsh": Shell, ".yaml": YAML, ".yml": YAML, ".json": JSON, ".ign": JSON, ".toml": TOML, ".py": Python,
	".service": Unit, ".socket": Unit, ".timer": Unit, ".mount": Unit, ".automount": Unit, ".path": Unit, ".target": Unit, ".slice": Unit, ".swap": Unit,
}

// shellFiles are read by a shell though neither their name ends so nor their first line says it.
var shellFiles = regexp.MustCompile(`^/etc/(default|sysconfig|cron\.d|init\.d)/[^/]+$|^/etc/(crontab|rc\.local|profile|bash\.bashrc)$|/\.(profile|bashrc|bash_profile|zshrc|envrc)$`)

// OfFile says who reads a file, by its first line and its path.
func OfFile(name, text string) Kind {
	if line, ok := strings.CutPrefix(text, "#!"); ok {
		line, _, _ = strings.Cut(line, "\n")
		words := strings.Fields(line)
		if len(words) > 0 && path.Base(words[0]) == "env" {
			words = slices.DeleteFunc(words[1:], func(w string) bool { return strings.HasPrefix(w, "-") || strings.Contains(w, "=") })
		}
		if len(words) > 0 {
			return OfInterpreter(words[0])
		}
	}
	if k, ok := kinds[path.Ext(name)]; ok {
		return k
	}
	switch {
	case shellFiles.MatchString(name):
		return Shell
	case strings.HasPrefix(name, "/etc/systemd/") && path.Ext(name) == ".conf":
		return Unit
	}
	return None
}

// Check compares the values of a text with what its reader makes of them.
func Check(kind Kind, text string, values []Value) []Fault {
	var out []Fault
	for i, v := range values {
		if v.Start < 0 || v.Start > v.End || v.End > len(text) {
			continue
		}
		c := check{text: text, v: v, at: i}
		switch kind {
		case Shell:
			c.shell()
		case YAML, JSON, TOML, Python:
			c.data(kind)
		case Unit:
			c.unit()
		case Program:
			if v.IsSecret {
				c.add("raw-secret", "write the secret into a file of its own (secret: secret://NAME, mode 0600), and let the script read that",
					"is in a script: the effect of its value there depends on the language")
			}
		}
		if c.fault != nil {
			out = append(out, *c.fault)
		}
	}
	return out
}

// check looks at one value.
type check struct {
	text  string
	v     Value
	at    int
	fault *Fault
}

func (c *check) add(code, hint, format string, args ...any) {
	c.fault = &Fault{Value: c.at, Code: code, Message: "{{ " + c.v.Name + " }} " + fmt.Sprintf(format, args...), Hint: hint}
}

func (c *check) value() string { return c.text[c.v.Start:c.v.End] }

// isIn reports whether the value stands between quotes that its line opened before it.
func (c *check) isIn(quotes string) bool {
	line := c.text[strings.LastIndexByte(c.text[:c.v.Start], '\n')+1 : c.v.Start]
	open := byte(0)
	for i := 0; i < len(line); i++ {
		switch b := line[i]; {
		case b == '\\' && open != '\'':
			i++
		case open == 0 && strings.IndexByte(quotes, b) >= 0:
			open = b
		case b == open:
			open = 0
		}
	}
	return open != 0
}

func (c *check) raw() string {
	if c.v.IsSecret {
		return "raw-secret"
	}
	return "raw-text"
}

func (c *check) use(function string) string {
	return "write {{ " + c.v.Name + " | " + function + " }}, without quotes around it"
}

const twice = "is quoted by " + "%s, and stands between quotes besides: these end where it begins"

// shell wants every value in single quotes of its own.
func (c *check) shell() {
	switch {
	case c.v.Quote == "shell" && c.isIn(`"'`):
		c.add("quoted-twice", "take the quotes around it out", twice, "shell")
	case c.v.Quote == "shell", c.v.Quote == "b64enc":
	case c.v.Quote == "" && c.v.IsSecret:
		c.add(c.raw(), c.use("shell"), "stands raw in a shell script: a quote, a blank or a $ in its value changes the script or runs as a command")
	case c.v.Quote == "":
		c.add(c.raw(), c.use("shell"), "stands raw in a shell script: text with a quote, a blank or a $ changes the script or runs as a command")
	case c.v.IsSecret || strings.ContainsAny(c.value(), "$`"):
		c.add(c.raw(), c.use("shell"), "is quoted by %s, and a shell still reads $ and ` in it", c.v.Quote)
	}
}

// plainRE is text that YAML takes for itself wherever it stands.
var plainRE = regexp.MustCompile(`^[\pL\pN/][\pL\pN ._/@+:=%()-]*$`)

func isPlain(kind Kind, s string) bool {
	if kind == YAML {
		return s == "" || plainRE.MatchString(s) && !strings.Contains(s, ": ") && !strings.HasSuffix(s, ":")
	}
	return !strings.ContainsAny(s, "\"'\\") && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' })
}

// data wants strings in double quotes, as JSON writes them.
func (c *check) data(kind Kind) {
	quotes := `"'`
	if kind == JSON {
		quotes = `"`
	}
	switch {
	case (c.v.Quote == "json" || c.v.Quote == "quote") && c.isIn(quotes):
		c.add("quoted-twice", "take the quotes around it out", twice, c.v.Quote)
	case c.v.Quote == "json", c.v.Quote == "quote", c.v.Quote == "b64enc":
	case c.v.IsSecret:
		c.add(c.raw(), c.use("json"), "stands raw in a %s: a quote, a colon or a line break in its value changes the text", kind)
	case !isPlain(kind, strings.TrimSuffix(strings.TrimPrefix(c.value(), "'"), "'")):
		c.add(c.raw(), c.use("json"), "stands raw in a %s, and its text here changes what is read", kind)
	}
}

// unit wants no secrets, for every user reads units.
func (c *check) unit() {
	const file = "write the secret into a file of mode 0600 and name it by LoadCredential= or EnvironmentFile="
	switch {
	case c.v.IsSecret && c.v.Quote == "":
		c.add(c.raw(), file, "is raw in a unit of systemd. A quote, a %% or a line break in its value changes the unit, and every user reads it there")
	case c.v.IsSecret:
		c.add("exposed", file, "is in a unit of systemd, which every user reads")
	case c.v.Quote == "systemd" && c.isIn(`"'`):
		c.add("quoted-twice", "take the quotes around it out", twice, "systemd")
	case c.v.Quote == "" && strings.ContainsAny(c.value(), "\"'\\%$;\n"):
		c.add(c.raw(), "write Environment={{ printf \"NAME=%s\" "+c.v.Name+" | systemd }} and use ${NAME}", "stands raw in a unit of systemd, and its text here changes what is read")
	}
}
