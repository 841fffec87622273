package convert

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/v1alpha1"
)

// maxName is the most letters of a name: that of a host or machine becomes the name of the system.
const maxName = 63

// names are those that are given away, by kind and namespace. Names that objects have keep their owners: anyone who has to get
// another one comes after them. So the same file gives the same names, and one more object at its end changes none.
type names map[string]bool

// give returns the first of some names that is free, or else the last of them with a number.
func (n names) give(kind, namespace string, wishes ...string) string {
	isFree := func(name string) bool { return !n[kind+"\x00"+namespace+"\x00"+name] }
	name := ""
	for _, w := range wishes {
		if name = dnsName(w); isFree(name) {
			break
		}
	}
	for base, i := name, 2; !isFree(name); i++ {
		name = numbered(base, i)
	}
	n[kind+"\x00"+namespace+"\x00"+name] = true
	return name
}

// next returns the first name of a row that is free: prefix-0, prefix-1.
func (n names) next(kind, namespace, prefix string) string {
	base := dnsName(prefix)
	for i := 0; ; i++ {
		name := numbered(base, i)
		if key := kind + "\x00" + namespace + "\x00" + name; !n[key] {
			n[key] = true
			return name
		}
	}
}

// numbered adds a number to a name of at most 63 letters.
func numbered(base string, i int) string {
	suffix := fmt.Sprintf("-%d", i)
	return strings.TrimRight(base[:min(len(base), maxName-len(suffix))], "-") + suffix
}

// dnsName makes a name that Kubernetes takes, of at most 63 letters. One that loses letters gets a few of its digest, so
// that two of them stay two.
func dnsName(s string) string {
	isWhole := true
	out := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r == '.' || r == '_' || r == '/' || r == ' ' || r == ':':
			return '-'
		}
		isWhole = false
		return -1
	}, s)
	if out = strings.Trim(out, "-"); looksSecret(s) {
		isWhole, out = false, ""
	}
	if isWhole && out != "" && len(out) <= maxName {
		return out
	}
	sum := sha256.Sum256([]byte(s))
	digest := hex.EncodeToString(sum[:4])
	out = strings.TrimRight(out[:min(len(out), maxName-len(digest)-1)], "-")
	out = cmp.Or(out, "name")
	return out + "-" + digest
}

// nameAll gives every source the name of what becomes of it.
func (c *Converter) nameAll() {
	wish := func(s *source) string {
		if h := s.root.at("spec", "hostname"); s.isSidero() && isHost(h.text()) {
			return h.text()
		}
		return s.name
	}
	// Anyone who names no pool means the one of that name: a class must not become it.
	c.names[v1alpha1.KindMetalPool+"\x00\x00"+inventory.DefaultPool] = true
	one := func(s *source) bool { return s.rule.kind != "" && !s.rule.isMany && s.twin == nil }
	for _, s := range c.sources { // names that stay as they are
		if w := wish(s); one(s) && w != "" && dnsName(w) == w && !c.names[s.rule.kind+"\x00"+s.target()+"\x00"+w] {
			s.newName = c.names.give(s.rule.kind, s.target(), w)
		}
	}
	for _, s := range c.sources {
		w := wish(s)
		switch generated := s.root.at("metadata", "generateName").text(); {
		case !one(s) || s.newName != "":
		case w != "" && s.rule.isCluster && s.namespace != "":
			s.newName = c.names.give(s.rule.kind, "", w, s.namespace+"-"+w)
		case w != "" && w != s.name:
			s.newName = c.names.give(s.rule.kind, s.target(), w, w+"-"+s.name)
		case w != "":
			s.newName = c.names.give(s.rule.kind, s.target(), w, w+"-"+s.kind)
		case generated != "":
			s.newName = c.names.next(s.rule.kind, s.target(), generated)
			s.say("it has no name, and metadata.generateName asks for one: it is %s", s.newName)
		default:
			s.newName = c.names.next(s.rule.kind, s.target(), strings.ToLower(s.kind))
			s.say("it has no name: it is %s", s.newName)
		}
	}
	for _, s := range c.sources {
		if s.newName == "" {
			continue
		}
		m := s.root.at("metadata")
		m.at("generateName").carry()
		if w := wish(s); w == s.name || s.name == "" {
			m.at("name").carry()
		} else {
			s.root.at("spec", "hostname").carry()
		}
		if w := wish(s); w != "" && s.newName != w {
			s.say("its name is %s here: %s is taken, or is no name for it", s.newName, shown(w))
		}
		c.renamed[s.group()+"/"+s.kind+"\x00"+s.namespace+"\x00"+s.name] = s.newName
	}
}
