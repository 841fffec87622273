package scoped

import (
	"encoding/json"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/ref"
)

// hidden returns the names of a thing that the caller may not know, none if the caller may. A host is known by its name, its id
// and its MACs. Of a thing that is gone the reference says whose it was. A reference that is not stored can name what was never
// made: whoever wanted to make it knows its name.
func (t *sight) hidden(r inventory.Ref) (names []string, err error) {
	role := inventory.UserRole("")
	names = []string{r.Name}
	switch r.Kind {
	case ref.OfHost:
		var h inventory.Host
		if h, err = FindHost(t.all, r.Name); err == nil {
			role, err = t.reach.onHost(t.all, &h)
			names = append(names, h.Name, string(h.ID))
			for _, mac := range h.MACs() {
				names = append(names, string(mac))
			}
		}
	case ref.OfMachine:
		m, bad := t.all.FindMachine(r.Name)
		role, err = t.reach.onMachine(&m), bad
	case ref.OfPool:
		if role = t.reach.caller.Grants.In(r.Name); r.Name == inventory.DefaultPool { // everybody knows that there is one
			role = inventory.Viewer
		}
	}
	if inventory.IsKind(err, inventory.NotFound) || inventory.IsKind(err, inventory.Invalid) {
		if err = nil; r.Pools == "" {
			return nil, nil
		}
		role = t.reach.inPools(r.Pools)
	}
	if err != nil || role.Allows(inventory.Viewer) {
		return nil, err
	}
	return names, nil
}

// inPools returns the caller's highest role in the pools of a reference.
func (r *reach) inPools(names string) (best inventory.UserRole) {
	for name := range strings.SplitSeq(names, ",") {
		if role := r.caller.Grants.In(name); !best.Allows(role) {
			best = role
		}
	}
	return best
}

// Hidden are the names that a caller may not know, of the things that some texts name.
type Hidden struct {
	names []string
	isAll bool // the texts may name anything
}

// HiddenOf returns what of references the caller may not know.
func (t *sight) HiddenOf(refs []inventory.Ref) (h Hidden, err error) {
	for _, r := range refs {
		names, err := t.hidden(r)
		if err != nil {
			return h, err
		}
		h.names, h.isAll = append(h.names, names...), h.isAll || r.Kind == ref.Unknown
	}
	slices.SortFunc(h.names, func(a, b string) int { return len(b) - len(a) })
	h.names = slices.Compact(h.names)
	return h, nil
}

// IsNothing reports whether texts stay as they are.
func (h Hidden) IsNothing() bool { return len(h.names) == 0 && !h.isAll }

// Tell returns a text without the names.
func (h Hidden) Tell(text string) string {
	if h.isAll && text != "" {
		return ref.Hidden
	}
	for _, name := range h.names {
		text = ref.Replace(text, name, ref.Hidden)
	}
	return text
}

// tell notes what the texts of a row name: an answer may be made of them, and is told to the caller when it is ready. Texts
// that may name anything are not shown.
func (t *sight) tell(refs *[]inventory.Ref, texts ...*string) {
	if !isUnknown(*refs) {
		t.reach.caller.Named.Add(*refs...)
		return
	}
	*refs = nil
	for _, text := range texts {
		if *text != "" {
			*text = ref.Hidden
		}
	}
}

func isUnknown(refs []inventory.Ref) bool {
	return slices.ContainsFunc(refs, func(r inventory.Ref) bool { return r.Kind == ref.Unknown })
}

func (t *sight) tellHost(h *inventory.Host) { t.tell(&h.Refs, &h.StateReason) }

func (t *sight) tellMachine(m *inventory.Machine) {
	t.tell(&m.Refs, &m.Reason, &m.Hint)
}

func (t *sight) tellOperation(o *inventory.Operation) {
	t.tell(&o.Refs, &o.Reason, &o.Hint)
}

func (t *sight) tellSession(b *inventory.BootSession) { t.tell(&b.Refs, &b.Reason) }

func (t *sight) tellBMC(b *inventory.BMC) {
	if isUnknown(b.Refs) {
		b.LastCheck = nil
	}
	t.tell(&b.Refs, &b.Reason)
}

func (t *sight) tellAudit(a *inventory.Audit) {
	if len(a.Before)+len(a.After) > 0 && isUnknown(a.Refs) {
		return // an undo needs them, and the answer leaves out all texts
	}
	t.tell(&a.Refs, &a.Detail)
}

// TellEvent takes the names out of an event that the caller may not know.
func (t *sight) TellEvent(e *inventory.Event) error {
	h, err := t.HiddenOf(e.References())
	e.Refs = nil // the texts name nothing any more that is to be left out
	if err != nil || h.IsNothing() {
		return err
	}
	if e.Detail = h.Tell(e.Detail); e.Data == nil {
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
	e.Data = h.TellAll(data)
	return nil
}

// tellIssue takes the names out of an issue that the caller may not know.
func (t *sight) tellIssue(i *inventory.Issue) error {
	h, err := t.HiddenOf(i.Refs)
	i.Refs = nil
	i.Cause, i.Hint = h.Tell(i.Cause), h.Tell(i.Hint)
	return err
}

// TellAll is Tell on every text of a JSON value.
func (h Hidden) TellAll(v any) any {
	switch v := v.(type) {
	case string:
		return h.Tell(v)
	case []any:
		for i := range v {
			v[i] = h.TellAll(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = h.TellAll(v[k])
		}
	}
	return v
}
