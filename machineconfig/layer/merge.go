package layer

import (
	"slices"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/pointer"
)

// Merge makes one configuration of layers, the widest first. Scalars override, and objects and maps merge key by key. Lists
// of objects merge item by item by their key, and other lists add up. Its findings are warnings: a $remove of something
// that no wider layer has. The result shares nothing with the layers.
func Merge(layers ...*Layer) (*machineconfig.Config, machineconfig.Report) {
	var m merger
	var root *node
	for _, l := range layers {
		if !l.IsEmpty() {
			root = m.merge(root, l.root, "")
		}
	}
	c := &machineconfig.Config{Provenance: map[string]string{}}
	if root != nil {
		d := decoder{provenance: c.Provenance}
		d.into(c, root)
	}
	return c, m.report
}

// merger merges two nodes at a time; it makes new nodes and leaves the given ones as they are.
type merger struct{ report machineconfig.Report }

// absent warns that there is nothing to remove.
func (m *merger) absent(path, source string) {
	f := m.report.Warnf(path, "nothing-to-remove", "is removed here, but no wider layer sets it")
	f.Source, f.Hint = source, "drop the "+removeWord+", or look at its spelling"
}

// merge lays narrow over wide, which is nil when no wider layer says anything. It returns nil when nothing is left.
func (m *merger) merge(wide, narrow *node, path string) *node {
	switch {
	case narrow.op == opRemove:
		if wide == nil {
			m.absent(path, narrow.source())
		}
		return nil
	case wide == nil && !narrow.hasOps, narrow.shape.whole:
		return narrow
	case narrow.op == opReplace:
		wide = nil
	}
	switch narrow.shape.kind {
	case objectKind:
		return m.object(wide, narrow, path)
	case mapKind:
		return m.textMap(wide, narrow, path)
	case keyedKind:
		return m.keyed(wide, narrow, path)
	case setKind, wordsKind:
		return m.list(wide, narrow, path)
	}
	return narrow
}

// made is a node of the same place as narrow, without its operations.
func made(narrow *node) *node {
	return &node{shape: narrow.shape, layer: narrow.layer, line: narrow.line, col: narrow.col, key: narrow.key}
}

func (m *merger) object(wide, narrow *node, path string) *node {
	out := made(narrow)
	out.fields = make([]*node, len(narrow.fields))
	if wide != nil {
		copy(out.fields, wide.fields)
	}
	for _, r := range narrow.removed {
		f := narrow.shape.byName[r.key]
		if out.fields[f.pos] == nil {
			m.absent(pointer.Add(path, f.name), narrow.layer.source(r.line, r.col))
		}
		out.fields[f.pos] = nil
	}
	isGroupSet := slices.ContainsFunc(narrow.shape.fields, func(f *fieldShape) bool {
		n := narrow.fields[f.pos]
		return f.group > 0 && n != nil && n.op != opRemove
	})
	for i, n := range narrow.fields {
		f := narrow.shape.fields[i]
		was := out.fields[i]
		if isGroupSet && f.group > 0 {
			out.fields[i] = nil
		}
		if n != nil {
			out.fields[i] = m.merge(was, n, pointer.Add(path, f.name))
		}
	}
	return out
}

func (m *merger) textMap(wide, narrow *node, path string) *node {
	out := made(narrow)
	if wide != nil {
		out.pairs = slices.Clone(wide.pairs)
	}
	find := func(key string) (int, bool) {
		return slices.BinarySearchFunc(out.pairs, pair{key: key}, comparePairs)
	}
	for _, r := range narrow.removed {
		i, ok := find(r.key)
		if !ok {
			m.absent(pointer.Add(path, r.key), narrow.layer.source(r.line, r.col))
			continue
		}
		out.pairs = slices.Delete(out.pairs, i, i+1)
	}
	for _, p := range narrow.pairs {
		i, ok := find(p.key)
		switch {
		case p.value.op == opRemove && ok:
			out.pairs = slices.Delete(out.pairs, i, i+1)
		case p.value.op == opRemove:
			m.absent(pointer.Add(path, p.key), p.value.source())
		case ok:
			out.pairs[i].value = p.value
		default:
			out.pairs = slices.Insert(out.pairs, i, p)
		}
	}
	return out
}

// keyed merges two lists item by item: what both have stays where the wider has it, what is new follows.
func (m *merger) keyed(wide, narrow *node, path string) *node {
	out := made(narrow)
	if wide != nil {
		out.items = slices.Clone(wide.items)
	}
	at := make(map[string]int, len(out.items))
	for i, item := range out.items {
		if item.key != "" {
			at[item.key] = i
		}
	}
	for _, r := range narrow.removed {
		i, ok := at[r.key]
		if !ok {
			m.absent(pointer.Add(path, inventory.Clean(r.key, 200)), narrow.layer.source(r.line, r.col))
			continue
		}
		delete(at, r.key)
		out.items[i] = nil
	}
	for _, n := range narrow.items {
		i, ok := at[n.key]
		var was *node
		if ok {
			was = out.items[i]
		}
		item := m.merge(was, n, pointer.Add(path, n.key))
		switch {
		case ok:
			out.items[i] = item
		case item != nil:
			out.items = append(out.items, item)
		}
	}
	out.items = slices.DeleteFunc(out.items, func(n *node) bool { return n == nil })
	return out
}

// list adds the texts of narrow to those of wide that it does not remove.
func (m *merger) list(wide, narrow *node, path string) *node {
	out := made(narrow)
	if wide != nil && (narrow.shape.kind == setKind || len(narrow.removed) > 0) {
		out.items = slices.Clone(wide.items)
	}
	for _, r := range narrow.removed {
		n := len(out.items)
		out.items = slices.DeleteFunc(out.items, func(i *node) bool { return i.text == r.key })
		if len(out.items) == n {
			m.absent(pointer.Add(path, inventory.Clean(r.key, 60)), narrow.layer.source(r.line, r.col))
		}
	}
	if narrow.shape.kind == wordsKind {
		out.items = append(out.items, narrow.items...)
		return out
	}
	seen := make(map[string]bool, len(out.items)+len(narrow.items))
	for _, i := range out.items {
		seen[i.text] = true
	}
	for _, i := range narrow.items {
		if !seen[i.text] {
			seen[i.text] = true
			out.items = append(out.items, i)
		}
	}
	return out
}
