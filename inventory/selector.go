package inventory

import (
	"regexp"
	"strings"
)

// Selector is a list of terms that a host must all meet.
type Selector []Term

// Term compares one attribute of a host (see Host.Attribute). A host without the attribute meets only Not terms.
type Term struct {
	Key   string
	Op    string // "=", "!=", "=~" (whole-value regular expression), "exists" or "absent"
	Value string
	re    *regexp.Regexp
}

var termRE = regexp.MustCompile(`^\s*([A-Za-z][A-Za-z0-9._/:-]*)\s*(=~|!=|=)\s*(.*?)\s*$`)

// ParseSelector reads comma-separated terms: key=value, key!=value, key=~regexp, key alone for "has one", or
// !key for "has none".
// Keys are labels, or the names of host fields such as product, rack, arch, serial; "label:" and "fact:" force one.
// An empty text gives an empty selector, which matches nothing.
func ParseSelector(text string) (Selector, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	if len(text) > 1024 {
		return nil, Errorf(Invalid, "selector is %d bytes long; at most 1024 are allowed", len(text))
	}
	var sel Selector
	for _, part := range strings.Split(text, ",") {
		if m := termRE.FindStringSubmatch(part); m != nil {
			t := Term{Key: m[1], Op: m[2], Value: m[3]}
			if strings.HasPrefix(t.Value, "=") {
				return nil, Errorf(Invalid, "selector %q: %q is not a term", text, strings.TrimSpace(part)).WithHint("write one =, as in key=value")
			}
			if t.Op == "=~" {
				// By itself first: a)|(b would get out of the parentheses.
				_, err := regexp.Compile(t.Value)
				re, err2 := regexp.Compile(`^(?:` + t.Value + `)$`)
				if err != nil || err2 != nil {
					return nil, Errorf(Invalid, "selector %q: %q is not a regular expression", text, t.Value).
						WithHint("a comma separates terms and cannot be in an expression")
				}
				t.re = re
			}
			sel = append(sel, t)
			continue
		}
		key, isAbsent := strings.CutPrefix(strings.TrimSpace(part), "!")
		if !labelRE.MatchString(strings.NewReplacer("label:", "", "fact:", "").Replace(key)) {
			return nil, Errorf(Invalid, "selector %q: %q is not a term", text, key).
				WithHint("write key=value, key!=value, key=~regexp, key or !key, separated by commas")
		}
		op := "exists"
		if isAbsent {
			op = "absent"
		}
		sel = append(sel, Term{Key: key, Op: op})
	}
	return sel, nil
}

// Matches reports whether the host meets every term. An empty selector matches no host.
func (s Selector) Matches(h *Host) bool {
	for _, t := range s {
		if !t.matches(h.Attribute(t.Key)) {
			return false
		}
	}
	return len(s) > 0
}

func (t Term) matches(values []string) bool {
	for _, v := range values {
		switch t.Op {
		case "exists":
			return true
		case "absent":
			return false
		case "=":
			if v == t.Value {
				return true
			}
		case "=~":
			if t.re.MatchString(v) {
				return true
			}
		case "!=":
			if v == t.Value {
				return false
			}
		}
	}
	return t.Op == "!=" || t.Op == "absent"
}
