package webhook

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"slipway.dev/slipway/inventory"
)

// reading says where the answer to the status call holds the state, and which values mean on and off.
type reading struct {
	pointer    string
	hasPointer bool
	re         *regexp.Regexp
	on, off    []string // in lower case
}

func (r *reading) option(field, v string) (err error) {
	switch field {
	case "pointer":
		if r.pointer, r.hasPointer = v, true; v != "" && !strings.HasPrefix(v, "/") {
			return invalid("write it as /outlets/0/state", "option status.pointer is not a JSON pointer")
		}
	case "regexp":
		if r.re, err = regexp.Compile(v); err != nil {
			return invalid("see https://pkg.go.dev/regexp/syntax", "option status.regexp is not a regular expression")
		}
	case "on":
		r.on, err = values(v)
	case "off":
		r.off, err = values(v)
	default:
		return invalid("fields are path, method, body, expect, pointer, regexp, on and off", "webhook has no option %q", inventory.Clean("status."+field, 40))
	}
	return err
}

func values(v string) (all []string, err error) {
	for one := range strings.SplitSeq(v, ",") {
		if one = strings.ToLower(strings.TrimSpace(one)); one != "" {
			all = append(all, one)
		}
	}
	if len(all) == 0 {
		return nil, invalid("write them as on,true,1", "a list of values is empty")
	}
	return all, nil
}

func (r *reading) check() error {
	// Exactly one of both: with two, they could disagree.
	if r.hasPointer == (r.re != nil) {
		return invalid("give status.pointer for JSON, or status.regexp for anything else", "the status call needs one way to find the state in the answer")
	}
	if r.on == nil {
		r.on = []string{"on", "true", "1"}
	}
	if r.off == nil {
		r.off = []string{"off", "false", "0"}
	}
	for _, v := range r.on {
		if slices.Contains(r.off, v) {
			return invalid("look at status.on and status.off", "the value %q means on and off", inventory.Clean(v, 40))
		}
	}
	return nil
}

// state finds the state in an answer. A value that is neither on nor off is unknown and no error: a PDU may report
// "rebooting". The error is Unavailable when the answer has no value at that place.
func (r *reading) state(body []byte) (inventory.PowerState, error) {
	v, ok := r.find(body)
	if !ok {
		return inventory.PowerUnknown, inventory.Errorf(inventory.Unavailable, "the webhook's answer does not say whether the machine is on").
			WithHint("compare the answer with status.pointer or status.regexp")
	}
	switch v = strings.ToLower(strings.TrimSpace(v)); {
	case slices.Contains(r.on, v):
		return inventory.PowerOn, nil
	case slices.Contains(r.off, v):
		return inventory.PowerOff, nil
	}
	return inventory.PowerUnknown, nil
}

func (r *reading) find(body []byte) (string, bool) {
	if r.re != nil {
		m := r.re.FindSubmatch(body)
		if m == nil {
			return "", false
		}
		// The first group, or the whole match without one.
		return string(m[min(1, len(m)-1)]), true
	}
	var doc any
	dec := json.NewDecoder(bytes.NewReader(body))
	// A number is compared as it is written: 1 must not become 1e+00.
	dec.UseNumber()
	if dec.Decode(&doc) != nil {
		return "", false
	}
	return follow(doc, r.pointer)
}

// follow resolves a JSON pointer (RFC 6901) and writes what is there as text.
func follow(doc any, pointer string) (string, bool) {
	if pointer != "" {
		for token := range strings.SplitSeq(pointer[1:], "/") {
			token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
			switch at := doc.(type) {
			case map[string]any:
				next, ok := at[token]
				if !ok {
					return "", false
				}
				doc = next
			case []any:
				i, err := strconv.Atoi(token)
				// RFC 6901 section 4 allows no leading zeros.
				if err != nil || i < 0 || i >= len(at) || strconv.Itoa(i) != token {
					return "", false
				}
				doc = at[i]
			default:
				return "", false
			}
		}
	}
	switch v := doc.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case bool:
		return strconv.FormatBool(v), true
	}
	return "", false
}
