package scoped

import (
	"encoding/json"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/ref"
)

// Unnamed stands for a name that the caller may not know.
const Unnamed = "(hidden)"

// knows reports whether the caller may know the name of a thing. Of a thing that is gone nobody can say any more whose it was.
func (t *sight) knows(r inventory.Ref) (is, isGone bool, err error) {
	role := inventory.UserRole("")
	switch r.Kind {
	case ref.OfHost:
		role, err = t.roleOnHostNamed(r.Name)
	case ref.OfMachine:
		m, bad := t.all.FindMachine(r.Name)
		role, err = t.reach.onMachine(&m), bad
	case ref.OfPool:
		if r.Name == inventory.DefaultPool { // everybody knows that there is one
			return true, false, nil
		}
		_, err = t.all.Pools().Find(r.Name)
		role = t.reach.caller.Grants.In(r.Name)
	default:
		return false, false, nil
	}
	if inventory.IsKind(err, inventory.NotFound) || inventory.IsKind(err, inventory.Invalid) {
		return false, true, nil
	}
	return err == nil && role.Allows(inventory.Viewer), false, err
}

func (t *sight) roleOnHostNamed(name string) (inventory.UserRole, error) {
	h, err := FindHost(t.all, name)
	if err != nil {
		return "", err
	}
	return t.reach.onHost(t.all, &h)
}

// hiddenOf returns the names of those things that the caller may not know. Names of things that are gone stay: the history of a
// host tells its pool about the machines that it had, and a refusal names what the caller wanted to make.
func (t *sight) hiddenOf(refs []inventory.Ref) (names []string, err error) {
	for _, r := range refs {
		is, isGone, err := t.knows(r)
		if err != nil {
			return nil, err
		}
		if !is && !isGone {
			names = append(names, r.Name)
		}
	}
	return names, nil
}

// TellEvent takes the names out of an event that the caller may not know.
func (t *sight) TellEvent(e *inventory.Event) error {
	names, err := t.hiddenOf(e.References())
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return nil
	}
	e.Detail = without(e.Detail, names)
	if e.Data == nil {
		return nil
	}
	b, err := json.Marshal(e.Data)
	if err != nil {
		return err
	}
	var data any // others read the same event
	if err := json.Unmarshal(b, &data); err != nil {
		return err
	}
	e.Data = withoutIn(data, names)
	return nil
}

// tellIssue takes the names out of an issue that the caller may not know.
func (t *sight) tellIssue(i *inventory.Issue) error {
	names, err := t.hiddenOf(i.Refs)
	i.Cause, i.Hint = without(i.Cause, names), without(i.Hint, names)
	return err
}

// Tell returns a text of a refusal without the names of the things in refs that the caller may not know.
func (t *Tx) Tell(text string, refs []inventory.Ref) (string, error) {
	names, err := t.hiddenOf(refs)
	return without(text, names), err
}

// withoutIn is without on every text of a JSON value.
func withoutIn(v any, names []string) any {
	switch v := v.(type) {
	case string:
		return without(v, names)
	case []any:
		for i := range v {
			v[i] = withoutIn(v[i], names)
		}
	case map[string]any:
		for k := range v {
			v[k] = withoutIn(v[k], names)
		}
	}
	return v
}

// without returns a text in which Unnamed stands for each of the names, wherever one is a word of its own.
func without(text string, names []string) string {
	for _, name := range names {
		text = withoutName(text, name)
	}
	return text
}

func withoutName(text, name string) string {
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
		out.WriteString(Unnamed)
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
