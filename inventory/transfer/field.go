package transfer

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"slipway.dev/slipway/inventory"
)

// kind is how a field is written.
type kind int

const (
	asText   kind = iota
	asNumber      // a whole number
	asFlag        // true or false
	asList        // YAML: a list; CSV: separated by spaces
	asPairs       // YAML: a mapping; CSV: key=value separated by spaces
	asBlock       // YAML only: text of several lines
)

// field is one column or key: how to read it from, and write it to, a thing of type T. Values travel as texts: none or
// one for text, number and flag; any number for list; key=value each for pairs.
type field[T any] struct {
	name string
	kind kind
	get  func(*T) []string
	set  func(*T, []string) error
	// keeps says that an empty value means the default, or what is there, instead of emptying the field.
	keeps bool
}

// textField is a field that is a text of ours; check may be nil.
func textField[T any, S ~string](name string, at func(*T) *S, check func(string) error) field[T] {
	return field[T]{
		name: name, kind: asText,
		get: func(v *T) []string { return one(string(*at(v))) },
		set: func(v *T, texts []string) error {
			s := only(texts)
			if s != "" && check != nil {
				if err := check(s); err != nil {
					return err
				}
			}
			*at(v) = S(s)
			return nil
		},
	}
}

// plain checks a text that stands for itself.
func plain(name string) func(string) error {
	return func(s string) error { return inventory.CheckText(name, s, 256) }
}

// parsedField is a field that reads and writes itself as text, such as an address.
func parsedField[T, V any](name string, at func(*T) *V, parse func(string) (V, error), write func(V) string) field[T] {
	return field[T]{
		name: name, kind: asText,
		get: func(v *T) []string { return one(write(*at(v))) },
		set: func(v *T, texts []string) error {
			s := only(texts)
			if s == "" {
				*at(v) = *new(V)
				return nil
			}
			parsed, err := parse(s)
			if err == nil {
				*at(v) = parsed
			}
			return err
		},
	}
}

// listField is a list of things that read and write themselves as text.
func listField[T, V any](name string, at func(*T) *[]V, parse func(string) (V, error), write func(V) string) field[T] {
	return field[T]{
		name: name, kind: asList,
		get: func(v *T) (texts []string) {
			for _, e := range *at(v) {
				texts = append(texts, write(e))
			}
			return texts
		},
		set: func(v *T, texts []string) error {
			var all []V
			for _, s := range texts {
				e, err := parse(s)
				if err != nil {
					return err
				}
				all = append(all, e)
			}
			*at(v) = all
			return nil
		},
	}
}

// textsField is a list of texts.
func textsField[T any](name string, at func(*T) *[]string) field[T] {
	return listField(name, at, func(s string) (string, error) { return s, nil }, func(s string) string { return s })
}

func numberField[T any](name string, at func(*T) *int) field[T] {
	f := parsedField(name, at, parseNumber, func(n int) string {
		if n == 0 {
			return ""
		}
		return strconv.Itoa(n)
	})
	f.kind = asNumber
	return f
}

func parseNumber(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0, inventory.Errorf(inventory.Invalid, "%q is not a whole number", clip(s))
	}
	return n, nil
}

func flagField[T any](name string, at func(*T) *bool) field[T] {
	f := parsedField(name, at, parseFlag, writeFlag)
	f.kind = asFlag
	return f
}

func parseFlag(s string) (bool, error) {
	switch s {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, inventory.Errorf(inventory.Invalid, "%q is neither true nor false", s)
}

func writeFlag(b bool) string {
	if b {
		return "true"
	}
	return ""
}

// keeping returns the field with keeps set.
func keeping[T any](f field[T]) field[T] {
	f.keeps = true
	return f
}

func one(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

func only(texts []string) string {
	if len(texts) == 0 {
		return ""
	}
	return texts[0]
}

// names lists fields for a hint.
func names[T any](fields []field[T]) string {
	var all []string
	for _, f := range fields {
		all = append(all, f.name)
	}
	return strings.Join(all, ", ")
}

// lookup returns the field with that name.
func lookup[T any](fields []field[T], name string) (field[T], error) {
	for _, f := range fields {
		if f.name == name {
			return f, nil
		}
	}
	return field[T]{}, inventory.Errorf(inventory.Invalid, "%q is not known here", clip(name)).WithHint("known are %s", names(fields))
}

// assign sets a field of a row from a file and notes that it was given.
func assign[T any](row *Row[T], f field[T], texts []string) error {
	for _, s := range texts {
		if !utf8.ValidString(s) {
			return inventory.Errorf(inventory.Invalid, "the text is not UTF-8").WithHint("save the file as UTF-8")
		}
	}
	if f.keeps && len(texts) == 0 {
		return nil
	}
	if err := f.set(&row.Value, texts); err != nil {
		return err
	}
	row.Given = append(row.Given, f.name)
	return nil
}

// has reports whether the row gives that field.
func (r Row[T]) has(name string) bool { return slices.Contains(r.Given, name) }

// clip shortens what a file says for an error message.
func clip(s string) string { return inventory.Clean(s, 60) }
