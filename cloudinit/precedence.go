package cloudinit

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"slipway.dev/slipway/machineconfig"
)

// The rule of precedence, the same for every format: a profile's own document is the widest of all that is said of a
// host, and layers, the host's record and its machine win over it. cloud-init merges parts in their order. Ours is the
// first, and the document adds to it; a last one brings users, of which the first of a name wins, and defaults.

// mergeDocument keeps single values that stand, and puts the document's items before those of a list that stands: what
// is done last on the machine is ours.
const mergeDocument = "list(prepend)+dict(no_replace,recurse_list)+str()"

// mergeLast keeps all that stands, and puts our users before the document's.
var mergeLast = list{
	object{{"name", "list"}, {"settings", list{"prepend"}}},
	object{{"name", "dict"}, {"settings", list{"no_replace", "recurse_list"}}},
}

// defaults are keys that nobody asks for by name, so that a document may say otherwise.
var defaults = []string{"manage_etc_hosts"}

// aroundDocument says what stands before the profile's own document, and after it.
func (w *render) aroundDocument(first object) (before, last object) {
	for _, e := range first {
		if e.key == "users" || slices.Contains(defaults, e.key) {
			last = append(last, e)
		} else {
			before = append(before, e)
		}
	}
	return before, last
}

// ofDefaultUser are keys that speak of the image's default user.
var ofDefaultUser = []string{"user", "password", "chpasswd", "ssh_authorized_keys", "ssh_import_id"}

// topOf returns the mapping of a document that has been checked, nil for none.
func topOf(body string) *yaml.Node {
	if jinjaRE.MatchString(body) {
		body = blankJinja(body)
	}
	var doc yaml.Node
	if yaml.Unmarshal([]byte(body), &doc) != nil || len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return nil
	}
	return doc.Content[0]
}

func valueOf(root *yaml.Node, key string) *yaml.Node {
	for i := 0; root != nil && i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value == key {
			return resolved(root.Content[i+1])
		}
	}
	return nil
}

func resolved(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}

// checkMerge refuses words that change how the document is merged: they would win over the rule of precedence.
func checkMerge(root *yaml.Node, offset int, fail func(line, column int, code, message, hint string)) {
	for i := 0; i+1 < len(root.Content); i += 2 {
		if k := root.Content[i]; k.Value == "merge_how" || k.Value == "merge_type" {
			fail(k.Line+offset, k.Column, "merge", "has "+k.Value+", and Slipway says how the document is merged: layers win", "take "+k.Value+" out")
		}
	}
}

// compare reports where the document says otherwise than the layers or the host's record, and where cloud-init could
// not merge both.
func (w *render) compare(body string, skipped int) {
	root := topOf(body)
	if root == nil {
		return
	}
	isTemplate := jinjaRE.MatchString(body)
	w.documentUsers = valueOf(root, "users")
	for _, key := range ofDefaultUser {
		w.documentHasDefault = w.documentHasDefault || valueOf(root, key) != nil
	}
	w.keepSilent()
	c := &comparison{w: w, skipped: skipped, isTemplate: isTemplate}
	ours, after := w.ours()
	for _, e := range append(ours, after...) {
		if v := valueOf(root, e.key); v != nil && !slices.Contains(defaults, e.key) {
			c.value(e.key, e.value, v)
		}
	}
	if l := w.documentUsers; l != nil && l.Kind == yaml.SequenceNode {
		c.users(l)
	}
}

type comparison struct {
	w          *render
	skipped    int
	isTemplate bool
}

func (c *comparison) value(path string, ours any, theirs *yaml.Node) {
	switch v := ours.(type) {
	case list, argv:
		c.kind(path, "list", theirs, yaml.SequenceNode)
	case object:
		if !c.kind(path, "mapping", theirs, yaml.MappingNode) {
			return
		}
		for _, e := range v {
			if t := valueOf(theirs, e.key); t != nil {
				c.value(path+"."+e.key, e.value, t)
			}
		}
	default:
		if text := fmt.Sprint(v); theirs.Kind != yaml.ScalarNode || theirs.Value != text {
			c.overridden(theirs, fmt.Sprintf("says %s, and %q of %s wins", path, clip(text), c.from(path)))
		}
	}
}

// from says who gives a value of a cloud-config.
func (c *comparison) from(path string) string {
	at := map[string]string{
		"hostname": "/host/hostname", "fqdn": "/host/hostname", "locale": "/host/locale", "timezone": "/host/timezone", "keyboard.layout": "/host/keymap",
	}[path]
	switch p := c.w.c.Provenance[at]; p {
	case "":
		return "the host's configuration"
	case "inventory":
		return "the host's record"
	default:
		return p
	}
}

func (c *comparison) overridden(at *yaml.Node, message string) {
	f := c.w.r.Warnf("/document", "overridden", "%s", message)
	f.Source, f.Hint = c.source(at), "take it out of the document"
}

func (c *comparison) source(at *yaml.Node) string {
	return fmt.Sprintf("document:%d:%d", at.Line+c.skipped, at.Column)
}

// kind reports whether the document's value can be merged with ours.
func (c *comparison) kind(path, name string, theirs *yaml.Node, want yaml.Kind) bool {
	if theirs.Kind == want {
		return true
	}
	if !c.isTemplate { // whose values are not known here
		f := c.w.r.Errorf("/document", "mixed", "has %s that is no %s, so that cloud-init cannot merge it with what layers say", path, name)
		f.Source, f.Hint = c.source(theirs), "write "+path+" as a "+name
	}
	return false
}

func (c *comparison) users(theirs *yaml.Node) {
	for _, n := range theirs.Content {
		n = resolved(n)
		name := valueOf(n, "name")
		if n.Kind != yaml.MappingNode || name == nil {
			continue
		}
		for i, u := range c.w.c.Users {
			if u.Name != name.Value || i >= len(c.w.users) {
				continue
			}
			o, _ := c.w.users[i].(object)
			for _, e := range o {
				if v := valueOf(n, e.key); v != nil && (v.Kind != yaml.ScalarNode || v.Value != scalarText(e.value)) && e.key != "name" {
					c.overridden(v, fmt.Sprintf("says %s of user %s, and what the host's configuration says wins", e.key, clip(u.Name)))
				}
			}
		}
	}
}

func scalarText(v any) string {
	switch v := v.(type) {
	case list, argv, object:
		return "\x00" // no scalar
	default:
		return fmt.Sprint(v)
	}
}

// withDefault puts the image's default user before ours when a layer says that it is kept, or when the document speaks of
// it and has no list of users.
func (w *render) withDefault(users list) list {
	switch d := w.c.DefaultUser; {
	case d != nil && d.State != machineconfig.RemoveUser:
		return append(list{"default"}, users...)
	case d != nil:
		return users
	}
	if len(users) == 0 || w.documentUsers != nil || !w.documentHasDefault {
		return users
	}
	return append(list{"default"}, users...)
}

// keepSilent takes out of our users what nobody said, where the document has a user of that name.
func (w *render) keepSilent() {
	if w.documentUsers == nil {
		return
	}
	for i, u := range w.c.Users {
		o, isObject := w.users[i].(object)
		if !isObject || u.LockPassword != nil || u.PasswordHash != "" {
			continue
		}
		for _, n := range w.documentUsers.Content {
			if name := valueOf(resolved(n), "name"); name != nil && name.Value == u.Name {
				w.users[i] = object(slices.DeleteFunc(slices.Clone(o), func(e entry) bool { return e.key == "lock_passwd" }))
			}
		}
	}
}
