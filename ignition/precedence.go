package ignition

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
)

// place is a text that is in the profile's own document, with the way to it.
type place struct {
	value        string
	key          string // of the mapping that holds it
	line, column int
}

// places finds the texts of a document in Butane or JSON, which YAML reads as well.
func places(text []byte) (out []place) {
	var doc yaml.Node
	if yaml.Unmarshal(text, &doc) != nil {
		return nil
	}
	var walk func(n *yaml.Node, key string, depth int)
	walk = func(n *yaml.Node, key string, depth int) {
		if depth > 100 {
			return
		}
		if n.Kind == yaml.ScalarNode {
			out = append(out, place{n.Value, key, n.Line, n.Column})
		}
		for i, c := range n.Content {
			switch {
			case n.Kind != yaml.MappingNode:
				walk(c, key, depth+1)
			case i%2 == 1:
				walk(c, n.Content[i-1].Value, depth+1)
			}
		}
	}
	walk(&doc, "", 0)
	return out
}

// sourceOf says where a text stands under one of the keys; the start of the document when that is not to be found.
func (r *rendering) sourceOf(value string, keys ...string) string {
	if r.places == nil && r.c.Document != nil {
		r.places = places(r.c.Document.Data)
	}
	for _, p := range r.places {
		if p.value == value && slices.Contains(keys, p.key) {
			return fmt.Sprintf("document:%d:%d", p.line, p.column)
		}
	}
	return "document:1:1"
}

// winner says who gives what the rendering has at a pointer.
func (r *rendering) winner(pointer string) string {
	for at := pointer; at != ""; at = at[:max(strings.LastIndexByte(at, '/'), 0)] {
		switch p := r.c.Provenance[at]; p {
		case "":
		case "inventory":
			return "the host's record"
		default:
			return p
		}
	}
	return "the host's configuration"
}

// overridden warns of a part of the document that does not count.
func (r *rendering) overridden(source, what, pointer string) {
	f := r.report.Warnf("/document", "overridden", "says %s, and what %s says wins", what, r.winner(pointer))
	f.Source, f.Hint = source, "take it out of the document"
}

// named are the lists of Ignition that are merged item by item, and what names an item.
var named = []struct{ section, list, key string }{
	{"storage", "disks", "device"},
	{"storage", "raid", "name"},
	{"storage", "luks", "name"},
	{"storage", "filesystems", "device"},
	{"passwd", "users", "name"},
	{"passwd", "groups", "name"},
	{"systemd", "units", "name"},
}

// compare warns of what the document says otherwise than the rendering, which is merged over it.
func (r *rendering) compare(parent, child map[string]any) {
	for _, n := range named {
		theirs, ours := items(parent, n.section, n.list), items(child, n.section, n.list)
		for _, t := range theirs {
			for i, o := range ours {
				if name, _ := t[n.key].(string); name != "" && name == o[n.key] {
					at := r.pointerOf(n.section, n.list, n.key, name, i)
					r.compareItem(t, o, n.list+" "+inventory.Clean(name, 100), r.sourceOf(name, n.key, "path"), at)
				}
			}
		}
	}
	for _, a := range texts(parent, "shouldExist") {
		if slices.Contains(texts(child, "shouldNotExist"), a) {
			r.overridden(r.sourceOf(a, "shouldExist", "should_exist"), "the kernel argument "+inventory.Clean(a, 100), "/kernel/removeArgs")
		}
	}
	for _, a := range texts(parent, "shouldNotExist") {
		if slices.Contains(texts(child, "shouldExist"), a) {
			r.overridden(r.sourceOf(a, "shouldNotExist", "should_not_exist"), "no kernel argument "+inventory.Clean(a, 100), "/kernel/args")
		}
	}
}

// pointerOf finds where an item of the rendering comes from. Butane may have written other lists than ours.
func (r *rendering) pointerOf(section, list, key, name string, i int) string {
	if p, ok := r.unit[name]; ok && list == "units" {
		return p
	}
	if p := r.from[section+"."+list+"."+strconv.Itoa(i)]; p != "" && key == "name" {
		return p
	}
	return "/" + section
}

// compareItem looks at what both say of one thing. Lists are joined, so that both count; but of units, drop-ins of one name do not.
func (r *rendering) compareItem(theirs, ours map[string]any, what, source, at string) {
	for _, k := range slices.Sorted(maps.Keys(theirs)) {
		o, both := ours[k]
		if t := theirs[k]; both && t != nil && o != nil {
			if list, isList := t.([]any); isList {
				r.compareDropIns(list, o, what, at)
			} else if _, isMap := t.(map[string]any); !isMap && fmt.Sprint(t) != fmt.Sprint(o) {
				r.overridden(source, k+" of "+what, at)
			}
		}
	}
}

