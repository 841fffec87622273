package transfer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"slipway.dev/slipway/inventory"
)

// structPairs writes what is set of a struct as key=value, in order.
func structPairs(v any) (texts []string) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil // structs of texts and numbers always can be
	}
	var keys map[string]json.RawMessage
	if json.Unmarshal(b, &keys) != nil {
		return nil
	}
	for k, raw := range keys {
		var s string
		if json.Unmarshal(raw, &s) != nil {
			s = string(raw) // a number or true
		}
		texts = append(texts, k+"="+s)
	}
	slices.Sort(texts)
	return texts
}

var plainRE = regexp.MustCompile(`^(true|false|-?[0-9]+)$`)

// readPairs sets the fields of a struct by their keys in JSON.
func readPairs(into any, texts []string) error {
	seen := map[string]bool{}
	for _, s := range texts {
		k, v, ok := strings.Cut(s, "=")
		if !ok || v == "" {
			return inventory.Errorf(inventory.Invalid, "%q has no value", clip(s)).WithHint("write key=value")
		}
		if seen[k] {
			return inventory.Errorf(inventory.Invalid, "%q is given twice", clip(k))
		}
		seen[k] = true
		// What looks like a number may be meant as text, such as a serial.
		if (!plainRE.MatchString(v) || setKey(into, k, v) != nil) && setKey(into, k, quoted(v)) != nil {
			return inventory.Errorf(inventory.Invalid, "%q is not known here, or cannot be %q", clip(k), clip(v))
		}
	}
	return nil
}

func setKey(into any, key, value string) error {
	d := json.NewDecoder(strings.NewReader("{" + quoted(key) + ":" + value + "}"))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

func quoted(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a text can always be written
	return strings.TrimSpace(b.String())
}

// mapField is a mapping of texts.
func mapField[T any](name string, at func(*T) *map[string]string) field[T] {
	return field[T]{
		name: name, kind: asPairs,
		get: func(v *T) (texts []string) {
			for k, s := range *at(v) {
				texts = append(texts, k+"="+s)
			}
			slices.Sort(texts)
			return texts
		},
		set: func(v *T, texts []string) error {
			var all map[string]string
			for _, s := range texts {
				k, value, _ := strings.Cut(s, "=")
				if all == nil {
					all = map[string]string{}
				}
				if _, twice := all[k]; twice {
					return inventory.Errorf(inventory.Invalid, "%q is given twice", clip(k))
				}
				all[k] = value
			}
			*at(v) = all
			return nil
		},
	}
}

// escape makes a text of a disk hint one word without a comma: hints are in lists, and lists in cells of tables.
func escape(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r != '%' && r != ',' && !unicode.IsSpace(r) {
			b.WriteRune(r)
			continue
		}
		for _, c := range []byte(string(r)) {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// writeHint writes a disk hint as one word: serial=S4XY,model=Samsung%20SSD.
func writeHint(h inventory.DiskHint) string {
	texts := structPairs(h)
	for i := range texts {
		texts[i] = escape(texts[i])
	}
	return strings.Join(texts, ",")
}

func parseHint(s string) (h inventory.DiskHint, err error) {
	var texts []string
	if s != "" {
		texts = strings.Split(s, ",")
	}
	for i := range texts {
		if texts[i], err = url.PathUnescape(texts[i]); err != nil {
			return h, inventory.Errorf(inventory.Invalid, "%q is not a disk hint", clip(s)).WithHint("write %%25 for a percent sign")
		}
	}
	if err := readPairs(&h, texts); err != nil {
		return inventory.DiskHint{}, err
	}
	if h.IsZero() {
		return h, inventory.Errorf(inventory.Invalid, "the hint names no disk").WithHint("write serial=S4XY, or minBytes=500000000000,isRotational=false")
	}
	return h, nil
}

func writeTaint(t inventory.Taint) string {
	if t.Value == "" {
		return t.Key
	}
	return t.Key + "=" + t.Value
}

func parseTaint(s string) (t inventory.Taint, err error) {
	t.Key, t.Value, _ = strings.Cut(s, "=")
	return t, inventory.CheckLabels(map[string]string{t.Key: t.Value})
}
