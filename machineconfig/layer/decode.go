package layer

import (
	"cmp"
	"reflect"
	"strconv"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/pointer"
)

// decoder writes merged nodes into a Config and notes where each value comes from.
type decoder struct{ provenance map[string]string }

func (d *decoder) into(c *machineconfig.Config, root *node) {
	d.value(reflect.ValueOf(c).Elem(), root, "")
}

func (d *decoder) value(v reflect.Value, n *node, path string) {
	if n.shape.isPtr {
		v.Set(reflect.New(n.shape.typ))
		v = v.Elem()
	}
	switch n.shape.kind {
	case textKind:
		v.SetString(n.text)
	case intKind:
		v.SetInt(int64(n.num))
	case modeKind:
		v.SetUint(uint64(n.num))
	case boolKind:
		v.SetBool(n.num == 1)
	case objectKind:
		for i, c := range n.fields {
			if c != nil {
				f := n.shape.fields[i]
				d.value(v.FieldByIndex(f.index), c, path+"/"+f.name)
			}
		}
		return
	case mapKind:
		if len(n.pairs) == 0 {
			return
		}
		m := make(map[string]string, len(n.pairs))
		for _, p := range n.pairs {
			m[p.key] = p.value.text
			d.provenance[pointer.Add(path, p.key)] = p.value.place()
		}
		v.Set(reflect.ValueOf(m))
		return
	case setKind, wordsKind:
		d.texts(v, n, path)
		return
	case keyedKind:
		d.items(v, n, path)
		return
	}
	d.provenance[path] = n.place()
}

func (d *decoder) texts(v reflect.Value, n *node, path string) {
	if len(n.items) == 0 {
		return
	}
	texts := make([]string, len(n.items))
	for i, item := range n.items {
		texts[i] = item.text
		d.provenance[path+"/"+strconv.Itoa(i)] = item.place()
	}
	v.Set(reflect.ValueOf(texts))
}

func (d *decoder) items(v reflect.Value, n *node, path string) {
	if len(n.items) == 0 {
		return
	}
	list := reflect.MakeSlice(v.Type(), len(n.items), len(n.items))
	for i, item := range n.items {
		key := cmp.Or(item.key, strconv.Itoa(i))
		at := pointer.Add(path, key)
		d.provenance[at] = item.place()
		d.value(list.Index(i), item, at)
	}
	v.Set(list)
}