func (r *rendering) compareDropIns(theirs []any, ours any, what, at string) {
	list, _ := ours.([]any)
	for _, t := range theirs {
		for _, o := range list {
			a, _ := t.(map[string]any)
			b, _ := o.(map[string]any)
			if name, _ := a["name"].(string); name != "" && name == b["name"] && a["contents"] != b["contents"] {
				r.overridden(r.sourceOf(name, "name"), "drop-in "+inventory.Clean(name, 100)+" of "+what, at)
			}
		}
	}
}

func items(doc map[string]any, section, list string) (out []map[string]any) {
	s, _ := doc[section].(map[string]any)
	all, _ := s[list].([]any)
	for _, item := range all {
		m, _ := item.(map[string]any)
		out = append(out, m)
	}
	return out
}

func texts(doc map[string]any, key string) (out []string) {
	k, _ := doc["kernelArguments"].(map[string]any)
	all, _ := k[key].([]any)
	for _, item := range all {
		if s, ok := item.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// withoutShadowed drops the files, directories and links of the admin's document that ours replace, and says so: Ignition
// would merge them field by field, and a compression or checksum of theirs would stay on our content.
func (r *rendering) withoutShadowed(parent, child []byte) ([]byte, error) {
	doc, err := decode(parent)
	if err != nil {
		return nil, err
	}
	ours, err := decode(child)
	if err != nil {
		return nil, err
	}
	storage, _ := doc["storage"].(map[string]any)
	for _, key := range []string{"files", "directories", "links"} {
		list, _ := storage[key].([]any)
		kept := make([]any, 0, len(list))
		for _, item := range list {
			n, _ := item.(map[string]any)
			p, _ := n["path"].(string)
			at, isOurs := r.taken[p]
			if !isOurs {
				kept = append(kept, item)
				continue
			}
			if !isSame(n, ours, key) {
				r.overridden(r.sourceOf(p, "path"), strings.TrimSuffix(strings.Replace(key, "ies", "ys", 1), "s")+" "+inventory.Clean(p, 200), at)
			}
		}
		if list != nil {
			storage[key] = kept
		}
	}
	r.compare(doc, ours)
	return json.Marshal(doc)
}

// isSame reports whether the rendering has the same content at the path of an item.
func isSame(item, ours map[string]any, list string) bool {
	for _, o := range items(ours, "storage", list) {
		if o["path"] == item["path"] {
			return fmt.Sprint(o["contents"], o["target"]) == fmt.Sprint(item["contents"], item["target"])
		}
	}
	return false
}

// checkRemotes refuses what a machine would fetch over a way on which anybody could change it: over http and TFTP only
// with a checksum. The rule is one for files, keys, certificates and documents that are merged or replace this one.
func (r *rendering) checkRemotes(doc []byte) {
	v, err := decode(doc)
	if err != nil {
		r.report.Errorf("/document", "invalid", "%v", err)
		return
	}
	var walk func(v any)
	walk = func(v any) {
		switch x := v.(type) {
		case map[string]any:
			source, _ := x["source"].(string)
			check, _ := x["verification"].(map[string]any)
			hash, _ := check["hash"].(string)
			if isOpenWay(source) && hash == "" {
				f := r.report.Errorf("/document", "unverified", "fetches %s without a checksum", inventory.Clean(source, 200))
				f.Source = r.sourceOf(source, "source")
				f.Hint = "add verification.hash: sha256-..., fetch it over https, or put the content into this document"
			}
			for _, k := range slices.Sorted(mapKeys(x)) {
				walk(x[k])
			}
		case []any:
			for _, item := range x {
				walk(item)
			}
		}
	}
	walk(v)
}

func mapKeys(m map[string]any) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// isOpenWay reports whether nobody vouches for what a URL answers.
func isOpenWay(source string) bool {
	scheme, _, ok := strings.Cut(strings.ToLower(source), "://")
	return ok && (scheme == "http" || scheme == "tftp") && !strings.HasPrefix(source, lateOrigin)
}

// ownWords says a message of Butane without advice about a command line that there is none of here.
func ownWords(f *machineconfig.Finding) {
	if strings.Contains(f.Message, "--files-dir") {
		f.Message = "it names a local file, and a profile has one document and no other files"
		f.Hint = "upload it: slipway profile set NAME --document FILE --document-files FOLDER; or write its content in the document"
	}
}
